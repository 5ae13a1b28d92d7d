//! What makes the ids of a format comparable, remembered from start to start.
//!
//! An id is unique among those minted with the same fields, tick, epoch, rule and first worker, by the same number
//! of slots. So these are kept at first sight, and a start that would mint by others under the same name is refused.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use redb::{ReadableTable, Table, TableDefinition};
use sha2::{Digest, Sha256};

use super::database::{Database, DatabaseError};
use crate::storage::trouble::Trouble;

/// Row name to SHA-256 and description. Rows: `slots`, and `format/` followed by a format's name.
const KEPT: TableDefinition<'_, &str, (&[u8], &[u8])> = TableDefinition::new("kept");
const SLOTS_ROW: &str = "slots";

/// What is kept of one format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFormat {
    /// The format's name.
    pub name: String,
    /// What makes its ids comparable, as texts that people can compare: `tick` is `1ms`, `epoch` is
    /// `2015-01-01T00:00:00Z`.
    pub description: BTreeMap<String, String>,
}

/// One thing that was kept as one text and is configured as another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Which thing.
    pub key: String,
    /// The text kept, if there was one.
    pub kept: Option<String>,
    /// The text now, if there is one.
    pub now: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "(nothing)".to_owned());
        write!(f, "{}: kept {}, now {}", self.key, text(&self.kept), text(&self.now))
    }
}

/// Why the configured formats are refused.
#[derive(Debug, thiserror::Error)]
pub enum FormatsError {
    /// A format of this name minted ids that its new definition could repeat. Nothing was written.
    #[error(
        "format \"{format}\" is not what it was when it minted its first ids:\n{}give the changed format a new name, \
         or undo the change", lines(.differences)
    )]
    Changed {
        /// The format's name.
        format: String,
        /// What differs, sorted by key; at least one.
        differences: Vec<Difference>,
    },
    /// Worker numbers are dealt out by the number of slots, so another number deals them anew. Nothing was written.
    #[error(
        "worker.slots was {kept} and is {now}; set worker.slots = {kept}; docs/OPERATIONS.md says how to change it"
    )]
    SlotsChanged {
        /// The number kept.
        kept: u32,
        /// The number configured.
        now: u32,
    },
    /// The database is damaged or refuses.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl FormatsError {
    /// What kind of trouble this is.
    pub fn trouble(&self) -> Trouble {
        match self {
            Self::Changed { .. } | Self::SlotsChanged { .. } => Trouble::Disagrees,
            Self::Database(error) => error.trouble(),
        }
    }
}

/// The kept formats, in a [`Database`].
pub struct FormatsTable<'a> {
    database: &'a Database,
}

impl<'a> FormatsTable<'a> {
    /// The formats kept in `database`.
    pub fn new(database: &'a Database) -> FormatsTable<'a> {
        FormatsTable { database }
    }

    /// Holds `slots` and `formats` against what is kept, in one transaction: what is new joins, what is equal passes.
    /// A kept format that is not among `formats` stays kept. When nothing is new, nothing is written.
    ///
    /// # Errors
    /// [`FormatsError::SlotsChanged`] and [`FormatsError::Changed`] (the first one that differs) with nothing written;
    /// [`FormatsError::Database`].
    pub fn agree(&self, slots: u32, formats: &[KeptFormat]) -> Result<(), FormatsError> {
        self.database.attempt(|engine| {
            let mut transaction = engine.begin_write()?;
            // A start after a crash must not read the whole database.
            transaction.set_quick_repair(true);
            let compared = {
                let mut rows = Rows { table: transaction.open_table(KEPT)?, database: self.database, has_new: false };
                compare(&mut rows, slots, formats)?
            };
            match compared {
                Ok(Compared { has_new: true }) => transaction.commit()?,
                Ok(Compared { has_new: false }) | Err(_) => transaction.abort()?,
            }
            Ok(compared.map(|_| ()))
        })?
    }
}

struct Compared {
    has_new: bool,
}

/// What the engine says around what the comparison says.
type Asked<T> = Result<Result<T, FormatsError>, redb::Error>;

fn compare(rows: &mut Rows<'_>, slots: u32, formats: &[KeptFormat]) -> Asked<Compared> {
    if let Err(error) = rows.check_all()? {
        return Ok(Err(error.into()));
    }
    let now = BTreeMap::from([(SLOTS_ROW.to_owned(), slots.to_string())]);
    match rows.keep_or_compare(SLOTS_ROW, &now)? {
        Ok(differences) if differences.is_empty() => {}
        Ok(differences) => return Ok(Err(rows.slots_changed(&differences, slots))),
        Err(error) => return Ok(Err(error.into())),
    }
    for KeptFormat { name, description } in formats {
        match rows.keep_or_compare(&format!("format/{name}"), description)? {
            Ok(differences) if differences.is_empty() => {}
            Ok(differences) => return Ok(Err(FormatsError::Changed { format: name.clone(), differences })),
            Err(error) => return Ok(Err(error.into())),
        }
    }
    Ok(Ok(Compared { has_new: rows.has_new }))
}

struct Rows<'a> {
    table: Table<'a, &'static str, (&'static [u8], &'static [u8])>,
    database: &'a Database,
    has_new: bool,
}

impl Rows<'_> {
    /// Whether every row is what was written, name and all. The engine does not check a page each time it reads it;
    /// and a row whose name has changed would pass for one that was never there.
    fn check_all(&self) -> Result<Result<(), DatabaseError>, redb::Error> {
        for row in self.table.iter()? {
            let (row, kept) = row?;
            let (hash, text) = kept.value();
            if hash_of(row.value(), text)[..] != *hash {
                return Ok(Err(self.damaged(row.value())));
            }
        }
        Ok(Ok(()))
    }

    /// Keeps `now` when the row is new, else says how the row differs from it.
    fn keep_or_compare(
        &mut self,
        row: &str,
        now: &BTreeMap<String, String>,
    ) -> Result<Result<Vec<Difference>, DatabaseError>, redb::Error> {
        let text = canonical_text(now);
        let hash = hash_of(row, text.as_bytes());
        let kept = self.table.get(row)?.map(|kept| kept.value().1.to_vec());
        let Some(kept_text) = kept else {
            self.table.insert(row, (&hash[..], text.as_bytes()))?;
            self.has_new = true;
            return Ok(Ok(Vec::new()));
        };
        let Ok(kept) = serde_json::from_slice(&kept_text) else { return Ok(Err(self.damaged(row))) };
        Ok(Ok(differences(&kept, now)))
    }

    fn slots_changed(&self, differences: &[Difference], now: u32) -> FormatsError {
        let kept = differences.iter().find_map(|difference| difference.kept.as_ref()?.parse().ok());
        match kept {
            Some(kept) => FormatsError::SlotsChanged { kept, now },
            None => self.damaged(SLOTS_ROW).into(),
        }
    }

    fn damaged(&self, row: &str) -> DatabaseError {
        let what = format!("the row {row} of its formats is not what was written");
        DatabaseError::Damaged { path: self.database.path().to_owned(), what }
    }
}

/// JSON with the keys in order: one text for one description.
fn canonical_text(description: &BTreeMap<String, String>) -> String {
    serde_json::to_string(description).expect("a map of texts is JSON")
}

/// Over the name too, so that a row which has come under another name does not pass.
fn hash_of(row: &str, text: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(row).chain_update([0]).chain_update(text).finalize().into()
}

fn differences(kept: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<Difference> {
    let keys: std::collections::BTreeSet<&String> = kept.keys().chain(now.keys()).collect();
    keys.into_iter()
        .filter(|key| kept.get(*key) != now.get(*key))
        .map(|key| Difference { key: key.clone(), kept: kept.get(key).cloned(), now: now.get(key).cloned() })
        .collect()
}

fn lines(differences: &[Difference]) -> String {
    differences.iter().fold(String::new(), |mut lines, difference| {
        writeln!(lines, "  {difference}").expect("a text can be written to");
        lines
    })
}

#[cfg(test)]
#[path = "formats_table_tests.rs"]
mod tests;
