//! Mints ids without any I/O. State that must survive a crash, such as the horizon, is returned as
//! a plan, which the caller writes to disk and passes back as [`Durable`].

mod durable;
mod horizon;
mod refusal;

mod batch;
mod random;
mod sequenced;

mod mint;
mod minter;
mod session;
mod session_start;
mod session_state;

pub use batch::{Batch, BatchRequest, CountedFormat, MintCounters, RequestError};
pub use durable::Durable;
pub use horizon::{HorizonPlan, Reservation};
pub use mint::{Mint, MintSettings};
pub use minter::{Denied, Granted, Minter};
pub use random::Randomness;
pub use refusal::{Refusal, SlotLack};
pub use sequenced::{
    ExcludedIds, ExcludedTicks, ExclusionError, LaneCount, LaneError, LaneRule, Lanes, SlotLanes,
};
pub(crate) use sequenced::{StampLine, lead_ticks};
pub use session::Session;
pub use session_start::SessionStart;
