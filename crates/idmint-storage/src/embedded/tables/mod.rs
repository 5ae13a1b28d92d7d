//! The transactional database, with tables for the stored formats and the records. Every row is
//! verified when it is read.

mod anchor_row;
mod anchor_table;
mod append_table;
mod backup;
mod database;
mod external_table;
mod form_table;
mod formats_table;
mod hold_table;
mod logged;
mod number_tables;
mod record_tables;
mod register_table;
mod request_table;

pub(crate) use database::Database;
pub(super) use database::DatabaseError;
#[cfg(test)]
pub(super) use database::LOG_LEN;
pub(crate) use formats_table::FormatsTable;
pub(super) use hold_table::hold_numbers;
pub(crate) use record_tables::RecordTables;
