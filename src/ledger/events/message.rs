//! The bytes that a checksum covers: the event and its time, and in an event id also its ledger and the id before it.

use super::event_id::EventId;
use super::event_time::EventTime;
use super::ledger_id::LedgerId;
use crate::ledger::hex::write_hex;

/// One part of what a checksum covers, for somebody who computes it too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChecksumStep {
    /// What it is: `event`, `entities`, `meta`, `data`, `timestamp`, `ledger` or `previous`.
    pub name: &'static str,
    /// The bytes that go into the checksum.
    pub bytes: Vec<u8>,
    /// CRC-32C of these bytes and all before them.
    pub checksum: u32,
}

/// The parts of the checksum of an event, in their order. The checksum after `timestamp` names the ledger if the event is
/// the first of one; that after `previous` stands in its id.
pub(in crate::ledger) fn checksum_steps<'a>(
    content: impl IntoIterator<Item = &'a [u8]>,
    time: EventTime,
    ledger: LedgerId,
    previous: EventId,
) -> Vec<ChecksumStep> {
    let names = ["event", "entities", "meta", "data", "timestamp", "ledger", "previous"];
    let after = [format!("{:016x}", time.micros()), ledger.to_string(), previous.to_string()];
    let parts = content.into_iter().map(<[u8]>::to_vec).chain(after.map(String::into_bytes));
    let mut checksum = 0;
    let step = |(name, bytes): (&'static str, Vec<u8>)| {
        checksum = crc32c::crc32c_append(checksum, &bytes);
        ChecksumStep { name, bytes, checksum }
    };
    names.into_iter().zip(parts).map(step).collect()
}

/// The message of an event: name, entities, meta, data and time. Only its checksum is kept.
///
/// ```text
/// ledger id of a first event  CRC-32C(name entities meta data time)
/// checksum of an event id     CRC-32C(name entities meta data time ledger previous)
/// ```
#[derive(Debug, Clone, Copy)]
pub(in crate::ledger) struct Message {
    time: EventTime,
    crc: u32,
}

impl Message {
    /// The message of an event with these parts, at that time.
    pub(in crate::ledger) fn of<'a>(content: impl IntoIterator<Item = &'a [u8]>, time: EventTime) -> Message {
        let of_content = content.into_iter().fold(0, crc32c::crc32c_append);
        let mut digits = [0; 16];
        write_hex(time.micros().into(), &mut digits);
        Message { time, crc: crc32c::crc32c_append(of_content, &digits) }
    }

    /// The ledger whose first event has this message.
    pub(in crate::ledger) fn ledger(self) -> LedgerId {
        LedgerId::of_checksum(self.crc)
    }

    /// The id of the event in `ledger`, after the event with the id `previous`.
    pub(in crate::ledger) fn seal(self, ledger: LedgerId, previous: EventId) -> EventId {
        let mut digits = [0; 8 + 32];
        let (of_ledger, of_previous) = digits.split_at_mut(8);
        write_hex(ledger.bits().into(), of_ledger);
        write_hex(previous.value(), of_previous);
        EventId::of_parts(self.time, crc32c::crc32c_append(self.crc, &digits), ledger)
    }
}
