//! The command `idmint ledger append`, which appends events to a ledger.

use std::path::PathBuf;

use clap::Args;
use indicatif::ProgressBar;
use sha2::{Digest, Sha256};

use super::event_file::EventFile;
use super::parse_ledger;
use crate::cli::exit::{Exit, Failure};
use crate::cli::print::{SENT_SHOWN_FROM_LEN, json, print, print_note, progress_bar};
use crate::cli::running_service::{RetryArgs, block_on, key_of, parse_key};
use idmint_client::{Answer, Client};
use idmint_records::ledger::{Event, LedgerId};
use idmint_wire::EventDetail;

/// Append events to a ledger of a running service; prints one id a line.
///
/// Nothing is sent unless every line is an event. A long file is sent in several requests, each of which is appended
/// completely or not at all. If the command fails, run it again within 24 hours to continue: the service remembers the
/// keys and prints the ids of events that it has.
#[derive(Debug, Args)]
pub(in crate::cli) struct Append {
    /// The ledger, eight hexadecimal digits.
    #[arg(value_parser = parse_ledger)]
    ledger: LedgerId,
    /// The events, one JSON object a line; standard input if absent, which is read to its end before any event is sent.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The Idempotency-Key, to which each request adds a slash and its number. By default, it is
    /// derived from all lines. To append the same lines again within 24 hours, give a new key.
    #[arg(long, value_parser = parse_key)]
    key: Option<String>,
    /// Print one JSON object per event: id, timestamp, id of the previous event, ledger position.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    service: RetryArgs,
}

impl Append {
    /// Prints the id of each event.
    ///
    /// # Errors
    /// Returns exit code 1 if the service refuses the request, 65 if a line is not an event, 69 if
    /// the service is unreachable, 74 if input or output fails, and 75 if the service stays busy.
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
            print_note(format_args!(
                "{} of {events} events were appended before, with the same key",
                appending.replayed
            ));
        }
        done.map_err(|failure| match appending.count {
            0 if failure.exit() == Exit::No => failure,
            count => failure.and(format!(
                "{count} of {events} events were appended for certain; run the same command again to continue"
            )),
        })
    }
}

/// The progress of appending a file of events to a ledger.
struct Appending {
    client: Client,
    bar: ProgressBar,
    ledger: LedgerId,
    key: String,
    json: bool,
    /// The number of appended events.
    count: usize,
    /// The number of these events that an earlier run of the command had already appended.
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
            true => json(detail) + "\n",
            false => format!("{}\n", detail.id),
        };
        print(format_args!(
            "{}",
            answer.body.iter().map(line).collect::<String>()
        ))
    }
}

/// Checks that each line of the file is an event, so that nothing is sent if one is invalid.
/// Returns the number of events, and a digest of all lines.
fn look_through(file: &mut EventFile) -> Result<(u64, [u8; 32]), Failure> {
    let mut lines = file.lines()?;
    let mut digest = Sha256::new();
    while let Some(line) = lines.next()? {
        let read = Event::from_json(line);
        digest.update(line);
        digest.update(b"\n");
        read.map_err(|error| {
            Failure::of(Exit::Damaged, &error).and(format!(
                "the event in line {} is invalid; nothing was sent",
                lines.number()
            ))
        })?;
    }
    match lines.number() {
        0 => Err(Failure::damaged("the input has no event")),
        events => Ok((events, digest.finalize().into())),
    }
}
