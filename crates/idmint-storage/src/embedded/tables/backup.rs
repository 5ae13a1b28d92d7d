//! Copies a database row by row while a node uses it. The copy is a snapshot of one moment.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use redb::{Key, ReadTransaction, ReadableTable, TableDefinition, Value, WriteTransaction};

use super::anchor_table::ANCHORS;
use super::append_table::APPENDS;
use super::database::{Database, DatabaseError, if_there};
use super::external_table::{BY_EXTERNAL, EXTERNALS};
use super::form_table::FORMS;
use super::formats_table::KEPT;
use super::hold_table::HOLDS;
use super::number_tables::{CLOSED, NUMBER_KEYS, NUMBERS, VOIDS};
use super::register_table::REGISTER;
use super::request_table::REQUESTS;
use crate::embedded::data_dir::DATABASE_NAME;
use crate::embedded::file_system::{MachineFiles, create_folder, rename_durably};
use crate::records::BackedUp;
use crate::records::rows::{append_row, number_rows};

/// The name of a copy that is not complete yet.
const UNFINISHED_NAME: &str = "idmint.redb.unfinished";

/// Copies all rows to a new database in `folder`. The copy is durable when this function returns.
/// The folder must be empty. If it does not exist, it is created. The copy has no horizon.
///
/// The copy gets its final name only when it is complete.
///
/// # Errors
/// Returns [`DatabaseError`] if reading or writing fails. The folder then has no database.
pub(super) fn copy(database: &Database, folder: &Path) -> Result<BackedUp, DatabaseError> {
    let path = folder.join(DATABASE_NAME);
    let unusable = |cause| DatabaseError::NotUsable {
        path: path.clone(),
        cause,
    };
    create_folder(&MachineFiles, folder).map_err(unusable)?;
    if fs::read_dir(folder).map_err(unusable)?.next().is_some() {
        return Err(unusable(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "the folder is not empty",
        )));
    }
    let unfinished = folder.join(UNFINISHED_NAME);
    let copied = copy_to(database, &unfinished).and_then(|backed_up| {
        rename_durably(&MachineFiles, &unfinished, &path).map_err(unusable)?;
        Ok(backed_up)
    });
    if copied.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    copied
}

fn copy_to(database: &Database, path: &Path) -> Result<BackedUp, DatabaseError> {
    let copy = Database::create(path, Arc::default())?;
    let _copying = database.begin_copy();
    database.attempt(|engine| {
        // Store the number of the last commit, so that the copy continues the numbering. If the
        // restored copy is later replaced by an older file, the lower number reveals the
        // replacement.
        let last = engine.last_commit()?;
        let from = engine.begin_read()?;
        Ok(copy.attempt(|engine| {
            let to = engine.begin_write()?;
            copy_table(&from, &to, KEPT, |_, _| 0)?;
            copy_table(&from, &to, REQUESTS, |_, _| 0)?;
            copy_table(&from, &to, REGISTER, |_, _| 0)?;
            copy_table(&from, &to, NUMBER_KEYS, |_, _| 0)?;
            copy_table(&from, &to, VOIDS, |_, _| 0)?;
            copy_table(&from, &to, FORMS, |_, _| 0)?;
            copy_table(&from, &to, CLOSED, |_, _| 0)?;
            copy_table(&from, &to, EXTERNALS, |_, _| 0)?;
            copy_table(&from, &to, HOLDS, |_, _| 0)?;
            copy_table(&from, &to, BY_EXTERNAL, |_, _| 0)?;
            let done = BackedUp {
                appends: copy_table(&from, &to, APPENDS, |_, row| {
                    u64::from(append_row::is_last(row))
                })?,
                conjunctions: copy_table(&from, &to, ANCHORS, |_, _| 1)?,
                numbers: copy_table(&from, &to, NUMBERS, |name, row| {
                    number_rows::given_of_bytes(name, row).map_or(0, |given| given.count())
                })?,
            };
            to.commit_as(last)?;
            Ok(done)
        }))
    })?
}

/// Copies the rows of a table, and returns how many records they contain. `counts` returns the
/// number of records in one row. A table that does not exist counts as empty.
fn copy_table<K: Key + 'static, V: Value + 'static>(
    from: &ReadTransaction,
    to: &WriteTransaction,
    table: TableDefinition<'_, K, V>,
    counts: impl Fn(K::SelfType<'_>, &V::SelfType<'_>) -> u64,
) -> Result<u64, redb::Error> {
    let Some(rows) = if_there(from, table)? else {
        return Ok(0);
    };
    let mut copies = to.open_table(table)?;
    let mut count = 0;
    for row in rows.iter()? {
        let (name, row) = row?;
        count += counts(name.value(), &row.value());
        copies.insert(name.value(), row.value())?;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::tables::logged::Engine;
    use crate::embedded::tables::{RecordTables, hold_numbers};
    use crate::samples::series;
    use idmint_core::time::UnixNanos;

    fn commit(database: &Database) {
        let rows = database.attempt(|engine| engine.begin_write()?.commit_as(3));
        rows.expect("the database works");
    }

    #[test]
    fn a_copy_continues_the_numbers_of_the_commits() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(DATABASE_NAME);
        let database = Database::create(&path, Arc::default()).expect("the folder is usable");
        commit(&database);
        let copied = folder.path().join("copy");
        copy(&database, &copied).expect("copies");
        let copied = Database::open(&copied.join(DATABASE_NAME), Arc::default());
        let last = copied.expect("it is sound").attempt(Engine::last_commit);
        assert_eq!(last.expect("the database works"), 3);
    }

    #[test]
    fn a_copy_keeps_the_hold_on_numbers() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(DATABASE_NAME);
        let database = Database::create(&path, Arc::default()).expect("the folder is usable");
        hold_numbers(&database, UnixNanos::new(7)).expect("the database works");
        let copied = folder.path().join("copy");
        copy(&database, &copied).expect("copies");
        let copied = Database::open(&copied.join(DATABASE_NAME), Arc::default());
        let records = RecordTables::open(Arc::new(copied.expect("it is sound")));
        let is_held = records.expect("it is readable").is_held(&series("acme"));
        assert!(is_held.expect("it is readable"));
    }

    #[test]
    fn a_copy_that_fails_leaves_no_database() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(DATABASE_NAME);
        let database = Database::create(&path, Arc::default()).expect("the folder is usable");
        commit(&database);
        fs::remove_file(&path).expect("it is there");
        let copied = folder.path().join("copy");
        let error = copy(&database, &copied).expect_err("the file was removed");
        assert!(matches!(error, DatabaseError::Displaced(_)), "{error}");
        assert_eq!(fs::read_dir(&copied).expect("it is there").count(), 0);
    }
}
