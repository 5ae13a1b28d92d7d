//! What a folder says of the fleet that adopts its node: a file beside the horizon.
//!
//! ```text
//! {"v":1,"namespace":"default","endpoints":["http://etcd-0:2379"],"progress":"begun"}
//! {"v":1, …,"progress":{"floor_raised":"0123456789abcdef0123456789abcdef"}}
//! {"v":1, …,"progress":{"done":"0123456789abcdef0123456789abcdef"}}
//! ```
//!
//! Where it is, no node starts on the folder. It is written before the horizon is marked, and removed by nobody.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::file_system::{MachineFiles, create_file};
use crate::storage::failure::{FailureKind, StoreError};

/// The one version there is.
const VERSION: u32 = 1;

/// The fleet that adopts a node, and how far it has come with that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdoptionNote {
    #[serde(rename = "v")]
    version: u32,
    /// The namespace of the fleet.
    pub namespace: String,
    /// The members of its etcd, as they were when it began; for people.
    pub endpoints: Vec<String>,
    /// How far the adoption has come.
    pub progress: AdoptionProgress,
}

/// How far an adoption has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdoptionProgress {
    /// The fleet may not know of it yet.
    Begun,
    /// The floor of this fleet is above everything that the node minted; its records may not all be there.
    FloorRaised(String),
    /// This fleet has everything.
    Done(String),
}

/// The note cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}, which says which fleet adopts this node; put a good copy in its place", .path.display())]
pub(crate) struct NoteUnreadable {
    path: PathBuf,
    #[source]
    cause: io::Error,
}

impl NoteUnreadable {
    /// What kind of failure this is.
    pub(crate) fn failure_kind(&self) -> FailureKind {
        match self.cause.kind() {
            io::ErrorKind::InvalidData => FailureKind::Damaged,
            _ => FailureKind::NotUsable,
        }
    }
}

impl AdoptionNote {
    /// What is noted when an adoption begins.
    pub fn begun(namespace: String, endpoints: Vec<String>) -> AdoptionNote {
        AdoptionNote {
            version: VERSION,
            namespace,
            endpoints,
            progress: AdoptionProgress::Begun,
        }
    }

    /// The same adoption, which has come further.
    #[must_use]
    pub fn at(self, progress: AdoptionProgress) -> AdoptionNote {
        AdoptionNote { progress, ..self }
    }

    /// The note at `path`; `None` if no fleet adopts the node.
    ///
    /// # Errors
    /// [`NoteUnreadable`].
    pub(super) fn read(path: &Path) -> Result<Option<AdoptionNote>, NoteUnreadable> {
        let unreadable = |cause| NoteUnreadable {
            path: path.to_owned(),
            cause,
        };
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error)),
        };
        let invalid = |why: String| unreadable(io::Error::new(io::ErrorKind::InvalidData, why));
        let note: AdoptionNote =
            serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))?;
        match note.version {
            VERSION => Ok(Some(note)),
            other => Err(invalid(format!(
                "it is of version {other}, this program reads version {VERSION}"
            ))),
        }
    }

    /// Puts the note at `path`, durable when this returns.
    ///
    /// # Errors
    /// [`StoreError`]; the note that was there may still be, or this one.
    pub(super) fn write(&self, path: &Path) -> Result<(), StoreError> {
        let bytes = serde_json::to_vec(self).expect("text and numbers can be written");
        create_file(&MachineFiles, path, &bytes)
            .map(drop)
            .map_err(|cause| {
                StoreError::new(
                    FailureKind::of_io(&cause),
                    format!("cannot write {}: {cause}", path.display()),
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written_and_what_is_no_note_is_damage() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("adoption.json");
        assert_eq!(AdoptionNote::read(&path).expect("nothing is wrong"), None);
        let begun =
            AdoptionNote::begun("default".to_owned(), vec!["http://127.0.0.1:1".to_owned()]);
        let fleet = "0".repeat(32);
        for progress in [
            AdoptionProgress::Begun,
            AdoptionProgress::FloorRaised(fleet.clone()),
            AdoptionProgress::Done(fleet),
        ] {
            let note = begun.clone().at(progress);
            note.write(&path).expect("the folder is writable");
            assert_eq!(AdoptionNote::read(&path).expect("it is whole"), Some(note));
        }
        let text = fs::read_to_string(&path).expect("it is there");
        for wrong in [
            "",
            "{}",
            &text.replace("\"v\":1", "\"v\":2"),
            &text.replace("done", "over"),
        ] {
            fs::write(&path, wrong).expect("the folder is writable");
            let error = AdoptionNote::read(&path).expect_err("it is no note");
            assert_eq!(error.failure_kind(), FailureKind::Damaged, "{wrong:?}");
        }
    }
}
