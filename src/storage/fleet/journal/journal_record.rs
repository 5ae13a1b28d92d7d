//! Records of a journal as bytes. Each says by a checksum that it is what was written.
//!
//! Integers are big-endian.
//!
//! ```text
//! record     length of the content 4, CRC-32C of length and content 4, content
//! content    version 1, kind 1, then
//! era        origin of the fleet 16, floor in nanoseconds 8: what follows was committed in it
//! row        length of the key 2, key, value
//! ```

use crate::storage::fleet::known_fleet::FleetEra;
use crate::time::UnixNanos;

const VERSION: u8 = 1;
const ERA: u8 = 1;
const ROW: u8 = 2;
const FRAME_LEN: usize = 8;

/// How long an era is as a record.
pub(super) const ERA_LEN: usize = FRAME_LEN + 2 + 16 + 8;

/// A record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JournalRecord<'a> {
    /// What follows was committed in this era.
    Era(FleetEra),
    /// A row as it was committed.
    Row { key: &'a str, value: &'a [u8] },
}

impl<'a> JournalRecord<'a> {
    /// Puts it at the end of these bytes.
    pub(super) fn write_to(&self, bytes: &mut Vec<u8>) {
        let mut content = vec![VERSION];
        match self {
            JournalRecord::Era(FleetEra { origin, floor }) => {
                content.push(ERA);
                content.extend(origin.to_be_bytes());
                content.extend(floor.get().to_be_bytes());
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

    /// The record that these bytes begin with, and how long it is; `None` when that is not what was written.
    pub(super) fn read_from(bytes: &'a [u8]) -> Option<(JournalRecord<'a>, usize)> {
        let (len, rest) = bytes.split_first_chunk()?;
        let (crc, rest) = rest.split_first_chunk()?;
        let content = rest.get(..usize::try_from(u32::from_be_bytes(*len)).ok()?)?;
        if crc_of(*len, content) != u32::from_be_bytes(*crc) {
            return None;
        }
        let record = match content.split_at_checked(2)? {
            ([VERSION, ERA], era) => {
                let (origin, floor) = era.split_first_chunk()?;
                let floor = UnixNanos::new(u64::from_be_bytes(floor.try_into().ok()?));
                JournalRecord::Era(FleetEra {
                    origin: u128::from_be_bytes(*origin),
                    floor,
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

fn crc_of(len: [u8; 4], content: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&len), content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written_and_only_whole() {
        let era = JournalRecord::Era(FleetEra {
            origin: 7,
            floor: UnixNanos::from_seconds(9),
        });
        for record in [
            era,
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
        let mut bytes = Vec::new();
        era.write_to(&mut bytes);
        assert_eq!(bytes.len(), ERA_LEN);
        assert_eq!(
            JournalRecord::read_from(&[0; 64]),
            None,
            "what a loss of power may leave at the end of a file"
        );
    }
}
