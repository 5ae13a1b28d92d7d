//! Ids from the time and random bits.

mod places;
mod space;
mod span;
mod sync;
mod words;

mod minter;

pub use minter::{RandomIds, RandomMinter};
pub use words::Randomness;
