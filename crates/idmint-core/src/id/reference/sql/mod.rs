//! Generates SQL functions that read ids of a format, for several databases.

mod dialect;
mod functions;

pub use dialect::{DialectError, SqlDialect};
pub use functions::SqlError;
