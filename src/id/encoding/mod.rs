//! How a number becomes a text and back.
//!
//! An [`Encoding`] is what a format offers: a name, a prefix and a [`Codec`], as an [`EncodingDefinition`] in TOML says it.
//! Each codec has a file of its own; those that write digits of one radix share `positional/`, and all share `letters/`.

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

pub use codec::Codec;
pub use definition::{CheckMethod, EncodingDefinition, EncodingKind, LetterCase, Salt};
pub use did::Did;
pub use encoding::{Encoding, EncodingError};
pub use hashids::Hashids;
pub(in crate::id) use letters::{LetterSet, escape};
pub use parameter::{ParameterError, TEXT_LEN_MAX};
pub(crate) use positional::mod_97_check;
pub use positional::{Checked, Padding, Positional};
pub use sqids::Sqids;
pub use uuid::Uuid;
pub use uuid8::Uuid8;
