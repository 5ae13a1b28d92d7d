//! Numbers as digits of one radix: one number, and a block of them.

mod block_copy;
mod checked;
mod digits;
mod division;
mod pairs;
mod positional;

pub(in crate::id::encoding) use block_copy::{CHUNK_MAX, Endings, write_block};
pub use checked::Checked;
pub(crate) use checked::mod_97_check;
pub(in crate::id::encoding) use digits::Radix;
pub(in crate::id::encoding) use division::split;
pub(in crate::id::encoding) use pairs::Pairs;
pub(in crate::id::encoding) use positional::bytes_of;
pub use positional::{Padding, Positional};
