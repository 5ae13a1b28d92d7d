//! The error type of every store, the kinds of errors, and a way to print an error with its causes.

use std::error::Error;
use std::fmt;
use std::io;

/// An error of a store, for any engine.
///
/// The engine writes the error text, which says what failed and what to do about it. Code should
/// only depend on the [kind](Self::failure_kind).
#[derive(Debug)]
pub struct StoreError {
    obstacle: Obstacle,
    error: Box<dyn Error + Send + Sync>,
}

impl StoreError {
    /// Wraps an error of an engine, and gives it a kind.
    pub fn new(kind: FailureKind, error: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        StoreError::because(Obstacle::of_kind(kind), error)
    }

    /// Wraps an error of the storage engine. `obstacle` describes the failure in a text that is
    /// safe to show to callers.
    pub fn because(
        obstacle: Obstacle,
        error: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> StoreError {
        StoreError {
            obstacle,
            error: error.into(),
        }
    }

    /// Returns the kind of failure, which determines the operator's next step.
    pub fn failure_kind(&self) -> FailureKind {
        self.obstacle.kind
    }

    /// Returns the kind of the failure and a text that may be shown to callers. The storage
    /// engine's own error text must not be shown to callers, because it may contain paths.
    pub fn obstacle(&self) -> Obstacle {
        self.obstacle
    }
}

/// The reason why a store serves no requests, or serves only reads. Its text says what to do, and
/// is safe to show to callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Obstacle {
    kind: FailureKind,
    text: &'static str,
}

impl Obstacle {
    /// Creates the reason why a store cannot be used. `text` says what is wrong and what to do.
    pub const fn new(kind: FailureKind, text: &'static str) -> Obstacle {
        Obstacle { kind, text }
    }

    /// Returns the kind of failure, which determines the operator's next step.
    pub fn failure_kind(self) -> FailureKind {
        self.kind
    }

    /// Returns an obstacle with a general text for this kind of failure. Use it if the text of the
    /// original error must not be shown to callers.
    pub fn of_kind(kind: FailureKind) -> Obstacle {
        let text = match kind {
            FailureKind::Full => {
                "the disk is full, so nothing new is stored; free space outside storage.data_dir, and delete nothing in it"
            }
            FailureKind::Unreachable => {
                "the coordinator (etcd) does not answer, or has no quorum; restore its quorum"
            }
            FailureKind::Locked
            | FailureKind::NotUsable
            | FailureKind::Damaged
            | FailureKind::Disagrees => "the store cannot be read or written; see the log",
        };
        Obstacle { kind, text }
    }
}

impl From<Obstacle> for StoreError {
    fn from(obstacle: Obstacle) -> StoreError {
        StoreError::because(obstacle, obstacle)
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

/// The kind of a failure. The kind determines the operator's next step and the exit code of the
/// process (see `sysexits.h`).
///
/// Every error of a store has a method `failure_kind()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// Another process is using the store. Stop one of the two processes. The exit code is 75,
    /// `EX_TEMPFAIL`.
    Locked,
    /// The folder or the disk cannot be used, because of the path, its permissions or a disk error.
    /// The exit code is 74, `EX_IOERR`.
    NotUsable,
    /// The disk is full, but no data was lost. Free some space. The exit code is 74, `EX_IOERR`.
    Full,
    /// The store that all nodes of the fleet share does not respond. Wait until it responds. The
    /// exit code is 75, `EX_TEMPFAIL`.
    Unreachable,
    /// The stored data cannot be trusted. Restore a backup, or state a floor. The exit code is 65,
    /// `EX_DATAERR`.
    Damaged,
    /// The stored data is valid, but does not match this configuration or this version of the
    /// program. Change the configuration or the version. The exit code is 78, `EX_CONFIG`.
    Disagrees,
}

impl FailureKind {
    /// Returns the kind of an I/O error of a file, which is [`Full`](Self::Full) or
    /// [`NotUsable`](Self::NotUsable).
    pub fn of_io(error: &io::Error) -> FailureKind {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FailureKind::Full,
            _ => FailureKind::NotUsable,
        }
    }
}

/// Displays an error followed by its causes. Errors in this crate have their cause as the source,
/// and do not print it themselves.
///
/// ```
/// use idmint_storage::{FailureKind, StoreError, WithCauses};
///
/// #[derive(Debug, thiserror::Error)]
/// #[error("cannot open /data/horizon")]
/// struct NotOpened(#[source] std::io::Error);
///
/// let cause = std::io::Error::other("no such device");
/// let error = StoreError::new(FailureKind::NotUsable, NotOpened(cause));
/// assert_eq!(WithCauses(&error).to_string(), "cannot open /data/horizon: no such device");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct WithCauses<'a>(pub &'a dyn Error);

impl fmt::Display for WithCauses<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut error = self.0;
        write!(f, "{error}")?;
        while let Some(cause) = error.source() {
            write!(f, ": {cause}")?;
            error = cause;
        }
        Ok(())
    }
}
