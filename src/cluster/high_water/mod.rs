//! What a node knows of its coordinator that the coordinator cannot take back.
//!
//! ```text
//! high_water       what is known, and whether what is found contradicts it; no I/O
//! kept             the file that brings it over a restart
//! ```
//!
//! A coordinator that is restored from a backup has forgotten horizons that it acknowledged: slots that it takes for free may
//! be in use, and every comparison with a revision may hold by chance. Nothing in the protocol of a slot can bear that, so a
//! node that sees it mints nothing until an operator has fenced what was lost
//! ([`operation`](crate::cluster::operation)).

mod high_water;
mod kept;

pub use high_water::HighWater;
pub(super) use high_water::Regression;
pub use kept::KeptHighWater;
pub(super) use kept::WRITE_EVERY;
