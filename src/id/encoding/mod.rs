//! How a number becomes a text and back: encodings, one file for each codec.

mod alphabet;
mod codec;
mod definition;
mod did;
mod encoding;
mod hashids;
mod letter_groups;
mod letter_set;
mod parameter;
mod pattern;
mod positional;
mod sqids;
mod uuid;
mod uuid8;
#[cfg(test)]
mod vectors;

pub use codec::{Codec, TEXT_LEN_MAX};
pub use definition::{EncodingDefinition, EncodingKind, LetterCase};
pub use did::Did;
pub use encoding::{Encoding, EncodingError};
pub use hashids::Hashids;
pub(in crate::id) use letter_set::LetterSet;
pub use parameter::ParameterError;
pub use positional::{Positional, Width};
pub use sqids::Sqids;
pub use uuid::Uuid;
pub use uuid8::Uuid8;
