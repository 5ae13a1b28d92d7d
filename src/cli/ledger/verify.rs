//! `idmint ledger verify`.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;

use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;

use crate::cli::exit::{Exit, Failure};
use crate::cli::print::{READ_SHOWN_FROM_LEN, print, progress_bar};
use crate::ledger::{
    ChainChecker, ChainError, ChainLines, ChainVerdict, ChecksumStep, EventId, LedgerId,
};
use crate::wire::LedgerCheck;

/// Bytes that are read at once.
const BUFFER_LEN: usize = 256 * 1024;

/// Say whether a chain of events holds, offline: exit code 0 or 65.
#[derive(Debug, Args)]
pub(super) struct Verify {
    /// The events, one JSON object a line, each with its eventId; without a file they are read from standard input.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The ledger that it must be; without it, the one that begins with the first event.
    #[arg(long, value_name = "ID", value_parser = LedgerId::from_text)]
    ledger: Option<LedgerId>,
    /// The id of the event before the first one here, which is trusted.
    #[arg(long, value_name = "ID", value_parser = EventId::from_text)]
    after: Option<EventId>,
    /// A JSON object, as POST /ledgers/{ledger}/verify answers.
    #[arg(long)]
    json: bool,
    /// Of the first bad event, the bytes that go into its checksum step by step, and the CRC-32C after each: compare them
    /// with those of the program that made the id.
    #[arg(long)]
    explain: bool,
}

/// What `--json` prints with `--explain`.
#[derive(Serialize)]
struct Explained {
    #[serde(flatten)]
    check: LedgerCheck,
    steps: Vec<ExplainedStep>,
}

#[derive(Serialize)]
struct ExplainedStep {
    step: &'static str,
    /// In hexadecimal digits.
    bytes: String,
    text: String,
    /// CRC-32C of these bytes and all before them, in hexadecimal digits.
    crc32c: String,
}

impl Verify {
    /// Prints what comes out.
    ///
    /// # Errors
    /// 64 when ledger and trusted event do not go together, 65 when the chain does not hold, 74 when input or output fail.
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut lines = ChainLines::new(self.checker()?);
        if self.explain {
            lines = lines.explaining();
        }
        match &self.file {
            Some(path) => {
                let failed = |error: io::Error| {
                    Failure::new(Exit::Io, format!("{}: {error}", path.display()))
                };
                let file = File::open(path).map_err(failed)?;
                let len = file.metadata().map_err(failed)?.len();
                read(file, &mut lines, &progress_bar(len, READ_SHOWN_FROM_LEN))
                    .map_err(|error| failure_of_input(error, failed))?;
            }
            None => {
                let failed = |error| Failure::new(Exit::Io, format!("standard input: {error}"));
                read(io::stdin().lock(), &mut lines, &ProgressBar::hidden())
                    .map_err(|error| failure_of_input(error, failed))?;
            }
        }
        let verdict = lines.end();
        if verdict.events == 0 {
            return Err(Failure::new(Exit::Damaged, "there is no event"));
        }
        self.print(verdict)
    }

    fn checker(&self) -> Result<ChainChecker, Failure> {
        match (self.ledger, self.after) {
            (Some(ledger), Some(after)) if after.ledger() != ledger => {
                let message = format!(
                    "--after {after} is an event of ledger {}, --ledger is {ledger}",
                    after.ledger()
                );
                Err(Failure::new(Exit::Usage, message))
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
}

impl Verify {
    fn json_of(&self, mut verdict: ChainVerdict) -> String {
        let steps = std::mem::take(&mut verdict.steps)
            .into_iter()
            .map(explained)
            .collect();
        let check = LedgerCheck::of(verdict);
        let json = if self.explain {
            serde_json::to_string(&Explained { check, steps })
        } else {
            serde_json::to_string(&check)
        };
        json.expect("texts and numbers always serialize")
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

/// The steps as a table, one a line. Control characters are shown as they would be escaped in Rust.
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
    let ChainError {
        index,
        reason,
        detail,
        ..
    } = error;
    Failure::new(
        Exit::Damaged,
        format!(
            "not valid: line {} of {events}: {reason}: {detail}",
            index + 1
        ),
    )
}

/// Reads to the end, in memory for one line.
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

/// A line that is too long is no fault of the disk.
fn failure_of_input(error: io::Error, failed: impl FnOnce(io::Error) -> Failure) -> Failure {
    match error.kind() {
        ErrorKind::InvalidData => Failure::new(Exit::Damaged, error),
        _ => failed(error),
    }
}
