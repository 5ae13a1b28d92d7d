//! The commands that change one series: `idmint numbers next`, `void`, `close` and `import`.

use std::num::NonZeroU32;

use clap::Args;
use indicatif::ProgressBar;

use crate::cli::exit::Failure;
use crate::cli::print::{json, print, print_note};
use crate::cli::running_service::{RetryArgs, block_on, parse_key};
use idmint_records::ledger::{REASON_LEN_MAX, SeriesName, VoidReason};

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
    /// Prints the numbers that the series issued for this request.
    ///
    /// # Errors
    /// Returns exit code 1 if the service refuses the request, 65 if a credential file is invalid,
    /// 69 if the service is unreachable, 74 if input or output fails, and 75 if the service stays
    /// busy.
    pub(super) fn run(self) -> Result<(), Failure> {
        let client = self.service.client(&ProgressBar::hidden())?;
        let given = block_on(client.next_numbers(&self.series, self.count, &self.key))?;
        if given.is_replayed {
            print_note("these numbers were given by an earlier request with the same key");
        }
        if self.json {
            return print(format_args!("{}\n", json(&given.body)));
        }
        let texts = given.body.texts.unwrap_or_else(|| vec![given.body.text]);
        print(format_args!("{}\n", texts.join("\n")))
    }
}

/// Mark a number as unused (void), with a reason. The number is not given again.
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
        let voided = block_on(client.make_void(&self.series, self.number, self.reason.as_str()))?;
        if voided.is_replayed {
            print_note("the number was already void, for the same reason");
        }
        if self.json {
            return print(format_args!("{}\n", json(&voided.body)));
        }
        print(format_args!(
            "{} is void: {}\n",
            voided.body.text, voided.body.void.reason
        ))
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
        let closed = block_on(client.close_series(&self.series))?;
        if closed.is_replayed {
            print_note("the series was already closed");
        }
        let answer = closed.body;
        if self.json {
            return print(format_args!("{}\n", json(&answer)));
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
    /// The last number that the other program issued, without the text around it.
    number: u64,
    /// The only number of the series, which an earlier import got wrong and NUMBER replaces.
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
        // The idempotency key depends only on the number, so repeating the command has no further
        // effect.
        let key = format!("import-{}", self.number);
        let asking = client.begin_series(&self.series, self.number, self.instead_of, &key);
        let begun = block_on(asking)?;
        if begun.is_replayed {
            print_note("imported before");
        }
        if self.json {
            return print(format_args!("{}\n", json(&begun.body)));
        }
        print(format_args!(
            "{} goes on after {}\n",
            self.series, begun.body.text
        ))
    }
}
