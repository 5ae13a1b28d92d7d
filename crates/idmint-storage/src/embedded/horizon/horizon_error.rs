//! The errors of the horizon file. Each message tells the operator what to do.

use std::io;
use std::path::PathBuf;

use super::horizon_block::CopyFault;
use crate::failure::{FailureKind, StoreError};

/// The error of a horizon that cannot be read or raised.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HorizonError {
    /// Both copies of the horizon are damaged. The file was not changed, and the operator has to
    /// set a floor.
    ///
    /// No message about this file suggests restoring a backup. A backup has an older horizon that
    /// looks valid, so ids could be minted twice.
    #[error(
        "both copies of the horizon in {} are damaged (A: {a}; B: {b}); start with --floor and an instant at or \
         above which no id was ever issued", .path.display()
    )]
    BothCopiesDamaged {
        /// The path of the horizon file.
        path: PathBuf,
        /// The fault of copy A.
        a: CopyFault,
        /// The fault of copy B.
        b: CopyFault,
    },
    /// Both copies of the horizon are intact, but no sequence of writes explains their content. The
    /// file was not changed.
    #[error(
        "the two copies of the horizon in {} contradict each other, as if parts of two files were mixed; start with \
         --floor and an instant at or above which no id was ever issued", .path.display()
    )]
    CopiesDisagree {
        /// The path of the horizon file.
        path: PathBuf,
    },
    /// The file has the horizon of another slot than the configured one. The file was not changed.
    #[error(
        "{} is the horizon of slot {kept}, but slot {asked} is configured; set worker.slot = {kept}, use another \
         storage.data_dir, or start with --floor and an instant at or above which slot {asked} never issued an id",
        .path.display()
    )]
    OtherSlot {
        /// The path of the horizon file.
        path: PathBuf,
        /// The slot in the file.
        kept: u32,
        /// The configured slot.
        asked: u32,
    },
    /// The file no longer has the content that this process wrote.
    #[error(
        "the horizon in {} is not what this process wrote: another program has written to it; stop that program, and see \
         docs/OPERATIONS.md before the next start", .path.display()
    )]
    Changed {
        /// The path of the horizon file.
        path: PathBuf,
    },
    /// A later version of this program wrote the horizon or the commit mark. This version cannot
    /// use the file, even with a stated floor.
    #[error(
        "the horizon in {} was written by a later version of this program (version {version} of the file): start it with the version \
         that wrote it, or a later one; never delete this folder: it is the record that keeps ids unique", .path.display()
    )]
    UnknownVersion {
        /// The path of the horizon file.
        path: PathBuf,
        /// The version in the file.
        version: u32,
    },
    /// The file cannot be opened. Nothing was written.
    #[error("cannot open {}; check that it is a file this user may read and write", .path.display())]
    NotOpened {
        /// The path of the horizon file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// The disk refused the horizon, so the file's content is unknown. Do not mint with this
    /// horizon. Stop the process, repair the disk, and start again.
    #[error("cannot make the horizon in {} durable; stop the process, check the disk, start again", .path.display())]
    NotWritten {
        /// The path of the horizon file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// The write was refused, because an earlier write of the horizon has failed. After that, even
    /// a successful write does not prove that the horizon is durable.
    #[error(
        "the horizon in {} is no longer written, because a write failed; check the disk, start again",
        .path.display()
    )]
    Poisoned {
        /// The path of the horizon file.
        path: PathBuf,
    },
}

impl HorizonError {
    /// Returns the kind of failure, which determines the operator's next step.
    pub(crate) fn failure_kind(&self) -> FailureKind {
        match self {
            Self::BothCopiesDamaged { .. }
            | Self::CopiesDisagree { .. }
            | Self::OtherSlot { .. }
            | Self::Changed { .. } => FailureKind::Damaged,
            Self::UnknownVersion { .. } => FailureKind::Disagrees,
            Self::NotOpened { .. } | Self::NotWritten { .. } | Self::Poisoned { .. } => {
                FailureKind::NotUsable
            }
        }
    }
}

impl From<HorizonError> for StoreError {
    fn from(error: HorizonError) -> StoreError {
        StoreError::new(error.failure_kind(), error)
    }
}
