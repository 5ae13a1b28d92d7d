//! Finds out whether a node's next start would succeed, without changing the node's data folder.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use super::adoption_note::AdoptionNote;
use super::data_dir::{DATABASE_NAME, DataDirError, FoundFiles};
use super::fleet_folder::FormerFleet;
use super::folder::OpenError;
use super::horizon::{CommitMark, HorizonError, HorizonFile};
use super::overlay_file::OverlayFile;
use super::restore::RestoreNote;
use super::tables::{Database, FormatsTable, RecordTables};
use crate::engine::StatedFloor;
use crate::failure::{FailureKind, StoreError};
use crate::kept_formats::{FormatsError, KeptFormat};
use crate::records::{NumberStore, TextChange};
use idmint_core::time::UnixNanos;
use idmint_records::ledger::NumberRules;

/// The maximum number of attempts to read a data folder. A running node may change a file between
/// two reads, so that the file looks damaged.
const ATTEMPTS: usize = 5;

/// The kind of start for which a folder is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStart {
    /// The folder is missing or has no file with the horizon, the time up to which ids may be
    /// minted. So the next start is the first start of a node in it.
    First,
    /// The folder has a horizon, and the configuration fits the stored formats and series. The
    /// values are the horizon, and the series whose new numbers are written differently than at the
    /// last start. For the first start after a restore, the horizon is the stated floor.
    Again(UnixNanos, Vec<TextChange>),
    /// This user may not read the folder.
    Unreadable,
}

impl NextStart {
    /// Compares a configuration with the data in the folder `dir`, as the next start will do. No
    /// file is locked or written, so a node may be running on the folder.
    ///
    /// # Errors
    /// Returns the [`FormatsError`] with which a start with these arguments would fail.
    pub fn on(
        dir: &Path,
        slot: u32,
        floor: StatedFloor,
        slots: u32,
        formats: &[KeptFormat],
        rules: &NumberRules,
    ) -> Result<NextStart, FormatsError> {
        let compare = || compare(dir, slot, floor, slots, formats, rules);
        for _ in 1..ATTEMPTS {
            match compare() {
                Err(error) if error.failure_kind() == FailureKind::Damaged => {}
                compared => return compared,
            }
        }
        compare()
    }
}

fn compare(
    dir: &Path,
    slot: u32,
    floor: StatedFloor,
    slots: u32,
    formats: &[KeptFormat],
    rules: &NumberRules,
) -> Result<NextStart, FormatsError> {
    let (horizon_path, database_path) = (dir.join("horizon"), dir.join(DATABASE_NAME));
    let files = match (find(&horizon_path), find(&database_path)) {
        (Ok(false), Ok(false)) => FoundFiles::Nothing,
        (Ok(true), Ok(false)) => FoundFiles::HorizonOnly,
        (Ok(false), Ok(true)) => FoundFiles::DatabaseOnly,
        (Ok(true), Ok(true)) => FoundFiles::Both,
        (Err(error), _) | (_, Err(error)) if error.kind() == ErrorKind::PermissionDenied => {
            return Ok(NextStart::Unreadable);
        }
        (Err(cause), _) | (_, Err(cause)) => return Err(not_usable(dir, cause).into()),
    };
    let note = AdoptionNote::read(&dir.join("adoption.json"));
    let note = note.map_err(|error| StoreError::from(OpenError::from(error)))?;
    let adopted = |note| {
        let path = dir.to_owned();
        StoreError::from(OpenError::Adopted { path, note })
    };
    if let Some(note) = note {
        return Err(adopted(Some(Box::new(note))).into());
    }
    let floor = RestoreNote::of(dir).floor_of_a_start(files, floor);
    let floor = floor.map_err(StoreError::from)?;
    if let (FoundFiles::DatabaseOnly, Some(floor)) = (files, floor) {
        let agreed = agree(&database_path, Arc::default(), slots, formats, rules)?;
        return Ok(NextStart::Again(floor, agreed));
    }
    if !files.has_horizon() {
        let former = match FormerFleet::find(dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(NextStart::First),
            found => found.map_err(|cause| not_usable(dir, cause))?,
        };
        let error = match (files.has_database(), former) {
            (true, _) => OpenError::HorizonMissing { path: horizon_path },
            (false, Some(FormerFleet { path, .. })) => OpenError::FormerFleet { path },
            (false, None) => return Ok(NextStart::First),
        };
        return Err(StoreError::from(error).into());
    }
    let overlay = || {
        OverlayFile::open(&horizon_path).map_err(|cause| {
            let path = horizon_path.clone();
            StoreError::from(HorizonError::NotOpened { path, cause })
        })
    };
    let (horizon, _) =
        HorizonFile::read_from(overlay()?, &horizon_path, slot).map_err(StoreError::from)?;
    if horizon.is_adopted() {
        return Err(adopted(None).into());
    }
    if !files.has_database() {
        if horizon.has_records() {
            let path = database_path;
            return Err(StoreError::from(OpenError::DatabaseMissing { path }).into());
        }
        return Ok(NextStart::Again(horizon.horizon(), Vec::new()));
    }
    let mark = CommitMark::read(Arc::new(overlay()?)).map_err(|version| {
        let path = horizon_path.clone();
        StoreError::from(HorizonError::UnknownVersion { path, version })
    })?;
    let agreed = agree(&database_path, Arc::new(mark), slots, formats, rules)?;
    Ok(NextStart::Again(horizon.horizon(), agreed))
}

/// Compares a configuration with the database at `path`. Returns the series whose new numbers are
/// written differently than at the last start.
fn agree(
    path: &Path,
    mark: Arc<CommitMark>,
    slots: u32,
    formats: &[KeptFormat],
    rules: &NumberRules,
) -> Result<Vec<TextChange>, FormatsError> {
    let database = Database::open_overlaid(path, mark).map_err(StoreError::from)?;
    FormatsTable::new(&database).agree(slots, formats)?;
    let records = RecordTables::open(Arc::new(database)).map_err(StoreError::from)?;
    Ok(records.agree_on_rules(rules)?.changes)
}

/// Returns `true` if the file exists and can be read.
fn find(path: &Path) -> io::Result<bool> {
    match File::open(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn not_usable(dir: &Path, cause: io::Error) -> StoreError {
    let error = DataDirError::NotUsable {
        path: dir.to_owned(),
        step: "look into",
        cause,
    };
    OpenError::from(error).into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::*;
    use crate::engine::OwnEngine;
    use crate::start::Opened;
    use idmint_core::minting::HorizonPlan;

    fn format(tick: &str) -> KeptFormat {
        KeptFormat {
            name: "mine".to_owned(),
            description: BTreeMap::from([("tick".to_owned(), tick.to_owned())]),
            is_minted: true,
        }
    }

    #[test]
    fn what_would_end_the_next_start_is_found_while_a_node_runs_and_nothing_is_written() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let dir = folder.path().join("data");
        let next = |slot, slots, tick: &str| {
            let (formats, rules) = (&[format(tick)], &NumberRules::default());
            NextStart::on(&dir, slot, StatedFloor::None, slots, formats, rules)
        };
        assert!(matches!(next(0, 4, "1ms"), Ok(NextStart::First)));
        assert!(!dir.exists(), "the folder is not created");

        let engine = OwnEngine::Embedded {
            data_dir: dir.clone(),
        };
        let Ok(Opened::First(first)) = engine.open(0, None) else {
            panic!("an empty folder")
        };
        let (reserved, _) = first
            .reserve(HorizonPlan::at(UnixNanos::from_seconds(1_800_000_000)))
            .expect("a horizon");
        let store = reserved.agree_on_formats(4, &[format("1ms")]).expect("new");
        let mut running = Some(store);
        for _ in 0..2 {
            let files = || {
                let mut files = Vec::new();
                for entry in fs::read_dir(&dir).expect("the folder") {
                    let path = entry.expect("an entry").path();
                    files.push((path.clone(), fs::read(path).expect("a file")));
                }
                files.sort();
                files
            };
            let before = files();
            assert!(matches!(next(0, 4, "1ms"), Ok(NextStart::Again(_, _))));
            let changed = next(0, 4, "1s").expect_err("another tick");
            assert!(matches!(changed, FormatsError::Changed { .. }), "{changed}");
            let slots = next(0, 5, "1ms").expect_err("more slots");
            assert!(
                matches!(slots, FormatsError::SlotsChanged { .. }),
                "{slots}"
            );
            let slot = next(1, 4, "1ms").expect_err("another slot");
            assert!(slot.to_string().contains("slot 0"), "{slot}");
            assert!(files() == before, "no file has changed");
            drop(running.take());
        }
        fs::remove_file(dir.join("horizon")).expect("it is removed");
        let missing = next(0, 4, "1ms").expect_err("a lost horizon");
        assert_eq!(missing.failure_kind(), FailureKind::Damaged);
    }
}
