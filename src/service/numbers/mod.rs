//! Numbers: without gaps, each durable before the answer, and blocks that are reserved ahead.

mod blocks;
mod numbers;

pub(super) use blocks::Blocks;
