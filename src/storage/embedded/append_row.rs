//! One append as bytes: which events, at which place, and which request they came with.
//!
//! A row is named by its ledger and the id of its last event. All integers are big-endian:
//!
//! ```text
//! 0   version, 1
//! 1   place of the first event, 8 bytes
//! 9   recorded at, microseconds since 1970, 8 bytes
//! 17  1 with a request mark, else 0
//! 18  hash of the key, 16 bytes; digest of the request, 32 bytes (zeros without a mark)
//! 66  each event: id, 16 bytes; SHA-256 of its message, 32 bytes
//! -4  CRC-32C over the name and everything above
//! ```

use crate::ledger::{AppendPlan, Entry, EventId, EventTime, Head, KeyHash, LedgerId, RequestMark};
use crate::storage::record_plan::RecordPlan;

const VERSION: u8 = 1;
const HEAD_LEN: usize = 66;
const ENTRY_LEN: usize = 48;
const CRC_LEN: usize = 4;

/// One append as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendRow {
    /// The place of its first event, from 1.
    pub first_place: u64,
    /// When it was recorded, by the clock of the node.
    pub recorded: EventTime,
    /// Which request it came with.
    pub mark: Option<RequestMark>,
    /// Its events, at least one.
    pub entries: Vec<Entry>,
}

/// A request that was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoneRequest {
    /// Which key it came with.
    pub key: KeyHash,
    /// When it was recorded.
    pub recorded: EventTime,
    /// The last event it appended, which names its row.
    pub last: EventId,
}

impl DoneRequest {
    /// What a plan does, if a key came with it.
    pub(in crate::storage) fn of(plan: &RecordPlan) -> Option<DoneRequest> {
        match plan {
            RecordPlan::Append(plan) => {
                Some(DoneRequest { key: plan.mark?.key, recorded: plan.recorded, last: plan.head().id })
            }
            RecordPlan::Anchor(_) => None,
        }
    }
}

/// What names a row: the ledger, and the id of its last event.
pub(in crate::storage) type Name = (u32, u128);

impl AppendRow {
    /// What a plan is stored as.
    pub(in crate::storage) fn of(plan: &AppendPlan) -> AppendRow {
        let AppendPlan { before: _, entries, mark, recorded } = plan;
        let (first_place, entries) = (plan.first_place(), entries.clone());
        AppendRow { first_place, recorded: *recorded, mark: *mark, entries }
    }

    /// The name of the row whose last event is `last`.
    pub(in crate::storage) fn name(last: EventId) -> Name {
        (last.ledger().bits(), last.value())
    }

    /// The last event.
    pub fn head(&self) -> Head {
        let last = self.entries.last().expect("an append has an event");
        let before_last = u64::try_from(self.entries.len() - 1).expect("a row is short");
        Head { id: last.id, place: self.first_place + before_last, recorded: self.recorded }
    }

    /// The ledger.
    pub fn ledger(&self) -> LedgerId {
        self.head().id.ledger()
    }

    /// The row as bytes.
    pub(in crate::storage) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_LEN + self.entries.len() * ENTRY_LEN + CRC_LEN);
        bytes.push(VERSION);
        bytes.extend(self.first_place.to_be_bytes());
        bytes.extend(self.recorded.micros().to_be_bytes());
        bytes.push(u8::from(self.mark.is_some()));
        bytes.extend(self.mark.map_or(0, |mark| mark.key.0).to_be_bytes());
        bytes.extend(self.mark.map_or([0; 32], |mark| mark.digest));
        for entry in &self.entries {
            bytes.extend(entry.id.value().to_be_bytes());
            bytes.extend(entry.digest);
        }
        let crc = crc_of(AppendRow::name(self.head().id), &bytes);
        bytes.extend(crc.to_be_bytes());
        bytes
    }

    /// Reads the row of that name; `None` when it is not what was written.
    pub(in crate::storage) fn from_bytes(name: Name, bytes: &[u8]) -> Option<AppendRow> {
        let (RowHead { first_place, recorded, mark }, entries) = RowHead::of(name, bytes)?;
        let entries = entries.iter().map(entry_of).collect::<Option<_>>()?;
        Some(AppendRow { first_place, recorded, mark, entries })
    }
}

/// When the row of that name was recorded, and the request that it came with if that has a key; `None` when the row is not
/// what was written.
pub(in crate::storage) fn request_of(name: Name, bytes: &[u8]) -> Option<(EventTime, Option<DoneRequest>)> {
    let (RowHead { recorded, mark, .. }, _) = RowHead::of(name, bytes)?;
    let last = EventId::from_value(name.1)?;
    Some((recorded, mark.map(|mark| DoneRequest { key: mark.key, recorded, last })))
}

/// What a row begins with.
struct RowHead {
    first_place: u64,
    recorded: EventTime,
    mark: Option<RequestMark>,
}

impl RowHead {
    /// The head of the row of that name, and its events; `None` when the row is not what was written.
    fn of(name: Name, bytes: &[u8]) -> Option<(RowHead, &[[u8; ENTRY_LEN]])> {
        let (content, crc) = bytes.split_last_chunk::<CRC_LEN>()?;
        if crc_of(name, content) != u32::from_be_bytes(*crc) {
            return None;
        }
        let (head, entries) = content.split_at_checked(HEAD_LEN)?;
        let (&[VERSION], head) = head.split_first_chunk()? else { return None };
        let (first_place, head) = head.split_first_chunk()?;
        let (recorded, head) = head.split_first_chunk()?;
        let (&[has_mark], head) = head.split_first_chunk()?;
        let (key, digest) = head.split_first_chunk()?;
        let mark = RequestMark { key: KeyHash(u128::from_be_bytes(*key)), digest: digest.try_into().ok()? };
        let head = RowHead {
            first_place: u64::from_be_bytes(*first_place),
            recorded: EventTime::from_micros(u64::from_be_bytes(*recorded))?,
            mark: (has_mark == 1).then_some(mark),
        };
        let (entries, []) = entries.as_chunks::<ENTRY_LEN>() else { return None };
        let is_named = entries.last().and_then(entry_of).is_some_and(|last| AppendRow::name(last.id) == name);
        is_named.then_some((head, entries))
    }
}

fn entry_of(bytes: &[u8; ENTRY_LEN]) -> Option<Entry> {
    let (id, digest) = bytes.split_first_chunk()?;
    Some(Entry { id: EventId::from_value(u128::from_be_bytes(*id))?, digest: digest.try_into().ok()? })
}

fn crc_of((ledger, last): Name, content: &[u8]) -> u32 {
    let name = crc32c::crc32c_append(crc32c::crc32c(&ledger.to_be_bytes()), &last.to_be_bytes());
    crc32c::crc32c_append(name, content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(mark: Option<RequestMark>) -> AppendRow {
        let id = |text: &str| EventId::from_text(text).expect("an id");
        let first = Entry { id: id("0005cd7556b05092aecc815daa77f99c"), digest: [7; 32] };
        let second = Entry { id: id("0005d0df8d1e990f5bdc365aaa77f99c"), digest: [8; 32] };
        let recorded = EventTime::from_micros(1_900_000_000_000_000).expect("in range");
        AppendRow { first_place: 4, recorded, mark, entries: vec![first, second] }
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        for mark in [None, Some(RequestMark { key: KeyHash(u128::MAX - 5), digest: [3; 32] })] {
            let row = row(mark);
            assert_eq!(row.head().place, 5);
            let name = AppendRow::name(row.head().id);
            assert_eq!(AppendRow::from_bytes(name, &row.to_bytes()), Some(row));
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let row = row(Some(RequestMark { key: KeyHash(9), digest: [3; 32] }));
        let (name, bytes) = (AppendRow::name(row.head().id), row.to_bytes());
        for at in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            assert_eq!(AppendRow::from_bytes(name, &flipped), None, "bit {at}");
        }
        for len in 0..bytes.len() {
            assert_eq!(AppendRow::from_bytes(name, &bytes[..len]), None, "{len} bytes");
        }
        let other_ledger = (name.0 + 4, name.1);
        assert_eq!(AppendRow::from_bytes(other_ledger, &bytes), None, "a row that has come under another name");
    }
}
