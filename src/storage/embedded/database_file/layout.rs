//! Where everything lies in the file of a database, in blocks of 4 KiB:
//!
//! ```text
//! 0        head: what the file is, and the length L of the log
//! 1        two checksums of the engine's first page, as it was synced and as it is: one of them fits
//! 2        the log, L blocks
//! 2 + L    groups: a block of 1 024 checksums, then the 1 024 pages that they are of
//! ```

use std::io;

use crate::storage::embedded::block_file::{BLOCK_LEN, Block};

/// What a file begins with.
const MAGIC: [u8; 8] = *b"idmintdb";
/// What a file of the engine alone begins with, from before there was a log.
const MAGIC_OF_ENGINE: [u8; 4] = *b"redb";
const VERSION: u32 = 1;
/// Magic, version and length of the log; behind them their CRC-32C.
const HEAD_LEN: usize = 16;

pub(super) const HEAD_BLOCK: u64 = 0;
pub(super) const FIRST_PAGE_SUMS_BLOCK: u64 = 1;
const LOG_BLOCK: u64 = 2;

/// Checksums in a block, and pages behind it.
pub(super) const GROUP_LEN: u64 = 1_024;

/// A sound file that this program cannot read: what it has instead of [`VERSION`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OtherLayout {
    /// The layout of builds before a157b41: without a log, or without one of the tables.
    #[error(
        "was last written by a build before a157b41: start it once with a build of a157b41, which moves it, then with this one"
    )]
    Earlier,
    /// The layout of a later program.
    #[error(
        "has layout {0}, and this program knows layout {VERSION}: start it with the version that wrote it, or a later one"
    )]
    Later(u32),
}

impl From<OtherLayout> for redb::Error {
    fn from(layout: OtherLayout) -> redb::Error {
        io::Error::new(io::ErrorKind::InvalidData, layout).into()
    }
}

/// The places of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    log_len: u32,
}

impl Layout {
    /// With a log of `log_len` blocks.
    pub(super) fn with_log_of(log_len: u32) -> Layout {
        Layout { log_len }
    }

    /// What the head of a file says.
    ///
    /// # Errors
    /// [`OtherLayout`]; [`io::ErrorKind::InvalidData`] if it is not the head of a database.
    pub(super) fn from_head(head: &Block) -> Result<Layout, redb::Error> {
        let (content, rest) = head.split_at(HEAD_LEN);
        let [version, log_len, sum] = [&content[8..12], &content[12..], &rest[..4]]
            .map(|bytes| u32::from_be_bytes(bytes.try_into().expect("four bytes")));
        let is_ours = content[..8] == MAGIC && sum == crc32c::crc32c(content);
        match (is_ours, version) {
            (true, VERSION) => Ok(Layout { log_len }),
            (true, other) => Err(OtherLayout::Later(other).into()),
            (false, _) if content.starts_with(&MAGIC_OF_ENGINE) => Err(OtherLayout::Earlier.into()),
            (false, _) => Err(invalid("its first block is not what was written").into()),
        }
    }

    /// The head of a file.
    pub(super) fn to_head(self) -> Block {
        let mut head = [0; BLOCK_LEN];
        head[..8].copy_from_slice(&MAGIC);
        head[8..12].copy_from_slice(&VERSION.to_be_bytes());
        head[12..HEAD_LEN].copy_from_slice(&self.log_len.to_be_bytes());
        let sum = crc32c::crc32c(&head[..HEAD_LEN]);
        head[HEAD_LEN..HEAD_LEN + 4].copy_from_slice(&sum.to_be_bytes());
        head
    }

    /// The first block of the log, and how many it has.
    pub(super) fn log(self) -> (u64, u64) {
        (LOG_BLOCK, u64::from(self.log_len))
    }

    /// The block of the checksums of a group.
    pub(super) fn sums(self, group: u64) -> u64 {
        self.groups() + group * (GROUP_LEN + 1)
    }

    /// The block of a page of the engine.
    pub(super) fn page(self, page: u64) -> u64 {
        self.sums(page / GROUP_LEN) + 1 + page % GROUP_LEN
    }

    /// How many pages a file of so many `blocks` has.
    pub(super) fn pages_in(self, blocks: u64) -> u64 {
        let behind = blocks.saturating_sub(self.groups());
        let (whole, rest) = (behind / (GROUP_LEN + 1), behind % (GROUP_LEN + 1));
        whole * GROUP_LEN + rest.saturating_sub(1)
    }

    /// How many blocks a file of so many `pages` has.
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
