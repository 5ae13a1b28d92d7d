//! How an id comes to be. Decides, and does no I/O: whatever must outlast a crash leaves here as a plan and comes back
//! as [`Durable`].

mod durable;
mod horizon;
mod refusal;

mod batch;
mod batch_request;
mod counters;
mod random;
mod sequenced;

mod mint;
mod minter;
mod session;
mod session_start;
mod session_state;

pub use batch::Batch;
pub use batch_request::{BatchRequest, RequestError};
pub use counters::{CountedFormat, MintCounters};
pub use durable::Durable;
pub use horizon::{HorizonPlan, Reservation};
pub use mint::{Mint, MintSettings};
pub use minter::{Denied, Granted, Minter};
pub use random::{RandomIds, RandomMinter, Randomness};
pub use refusal::{Refusal, SlotLack};
pub use sequenced::{
    CatchUp, ExcludedIds, ExcludedTicks, ExclusionError, Grant, LaneCount, LaneError, LaneRule,
    Lanes, Moment, Run, SequencedMinter, Sequencer, Shortage, SlotLanes, Spread, StampLine,
};
pub use session::Session;
pub use session_start::SessionStart;
