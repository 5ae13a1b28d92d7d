//! A file whose writes stay in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::block_file::{BLOCK_LEN, Block, BlockFile};

/// A file that is never changed. Written blocks are kept in memory, and later reads return them.
#[derive(Debug)]
pub(super) struct OverlayFile {
    file: File,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    blocks: BTreeMap<u64, Box<Block>>,
    len: u64,
}

impl OverlayFile {
    /// Opens the file at `path` for reading.
    ///
    /// # Errors
    /// Returns any error of the system.
    pub(super) fn open(path: &Path) -> io::Result<OverlayFile> {
        let file = File::open(path)?;
        let len = file.len_in_blocks()?;
        let blocks = BTreeMap::new();
        Ok(OverlayFile {
            file,
            written: Mutex::new(Written { blocks, len }),
        })
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BlockFile for OverlayFile {
    fn len_in_blocks(&self) -> io::Result<u64> {
        Ok(self.written().len)
    }

    fn set_len_in_blocks(&self, len: u64) -> io::Result<()> {
        let mut written = self.written();
        // If the file is shortened and later extended again, the new blocks must contain zeros
        // instead of their old content.
        for index in written.len.min(len)..written.len {
            written.blocks.insert(index, Box::new([0; BLOCK_LEN]));
        }
        written.len = len;
        Ok(())
    }

    fn read_block(&self, index: u64) -> io::Result<Block> {
        let written = self.written();
        if index >= written.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(block) = written.blocks.get(&index) {
            return Ok(**block);
        }
        match self.file.read_block(index) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok([0; BLOCK_LEN]),
            read => read,
        }
    }

    fn write_block(&self, index: u64, block: &Block) -> io::Result<()> {
        let mut written = self.written();
        written.blocks.insert(index, Box::new(*block));
        written.len = written.len.max(index + 1);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_read_back_and_do_not_reach_the_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("file");
        let content = [[1; BLOCK_LEN], [2; BLOCK_LEN]].concat();
        std::fs::write(&path, &content).expect("the file is written");

        let overlay = OverlayFile::open(&path).expect("the file is readable");
        overlay.write_block(1, &[3; BLOCK_LEN]).expect("in memory");
        overlay.write_block(3, &[4; BLOCK_LEN]).expect("in memory");
        let first = |index| overlay.read_block(index).map(|block| block[0]);
        let read: Vec<u8> = (0..4).map(|index| first(index).expect("a block")).collect();
        assert_eq!(read, [1, 3, 0, 4]);
        assert_eq!(
            first(4).expect_err("behind the end").kind(),
            io::ErrorKind::UnexpectedEof
        );
        overlay.set_len_in_blocks(1).expect("in memory");
        overlay.set_len_in_blocks(2).expect("in memory");
        assert_eq!(first(1).expect("a new block"), 0);
        assert_eq!(std::fs::read(&path).expect("the file"), content);
    }
}
