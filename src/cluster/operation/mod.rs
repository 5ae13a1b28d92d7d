//! What an operator does to a fleet, by commands.
//!
//! ```text
//! restore_fence    a coordinator that has lost something is used again, above all that was minted
//! ```

mod restore_fence;

pub use restore_fence::{FenceError, FenceRule, RestoreFence, fence_restored};
