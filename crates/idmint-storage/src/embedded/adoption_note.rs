//! The adoption note: a file next to the horizon that names the fleet adopting the node.
//!
//! ```text
//! {"v":3,"adoption":"89abcdef…","namespace":"default","endpoints":["http://etcd-0:2379"],"progress":"begun"}
//! {"v":3, …,"progress":{"floor_raised":"0123456789abcdef0123456789abcdef"},"origin":"fedcba…"}
//! {"v":3, …,"progress":{"done":"0123456789abcdef0123456789abcdef"},"origin":"fedcba…"}
//! ```
//!
//! Version 1 lacks `origin`. Versions 1 and 2 lack `adoption`.
//!
//! No single node can start on a folder with this note. A node of the adopting fleet can start on
//! it once the progress is `done`. The note is written before the horizon is marked, and is never
//! removed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::file_system::{MachineFiles, create_file};
use crate::failure::{FailureKind, StoreError};

/// The format version of the adoption notes that this program writes. Adoption notes with this
/// version or an earlier version can be read.
const VERSION: u32 = 3;

/// The note in the folder of a node that a fleet adopts: the fleet and the progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdoptionNote {
    #[serde(rename = "v")]
    version: u32,
    /// The random id of the adoption, which the fleet stores until the adoption is complete. `None`
    /// in a note of version 1 or 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adoption: Option<String>,
    /// The namespace of the fleet.
    pub namespace: String,
    /// The endpoints of the fleet's etcd at the time when the fleet began to take over the node.
    /// They are used only in messages to people.
    pub endpoints: Vec<String>,
    /// The progress of the adoption.
    pub progress: AdoptionProgress,
    /// The original id of the fleet. A fence gives the fleet a new id, but this field keeps the
    /// original one. `None` before the fleet has raised its floor, and in a note of version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// The progress of an adoption. The text in a variant is the id of the fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdoptionProgress {
    /// The adoption has begun. The fleet may not know about the node yet.
    Begun,
    /// The fleet with this id has raised its floor, so it repeats no id of the node. Some records
    /// of the node may still be missing in the fleet.
    FloorRaised(String),
    /// The fleet with this id has everything that the node stored.
    Done(String),
}

/// The error of an adoption note that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}, which names the fleet that adopts this node; {}", .path.display(), advice(.cause))]
pub(crate) struct NoteUnreadable {
    path: PathBuf,
    #[source]
    cause: io::Error,
}

impl NoteUnreadable {
    /// Returns the kind of failure, which determines the operator's next step.
    pub(crate) fn failure_kind(&self) -> FailureKind {
        match self.cause.kind() {
            io::ErrorKind::InvalidData => FailureKind::Damaged,
            io::ErrorKind::Unsupported => FailureKind::Disagrees,
            _ => FailureKind::NotUsable,
        }
    }
}

fn advice(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::Unsupported => "start the version that wrote it, or a later one",
        _ => "restore a good copy of the file",
    }
}

/// The version number in an adoption note. It is parsed first, because it determines the form of
/// the other fields.
#[derive(Deserialize)]
struct Version {
    v: u32,
}

impl AdoptionNote {
    /// Returns the note for an adoption that begins now. `adoption` is its random id.
    pub fn begun(adoption: String, namespace: String, endpoints: Vec<String>) -> AdoptionNote {
        AdoptionNote {
            version: VERSION,
            adoption: Some(adoption),
            namespace,
            endpoints,
            progress: AdoptionProgress::Begun,
            origin: None,
        }
    }

    /// Returns the note with this id and this progress of the adoption. `origin` is the original id
    /// of that fleet, which a restore of the fleet does not change.
    #[must_use]
    pub fn at(
        self,
        adoption: String,
        progress: AdoptionProgress,
        origin: Option<String>,
    ) -> AdoptionNote {
        AdoptionNote {
            version: VERSION,
            adoption: Some(adoption),
            progress,
            origin,
            ..self
        }
    }

    /// Reads the note at `path`. Returns `None` if the file does not exist, which means that no
    /// fleet is adopting the node.
    ///
    /// # Errors
    /// Returns [`NoteUnreadable`] if the file cannot be read or parsed, or has a later version.
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
        let version: Version =
            serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))?;
        if version.v > VERSION {
            let why = format!(
                "the file was written by a later version of this program: it has version {}, but this program reads \
                 version {VERSION}",
                version.v
            );
            return Err(unreadable(io::Error::new(io::ErrorKind::Unsupported, why)));
        }
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| invalid(error.to_string()))
    }

    /// Writes the note to `path`. The note is durable when this method returns.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the file cannot be written. The file then has either the old note
    /// or the new one.
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
        let begun = AdoptionNote::begun("7".repeat(32), "default".to_owned(), Vec::new());
        let fleet = "0".repeat(32);
        for progress in [
            AdoptionProgress::Begun,
            AdoptionProgress::FloorRaised(fleet.clone()),
            AdoptionProgress::Done(fleet.clone()),
        ] {
            let note = begun
                .clone()
                .at("7".repeat(32), progress, Some(fleet.clone()));
            note.write(&path).expect("the folder is writable");
            assert_eq!(AdoptionNote::read(&path).expect("it is whole"), Some(note));
        }
        let text = fs::read_to_string(&path).expect("it is there");
        for wrong in [
            "",
            "{}",
            &text.replace("\"v\":3", "\"w\":3"),
            &text.replace("done", "over"),
        ] {
            fs::write(&path, wrong).expect("the folder is writable");
            let error = AdoptionNote::read(&path).expect_err("it is no note");
            assert_eq!(error.failure_kind(), FailureKind::Damaged, "{wrong:?}");
        }
        fs::write(&path, text.replace("\"v\":3", "\"v\":4,\"more\":0"))
            .expect("the folder is writable");
        let error = AdoptionNote::read(&path).expect_err("it is of a later version");
        assert_eq!(error.failure_kind(), FailureKind::Disagrees);
        assert!(error.to_string().contains("the version that wrote it"));
        let first = text.replace("\"v\":3", "\"v\":1");
        let first = first.replace(&format!("\"adoption\":\"{}\",", "7".repeat(32)), "");
        let first = first.replace(&format!(",\"origin\":\"{fleet}\""), "");
        fs::write(&path, first).expect("the folder is writable");
        let note = AdoptionNote::read(&path).expect("version 1 is read");
        let note = note.expect("it is there");
        assert_eq!((note.version, note.origin, note.adoption), (1, None, None));
    }
}
