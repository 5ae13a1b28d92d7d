//! Why a folder cannot be adopted.

use crate::storage::{
    AdoptError, CoordinatorError, Difference, FailureKind, FormatsError, StoreError,
};

/// Why a folder cannot be adopted, or not yet: what was done stays done, and the next run goes on from there.
#[derive(Debug, thiserror::Error)]
pub enum AdoptionError {
    /// Another fleet adopts the folder, or has.
    #[error(
        "another fleet has this folder: {kept}; here is {here}. Run it with the configuration of that fleet"
    )]
    OtherFleet {
        /// The fleet that the folder names.
        kept: String,
        /// The fleet of the configuration.
        here: String,
    },
    /// A format of the folder, or one of its encodings, has its name in the fleet, or in the configuration, and is another one.
    #[error("\"{name}\" is not the same in the folder and in {place}: {}", texts(.differences))]
    FormatDiffers {
        /// The format's name, or with a `/` between them that of the format and of the encoding.
        name: String,
        /// With what it was compared.
        place: &'static str,
        /// What differs, sorted by key; at least one. `now` is what the folder has.
        differences: Vec<Difference>,
    },
    /// What the fleet has agreed on speaks against the configuration, or cannot be read.
    #[error(transparent)]
    Fleet(#[from] FormatsError),
    /// A record differs, or cannot be read or written.
    #[error(transparent)]
    Record(#[from] AdoptError),
    /// The folder refuses.
    #[error(transparent)]
    Folder(#[from] StoreError),
    /// The coordinator does not answer, or refuses.
    #[error("{0}; run it again when it answers")]
    Coordinator(#[from] CoordinatorError),
    /// Others wrote each time that the floor was to be raised.
    #[error("nodes of the fleet tell it of their formats all the time; run it again")]
    Overtaken,
}

impl AdoptionError {
    /// What kind of failure this is.
    pub fn failure_kind(&self) -> FailureKind {
        match self {
            AdoptionError::OtherFleet { .. } => FailureKind::Disagrees,
            AdoptionError::FormatDiffers { .. } => FailureKind::Damaged,
            AdoptionError::Fleet(error) => error.failure_kind(),
            AdoptionError::Record(error) => error.failure_kind(),
            AdoptionError::Folder(error) => error.failure_kind(),
            AdoptionError::Coordinator(CoordinatorError::Full(_)) => FailureKind::Full,
            AdoptionError::Coordinator(_) | AdoptionError::Overtaken => FailureKind::Unreachable,
        }
    }
}

fn texts(differences: &[Difference]) -> String {
    let text = |difference: &Difference| {
        let [there, here] =
            [&difference.kept, &difference.now].map(|text| text.as_deref().unwrap_or("(nothing)"));
        format!(
            "{} is {here} in the folder and {there} there",
            difference.key
        )
    };
    differences.iter().map(text).collect::<Vec<_>>().join("; ")
}
