//! The layout of a database file, in blocks of 4 KiB:
//!
//! ```text
//! 0        head: magic, version, and the length L of the log
//! 1        two checksums of the engine's first page (synced and current); one of them matches
//! 2        the log, L blocks
//! 2 + L    groups: a block of 1 024 checksums, then the 1 024 pages that they belong to
//! ```

use std::io;

use crate::embedded::block_file::{BLOCK_LEN, Block};

/// The first bytes of a database file.
const MAGIC: [u8; 8] = *b"idmintdb";
/// The first bytes of an old database file, which the engine wrote directly because the commit log
/// did not exist yet.
const MAGIC_OF_ENGINE: [u8; 4] = *b"redb";
const VERSION: u32 = 1;
/// The total length, in bytes, of the fields in the first block of the file. The fields are the
/// magic, the version and the log length. A CRC-32C over these bytes follows.
const HEAD_LEN: usize = 16;

pub(super) const HEAD_BLOCK: u64 = 0;
pub(super) const FIRST_PAGE_SUMS_BLOCK: u64 = 1;
const LOG_BLOCK: u64 = 2;

/// The number of pages in a group. The checksums of a group are stored in one block before its
/// pages.
pub(super) const GROUP_LEN: u64 = 1_024;

/// The error of a database file that is intact but cannot be read, because another version of this
/// program wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OtherLayout {
    /// A build before commit a157b41 wrote the file. The layout of such files lacks the log or one
    /// of the tables.
    #[error(
        "was last written by a build before a157b41: start a build of a157b41 once, which converts the database, then \
         start this build"
    )]
    Earlier,
    /// The layout of a later version of this program.
    #[error(
        "has layout {0}, but this program reads layout {VERSION}: start the version that wrote it, or a later one"
    )]
    Later(u32),
    /// A later version of this program wrote a table or a row that this version does not know.
    #[error(
        "was written by a later version of this program ({0}): start that version and end it with SIGTERM, then start \
         this one; if this version still exits with code 78, use only that version or a later one with the folder"
    )]
    LaterContent(String),
}

impl From<OtherLayout> for redb::Error {
    fn from(layout: OtherLayout) -> redb::Error {
        io::Error::new(io::ErrorKind::InvalidData, layout).into()
    }
}

/// The layout of one database file, which determines the position of each block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    log_len: u32,
}

impl Layout {
    /// Returns the layout of a file whose log is `log_len` blocks long.
    pub(super) fn with_log_of(log_len: u32) -> Layout {
        Layout { log_len }
    }

    /// Parses the head of a database file, which is its first block.
    ///
    /// # Errors
    /// Returns [`OtherLayout`] if the file has the layout of another version. Returns
    /// [`io::ErrorKind::InvalidData`] if the block is not the head of a database.
    pub(super) fn from_head(head: &Block) -> Result<Layout, redb::Error> {
        let (content, rest) = head.split_at(HEAD_LEN);
        let [version, log_len, sum] = [&content[8..12], &content[12..], &rest[..4]]
            .map(|bytes| u32::from_be_bytes(bytes.try_into().expect("four bytes")));
        let is_ours = content[..8] == MAGIC && sum == crc32c::crc32c(content);
        match (is_ours, version) {
            (true, VERSION) => Ok(Layout { log_len }),
            (true, other) => Err(OtherLayout::Later(other).into()),
            (false, _) if content.starts_with(&MAGIC_OF_ENGINE) => Err(OtherLayout::Earlier.into()),
            (false, _) => Err(invalid("the first block of the database is corrupted").into()),
        }
    }

    /// Returns the head of a file with this layout, which is the file's first block.
    pub(super) fn to_head(self) -> Block {
        let mut head = [0; BLOCK_LEN];
        head[..8].copy_from_slice(&MAGIC);
        head[8..12].copy_from_slice(&VERSION.to_be_bytes());
        head[12..HEAD_LEN].copy_from_slice(&self.log_len.to_be_bytes());
        let sum = crc32c::crc32c(&head[..HEAD_LEN]);
        head[HEAD_LEN..HEAD_LEN + 4].copy_from_slice(&sum.to_be_bytes());
        head
    }

    /// Returns the index of the first block of the log, and the number of blocks in the log.
    pub(super) fn log(self) -> (u64, u64) {
        (LOG_BLOCK, u64::from(self.log_len))
    }

    /// Returns the index of the block with the checksums of a group. A group is 1 024 pages.
    pub(super) fn sums(self, group: u64) -> u64 {
        self.groups() + group * (GROUP_LEN + 1)
    }

    /// Returns the index of the block that contains page number `page` of the database engine.
    pub(super) fn page(self, page: u64) -> u64 {
        self.sums(page / GROUP_LEN) + 1 + page % GROUP_LEN
    }

    /// Returns the number of engine pages in `blocks` blocks. The rest is head, log and checksums.
    pub(super) fn pages_in(self, blocks: u64) -> u64 {
        let behind = blocks.saturating_sub(self.groups());
        let (whole, rest) = (behind / (GROUP_LEN + 1), behind % (GROUP_LEN + 1));
        whole * GROUP_LEN + rest.saturating_sub(1)
    }

    /// Returns the number of blocks for `pages` engine pages, the head, the log and checksums.
    pub(super) fn blocks_for(self, pages: u64) -> u64 {
        self.groups() + pages + pages.div_ceil(GROUP_LEN)
    }

    fn groups(self) -> u64 {
        LOG_BLOCK + u64::from(self.log_len)
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_things_lie_in_one_block() {
        let layout = Layout::with_log_of(8);
        let pages = 3 * GROUP_LEN + 5;
        let mut blocks = vec![HEAD_BLOCK, FIRST_PAGE_SUMS_BLOCK];
        let (first, len) = layout.log();
        blocks.extend(first..first + len);
        blocks.extend((0..4).map(|group| layout.sums(group)));
        blocks.extend((0..pages).map(|page| layout.page(page)));
        blocks.sort_unstable();
        assert_eq!(blocks, (0..layout.blocks_for(pages)).collect::<Vec<_>>());
        for pages in [0, 1, GROUP_LEN - 1, GROUP_LEN, GROUP_LEN + 1, pages] {
            assert_eq!(layout.pages_in(layout.blocks_for(pages)), pages);
        }
    }

    #[test]
    fn a_head_is_read_as_it_was_written_and_every_flipped_bit_is_found() {
        let head = Layout::with_log_of(2_048).to_head();
        assert_eq!(
            Layout::from_head(&head).expect("its own head"),
            Layout::with_log_of(2_048)
        );
        for at in 0..(HEAD_LEN + 4) * 8 {
            let mut flipped = head;
            flipped[at / 8] ^= 1 << (at % 8);
            Layout::from_head(&flipped).expect_err("a bit is flipped");
        }
    }
}
