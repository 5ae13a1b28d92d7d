//! Reference data about a format for its documentation: storage advice, collision odds, ranges of
//! ids, example ids, drawings of the fields in an id, and SQL functions.

mod collision_odds;
mod database;
mod example;
mod layout_drawing;
mod sql;
mod storage_advice;
mod time_range;

pub use collision_odds::CollisionOdds;
pub use database::{Database, Stored};
pub use example::EXAMPLE_TIME;
pub use layout_drawing::LayoutDrawing;
pub use sql::{DialectError, SqlDialect, SqlError};
pub use storage_advice::StorageAdvice;
pub use time_range::{IdRange, RangeError};
