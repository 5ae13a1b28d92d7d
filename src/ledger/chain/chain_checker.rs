//! Checks events against the ids that chain them.

use std::borrow::Cow;

use serde::Deserialize;

use crate::id::Rejection;
use crate::ledger::event_error::EventError;
use crate::ledger::events::{
    ChecksumStep, EventForm, EventId, EventParts, EventTime, LedgerId, Member, Message, bad_id,
    checksum_steps, missing_member,
};

/// Checks the events of one ledger, each of which carries its `eventId`, in their order.
///
/// Reads events as they are appended here, and those with an `entity` and a `key` that Evently recorded until 2022. Finds
/// changed, lost and reordered events. It does not prove that nobody tampered: anyone can compute these checksums.
///
/// ```
/// use idmint::ledger::ChainChecker;
///
/// let genesis = r#"{"event":"Ledger Created","entities":{"ledger":"testing⑆preview"},"meta":{"actor":"matt"},
///     "timestamp":"2021-10-03T16:32:12.816530Z","eventId":"0005cd7556b05092aecc815daa77f99c",
///     "data":{"description":"This ledger is for my example events.","name":"My Ledger"}}"#;
/// let mut checker = ChainChecker::from_genesis();
/// checker.check(genesis.as_bytes())?;
/// assert_eq!(checker.ledger().map(|ledger| ledger.to_string()).as_deref(), Some("aa77f99c"));
///
/// let error = checker.check(genesis.as_bytes()).expect_err("the same again");
/// assert_eq!((error.index, error.reason.code()), (1, "not_monotonic"));
/// # Ok::<(), idmint::ledger::ChainError>(())
/// ```
#[derive(Debug)]
pub struct ChainChecker {
    ledger: Option<LedgerId>,
    head: Option<EventId>,
    events: u64,
    parts: EventParts,
}

/// The first event that breaks a chain, with the expected and the found value where there is one of each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {index}: {reason}: {detail}")]
pub struct ChainError {
    /// The index of the event, from 0.
    pub index: u64,
    /// Why it breaks the chain.
    pub reason: Rejection,
    /// The value that follows from the event and those before it: a ledger, a time, the earliest time, or an id.
    pub expected: Option<String>,
    /// The value in its `eventId`.
    pub found: Option<String>,
    /// The reason in words, with the member, its value and the bound.
    pub detail: String,
}

impl ChainChecker {
    /// A checker of that ledger from its first event, or from the event after `after`, whose id is trusted.
    pub fn new(ledger: LedgerId, after: Option<EventId>) -> ChainChecker {
        ChainChecker {
            ledger: Some(ledger),
            head: after,
            events: 0,
            parts: EventParts::default(),
        }
    }

    /// A checker of the ledger that begins with the first event it is given.
    pub fn from_genesis() -> ChainChecker {
        ChainChecker {
            ledger: None,
            head: None,
            events: 0,
            parts: EventParts::default(),
        }
    }

    /// Checks the next event, a JSON object with its `eventId` and its `timestamp`.
    ///
    /// Checked in this order: the id can be read, the event can be read, `ledger_mismatch`, `timestamp_mismatch`,
    /// `not_monotonic`, `checksum_mismatch`. An error leaves the checker unchanged.
    ///
    /// # Errors
    /// [`ChainError`] with one of these reasons, or one of those of [`Event::from_json`](crate::ledger::Event::from_json).
    pub fn check(&mut self, line: &[u8]) -> Result<EventId, ChainError> {
        let (ledger, id) = self.verify(line).map_err(|fault| ChainError {
            index: self.events,
            reason: fault.reason,
            expected: fault.expected,
            found: fault.found,
            detail: fault.detail,
        })?;
        self.ledger = Some(ledger);
        self.head = Some(id);
        self.events += 1;
        Ok(id)
    }

    /// The parts of the checksum of the event that would be the next, whatever id it carries; none if it cannot be read or
    /// has no time.
    pub fn explain(&mut self, line: &[u8]) -> Vec<ChecksumStep> {
        if self.parts.read(line, &EventForm::ALL).is_err() {
            return Vec::new();
        }
        let Some(time) = self.parts.timestamp() else {
            return Vec::new();
        };
        let message = self.message(time);
        let ledger = self.ledger.unwrap_or_else(|| message.ledger());
        let previous = self.head.unwrap_or_else(|| message.before_genesis(ledger));
        checksum_steps(
            self.parts.form(),
            self.parts.content(),
            time,
            ledger,
            previous,
        )
    }

    /// The number of valid events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The id of the last valid event; before there is one, the trusted id.
    pub fn head(&self) -> Option<EventId> {
        self.head
    }

    /// The ledger; `None` before the first event of [`ChainChecker::from_genesis`].
    pub fn ledger(&self) -> Option<LedgerId> {
        self.ledger
    }

    /// The message of the event that was read last.
    fn message(&self, time: EventTime) -> Message {
        Message::of(self.parts.form(), self.parts.content(), time)
    }

    fn verify(&mut self, line: &[u8]) -> Result<(LedgerId, EventId), Fault> {
        if let Err(error) = self.parts.read(line, &EventForm::ALL) {
            return Err(id_error(line).unwrap_or(error).into());
        }
        let id = self.parts.id().ok_or_else(|| missing_member(Member::Id))?;
        let time = self
            .parts
            .timestamp()
            .ok_or_else(|| missing_member(Member::Timestamp))?;
        let message = self.message(time);
        let ledger = self.ledger.unwrap_or_else(|| message.ledger());
        if self.head.is_none() && message.ledger() != ledger {
            let detail = "the first event begins another ledger";
            return Err(Fault::new(
                Rejection::LedgerMismatch,
                &ledger,
                &message.ledger(),
                detail,
            ));
        }
        if id.ledger() != ledger {
            let detail = "`eventId` names another ledger";
            return Err(Fault::new(
                Rejection::LedgerMismatch,
                &ledger,
                &id.ledger(),
                detail,
            ));
        }
        if id.timestamp() != time {
            let detail = "`timestamp` and `eventId` disagree";
            return Err(Fault::new(
                Rejection::TimestampMismatch,
                &time,
                &id.timestamp(),
                detail,
            ));
        }
        if let Some(before) = self
            .head
            .map(EventId::timestamp)
            .filter(|before| *before >= time)
        {
            let earliest = before
                .next()
                .map_or_else(|| format!("after {before}"), |next| next.to_string());
            let detail = "the time is not after that of the event before";
            return Err(Fault::new(
                Rejection::NotMonotonic,
                &earliest,
                &time,
                detail,
            ));
        }
        let previous = self.head.unwrap_or_else(|| message.before_genesis(ledger));
        let sealed = message.seal(ledger, previous);
        if sealed != id {
            let detail = format!("not the event that got this id after {previous}");
            return Err(Fault::new(
                Rejection::ChecksumMismatch,
                &sealed,
                &id,
                &detail,
            ));
        }
        Ok((ledger, id))
    }
}

/// A [`ChainError`] without its index.
struct Fault {
    reason: Rejection,
    expected: Option<String>,
    found: Option<String>,
    detail: String,
}

impl Fault {
    #[cold]
    fn new(
        reason: Rejection,
        expected: &dyn ToString,
        found: &dyn ToString,
        detail: &str,
    ) -> Fault {
        let (expected, found) = (expected.to_string(), found.to_string());
        let detail = format!("{detail}: expected {expected}, found {found}");
        Fault {
            reason,
            expected: Some(expected),
            found: Some(found),
            detail,
        }
    }
}

impl From<EventError> for Fault {
    fn from(error: EventError) -> Fault {
        Fault {
            reason: error.rejection(),
            expected: None,
            found: None,
            detail: error.to_string(),
        }
    }
}

/// The error of the `eventId` of an event that cannot be read: it is reported before the error of the event.
#[cold]
fn id_error(line: &[u8]) -> Option<EventError> {
    #[derive(Deserialize)]
    struct OnlyId<'a> {
        #[serde(rename = "eventId", borrow)]
        id: Cow<'a, str>,
    }
    // A list would be read as the members in their order.
    let object = Some(line).filter(|line| line.trim_ascii_start().starts_with(b"{"))?;
    let OnlyId { id } = serde_json::from_slice(object).ok()?;
    EventId::from_text(&id)
        .err()
        .map(|rejection| bad_id(rejection, &id))
}
