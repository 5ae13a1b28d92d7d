//! The errors of an adoption.

use crate::{AdoptError, CoordinatorError};
use idmint_core::time::UnixNanos;
use idmint_storage::{Difference, FailureKind, FormatsError, StoreError};

/// The reason why an adoption failed or has to wait. Completed steps are kept, and the next run
/// continues after them.
#[derive(Debug, thiserror::Error)]
pub enum AdoptionError {
    /// The folder belongs to another fleet, which is adopting it or has adopted it.
    #[error(
        "this folder belongs to the fleet {kept}, but the configuration names {here}; use the configuration \
         of that fleet"
    )]
    OtherFleet {
        /// The fleet that is named in the folder.
        kept: String,
        /// The fleet that is named in the configuration.
        here: String,
    },
    /// The fleet has not copied all records of another folder yet. The value is the id of that
    /// adoption.
    #[error(
        "the fleet has copied only some records of another folder: first run this command again on the folder with {0} \
         in its adoption.json"
    )]
    Unfinished(String),
    /// The fleet has lost the adoption of this folder, which was complete. The value is the id of
    /// the adoption.
    #[error(
        "the fleet has lost the adoption {0} of this folder, as after a restore of etcd from a backup: run \
         `idmint fleet fence-restore`, and then this command again"
    )]
    Lost(String),
    /// A format or encoding in the folder differs from the format or encoding with the same name in
    /// the fleet or the configuration.
    #[error("\"{name}\" differs between the folder and {place}: {}", texts(.differences, .place))]
    FormatDiffers {
        /// The name of the format, or `format/encoding` for an encoding.
        name: String,
        /// The source of the other definition: the fleet or the configuration.
        place: &'static str,
        /// The differences, sorted by key. Never empty. In each difference, `now` is the value in
        /// the data folder.
        differences: Vec<Difference>,
    },
    /// The single node had reserved time far ahead of the clock. After an adoption, the only slot
    /// or several slots could not be used before the end of that time.
    #[error(
        "the node has minted up to {horizon}, far ahead of this clock, which shows {now}, and {why}: a fleet that \
         adopts it could not mint until then. If this clock is behind, correct it. Otherwise adopt the folder after \
         that time"
    )]
    FarAhead {
        /// The horizon of the folder.
        horizon: UnixNanos,
        /// The clock reading of this machine.
        now: UnixNanos,
        /// The reason why the fleet cannot leave one slot unused until `horizon` and use others.
        why: String,
    },
    /// The fleet's agreement contradicts the configuration, or cannot be read.
    #[error(transparent)]
    Fleet(#[from] FormatsError),
    /// A record in the data folder differs from the fleet's record under the same key, or a record
    /// cannot be read or written.
    #[error(transparent)]
    Record(#[from] AdoptError),
    /// The folder cannot be read or written.
    #[error(transparent)]
    Folder(#[from] StoreError),
    /// The coordinator does not respond, or refuses the request.
    #[error("{0}; run this command again when etcd responds")]
    Coordinator(#[from] CoordinatorError),
    /// Every attempt to change the fleet's agreement or a slot's horizon failed, because other
    /// processes changed the same row first. Or a fence or another adoption has interrupted this
    /// one.
    #[error(
        "the adoption is not complete, because other processes changed the fleet's settings in etcd; run this command \
         again"
    )]
    Overtaken,
}

impl AdoptionError {
    /// Returns the kind of failure.
    pub fn failure_kind(&self) -> FailureKind {
        match self {
            AdoptionError::OtherFleet { .. }
            | AdoptionError::Unfinished(_)
            | AdoptionError::Lost(_)
            | AdoptionError::FarAhead { .. } => FailureKind::Disagrees,
            AdoptionError::FormatDiffers { .. } => FailureKind::Damaged,
            AdoptionError::Fleet(error) => error.failure_kind(),
            AdoptionError::Record(error) => error.failure_kind(),
            AdoptionError::Folder(error) => error.failure_kind(),
            AdoptionError::Coordinator(CoordinatorError::Full(_)) => FailureKind::Full,
            AdoptionError::Coordinator(_) | AdoptionError::Overtaken => FailureKind::Unreachable,
        }
    }
}

fn texts(differences: &[Difference], place: &str) -> String {
    let text = |difference: &Difference| {
        let [there, here] =
            [&difference.kept, &difference.now].map(|text| text.as_deref().unwrap_or("(nothing)"));
        format!(
            "{} is {here} in the folder, but {there} in {place}",
            difference.key
        )
    };
    differences.iter().map(text).collect::<Vec<_>>().join("; ")
}
