//! What a checksum covers: the event, its time, and in an id also its ledger and the id before.

use super::event_id::EventId;
use super::event_time::EventTime;
use super::hex::write_hex;
use super::ledger_id::LedgerId;

/// The message of an event: name, entities, meta, data and time, of which only the checksum so far is kept.
///
/// Both the ledger of a first event and the checksum of any event begin with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    time: EventTime,
    crc: u32,
}

impl Message {
    /// The message of an event in these parts, fed one after the other, at that time.
    pub(super) fn of<'a>(content: impl IntoIterator<Item = &'a [u8]>, time: EventTime) -> Message {
        let of_content = content.into_iter().fold(0, crc32c::crc32c_append);
        let mut digits = [0; 16];
        write_hex(time.micros().into(), &mut digits);
        Message { time, crc: crc32c::crc32c_append(of_content, &digits) }
    }

    /// The ledger that begins with this message.
    pub(super) fn ledger(self) -> LedgerId {
        LedgerId::of_checksum(self.crc)
    }

    /// The id of the event in this ledger after that id.
    pub(super) fn seal(self, ledger: LedgerId, previous: EventId) -> EventId {
        let mut digits = [0; 8 + 32];
        let (of_ledger, of_previous) = digits.split_at_mut(8);
        write_hex(ledger.bits().into(), of_ledger);
        write_hex(previous.value(), of_previous);
        EventId::of_parts(self.time, crc32c::crc32c_append(self.crc, &digits), ledger)
    }
}
