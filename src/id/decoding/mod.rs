//! Reading an id whose format is not known.

mod decode_filter;
mod decoder;
mod encoding_groups;
mod evidence;
mod near_texts;

pub use decode_filter::DecodeFilter;
pub use decoder::{Decoded, Decoder, DecoderAt, Match};
pub use evidence::OwnNumbers;
