//! One append as bytes: its events, their place, and the request they came with.
//!
//! A row is named by its ledger and the id of its last event. All integers are big-endian:
//!
//! ```text
//! 0   version: 1, or 2 when more parts of an import follow; a program that knows of no imports then refuses the row
//! 1   place of the first event, 8 bytes
//! 9   recorded at, microseconds since 1970, 8 bytes
//! 17  1 with a request mark, else 0
//! 18  hash of the key, 16 bytes; digest of the request, 32 bytes (zeros without a mark)
//! 66  each event: id, 16 bytes; SHA-256 of its message, 32 bytes
//! -4  CRC-32C over the name and everything above
//! ```

use crate::ledger::{Entry, EventId, EventTime, Head, KeyHash, RequestMark};
use crate::storage::records::done_request::DoneRequest;
use crate::storage::records::stored_append::StoredAppend;

const WHOLE: u8 = 1;
const IMPORTING: u8 = 2;
const HEAD_LEN: usize = 66;
const ENTRY_LEN: usize = 48;
const CRC_LEN: usize = 4;

/// What names a row: the ledger, and the id of its last event.
pub(in crate::storage) type Name = (u32, u128);

/// The name of the row whose last event is `last`.
pub(in crate::storage) fn name(last: EventId) -> Name {
    (last.ledger().bits(), last.value())
}

/// An append as the bytes of its row.
pub(in crate::storage) fn to_bytes(append: &StoredAppend) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_LEN + append.entries.len() * ENTRY_LEN + CRC_LEN);
    bytes.push(if append.is_importing { IMPORTING } else { WHOLE });
    bytes.extend(append.first_place.to_be_bytes());
    bytes.extend(append.recorded.micros().to_be_bytes());
    bytes.push(u8::from(append.mark.is_some()));
    bytes.extend(append.mark.map_or(0, |mark| mark.key.0).to_be_bytes());
    bytes.extend(append.mark.map_or([0; 32], |mark| mark.digest));
    for entry in &append.entries {
        bytes.extend(entry.id.value().to_be_bytes());
        bytes.extend(entry.digest);
    }
    let crc = crc_of(name(append.head().id), &bytes);
    bytes.extend(crc.to_be_bytes());
    bytes
}

/// Reads the row of that name; `None` when it is not what was written.
pub(in crate::storage) fn from_bytes(name: Name, bytes: &[u8]) -> Option<StoredAppend> {
    let (RowHead { first_place, recorded, mark, is_importing }, entries) = RowHead::of(name, bytes)?;
    let entries = entries.iter().map(entry_of).collect::<Option<_>>()?;
    Some(StoredAppend { first_place, recorded, mark, is_importing, entries })
}

/// The first event of the row of that name, and the head of its ledger after it, without reading the events between; `None`
/// when the row is not what was written.
pub(in crate::storage) fn ends_of(name: Name, bytes: &[u8]) -> Option<(EventId, Head)> {
    let (RowHead { first_place, recorded, is_importing, .. }, entries) = RowHead::of(name, bytes)?;
    let between = u64::try_from(entries.len()).ok()?.checked_sub(1)?;
    let (id, place) = (EventId::from_value(name.1)?, first_place.checked_add(between)?);
    let head = Head { id, place, recorded, is_importing };
    Some((entry_of(entries.first()?)?.id, head))
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
    is_importing: bool,
}

impl RowHead {
    /// The head of the row of that name, and its events; `None` when the row is not what was written.
    fn of(name: Name, bytes: &[u8]) -> Option<(RowHead, &[[u8; ENTRY_LEN]])> {
        let (content, crc) = bytes.split_last_chunk::<CRC_LEN>()?;
        if crc_of(name, content) != u32::from_be_bytes(*crc) {
            return None;
        }
        let (head, entries) = content.split_at_checked(HEAD_LEN)?;
        let (&[version], head) = head.split_first_chunk()?;
        let is_importing = match version {
            WHOLE => false,
            IMPORTING => true,
            _ => return None,
        };
        let (first_place, head) = head.split_first_chunk()?;
        let (recorded, head) = head.split_first_chunk()?;
        let (&[has_mark], head) = head.split_first_chunk()?;
        let (key, digest) = head.split_first_chunk()?;
        let mark = RequestMark { key: KeyHash(u128::from_be_bytes(*key)), digest: digest.try_into().ok()? };
        let head = RowHead {
            first_place: u64::from_be_bytes(*first_place),
            recorded: EventTime::from_micros(u64::from_be_bytes(*recorded))?,
            mark: (has_mark == 1).then_some(mark),
            is_importing,
        };
        let (entries, []) = entries.as_chunks::<ENTRY_LEN>() else { return None };
        let is_named = entries.last().and_then(entry_of).is_some_and(|last| self::name(last.id) == name);
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

    fn append(mark: Option<RequestMark>) -> StoredAppend {
        let id = |text: &str| EventId::from_text(text).expect("an id");
        let first = Entry { id: id("0005cd7556b05092aecc815daa77f99c"), digest: [7; 32] };
        let second = Entry { id: id("0005d0df8d1e990f5bdc365aaa77f99c"), digest: [8; 32] };
        let recorded = EventTime::from_micros(1_900_000_000_000_000).expect("in range");
        StoredAppend { first_place: 4, recorded, mark, is_importing: mark.is_none(), entries: vec![first, second] }
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        for mark in [None, Some(RequestMark { key: KeyHash(u128::MAX - 5), digest: [3; 32] })] {
            let append = append(mark);
            assert_eq!(append.head().place, 5);
            let name = name(append.head().id);
            assert_eq!(ends_of(name, &to_bytes(&append)), Some((append.entries[0].id, append.head())));
            assert_eq!(from_bytes(name, &to_bytes(&append)), Some(append));
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let append = append(Some(RequestMark { key: KeyHash(9), digest: [3; 32] }));
        let (name, bytes) = (name(append.head().id), to_bytes(&append));
        for at in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            assert_eq!((from_bytes(name, &flipped), ends_of(name, &flipped)), (None, None), "bit {at}");
        }
        for len in 0..bytes.len() {
            assert_eq!(from_bytes(name, &bytes[..len]), None, "{len} bytes");
        }
        let other_ledger = (name.0 + 4, name.1);
        assert_eq!(from_bytes(other_ledger, &bytes), None, "a row that has come under another name");
    }
}
