//! The engine that keeps nothing: for trying the program out, and for tests.

mod memory_engine;
mod memory_numbers;
mod memory_records;

pub(super) use memory_engine::MemoryEngine;
pub use memory_records::MemoryRecords;
