//! A file that refuses all later writes and syncs after a write or sync has failed.

use std::io;
use std::sync::{Arc, OnceLock};

use crate::embedded::block_file::{Block, BlockFile};

/// A file that refuses every write and sync after the first error.
///
/// After an error, the content of the file is uncertain. A failed sync may have dropped pages that
/// the engine or the log considers stored, and a later sync would report success all the same. So
/// all writes are refused until the file is opened and read again.
#[derive(Debug)]
pub(in crate::embedded) struct HaltingFile {
    file: Arc<dyn BlockFile>,
    /// The kind of the first error of a write or sync. The kind distinguishes a full disk from a
    /// broken one, even if the engine has dropped the error itself. Tested by:
    /// `after_an_error_nothing_is_written`.
    first_error: OnceLock<io::ErrorKind>,
}

impl HaltingFile {
    /// Returns a wrapper around `file`, which has not failed yet.
    pub(super) fn new(file: Arc<dyn BlockFile>) -> HaltingFile {
        HaltingFile {
            file,
            first_error: OnceLock::new(),
        }
    }

    /// Checks that no write or sync has failed.
    ///
    /// # Errors
    /// Returns an error of the same kind as the first error of a write or sync.
    pub(in crate::embedded) fn check(&self) -> io::Result<()> {
        self.first_error.get().map_or(Ok(()), |kind| {
            let what = format!("an earlier write or sync of this file has failed: {kind}");
            Err(io::Error::new(*kind, what))
        })
    }

    fn keep<T>(&self, done: io::Result<T>) -> io::Result<T> {
        done.inspect_err(|error| {
            let _ = self.first_error.set(error.kind());
        })
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
    use crate::failure::FailureKind;

    /// The error codes of Linux for a broken disk and a full disk.
    const EIO: i32 = 5;
    const ENOSPC: i32 = 28;

    #[test]
    fn later_errors_tell_a_full_disk_from_a_broken_one() {
        for (code, kind) in [(EIO, FailureKind::NotUsable), (ENOSPC, FailureKind::Full)] {
            let disk = Arc::new(SimulatedDisk::holding(&[[1; BLOCK_LEN]], 1));
            let file = HaltingFile::new(Arc::clone(&disk) as Arc<dyn BlockFile>);
            disk.fail_after(0, Fault::Error(code));
            // Drop the error, as the engine does if a write only makes room in its cache.
            let _ = file.write_block(0, &[2; BLOCK_LEN]);
            let error = file.sync().expect_err("it has failed before");
            assert_eq!(FailureKind::of_io(&error), kind, "{error}");
        }
    }

    #[test]
    fn after_an_error_nothing_is_written() {
        let disk = Arc::new(SimulatedDisk::holding(&[[1; BLOCK_LEN]], 1));
        let file = HaltingFile::new(Arc::clone(&disk) as Arc<dyn BlockFile>);
        file.write_block(0, &[2; BLOCK_LEN]).expect("it works");
        disk.fail_after(0, Fault::Error(EIO));
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
