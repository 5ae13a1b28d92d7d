//! `idmint ledger import`.

use std::path::PathBuf;

use clap::Args;
use indicatif::ProgressBar;

use super::event_file::{EventFile, EventLines};
use crate::cli::exit::{Exit, Failure};
use crate::cli::print::{SENT_SHOWN_FROM_LEN, print, progress_bar};
use crate::cli::running_service::{RetryArgs, block_on};
use crate::client::{Client, ClientError};
use crate::ledger::{ChainChecker, EventId, ImportPart, LedgerId};
use crate::wire::LedgerInfo;

/// Bring a chain of events, ids and all, to a running service.
///
/// The whole chain is checked first, offline; one that does not hold sends nothing. If the service has the ledger already,
/// its head must be an event of the chain, and the import goes on after it: the same command again finishes an import that
/// broke off, and one that is all there is done, though events may have come after it. Any other head is a fork, and is refused.
#[derive(Debug, Args)]
pub(super) struct Import {
    /// The events, one JSON object a line, each with its timestamp and its eventId.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    service: RetryArgs,
}

/// A chain that holds.
#[derive(Clone, Copy)]
struct Chain {
    ledger: LedgerId,
    head: EventId,
    events: u64,
}

impl Import {
    /// Prints the head once the service has the whole chain.
    ///
    /// # Errors
    /// 1 when the service refuses or its ledger is no part of this chain, 65 when the chain does not hold, 69, 74, 75.
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
        let Imported { new, later } = imported?;
        let Chain {
            ledger,
            head,
            events,
        } = chain;
        let behind = if later == 0 {
            String::new()
        } else {
            format!("; {later} events came after it")
        };
        print(format_args!(
            "complete: {events} events of ledger {ledger}, {new} of them new here, head {head}{behind}\n"
        ))
    }
}

/// The service, and how far it is.
struct Service {
    client: Client,
    bar: ProgressBar,
}

/// How many events an import brought.
struct Imported {
    new: u64,
    /// How many there are after the last of the file, which somebody else has appended.
    later: u64,
}

/// Checks the whole chain.
fn check_chain(file: &mut EventFile) -> Result<Chain, Failure> {
    let mut checker = ChainChecker::from_genesis();
    let mut lines = file.lines()?;
    while let Some(line) = lines.next()? {
        checker.check(line).map_err(|error| {
            let place = error.index + 1;
            let said = format!(
                "not valid: line {place}: {}: {}; nothing was sent",
                error.reason, error.detail
            );
            Failure::new(Exit::Damaged, said)
        })?;
    }
    match (checker.ledger(), checker.head()) {
        (Some(ledger), Some(head)) => Ok(Chain {
            ledger,
            head,
            events: checker.events(),
        }),
        _ => Err(Failure::new(Exit::Damaged, "there is no event")),
    }
}

/// Appends what the service lacks.
async fn import(
    service: &Service,
    file: &mut EventFile,
    chain: Chain,
) -> Result<Imported, Failure> {
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
            return Ok(Imported { new: 0, later });
        }
        Some(stored) => {
            rest.skip(service, stored.events)?;
            rest.there = stored.events;
            if rest
                .checker
                .head()
                .is_none_or(|head| head.to_string() != stored.head)
            {
                return Err(fork(&name, stored, rest.checker.head()));
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
            "{there} of {events} events are known to be there; the same command again goes on"
        ))
    })?;
    match service.client.ledger(chain.ledger).await? {
        Some(stored) => {
            let later = later_events(service, &name, chain, &stored).await?;
            Ok(Imported {
                new: chain.events - before,
                later,
            })
        }
        None => Err(Failure::new(
            Exit::No,
            format!("ledger {} is gone from the service", chain.ledger),
        )),
    }
}

/// What is left to send. It is checked again, since the file may have changed.
struct Rest<'a> {
    lines: EventLines<'a>,
    checker: ChainChecker,
    /// How many events the service is known to have.
    there: u64,
}

impl Rest<'_> {
    /// Passes by what the service has.
    fn skip(&mut self, service: &Service, events: u64) -> Result<(), Failure> {
        for _ in 0..events {
            self.next(service)?;
        }
        Ok(())
    }

    /// Takes the next event.
    fn next(&mut self, service: &Service) -> Result<(EventId, Vec<u8>), Failure> {
        let line = self.lines.next()?.ok_or_else(changed)?;
        let id = self.checker.check(line).map_err(|_| changed())?;
        service.bar.inc(len_of(line));
        Ok((id, line.to_vec()))
    }

    /// Which part of the import ends with the event that was taken last.
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

    /// Appends all others, each request only behind the event that it follows in the chain.
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
                        "somebody else appends to ledger {}: {}",
                        chain.ledger, refusal.detail
                    );
                    Failure::new(Exit::No, said)
                }
                error => error.into(),
            })?;
            self.there = self.checker.events();
            service.bar.inc(len);
        }
    }
}

/// How many events the service has after those of the file, unless it has others instead of them.
async fn later_events(
    service: &Service,
    name: &str,
    chain: Chain,
    stored: &LedgerInfo,
) -> Result<u64, Failure> {
    let Chain {
        ledger,
        head,
        events,
    } = chain;
    let has_all = stored.head == head.to_string() || service.client.has_event(ledger, head).await?;
    if has_all {
        Ok(stored.events.saturating_sub(events))
    } else {
        Err(fork(name, stored, Some(head)))
    }
}

/// The ledger and the file went different ways.
fn fork(name: &str, stored: &LedgerInfo, ours: Option<EventId>) -> Failure {
    let LedgerInfo {
        ledger,
        events,
        head,
        ..
    } = stored;
    let ours = ours.map_or_else(|| "none".to_owned(), |id| id.to_string());
    let said = format!(
        "a fork: the head of ledger {ledger} is {head}, its event {events}, which is not in {name}; there it is {ours}"
    );
    Failure::new(Exit::No, said)
}

fn changed() -> Failure {
    Failure::new(Exit::Damaged, "the file has changed since it was checked")
}

fn len_of(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).expect("a length fits 64 bits")
}
