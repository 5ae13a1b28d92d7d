//! A file of fixed-size blocks, with the disk operations that the horizon and the database need.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// The size of a block in bytes. A block is one page of 4 KiB, so a write of one block never
/// changes the next block.
pub(crate) const BLOCK_LEN: usize = 4096;

/// The content of one block.
pub(crate) type Block = [u8; BLOCK_LEN];

/// Splits the `len` bytes from `offset` at the block boundaries of a file. Returns the index of
/// each block, and the range of the bytes within that block.
pub(crate) fn blocks(offset: u64, len: usize) -> impl Iterator<Item = (u64, Range<usize>)> {
    let block_len = u64::try_from(BLOCK_LEN).expect("small");
    let mut at = offset;
    let end = offset + u64::try_from(len).expect("a length fits 64 bits");
    std::iter::from_fn(move || {
        let index = at / block_len;
        let from = usize::try_from(at % block_len).expect("small");
        let left = usize::try_from(end - at).expect("no more than len");
        let to = (from + left).min(BLOCK_LEN);
        at = (index + 1) * block_len;
        at = at.min(end);
        (left > 0).then_some((index, from..to))
    })
}

/// A file that is read, overwritten and synced in whole blocks.
///
/// Written data is certain to be on disk only after [`sync`](Self::sync) returns `Ok`. If a write
/// or sync fails, the content of the written blocks is unknown. A later successful sync does not
/// change that, because the kernel may have dropped the data and forgotten the error.
pub(crate) trait BlockFile: Debug + Send + Sync {
    /// Returns the number of complete blocks in the file. An incomplete last block does not count.
    ///
    /// # Errors
    /// Returns any error of the disk.
    fn len_in_blocks(&self) -> io::Result<u64>;

    /// Truncates the file to `len` blocks, or extends it with zeros. The new length is certain only
    /// after the next sync, like written data.
    ///
    /// # Errors
    /// Returns any error of the disk. The length is then unchanged.
    fn set_len_in_blocks(&self, len: u64) -> io::Result<()>;

    /// Reads block `index`, counted from 0.
    ///
    /// # Errors
    /// Returns [`io::ErrorKind::UnexpectedEof`] if the file ends before the block does, or any
    /// other error of the disk.
    fn read_block(&self, index: u64) -> io::Result<Block>;

    /// Overwrites block `index`, counted from 0. If the file is shorter, it is extended.
    ///
    /// # Errors
    /// Returns any error of the disk. The block may then have the old bytes, the new bytes or a
    /// mixture of both.
    fn write_block(&self, index: u64, block: &Block) -> io::Result<()>;

    /// Syncs the file. Every block written so far survives a power loss once this method returns.
    ///
    /// # Errors
    /// Returns any error of the disk. After a failure, the content of the written blocks is
    /// unknown, even if a later sync succeeds.
    fn sync(&self) -> io::Result<()>;
}

impl BlockFile for File {
    fn len_in_blocks(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len() / offset_of(1))
    }

    fn set_len_in_blocks(&self, len: u64) -> io::Result<()> {
        self.set_len(offset_of(len))
    }

    fn read_block(&self, index: u64) -> io::Result<Block> {
        let mut block = [0; BLOCK_LEN];
        self.read_exact_at(&mut block, offset_of(index))?;
        Ok(block)
    }

    fn write_block(&self, index: u64, block: &Block) -> io::Result<()> {
        self.write_all_at(block, offset_of(index))
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

impl<F: BlockFile + ?Sized> BlockFile for &F {
    fn len_in_blocks(&self) -> io::Result<u64> {
        (**self).len_in_blocks()
    }

    fn set_len_in_blocks(&self, len: u64) -> io::Result<()> {
        (**self).set_len_in_blocks(len)
    }

    fn read_block(&self, index: u64) -> io::Result<Block> {
        (**self).read_block(index)
    }

    fn write_block(&self, index: u64, block: &Block) -> io::Result<()> {
        (**self).write_block(index, block)
    }

    fn sync(&self) -> io::Result<()> {
        (**self).sync()
    }
}

fn offset_of(index: u64) -> u64 {
    // 4096 is `BLOCK_LEN` as a `u64`.
    index * 4096
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_reads_back_and_its_neighbour_is_left_alone() {
        let file = tempfile::tempfile().expect("a temporary file");
        file.write_block(0, &[1; BLOCK_LEN])
            .expect("block 0 is written");
        file.write_block(1, &[2; BLOCK_LEN])
            .expect("block 1 is written");
        file.write_block(0, &[3; BLOCK_LEN])
            .expect("block 0 is overwritten");

        assert_eq!(file.read_block(0).expect("block 0"), [3; BLOCK_LEN]);
        assert_eq!(file.read_block(1).expect("block 1"), [2; BLOCK_LEN]);
    }

    #[test]
    fn a_block_cut_short_is_an_unexpected_end() {
        let file = tempfile::tempfile().expect("a temporary file");
        file.set_len(4095).expect("the length is set");

        let error = file.read_block(0).expect_err("the block is one byte short");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
