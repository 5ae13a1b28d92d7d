//! `idmint numbers import`.

use clap::Args;
use indicatif::ProgressBar;

use crate::cli::exit::Failure;
use crate::cli::print::print;
use crate::cli::running_service::{RetryArgs, block_on};
use crate::ledger::SeriesName;

/// Let a series go on that was kept elsewhere until now.
///
/// Its last number is listed as given to the key `import-NUMBER`; the next is the one above. A series begins once: if it has begun
/// here, it is refused, and the same command again changes nothing.
#[derive(Debug, Args)]
pub(super) struct Import {
    /// The series.
    #[arg(value_parser = SeriesName::from_text)]
    series: SeriesName,
    /// The last number that was given elsewhere, without what stands around it.
    number: u64,
    /// The answer as JSON, on one line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    service: RetryArgs,
}

impl Import {
    /// Prints where the series goes on.
    ///
    /// # Errors
    /// 1 when the service refuses, 65, 69, 74, 75.
    pub(super) fn run(self) -> Result<(), Failure> {
        let client = self.service.client(&ProgressBar::hidden())?;
        // The same again changes nothing.
        let key = format!("import-{}", self.number);
        let asking = async { Ok(client.begin_series(&self.series, self.number, &key).await?) };
        let begun = block_on(asking)?;
        if begun.is_replayed {
            eprintln!("idmint: imported before");
        }
        if self.json {
            let answer =
                serde_json::to_string(&begun.body).expect("texts and numbers always serialize");
            return print(format_args!("{answer}\n"));
        }
        print(format_args!(
            "{} goes on after {}\n",
            self.series, begun.body.text
        ))
    }
}
