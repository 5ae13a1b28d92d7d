//! The command `idmint range`, which prints the lowest and the highest id of a time span.

use clap::Args;

use crate::cli::exit::Failure;
use crate::cli::print::{json, print};
use crate::cli::settings::Settings;
use crate::server;
use idmint_core::time::UnixTime;
use idmint_wire::RangeAnswer;

/// Print the lowest and the highest id of a time span, offline, for `WHERE id BETWEEN`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Range {
    /// The format.
    format: String,
    /// The start of the span, such as 2026-01-31T12:00:00Z.
    from: UnixTime,
    /// The end of the span, exclusive.
    to: UnixTime,
    /// One line of JSON, as GET /formats/{format}/range returns.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: Settings,
}

impl Range {
    /// Prints the lowest and the highest id in each encoding in which sorted texts have the same
    /// order as the ids.
    ///
    /// # Errors
    /// Returns exit code 64 if the format is unknown or has no range of ids for the span, 74 if the
    /// output fails, and 78 if the configuration is invalid.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let config = self.settings.load_without_slot()?;
        let decoding = server::decoding(&config)?;
        let format = decoding.format(&self.format).map_err(Failure::usage)?;
        let range = format.range(self.from, self.to);
        let range = range.map_err(|error| Failure::usage(format!("{}: {error}", format.name)))?;
        let answer = RangeAnswer::new(format, &range);
        if self.json {
            return print(format_args!("{}\n", json(&answer)));
        }
        let (least, greatest) = (&answer.least, &answer.greatest);
        print(format_args!(
            "from {} to {}, exclusive\n",
            answer.from, answer.to
        ))?;
        print(format_args!(
            "{:<12} {}  {}\n",
            "number", least.value, greatest.value
        ))?;
        for (name, text) in &least.encodings {
            print(format_args!(
                "{name:<12} {text}  {}\n",
                greatest.encodings[name]
            ))?;
        }
        Ok(())
    }
}
