//! Reads the members of an event's JSON object into buffers, which are reused for the next event.

use std::ops::Range;

use super::event_form::{EventForm, Member, unknown_member};
use super::event_id::EventId;
use super::event_time::EventTime;
use crate::ledger::canonical::{CanonicalJson, Scanner};
use crate::ledger::event_error::{EventError, clip};
use idmint_core::id::Rejection;

/// The event that was read last: its time, its id and its content (plain text and canonical JSON).
#[derive(Debug, Default)]
pub(in crate::ledger) struct EventParts {
    json: CanonicalJson,
    form: EventForm,
    /// The members of the event's content, in the order in which they were read. `event`, `entity`
    /// and `key` are plain text, and all other members are canonical JSON.
    text: Vec<u8>,
    /// For each member, its range in `text`. The range is empty if the event does not have the
    /// member, or if the member is not part of the content.
    ranges: [Range<usize>; Member::COUNT],
    timestamp: Option<EventTime>,
    id: Option<EventId>,
}

impl EventParts {
    /// Reads an event in one of the `forms`, which replaces the event that was read before.
    ///
    /// # Errors
    /// Returns the same errors as [`Event::from_json`](super::Event::from_json). After an error,
    /// this value contains no event.
    pub(in crate::ledger) fn read(
        &mut self,
        json: &[u8],
        forms: &[EventForm],
    ) -> Result<(), EventError> {
        self.json.clear();
        self.text.clear();
        self.ranges = Default::default();
        (self.timestamp, self.id) = (None, None);
        let mut scanner = Scanner::new(json)?;
        if !scanner.eat(b'{') {
            return Err(self.wrong_type(&mut scanner, "the event", "an object"));
        }
        let mut is_there = [false; Member::COUNT];
        if !scanner.eat(b'}') {
            loop {
                let member = self.member_of(&mut scanner, forms)?;
                if std::mem::replace(&mut is_there[member as usize], true) {
                    let detail = format!("`{}` is given twice in the event", member.key());
                    return Err(EventError::new(Rejection::DuplicateKey, detail));
                }
                self.read_member(member, &mut scanner)?;
                if scanner.is_last_item(b'}', "`,` or `}`")? {
                    break;
                }
            }
        }
        scanner.end()?;
        self.form = EventForm::of(|member| is_there[member as usize])?;
        Ok(())
    }

    /// Returns the form of the event that was read.
    pub(in crate::ledger) fn form(&self) -> EventForm {
        self.form
    }

    /// Returns the values of the event's content (all but `timestamp` and `eventId`) in the order
    /// in which the checksum covers them. An absent `meta` or `data` gives `null`.
    pub(in crate::ledger) fn content(&self) -> impl Iterator<Item = &[u8]> {
        self.form.content().iter().map(|member| {
            match &self.text[self.ranges[*member as usize].clone()] {
                // An empty text means that `meta` or `data` is absent, because canonical JSON is
                // never empty. All other members are required, and a required text may be empty.
                [] if matches!(member, Member::Meta | Member::Data) => b"null",
                text => text,
            }
        })
    }

    pub(in crate::ledger) fn timestamp(&self) -> Option<EventTime> {
        self.timestamp
    }

    pub(in crate::ledger) fn id(&self) -> Option<EventId> {
        self.id
    }

    /// Reads the key of a member and the colon after it.
    fn member_of(
        &mut self,
        scanner: &mut Scanner<'_>,
        forms: &[EventForm],
    ) -> Result<Member, EventError> {
        if !scanner.eat(b'"') {
            return Err(scanner.unexpected("a key"));
        }
        let start = self.text.len();
        scanner.string_to_text(&mut self.text)?;
        let key = &self.text[start..];
        let Some(member) =
            Member::of_key(key).filter(|member| forms.iter().any(|form| form.has(*member)))
        else {
            return Err(unknown_member(&clip(key), forms));
        };
        self.text.truncate(start);
        if scanner.eat(b':') {
            Ok(member)
        } else {
            Err(scanner.unexpected("`:`"))
        }
    }

    fn read_member(&mut self, member: Member, scanner: &mut Scanner<'_>) -> Result<(), EventError> {
        scanner.skip_space();
        let start = self.text.len();
        let key = member.key();
        match (member, scanner.peek()) {
            (Member::Data, _)
            | (Member::Entities | Member::Meta, Some(b'{'))
            | (Member::Meta, Some(b'n')) => {
                let read = self.json.value(scanner, 1, &mut self.text);
                read.map_err(|error| error.in_member(key))?;
            }
            (Member::Entities, _) => {
                return Err(self.wrong_type(scanner, "`entities`", "an object"));
            }
            (Member::Meta, _) => {
                return Err(self.wrong_type(scanner, "`meta`", "an object or null"));
            }
            (_, Some(b'"')) => {
                scanner.at += 1;
                scanner
                    .string_to_text(&mut self.text)
                    .map_err(|error| error.in_member(key))?;
            }
            _ => return Err(self.wrong_type(scanner, &format!("`{key}`"), "a string")),
        }
        let said =
            || std::str::from_utf8(&self.text[start..]).expect("what a string says is UTF-8");
        match member {
            Member::Timestamp => {
                let time = EventTime::from_text(said());
                self.timestamp = Some(time.map_err(|rejection| bad_timestamp(rejection, said()))?);
            }
            Member::Id => {
                self.id = Some(
                    EventId::from_text(said()).map_err(|rejection| bad_id(rejection, said()))?,
                );
            }
            _ => {
                self.ranges[member as usize] = start..self.text.len();
                return Ok(());
            }
        }
        self.text.truncate(start);
        Ok(())
    }

    /// Returns the error for a value that does not have the type `wanted`, or that is not JSON.
    #[cold]
    fn wrong_type(&mut self, scanner: &mut Scanner<'_>, what: &str, wanted: &str) -> EventError {
        let start = self.text.len();
        match self.json.value(scanner, 0, &mut self.text) {
            Ok(()) => {
                let found = clip(&self.text[start..]);
                EventError::new(
                    Rejection::WrongType,
                    format!("{what} is {found}, but must be {wanted}"),
                )
            }
            Err(error) => error,
        }
    }
}

#[cold]
fn bad_timestamp(rejection: Rejection, text: &str) -> EventError {
    let wanted = match rejection {
        Rejection::BeforeEpoch => "but events are recorded from 1970 on",
        _ => {
            "but must have the form 2021-10-03T16:32:12.816530Z, with at most six digits of the second"
        }
    };
    EventError::new(
        rejection,
        format!("`timestamp` is \"{}\", {wanted}", clip(text.as_bytes())),
    )
}

/// Describes an id whose version is unknown, for an error message.
fn unknown_version(id: &str) -> String {
    let digit = id
        .chars()
        .last()
        .and_then(|digit| digit.to_digit(16))
        .unwrap_or_default();
    format!("an id of unknown version {:02b}", digit & 0b11)
}

/// Returns the error for a text that is not an event id.
#[cold]
pub(in crate::ledger) fn bad_id(rejection: Rejection, text: &str) -> EventError {
    let wanted = match rejection {
        Rejection::OutOfRange => "its time is above 2^63 - 1 microseconds".to_owned(),
        Rejection::BadVersion => {
            format!("{}; the two lowest bits must be 00", unknown_version(text))
        }
        _ => "but must be 32 lower-case hexadecimal digits".to_owned(),
    };
    EventError::new(
        rejection,
        format!("`eventId` is \"{}\", {wanted}", clip(text.as_bytes())),
    )
}
