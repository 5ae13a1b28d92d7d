//! One append as bytes: its events, their place, and the request they came with.
//!
//! A row is named by its ledger and the id of its last event. Where reading a row means reading all of it, a long append is
//! several rows, its *pieces*: the last one has the request, and no row is longer than a page of 16 KiB. All integers are
//! big-endian:
//!
//! ```text
//! 0   version: 1, or 2 when more parts of an import follow; 3 in a piece before the last, 4 (or 5) in the last; a program
//!     that knows of no imports, or of no pieces, then refuses the row
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
const PIECE: u8 = 3;
const LAST_PIECE: u8 = 4;
const LAST_PIECE_IMPORTING: u8 = 5;
const HEAD_LEN: usize = 66;
const ENTRY_LEN: usize = 48;
const CRC_LEN: usize = 4;

/// Events of one piece.
const PIECE_EVENTS: usize = 320;

/// What names a row: the ledger, and the id of its last event.
pub(in crate::storage) type Name = (u32, u128);

/// The name of the row whose last event is `last`.
pub(in crate::storage) fn name(last: EventId) -> Name {
    (last.ledger().bits(), last.value())
}

/// What a row is of its append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::storage) enum Extent {
    /// All of it.
    Whole,
    /// A piece that others follow.
    Piece,
    /// The last of several pieces.
    LastPiece,
}

/// An append as one row, however long it is.
pub(in crate::storage) fn to_bytes(append: &StoredAppend) -> Vec<u8> {
    RowHead::of_append(append).to_bytes(&append.entries)
}

/// An append as rows, each with its name: one, or its pieces in their order.
pub(in crate::storage) fn rows_of(append: &StoredAppend) -> impl Iterator<Item = (Name, Vec<u8>)> {
    let (mut first_place, last) = (append.first_place, append.head().id);
    append.entries.chunks(PIECE_EVENTS).map(move |entries| {
        let name = name(entries.last().expect("no piece is empty").id);
        let whole = RowHead {
            first_place,
            ..RowHead::of_append(append)
        };
        let head = match (
            entries.len() == append.entries.len(),
            name == self::name(last),
        ) {
            (true, _) => whole,
            (false, true) => RowHead {
                extent: Extent::LastPiece,
                ..whole
            },
            (false, false) => RowHead {
                extent: Extent::Piece,
                mark: None,
                is_importing: false,
                ..whole
            },
        };
        first_place += u64::try_from(entries.len()).expect("a piece is short");
        (name, head.to_bytes(entries))
    })
}

/// Reads an append that is one row of that name; `None` when it is not what was written, or a piece.
pub(in crate::storage) fn from_bytes(name: Name, bytes: &[u8]) -> Option<StoredAppend> {
    let (extent, append) = row_from_bytes(name, bytes)?;
    (extent == Extent::Whole).then_some(append)
}

/// Reads the row of that name, the events of a piece as if they were an append; `None` when it is not what was written.
pub(in crate::storage) fn row_from_bytes(
    name: Name,
    bytes: &[u8],
) -> Option<(Extent, StoredAppend)> {
    let (
        RowHead {
            first_place,
            recorded,
            mark,
            is_importing,
            extent,
        },
        entries,
    ) = RowHead::of(name, bytes)?;
    let entries = entries.iter().map(entry_of).collect::<Option<_>>()?;
    Some((
        extent,
        StoredAppend {
            first_place,
            recorded,
            mark,
            is_importing,
            entries,
        },
    ))
}

/// The first event of the row of that name; `None` when the row is not what was written.
pub(in crate::storage) fn first_of(name: Name, bytes: &[u8]) -> Option<EventId> {
    let (_, entries) = RowHead::of(name, bytes)?;
    Some(entry_of(entries.first()?)?.id)
}

/// The head of a ledger whose last row is that of this name; `None` when the row is not what was written, or others must follow.
pub(in crate::storage) fn head_of(name: Name, bytes: &[u8]) -> Option<Head> {
    let (
        RowHead {
            first_place,
            recorded,
            is_importing,
            extent,
            ..
        },
        entries,
    ) = RowHead::of(name, bytes)?;
    let between = u64::try_from(entries.len()).ok()?.checked_sub(1)?;
    let (id, place) = (
        EventId::from_value(name.1)?,
        first_place.checked_add(between)?,
    );
    (extent != Extent::Piece).then_some(Head {
        id,
        place,
        recorded,
        is_importing,
    })
}

/// Whether these bytes are an append or its last piece; nothing is checked.
pub(in crate::storage) fn is_last(bytes: &[u8]) -> bool {
    bytes.first() != Some(&PIECE)
}

/// When the row of that name was recorded, and the request that it came with if that has a key; `None` when the row is not
/// what was written.
pub(in crate::storage) fn request_of(
    name: Name,
    bytes: &[u8],
) -> Option<(EventTime, Option<DoneRequest>)> {
    let (RowHead { recorded, mark, .. }, _) = RowHead::of(name, bytes)?;
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

/// What is at the beginning of a row.
struct RowHead {
    first_place: u64,
    recorded: EventTime,
    mark: Option<RequestMark>,
    is_importing: bool,
    extent: Extent,
}

impl RowHead {
    /// That of an append in one row.
    fn of_append(append: &StoredAppend) -> RowHead {
        let StoredAppend {
            first_place,
            recorded,
            mark,
            is_importing,
            entries: _,
        } = *append;
        RowHead {
            first_place,
            recorded,
            mark,
            is_importing,
            extent: Extent::Whole,
        }
    }

    fn version(&self) -> u8 {
        match (self.extent, self.is_importing) {
            (Extent::Whole, false) => WHOLE,
            (Extent::Whole, true) => IMPORTING,
            (Extent::Piece, _) => PIECE,
            (Extent::LastPiece, false) => LAST_PIECE,
            (Extent::LastPiece, true) => LAST_PIECE_IMPORTING,
        }
    }

    /// The row of these events.
    fn to_bytes(&self, entries: &[Entry]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_LEN + entries.len() * ENTRY_LEN + CRC_LEN);
        bytes.push(self.version());
        bytes.extend(self.first_place.to_be_bytes());
        bytes.extend(self.recorded.micros().to_be_bytes());
        bytes.push(u8::from(self.mark.is_some()));
        bytes.extend(self.mark.map_or(0, |mark| mark.key.0).to_be_bytes());
        bytes.extend(self.mark.map_or([0; 32], |mark| mark.digest));
        for entry in entries {
            bytes.extend(entry.id.value().to_be_bytes());
            bytes.extend(entry.digest);
        }
        let crc = crc_of(name(entries.last().expect("a row has an event").id), &bytes);
        bytes.extend(crc.to_be_bytes());
        bytes
    }

    /// The head of the row of that name, and its events; `None` when the row is not what was written.
    fn of(name: Name, bytes: &[u8]) -> Option<(RowHead, &[[u8; ENTRY_LEN]])> {
        let (content, crc) = bytes.split_last_chunk::<CRC_LEN>()?;
        if crc_of(name, content) != u32::from_be_bytes(*crc) {
            return None;
        }
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
        let head = RowHead {
            first_place: u64::from_be_bytes(*first_place),
            recorded: EventTime::from_micros(u64::from_be_bytes(*recorded))?,
            mark: (has_mark == 1).then_some(mark),
            is_importing,
            extent,
        };
        let (entries, []) = entries.as_chunks::<ENTRY_LEN>() else {
            return None;
        };
        let is_named = entries
            .last()
            .and_then(entry_of)
            .is_some_and(|last| self::name(last.id) == name);
        is_named.then_some((head, entries))
    }
}

fn entry_of(bytes: &[u8; ENTRY_LEN]) -> Option<Entry> {
    let (id, digest) = bytes.split_first_chunk()?;
    Some(Entry {
        id: EventId::from_value(u128::from_be_bytes(*id))?,
        digest: digest.try_into().ok()?,
    })
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
            // The time stands at the top of an id: these are so many events a microsecond apart.
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
