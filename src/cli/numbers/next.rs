//! The command `idmint numbers next`, which takes the next number of a series.

use std::num::NonZeroU32;

use clap::Args;
use indicatif::ProgressBar;

use crate::cli::exit::Failure;
use crate::cli::print::{print, print_note};
use crate::cli::running_service::{RetryArgs, block_on, parse_key};
use idmint_records::ledger::SeriesName;

/// Take the next number of a series, and print its text.
///
/// A key always gets the same number, so a repeated command prints the same text.
#[derive(Debug, Args)]
pub(super) struct Next {
    /// The series. Its first number creates it.
    #[arg(value_parser = SeriesName::from_text)]
    series: SeriesName,
    /// The idempotency key of the number, such as the id of an order.
    #[arg(long, value_parser = parse_key)]
    key: String,
    /// The number of consecutive numbers to take. Each is printed on its own line.
    #[arg(long, default_value = "1")]
    count: NonZeroU32,
    /// The response as JSON, on one line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    service: RetryArgs,
}

impl Next {
    /// Prints the numbers that were taken.
    ///
    /// # Errors
    /// Returns exit code 1 if the service refuses the request, 65 if a credential file is invalid,
    /// 69 if the service is unreachable, 74 if input or output fails, and 75 if the service stays
    /// busy.
    pub(super) fn run(self) -> Result<(), Failure> {
        let client = self.service.client(&ProgressBar::hidden())?;
        let asking = async {
            Ok(client
                .next_numbers(&self.series, self.count, &self.key)
                .await?)
        };
        let given = block_on(asking)?;
        if given.is_replayed {
            print_note("these numbers were given by an earlier request with the same key");
        }
        if self.json {
            let answer =
                serde_json::to_string(&given.body).expect("texts and numbers always serialize");
            return print(format_args!("{answer}\n"));
        }
        let texts = given.body.texts.unwrap_or_else(|| vec![given.body.text]);
        print(format_args!("{}\n", texts.join("\n")))
    }
}
