//! Writes the files of a run: `results.md`, `chart.svg` and `results.json`.

use std::{fs, io};

use serde_json::json;

use super::{Results, chart, table};

impl Results<'_> {
    /// Writes `results.md`, `chart.svg` and `results.json`, and prints the verdicts.
    pub(crate) fn write(&self) -> io::Result<()> {
        let folder = &self.settings.output;
        fs::create_dir_all(folder)?;
        fs::write(folder.join("results.md"), table::render(self))?;
        fs::write(folder.join("chart.svg"), chart::render(&self.scenarios))?;
        let scaling: Vec<_> = self
            .scaling
            .iter()
            .map(|table| json!({ "title": table.title, "rows": table.scenarios }))
            .collect();
        let every = json!({
            "machine": self.machine.0.iter().map(|(name, fact)| json!({ "name": name, "fact": fact })).collect::<Vec<_>>(),
            "seconds": self.passed.as_secs(), "rows": self.scenarios, "verdicts": self.verdicts, "growth": scaling,
        });
        fs::write(
            folder.join("results.json"),
            serde_json::to_vec_pretty(&every)?,
        )?;
        print!("{}", table::verdicts(&self.verdicts));
        println!(
            "\nwritten to {}: results.md, chart.svg, results.json",
            folder.display()
        );
        Ok(())
    }
}
