//! Detects that a node of a fleet starts in the data folder of a single node, or the other way
//! round.
//!
//! A node of one kind cannot read from the other kind's files up to which time ids were issued. So
//! a node does not start in a folder of the other kind until an operator has decided how to
//! continue: either a fleet adopts the folder, or the operator sets a floor, the time below which
//! no id is minted.

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
use super::horizon::is_noted_as_adopted;
use crate::failure::{FailureKind, StoreError, WithCauses};
use crate::files::{CheckedFile, FolderLock, FolderLockError};
use idmint_core::time::UnixNanos;

/// The name prefix of high-water files. They contain the times that the coordinator has confirmed
/// to a fleet node: the floor, and the horizons of the node's slots.
const HIGH_WATER: &str = "high-water-";

/// The data folder of a node in a fleet. If the folder could be locked, it stays locked until this
/// value and all clones of its lock are dropped.
#[derive(Debug)]
pub struct FleetFolder {
    lock: Option<Arc<FolderLock>>,
}

impl FleetFolder {
    /// Opens and locks the folder of a fleet node, and creates it if it is missing. Checks whether
    /// a single node has minted ids in it before.
    ///
    /// If the folder or its lock file cannot be created or opened, a warning is logged, and the
    /// node continues without a lock. A fleet node does not need the content of the folder.
    ///
    /// # Errors
    /// Returns [`StoreError`] in these cases:
    /// - Another process holds the lock.
    /// - A single node has minted there, and no fleet has adopted that node.
    /// - The adoption note is unreadable, of another namespace, or of an unfinished adoption.
    /// - The lookup of a file in the folder fails.
    pub fn open(path: &Path, namespace: &str) -> Result<FleetFolder, StoreError> {
        let lock = lock(path)?;
        check_single_node(path, namespace)?;
        Ok(FleetFolder { lock })
    }

    /// Returns the lock on the folder, if it could be acquired. A process must hold the lock while
    /// it writes to the folder.
    pub fn lock(&self) -> Option<Arc<FolderLock>> {
        self.lock.clone()
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
                "{}; continuing without a lock, so nothing keeps another process out of storage.data_dir",
                WithCauses(&error)
            );
            Ok(None)
        }
    }
}

/// Checks that a fleet node may use the folder. Fails if a single node has minted there and no
/// fleet has adopted that node, or if a lookup fails. Also fails if the adoption note is
/// unreadable, of another namespace, or of an unfinished adoption.
fn check_single_node(path: &Path, namespace: &str) -> Result<(), StoreError> {
    let disagrees = |text: String| StoreError::new(FailureKind::Disagrees, text);
    let (dir, horizon) = (path.display(), path.join("horizon"));
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
                 with the configuration of that fleet, until it reports success; or give this node another \
                 storage.data_dir"
            ))),
            AdoptionProgress::Done(_) => Ok(()),
        };
    }
    match is_there(&horizon)? || is_there(&path.join(DATABASE_NAME))? {
        false => Ok(()),
        true if is_noted_as_adopted(&horizon) => Ok(()),
        true => Err(disagrees(format!(
            "a single node has minted in {dir}, and the fleet {namespace} does not know its ids: run `idmint fleet adopt \
             {dir}` with this configuration to move its ids, ledgers and conjunctions into the fleet; or, if they are \
             not in use, give this node another storage.data_dir"
        ))),
    }
}

/// Returns `true` if something exists at `path`. Returns an error if the lookup fails, because a
/// wrong answer could cause ids to be minted twice.
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

/// Evidence that a node of a fleet has used a data folder. A single node looks for this evidence if
/// its folder has no file with a horizon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FormerFleet {
    /// A high-water file, in which a fleet node stored times up to which ids may have been issued.
    pub(super) path: PathBuf,
    /// The latest time in the readable high-water files, if any. The fleet may have issued later
    /// ids, because the files may be old, and contain no horizons of other nodes.
    pub(super) highest: Option<UnixNanos>,
}

impl FormerFleet {
    /// Returns evidence that a fleet node has used the folder, or `None` if no fleet node has
    /// minted ids there.
    ///
    /// # Errors
    /// Returns any error of the file system while listing the folder.
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

/// Returns `true` if `name` is the name of a finished high-water file, which shows up to which time
/// ids may have been issued. The temporary file of a killed process does not count, because a fleet
/// node mints ids only once the finished file exists.
fn is_high_water(name: &OsStr) -> bool {
    name.to_str()
        .and_then(|name| name.strip_prefix(HIGH_WATER))
        .is_some_and(|namespace| !namespace.contains('.'))
}

/// The fields of a high-water file that show up to which time ids were issued, in milliseconds
/// since 1970. `crates/idmint-fleet/src/high_water/` writes these files.
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
    use crate::embedded::AdoptedFolder;
    use crate::engine::OwnEngine;
    use crate::samples::ready;

    const NOON: UnixNanos = UnixNanos::from_seconds(1_900_000_000);

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    /// Returns a folder in which a single node has reserved the time up to noon for minting.
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
        let note = AdoptionNote::begun(
            "7".repeat(32),
            namespace.to_owned(),
            vec!["http://etcd-0:2379".to_owned()],
        )
        .at("7".repeat(32), progress, None);
        AdoptedFolder::open(root)
            .expect("a node has kept something")
            .write_note(note)
            .expect("it is writable");
    }

    fn open(root: &Path) -> Result<(), (FailureKind, String)> {
        let opened = FleetFolder::open(root, "ours");
        opened
            .map(drop)
            .map_err(|error| (error.failure_kind(), error.to_string()))
    }

    #[test]
    fn a_folder_of_a_single_node_is_one_of_a_fleet_only_once_that_fleet_has_adopted_it() {
        assert_eq!(open(&folder().path().join("new")), Ok(()));
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
        open(root.path()).expect("it is adopted");
        fs::remove_file(root.path().join("adoption.json")).expect("it is there");
        open(root.path()).expect("the horizon says so, too");

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
