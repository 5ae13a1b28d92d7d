//! Encodes and decodes the records of a node's journal. Each record has a checksum.
//!
//! Integers are big-endian. The number after a field is its length in bytes.
//!
//! ```text
//! record     length of the content 4, CRC-32C of length and content 4, content
//! content    version 1, kind 1, then
//! era        origin of the fleet 16, floor in nanoseconds 8, count of fences 4 unless it is 0: later records were
//!            committed in this era
//! row        length of the key 2, key, value
//! ```

use crate::records::known_fleet::FleetEra;
use idmint_core::time::UnixNanos;

const VERSION: u8 = 1;
const ERA: u8 = 1;
const ROW: u8 = 2;
const FRAME_LEN: usize = 8;

/// The maximum length of an encoded era record, in bytes. An era record precedes the rows that were
/// committed in its era.
pub(super) const ERA_LEN: usize = FRAME_LEN + 2 + 16 + 8 + 4;

/// A record of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JournalRecord<'a> {
    /// The era of the fleet in which the following rows were committed. An era lasts from one fence
    /// to the next.
    Era(FleetEra),
    /// A row, byte for byte as it was committed.
    Row { key: &'a str, value: &'a [u8] },
}

impl<'a> JournalRecord<'a> {
    /// Appends the encoded record to `bytes`.
    pub(super) fn write_to(&self, bytes: &mut Vec<u8>) {
        let mut content = vec![VERSION];
        match self {
            JournalRecord::Era(FleetEra {
                fences,
                floor,
                origin,
            }) => {
                content.push(ERA);
                content.extend(origin.to_be_bytes());
                content.extend(floor.get().to_be_bytes());
                if *fences > 0 {
                    content.extend(fences.to_be_bytes());
                }
            }
            JournalRecord::Row { key, value } => {
                content.push(ROW);
                content.extend(
                    u16::try_from(key.len())
                        .expect("keys are short")
                        .to_be_bytes(),
                );
                content.extend(key.as_bytes());
                content.extend(*value);
            }
        }
        let len = u32::try_from(content.len())
            .expect("a row fits into a transaction")
            .to_be_bytes();
        bytes.extend(len);
        bytes.extend(crc_of(len, &content).to_be_bytes());
        bytes.extend(content);
    }

    /// `true` if a later version of this program has written the record at the start of `bytes`.
    /// Such a record has a valid checksum, but this version cannot decode it.
    pub(super) fn is_later(bytes: &[u8]) -> bool {
        content_of(bytes).is_some_and(|content| !content.is_empty())
            && JournalRecord::read_from(bytes).is_none()
    }

    /// Decodes the record at the start of `bytes`. Returns the record and its length in bytes, or
    /// `None` if the record is incomplete, damaged or of a later version.
    pub(super) fn read_from(bytes: &'a [u8]) -> Option<(JournalRecord<'a>, usize)> {
        // After a damaged record, the search for the next one tries every byte position. So most
        // positions must be cheap to rule out.
        if !matches!(bytes.get(FRAME_LEN..)?, [VERSION, ERA | ROW, ..]) {
            return None;
        }
        let content = content_of(bytes)?;
        let record = match content.split_at_checked(2)? {
            ([VERSION, ERA], era) => {
                let (origin, era) = era.split_first_chunk()?;
                let (floor, fences) = era.split_first_chunk()?;
                JournalRecord::Era(FleetEra {
                    fences: match fences {
                        [] => 0,
                        fences => u32::from_be_bytes(fences.try_into().ok()?),
                    },
                    floor: UnixNanos::new(u64::from_be_bytes(*floor)),
                    origin: u128::from_be_bytes(*origin),
                })
            }
            ([VERSION, ROW], row) => {
                let (key_len, row) = row.split_first_chunk()?;
                let (key, value) =
                    row.split_at_checked(usize::from(u16::from_be_bytes(*key_len)))?;
                JournalRecord::Row {
                    key: std::str::from_utf8(key).ok()?,
                    value,
                }
            }
            _ => return None,
        };
        Some((record, FRAME_LEN + content.len()))
    }
}

/// Returns the content of the record at the start of `bytes`, or `None` if the record is incomplete
/// or damaged.
fn content_of(bytes: &[u8]) -> Option<&[u8]> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (crc, rest) = rest.split_first_chunk()?;
    let content = rest.get(..usize::try_from(u32::from_be_bytes(*len)).ok()?)?;
    (crc_of(*len, content) == u32::from_be_bytes(*crc)).then_some(content)
}

fn crc_of(len: [u8; 4], content: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&len), content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written_and_only_whole() {
        let era_of = |fences| {
            JournalRecord::Era(FleetEra {
                fences,
                floor: UnixNanos::from_seconds(9),
                origin: 7,
            })
        };
        for record in [
            era_of(0),
            era_of(3),
            JournalRecord::Row {
                key: "/idmint/key",
                value: b"value",
            },
        ] {
            let mut bytes = Vec::new();
            record.write_to(&mut bytes);
            let len = bytes.len();
            for cut in 0..len {
                assert_eq!(JournalRecord::read_from(&bytes[..cut]), None, "{cut} bytes");
            }
            for at in 0..len * 8 {
                let mut flipped = bytes.clone();
                flipped[at / 8] ^= 1 << (at % 8);
                assert_eq!(JournalRecord::read_from(&flipped), None, "bit {at}");
            }
            bytes.extend(b"more");
            assert_eq!(JournalRecord::read_from(&bytes), Some((record, len)));
        }
        for (fences, len) in [(0, ERA_LEN - 4), (3, ERA_LEN)] {
            let mut bytes = Vec::new();
            era_of(fences).write_to(&mut bytes);
            assert_eq!(
                bytes.len(),
                len,
                "without a count as earlier versions write it"
            );
        }
        assert!(!JournalRecord::is_later(&[0; 64]));
        assert_eq!(
            JournalRecord::read_from(&[0; 64]),
            None,
            "what a loss of power may leave at the end of a file"
        );
    }
}
