//! Mints ids from time and random bits, without worker numbers.

mod space;
mod span;
mod tick_parts;
mod words;

mod minter;

pub(in crate::minting) use minter::{RandomIds, RandomMinter};
pub use words::Randomness;
