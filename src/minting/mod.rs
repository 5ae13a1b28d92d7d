//! How an id comes to be. Decides, and does no I/O: whatever must outlast a crash leaves here as a plan and comes back
//! as [`Durable`].

mod batch;
mod chained;
mod durable;
mod grouped;
mod horizon;
mod lanes;
mod mint;
mod order;
mod pace;
mod random;
mod refusal;
mod run;
mod sequenced;
mod sequencer;
mod stamps;
mod stats;
mod sync;
mod tenure;

pub use batch::Batch;
pub use chained::{ChainChecker, ChainError, Event, EventError, EventId, EventTime, LedgerId, canonical_json};
pub use durable::Durable;
pub use grouped::{GroupedMinter, PairOrder, Report, ReportError, Role};
pub use horizon::{HorizonPlan, Reservation};
pub use lanes::{LaneCount, LaneError, LaneRule, Lanes};
pub use mint::{Denied, Granted, Mint, MintSettings};
pub use order::{Order, OrderError};
pub use pace::{Moment, Pace};
pub use random::{RandomIds, RandomMinter, Randomness};
pub use refusal::Refusal;
pub use run::{Run, Segment};
pub use sequenced::SequencedMinter;
pub use sequencer::{Grant, Sequencer, Shortage};
pub use stamps::StampLine;
pub use stats::MintStats;
pub use tenure::Tenure;
