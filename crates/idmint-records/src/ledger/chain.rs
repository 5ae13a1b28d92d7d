//! Checks chains of events, which are ledgers. [`ChainChecker`] receives the events one by one, and
//! [`ChainLines`] receives a text in chunks.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::ledger::canonical::line_len;
use crate::ledger::event_error::EventError;
use crate::ledger::events::{
    ChecksumStep, EventForm, EventId, EventParts, EventTime, LedgerId, Member, Message, bad_id,
    checksum_steps, missing_member,
};
use idmint_core::id::Rejection;

/// Checks the events of one ledger in order. Each event must include its `eventId`.
///
/// The checker accepts two forms of events: those that idmint appends, and those with an `entity`
/// and a `key`, which Evently recorded until 2022.
///
/// It detects events that were changed, lost or reordered. It does not protect against deliberate
/// tampering, because anyone can compute these checksums.
///
/// ```
/// use idmint_records::ledger::ChainChecker;
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
/// # Ok::<(), idmint_records::ledger::ChainError>(())
/// ```
#[derive(Debug, Default)]
pub struct ChainChecker {
    ledger: Option<LedgerId>,
    head: Option<EventId>,
    events: u64,
    parts: EventParts,
}

/// The first invalid event of a chain. The events after it were not checked.
///
/// The JSON form of this error is part of the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("event {index}: {reason}: {detail}")]
pub struct ChainError {
    /// The index of the event in the chain, from 0.
    pub index: u64,
    /// The reason why the event is invalid, as a code.
    pub reason: Rejection,
    /// The correct value: the ledger, the time or the id that the event should have, or the
    /// earliest time that it could have. `None` if the event is malformed.
    pub expected: Option<String>,
    /// The value that the event has instead of the expected value. `None` if the event is
    /// malformed.
    pub found: Option<String>,
    /// A sentence on why the event is invalid, with details such as the expected and found value.
    pub detail: String,
}

impl ChainChecker {
    /// Creates a checker for `ledger`. If `after` is `None`, checking begins with the first event
    /// of the ledger. Otherwise checking begins with the event that follows the event with the id
    /// `after`. That id is trusted.
    pub fn new(ledger: LedgerId, after: Option<EventId>) -> ChainChecker {
        ChainChecker {
            ledger: Some(ledger),
            head: after,
            ..ChainChecker::default()
        }
    }

    /// Creates a checker that begins with the first event of a ledger. The id of the ledger is
    /// computed from this event.
    pub fn from_genesis() -> ChainChecker {
        ChainChecker::default()
    }

    /// Checks the next event. It is a JSON object that includes its `eventId` and `timestamp`.
    ///
    /// The errors are detected in this order: a malformed id, a malformed event, `ledger_mismatch`,
    /// `timestamp_mismatch`, `not_monotonic`, `checksum_mismatch`. After an error, the state of the
    /// checker is unchanged.
    ///
    /// # Errors
    /// Returns [`ChainError`] with one of these reasons, or with a reason from
    /// [`Event::from_json`](crate::ledger::Event::from_json).
    pub fn check(&mut self, line: &[u8]) -> Result<EventId, ChainError> {
        let (ledger, id) = self.verify(line)?;
        self.ledger = Some(ledger);
        self.head = Some(id);
        self.events += 1;
        Ok(id)
    }

    /// Returns the steps of computing the checksum of `line` as the next event of the chain. The id
    /// in the event is ignored. The result is empty if the event is malformed or has no time.
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
        let (form, content) = (self.parts.form(), self.parts.content());
        checksum_steps(form, content, time, ledger, previous)
    }

    /// Returns the number of valid events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the id of the last valid event. Before the first event, returns the trusted id with
    /// which the checker was created, if any.
    pub fn head(&self) -> Option<EventId> {
        self.head
    }

    /// Returns the ledger, or `None` if the checker was created by [`ChainChecker::from_genesis`]
    /// and has not seen a valid event yet.
    pub fn ledger(&self) -> Option<LedgerId> {
        self.ledger
    }

    /// Returns the message (content and time) of the event that was read last. Its time is `time`.
    fn message(&self, time: EventTime) -> Message {
        Message::of(self.parts.form(), self.parts.content(), time)
    }

    /// Reads an event, and returns its id and time. The content of the event is kept in `parts`.
    fn read(&mut self, line: &[u8]) -> Result<(EventId, EventTime), EventError> {
        self.parts
            .read(line, &EventForm::ALL)
            .map_err(|error| id_error(line).unwrap_or(error))?;
        let id = self.parts.id();
        let time = self.parts.timestamp();
        Ok((
            id.ok_or_else(|| missing_member(Member::Id))?,
            time.ok_or_else(|| missing_member(Member::Timestamp))?,
        ))
    }

    fn verify(&mut self, line: &[u8]) -> Result<(LedgerId, EventId), ChainError> {
        let index = self.events;
        let (id, time) = self.read(line).map_err(|error| ChainError {
            index,
            reason: error.rejection(),
            expected: None,
            found: None,
            detail: error.to_string(),
        })?;
        let differs = |reason, expected: &dyn ToString, found: &dyn ToString, detail: &str| {
            Err(ChainError::differing(
                index, reason, expected, found, detail,
            ))
        };
        let message = self.message(time);
        let ledger = self.ledger.unwrap_or_else(|| message.ledger());
        if self.head.is_none() && message.ledger() != ledger {
            let detail = "the first event begins another ledger";
            let found = message.ledger();
            return differs(Rejection::LedgerMismatch, &ledger, &found, detail);
        }
        if id.ledger() != ledger {
            let detail = "`eventId` names another ledger";
            let found = id.ledger();
            return differs(Rejection::LedgerMismatch, &ledger, &found, detail);
        }
        if id.timestamp() != time {
            let detail = "`timestamp` and `eventId` disagree";
            let found = id.timestamp();
            return differs(Rejection::TimestampMismatch, &time, &found, detail);
        }
        let before = self.head.map(EventId::timestamp);
        if let Some(before) = before.filter(|before| *before >= time) {
            let earliest = before
                .next()
                .map_or_else(|| format!("after {before}"), |next| next.to_string());
            let detail = "the time is not after that of the previous event";
            return differs(Rejection::NotMonotonic, &earliest, &time, detail);
        }
        let previous = self.head.unwrap_or_else(|| message.before_genesis(ledger));
        let sealed = message.seal(ledger, previous);
        if sealed != id {
            let detail = format!("the event does not match its id after {previous}");
            return differs(Rejection::ChecksumMismatch, &sealed, &id, &detail);
        }
        Ok((ledger, id))
    }
}

impl ChainError {
    /// Returns the error for an event that is well formed, but has an unexpected value.
    #[cold]
    fn differing(
        index: u64,
        reason: Rejection,
        expected: &dyn ToString,
        found: &dyn ToString,
        detail: &str,
    ) -> ChainError {
        let (expected, found) = (expected.to_string(), found.to_string());
        ChainError {
            index,
            reason,
            detail: format!("{detail}: expected {expected}, found {found}"),
            expected: Some(expected),
            found: Some(found),
        }
    }
}

/// Returns the error in the `eventId` of a malformed event, if any. This error takes precedence
/// over other errors of the event.
#[cold]
fn id_error(line: &[u8]) -> Option<EventError> {
    #[derive(Deserialize)]
    struct OnlyId<'a> {
        #[serde(rename = "eventId", borrow)]
        id: Cow<'a, str>,
    }
    // Check that the line is an object, because serde would also accept an array of the members'
    // values.
    let object = Some(line).filter(|line| line.trim_ascii_start().starts_with(b"{"))?;
    let OnlyId { id } = serde_json::from_slice(object).ok()?;
    EventId::from_text(&id)
        .err()
        .map(|rejection| bad_id(rejection, &id))
}

/// The maximum length of a line in bytes, without the line feed.
const LINE_LEN_MAX: usize = 1024 * 1024;

/// Checks a chain while its text arrives. The text has one event on each line, and at most one line
/// is kept in memory.
///
/// Lines end in a line feed, which is optional after the last line. An empty line counts as a
/// malformed event. Events after the first invalid one are counted, but not checked.
///
/// ```
/// use idmint_records::ledger::{ChainChecker, ChainLines};
///
/// let mut lines = ChainLines::new(ChainChecker::from_genesis());
/// lines.read(b"{}\n{")?;
/// lines.read(b"}\n")?;
/// let verdict = lines.end();
/// assert_eq!((verdict.events, verdict.head), (2, None));
/// assert_eq!(verdict.error.map(|error| error.index), Some(0));
/// # Ok::<(), idmint_records::ledger::LineTooLong>(())
/// ```
#[derive(Debug)]
pub struct ChainLines {
    checker: ChainChecker,
    error: Option<ChainError>,
    /// `true` if the verdict should contain the steps in which the checksum of the first invalid
    /// event is computed.
    explains: bool,
    steps: Vec<ChecksumStep>,
    lines: u64,
    /// The beginning of a line whose end has not arrived yet.
    open: Vec<u8>,
}

/// The result of checking a whole chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainVerdict {
    /// The number of events, including those after the first invalid one.
    pub events: u64,
    /// The id of the last valid event. If no event is valid, this is the trusted id after which the
    /// check began, or `None` if the check began with the first event of the ledger.
    pub head: Option<EventId>,
    /// The first invalid event, or `None` if all events are valid.
    pub error: Option<ChainError>,
    /// The steps in which the checksum of the first invalid event is computed. The list is empty
    /// unless the steps were [requested](ChainLines::explaining) and the event is well formed.
    pub steps: Vec<ChecksumStep>,
}

/// The error for a line that is longer than 1 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is longer than {LINE_LEN_MAX} bytes, the limit of one event")]
pub struct LineTooLong {
    /// The line number, counted from 1.
    pub line: u64,
}

impl LineTooLong {
    /// The maximum length of a line in bytes, without the line feed.
    pub const LEN_MAX: usize = LINE_LEN_MAX;
}

impl ChainLines {
    /// Creates a reader that passes each line to `checker`.
    pub fn new(checker: ChainChecker) -> ChainLines {
        ChainLines {
            checker,
            error: None,
            explains: false,
            steps: Vec::new(),
            lines: 0,
            open: Vec::new(),
        }
    }

    /// Requests that the [verdict](ChainVerdict::steps) contains the steps in which the checksum of
    /// the first invalid event is computed.
    pub fn explaining(self) -> ChainLines {
        ChainLines {
            explains: true,
            ..self
        }
    }

    /// Reads the next chunk of the text, and checks every line that is now complete.
    ///
    /// # Errors
    /// Returns [`LineTooLong`] if a line is too long. The chain then cannot be checked to its end.
    pub fn read(&mut self, piece: &[u8]) -> Result<(), LineTooLong> {
        let mut rest = piece;
        while let (line, [_, after @ ..]) = rest.split_at(line_len(rest)) {
            self.check_len(line)?;
            if self.open.is_empty() {
                self.check(line);
            } else {
                self.open.extend_from_slice(line);
                self.check_open();
            }
            rest = after;
        }
        self.check_len(rest)?;
        self.open.extend_from_slice(rest);
        Ok(())
    }

    /// Returns how many bytes of an incomplete line are kept in memory.
    pub fn open_len(&self) -> usize {
        self.open.len()
    }

    /// Returns the number of complete lines so far.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Ends the text, and returns the result of checking the chain of events. A last line without a
    /// line feed is checked too.
    pub fn end(mut self) -> ChainVerdict {
        if !self.open.is_empty() {
            self.check_open();
        }
        ChainVerdict {
            events: self.lines,
            head: self.checker.head(),
            error: self.error,
            steps: self.steps,
        }
    }

    /// Returns an error if adding `more` would make the incomplete line too long.
    fn check_len(&self, more: &[u8]) -> Result<(), LineTooLong> {
        if more.len() > LINE_LEN_MAX - self.open.len() {
            return Err(LineTooLong {
                line: self.lines + 1,
            });
        }
        Ok(())
    }

    fn check_open(&mut self) {
        let mut line = std::mem::take(&mut self.open);
        self.check(&line);
        line.clear();
        self.open = line;
    }

    fn check(&mut self, line: &[u8]) {
        if self.error.is_none() {
            self.error = self.checker.check(line).err();
            if self.error.is_some() && self.explains {
                self.steps = self.checker.explain(line);
            }
        }
        self.lines += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of events, and the index of the first invalid one.
    fn verdict(pieces: &[&[u8]]) -> Result<(u64, Option<u64>), LineTooLong> {
        let mut lines = ChainLines::new(ChainChecker::from_genesis());
        for piece in pieces {
            lines.read(piece)?;
        }
        let verdict = lines.end();
        Ok((verdict.events, verdict.error.map(|error| error.index)))
    }

    #[test]
    fn a_line_ends_where_it_ends_and_not_where_a_piece_does() {
        assert_eq!(verdict(&[]), Ok((0, None)));
        assert_eq!(verdict(&[b""]), Ok((0, None)));
        for pieces in [
            &[&b"{}"[..]][..],
            &[b"{}\n"],
            &[b"{", b"}"],
            &[b"{}", b"\n"],
            &[b"{", b"", b"}\n"],
        ] {
            assert_eq!(verdict(pieces), Ok((1, Some(0))), "{pieces:?}");
        }
        assert_eq!(verdict(&[b"\n"]), Ok((1, Some(0))));
        assert_eq!(verdict(&[b"{}\n\n"]), Ok((2, Some(0))));
    }

    #[test]
    fn a_line_of_the_greatest_length_is_read_and_a_longer_one_is_not() {
        let line = vec![b' '; LINE_LEN_MAX];
        assert_eq!(verdict(&[&line, b"\n{}"]), Ok((2, Some(0))));
        assert_eq!(
            verdict(&[b"{}\n", &line, b" "]),
            Err(LineTooLong { line: 2 })
        );
        assert_eq!(verdict(&[&line, b" \n"]), Err(LineTooLong { line: 1 }));
        assert_eq!(
            verdict(&[&[&line[..], b" \n"].concat()]),
            Err(LineTooLong { line: 1 })
        );
    }

    #[test]
    fn the_first_bad_event_is_explained_byte_by_byte() {
        let genesis = r#"{"event":"Ledger Created","entities":{"ledger":"testing⑆preview"},"meta":{"actor":"matt"},"timestamp":"2021-10-03T16:32:12.816530Z","eventId":"0005cd7556b05092aecc815daa77f99c","data":{"description":"This ledger is for my example events.","name":"My Ledger"}}"#;
        let explain = |line: &str| {
            let mut lines = ChainLines::new(ChainChecker::from_genesis()).explaining();
            lines.read(line.as_bytes()).expect("it is short");
            lines.end()
        };
        assert_eq!(explain(genesis).steps, [], "nothing is wrong with it");
        // The returned steps show the correct checksum, although the event's id has a wrong one.
        let steps = explain(&genesis.replace("aecc815d", "aecc815e")).steps;
        let texts: Vec<_> = steps
            .iter()
            .map(|step| (step.name, String::from_utf8_lossy(&step.bytes)))
            .collect();
        let expected = [
            ("event", "Ledger Created"),
            ("entities", r#"{"ledger":"testing⑆preview"}"#),
            ("meta", r#"{"actor":"matt"}"#),
            (
                "data",
                r#"{"description":"This ledger is for my example events.","name":"My Ledger"}"#,
            ),
            ("timestamp", "0005cd7556b05092"),
            ("ledger", "aa77f99c"),
            ("previous", "0005cd7556b0509200000000aa77f99c"),
        ];
        assert_eq!(texts, expected.map(|(name, text)| (name, text.into())));
        assert_eq!(
            steps[4].checksum & !0b11,
            0xaa77_f99c,
            "what names the ledger"
        );
        assert_eq!(steps[6].checksum, 0xaecc_815d, "what stands in the id");
        assert_eq!(explain("{}").steps, [], "it cannot be read");
    }

    #[test]
    fn an_id_of_another_version_is_named_by_it() {
        for (digit, version) in [('d', "01"), ('e', "10"), ('f', "11")] {
            let line = format!(
                r#"{{"event":"a","entities":{{}},"eventId":"0005cd7556b05092aecc815daa77f99{digit}"}}"#
            );
            let mut lines = ChainLines::new(ChainChecker::from_genesis());
            lines.read(line.as_bytes()).expect("it is short");
            let error = lines.end().error.expect("it has another version");
            assert!(
                error
                    .detail
                    .contains(&format!("an id of unknown version {version}")),
                "{error}"
            );
        }
    }
}
