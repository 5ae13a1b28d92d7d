//! The command `idmint numbers void`, which makes a number void.

use clap::Args;
use indicatif::ProgressBar;

use crate::cli::exit::Failure;
use crate::cli::print::{print, print_note};
use crate::cli::running_service::{RetryArgs, block_on};
use idmint_records::ledger::{REASON_LEN_MAX, SeriesName, VoidReason};

/// Make a number void, with a reason. It stays used.
///
/// Repeating the same reason changes nothing; a different one is refused.
#[derive(Debug, Args)]
pub(super) struct Void {
    /// The series.
    #[arg(value_parser = SeriesName::from_text)]
    series: SeriesName,
    /// The number, without the text around it.
    number: u64,
    /// Why, such as "the order was cancelled".
    #[arg(long, value_parser = parse_reason)]
    reason: VoidReason,
    /// The response as JSON, on one line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    service: RetryArgs,
}

impl Void {
    /// Prints the voided number and the reason.
    ///
    /// # Errors
    /// Returns exit code 1 if the service refuses the request, 65 if a credential file is invalid,
    /// 69 if the service is unreachable, 74 if input or output fails, and 75 if the service stays
    /// busy.
    pub(super) fn run(self) -> Result<(), Failure> {
        let client = self.service.client(&ProgressBar::hidden())?;
        let asking = async {
            Ok(client
                .make_void(&self.series, self.number, self.reason.as_str())
                .await?)
        };
        let voided = block_on(asking)?;
        if voided.is_replayed {
            print_note("the number was already void, for the same reason");
        }
        match self.json {
            true => {
                let answer = serde_json::to_string(&voided.body)
                    .expect("texts and numbers always serialize");
                print(format_args!("{answer}\n"))
            }
            false => print(format_args!(
                "{} is void: {}\n",
                voided.body.text, voided.body.void.reason
            )),
        }
    }
}

fn parse_reason(text: &str) -> Result<VoidReason, String> {
    let reason = VoidReason::from_text(text);
    reason.ok_or_else(|| {
        format!(
            "the reason must have 1 to {REASON_LEN_MAX} bytes, no control characters, and at least one that is not a \
             space"
        )
    })
}
