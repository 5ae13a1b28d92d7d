//! The table that contains the stored formats.

use std::collections::BTreeMap;

use redb::{ReadableTable, Table, TableDefinition};
use sha2::{Digest, Sha256};

use super::database::{Database, DatabaseError, if_there, unreadable};
use crate::failure::StoreError;
use crate::kept_formats::{Difference, FormatsError, KeptFormat, differences};
use idmint_records::ledger::{NumberKinds, TemplateHistory};

/// Maps a row name to a text and its SHA-256. The row `slots` has the number of slots, `numbers`
/// the kinds of series, and `number-templates` the templates of number texts. Each format has a row
/// `format/<name>`.
pub(super) const KEPT: TableDefinition<'_, &str, (&[u8], &[u8])> = TableDefinition::new("kept");
const SLOTS_ROW: &str = "slots";
const NUMBERS_ROW: &str = "numbers";
const TEMPLATES_ROW: &str = "number-templates";
const FORMAT_ROWS: &str = "format/";

/// The descriptions of formats, by name.
pub(crate) type Descriptions = BTreeMap<String, BTreeMap<String, String>>;

/// The formats that are stored in a [`Database`].
pub(crate) struct FormatsTable<'a> {
    database: &'a Database,
}

impl<'a> FormatsTable<'a> {
    /// Returns access to the formats in `database`.
    pub(crate) fn new(database: &'a Database) -> FormatsTable<'a> {
        FormatsTable { database }
    }

    /// Compares the number of slots and the formats with the stored ones, in one transaction. Adds
    /// minted formats that are not stored yet. A stored format that is missing in `formats` stays
    /// stored. If no format is added, the database is not written.
    ///
    /// # Errors
    /// Returns [`FormatsError::SlotsChanged`] if the number of slots differs, or
    /// [`FormatsError::Changed`] for the first format that differs. In both cases, no row was
    /// written. Returns [`FormatsError::Store`] if the database cannot be used.
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

    /// Returns the stored number of slots if there is one, and the name and properties of every
    /// stored format.
    ///
    /// # Errors
    /// Returns [`DatabaseError`] if a row is damaged or the disk refuses.
    pub(crate) fn kept(&self) -> Result<(Option<u32>, Descriptions), DatabaseError> {
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

impl FormatsTable<'_> {
    /// Returns the kinds of series at the last start, `gapless` or `blocks`. Returns `None` if no
    /// start has stored them.
    ///
    /// # Errors
    /// Returns [`DatabaseError`] if the row is damaged or the disk refuses.
    pub(crate) fn number_kinds(&self) -> Result<Option<NumberKinds>, DatabaseError> {
        let kinds = self.of_numbers(NUMBERS_ROW, "its kinds of series are corrupted")?;
        Ok(kinds.map(NumberKinds))
    }

    /// Stores the kinds of series, `gapless` or `blocks`, so that the next start can compare them
    /// with its configuration. The kinds are durable when this method returns.
    ///
    /// # Errors
    /// Returns [`DatabaseError`] if the disk refuses.
    pub(crate) fn keep_number_kinds(&self, kinds: &NumberKinds) -> Result<(), DatabaseError> {
        self.keep_of_numbers(NUMBERS_ROW, &kinds.0)
    }

    /// Returns the history of number templates, which define how numbers are written as text. The
    /// history is empty if no start has stored templates.
    ///
    /// # Errors
    /// Returns [`DatabaseError`] if the row is damaged or the disk refuses.
    pub(crate) fn number_templates(&self) -> Result<TemplateHistory, DatabaseError> {
        let texts = self.of_numbers(TEMPLATES_ROW, "its templates of numbers are corrupted")?;
        let history = TemplateHistory::from_texts(&texts.unwrap_or_default());
        self.database.attempt(|_| {
            let what = "the templates of numbers are";
            history.clone().ok_or_else(|| unreadable(true, what))
        })
    }

    /// Stores the history of number templates: the templates that were configured at each start.
    /// The history is durable when this method returns.
    ///
    /// # Errors
    /// Returns [`DatabaseError`] if the disk refuses.
    pub(crate) fn keep_number_templates(
        &self,
        history: &TemplateHistory,
    ) -> Result<(), DatabaseError> {
        self.keep_of_numbers(TEMPLATES_ROW, &history.to_texts())
    }

    fn of_numbers(
        &self,
        name: &str,
        damaged: &str,
    ) -> Result<Option<BTreeMap<String, String>>, DatabaseError> {
        self.database.attempt(|engine| {
            let Some(table) = if_there(&engine.begin_read()?, KEPT)? else {
                return Ok(None);
            };
            let Some(row) = table.get(name)? else {
                return Ok(None);
            };
            let (hash, text) = row.value();
            let is_whole = hash_of(name, text)[..] == *hash;
            let kept = serde_json::from_slice(text).ok().filter(|_| is_whole);
            kept.map(Some)
                .ok_or_else(|| redb::Error::Corrupted(damaged.to_owned()))
        })
    }

    fn keep_of_numbers(
        &self,
        name: &str,
        kept: &BTreeMap<String, String>,
    ) -> Result<(), DatabaseError> {
        let text = canonical_text(kept);
        let hash = hash_of(name, text.as_bytes());
        self.database.attempt(|engine| {
            let transaction = engine.begin_write()?;
            transaction
                .open_table(KEPT)?
                .insert(name, (&hash[..], text.as_bytes()))?;
            transaction.commit()
        })
    }
}

struct Compared {
    has_new: bool,
}

/// The result of comparing formats with the stored ones, or the error from reading the database.
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
    /// Checks that every stored row is intact, including its key. Otherwise, a format with a
    /// damaged key would look new, and any definition of the format would be accepted.
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

    /// Returns the number of slots, and the names and descriptions of all formats.
    fn kept_formats(
        &self,
    ) -> Result<Result<(Option<u32>, Descriptions), DatabaseError>, redb::Error> {
        if let Err(error) = self.check_all()? {
            return Ok(Err(error));
        }
        let (mut slots, mut formats) = (None, Descriptions::new());
        for row in self.table.iter()? {
            let (row, kept) = row?;
            let Ok(description) =
                serde_json::from_slice::<BTreeMap<String, String>>(kept.value().1)
            else {
                return Ok(Err(self.damaged(row.value())));
            };
            if let Some(name) = row.value().strip_prefix(FORMAT_ROWS) {
                formats.insert(name.to_owned(), description);
            } else if row.value() == SLOTS_ROW {
                slots = description
                    .get(SLOTS_ROW)
                    .and_then(|slots| slots.parse().ok());
            }
        }
        Ok(Ok((slots, formats)))
    }

    /// Compares `now`, the configured properties of a format or the number of slots, with the
    /// stored row, and returns the differences. If no row is stored yet, stores `now` if `joins` is
    /// `true`, as it is for the slots and for formats that are minted.
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
        let what = format!("the row {row} of its formats is corrupted");
        DatabaseError::Damaged {
            path: self.database.path().to_owned(),
            what,
        }
    }
}

/// Returns the description as JSON with sorted keys, so that equal descriptions give equal texts.
fn canonical_text(description: &BTreeMap<String, String>) -> String {
    serde_json::to_string(description).expect("a map of texts is JSON")
}

/// Returns the SHA-256 of the row name and the text. The name is included so that a row under the
/// wrong name is detected.
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
