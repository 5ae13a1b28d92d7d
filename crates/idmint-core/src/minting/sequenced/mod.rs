//! Mints ids from time, worker number and sequence. Each id is unique, and the ids with the same
//! worker number increase.

mod excluded_ids;
mod exclusion;
mod format;
mod lanes;
mod minter;
mod sequencer;
mod stamps;

pub use excluded_ids::{ExcludedIds, ExcludedTicks, ExclusionError};
pub(in crate::minting) use format::{Holding, SequencedFormat};
pub use lanes::{LaneCount, LaneError, LaneRule, Lanes, SlotLanes};
pub(crate) use minter::lead_ticks;
pub(in crate::minting) use minter::{Beginning, SequencedMinter};
pub(in crate::minting) use sequencer::{CatchUp, Moment, Sequencer, Shortage};
pub(crate) use stamps::StampLine;
pub(in crate::minting) use stamps::{LaneRuns, Run};
