//! The kinds of failure of a store, told apart because each asks somebody for something else.

use std::io;

/// Whose a failure is, and so the exit code of the process (those of sysexits.h, see `cli/exit.rs`).
///
/// Every error of this folder names its kind by a method `failure_kind()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// Another process holds the store: stop one of the two (75, `EX_TEMPFAIL`).
    Locked,
    /// The folder or the disk refuses to work: a path, a permission, a failing disk (74, `EX_IOERR`).
    NotUsable,
    /// The disk is full, and has lost nothing: make room (74, `EX_IOERR`).
    Full,
    /// The store that nodes share does not answer: wait, it may again (75, `EX_TEMPFAIL`).
    Unreachable,
    /// What is stored cannot be trusted: restore it, or state a floor (65, `EX_DATAERR`).
    Damaged,
    /// What is stored is sound and is not for this configuration, or this version of the program: change that (78, `EX_CONFIG`).
    Disagrees,
}

impl FailureKind {
    /// The kind of an error that the system gave for a file: [`Full`](Self::Full) or [`NotUsable`](Self::NotUsable).
    pub(crate) fn of_io(error: &io::Error) -> FailureKind {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FailureKind::Full,
            _ => FailureKind::NotUsable,
        }
    }
}
