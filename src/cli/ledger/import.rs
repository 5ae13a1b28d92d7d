//! The command `idmint ledger import`, which imports a chain of events together with their ids.

use std::path::PathBuf;

use clap::Args;
use indicatif::ProgressBar;

use super::event_file::{EventFile, EventLines};
use crate::cli::exit::Failure;
use crate::cli::print::{SENT_SHOWN_FROM_LEN, print, progress_bar};
use crate::cli::running_service::{RetryArgs, block_on};
use idmint_client::{Client, ClientError};
use idmint_records::ledger::{ChainChecker, EventId, ImportPart, LedgerId};
use idmint_wire::LedgerInfo;

/// Import a chain of events, with its ids, into a running service.
///
/// The whole chain is checked first, offline; nothing of an invalid chain is sent. If the service already has the
/// ledger, its head must be an event of the chain, and the import continues after it, so repeat the command to finish
/// an interrupted import. Later events in the service are allowed. Any other head is a fork, and is refused. Chains by
/// the rules of Evently before 2022 are verified (`idmint ledger verify`), but neither imported nor continued.
#[derive(Debug, Args)]
pub(in crate::cli) struct Import {
    /// The events, one JSON object a line, each with its timestamp and its eventId.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    service: RetryArgs,
}

/// The summary of a chain that was found valid.
#[derive(Clone, Copy)]
struct Chain {
    ledger: LedgerId,
    head: EventId,
    events: u64,
}

impl Import {
    /// Prints the head of the ledger once the service has the whole chain.
    ///
    /// # Errors
    /// Returns exit code 1 if the service refuses the request or its ledger is not a part of this
    /// chain, 65 if the chain is invalid, 69 if the service is unreachable, 74 if input or output
    /// fails, and 75 if the service stays busy.
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut file = EventFile::open(Some(&self.file))?;
        let chain = check_chain(&mut file)?;
        let bar = progress_bar(file.len(), SENT_SHOWN_FROM_LEN);
        let service = Service {
            client: self.service.client(&bar)?,
            bar,
        };
        let imported = block_on(import(&service, &mut file, chain));
        service.bar.finish_and_clear();
        let (new, later) = imported?;
        let (ledger, head, events) = (chain.ledger, chain.head, chain.events);
        let behind = if later == 0 {
            String::new()
        } else {
            format!("; the ledger has {later} later events")
        };
        print(format_args!(
            "complete: {events} events of ledger {ledger}, {new} of them imported now, head {head}{behind}\n"
        ))
    }
}

/// The client of the service, with the progress bar.
struct Service {
    client: Client,
    bar: ProgressBar,
}

/// Checks the whole chain of events in the file, and returns its summary.
fn check_chain(file: &mut EventFile) -> Result<Chain, Failure> {
    let mut checker = ChainChecker::from_genesis();
    let mut lines = file.lines()?;
    while let Some(line) = lines.next()? {
        checker.check(line).map_err(|error| {
            let place = error.index + 1;
            let said = format!(
                "line {place} is not valid: {}: {}; nothing was sent",
                error.reason, error.detail
            );
            Failure::damaged(said)
        })?;
    }
    match (checker.ledger(), checker.head()) {
        (Some(ledger), Some(head)) => Ok(Chain {
            ledger,
            head,
            events: checker.events(),
        }),
        _ => Err(Failure::damaged("the file has no event")),
    }
}

/// Appends those events of the file that the service does not have. Creates the ledger if it does
/// not exist in the service. Returns the number of appended events, and the number of events that
/// other callers have appended after the last event of the file.
async fn import(
    service: &Service,
    file: &mut EventFile,
    chain: Chain,
) -> Result<(u64, u64), Failure> {
    let name = file.name().to_owned();
    let stored = service.client.ledger(chain.ledger).await?;
    let mut rest = Rest {
        lines: file.lines()?,
        checker: ChainChecker::new(chain.ledger, None),
        there: 0,
    };
    let before = match &stored {
        Some(stored) if stored.events > chain.events => {
            let later = later_events(service, &name, chain, stored).await?;
            return Ok((0, later));
        }
        Some(stored) => {
            rest.skip(service, stored.events)?;
            rest.there = stored.events;
            let head = rest.checker.head();
            if head.is_none_or(|head| head.to_string() != stored.head) {
                return Err(fork(&name, stored, head));
            }
            stored.events
        }
        None => {
            rest.create(service, chain).await?;
            0
        }
    };
    rest.append(service, chain).await.map_err(|failure| {
        let (there, events) = (rest.there, chain.events);
        failure.and(format!(
            "{there} of {events} events are stored in the ledger for certain; run the same command again to continue"
        ))
    })?;
    match service.client.ledger(chain.ledger).await? {
        Some(stored) => {
            let later = later_events(service, &name, chain, &stored).await?;
            Ok((chain.events - before, later))
        }
        None => {
            let said = format!("ledger {} no longer exists in the service", chain.ledger);
            Err(Failure::no(said))
        }
    }
}

/// The part of the file that has not been sent yet. Each event is checked a second time when it is
/// sent, because the file may have changed since the first check.
struct Rest<'a> {
    lines: EventLines<'a>,
    checker: ChainChecker,
    /// The number of events, from the beginning of the file, that the service already has.
    there: u64,
}

impl Rest<'_> {
    /// Reads and checks the first `events` events of the file, but does not send them, because the
    /// service already has them.
    fn skip(&mut self, service: &Service, events: u64) -> Result<(), Failure> {
        for _ in 0..events {
            self.next(service)?;
        }
        Ok(())
    }

    /// Reads and checks the next event.
    fn next(&mut self, service: &Service) -> Result<(EventId, Vec<u8>), Failure> {
        let line = self.lines.next()?.ok_or_else(changed)?;
        let id = self.checker.check(line).map_err(|_| changed())?;
        service.bar.inc(len_of(line));
        Ok((id, line.to_vec()))
    }

    /// Returns the value of the query parameter `import` for the next request. It is `last` if all
    /// events of the file have been read, and `more` otherwise.
    fn part(&self, chain: Chain) -> ImportPart {
        if self.checker.events() == chain.events {
            ImportPart::Last
        } else {
            ImportPart::More
        }
    }

    /// Creates the ledger from the first event.
    async fn create(&mut self, service: &Service, chain: Chain) -> Result<(), Failure> {
        let (id, genesis) = self.next(service)?;
        service
            .client
            .create_ledger(&format!("import-{id}"), genesis, Some(self.part(chain)))
            .await?;
        self.there = 1;
        Ok(())
    }

    /// Appends all events of the file that have not been read yet. Each request names the id of the
    /// event before its first event. The service refuses the request if another writer has appended
    /// an event in the meantime.
    async fn append(&mut self, service: &Service, chain: Chain) -> Result<(), Failure> {
        loop {
            let previous = self.checker.head().expect("there is a first event");
            let checker = &mut self.checker;
            let group = self
                .lines
                .next_group(|line| checker.check(line).map(drop).map_err(|_| changed()))?;
            let Some(group) = group else { return Ok(()) };
            let last = self.checker.head().expect("there is a first event");
            let (key, len) = (format!("import-{previous}-{last}"), len_of(&group.events));
            let (events, part) = (&group.events, Some(self.part(chain)));
            let appended = service
                .client
                .append_events(chain.ledger, &key, events, Some(previous), part)
                .await;
            appended.map_err(|error| match error {
                ClientError::Refused(refusal) if refusal.slug == "head-moved" => {
                    let said = format!(
                        "another writer appends to ledger {}: {}",
                        chain.ledger, refusal.detail
                    );
                    Failure::no(said)
                }
                error => error.into(),
            })?;
            self.there = self.checker.events();
            service.bar.inc(len);
        }
    }
}

/// Returns the number of events in the ledger of the service that come after the last event of the
/// file.
///
/// Returns an error if the ledger does not contain the last event of the file. The ledger and the
/// file have then diverged. Also returns an error if the import of the ledger is not complete,
/// because the ledger then refuses all other appends.
async fn later_events(
    service: &Service,
    name: &str,
    chain: Chain,
    stored: &LedgerInfo,
) -> Result<u64, Failure> {
    let (ledger, head) = (chain.ledger, chain.head);
    let has_all = stored.head == head.to_string() || service.client.has_event(ledger, head).await?;
    if !has_all {
        return Err(fork(name, stored, Some(head)));
    }
    if stored.importing {
        let events = stored.events;
        let said = format!(
            "ledger {ledger} has all events of {name}, but its import is not complete, so other appends are refused; import \
             a file that has the events after event {events}, too, or append them with import=last"
        );
        return Err(Failure::no(said));
    }
    Ok(stored.events.saturating_sub(chain.events))
}

/// Returns the failure to report if the ledger in the service and the file to import have diverged.
fn fork(name: &str, stored: &LedgerInfo, ours: Option<EventId>) -> Failure {
    let (ledger, events, head) = (&stored.ledger, stored.events, &stored.head);
    let ours = ours.map_or_else(|| "none".to_owned(), |id| id.to_string());
    let said = format!(
        "ledger {ledger} and {name} have diverged: the head {head} of the ledger, its event {events}, is not in the \
         file, which has {ours} there"
    );
    Failure::no(said)
}

fn changed() -> Failure {
    Failure::damaged("the file has changed since it was checked")
}

fn len_of(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).expect("a length fits 64 bits")
}
