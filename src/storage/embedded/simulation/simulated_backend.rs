//! A database on a simulated disk, so that it can lose its power too.
//!
//! Its pages are the blocks of a [`SimulatedDisk`]: each is written, torn and lost on its own. A byte of a write that was
//! cut off is the old one or the new one, which is what the engine asks of a disk.

use std::io;
use std::sync::Arc;

use super::simulated_disk::SimulatedDisk;
use crate::storage::embedded::block_file::{BLOCK_LEN, BlockFile, blocks};
use crate::storage::embedded::tables::{Database, RecordTables};
use crate::storage::records::Records;
use crate::storage::store_error::StoreError;

/// One database on a disk. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedBackend {
    disk: Arc<SimulatedDisk>,
}

impl SimulatedBackend {
    /// An empty disk, whose misfortunes follow from `seed`.
    pub(crate) fn new(seed: u64) -> SimulatedBackend {
        SimulatedBackend { disk: Arc::new(SimulatedDisk::holding(&[], seed).without_garbage()) }
    }

    /// The records in it, which are made new if it is empty.
    pub(crate) fn open_records(&self) -> Result<Records, StoreError> {
        let backend = self.clone();
        let database = Database::over(move || backend.clone())?;
        Ok(Arc::new(RecordTables::open(Arc::new(database))?))
    }

    /// The disk that it is on.
    pub(crate) fn disk(&self) -> &SimulatedDisk {
        &self.disk
    }
}

impl redb::StorageBackend for SimulatedBackend {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.len_in_blocks()? * u64::try_from(BLOCK_LEN).expect("small"))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        for (index, bytes) in blocks(offset, out.len()) {
            let len = bytes.len();
            out[done..done + len].copy_from_slice(&self.disk.read_block(index)?[bytes]);
            done += len;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let block_len = u64::try_from(BLOCK_LEN).expect("small");
        assert!(len.is_multiple_of(block_len), "the engine has pages of {block_len} bytes, not {len} in all");
        self.disk.set_len_in_blocks(len / block_len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut done = 0;
        for (index, bytes) in blocks(offset, data.len()) {
            let len = bytes.len();
            // Only a write of less than a block needs to know the rest of it.
            let mut block = if len == BLOCK_LEN { [0; BLOCK_LEN] } else { self.disk.read_block(index)? };
            block[bytes].copy_from_slice(&data[done..done + len]);
            self.disk.write_block(index, &block)?;
            done += len;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use redb::StorageBackend;

    use super::*;

    #[test]
    fn bytes_are_read_as_they_were_written_across_blocks() {
        let backend = SimulatedBackend::new(1);
        backend.set_len(3 * 4096).expect("the disk works");
        let data: Vec<u8> = (0..=255).cycle().take(5_000).collect();
        backend.write(4_000, &data).expect("the disk works");
        let mut read = vec![9; 5_002];
        backend.read(3_999, &mut read).expect("the disk works");
        assert_eq!((read[0], &read[1..5_001], read[5_001]), (0, data.as_slice(), 0));
        assert_eq!(backend.len().expect("the disk works"), 3 * 4096);
        backend.read(3 * 4096 - 1, &mut [0; 2]).expect_err("the file ends");
    }
}
