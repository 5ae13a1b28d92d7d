//! The results of a run: a table for people, a chart, and every figure for programs.

mod chart;
mod number;
mod table;

use std::time::Duration;
use std::{fs, io};

use serde_json::json;

use crate::claims::Verdict;
use crate::growth::Growth;
use crate::machine::Machine;
use crate::places::Places;
use crate::row::Row;
use crate::settings::Settings;

pub(crate) struct Results<'a> {
    pub(crate) machine: Machine,
    pub(crate) places: Places,
    pub(crate) settings: &'a Settings,
    pub(crate) rows: Vec<Row>,
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) growth: Vec<Growth>,
    pub(crate) passed: Duration,
}

impl Results<'_> {
    /// Writes `results.md`, `chart.svg` and `results.json`, and prints what was claimed.
    pub(crate) fn written(&self) -> io::Result<()> {
        let folder = &self.settings.output;
        fs::create_dir_all(folder)?;
        fs::write(folder.join("results.md"), table::of(self))?;
        fs::write(folder.join("chart.svg"), chart::of(&self.rows))?;
        let growth: Vec<_> =
            self.growth.iter().map(|growth| json!({ "title": growth.title, "rows": growth.rows })).collect();
        let every = json!({
            "machine": self.machine.0.iter().map(|(name, fact)| json!({ "name": name, "fact": fact })).collect::<Vec<_>>(),
            "seconds": self.passed.as_secs(), "rows": self.rows, "verdicts": self.verdicts, "growth": growth,
        });
        fs::write(folder.join("results.json"), serde_json::to_vec_pretty(&every)?)?;
        print!("{}", table::of_verdicts(&self.verdicts));
        println!("\nwritten to {}: results.md, chart.svg, results.json", folder.display());
        Ok(())
    }
}
