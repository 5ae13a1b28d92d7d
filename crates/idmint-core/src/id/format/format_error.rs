//! The error for a definition that is not a valid format.

use std::path::PathBuf;

use crate::id::encoding::EncodingError;
use crate::id::layout::{LayoutError, SuffixCodeError};
use crate::time::{TickError, UnixTimeError};

/// The reason why a definition is not a valid format. The message names the format, the key, the
/// value and the bound.
#[derive(Debug, thiserror::Error)]
#[error("format `{format}`: {cause}")]
pub struct FormatError {
    format: String,
    // Boxed, so that a `Result` with this error is small.
    cause: Box<Cause>,
}

impl FormatError {
    pub(super) fn new(format: &str, cause: Cause) -> FormatError {
        FormatError {
            format: format.to_owned(),
            cause: Box::new(cause),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Cause {
    #[error("{0}")]
    Toml(String),
    #[error("{0}")]
    Tick(#[from] TickError),
    #[error("epoch: {0}")]
    Epoch(#[from] UnixTimeError),
    #[error("{0}")]
    Layout(#[from] LayoutError),
    #[error("field `{field}`: {cause}")]
    Code {
        field: String,
        cause: SuffixCodeError,
    },
    #[error("{0}")]
    Encoding(#[from] EncodingError),
    #[error("encoding {encoding}: salt_file = {}: {problem}", .path.display())]
    SaltFile {
        encoding: String,
        path: PathBuf,
        problem: String,
    },
    #[error("{key} = `{value}` is not a whole number from 0 to 2^128 - 1")]
    Number { key: String, value: String },
    #[error("field `{field}`: give either `bits`, or `digits` and `radix`, or `cardinality`")]
    Width { field: String },
    #[error("plausible_ahead = `{0}` is not a duration such as 24h")]
    Duration(String),
    #[error("{0}")]
    Rule(String),
}

impl Cause {
    /// Returns the error for a setting that breaks a rule of formats.
    pub(super) fn rule<T>(message: impl Into<String>) -> Result<T, Cause> {
        Err(Cause::Rule(message.into()))
    }
}
