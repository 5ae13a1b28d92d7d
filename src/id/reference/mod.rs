//! What documents say of a format: storage advice, odds, ranges, examples, drawings.

mod collision_odds;
mod example;
mod layout_drawing;
mod storage_advice;
mod storage_sql;
mod time_range;

pub use collision_odds::CollisionOdds;
pub use example::EXAMPLE_TIME;
pub use layout_drawing::LayoutDrawing;
pub use storage_advice::{Database, StorageAdvice, Stored};
pub use time_range::{IdRange, RangeError};
