//! A view of a file that can be written without changing the file.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, io};

use redb::StorageBackend;

use crate::embedded::block_file::{BLOCK_LEN, Block, blocks};

/// [`BLOCK_LEN`], the size of a block in bytes, as a `u64` for file lengths.
const BLOCK_BYTES: u64 = 4096;

/// A view of the file `base`. Blocks that are written to the view exist only in memory. All other
/// blocks are read from the file.
pub(super) struct FileView {
    base: Arc<dyn StorageBackend>,
    base_len: u64,
    written: Mutex<Written>,
}

struct Written {
    len: u64,
    /// The blocks that were written to this view, by block index.
    blocks: BTreeMap<u64, Block>,
}

impl FileView {
    /// Returns a view of the unchanged content of `base`.
    pub(super) fn of(base: Arc<dyn StorageBackend>) -> io::Result<FileView> {
        let base_len = base.len()?;
        Ok(FileView {
            base,
            base_len,
            written: Mutex::new(Written {
                len: base_len,
                blocks: BTreeMap::new(),
            }),
        })
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        // A thread that panics while holding the lock leaves only complete blocks, so the lock can
        // be used even if it is poisoned.
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn block(&self, written: &Written, index: u64) -> io::Result<Block> {
        if let Some(block) = written.blocks.get(&index) {
            return Ok(*block);
        }
        let mut block = [0; BLOCK_LEN];
        let at = index * BLOCK_BYTES;
        let there = self.base_len.saturating_sub(at).min(BLOCK_BYTES);
        self.base.read(
            at,
            &mut block[..usize::try_from(there).map_err(io::Error::other)?],
        )?;
        Ok(block)
    }
}

impl fmt::Debug for FileView {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("FileView").field(&self.base).finish()
    }
}

impl StorageBackend for FileView {
    fn len(&self) -> io::Result<u64> {
        Ok(self.written().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let written = self.written();
        let end = u64::try_from(out.len())
            .ok()
            .and_then(|len| offset.checked_add(len));
        let end = end
            .filter(|end| *end <= written.len)
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        let has_written = written
            .blocks
            .range(offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES))
            .next()
            .is_some();
        if !has_written && end <= self.base_len {
            drop(written);
            return self.base.read(offset, out);
        }
        let mut done = 0;
        for (index, bytes) in blocks(offset, out.len()) {
            let len = bytes.len();
            out[done..done + len].copy_from_slice(&self.block(&written, index)?[bytes]);
            done += len;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut written = self.written();
        // Truncated bytes must be zeros if the file grows again.
        let cut = len.div_ceil(BLOCK_BYTES)..written.len.max(self.base_len).div_ceil(BLOCK_BYTES);
        written
            .blocks
            .extend(cut.map(|index| (index, [0; BLOCK_LEN])));
        written.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut written = self.written();
        let mut done = 0;
        for (index, bytes) in blocks(offset, data.len()) {
            let len = bytes.len();
            let mut block = self.block(&written, index)?;
            block[bytes].copy_from_slice(&data[done..done + len]);
            written.blocks.insert(index, block);
            done += len;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_and_cut_is_seen_in_the_view_and_the_file_stays_as_it_was() {
        let base: Arc<dyn StorageBackend> = Arc::new(redb::backends::InMemoryBackend::new());
        let whole: Vec<u8> = (0..=250).cycle().take(3 * BLOCK_LEN).collect();
        base.set_len(BLOCK_BYTES * 3)
            .and_then(|()| base.write(0, &whole))
            .expect("writes");
        let view = FileView::of(Arc::clone(&base)).expect("opens");

        view.write(4_000, &[255; 200]).expect("writes");
        let mut expected = whole.clone();
        expected[4_000..4_200].fill(255);
        let mut read = vec![0; whole.len()];
        view.read(0, &mut read).expect("reads");
        assert_eq!(read, expected);
        view.read(BLOCK_BYTES * 3 - 1, &mut [0; 2])
            .expect_err("the view ends there");

        view.set_len(BLOCK_BYTES).expect("cuts");
        view.set_len(BLOCK_BYTES * 4).expect("grows");
        expected.truncate(BLOCK_LEN);
        expected.resize(4 * BLOCK_LEN, 0);
        read.resize(4 * BLOCK_LEN, 1);
        view.read(0, &mut read).expect("reads");
        assert_eq!(read, expected);

        let mut of_base = vec![0; whole.len()];
        base.read(0, &mut of_base).expect("reads");
        assert_eq!(
            (of_base, base.len().expect("has a length")),
            (whole, BLOCK_BYTES * 3)
        );
    }
}
