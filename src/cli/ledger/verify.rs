//! `idmint ledger verify`.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;

use clap::Args;
use indicatif::ProgressBar;

use super::progress::{CHECKED_SHOWN_FROM_LEN, progress_bar};
use crate::cli::exit::{Exit, Failure};
use crate::cli::print::print;
use crate::ledger::{ChainChecker, ChainError, ChainLines, ChainVerdict, EventId, LedgerId};
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
}

impl Verify {
    /// Prints what comes out.
    ///
    /// # Errors
    /// 64 when ledger and trusted event do not go together, 65 when the chain does not hold, 74 when input or output fail.
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut lines = ChainLines::new(self.checker()?);
        match &self.file {
            Some(path) => {
                let failed = |error: io::Error| Failure::new(Exit::Io, format!("{}: {error}", path.display()));
                let file = File::open(path).map_err(failed)?;
                let len = file.metadata().map_err(failed)?.len();
                read(file, &mut lines, &progress_bar(len, CHECKED_SHOWN_FROM_LEN))
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
                let message = format!("--after {after} is an event of ledger {}, --ledger is {ledger}", after.ledger());
                Err(Failure::new(Exit::Usage, message))
            }
            (_, Some(after)) => Ok(ChainChecker::new(after.ledger(), Some(after))),
            (Some(ledger), None) => Ok(ChainChecker::new(ledger, None)),
            (None, None) => Ok(ChainChecker::from_genesis()),
        }
    }

    fn print(&self, verdict: ChainVerdict) -> Result<(), Failure> {
        let broken = verdict.error.as_ref().map(|error| failure_of_chain(error, verdict.events));
        let text = match (self.json, verdict.head) {
            (true, _) => serde_json::to_string(&LedgerCheck::of(verdict)).expect("texts and numbers always serialize"),
            (false, Some(head)) if broken.is_none() => {
                format!("valid: {} events of ledger {}, head {head}", verdict.events, head.ledger())
            }
            _ => String::new(),
        };
        if !text.is_empty() {
            print(format_args!("{text}\n"))?;
        }
        broken.map_or(Ok(()), Err)
    }
}

fn failure_of_chain(error: &ChainError, events: u64) -> Failure {
    let ChainError { index, reason, detail, .. } = error;
    Failure::new(Exit::Damaged, format!("not valid: line {} of {events}: {reason}: {detail}", index + 1))
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
        lines.read(&buffer[..len]).map_err(|too_long| io::Error::new(ErrorKind::InvalidData, too_long))?;
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
