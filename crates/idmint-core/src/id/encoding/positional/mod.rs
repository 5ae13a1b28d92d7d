//! Codecs that write numbers, one by one or many in a row, as digits of one radix.

mod block_copy;
mod checked;
mod digits;
mod positional;

pub(in crate::id::encoding) use block_copy::{CHUNK_MAX, Endings, split, write_block};
pub(super) use checked::Checked;
pub use checked::mod_97_check;
pub(in crate::id::encoding) use digits::{Pairs, Radix};
pub(in crate::id::encoding) use positional::bytes_of;
pub(super) use positional::{Padding, Positional};
