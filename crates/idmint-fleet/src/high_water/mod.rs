//! The high water: a node's own memory of the highest values that its coordinator has acknowledged.
//! A restore of the coordinator does not change this memory.
//!
//! ```text
//! high_water       the highest values, and the check of a response against them; no I/O
//! kept             the file that keeps the values across restarts
//! ```
//!
//! A coordinator that was restored from a backup has lost horizons that it acknowledged. Slots that
//! are in use may then seem free, and a comparison with a revision may succeed by chance. The slot
//! protocol alone cannot prevent that. So a node that detects a restore mints no id until an
//! operator has fenced the fleet ([`operation`](crate::operation)).

mod high_water;
mod kept;

pub use high_water::HighWater;
pub(super) use high_water::Regression;
pub use kept::KeptHighWater;
pub(super) use kept::WRITE_EVERY;
