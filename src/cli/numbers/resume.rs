//! The command `idmint numbers resume`, which lets series issue numbers again after a restore from
//! a backup.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use clap::Args;
use indicatif::ProgressBar;

use crate::cli::exit::{Exit, Failure};
use crate::cli::print::{Lines, print};
use crate::cli::running_service::{RetryArgs, block_on};
use idmint_client::{Client, ClientError};
use idmint_records::ledger::SeriesName;
use idmint_wire::ResumeAnswer;

/// Resume series that give no numbers since a restore.
///
/// A service that was started on restored data gives no numbers until an operator says where each series continues. N is the
/// highest number of the series in your own records, plus one. The numbers in between become void.
#[derive(Debug, Args)]
pub(super) struct Resume {
    /// The series.
    #[arg(value_parser = SeriesName::from_text, requires = "from", required_unless_present = "all")]
    series: Option<SeriesName>,
    /// The next number of the series.
    #[arg(long, value_name = "N", conflicts_with = "all")]
    from: Option<u64>,
    /// Resume every series after a restore from a backup. Each line of the file has a series and
    /// its last number, separated by a space. If several lines name a series, the highest number
    /// counts. Series that the file does not name continue at their stored numbers.
    #[arg(long, value_name = "FILE", conflicts_with = "series")]
    all: Option<PathBuf>,
    #[command(flatten)]
    service: RetryArgs,
}

impl Resume {
    /// Prints the number at which each series continues.
    ///
    /// # Errors
    /// Returns exit code 1 if the service refuses the request, 65 if the file or a credential file
    /// is invalid, 69 if the service is unreachable, 74 if input or output fails, and 75 if the
    /// service stays busy.
    pub(super) fn run(self) -> Result<(), Failure> {
        let last_numbers = self.all.as_deref().map(read_last_numbers).transpose()?;
        let client = self.service.client(&ProgressBar::hidden())?;
        match (last_numbers, self.series, self.from) {
            (Some(last_numbers), ..) => block_on(resume_all(&client, &last_numbers)),
            (None, Some(series), Some(from)) => block_on(async {
                let answer = client.resume_numbers(Some((&series, from))).await?;
                print(format_args!("{}\n", line_of(&answer)))
            }),
            (None, ..) => unreachable!("clap requires a series with --from, or --all"),
        }
    }
}

/// Resumes each listed series at the number that follows its last number. Then resumes all other
/// series.
///
/// Returns an error if a series was already resumed below its last number, because it may then
/// issue numbers twice. In this case, the other listed series are still resumed, but the series
/// that are not listed are not.
async fn resume_all(
    client: &Client,
    last_numbers: &BTreeMap<SeriesName, u64>,
) -> Result<(), Failure> {
    let (mut lines, mut too_late) = (Lines::begin(), Vec::new());
    for (series, last) in last_numbers {
        match resume_after(client, series, *last).await {
            Ok(line) => lines.write(&line)?,
            Err(ClientError::Refused(refusal)) if refusal.slug == "series-begun" => {
                if has_reached(client, series, *last).await? {
                    // An earlier run of this command has probably resumed the series, which has
                    // issued `last` or a higher number since then. So only print a warning.
                    lines.write(&format!(
                        "{}; if it was resumed below {last} before, numbers up to {last} were given twice",
                        refusal.detail
                    ))?;
                } else {
                    let again = format!("numbers up to {last} may be given twice");
                    too_late.push(format!("{}, so {again}", refusal.detail));
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    if !too_late.is_empty() {
        lines.end()?;
        let others = "series that the file does not name were not resumed";
        return Err(Failure::no(too_late.join("\n")).and(others));
    }
    client.resume_numbers(None).await?;
    lines.write("all other series continue at their stored numbers")?;
    lines.end()
}

/// Resumes a series at the number that follows `last`, or that follows its stored number if this is
/// higher. Returns the line to print.
async fn resume_after(
    client: &Client,
    series: &SeriesName,
    last: u64,
) -> Result<String, ClientError> {
    match client.resume_numbers(Some((series, last + 1))).await {
        Err(ClientError::Refused(refusal)) if refusal.text("reason") == Some("from") => {
            // The limit is the next number, unless `last` is above the maximum of the series.
            let next = refusal.text("limit").and_then(|next| next.parse().ok());
            let Some(next) = next.filter(|next| *next > last) else {
                return Err(ClientError::Refused(refusal));
            };
            let answer = client.resume_numbers(Some((series, next))).await?;
            let note = format!("its next number is already above {last}");
            Ok(format!("{}; {note}", line_of(&answer)))
        }
        answer => answer.map(|answer| line_of(&answer)),
    }
}

/// Returns `true` if the series has issued the number `last` or a higher one.
async fn has_reached(client: &Client, series: &SeriesName, last: u64) -> Result<bool, Failure> {
    let after = last.checked_sub(1).map(|before| before.to_string());
    match client.numbers(series, after.as_deref()).await {
        Ok(list) => Ok(!list.numbers.is_empty()),
        // The series has no numbers.
        Err(ClientError::Refused(refusal)) if refusal.slug == "not-found" => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn line_of(answer: &ResumeAnswer) -> String {
    let next = answer.next.as_deref().unwrap_or_default();
    match &answer.skipped {
        Some(skipped) => format!(
            "{} continues with {next}; {} to {} are void",
            answer.series, skipped.first, skipped.last
        ),
        None => format!("{} continues with {next}", answer.series),
    }
}

/// Reads lines that each contain the name of a series and its last number. Returns the highest
/// number of each series. Blank lines are skipped.
fn read_last_numbers(path: &std::path::Path) -> Result<BTreeMap<SeriesName, u64>, Failure> {
    let text = fs::read_to_string(path).map_err(|error| {
        Failure::new(Exit::Io, format!("cannot read {}: {error}", path.display()))
    })?;
    let mut last_numbers = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let (series, last) = last_number_of(line).ok_or_else(|| {
            let expected = "a series and its last number, such as \"acme-2026 4711\"";
            let place = format!("{}, line {}", path.display(), at + 1);
            Failure::damaged(format!("{place}: expected {expected}, got {line:?}"))
        })?;
        let highest = last_numbers.entry(series).or_insert(last);
        *highest = last.max(*highest);
    }
    Ok(last_numbers)
}

fn last_number_of(line: &str) -> Option<(SeriesName, u64)> {
    let (series, last) = line.trim().split_once(char::is_whitespace)?;
    let last: u64 = last.trim().parse().ok()?;
    last.checked_add(1)?;
    Some((SeriesName::from_text(series).ok()?, last))
}
