//! How an id comes to be. Decides, and does no I/O: whatever must outlast a crash leaves here as a plan and comes back
//! as [`Durable`].

mod batch;
mod durable;
mod horizon;
mod mint;
mod order;
mod random;
mod refusal;
mod sequenced;
mod stats;
mod tenure;

pub use batch::Batch;
pub use durable::Durable;
pub use horizon::{HorizonPlan, Reservation};
pub use mint::{Denied, Granted, Mint, MintSettings};
pub use order::{Order, OrderError};
pub use random::{RandomIds, RandomMinter, Randomness};
pub use refusal::Refusal;
pub use sequenced::{
    Grant, LaneCount, LaneError, LaneRule, Lanes, Moment, Pace, Run, SequencedMinter, Sequencer, Shortage, StampLine,
};
pub use stats::MintStats;
pub use tenure::Tenure;
