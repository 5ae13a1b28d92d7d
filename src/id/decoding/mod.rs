//! Reading an id whose format is not known.
//!
//! A [`Decoder`] reads a text once for each group of encodings that read alike, weighs each reading by its evidence, and
//! where there is none looks for near texts that somebody may have meant.

mod decode_filter;
mod decoder;
mod encoding_groups;
mod evidence;
mod near_texts;

pub use decode_filter::DecodeFilter;
pub use decoder::{Decoded, Decoder, DecoderAt, Match};
pub use evidence::OwnNumbers;
