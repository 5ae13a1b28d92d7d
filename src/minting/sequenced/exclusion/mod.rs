//! Ids that another generator has issued: read from a file, kept as ticks, and left out by each sequencer.

mod excluded_ids;
mod excluded_ticks;
mod sequence_exclusion;

pub use excluded_ids::{ExcludedIds, ExclusionError};
pub use excluded_ticks::ExcludedTicks;
pub(super) use sequence_exclusion::{Exclusion, Placed};
