//! One item of the log: a commit, or a note that a commit was synced.
//!
//! An item begins at a block boundary, and its last block is padded with zeros.
//!
//! ```text
//! 0   magic, 4 bytes
//! 4   length of the content in bytes, 4 bytes; 0 in a note
//! 8   number of the commit, 8 bytes
//! 16  CRC-32C over the 12 bytes before it and the content
//! 20  content
//! ```

use std::io;

use crate::embedded::block_file::{BLOCK_LEN, BlockFile};

const MAGIC: [u8; 4] = *b"idml";
const HEAD_LEN: usize = 20;

/// A commit or a note in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogItem {
    pub(super) number: u64,
    /// The content of the commit. Empty in a note.
    pub(super) content: Vec<u8>,
}

impl LogItem {
    /// Returns the number of blocks that an item with `content_len` bytes of content occupies.
    pub(super) fn blocks(content_len: usize) -> u64 {
        u64::try_from((HEAD_LEN + content_len).div_ceil(BLOCK_LEN)).expect("a length fits 64 bits")
    }

    /// Encodes the commit `number` with this content. If the content is empty, encodes a note that
    /// commit `number` was synced. The length of the result is a multiple of the block length.
    pub(super) fn to_bytes(number: u64, content: &[u8]) -> Vec<u8> {
        let content_len = u32::try_from(content.len()).expect("it fits the log");
        let mut bytes = Vec::with_capacity((HEAD_LEN + content.len()).next_multiple_of(BLOCK_LEN));
        bytes.extend(MAGIC);
        bytes.extend(content_len.to_be_bytes());
        bytes.extend(number.to_be_bytes());
        bytes.extend(sum_of(&bytes[4..16], content).to_be_bytes());
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(BLOCK_LEN), 0);
        bytes
    }

    /// Reads the item that begins at `block` and ends before `end`. Returns `None` if no item
    /// begins there, or if the item is damaged.
    ///
    /// # Errors
    /// Returns any error of the disk. The end of the file is not an error.
    pub(super) fn read(file: &dyn BlockFile, block: u64, end: u64) -> io::Result<Option<LogItem>> {
        let first = match file.read_block(block) {
            Ok(first) => first,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        };
        let field =
            |at: usize| u32::from_be_bytes(first[at..at + 4].try_into().expect("four bytes"));
        let content_len = usize::try_from(field(4)).map_err(io::Error::other)?;
        let sum = field(16);
        if first[..4] != MAGIC || LogItem::blocks(content_len) > end - block {
            return Ok(None);
        }
        let mut content = first[HEAD_LEN..].to_vec();
        for behind in 1..LogItem::blocks(content_len) {
            match file.read_block(block + behind) {
                Ok(more) => content.extend(more),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        content.truncate(content_len);
        let number = u64::from_be_bytes(first[8..16].try_into().expect("eight bytes"));
        Ok((sum_of(&first[4..16], &content) == sum).then_some(LogItem { number, content }))
    }
}

fn sum_of(head: &[u8], content: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(head), content)
}
