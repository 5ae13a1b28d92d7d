//! The id of an event. It has three parts: the event's time, a checksum, and the id of the ledger.
//! The checksum covers the event, the id of the ledger and the id of the previous event.

use std::fmt;

use super::event_time::EventTime;
use super::ledger_id::LedgerId;
use crate::ledger::hex::read_hex;
use idmint_core::id::Rejection;

/// The id of an event. It has 64 bits for the time, 32 for the checksum, and 32 for the ledger.
///
/// As text, it is 32 lower-case hexadecimal digits. The ids of one ledger sort by time. Source:
/// Evently's documentation, "Event ID".
///
/// ```
/// use idmint_records::ledger::EventId;
///
/// let id = EventId::from_text("0005cd7556b05092aecc815daa77f99c")?;
/// assert_eq!(id.timestamp().to_string(), "2021-10-03T16:32:12.816530Z");
/// assert_eq!(id.checksum(), 0xaecc_815d);
/// assert_eq!(id.ledger().to_string(), "aa77f99c");
/// # Ok::<(), idmint_core::id::Rejection>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    // The fields are in the order of the digits, so that ids compare like their texts.
    timestamp: EventTime,
    checksum: u32,
    ledger: LedgerId,
}

impl EventId {
    /// Parses an id from 32 lower-case hexadecimal digits.
    ///
    /// # Errors
    /// Returns [`Rejection::WrongLength`] or [`Rejection::BadAlphabet`] if the text is not 32
    /// hexadecimal digits, and [`Rejection::NonCanonical`] if it has upper-case letters. Returns
    /// [`Rejection::OutOfRange`] if the sign bit of the time is set, and [`Rejection::BadVersion`]
    /// if the version is not 00.
    pub fn from_text(text: &str) -> Result<EventId, Rejection> {
        EventId::read(read_hex(text, 32)?)
    }

    /// Converts a number to an id. Returns `None` if the time is 2^63 microseconds or more, or if
    /// the two lowest bits (the version) are not 00.
    pub fn from_value(value: u128) -> Option<EventId> {
        EventId::read(value).ok()
    }

    fn read(value: u128) -> Result<EventId, Rejection> {
        let low_32 = |bits: u128| u32::try_from(bits & 0xffff_ffff).expect("32 bits are left");
        let micros = u64::try_from(value >> 64).expect("64 bits are left");
        let timestamp = EventTime::from_micros(micros).ok_or(Rejection::OutOfRange)?;
        let ledger = LedgerId::from_bits(low_32(value)).ok_or(Rejection::BadVersion)?;
        Ok(EventId {
            timestamp,
            checksum: low_32(value >> 32),
            ledger,
        })
    }

    /// Creates an id from its parts.
    pub(in crate::ledger) const fn of_parts(
        timestamp: EventTime,
        checksum: u32,
        ledger: LedgerId,
    ) -> EventId {
        EventId {
            timestamp,
            checksum,
            ledger,
        }
    }

    /// Returns the id that stands for the event before the first event of a ledger. It has the time
    /// and the ledger of the first event, and the checksum 0.
    pub const fn before_genesis(genesis: EventTime, ledger: LedgerId) -> EventId {
        EventId::of_parts(genesis, 0, ledger)
    }

    /// Returns the id as one number of 128 bits.
    pub fn value(self) -> u128 {
        u128::from(self.timestamp.micros()) << 64
            | u128::from(self.checksum) << 32
            | u128::from(self.ledger.bits())
    }

    /// Returns the time at which the event was recorded.
    pub const fn timestamp(self) -> EventTime {
        self.timestamp
    }

    /// Returns the checksum: the CRC-32C of the event, its ledger and the previous id.
    pub const fn checksum(self) -> u32 {
        self.checksum
    }

    /// Returns the ledger of the event.
    pub const fn ledger(self) -> LedgerId {
        self.ledger
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", self.value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_as_their_texts_do() {
        let ids = [
            "0000000000000001ffffffff00000000",
            "000000000000000200000000fffffffc",
            "000000000000000200000001fffffff8",
        ];
        let read: Vec<_> = ids
            .iter()
            .map(|text| EventId::from_text(text).expect(text))
            .collect();
        assert!(read.is_sorted());
        assert_eq!(read.iter().map(EventId::to_string).collect::<Vec<_>>(), ids);
    }

    #[test]
    fn a_number_that_is_no_id_is_none() {
        assert_eq!(EventId::from_value(1 << 127), None);
        assert_eq!(EventId::from_value(1), None);
        let last = (1 << 127) - 4;
        assert_eq!(EventId::from_value(last).map(EventId::value), Some(last));
    }
}
