//! The row of an append, with its events, their position, and the request.
//!
//! A row is named by its ledger and the id of its last event. An engine that can only read whole
//! rows splits a long append into several rows, its *chunks* (`PIECE` in the code). Only the last
//! chunk contains the key and digest of the request. No chunk is longer than a page of 16 KiB. All
//! integers are big-endian:
//!
//! ```text
//! 0   version: 1 for a whole append, 2 if more parts of the import follow;
//!     3 for a chunk before the last one, 4 for the last one, 5 if more parts of the import follow;
//!     a program that knows no imports, or no chunks, refuses the row because of the version
//! 1   position of the first event, 8 bytes
//! 9   recorded at, microseconds since 1970, 8 bytes
//! 17  1 with a request mark, else 0
//! 18  hash of the key, 16 bytes; digest of the request, 32 bytes (zeros without a mark)
//! 66  each event: id, 16 bytes; SHA-256 of its message, 32 bytes
//! -4  CRC-32C over the name and everything above
//! ```

use crate::records::done_request::DoneRequest;
use crate::records::ledger_store::StoredAppend;
use idmint_records::ledger::{Entry, EventId, EventTime, Head, KeyHash, RequestMark};

const WHOLE: u8 = 1;
const IMPORTING: u8 = 2;
const PIECE: u8 = 3;
const LAST_PIECE: u8 = 4;
const LAST_PIECE_IMPORTING: u8 = 5;
const HEAD_LEN: usize = 66;
const ENTRY_LEN: usize = 48;
const CRC_LEN: usize = 4;

/// The maximum number of events in a row of a split append, so that each row fits a 16 KiB page.
const PIECE_EVENTS: usize = 320;

/// The name (key) of a row: the ledger and the id of the last event in the row.
pub type AppendName = (u32, u128);

/// Returns the name (key) of the row of events whose last event is `last`.
pub fn name(last: EventId) -> AppendName {
    (last.ledger().bits(), last.value())
}

/// The part of an append that a row contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The row contains the whole append.
    Whole,
    /// The row contains one chunk of a long append, and more chunks of this append follow.
    Piece,
    /// The row contains the last of several chunks of an append.
    LastPiece,
}

/// Encodes an append as a single row, regardless of its length.
pub fn to_bytes(append: &StoredAppend) -> Vec<u8> {
    row_to_bytes(Extent::Whole, append, append.first_place, &append.entries)
}

/// Encodes an append as one or more rows with their names. A long append is split into chunks, in
/// order.
pub(crate) fn rows_of(append: &StoredAppend) -> impl Iterator<Item = (AppendName, Vec<u8>)> {
    let (mut first_place, last) = (append.first_place, append.head().id);
    append.entries.chunks(PIECE_EVENTS).map(move |entries| {
        let name = name(entries.last().expect("no piece is empty").id);
        let extent = match name == self::name(last) {
            _ if entries.len() == append.entries.len() => Extent::Whole,
            true => Extent::LastPiece,
            false => Extent::Piece,
        };
        let row = row_to_bytes(extent, append, first_place, entries);
        first_place += u64::try_from(entries.len()).expect("a piece is short");
        (name, row)
    })
}

/// Decodes a whole append from the row with the key `name`. Returns `None` if the row is damaged,
/// of a later version, or contains only a chunk of an append.
pub fn from_bytes(name: AppendName, bytes: &[u8]) -> Option<StoredAppend> {
    let (extent, append) = row_from_bytes(name, bytes)?;
    (extent == Extent::Whole).then_some(append)
}

/// Decodes the row with this name. If the row is a chunk, the returned append has only the events
/// of the chunk. Returns `None` if the row is damaged or of a later version.
pub(crate) fn row_from_bytes(name: AppendName, bytes: &[u8]) -> Option<(Extent, StoredAppend)> {
    let (extent, append, entries) = split(name, bytes)?;
    let entries = entries.iter().map(entry_of).collect::<Option<_>>()?;
    Some((extent, StoredAppend { entries, ..append }))
}

/// Returns the id of the first event in `bytes`, the row with the key `name`. Returns `None` if the
/// row is damaged or of a later version.
pub(crate) fn first_of(name: AppendName, bytes: &[u8]) -> Option<EventId> {
    let (_, _, entries) = split(name, bytes)?;
    Some(entry_of(entries.first()?)?.id)
}

/// Returns the last event of a ledger, given the name and the bytes of the ledger's last row.
/// Returns `None` if the row is damaged or of a later version, or if more rows of the same append
/// should follow.
pub(crate) fn head_of(name: AppendName, bytes: &[u8]) -> Option<Head> {
    let (extent, append, entries) = split(name, bytes)?;
    let between = u64::try_from(entries.len()).ok()?.checked_sub(1)?;
    let id = EventId::from_value(name.1)?;
    let place = append.first_place.checked_add(between)?;
    (extent != Extent::Piece).then_some(Head {
        id,
        place,
        recorded: append.recorded,
        is_importing: append.is_importing,
    })
}

/// `true` if no other row of the same append follows this row. Does not check the row for damage.
pub(crate) fn is_last(bytes: &[u8]) -> bool {
    bytes.first() != Some(&PIECE)
}

/// Returns the time at which the events in the row were recorded. Also returns their request, if it
/// has an idempotency key. Returns `None` if the row is damaged or of a later version.
pub fn request_of(name: AppendName, bytes: &[u8]) -> Option<(EventTime, Option<DoneRequest>)> {
    let (_, StoredAppend { recorded, mark, .. }, _) = split(name, bytes)?;
    let last = EventId::from_value(name.1)?;
    Some((
        recorded,
        mark.map(|mark| DoneRequest {
            key: mark.key,
            recorded,
            last,
        }),
    ))
}

/// Encodes `entries`, all or some events of an append, as one row. Only the last row of an append
/// contains the request key. If another row follows, this row has no key.
fn row_to_bytes(
    extent: Extent,
    append: &StoredAppend,
    first_place: u64,
    entries: &[Entry],
) -> Vec<u8> {
    let version = match (extent, append.is_importing) {
        (Extent::Whole, false) => WHOLE,
        (Extent::Whole, true) => IMPORTING,
        (Extent::Piece, _) => PIECE,
        (Extent::LastPiece, false) => LAST_PIECE,
        (Extent::LastPiece, true) => LAST_PIECE_IMPORTING,
    };
    let mark = append.mark.filter(|_| extent != Extent::Piece);
    let mut bytes = Vec::with_capacity(HEAD_LEN + entries.len() * ENTRY_LEN + CRC_LEN);
    bytes.push(version);
    bytes.extend(first_place.to_be_bytes());
    bytes.extend(append.recorded.micros().to_be_bytes());
    bytes.push(u8::from(mark.is_some()));
    bytes.extend(mark.map_or(0, |mark| mark.key.0).to_be_bytes());
    bytes.extend(mark.map_or([0; 32], |mark| mark.digest));
    for entry in entries {
        bytes.extend(entry.id.value().to_be_bytes());
        bytes.extend(entry.digest);
    }
    let crc = crc_of(name(entries.last().expect("a row has an event").id), &bytes);
    bytes.extend(crc.to_be_bytes());
    bytes
}

/// `true` if the checksum of the row with this name is right. If a row with a right checksum cannot
/// be decoded, a later version of this program has written it.
pub(crate) fn is_whole(name: AppendName, bytes: &[u8]) -> bool {
    bytes
        .split_last_chunk::<CRC_LEN>()
        .is_some_and(|(content, crc)| crc_of(name, content) == u32::from_be_bytes(*crc))
}

/// Splits the row with the key `name` into its fixed fields and its entries, which are events. The
/// fixed fields are returned as an append without entries. Returns `None` if the row is damaged or
/// of a later version. [`is_whole`] tells these two cases apart.
fn split(name: AppendName, bytes: &[u8]) -> Option<(Extent, StoredAppend, &[[u8; ENTRY_LEN]])> {
    let (content, _) = bytes
        .split_last_chunk::<CRC_LEN>()
        .filter(|_| is_whole(name, bytes))?;
    let (head, entries) = content.split_at_checked(HEAD_LEN)?;
    let (&[version], head) = head.split_first_chunk()?;
    let (extent, is_importing) = match version {
        WHOLE => (Extent::Whole, false),
        IMPORTING => (Extent::Whole, true),
        PIECE => (Extent::Piece, false),
        LAST_PIECE => (Extent::LastPiece, false),
        LAST_PIECE_IMPORTING => (Extent::LastPiece, true),
        _ => return None,
    };
    let (first_place, head) = head.split_first_chunk()?;
    let (recorded, head) = head.split_first_chunk()?;
    let (&[has_mark], head) = head.split_first_chunk()?;
    let (key, digest) = head.split_first_chunk()?;
    let mark = RequestMark {
        key: KeyHash(u128::from_be_bytes(*key)),
        digest: digest.try_into().ok()?,
    };
    let append = StoredAppend {
        first_place: u64::from_be_bytes(*first_place),
        recorded: EventTime::from_micros(u64::from_be_bytes(*recorded))?,
        mark: (has_mark == 1).then_some(mark),
        is_importing,
        entries: Vec::new(),
    };
    let (entries, []) = entries.as_chunks::<ENTRY_LEN>() else {
        return None;
    };
    let is_named = entries
        .last()
        .and_then(entry_of)
        .is_some_and(|last| self::name(last.id) == name);
    is_named.then_some((extent, append, entries))
}

fn entry_of(bytes: &[u8; ENTRY_LEN]) -> Option<Entry> {
    let (id, digest) = bytes.split_first_chunk()?;
    Some(Entry {
        id: EventId::from_value(u128::from_be_bytes(*id))?,
        digest: digest.try_into().ok()?,
    })
}

fn crc_of((ledger, last): AppendName, content: &[u8]) -> u32 {
    let name = crc32c::crc32c_append(crc32c::crc32c(&ledger.to_be_bytes()), &last.to_be_bytes());
    crc32c::crc32c_append(name, content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append(mark: Option<RequestMark>) -> StoredAppend {
        let id = |text: &str| EventId::from_text(text).expect("an id");
        let first = Entry {
            id: id("0005cd7556b05092aecc815daa77f99c"),
            digest: [7; 32],
        };
        let second = Entry {
            id: id("0005d0df8d1e990f5bdc365aaa77f99c"),
            digest: [8; 32],
        };
        let recorded = EventTime::from_micros(1_900_000_000_000_000).expect("in range");
        StoredAppend {
            first_place: 4,
            recorded,
            mark,
            is_importing: mark.is_none(),
            entries: vec![first, second],
        }
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        for mark in [
            None,
            Some(RequestMark {
                key: KeyHash(u128::MAX - 5),
                digest: [3; 32],
            }),
        ] {
            let append = append(mark);
            assert_eq!(append.head().place, 5);
            let name = name(append.head().id);
            let row = to_bytes(&append);
            assert_eq!(
                (first_of(name, &row), head_of(name, &row)),
                (Some(append.entries[0].id), Some(append.head()))
            );
            assert_eq!(rows_of(&append).collect::<Vec<_>>(), [(name, row.clone())]);
            assert_eq!(from_bytes(name, &row), Some(append));
        }
    }

    #[test]
    fn a_long_append_is_pieces_of_one_page_and_the_last_has_the_request() {
        let mark = RequestMark {
            key: KeyHash(9),
            digest: [3; 32],
        };
        let template = append(Some(mark));
        let (one, first) = (template.entries[1], template.entries[1].id.value());
        for len in [
            PIECE_EVENTS,
            PIECE_EVENTS + 1,
            3 * PIECE_EVENTS,
            3 * PIECE_EVENTS + 7,
        ] {
            // The upper 64 bits of an id are its time in microseconds. Adding `number` to them
            // makes each id one microsecond later than the id before it.
            let id = |number: usize| {
                EventId::from_value(first + ((number as u128) << 64)).expect("an id")
            };
            let entries: Vec<_> = (0..len)
                .map(|number| Entry {
                    id: id(number),
                    ..one
                })
                .collect();
            let long = StoredAppend {
                entries,
                ..template.clone()
            };
            let rows: Vec<_> = rows_of(&long).collect();
            assert_eq!(rows.len(), len.div_ceil(PIECE_EVENTS));
            let mut joined = Vec::new();
            for (at, (name, row)) in rows.iter().enumerate() {
                let is_last = at + 1 == rows.len();
                assert!(row.len() + 40 <= 16 * 1024, "{} bytes", row.len());
                assert_eq!(
                    (self::is_last(row), head_of(*name, row)),
                    (is_last, is_last.then(|| long.head()))
                );
                let (_, request) = request_of(*name, row).expect("a row");
                assert_eq!(
                    request.map(|done| (done.key, done.last)),
                    is_last.then(|| (mark.key, long.head().id))
                );
                let (extent, read) = row_from_bytes(*name, row).expect("a row");
                let expected = match (rows.len(), is_last) {
                    (1, _) => (WHOLE, Extent::Whole),
                    (_, true) => (LAST_PIECE, Extent::LastPiece),
                    (_, false) => (PIECE, Extent::Piece),
                };
                assert_eq!((row[0], extent), expected);
                assert_eq!(
                    from_bytes(*name, row).is_some(),
                    rows.len() == 1,
                    "a piece is no append"
                );
                assert_eq!(read.first_place, long.first_place + joined.len() as u64);
                assert_eq!(read.is_importing, is_last && long.is_importing);
                joined.extend(read.entries);
            }
            assert_eq!(joined, long.entries);
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let append = append(Some(RequestMark {
            key: KeyHash(9),
            digest: [3; 32],
        }));
        let (name, bytes) = (name(append.head().id), to_bytes(&append));
        for at in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            assert_eq!(row_from_bytes(name, &flipped), None, "bit {at}");
            assert_eq!(
                (first_of(name, &flipped), head_of(name, &flipped)),
                (None, None),
                "bit {at}"
            );
        }
        for len in 0..bytes.len() {
            assert_eq!(from_bytes(name, &bytes[..len]), None, "{len} bytes");
        }
        let other_ledger = (name.0 + 4, name.1);
        assert_eq!(
            from_bytes(other_ledger, &bytes),
            None,
            "a row that has come under another name"
        );
    }
}
