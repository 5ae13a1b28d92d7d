//! Conversion of numbers to text and back.
//!
//! An [`Encoding`] combines a name, a prefix and a [`Codec`]. An [`EncodingDefinition`] is the TOML
//! form of an encoding. Each codec has its own file. Codecs that write digits of one radix share
//! `positional/`, and all codecs share `letters/`.

mod codec;
mod definition;
mod did;
mod digest;
mod encoding;
mod hashids;
mod lenient;
mod letters;
mod parameter;
mod positional;
mod sqids;
mod uuid;
mod uuid8;
#[cfg(test)]
mod vectors;

#[cfg(test)]
use codec::Codec;
pub use definition::{CheckMethod, EncodingDefinition, EncodingKind, LetterCase, Salt};
pub use encoding::{Encoding, EncodingError};
pub(in crate::id) use letters::{LetterSet, escape};
pub use parameter::ParameterError;
pub(in crate::id) use parameter::TEXT_LEN_MAX;
#[cfg(test)]
use positional::Padding;
pub use positional::mod_97_check;
