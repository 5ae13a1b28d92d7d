//! The id of an event: its time, a checksum over its content and the id before it, and its ledger.

use std::fmt;

use super::event_time::EventTime;
use super::ledger_id::LedgerId;
use crate::id::Rejection;
use crate::ledger::hex::read_hex;

/// The id of an event: 64 bits of time, 32 of checksum, 32 of ledger.
///
/// Shape: 32 lower-case hexadecimal digits; ids of one ledger sort by time.
/// Source: the documentation of Evently, "Event ID".
///
/// ```
/// use idmint::ledger::EventId;
///
/// let id = EventId::from_text("0005cd7556b05092aecc815daa77f99c")?;
/// assert_eq!(id.timestamp().to_string(), "2021-10-03T16:32:12.816530Z");
/// assert_eq!(id.checksum(), 0xaecc_815d);
/// assert_eq!(id.ledger().to_string(), "aa77f99c");
/// # Ok::<(), idmint::id::Rejection>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    // In the order of the digits, so that ids compare as their texts do.
    timestamp: EventTime,
    checksum: u32,
    ledger: LedgerId,
}

impl EventId {
    /// Reads 32 lower-case hexadecimal digits.
    ///
    /// # Errors
    /// [`Rejection::WrongLength`], [`Rejection::BadAlphabet`], [`Rejection::NonCanonical`] for upper case,
    /// [`Rejection::OutOfRange`] for a time with the sign bit, [`Rejection::BadVersion`].
    pub fn from_text(text: &str) -> Result<EventId, Rejection> {
        EventId::read(read_hex(text, 32)?)
    }

    /// The id with this number; `None` for a time with the sign bit, or another version than 00.
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

    /// An id of these parts.
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

    /// The `previous` of the first event of a ledger: the time and the ledger of that event, and the checksum 0.
    pub const fn before_genesis(genesis: EventTime, ledger: LedgerId) -> EventId {
        EventId::of_parts(genesis, 0, ledger)
    }

    /// The id as one number.
    pub fn value(self) -> u128 {
        u128::from(self.timestamp.micros()) << 64
            | u128::from(self.checksum) << 32
            | u128::from(self.ledger.bits())
    }

    /// When the event was recorded.
    pub const fn timestamp(self) -> EventTime {
        self.timestamp
    }

    /// CRC-32C of the event, its ledger and the id before.
    pub const fn checksum(self) -> u32 {
        self.checksum
    }

    /// The ledger of the event.
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
