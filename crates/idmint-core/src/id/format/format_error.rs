//! The error for a definition that is not a valid format.

use std::path::PathBuf;

use super::table_reader::ReadError;
use crate::id::encoding::EncodingError;
use crate::id::layout::{LayoutError, SuffixCodeError};
use crate::time::{TickError, UnixTimeError};

/// The reason why a definition is not a valid format. The message names the format, the key of the
/// setting, its value and the bound that the value violates.
#[derive(Debug, thiserror::Error)]
#[error("format `{format}`: {cause}")]
pub struct FormatError {
    format: String,
    key: String,
    // Boxed, so that a `Result` with this error is small.
    cause: Box<Cause>,
}

impl FormatError {
    pub(super) fn new(format: &str, cause: Cause) -> FormatError {
        let (key, cause) = match cause {
            Cause::At { key, cause } => (key, cause),
            Cause::Read(error) => (error.key.clone(), Box::new(Cause::Read(error))),
            cause => (String::new(), Box::new(cause)),
        };
        FormatError {
            format: format.to_owned(),
            key,
            cause,
        }
    }

    /// Returns the path of the wrong key in the definition, such as `fields[1].bits`. The path of a
    /// missing key ends in that key. The path is empty if no single key is wrong.
    ///
    /// ```
    /// use idmint_core::id::FormatDefinition;
    ///
    /// let error = FormatDefinition::from_toml("mine", "fields = [{ knd = 'time' }]");
    /// let error = error.expect_err("a field has no such key");
    /// assert_eq!(error.key(), "fields[0].knd");
    /// assert!(error.to_string().ends_with("did you mean `kind`?"));
    /// ```
    pub fn key(&self) -> &str {
        &self.key
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Cause {
    #[error("{0}")]
    Toml(String),
    #[error("{0}")]
    Read(ReadError),
    #[error("{cause}")]
    At { key: String, cause: Box<Cause> },
    #[error("tick: {0}")]
    Tick(#[from] TickError),
    #[error("{key}: {cause}")]
    Instant {
        key: &'static str,
        cause: UnixTimeError,
    },
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
    /// Returns an error with this message, for a definition that violates a requirement of formats.
    /// [`Cause::at`] adds the key of the setting that is wrong.
    pub(super) fn rule<T>(message: impl Into<String>) -> Result<T, Cause> {
        Err(Cause::Rule(message.into()))
    }

    /// Returns an error with this message for the setting at `key`, which is a path in the
    /// definition such as `fields[1].bits`.
    pub(super) fn rule_at<T>(
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> Result<T, Cause> {
        Err(Cause::Rule(message.into()).at(key))
    }

    /// Adds the key of the wrong setting to this error. If the error has a key already, that key is
    /// kept, because it is more exact.
    pub(super) fn at(self, key: impl Into<String>) -> Cause {
        match self {
            known @ (Cause::At { .. } | Cause::Read(_)) => known,
            cause => Cause::At {
                key: key.into(),
                cause: Box::new(cause),
            },
        }
    }
}
