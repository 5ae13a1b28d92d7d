//! The folder of a node that a fleet adopts: no node starts on it any more, and all that it keeps is read.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::adoption_note::AdoptionNote;
use super::data_dir::DataDir;
use super::folder::OpenError;
use super::horizon::{HorizonFile, kept_slot};
use super::tables::{Database, FormatsTable, RecordTables};
use crate::conjunction::Pair;
use crate::ledger::{EventId, LedgerId};
use crate::storage::failure::{FailureKind, StoreError};
use crate::storage::records::{LedgerSummary, NumberStore, RecordStore, StoredAppend, StoredPair};
use crate::time::UnixNanos;

/// The folder of a node that a fleet adopts, locked for as long as the value lives.
pub struct AdoptedFolder {
    // The order of the fields is the order of closing: the lock goes last.
    tables: Option<Tables>,
    horizon: HorizonFile,
    note: Option<AdoptionNote>,
    data_dir: Arc<DataDir>,
}

/// The database, if the node ever had one.
struct Tables {
    formats: BTreeMap<String, BTreeMap<String, String>>,
    records: RecordTables,
}

impl AdoptedFolder {
    /// Opens the folder of a node that does not run.
    ///
    /// # Errors
    /// [`StoreError`], as a start on the folder would say; also where no node has kept anything.
    pub fn open(dir: &Path) -> Result<AdoptedFolder, StoreError> {
        let nothing = || {
            let text = format!(
                "no node has kept anything in {}: there is nothing to adopt",
                dir.display()
            );
            StoreError::new(FailureKind::NotUsable, text)
        };
        if !dir.is_dir() {
            return Err(nothing());
        }
        let data_dir = DataDir::open(dir).map_err(OpenError::from)?;
        let files = data_dir.find().map_err(OpenError::from)?;
        let path = data_dir.horizon_path();
        if !files.has_horizon() {
            let missing = OpenError::HorizonMissing { path };
            return Err(if files.has_database() {
                missing.into()
            } else {
                nothing()
            });
        }
        let note = AdoptionNote::read(&data_dir.adoption_path()).map_err(OpenError::from)?;
        // Whose slot it was does not matter: in the fleet no slot begins below.
        let slot = kept_slot(&path).unwrap_or_default();
        let (horizon, _) = HorizonFile::open(&path, slot)?;
        if horizon.has_records() && !files.has_database() {
            return Err(OpenError::DatabaseMissing {
                path: data_dir.database_path(),
            }
            .into());
        }
        let data_dir = Arc::new(data_dir);
        let tables = match files.has_database() {
            true => Some(Tables::open(&data_dir, &horizon)?),
            false => None,
        };
        Ok(AdoptedFolder {
            tables,
            horizon,
            note,
            data_dir,
        })
    }

    /// The first instant at which no id can have been minted here yet.
    pub fn horizon(&self) -> UnixNanos {
        self.horizon.horizon()
    }

    /// What is noted of the adoption; `None` before it has begun.
    pub fn note(&self) -> Option<&AdoptionNote> {
        self.note.as_ref()
    }

    /// Notes how far the adoption has come, durable when this returns: from the first note on no node starts on the folder.
    ///
    /// # Errors
    /// [`StoreError`]; what is noted then is what was, or this.
    pub fn write_note(&mut self, note: AdoptionNote) -> Result<(), StoreError> {
        // The note first: it is what a refused start reads. Without it the horizon still refuses, to programs also that know
        // of no notes.
        note.write(&self.data_dir.adoption_path())?;
        if !self.horizon.is_adopted() {
            self.horizon.note_adoption()?;
        }
        self.note = Some(note);
        Ok(())
    }

    /// The kept formats: name and description of each.
    pub fn formats(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        self.tables
            .as_ref()
            .map(|tables| tables.formats.clone())
            .unwrap_or_default()
    }

    /// Ledgers in the order of their ids, those above `after`, at most `count_max`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn ledgers(
        &self,
        after: Option<LedgerId>,
        count_max: usize,
    ) -> Result<Vec<LedgerSummary>, StoreError> {
        self.tables.as_ref().map_or(Ok(Vec::new()), |tables| {
            tables.records.ledgers(after, count_max)
        })
    }

    /// The appends of a ledger behind the one that ends with `after`, or from the first, at most `count_max`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn appends(
        &self,
        ledger: LedgerId,
        after: Option<EventId>,
        count_max: usize,
    ) -> Result<Vec<StoredAppend>, StoreError> {
        self.tables.as_ref().map_or(Ok(Vec::new()), |tables| {
            tables.records.appends(ledger, after, count_max)
        })
    }

    /// The numbers of every series, if the node ever had a database.
    pub fn numbers(&self) -> Option<&dyn NumberStore> {
        self.tables
            .as_ref()
            .map(|tables| &tables.records as &dyn NumberStore)
    }

    /// Pairs in the order of their formats and objects, those behind `after`, at most `count_max`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn pairs(
        &self,
        after: Option<(&str, Pair)>,
        count_max: usize,
    ) -> Result<Vec<StoredPair>, StoreError> {
        self.tables.as_ref().map_or(Ok(Vec::new()), |tables| {
            tables.records.pairs(after, count_max)
        })
    }
}

impl Tables {
    fn open(data_dir: &Arc<DataDir>, horizon: &HorizonFile) -> Result<Tables, StoreError> {
        let database = Database::open(&data_dir.database_path(), horizon.commit_mark()?)?;
        let formats = FormatsTable::new(&database).kept()?;
        let database = Arc::new(database.locked_by(Arc::clone(data_dir)));
        Ok(Tables {
            formats,
            records: RecordTables::open(database)?,
        })
    }
}
