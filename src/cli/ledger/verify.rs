//! The command `idmint ledger verify`, which verifies a chain of events without a service.

use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;

use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;

use super::parse_ledger;
use crate::cli::exit::Failure;
use crate::cli::print::{READ_SHOWN_FROM_LEN, json, open_input, print, progress_bar};
use idmint_records::ledger::{
    ChainChecker, ChainError, ChainLines, ChainVerdict, ChecksumStep, EventId, LedgerId,
};
use idmint_wire::LedgerCheck;

/// The size of the read buffer in bytes.
const BUFFER_LEN: usize = 256 * 1024;

/// Verify a chain of events, offline: exit code 0 if it is valid.
///
/// A chain that lacks its last events is valid, too. Compare its head (the id of its last event)
/// with the head of the ledger in the service.
#[derive(Debug, Args)]
pub(in crate::cli) struct Verify {
    /// The events, one JSON object a line, each with its eventId; standard input if absent.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The ledger to which the events must belong. Default: the ledger of the event in --after, or
    /// else the ledger that begins with the first event in the input.
    #[arg(long, value_name = "ID", value_parser = parse_ledger)]
    ledger: Option<LedgerId>,
    /// The trusted id of the event before the first one in the input.
    #[arg(long, value_name = "ID", value_parser = EventId::from_text)]
    after: Option<EventId>,
    /// A JSON object, as POST /ledgers/{ledger}/verify returns.
    #[arg(long)]
    json: bool,
    /// For the first invalid event, print the bytes of its checksum step by step, with the CRC-32C
    /// after each step, to compare them with the steps of the program that made the id.
    #[arg(long)]
    explain: bool,
}

/// The output of `--json` with `--explain`.
#[derive(Serialize)]
struct Explained {
    #[serde(flatten)]
    check: LedgerCheck,
    steps: Vec<ExplainedStep>,
}

#[derive(Serialize)]
struct ExplainedStep {
    step: &'static str,
    /// The bytes of this step, in hexadecimal.
    bytes: String,
    text: String,
    /// The CRC-32C, in hexadecimal, of the bytes of all steps up to and including this one.
    crc32c: String,
}

impl Verify {
    /// Prints whether the chain of events is valid.
    ///
    /// # Errors
    /// Returns exit code 64 if the ledger and the trusted event in `--after` contradict each other,
    /// 65 if the chain is invalid, and 74 if input or output fails.
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut lines = ChainLines::new(self.checker()?);
        if self.explain {
            lines = lines.explaining();
        }
        let (name, input) = open_input(self.file.as_deref())?;
        let failed = |error: io::Error| match error.kind() {
            // A line that is too long means that the data is invalid, and is not an I/O error.
            ErrorKind::InvalidData => Failure::damaged(error),
            _ => Failure::io(&name, error),
        };
        let len = match self.file {
            Some(_) => input.metadata().map_err(failed)?.len(),
            None => 0,
        };
        let progress = progress_bar(len, READ_SHOWN_FROM_LEN);
        read(input, &mut lines, &progress).map_err(failed)?;
        let verdict = lines.end();
        if verdict.events == 0 {
            return Err(Failure::damaged("the input has no event"));
        }
        self.print(verdict)
    }

    fn checker(&self) -> Result<ChainChecker, Failure> {
        match (self.ledger, self.after) {
            (Some(ledger), Some(after)) if after.ledger() != ledger => {
                let message = format!(
                    "--after {after} is an event of ledger {}, but --ledger is {ledger}; give both from one ledger",
                    after.ledger()
                );
                Err(Failure::usage(message))
            }
            (_, Some(after)) => Ok(ChainChecker::new(after.ledger(), Some(after))),
            (Some(ledger), None) => Ok(ChainChecker::new(ledger, None)),
            (None, None) => Ok(ChainChecker::from_genesis()),
        }
    }

    fn print(&self, verdict: ChainVerdict) -> Result<(), Failure> {
        let broken = verdict
            .error
            .as_ref()
            .map(|error| failure_of_chain(error, verdict.events));
        let text = match (self.json, verdict.head) {
            (true, _) => self.json_of(verdict),
            (false, _) if !verdict.steps.is_empty() => drawing_of(&verdict.steps),
            (false, Some(head)) if broken.is_none() => {
                format!(
                    "valid: {} events of ledger {}, head {head}",
                    verdict.events,
                    head.ledger()
                )
            }
            _ => String::new(),
        };
        if !text.is_empty() {
            print(format_args!("{text}\n"))?;
        }
        broken.map_or(Ok(()), Err)
    }

    fn json_of(&self, mut verdict: ChainVerdict) -> String {
        let steps = std::mem::take(&mut verdict.steps)
            .into_iter()
            .map(explained)
            .collect();
        let check = LedgerCheck::of(verdict);
        match self.explain {
            true => json(&Explained { check, steps }),
            false => json(&check),
        }
    }
}

fn explained(step: ChecksumStep) -> ExplainedStep {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let text = String::from_utf8_lossy(&step.bytes).into_owned();
    ExplainedStep {
        step: step.name,
        bytes: hex(&step.bytes),
        text,
        crc32c: format!("{:08x}", step.checksum),
    }
}

/// Formats the steps of a checksum as a table with a line for each step. Control characters are
/// escaped: a line feed is printed as `\n`.
fn drawing_of(steps: &[ChecksumStep]) -> String {
    let mut drawing = "step       bytes  crc-32c   text".to_owned();
    for ChecksumStep {
        name,
        bytes,
        checksum,
    } in steps
    {
        let escape = |letter: char| match letter.is_control() {
            true => letter.escape_default().to_string(),
            false => letter.to_string(),
        };
        let text: String = String::from_utf8_lossy(bytes).chars().map(escape).collect();
        drawing += &format!("\n{name:<9} {:>6}  {checksum:08x}  {text}", bytes.len());
    }
    drawing
}

fn failure_of_chain(error: &ChainError, events: u64) -> Failure {
    let (line, reason, detail) = (error.index + 1, error.reason, &error.detail);
    let message = format!("not valid: line {line} of {events}: {reason}: {detail}");
    Failure::damaged(message)
}

/// Reads the input to its end, and checks each line. At most one line is held in memory at a time.
fn read(mut input: impl Read, lines: &mut ChainLines, progress: &ProgressBar) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_LEN];
    loop {
        let len = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => len,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        lines
            .read(&buffer[..len])
            .map_err(|too_long| io::Error::new(ErrorKind::InvalidData, too_long))?;
        progress.inc(u64::try_from(len).expect("a length fits 64 bits"));
    }
    progress.finish_and_clear();
    Ok(())
}
