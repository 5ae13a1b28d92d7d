//! `idmint ledger create`.

use std::path::PathBuf;

use clap::Args;
use indicatif::ProgressBar;

use super::event_file::EventFile;
use crate::cli::exit::{Exit, Failure};
use crate::cli::print::print;
use crate::cli::running_service::{RetryArgs, block_on, key_of, parse_key};
use crate::client::{Client, ClientError};
use crate::ledger::{Event, EventId, LedgerId};
use crate::wire::LedgerInfo;

/// Create the ledger that begins with an event, at a running service.
///
/// Prints the id of the ledger and the id of the event. A ledger that is there already and begins with the same event is
/// no failure: it is printed, and standard error says so.
#[derive(Debug, Args)]
pub(super) struct Create {
    /// The event, a JSON object; without a file it is read from standard input.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The Idempotency-Key; without it, one made of the event, so that the same command again creates nothing new. An event
    /// without timestamp is the same one for 24 hours: after them it begins another ledger.
    #[arg(long, value_parser = parse_key)]
    key: Option<String>,
    /// The ledger as POST /ledgers answers.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    service: RetryArgs,
}

impl Create {
    /// Prints what was created.
    ///
    /// # Errors
    /// 1 when the service refuses or has another ledger of this id, 65 when that is no event, 69, 74, 75.
    pub(super) fn run(self) -> Result<(), Failure> {
        let body = EventFile::open(self.file.as_deref())?.event()?;
        let genesis =
            Event::from_json(&body).map_err(|error| Failure::of(Exit::Damaged, &error))?;
        let key = self.key.unwrap_or_else(|| key_of(genesis.digest()));
        let client = self.service.client(&ProgressBar::hidden())?;
        let created = block_on(create(&client, &key, &genesis, body))?;
        if !created.is_new {
            eprintln!(
                "idmint: ledger {} was created before, from the same event",
                created.info.ledger
            );
        }
        let LedgerInfo {
            ledger, genesis, ..
        } = &created.info;
        let text = match self.json {
            true => {
                serde_json::to_string(&created.info).expect("texts and numbers always serialize")
            }
            false => format!("{ledger} {genesis}"),
        };
        print(format_args!("{text}\n"))
    }
}

/// A ledger that begins with the event that was given.
struct Created {
    info: LedgerInfo,
    is_new: bool,
}

async fn create(
    client: &Client,
    key: &str,
    genesis: &Event,
    body: Vec<u8>,
) -> Result<Created, Failure> {
    let error = match client.create_ledger(key, body, None).await {
        Ok(answer) => {
            return Ok(Created {
                info: answer.body,
                is_new: !answer.is_replayed,
            });
        }
        Err(error) if is_refused_as_existing(&error) => error,
        Err(error) => return Err(error.into()),
    };
    // Without a timestamp the service would have taken another time and so another ledger.
    let Some(time) = genesis.timestamp() else {
        return Err(error.into());
    };
    let ledger = LedgerId::of_genesis(genesis, time);
    let id = genesis
        .seal(time, ledger, EventId::before_genesis(time, ledger))
        .to_string();
    match client.ledger(ledger).await? {
        Some(info) if info.genesis == id => Ok(Created {
            info,
            is_new: false,
        }),
        Some(info) => {
            Err(Failure::from(error).and(format!("it begins with {}, not with {id}", info.genesis)))
        }
        None => Err(error.into()),
    }
}

fn is_refused_as_existing(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused(refusal) if refusal.slug == "ledger-exists")
}
