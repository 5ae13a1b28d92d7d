//! Reads the data folder of a single node that a fleet adopts. Once the adoption has begun, the
//! node can no longer start as a single node.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::adoption_note::AdoptionNote;
use super::data_dir::DataDir;
use super::folder::OpenError;
use super::horizon::{HorizonFile, kept_slot};
use super::tables::{Database, FormatsTable, RecordTables};
use crate::failure::{FailureKind, StoreError};
use crate::records::{LedgerStore, LedgerSummary, NumberStore, StoredAppend, StoredPair};
use idmint_core::time::UnixNanos;
use idmint_records::conjunction::Pair;
use idmint_records::ledger::{EventId, LedgerId};

/// The data folder of a single node that a fleet adopts. The folder stays locked until this value
/// is dropped.
pub struct AdoptedFolder {
    // The fields are dropped in this order, so the lock is released last.
    tables: Option<Tables>,
    slot: u32,
    horizon: HorizonFile,
    note: Option<AdoptionNote>,
    data_dir: Arc<DataDir>,
}

/// The tables in the database of the node that a fleet takes over. [`AdoptedFolder`] has no tables
/// if the node never created a database.
struct Tables {
    slots: Option<u32>,
    formats: BTreeMap<String, BTreeMap<String, String>>,
    records: RecordTables,
}

impl AdoptedFolder {
    /// Opens the folder of a node that is not running.
    ///
    /// # Errors
    /// Returns the [`StoreError`] that a start on this folder would return. Also returns an error
    /// if no node has stored anything in `dir`, or if series of the node are still on hold after a
    /// restore.
    pub fn open(dir: &Path) -> Result<AdoptedFolder, StoreError> {
        let nothing = || {
            let text = format!(
                "no node has stored anything in {}: there is nothing to adopt",
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
        // Accept any slot, even one that the fleet uses. With this node's worker numbers, the fleet
        // mints no id below this node's horizon.
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
        let is_held = tables
            .as_ref()
            .is_some_and(|tables| tables.records.may_hold);
        // Refuse a node whose series are on hold after a restore, or will be from the next start on
        // because of a stated floor. The restored data may lack issued numbers, and the fleet would
        // issue them again. An adoption that has begun may continue, because its note prevents new
        // holds.
        if note.is_none() && (is_held || horizon.stated_floor().is_some()) {
            let text = format!(
                "the node of {} gives no numbers since a restore, and the fleet could give lost numbers a second time: \
                 start the node, resume its series with `idmint numbers resume --all FILE`, stop it, and adopt it then",
                dir.display()
            );
            return Err(StoreError::new(FailureKind::Disagrees, text));
        }
        Ok(AdoptedFolder {
            tables,
            slot,
            horizon,
            note,
            data_dir,
        })
    }

    /// Returns the horizon: the first instant for which this node has certainly not minted an id.
    pub fn horizon(&self) -> UnixNanos {
        self.horizon.horizon()
    }

    /// Returns the slot that has the worker numbers of this node, in a fleet with `slots` slots.
    /// Returns `None` unless the node was configured with the same number of slots. With another
    /// number, several slots of the fleet may share its worker numbers.
    pub fn slot_of(&self, slots: u32) -> Option<u32> {
        let kept = self.tables.as_ref().and_then(|tables| tables.slots);
        (kept == Some(slots)).then_some(self.slot)
    }

    /// Returns the adoption note, which records the progress of the adoption, or `None` if the
    /// adoption has not begun.
    pub fn note(&self) -> Option<&AdoptionNote> {
        self.note.as_ref()
    }

    /// Records the progress of the adoption durably. After the first note, no single node can start
    /// on the folder. A node of the adopting fleet can start on it once the adoption is done.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the disk refuses the write. The folder then has either the old
    /// note or the new one.
    pub fn write_note(&mut self, note: AdoptionNote) -> Result<(), StoreError> {
        // Write the note first, because the error of a refused start quotes it. Then mark the
        // horizon file as adopted. The mark prevents a start as a single node even if the note is
        // lost, or if the program is too old to know such notes.
        note.write(&self.data_dir.adoption_path())?;
        if !self.horizon.is_adopted() {
            self.horizon.note_adoption()?;
        }
        self.note = Some(note);
        Ok(())
    }

    /// Returns the stored formats, as a map from the name of a format to its description.
    pub fn formats(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        self.tables
            .as_ref()
            .map(|tables| tables.formats.clone())
            .unwrap_or_default()
    }

    /// Returns up to `count_max` ledgers with ids above `after`, in the order of their ids.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the database cannot be read.
    pub fn ledgers(
        &self,
        after: Option<LedgerId>,
        count_max: usize,
    ) -> Result<Vec<LedgerSummary>, StoreError> {
        self.tables.as_ref().map_or(Ok(Vec::new()), |tables| {
            tables.records.ledgers(after, count_max)
        })
    }

    /// Returns up to `count_max` appends of a ledger, oldest first. The list begins after the
    /// append whose last event is `after`, or with the first append if `after` is `None`.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the database cannot be read.
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

    /// Returns the store of the numbers that the node has issued in its series, or `None` if the
    /// node never created a database.
    pub fn numbers(&self) -> Option<&dyn NumberStore> {
        self.tables
            .as_ref()
            .map(|tables| &tables.records as &dyn NumberStore)
    }

    /// Returns up to `count_max` pairs of objects, each with its anchors. The pairs are ordered by
    /// format and objects, and the list begins after the pair `after`.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the database cannot be read.
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
        let (slots, formats) = FormatsTable::new(&database).kept()?;
        let database = Arc::new(database.locked_by(Arc::clone(data_dir)));
        Ok(Tables {
            slots,
            formats,
            records: RecordTables::open(database)?,
        })
    }
}
