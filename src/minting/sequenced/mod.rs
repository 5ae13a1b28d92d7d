//! Ids from time, worker number and sequence: never twice, and increasing for each worker.

mod catch_up;
mod lanes;
mod leased_minter;
mod runs;
mod spread;
mod stamps;
mod sync;

mod exclusion;

mod beginning;
mod format;
mod minter;
mod sequencer;

pub(in crate::minting) use beginning::Beginning;
pub use catch_up::{CatchUp, Moment};
pub use exclusion::{ExcludedIds, ExcludedTicks, ExclusionError};
pub(in crate::minting) use format::SequencedFormat;
pub use lanes::{LaneCount, LaneError, LaneRule, Lanes, SlotLanes};
pub use minter::SequencedMinter;
pub(in crate::minting) use runs::LaneRuns;
pub use runs::Run;
pub use sequencer::{Grant, Sequencer, Shortage};
pub use spread::Spread;
pub use stamps::StampLine;
