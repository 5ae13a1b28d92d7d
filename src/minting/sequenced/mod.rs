//! Ids from time, worker number and sequence: never twice, and increasing for each worker.

mod lanes;
mod minter;
mod pace;
mod run;
mod sequencer;
mod stamps;
mod sync;

pub use lanes::{LaneCount, LaneError, LaneRule, Lanes};
pub use minter::SequencedMinter;
pub use pace::{Moment, Pace};
pub use run::Run;
pub use sequencer::{Grant, Sequencer, Shortage};
pub use stamps::StampLine;
