//! Reading an id whose format is not known.
//!
//! A [`Decoder`] reads a text once for each group of encodings that read alike, weighs each reading by its evidence, and
//! where there is none looks for ids that somebody may have meant.

mod decode_filter;
mod decoder;
mod encoding_groups;
mod evidence;
mod first_match;
mod given_text;
mod least_bits;
mod near_ids;
mod nearness;
mod packed_layout;
mod shapes;

pub use decode_filter::DecodeFilter;
pub use decoder::{Decoded, Decoder, DecoderAt, Match};
pub use evidence::OwnNumbers;
pub use near_ids::NearId;
pub use shapes::KSUID;
