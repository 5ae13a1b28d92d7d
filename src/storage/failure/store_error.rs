//! An error of a store, whichever engine it comes from.

use std::error::Error;
use std::fmt;

use super::failure_kind::FailureKind;

/// A store did not do what it was asked.
///
/// The text is the engine's own: what failed and what to do about it. Code decides by the [kind](Self::failure_kind).
#[derive(Debug)]
pub struct StoreError {
    kind: FailureKind,
    error: Box<dyn Error + Send + Sync>,
}

impl StoreError {
    /// An error of an engine, and whose it is.
    pub fn new(kind: FailureKind, error: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        StoreError {
            kind,
            error: error.into(),
        }
    }

    /// What kind of failure this is.
    pub fn failure_kind(&self) -> FailureKind {
        self.kind
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}
