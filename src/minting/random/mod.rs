//! Ids from the time and random bits.

mod minter;

pub use minter::{RandomIds, RandomMinter, Randomness};
