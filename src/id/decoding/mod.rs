//! Reading an id whose format is not known.

mod decoder;
mod encoding_groups;
mod evidence;
mod near_texts;

pub use decoder::{Decoded, Decoder, DecoderAt, Match, Pin};
pub use evidence::OwnNumbers;
