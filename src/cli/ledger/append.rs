//! `idmint ledger append`.

use std::path::PathBuf;

use clap::Args;
use sha2::{Digest, Sha256};

use super::event_file::{EventFile, EventGroup};
use super::patient_client::{Answer, PatientClient, Server, Unanswered};
use crate::cli::exit::{Exit, Failure};
use crate::cli::health::with_client;
use crate::cli::ledger::progress;
use crate::cli::print::print;
use crate::ledger::{Event, EventId, LedgerId};
use crate::wire::{EventDetail, MintAnswer, MintDetails};

/// A shorter file is appended before anyone could look at a progress bar.
pub(super) const SHOWN_FROM_LEN: u64 = 8 * 1024 * 1024;

/// The longest key: a request adds a stroke and a number of at most 20 digits, and 255 characters are read.
const KEY_LEN_MAX: usize = 234;

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
    #[arg(long, value_parser = idempotency_key)]
    key: Option<String>,
    /// One JSON object a line: id, timestamp, the id before, and the place in the ledger.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: Server,
}

impl Append {
    /// Prints the id of each event.
    ///
    /// # Errors
    /// 1 when the service refuses, 65 when a line is no event, 69, 74, 75.
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut file = EventFile::open(self.file.as_deref())?;
        let (events, digest) = looked_through(&mut file)?;
        let key = self.key.unwrap_or_else(|| key_of(digest));
        let bar = progress(file.len(), SHOWN_FROM_LEN);
        let (ledger, json, server) = (self.ledger, self.json, self.server);
        with_client(async |client| {
            let service = PatientClient::new(client, server, bar);
            let mut appended = Appended::default();
            let done = append(&service, &mut file, ledger, &key, json, &mut appended).await;
            service.progress().finish_and_clear();
            if appended.replayed > 0 {
                eprintln!("idmint: {} of {events} events were appended before, with the same key", appended.replayed);
            }
            done.map_err(|failure| match appended.count {
                0 if failure.exit() == Exit::No => failure,
                count => failure.and(format!(
                    "{count} of {events} events are known to be appended; the same command again goes on from there"
                )),
            })
        })
    }
}

/// How far an append is.
#[derive(Default)]
struct Appended {
    count: u64,
    /// Those of them that had been appended before.
    replayed: u64,
}

async fn append(
    service: &PatientClient,
    file: &mut EventFile,
    ledger: LedgerId,
    key: &str,
    json: bool,
    appended: &mut Appended,
) -> Result<(), Failure> {
    let mut lines = file.lines()?;
    let mut number = 0_u64;
    while let Some(group) = lines.next_group(|_| Ok(()))? {
        number += 1;
        let (count, len) = (group.count, group.events.len());
        let Answer { is_replayed, body } = send(service, ledger, &format!("{key}/{number}"), group, None).await?;
        appended.count += count;
        appended.replayed += if is_replayed { count } else { 0 };
        let line = |detail: &EventDetail| match json {
            true => serde_json::to_string(detail).expect("texts and numbers always serialize") + "\n",
            false => format!("{}\n", detail.id),
        };
        print(format_args!("{}", body.iter().map(line).collect::<String>()))?;
        service.progress().inc(u64::try_from(len).expect("a length fits 64 bits"));
    }
    Ok(())
}

/// Appends the events of one request; `previous`: the head that the ledger must have.
///
/// # Errors
/// [`Unanswered`].
pub(super) async fn send(
    service: &PatientClient,
    ledger: LedgerId,
    key: &str,
    group: EventGroup,
    previous: Option<EventId>,
) -> Result<Answer<Vec<EventDetail>>, Unanswered> {
    let mut body = format!(r#"{{"ledger":"{ledger}","events":["#).into_bytes();
    body.extend(group.events);
    let end = previous.map_or_else(|| "]}".to_owned(), |id| format!(r#"],"expected_previous":"{id}"}}"#));
    body.extend(end.into_bytes());
    let Answer { is_replayed, body } = service.post::<MintAnswer>("/ids/evently", key, body).await?;
    match body.details {
        Some(MintDetails::Events(details)) => Ok(Answer { is_replayed, body: details }),
        _ => Err(Unanswered::Failed(Failure::new(
            Exit::Unavailable,
            "the service does not say what became of the events",
        ))),
    }
}

/// How many events there are, and a digest of them all.
fn looked_through(file: &mut EventFile) -> Result<(u64, [u8; 32]), Failure> {
    let mut lines = file.lines()?;
    let mut digest = Sha256::new();
    while let Some(line) = lines.next()? {
        let read = Event::from_json(line);
        digest.update(line);
        digest.update(b"\n");
        read.map_err(|error| {
            Failure::of(Exit::Damaged, &error).and(format!("that is line {}; nothing was sent", lines.number()))
        })?;
    }
    match lines.number() {
        0 => Err(Failure::new(Exit::Damaged, "there is no event")),
        events => Ok((events, digest.finalize().into())),
    }
}

/// A key made of what is sent.
pub(super) fn key_of(digest: [u8; 32]) -> String {
    format!("{:032x}", u128::from_be_bytes(*digest.first_chunk().expect("16 of 32 bytes")))
}

/// Reads a key that a caller gives.
pub(super) fn idempotency_key(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > KEY_LEN_MAX || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("1 to {KEY_LEN_MAX} visible ASCII characters are needed"));
    }
    Ok(text.to_owned())
}
