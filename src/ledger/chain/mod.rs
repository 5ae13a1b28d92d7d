//! Checks chains of events, as a list or as lines that arrive in pieces.

mod chain_checker;
mod chain_lines;

pub use chain_checker::{ChainChecker, ChainError};
pub use chain_lines::{ChainLines, ChainVerdict, LineTooLong};
