//! An event of a ledger, which may or may not be recorded yet.

use sha2::{Digest, Sha256};

use super::event_form::EventForm;
use super::event_id::EventId;
use super::event_parts::EventParts;
use super::event_time::EventTime;
use super::ledger_id::LedgerId;
use super::message::Message;
use crate::ledger::event_error::EventError;

/// One event: its content in canonical form, and its time and id if it has them.
///
/// An event is a JSON object with `event` (a string) and `entities` (an object). The members `meta`
/// (an object or null), `data` (any value), `timestamp` and `eventId` (strings, not null) are
/// optional. An absent `meta` or `data` counts as null. Any other member is an error, because no
/// checksum would cover it.
///
/// ```
/// use idmint_records::ledger::{Event, EventId, LedgerId};
///
/// let genesis = Event::from_json(
///     r#"{"event": "Ledger Created", "entities": {"ledger": "testing⑆preview"},
///         "timestamp": "2021-10-03T16:32:12.816530Z", "meta": {"actor": "matt"},
///         "data": {"name": "My Ledger", "description": "This ledger is for my example events."}}"#
///         .as_bytes(),
/// )?;
/// let time = genesis.timestamp().expect("it has one");
/// let ledger = LedgerId::of_genesis(&genesis, time);
/// let id = genesis.seal(time, ledger, EventId::before_genesis(time, ledger));
/// assert_eq!(id.to_string(), "0005cd7556b05092aecc815daa77f99c");
/// # Ok::<(), idmint_records::ledger::EventError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    content: Vec<u8>,
    part_lens: Vec<usize>,
    timestamp: Option<EventTime>,
    id: Option<EventId>,
}

impl Event {
    /// Parses one event.
    ///
    /// # Errors
    /// Returns [`EventError`] with the reason `invalid_json`, `duplicate_key`, `missing_field`,
    /// `unknown_field`, `wrong_type`, `bad_timestamp`, `before_epoch`, `number_not_interoperable`,
    /// or the reason why `eventId` is not an id.
    pub fn from_json(json: &[u8]) -> Result<Event, EventError> {
        let mut parts = EventParts::default();
        parts.read(json, &[EventForm::Entities])?;
        Ok(Event {
            content: parts.content().flatten().copied().collect(),
            part_lens: parts.content().map(<[u8]>::len).collect(),
            timestamp: parts.timestamp(),
            id: parts.id(),
        })
    }

    /// Returns the time at which the event was recorded, or `None` if the event has no `timestamp`.
    pub fn timestamp(&self) -> Option<EventTime> {
        self.timestamp
    }

    /// Returns the `eventId` in the event, or `None` if the event has none. The id's checksum is
    /// not checked.
    pub fn id(&self) -> Option<EventId> {
        self.id
    }

    /// Returns the event's content that a checksum covers: the name as text, then `entities`,
    /// `meta` and `data` in canonical JSON, without separators.
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// Computes the id that this event gets if it is recorded at `time` in `ledger`, after the
    /// event with the id `previous`.
    ///
    /// For the first event of a ledger, `previous` is [`EventId::before_genesis`].
    pub fn seal(&self, time: EventTime, ledger: LedgerId, previous: EventId) -> EventId {
        self.message(time).seal(ledger, previous)
    }

    fn message(&self, time: EventTime) -> Message {
        Message::of(EventForm::Entities, [self.content.as_slice()], time)
    }

    /// Returns a digest that identifies the event. It is the SHA-256 of the event's content and
    /// time, without its id.
    ///
    /// These bytes are hashed in order: the lengths of all parts (64 bits each, big-endian), the
    /// parts, a flag that says whether the event has a time, and the time. Because of the lengths,
    /// the digests of two events differ even if their parts are the same bytes split at other
    /// positions.
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = Sha256::new();
        for len in &self.part_lens {
            hasher.update(
                u64::try_from(*len)
                    .expect("a length fits 64 bits")
                    .to_be_bytes(),
            );
        }
        hasher.update(&self.content);
        hasher.update([u8::from(self.timestamp.is_some())]);
        hasher.update(self.timestamp.map_or(0, EventTime::micros).to_be_bytes());
        hasher.finalize().into()
    }
}

impl LedgerId {
    /// Returns the ledger that begins with the event `genesis`, if that event is recorded at
    /// `time`.
    pub fn of_genesis(genesis: &Event, time: EventTime) -> LedgerId {
        genesis.message(time).ledger()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(json: &str) -> [u8; 32] {
        Event::from_json(json.as_bytes()).expect(json).digest()
    }

    #[test]
    fn a_digest_knows_the_same_event_and_no_other() {
        let event = digest(r#"{"event":"a","entities":{"b":1}}"#);
        assert_eq!(
            event,
            digest(r#"{ "entities" : {"b":1.0}, "data": null, "event": "\u0061" }"#)
        );
        assert_eq!(
            event,
            digest(
                r#"{"event":"a","entities":{"b":1},"eventId":"0005cd7556b05092aecc815daa77f99c"}"#
            )
        );
        for other in [
            r#"{"event":"a{\"b\":1}","entities":{}}"#,
            r#"{"event":"a","entities":{"b":1},"timestamp":"1970-01-01T00:00:00Z"}"#,
            r#"{"event":"a","entities":{"b":1},"data":{}}"#,
        ] {
            assert_ne!(event, digest(other), "{other}");
        }
        let twins = [
            r#"{"event":"a{}","entities":{}}"#,
            r#"{"event":"a","entities":{},"meta":{}}"#,
        ]
        .map(digest);
        assert_ne!(twins[0], twins[1]);
    }

    #[test]
    fn an_empty_name_and_absent_members_are_read() {
        let event = Event::from_json(br#"{"event":"","entities":{}}"#).expect("an event");
        assert_eq!(event.content(), b"{}nullnull");
        assert_eq!((event.timestamp(), event.id()), (None, None));
    }
}
