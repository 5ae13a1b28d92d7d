//! The JSON shapes of the API, written by the server and read by clients.

mod decode;
mod formats;
mod health;
mod mint;

pub use decode::{DecodeAnswer, FieldReading, KnownDomains, MatchReading, RejectedFormat};
pub use formats::{EncodingInfo, FieldInfo, FieldWidth, FormatInfo, FormatList};
pub use health::Readiness;
pub use mint::{MintAnswer, MintRequest};
