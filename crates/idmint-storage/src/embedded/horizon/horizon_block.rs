//! Encodes and decodes one copy of the horizon, which is one block. A *pass* writes both copies of
//! the horizon, as `horizon_file` describes.
//!
//! All numbers are big-endian, so that they are easy to read in a hex dump:
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | `idmint-h` |
//! | 8..12 | version of this table: 2, or 3 once a fleet has adopted the node |
//! | 12..16 | slot |
//! | 16..24 | sequence number of the pass that wrote this copy |
//! | 24..32 | horizon, nanoseconds since 1970-01-01T00:00:00Z |
//! | 32..40 | floor at which the node began, nanoseconds since 1970; zero if it is not known |
//! | 40 | 1 once the records beside this file were created, else 0 |
//! | 41..4092 | zero |
//! | 4092..4096 | CRC-32C of everything before |
//!
//! Version 1 has zeros from byte 32 on, which mean "floor not known" and "records not created".
//! Version 3 has the same table as version 2. Its number makes programs that are too old to know
//! adoption refuse the file, even if the operator sets a floor.

use crate::embedded::block_file::{BLOCK_LEN, Block};
use idmint_core::time::UnixNanos;

const MAGIC: [u8; 8] = *b"idmint-h";
const VERSION: u32 = 2;
const VERSION_BEFORE: u32 = 1;
const VERSION_ADOPTED: u32 = 3;
const CHECKSUM_AT: usize = BLOCK_LEN - 4;

/// The content of one intact copy of the horizon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HorizonRecord {
    /// The slot whose ids are reserved up to the time `horizon`.
    pub(crate) slot: u32,
    /// The number of the pass that wrote this copy. Both copies have the same number once the pass
    /// is complete.
    pub(crate) sequence: u64,
    /// The horizon: the first instant for which no ids are reserved.
    pub(crate) horizon: UnixNanos,
    /// The floor: the time from which the node began to mint. Earlier ids may exist, even ids in
    /// the tick that contains the floor.
    pub(crate) floor: Option<UnixNanos>,
    /// `true` once the database in the same folder was created. If the database is missing later,
    /// it was lost.
    pub(crate) has_records: bool,
    /// `true` if a fleet is adopting the node, or has adopted it. The single node may then mint no
    /// more ids.
    pub(crate) is_adopted: bool,
}

/// The reason why a copy of the horizon cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CopyFault {
    /// The file ends before the copy does.
    #[error("the file ends before it")]
    CutOff,
    /// The disk returns an error when the copy is read.
    #[error("the disk cannot read it: {0}")]
    Unreadable(String),
    /// The checksum does not match the content.
    #[error("its checksum does not match")]
    WrongChecksum,
    /// The bytes are intact, but they are not a horizon.
    #[error("it is not a horizon")]
    NotAHorizon,
    /// The copy is intact, but its version number is not one that this program knows, so it cannot
    /// be decoded.
    #[error("it has version {0}, but this program reads version {VERSION_ADOPTED} and earlier")]
    UnknownVersion(u32),
    /// This copy is intact, but out of date. The newest pass wrote this copy first, but that write
    /// was lost. Only the later write, of the other copy, is on disk.
    #[error("its last write was lost: it has write {found}, but must have write {expected}")]
    WriteLost {
        /// The number of the newest pass, which this copy should have.
        expected: u64,
        /// The number of the earlier pass that wrote this copy.
        found: u64,
    },
}

impl HorizonRecord {
    /// Encodes one copy of the horizon as a block.
    pub(in crate::embedded) fn to_block(self) -> Block {
        let mut block = [0; BLOCK_LEN];
        block[0..8].copy_from_slice(&MAGIC);
        let version = if self.is_adopted {
            VERSION_ADOPTED
        } else {
            VERSION
        };
        block[8..12].copy_from_slice(&version.to_be_bytes());
        block[12..16].copy_from_slice(&self.slot.to_be_bytes());
        block[16..24].copy_from_slice(&self.sequence.to_be_bytes());
        block[24..32].copy_from_slice(&self.horizon.get().to_be_bytes());
        block[32..40].copy_from_slice(&self.floor.unwrap_or_default().get().to_be_bytes());
        block[40] = u8::from(self.has_records);
        let checksum = crc32c::crc32c(&block[..CHECKSUM_AT]);
        block[CHECKSUM_AT..].copy_from_slice(&checksum.to_be_bytes());
        block
    }

    /// Decodes one copy of the horizon, the time up to which ids may be minted.
    ///
    /// # Errors
    /// Returns [`CopyFault::WrongChecksum`], [`CopyFault::NotAHorizon`] or
    /// [`CopyFault::UnknownVersion`]. The three faults are checked in this order.
    pub(super) fn from_block(block: &Block) -> Result<HorizonRecord, CopyFault> {
        if crc32c::crc32c(&block[..CHECKSUM_AT]) != u32::from_be_bytes(bytes_at(block, CHECKSUM_AT))
        {
            return Err(CopyFault::WrongChecksum);
        }
        if bytes_at(block, 0) != MAGIC {
            return Err(CopyFault::NotAHorizon);
        }
        let version = u32::from_be_bytes(bytes_at(block, 8));
        if ![VERSION, VERSION_BEFORE, VERSION_ADOPTED].contains(&version) {
            return Err(CopyFault::UnknownVersion(version));
        }
        Ok(HorizonRecord {
            slot: u32::from_be_bytes(bytes_at(block, 12)),
            sequence: u64::from_be_bytes(bytes_at(block, 16)),
            horizon: UnixNanos::new(u64::from_be_bytes(bytes_at(block, 24))),
            floor: Some(UnixNanos::new(u64::from_be_bytes(bytes_at(block, 32))))
                .filter(|floor| floor.get() > 0),
            has_records: block[40] == 1,
            is_adopted: version == VERSION_ADOPTED,
        })
    }
}

fn bytes_at<const N: usize>(block: &Block, start: usize) -> [u8; N] {
    std::array::from_fn(|i| block[start + i])
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: HorizonRecord = HorizonRecord {
        slot: 7,
        sequence: 300,
        horizon: UnixNanos::new(1_700_000_000_123_456_789),
        floor: Some(UnixNanos::new(0x0102)),
        has_records: true,
        is_adopted: false,
    };

    fn with_version(version: u32) -> Block {
        let mut block = RECORD.to_block();
        block[8..12].copy_from_slice(&version.to_be_bytes());
        let checksum = crc32c::crc32c(&block[..CHECKSUM_AT]);
        block[CHECKSUM_AT..].copy_from_slice(&checksum.to_be_bytes());
        block
    }

    #[test]
    fn the_bytes_are_those_of_the_table_above() {
        let block = RECORD.to_block();
        assert_eq!(&block[..16], b"idmint-h\0\0\0\x02\0\0\0\x07");
        assert_eq!(
            &block[16..32],
            &[
                0, 0, 0, 0, 0, 0, 1, 0x2c, 0x17, 0x97, 0x9c, 0xfe, 0x3d, 0x85, 0xcd, 0x15
            ]
        );
        assert_eq!(&block[32..41], &[0, 0, 0, 0, 0, 0, 1, 2, 1]);
        assert!(block[41..CHECKSUM_AT].iter().all(|byte| *byte == 0));
        assert_eq!(HorizonRecord::from_block(&block), Ok(RECORD));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        for bit in 0..BLOCK_LEN * 8 {
            let mut block = RECORD.to_block();
            block[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                HorizonRecord::from_block(&block),
                Err(CopyFault::WrongChecksum),
                "bit {bit}"
            );
        }
    }

    #[test]
    fn a_block_of_zeros_is_no_horizon() {
        assert_eq!(
            HorizonRecord::from_block(&[0; BLOCK_LEN]),
            Err(CopyFault::WrongChecksum)
        );
    }

    #[test]
    fn another_version_is_told_from_damage() {
        assert_eq!(
            HorizonRecord::from_block(&with_version(4)),
            Err(CopyFault::UnknownVersion(4))
        );
        assert_eq!(HorizonRecord::from_block(&with_version(2)), Ok(RECORD));
    }

    #[test]
    fn the_horizon_of_an_adopted_node_has_a_version_that_earlier_programs_refuse() {
        let adopted = HorizonRecord {
            is_adopted: true,
            ..RECORD
        };
        assert_eq!(adopted.to_block(), with_version(3));
        assert_eq!(HorizonRecord::from_block(&with_version(3)), Ok(adopted));
    }

    #[test]
    fn the_version_before_is_read_as_one_that_knows_of_no_floor_and_no_records() {
        let mut block = with_version(1);
        block[32..41].fill(0);
        let checksum = crc32c::crc32c(&block[..CHECKSUM_AT]);
        block[CHECKSUM_AT..].copy_from_slice(&checksum.to_be_bytes());
        let before = HorizonRecord {
            floor: None,
            has_records: false,
            ..RECORD
        };
        assert_eq!(HorizonRecord::from_block(&block), Ok(before));
    }
}
