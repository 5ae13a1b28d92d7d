//! The transactional database: the kept formats and the records, in tables whose every row is checked when it is read.

mod anchor_row;
mod anchor_table;
mod append_table;
mod backup;
mod database;
mod external_table;
mod formats_table;
mod logged;
mod number_tables;
mod record_tables;
mod register_table;
mod request_table;

#[cfg(test)]
pub(super) use database::LOG_LEN;
pub(super) use database::{Database, DatabaseError};
pub(super) use formats_table::FormatsTable;
pub(super) use record_tables::RecordTables;
