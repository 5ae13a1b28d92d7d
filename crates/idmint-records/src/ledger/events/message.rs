//! The message of an event: its content and its time. The checksum in the event's id covers the
//! message, the id of the ledger and the id of the previous event.

use super::event_form::EventForm;
use super::event_id::EventId;
use super::event_time::EventTime;
use super::ledger_id::LedgerId;
use crate::ledger::hex::write_hex;

/// One step in the computation of a checksum. The steps help callers who compute the checksum
/// themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChecksumStep {
    /// The name of the value that this step adds to the checksum. It is the key of a member of the
    /// event, such as `event`, or one of the names `timestamp`, `ledger` and `previous`.
    pub name: &'static str,
    /// The bytes that this step of the computation appends to the input of the checksum.
    pub bytes: Vec<u8>,
    /// The CRC-32C of the input so far: the bytes of all previous steps, followed by `bytes`.
    pub checksum: u32,
}

/// Returns the steps in which the checksum of an event is computed.
///
/// In both event forms, the checksum just before the step named `ledger` gives the id of a new
/// ledger. The checksum after the last step is part of the event's id.
pub(in crate::ledger) fn checksum_steps<'a>(
    form: EventForm,
    content: impl IntoIterator<Item = &'a [u8]>,
    time: EventTime,
    ledger: LedgerId,
    previous: EventId,
) -> Vec<ChecksumStep> {
    let time = ("timestamp", format!("{:016x}", time.micros()).into_bytes());
    let named = ("ledger", ledger.to_string().into_bytes());
    let middle = match form {
        EventForm::Entities => [time, named],
        EventForm::EntityAndKey => [named, time],
    };
    let members = form
        .content()
        .iter()
        .zip(content)
        .map(|(member, text)| (member.key(), text.to_vec()));
    let mut checksum = 0;
    let step = |(name, bytes): (&'static str, Vec<u8>)| {
        checksum = crc32c::crc32c_append(checksum, &bytes);
        ChecksumStep {
            name,
            bytes,
            checksum,
        }
    };
    members
        .chain(middle)
        .chain([("previous", previous.to_string().into_bytes())])
        .map(step)
        .collect()
}

/// The message of an event: its content and its time. Only the checksum of these bytes is kept.
///
/// ```text
/// checksum for    event with `entities`                 event with `entity` and `key`
/// new ledger id   CRC-32C(content time)                 CRC-32C(content)
/// event id        CRC-32C(content time ledger previous) CRC-32C(content ledger time previous)
/// ```
#[derive(Debug, Clone, Copy)]
pub(in crate::ledger) struct Message {
    form: EventForm,
    time: EventTime,
    /// The checksum of the event's content and, if it has `entities`, its time. This checksum of a
    /// ledger's first event gives the ledger's id. For an event's own id, the checksum continues
    /// with the ledger's id.
    crc: u32,
}

impl Message {
    pub(in crate::ledger) fn of<'a>(
        form: EventForm,
        content: impl IntoIterator<Item = &'a [u8]>,
        time: EventTime,
    ) -> Message {
        let of_content = content.into_iter().fold(0, crc32c::crc32c_append);
        let crc = match form {
            EventForm::Entities => crc32c::crc32c_append(of_content, &digits_of(time)),
            EventForm::EntityAndKey => of_content,
        };
        Message { form, time, crc }
    }

    /// Returns the ledger whose first event has this message.
    pub(in crate::ledger) fn ledger(self) -> LedgerId {
        LedgerId::of_checksum(self.crc)
    }

    /// Returns the id that stands for the missing previous event if this event is the first one of
    /// `ledger`.
    pub(in crate::ledger) const fn before_genesis(self, ledger: LedgerId) -> EventId {
        match self.form {
            EventForm::Entities => EventId::before_genesis(self.time, ledger),
            EventForm::EntityAndKey => EventId::before_genesis(EventTime::EPOCH, ledger),
        }
    }

    /// Computes the id of the event in `ledger`, after the event with the id `previous`.
    pub(in crate::ledger) fn seal(self, ledger: LedgerId, previous: EventId) -> EventId {
        let mut of_previous = [0; 32];
        write_hex(previous.value(), &mut of_previous);
        let with_ledger = crc32c::crc32c_append(self.crc, &ledger.digits());
        let before = match self.form {
            EventForm::Entities => with_ledger,
            EventForm::EntityAndKey => crc32c::crc32c_append(with_ledger, &digits_of(self.time)),
        };
        EventId::of_parts(
            self.time,
            crc32c::crc32c_append(before, &of_previous),
            ledger,
        )
    }
}

fn digits_of(time: EventTime) -> [u8; 16] {
    let mut digits = [0; 16];
    write_hex(time.micros().into(), &mut digits);
    digits
}
