//! Why the horizon of a folder cannot be read or raised, and what an operator can do.

use std::io;
use std::path::PathBuf;

use super::horizon_block::CopyFault;
use crate::storage::failure::{FailureKind, StoreError};

/// Why the horizon cannot be read or raised.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HorizonError {
    /// No copy can be trusted. Nothing was written; a floor is needed.
    ///
    /// No message of this file advises to restore a backup: that would be an older horizon, and look good.
    #[error(
        "both copies of the horizon in {} are damaged (A: {a}; B: {b}); start with --floor and an instant at or \
         above which no id was ever issued", .path.display()
    )]
    BothCopiesDamaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with copy A.
        a: CopyFault,
        /// What is wrong with copy B.
        b: CopyFault,
    },
    /// Both copies are intact and no order of writing explains them. Nothing was written.
    #[error(
        "the two copies of the horizon in {} contradict each other, as if parts of two files were mixed; start with \
         --floor and an instant at or above which no id was ever issued", .path.display()
    )]
    CopiesDisagree {
        /// The file.
        path: PathBuf,
    },
    /// The file bounds the ids of another slot. Nothing was written.
    #[error(
        "{} is the horizon of slot {kept}, and slot {asked} is configured; set worker.slot = {kept}, use another \
         storage.data_dir, or start with --floor and an instant at or above which slot {asked} never issued an id",
        .path.display()
    )]
    OtherSlot {
        /// The file.
        path: PathBuf,
        /// The slot in the file.
        kept: u32,
        /// The slot asked for.
        asked: u32,
    },
    /// The file does not hold what this process wrote into it.
    #[error(
        "the horizon in {} is not what this process wrote: something else has written to it; stop whatever does, and see \
         docs/OPERATIONS.md before the next start", .path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Another version of the program wrote the file. Nothing was written, and a floor does not help.
    #[error(
        "the horizon in {} was written by a later version of this program (version {version} of the file): start it with the version \
         that wrote it, or a later one; never delete this folder: it is the record that keeps ids unique", .path.display()
    )]
    UnknownVersion {
        /// The file.
        path: PathBuf,
        /// The version it states.
        version: u32,
    },
    /// The file cannot be opened. Nothing was written.
    #[error("cannot open {}; check that it is a file this user may read and write", .path.display())]
    NotOpened {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        cause: io::Error,
    },
    /// The disk refused; what it holds now is unknown. Nothing may be minted on it: stop, repair, start anew.
    #[error("cannot make the horizon in {} durable; stop the process, see to the disk, start again", .path.display())]
    NotWritten {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        cause: io::Error,
    },
    /// An earlier write failed, so later ones would prove nothing. Nothing was written.
    #[error(
        "the horizon in {} is not written any more since the disk refused once; see to the disk, start again",
        .path.display()
    )]
    Poisoned {
        /// The file.
        path: PathBuf,
    },
}

impl HorizonError {
    /// What kind of failure this is.
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
