//! The kept formats, in a table of the database.

use std::collections::BTreeMap;

use redb::{ReadableTable, Table, TableDefinition};
use sha2::{Digest, Sha256};

use super::database::{Database, DatabaseError};
use crate::storage::failure::StoreError;
use crate::storage::kept_formats::{Difference, FormatsError, KeptFormat, differences};

/// Row name to SHA-256 and description. Rows: `slots`, and `format/` followed by the name of what is kept.
pub(super) const KEPT: TableDefinition<'_, &str, (&[u8], &[u8])> = TableDefinition::new("kept");
const SLOTS_ROW: &str = "slots";
const FORMAT_ROWS: &str = "format/";

/// The description of each format, by its name.
pub(crate) type Descriptions = BTreeMap<String, BTreeMap<String, String>>;

/// The kept formats, in a [`Database`].
pub(crate) struct FormatsTable<'a> {
    database: &'a Database,
}

impl<'a> FormatsTable<'a> {
    /// The formats kept in `database`.
    pub(crate) fn new(database: &'a Database) -> FormatsTable<'a> {
        FormatsTable { database }
    }

    /// Compares `slots` and `formats` with what is kept, in one transaction: what is new joins, what is equal passes.
    /// A kept format that is not among `formats` stays kept. When nothing is new, nothing is written.
    ///
    /// # Errors
    /// [`FormatsError::SlotsChanged`] and [`FormatsError::Changed`] (the first one that differs) with nothing written;
    /// [`FormatsError::Store`].
    pub(crate) fn agree(&self, slots: u32, formats: &[KeptFormat]) -> Result<(), FormatsError> {
        let agreed = self.database.attempt(|engine| {
            let transaction = engine.begin_write()?;
            let compared = {
                let mut rows = Rows {
                    table: transaction.open_table(KEPT)?,
                    database: self.database,
                    has_new: false,
                };
                compare(&mut rows, slots, formats)?
            };
            match compared {
                Ok(Compared { has_new: true }) => transaction.commit()?,
                Ok(Compared { has_new: false }) | Err(_) => transaction.abort()?,
            }
            Ok(compared.map(|_| ()))
        });
        agreed.map_err(StoreError::from)?
    }

    /// Every kept format: its name and its description.
    ///
    /// # Errors
    /// [`DatabaseError`]: a row is not what was written, or the disk refuses.
    pub(crate) fn kept(&self) -> Result<Descriptions, DatabaseError> {
        self.database.attempt(|engine| {
            let transaction = engine.begin_write()?;
            let kept = {
                let rows = Rows {
                    table: transaction.open_table(KEPT)?,
                    database: self.database,
                    has_new: false,
                };
                rows.kept_formats()?
            };
            transaction.abort()?;
            Ok(kept)
        })?
    }
}

struct Compared {
    has_new: bool,
}

/// What is compared, inside what the database says of reading it.
type Comparison<T> = Result<Result<T, FormatsError>, redb::Error>;

fn compare(rows: &mut Rows<'_>, slots: u32, formats: &[KeptFormat]) -> Comparison<Compared> {
    if let Err(error) = rows.check_all()? {
        return Ok(Err(StoreError::from(error).into()));
    }
    let now = BTreeMap::from([(SLOTS_ROW.to_owned(), slots.to_string())]);
    match rows.keep_or_compare(SLOTS_ROW, &now, true)? {
        Ok(differences) if differences.is_empty() => {}
        Ok(differences) => return Ok(Err(rows.slots_changed(&differences, slots))),
        Err(error) => return Ok(Err(StoreError::from(error).into())),
    }
    for KeptFormat {
        name,
        description,
        is_minted,
    } in formats
    {
        match rows.keep_or_compare(&format!("{FORMAT_ROWS}{name}"), description, *is_minted)? {
            Ok(differences) if differences.is_empty() => {}
            Ok(differences) => {
                return Ok(Err(FormatsError::Changed {
                    name: name.clone(),
                    differences,
                }));
            }
            Err(error) => return Ok(Err(StoreError::from(error).into())),
        }
    }
    Ok(Ok(Compared {
        has_new: rows.has_new,
    }))
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

    /// The names and descriptions of all rows of formats.
    fn kept_formats(&self) -> Result<Result<Descriptions, DatabaseError>, redb::Error> {
        if let Err(error) = self.check_all()? {
            return Ok(Err(error));
        }
        let mut formats = BTreeMap::new();
        for row in self.table.iter()? {
            let (row, kept) = row?;
            let Some(name) = row.value().strip_prefix(FORMAT_ROWS) else {
                continue;
            };
            let Ok(description) = serde_json::from_slice(kept.value().1) else {
                return Ok(Err(self.damaged(row.value())));
            };
            formats.insert(name.to_owned(), description);
        }
        Ok(Ok(formats))
    }

    /// Keeps `now` when the row is new and it `joins`; says how a row that is there differs from it.
    fn keep_or_compare(
        &mut self,
        row: &str,
        now: &BTreeMap<String, String>,
        joins: bool,
    ) -> Result<Result<Vec<Difference>, DatabaseError>, redb::Error> {
        let text = canonical_text(now);
        let hash = hash_of(row, text.as_bytes());
        let kept = self.table.get(row)?.map(|kept| kept.value().1.to_vec());
        let Some(kept_text) = kept else {
            if joins {
                self.table.insert(row, (&hash[..], text.as_bytes()))?;
                self.has_new = true;
            }
            return Ok(Ok(Vec::new()));
        };
        let Ok(kept) = serde_json::from_slice(&kept_text) else {
            return Ok(Err(self.damaged(row)));
        };
        Ok(Ok(differences(&kept, now)))
    }

    fn slots_changed(&self, differences: &[Difference], now: u32) -> FormatsError {
        let kept = differences
            .iter()
            .find_map(|difference| difference.kept.as_ref()?.parse().ok());
        match kept {
            Some(kept) => FormatsError::SlotsChanged { kept, now },
            None => StoreError::from(self.damaged(SLOTS_ROW)).into(),
        }
    }

    fn damaged(&self, row: &str) -> DatabaseError {
        let what = format!("the row {row} of its formats is not what was written");
        DatabaseError::Damaged {
            path: self.database.path().to_owned(),
            what,
        }
    }
}

/// JSON with the keys in order: one text for one description.
fn canonical_text(description: &BTreeMap<String, String>) -> String {
    serde_json::to_string(description).expect("a map of texts is JSON")
}

/// Over the name too, so that a row which has come under another name does not pass.
fn hash_of(row: &str, text: &[u8]) -> [u8; 32] {
    Sha256::new()
        .chain_update(row)
        .chain_update([0])
        .chain_update(text)
        .finalize()
        .into()
}

#[cfg(test)]
#[path = "formats_table_tests.rs"]
mod tests;
