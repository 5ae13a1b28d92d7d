//! `idmint numbers next`.

use std::num::NonZeroU32;

use clap::Args;
use indicatif::ProgressBar;

use crate::cli::exit::Failure;
use crate::cli::print::print;
use crate::cli::running_service::{RetryArgs, block_on, parse_key};
use crate::ledger::SeriesName;

/// Take the next number of a series; prints it as it is written.
///
/// The same key is given the same number for ever, so the same command again prints the same.
#[derive(Debug, Args)]
pub(super) struct Next {
    /// The series; it begins with its first number.
    #[arg(value_parser = SeriesName::from_text)]
    series: SeriesName,
    /// What the number is for, such as the id of an order: the Idempotency-Key.
    #[arg(long, value_parser = parse_key)]
    key: String,
    /// How many, one after the other, a line for each.
    #[arg(long, default_value = "1")]
    count: NonZeroU32,
    /// The answer as JSON, on one line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    service: RetryArgs,
}

impl Next {
    /// Prints what was given.
    ///
    /// # Errors
    /// 1 when the service refuses, 65, 69, 74, 75.
    pub(super) fn run(self) -> Result<(), Failure> {
        let client = self.service.client(&ProgressBar::hidden())?;
        let asking = async {
            Ok(client
                .next_numbers(&self.series, self.count, &self.key)
                .await?)
        };
        let given = block_on(asking)?;
        if given.is_replayed {
            eprintln!("idmint: given before, to the same key");
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
