//! Ids from the time and random bits.

mod space;
mod span;
mod sync;
mod tick_parts;
mod words;

mod minter;

pub use minter::{RandomIds, RandomMinter};
pub use words::Randomness;
