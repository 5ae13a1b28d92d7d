//! The commit mark: the number of the last commit that may have been acknowledged to a caller,
//! stored outside the database.
//!
//! A database that lacks its last commits looks intact. Commits are missing if an older copy is put
//! back, or if the end of the log is overwritten. Only a record outside the database can reveal the
//! loss. The commit mark is the third block of the horizon file. Its numbers are big-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | `idmint-c` |
//! | 8..12 | version of this table, 1 |
//! | 12..20 | number of the commit |
//! | 20..4092 | zero |
//! | 4092..4096 | CRC-32C of everything before |
//!
//! The mark is written after a commit is synced and before the commit is acknowledged, so it is
//! never ahead of the records. The mark is not synced when it is written, but with the next raise
//! of the horizon. After a power loss, the mark may therefore be a few seconds old.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tracing::warn;

use crate::embedded::block_file::{BLOCK_LEN, Block, BlockFile};

const MAGIC: [u8; 8] = *b"idmint-c";
const VERSION: u32 = 1;
const CHECKSUM_AT: usize = BLOCK_LEN - 4;
/// The index of the commit mark's block in the horizon file. Blocks 0 and 1 are the two copies of
/// the horizon.
const BLOCK: u64 = 2;

/// The number of the last commit of the database. It is stored in memory and in the horizon file,
/// outside the database, so that the loss of the last commits can be detected.
#[derive(Debug, Default)]
pub(crate) struct CommitMark {
    /// The file that also stores the commit number, or `None` if the store is only in memory.
    file: Option<Arc<dyn BlockFile>>,
    /// The number of the last synced commit, or 0 if it is not known.
    ///
    /// Written by: `raise`, called by one thread at a time. Read by: `number`. Ordering: `Relaxed`,
    /// because a thread that opens the records again has written to them itself, or has waited for
    /// the thread that did. Tested by: `records_that_lost_their_end_are_refused`.
    number: AtomicU64,
    /// `true` if the commit number must be written to the file again with the next commit, because
    /// its block in the file was damaged or missing.
    ///
    /// Written by: `read`, `raise`. Read by: `raise`. Ordering: `Relaxed`, for the same reason as
    /// `number`. Tested by: `a_number_is_found_again_and_never_lowered`.
    is_wanting: AtomicBool,
    /// `true` once a write of the commit number to the file has failed. The first failure is
    /// logged, and later failures are not.
    has_failed: AtomicBool,
}

impl CommitMark {
    /// Reads the mark from a horizon file. If the file is too short or the block is damaged, the
    /// number is unknown. This start then cannot detect that the last commits were lost.
    ///
    /// # Errors
    /// Returns the version of an intact mark that a later version of this program has written.
    pub(in crate::embedded) fn read(file: Arc<dyn BlockFile>) -> Result<CommitMark, u32> {
        let number = match file.read_block(BLOCK) {
            Ok(block) => {
                if let Some(version) = later_version(&block) {
                    return Err(version);
                }
                let number = number_in(&block);
                if number.is_none() {
                    warn!(
                        "the commit number in the horizon file is damaged, so this start cannot detect whether the \
                         last records were lost; check the disk"
                    );
                }
                number
            }
            // The file has no third block, which has the number of the last commit, because an
            // earlier version of this program wrote the file.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => {
                warn!(
                    "the commit number in the horizon file cannot be read, so this start cannot detect whether the \
                     last records were lost: {error}"
                );
                None
            }
        };
        let is_wanting = AtomicBool::new(number.is_none());
        Ok(CommitMark {
            file: Some(file),
            number: number.unwrap_or(0).into(),
            is_wanting,
            has_failed: AtomicBool::default(),
        })
    }

    /// Returns the number of the last commit that may have been acknowledged, or 0 if it is not
    /// known.
    pub(crate) fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// Records that commit `number` was synced. If the number has not changed, the block is written
    /// only if it was damaged or missing in the file.
    ///
    /// A failed write is logged once, and commits continue. Commits are as durable as before, but
    /// the next start may not detect that the last ones were lost.
    pub(crate) fn raise(&self, number: u64) {
        let is_known = self.number.fetch_max(number, Ordering::Relaxed) >= number;
        let is_wanting = self.is_wanting.swap(false, Ordering::Relaxed);
        let Some(file) = self.file.as_ref().filter(|_| is_wanting || !is_known) else {
            return;
        };
        if let Err(error) = file.write_block(BLOCK, &to_block(self.number()))
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            warn!(
                "cannot write the number of the last commit to the horizon file, so the next start cannot \
                 detect whether records were lost: {error}; check the disk"
            );
        }
    }
}

/// Returns the block that records `number`.
pub(crate) fn to_block(number: u64) -> Block {
    let mut block = [0; BLOCK_LEN];
    block[0..8].copy_from_slice(&MAGIC);
    block[8..12].copy_from_slice(&VERSION.to_be_bytes());
    block[12..20].copy_from_slice(&number.to_be_bytes());
    let checksum = crc32c::crc32c(&block[..CHECKSUM_AT]);
    block[CHECKSUM_AT..].copy_from_slice(&checksum.to_be_bytes());
    block
}

/// Returns the commit number in a block, or `None` if the block is not exactly what [`to_block`]
/// encodes for a commit number.
fn number_in(block: &Block) -> Option<u64> {
    let number = u64::from_be_bytes(block[12..20].try_into().expect("eight bytes"));
    (*block == to_block(number)).then_some(number)
}

/// Returns the version number in a block if the block is an intact commit mark that a later version
/// of this program has written, and otherwise `None`.
fn later_version(block: &Block) -> Option<u32> {
    let (content, crc) = block.split_last_chunk()?;
    let version = u32::from_be_bytes(*block[8..].first_chunk()?);
    let is_whole = crc32c::crc32c(content) == u32::from_be_bytes(*crc);
    (is_whole && block.starts_with(&MAGIC) && version > VERSION).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::simulation::{Fault, SimulatedDisk};

    const EIO: i32 = 5;

    fn disk() -> Arc<SimulatedDisk> {
        Arc::new(SimulatedDisk::holding(&[[0; BLOCK_LEN]; 2], 1).without_garbage())
    }

    fn read(disk: &Arc<SimulatedDisk>) -> CommitMark {
        CommitMark::read(Arc::clone(disk) as Arc<dyn BlockFile>).expect("no later version")
    }

    #[test]
    fn the_bytes_are_those_of_the_table_above_and_any_flip_says_nothing() {
        let block = to_block(0x0102);
        assert_eq!(&block[..20], b"idmint-c\0\0\0\x01\0\0\0\0\0\0\x01\x02");
        assert_eq!(number_in(&block), Some(0x0102));
        for bit in 0..BLOCK_LEN * 8 {
            let mut flipped = block;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(number_in(&flipped), None, "bit {bit}");
        }
        assert_eq!(number_in(&[0; BLOCK_LEN]), None);
    }

    #[test]
    fn a_number_is_found_again_and_never_lowered() {
        let disk = disk();
        let mark = read(&disk);
        assert_eq!(mark.number(), 0, "a file of two blocks has none");
        mark.raise(7);
        mark.raise(5);
        assert_eq!((mark.number(), read(&disk).number()), (7, 7));
        disk.write_block(BLOCK, &[9; BLOCK_LEN])
            .expect("the disk works");
        assert_eq!(read(&disk).number(), 0);
        let (mark, before) = (read(&disk), disk.operations());
        mark.raise(0);
        mark.raise(0);
        assert_eq!(
            (read(&disk).number(), disk.operations() - before),
            (0, 1),
            "made anew, once"
        );
    }

    #[test]
    fn a_mark_of_a_later_version_is_not_taken_for_a_damaged_one() {
        let mut block = to_block(7);
        block[11] = 2;
        let checksum = crc32c::crc32c(&block[..CHECKSUM_AT]);
        block[CHECKSUM_AT..].copy_from_slice(&checksum.to_be_bytes());
        let disk = disk();
        disk.write_block(BLOCK, &block).expect("the disk works");
        let read = || CommitMark::read(Arc::clone(&disk) as Arc<dyn BlockFile>);
        assert_eq!(read().expect_err("it has version 2"), 2);
        block[12] ^= 1;
        disk.write_block(BLOCK, &block).expect("the disk works");
        assert_eq!(read().expect("it is damaged").number(), 0);
    }

    #[test]
    fn where_the_disk_refuses_commits_go_on() {
        let disk = disk();
        let mark = read(&disk);
        mark.raise(1);
        disk.fail_after(0, Fault::Error(EIO));
        mark.raise(2);
        mark.raise(3);
        assert_eq!(
            (mark.number(), read(&disk).number()),
            (3, 3),
            "one write failed, the next one did not"
        );
    }
}
