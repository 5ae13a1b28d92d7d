//! `idmint decode`.

use std::io::{self, Write};

use clap::Args;

use super::exit::{Exit, Failure};
use super::settings::Settings;
use crate::id::{Decoder, Pin};
use crate::server::{Catalog, known_domains};
use crate::time::Clock;
use crate::wire::{DecodeAnswer, MatchReading};

/// Say what ids can be, offline.
#[derive(Debug, Args)]
pub(super) struct Decode {
    /// The ids.
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Try only this format.
    #[arg(long)]
    format: Option<String>,
    /// Try only spellings of this name.
    #[arg(long)]
    encoding: Option<String>,
    /// One JSON object a line, as GET /decode/{id} answers.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: Settings,
}

impl Decode {
    /// Prints what each id can be.
    ///
    /// # Errors
    /// 1 when one of them is none, 64 for a format that there is not, 78.
    pub(super) fn run(self) -> Result<(), Failure> {
        let config = self.settings.load(toml::Table::new())?;
        let catalog = Catalog::of(&config).map_err(|error| Failure::of(Exit::Config, &error))?;
        if let Some(name) =
            self.format.as_ref().filter(|name| catalog.formats.iter().all(|format| format.name != **name))
        {
            let names: Vec<_> = catalog.formats.iter().map(|format| format.name.as_str()).collect();
            return Err(Failure::new(Exit::Usage, format!("--format {name}: there is {}", names.join(", "))));
        }
        let domains = known_domains(&config).map_err(|error| Failure::of(Exit::Config, &error))?;
        let decoder = Decoder::new(catalog.formats);
        let pin = Pin { format: self.format.as_deref(), encoding: self.encoding.as_deref() };
        let decoder = decoder.at(Clock::system().now());
        let mut unread = 0;
        let mut out = io::stdout().lock();
        for id in &self.ids {
            let answer = DecodeAnswer::new(id, &decoder, pin, &domains);
            unread += usize::from(answer.matches.is_empty());
            let text = if self.json { json_line(&answer) } else { for_people(&answer) };
            // Whoever reads may have seen enough.
            if out.write_all(text.as_bytes()).is_err() {
                return Ok(());
            }
        }
        match unread {
            0 => Ok(()),
            _ => Err(Failure::new(Exit::No, format!("{unread} of {} are ids of no format", self.ids.len()))),
        }
    }
}

fn json_line(answer: &DecodeAnswer) -> String {
    serde_json::to_string(answer).expect("an answer is strings and lists of them") + "\n"
}

fn for_people(answer: &DecodeAnswer) -> String {
    let mut text = format!("{}\n", answer.id);
    for found in &answer.matches {
        text += &reading(found);
    }
    if answer.matches.is_empty() {
        for rejected in &answer.rejected {
            text += &format!("  not {}: {}\n", rejected.format, rejected.reason);
        }
    }
    text
}

fn reading(found: &MatchReading) -> String {
    let time = found.time.as_deref().or(found.time_unix_seconds.as_deref()).unwrap_or("no time");
    let doubt = if found.plausible { "" } else { "  (not plausible)" };
    let mut text = format!("  {} ({})  {time}{doubt}\n", found.format, found.encoding);
    for field in &found.fields {
        let label = field.label.as_deref().map(|label| format!("  {label}")).unwrap_or_default();
        text += &format!("    {:<12} {}{label}\n", field.name, field.value);
    }
    text
}
