//! A data folder between the two ways of minting: what a single node left where a node of a fleet starts, and the other way round.
//!
//! Nothing of the one tells the other how far ids were issued, so neither goes on where the other has been without somebody's word:
//! a fleet adopts the folder, or an operator states a floor.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use tracing::warn;

use super::adoption_note::{AdoptionNote, AdoptionProgress};
use super::data_dir::DATABASE_NAME;
use super::file_system::{MachineFiles, create_folder};
use super::horizon::{highest_readable, is_noted_as_adopted};
use crate::storage::failure::{FailureKind, StoreError, WithCauses};
use crate::storage::files::{CheckedFile, FolderLock, FolderLockError};
use crate::time::UnixNanos;

/// How the files begin in which a node keeps what it knows of its coordinator.
const HIGH_WATER: &str = "high-water-";

/// The data folder of a node of a fleet, for as long as the value lives.
#[derive(Debug)]
pub struct FleetFolder {
    lock: Option<Arc<FolderLock>>,
    adopted: Option<AdoptedNode>,
}

/// The single node that was in a folder, and is in a fleet now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptedNode {
    /// The folder.
    pub path: PathBuf,
    /// The fleet that has it; `None` where the file that says so is missing.
    pub fleet: Option<String>,
    /// The first instant at which no id can have been minted there.
    pub horizon: UnixNanos,
}

impl FleetFolder {
    /// Creates the folder if need be and locks it, and looks whether a single node has minted there. Where it can be neither
    /// created nor locked that is said, and gone on without: what is kept in it is only ever a help.
    ///
    /// # Errors
    /// [`StoreError`]: another process has it, a single node has that the fleet of this namespace has not adopted, or that cannot
    /// be told.
    pub fn open(path: &Path, namespace: &str) -> Result<FleetFolder, StoreError> {
        let lock = lock(path)?;
        let adopted = find_single_node(path, namespace)?;
        Ok(FleetFolder { lock, adopted })
    }

    /// What keeps other processes out, if anything does: to be held by the process that writes there.
    pub fn lock(&self) -> Option<Arc<FolderLock>> {
        self.lock.clone()
    }

    /// The single node that has minted there, and that a fleet of this namespace has adopted.
    pub fn adopted(&self) -> Option<&AdoptedNode> {
        self.adopted.as_ref()
    }
}

fn lock(path: &Path) -> Result<Option<Arc<FolderLock>>, StoreError> {
    let locked = match create_folder(&MachineFiles, path) {
        Ok(()) => FolderLock::take(path),
        Err(cause) => Err(FolderLockError::NotLocked {
            path: path.to_owned(),
            step: "create the folder",
            cause,
        }),
    };
    match locked {
        Ok(lock) => Ok(Some(Arc::new(lock))),
        Err(held @ FolderLockError::Held { .. }) => Err(StoreError::new(FailureKind::Locked, held)),
        Err(error @ FolderLockError::NotLocked { .. }) => {
            warn!(
                "{}; storage.data_dir is gone on without: nothing keeps another process out of it",
                WithCauses(&error)
            );
            Ok(None)
        }
    }
}

/// The single node of the folder, if there was one, which must be in the fleet.
fn find_single_node(path: &Path, namespace: &str) -> Result<Option<AdoptedNode>, StoreError> {
    let disagrees = |text: String| StoreError::new(FailureKind::Disagrees, text);
    let (dir, horizon) = (path.display(), path.join("horizon"));
    let adopted = |fleet| AdoptedNode {
        path: path.to_owned(),
        fleet,
        horizon: highest_readable(&horizon).unwrap_or_default(),
    };
    let note = path.join("adoption.json");
    let note = match is_there(&note)? {
        true => AdoptionNote::read(&note)
            .map_err(|error| StoreError::new(error.failure_kind(), error))?,
        false => None,
    };
    if let Some(AdoptionNote {
        namespace: kept,
        endpoints,
        progress,
        ..
    }) = note
    {
        let endpoints = endpoints.join(", ");
        return match progress {
            _ if kept != namespace => Err(disagrees(format!(
                "the node of {dir} was adopted by the fleet {kept} at {endpoints}, and this is the fleet {namespace}: give this \
                 node another storage.data_dir"
            ))),
            AdoptionProgress::Begun | AdoptionProgress::FloorRaised(_) => Err(disagrees(format!(
                "the node of {dir} is being adopted by the fleet {kept} at {endpoints}: run `idmint fleet adopt {dir}` again, \
                 with the configuration of that fleet, until it says that all is there; or give this node another \
                 storage.data_dir"
            ))),
            AdoptionProgress::Done(fleet) => Ok(Some(adopted(Some(fleet)))),
        };
    }
    match is_there(&horizon)? || is_there(&path.join(DATABASE_NAME))? {
        false => Ok(None),
        true if is_noted_as_adopted(&horizon) => Ok(Some(adopted(None))),
        true => Err(disagrees(format!(
            "a node that was alone has minted in {dir}, and the fleet {namespace} does not know what: run `idmint fleet adopt \
             {dir}` with this configuration, which brings its ids, ledgers and conjunctions into the fleet; or, if they are used \
             nowhere, give this node another storage.data_dir"
        ))),
    }
}

/// Whether something lies at a path. Where that cannot be told it is not guessed: ids could be minted a second time.
fn is_there(path: &Path) -> Result<bool, StoreError> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(false),
        Err(cause) => {
            let text = format!("cannot look for {}: {cause}", path.display());
            Err(StoreError::new(FailureKind::NotUsable, text))
        }
    }
}

/// What a node of a fleet left in a folder, for a single node that finds nothing else there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FormerFleet {
    /// A file in which it kept what it knew of its coordinator.
    pub(super) path: PathBuf,
    /// The first instant at which the fleet cannot have issued an id, as far as these files say: it may have gone on.
    pub(super) highest: Option<UnixNanos>,
}

impl FormerFleet {
    /// What there is in the folder; `None` where no node of a fleet has minted.
    ///
    /// # Errors
    /// What the system says of the folder.
    pub(super) fn find(folder: &Path) -> io::Result<Option<FormerFleet>> {
        let mut found: Option<FormerFleet> = None;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if !is_high_water(&entry.file_name()) {
                continue;
            }
            let (path, known) = (entry.path(), highest_in(&entry.path()));
            if let Err(error) = &known {
                warn!(path = %path.display(), "{} cannot be read: {error}", path.display());
            }
            let highest = found
                .as_ref()
                .and_then(|found| found.highest)
                .max(known.ok().flatten());
            found = Some(FormerFleet { path, highest });
        }
        Ok(found)
    }
}

/// Not one that was being written when its process ended: the file itself is there by then, or no id was minted.
fn is_high_water(name: &OsStr) -> bool {
    name.to_str()
        .and_then(|name| name.strip_prefix(HIGH_WATER))
        .is_some_and(|namespace| !namespace.contains('.'))
}

/// As much of such a file as says how far ids were issued; `cluster/high_water/` writes it.
#[derive(Deserialize)]
struct Known {
    floor_ms: u64,
    slots: BTreeMap<u32, Acknowledged>,
}

#[derive(Deserialize)]
struct Acknowledged {
    h_ms: u64,
}

fn highest_in(path: &Path) -> io::Result<Option<UnixNanos>> {
    let Some(text) = CheckedFile::at(path).read()? else {
        return Ok(None);
    };
    let known: Known = serde_json::from_str(&text)?;
    let millis = known
        .slots
        .values()
        .map(|slot| slot.h_ms)
        .fold(known.floor_ms, u64::max);
    Ok(millis.checked_mul(1_000_000).map(UnixNanos::new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::embedded::AdoptedFolder;
    use crate::storage::engine::OwnEngine;
    use crate::storage::samples::ready;

    const NOON: UnixNanos = UnixNanos::from_seconds(1_900_000_000);

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    /// A folder in which a single node has reserved up to noon.
    fn of_a_single_node() -> tempfile::TempDir {
        let root = folder();
        let engine = OwnEngine::Embedded {
            data_dir: root.path().to_owned(),
        };
        drop(ready(
            engine.open(0, None).expect("the folder is free"),
            NOON,
            &[],
        ));
        root
    }

    fn adopt(root: &Path, namespace: &str, progress: AdoptionProgress) {
        let note = AdoptionNote::begun(namespace.to_owned(), vec!["http://etcd-0:2379".to_owned()])
            .at(progress);
        AdoptedFolder::open(root)
            .expect("a node has kept something")
            .write_note(note)
            .expect("it is writable");
    }

    fn open(root: &Path) -> Result<Option<AdoptedNode>, (FailureKind, String)> {
        let opened = FleetFolder::open(root, "ours");
        opened
            .map(|folder| folder.adopted().cloned())
            .map_err(|error| (error.failure_kind(), error.to_string()))
    }

    #[test]
    fn a_folder_of_a_single_node_is_one_of_a_fleet_only_once_that_fleet_has_adopted_it() {
        assert_eq!(open(&folder().path().join("new")), Ok(None));
        let (fleet, root) = ("0".repeat(32), of_a_single_node());
        let (kind, text) = open(root.path()).expect_err("nobody has adopted it");
        assert_eq!(kind, FailureKind::Disagrees);
        let command = format!("`idmint fleet adopt {}`", root.path().display());
        assert!(
            text.contains(&command) && text.contains("another storage.data_dir"),
            "{text}"
        );
        let horizon_alone = of_a_single_node();
        fs::remove_file(horizon_alone.path().join(DATABASE_NAME)).expect("it is there");
        let database_alone = of_a_single_node();
        fs::remove_file(database_alone.path().join("horizon")).expect("it is there");
        for half in [horizon_alone, database_alone] {
            assert_eq!(
                open(half.path()).expect_err("nobody has adopted it").0,
                FailureKind::Disagrees
            );
        }

        for unfinished in [
            AdoptionProgress::Begun,
            AdoptionProgress::FloorRaised(fleet.clone()),
        ] {
            adopt(root.path(), "ours", unfinished);
            let (kind, text) = open(root.path()).expect_err("its ledgers may not be there");
            assert!(
                kind == FailureKind::Disagrees && text.contains(&command),
                "{text}"
            );
        }
        adopt(root.path(), "ours", AdoptionProgress::Done(fleet.clone()));
        let node = open(root.path())
            .expect("it is adopted")
            .expect("there was a node");
        assert_eq!((node.fleet, node.horizon), (Some(fleet.clone()), NOON));
        fs::remove_file(root.path().join("adoption.json")).expect("it is there");
        let node = open(root.path())
            .expect("the horizon says so, too")
            .expect("there was a node");
        assert_eq!((node.fleet, node.horizon), (None, NOON));

        adopt(root.path(), "theirs", AdoptionProgress::Done(fleet));
        let (kind, text) = open(root.path()).expect_err("another fleet has it");
        assert!(
            kind == FailureKind::Disagrees && text.contains("theirs") && text.contains("ours"),
            "{text}"
        );
        fs::write(root.path().join("adoption.json"), "{").expect("it is writable");
        assert_eq!(
            open(root.path()).expect_err("whose it is cannot be read").0,
            FailureKind::Damaged
        );
    }

    #[test]
    fn a_folder_that_another_process_has_is_locked_and_one_that_cannot_be_made_is_gone_on_without()
    {
        let root = folder();
        let first = FleetFolder::open(root.path(), "ours").expect("it is free");
        let lock = first.lock();
        drop(first);
        for namespace in ["ours", "theirs"] {
            let locked =
                FleetFolder::open(root.path(), namespace).expect_err("whoever writes there has it");
            assert_eq!(locked.failure_kind(), FailureKind::Locked);
            assert!(
                locked
                    .to_string()
                    .contains(&format!("process {}", std::process::id())),
                "{locked}"
            );
        }
        let single = OwnEngine::Embedded {
            data_dir: root.path().to_owned(),
        };
        assert_eq!(
            single.open(0, None).err().map(|error| error.failure_kind()),
            Some(FailureKind::Locked)
        );
        drop(lock);
        assert!(
            FleetFolder::open(root.path(), "ours")
                .expect("it is free again")
                .lock()
                .is_some()
        );

        let file = root.path().join("file");
        fs::write(&file, "").expect("the folder is writable");
        for path in [file.clone(), file.join("below")] {
            assert!(
                FleetFolder::open(&path, "ours")
                    .expect("it is only a help")
                    .lock()
                    .is_none()
            );
        }
    }
}
