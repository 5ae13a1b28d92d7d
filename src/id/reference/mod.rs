//! What documents say of a format, derived from it: storage advice, odds, ranges, examples, drawings, SQL.

mod collision_odds;
mod database;
mod example;
mod layout_drawing;
mod sql;
mod storage_advice;
mod stored;
mod time_range;

pub use collision_odds::CollisionOdds;
pub use database::Database;
pub use example::EXAMPLE_TIME;
pub use layout_drawing::LayoutDrawing;
pub use sql::{DialectError, SqlDialect, SqlError};
pub use storage_advice::StorageAdvice;
pub use stored::Stored;
pub use time_range::{IdRange, RangeError};
