//! What an id is: its fields, its spellings, and how it is read back. Pure values, no clock and no I/O.

pub mod codec;
mod encoding;
mod encoding_definition;
mod rejection;

pub use codec::Codec;
pub use encoding::{Encoding, EncodingError};
pub use encoding_definition::{EncodingDefinition, EncodingKind, LetterCase};
pub use rejection::Rejection;
