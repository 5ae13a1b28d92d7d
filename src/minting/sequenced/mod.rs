//! Ids from time, worker number and sequence: never twice, and increasing for each worker.

mod catch_up;
mod lane_runs;
mod lanes;
mod leased_minter;
mod run;
mod spread;
mod stamps;
mod sync;

mod beginning;
mod format;
mod minter;
mod sequencer;

pub(in crate::minting) use beginning::Beginning;
pub use catch_up::{CatchUp, Moment};
pub(in crate::minting) use format::SequencedFormat;
pub(in crate::minting) use lane_runs::LaneRuns;
pub use lanes::{LaneCount, LaneError, LaneRule, Lanes, SlotLanes};
pub use minter::SequencedMinter;
pub use run::Run;
pub use sequencer::{Grant, Sequencer, Shortage};
pub use spread::Spread;
pub use stamps::StampLine;
