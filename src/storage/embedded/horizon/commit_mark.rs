//! The number of the last commit of the records that callers may have been told of, in a file that is not the records' own.
//!
//! Records whose end is gone look like records that never had it: an older copy put back, a log whose last commits were
//! overwritten. Only something outside can tell. This is the third block of the horizon's file; its numbers are big-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `idmint-c` |
//! | 8..12 | version of this table, 1 |
//! | 12..20 | number of the commit |
//! | 20..4092 | zero |
//! | 4092..4096 | CRC-32C of everything before |
//!
//! It is written after a commit is synced and before anybody is told of it, and not synced by itself: each raise of the horizon
//! does that. So it is never ahead of the records, and after a loss of power a few seconds behind them at most.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tracing::warn;

use crate::storage::embedded::block_file::{BLOCK_LEN, Block, BlockFile};

const MAGIC: [u8; 8] = *b"idmint-c";
const VERSION: u32 = 1;
const CHECKSUM_AT: usize = BLOCK_LEN - 4;
/// Behind the copies of the horizon.
const BLOCK: u64 = 2;

/// Where the last commit is noted.
#[derive(Debug, Default)]
pub(crate) struct CommitMark {
    /// `None` where nothing outlasts the process.
    file: Option<Arc<dyn BlockFile>>,
    /// Written by: `raise`, which one thread at a time calls. Read by: `number`. Ordering: `Relaxed`, as whoever opens records
    /// again has written to them, or waited for whoever has.
    /// Tested by: `records_that_lost_their_end_are_refused`.
    number: AtomicU64,
    /// Whether the file does not say the number: its block was damaged, or not there.
    /// Written by: `read`, `raise`. Read by: `raise`. Ordering: `Relaxed`, as above.
    /// Tested by: `a_number_is_found_again_and_never_lowered`.
    is_wanting: AtomicBool,
    /// Whether the disk has refused; it is said once.
    has_failed: AtomicBool,
}

impl CommitMark {
    /// What the file of a horizon says. One that is too short or damaged says nothing: the records are then as they are.
    pub(super) fn read(file: Arc<dyn BlockFile>) -> CommitMark {
        let number = match file.read_block(BLOCK) {
            Ok(block) => {
                let number = number_in(&block);
                if number.is_none() {
                    warn!(
                        "the third block of the horizon is damaged: whether records have lost their end is not known"
                    );
                }
                number
            }
            // Of an earlier version, which had two blocks.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => {
                warn!("the third block of the horizon cannot be read: {error}");
                None
            }
        };
        let is_wanting = AtomicBool::new(number.is_none());
        CommitMark {
            file: Some(file),
            number: number.unwrap_or(0).into(),
            is_wanting,
            has_failed: AtomicBool::default(),
        }
    }

    /// The last commit that callers may have been told of; 0 if that is not known.
    pub(crate) fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// Notes that the commit of this number is synced. The same number again is written where it could not be read.
    ///
    /// Where the disk refuses, it is said once and commits go on: they are as durable as before, and less guarded.
    pub(crate) fn raise(&self, number: u64) {
        let is_known = self.number.fetch_max(number, Ordering::Relaxed) >= number;
        let is_wanting = self.is_wanting.swap(false, Ordering::Relaxed);
        let Some(file) = self.file.as_ref().filter(|_| is_wanting || !is_known) else {
            return;
        };
        if let Err(error) = file.write_block(BLOCK, &to_block(self.number()))
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            warn!("the last commit cannot be noted beside the horizon: {error}; see to the disk");
        }
    }
}

/// The block that notes this number.
pub(crate) fn to_block(number: u64) -> Block {
    let mut block = [0; BLOCK_LEN];
    block[0..8].copy_from_slice(&MAGIC);
    block[8..12].copy_from_slice(&VERSION.to_be_bytes());
    block[12..20].copy_from_slice(&number.to_be_bytes());
    let checksum = crc32c::crc32c(&block[..CHECKSUM_AT]);
    block[CHECKSUM_AT..].copy_from_slice(&checksum.to_be_bytes());
    block
}

/// The number that a block notes; `None` unless it is what [`to_block`] makes.
fn number_in(block: &Block) -> Option<u64> {
    let number = u64::from_be_bytes(block[12..20].try_into().expect("eight bytes"));
    (*block == to_block(number)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::embedded::simulation::{Fault, SimulatedDisk};

    const EIO: i32 = 5;

    fn disk() -> Arc<SimulatedDisk> {
        Arc::new(SimulatedDisk::holding(&[[0; BLOCK_LEN]; 2], 1).without_garbage())
    }

    fn read(disk: &Arc<SimulatedDisk>) -> CommitMark {
        CommitMark::read(Arc::clone(disk) as Arc<dyn BlockFile>)
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
