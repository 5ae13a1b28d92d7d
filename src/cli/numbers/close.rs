//! The command `idmint numbers close`, which ends a series.

use clap::Args;
use indicatif::ProgressBar;

use crate::cli::exit::Failure;
use crate::cli::print::{print, print_note};
use crate::cli::running_service::{RetryArgs, block_on};
use idmint_records::ledger::SeriesName;

/// Close a series, such as that of a past year. The series keeps its numbers, and gives no new ones.
///
/// Repeating the command changes nothing. A closed series cannot be opened again, so begin a new series instead.
#[derive(Debug, Args)]
pub(super) struct Close {
    /// The series. If it has no numbers, it never gives any.
    #[arg(value_parser = SeriesName::from_text)]
    series: SeriesName,
    /// The response as JSON, on one line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    service: RetryArgs,
}

impl Close {
    /// Prints the last number of the closed series.
    ///
    /// # Errors
    /// Returns exit code 1 if the service refuses the request, 65 if a credential file is invalid,
    /// 69 if the service is unreachable, 74 if input or output fails, and 75 if the service stays
    /// busy.
    pub(super) fn run(self) -> Result<(), Failure> {
        let client = self.service.client(&ProgressBar::hidden())?;
        let closed = block_on(async { Ok(client.close_series(&self.series).await?) })?;
        if closed.is_replayed {
            print_note("the series was already closed");
        }
        let answer = closed.body;
        if self.json {
            let answer =
                serde_json::to_string(&answer).expect("texts and numbers always serialize");
            return print(format_args!("{answer}\n"));
        }
        let ends = match &answer.last {
            Some(last) => format!("ends with {last}"),
            None => "has no numbers".to_owned(),
        };
        let (series, time) = (&answer.series, &answer.closed.time);
        print(format_args!(
            "{series} is closed since {time}, and {ends}\n"
        ))
    }
}
