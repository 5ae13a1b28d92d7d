//! A file that refuses all later writes and syncs after a write or sync has failed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::embedded::block_file::{Block, BlockFile};

/// A file that refuses every write and sync after the first error.
///
/// After an error, the content of the file is uncertain. A failed sync may have dropped pages that
/// the engine or the log considers stored, and a later sync would report success all the same. So
/// nothing is written until the file is opened and read again.
#[derive(Debug)]
pub(super) struct HaltingFile {
    file: Arc<dyn BlockFile>,
    /// `true` once a write or sync has failed. Written by: `keep`. Read by: `check`. Tested by:
    /// `after_an_error_nothing_is_written`.
    has_failed: AtomicBool,
}

impl HaltingFile {
    /// Returns a wrapper around `file`, which has not failed yet.
    pub(super) fn new(file: Arc<dyn BlockFile>) -> HaltingFile {
        HaltingFile {
            file,
            has_failed: AtomicBool::new(false),
        }
    }

    fn check(&self) -> io::Result<()> {
        match self.has_failed.load(Ordering::Acquire) {
            true => Err(io::Error::other(
                "an earlier write or sync of this file has failed",
            )),
            false => Ok(()),
        }
    }

    fn keep<T>(&self, done: io::Result<T>) -> io::Result<T> {
        done.inspect_err(|_| self.has_failed.store(true, Ordering::Release))
    }
}

impl BlockFile for HaltingFile {
    fn len_in_blocks(&self) -> io::Result<u64> {
        self.file.len_in_blocks()
    }

    fn set_len_in_blocks(&self, len: u64) -> io::Result<()> {
        self.check()?;
        self.keep(self.file.set_len_in_blocks(len))
    }

    fn read_block(&self, index: u64) -> io::Result<Block> {
        self.file.read_block(index)
    }

    fn write_block(&self, index: u64, block: &Block) -> io::Result<()> {
        self.check()?;
        self.keep(self.file.write_block(index, block))
    }

    fn sync(&self) -> io::Result<()> {
        self.check()?;
        self.keep(self.file.sync())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::block_file::BLOCK_LEN;
    use crate::embedded::simulation::{Fault, SimulatedDisk};

    #[test]
    fn after_an_error_nothing_is_written() {
        let disk = Arc::new(SimulatedDisk::holding(&[[1; BLOCK_LEN]], 1));
        let file = HaltingFile::new(Arc::clone(&disk) as Arc<dyn BlockFile>);
        file.write_block(0, &[2; BLOCK_LEN]).expect("it works");
        disk.fail_after(0, Fault::Error(5));
        file.sync().expect_err("the disk has failed");
        let done = disk.operations();
        file.write_block(0, &[3; BLOCK_LEN])
            .expect_err("it has failed before");
        file.set_len_in_blocks(2).expect_err("it has failed before");
        let error = file.sync().expect_err("it has failed before");
        assert!(error.to_string().contains("earlier"), "{error}");
        assert_eq!(
            (disk.operations(), file.read_block(0).expect("reads go on")),
            (done, [2; BLOCK_LEN])
        );
    }
}
