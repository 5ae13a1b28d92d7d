//! The command `idmint numbers import`, which continues a series of numbers that another program
//! has issued until now.

use clap::Args;
use indicatif::ProgressBar;

use crate::cli::exit::Failure;
use crate::cli::print::{print, print_note};
use crate::cli::running_service::{RetryArgs, block_on};
use idmint_records::ledger::SeriesName;

/// Continue a series that another program has kept until now.
///
/// NUMBER is listed as given to the key `import-NUMBER`, and the next number follows it. A series that has already begun here
/// is refused, but repeating the same command changes nothing. To correct a wrong NUMBER before the next number is given, add
/// `--instead-of`.
#[derive(Debug, Args)]
pub(super) struct Import {
    /// The series.
    #[arg(value_parser = SeriesName::from_text)]
    series: SeriesName,
    /// The last number that the other program gave, without the text around it.
    number: u64,
    /// The wrong number of an earlier import, which NUMBER replaces. It must be the only number of the series.
    #[arg(long, value_name = "WRONG")]
    instead_of: Option<u64>,
    /// The response as JSON, on one line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    service: RetryArgs,
}

impl Import {
    /// Prints the number after which the series continues.
    ///
    /// # Errors
    /// Returns exit code 1 if the service refuses the request, 65 if a credential file is invalid,
    /// 69 if the service is unreachable, 74 if input or output fails, and 75 if the service stays
    /// busy.
    pub(super) fn run(self) -> Result<(), Failure> {
        let client = self.service.client(&ProgressBar::hidden())?;
        // The idempotency key depends only on the number, so repeating the command changes nothing.
        let key = format!("import-{}", self.number);
        let asking = client.begin_series(&self.series, self.number, self.instead_of, &key);
        let begun = block_on(async { Ok(asking.await?) })?;
        if begun.is_replayed {
            print_note("imported before");
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
