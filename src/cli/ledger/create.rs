//! The command `idmint ledger create`, which creates a ledger (a chain of events) and its first
//! event.

use std::path::PathBuf;

use clap::Args;
use indicatif::ProgressBar;

use super::event_file::EventFile;
use crate::cli::exit::{Exit, Failure};
use crate::cli::print::{json, print, print_note};
use crate::cli::running_service::{RetryArgs, block_on, key_of, parse_key};
use idmint_client::{Client, ClientError};
use idmint_records::ledger::{Event, EventId, LedgerId};
use idmint_wire::LedgerInfo;

/// Create the ledger that begins with an event, at a running service.
///
/// Prints the id of the ledger and the id of the event. If the ledger already exists and begins with the same event,
/// the command succeeds and prints a note to standard error.
#[derive(Debug, Args)]
pub(in crate::cli) struct Create {
    /// The event, a JSON object; standard input if absent.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The Idempotency-Key. By default, it is derived from the event, so a repeated command creates
    /// nothing new. If the event has no timestamp, a repeat after 24 hours may create another ledger.
    #[arg(long, value_parser = parse_key)]
    key: Option<String>,
    /// The ledger as POST /ledgers returns it.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    service: RetryArgs,
}

impl Create {
    /// Prints the created ledger.
    ///
    /// # Errors
    /// Returns exit code 1 if the service refuses the request or has a different ledger with this
    /// id, 65 if the input is not an event, 69 if the service is unreachable, 74 if input or output
    /// fails, and 75 if the service stays busy.
    pub(super) fn run(self) -> Result<(), Failure> {
        let body = EventFile::open(self.file.as_deref())?.event()?;
        let genesis =
            Event::from_json(&body).map_err(|error| Failure::of(Exit::Damaged, &error))?;
        let key = self.key.unwrap_or_else(|| key_of(genesis.digest()));
        let client = self.service.client(&ProgressBar::hidden())?;
        let (info, is_new) = block_on(create(&client, &key, &genesis, body))?;
        let LedgerInfo {
            ledger, genesis, ..
        } = &info;
        if !is_new {
            print_note(format_args!(
                "ledger {ledger} was created before, from the same event"
            ));
        }
        let text = match self.json {
            true => json(&info),
            false => format!("{ledger} {genesis}"),
        };
        print(format_args!("{text}\n"))
    }
}

/// Creates the ledger whose first event is `genesis`. Returns the ledger, and `false` if the ledger
/// existed before.
async fn create(
    client: &Client,
    key: &str,
    genesis: &Event,
    body: Vec<u8>,
) -> Result<(LedgerInfo, bool), Failure> {
    let error = match client.create_ledger(key, body, None).await {
        Ok(answer) => return Ok((answer.body, !answer.is_replayed)),
        Err(error) if is_refused_as_existing(&error) => error,
        Err(error) => return Err(error.into()),
    };
    // The ledger id depends on the time of the first event, which the service chooses if the event
    // has no timestamp. The command then cannot compute the id of the earlier ledger.
    let Some(time) = genesis.timestamp() else {
        return Err(error.into());
    };
    let ledger = LedgerId::of_genesis(genesis, time);
    let id = genesis
        .seal(time, ledger, EventId::before_genesis(time, ledger))
        .to_string();
    match client.ledger(ledger).await? {
        Some(info) if info.genesis == id => Ok((info, false)),
        Some(info) => Err(Failure::from(error).and(format!(
            "the existing ledger begins with {}, not with {id}",
            info.genesis
        ))),
        None => Err(error.into()),
    }
}

fn is_refused_as_existing(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused(refusal) if refusal.slug == "ledger-exists")
}
