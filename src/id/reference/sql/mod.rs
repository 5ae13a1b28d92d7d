//! SQL that reads ids: made of the fields of a format, for each database in its own words.

mod dialect;
mod functions;

pub use dialect::{DialectError, SqlDialect};
pub use functions::SqlError;
