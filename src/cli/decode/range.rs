//! `idmint range`.

use clap::Args;

use crate::cli::exit::{Exit, Failure};
use crate::cli::print::print;
use crate::cli::settings::Settings;
use crate::server;
use crate::time::UnixTime;
use crate::wire::RangeAnswer;

/// Say the least and the greatest id of a time span, offline, for `WHERE id BETWEEN`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Range {
    /// The format.
    format: String,
    /// Where the span begins, such as 2026-01-31T12:00:00Z.
    from: UnixTime,
    /// Where it ends; what begins there is not in it.
    to: UnixTime,
    /// One line of JSON, as GET /formats/{format}/range answers.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: Settings,
}

impl Range {
    /// Prints both ids in every encoding whose texts sort as the ids do.
    ///
    /// # Errors
    /// 64 for a format that there is not and a span that has no range of ids, 74, 78.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let config = self.settings.load(toml::Table::new())?;
        let decoding = server::decoding(&config)?;
        let format = decoding
            .format(&self.format)
            .map_err(|error| Failure::new(Exit::Usage, error))?;
        let range = format.range(self.from, self.to);
        let range = range
            .map_err(|error| Failure::new(Exit::Usage, format!("{}: {error}", format.name)))?;
        let answer = RangeAnswer::new(format, &range);
        if self.json {
            let line = serde_json::to_string(&answer).expect("an answer is JSON");
            return print(format_args!("{line}\n"));
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
