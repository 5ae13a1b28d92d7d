//! `idmint ledger append`.

use std::path::PathBuf;

use clap::Args;
use indicatif::ProgressBar;
use sha2::{Digest, Sha256};

use super::event_file::EventFile;
use crate::cli::exit::{Exit, Failure};
use crate::cli::print::{SENT_SHOWN_FROM_LEN, print, progress_bar};
use crate::cli::running_service::{RetryArgs, block_on, key_of, parse_key};
use crate::client::{Answer, Client};
use crate::ledger::{Event, LedgerId};
use crate::wire::EventDetail;

/// Append events to a ledger of a running service; prints one id a line.
///
/// Nothing is sent unless every line is an event. A long file goes in several requests, each of which is appended whole or
/// not at all. If the command fails in between, the same command again goes on where it failed: for 24 hours the service
/// knows what was appended with the same key, and prints the ids it has.
#[derive(Debug, Args)]
pub(super) struct Append {
    /// The ledger, eight hexadecimal digits.
    #[arg(value_parser = LedgerId::from_text)]
    ledger: LedgerId,
    /// The events, one JSON object a line; without a file they are read from standard input, to its end, before any is sent.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The Idempotency-Key, to which each request adds its number; without it, one made of all lines. So to append the same
    /// lines a second time within 24 hours on purpose, give a key that was not used before.
    #[arg(long, value_parser = parse_key)]
    key: Option<String>,
    /// One JSON object a line: id, timestamp, the id before, and the place in the ledger.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    service: RetryArgs,
}

impl Append {
    /// Prints the id of each event.
    ///
    /// # Errors
    /// 1 when the service refuses, 65 when a line is no event, 69, 74, 75.
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut file = EventFile::open(self.file.as_deref())?;
        let (events, digest) = look_through(&mut file)?;
        let key = self.key.unwrap_or_else(|| key_of(digest));
        let bar = progress_bar(file.len(), SENT_SHOWN_FROM_LEN);
        let client = self.service.client(&bar)?;
        let mut appending = Appending {
            client,
            bar,
            ledger: self.ledger,
            key,
            json: self.json,
            count: 0,
            replayed: 0,
        };
        let done = block_on(appending.run(&mut file));
        appending.bar.finish_and_clear();
        if appending.replayed > 0 {
            eprintln!(
                "idmint: {} of {events} events were appended before, with the same key",
                appending.replayed
            );
        }
        done.map_err(|failure| match appending.count {
            0 if failure.exit() == Exit::No => failure,
            count => failure.and(format!(
                "{count} of {events} events are known to be appended; the same command again goes on from there"
            )),
        })
    }
}

/// The events of a file on their way to a ledger.
struct Appending {
    client: Client,
    bar: ProgressBar,
    ledger: LedgerId,
    key: String,
    json: bool,
    /// How many events are appended.
    count: usize,
    /// Those of them that had been appended before.
    replayed: usize,
}

impl Appending {
    async fn run(&mut self, file: &mut EventFile) -> Result<(), Failure> {
        let mut lines = file.lines()?;
        let mut number = 0_u64;
        while let Some(group) = lines.next_group(|_| Ok(()))? {
            number += 1;
            let key = format!("{}/{number}", self.key);
            let answer = self
                .client
                .append_events(self.ledger, &key, &group.events, None, None)
                .await?;
            self.count += group.count;
            self.replayed += if answer.is_replayed { group.count } else { 0 };
            self.print(&answer)?;
            self.bar
                .inc(u64::try_from(group.events.len()).expect("a length fits 64 bits"));
        }
        Ok(())
    }

    fn print(&self, answer: &Answer<Vec<EventDetail>>) -> Result<(), Failure> {
        let line = |detail: &EventDetail| match self.json {
            true => {
                serde_json::to_string(detail).expect("texts and numbers always serialize") + "\n"
            }
            false => format!("{}\n", detail.id),
        };
        print(format_args!(
            "{}",
            answer.body.iter().map(line).collect::<String>()
        ))
    }
}

/// How many events there are, and a digest of them all.
fn look_through(file: &mut EventFile) -> Result<(u64, [u8; 32]), Failure> {
    let mut lines = file.lines()?;
    let mut digest = Sha256::new();
    while let Some(line) = lines.next()? {
        let read = Event::from_json(line);
        digest.update(line);
        digest.update(b"\n");
        read.map_err(|error| {
            Failure::of(Exit::Damaged, &error)
                .and(format!("that is line {}; nothing was sent", lines.number()))
        })?;
    }
    match lines.number() {
        0 => Err(Failure::new(Exit::Damaged, "there is no event")),
        events => Ok((events, digest.finalize().into())),
    }
}
