//! The engine that keeps nothing: for trying the program out, and for tests.

mod memory_engine;

pub(super) use memory_engine::MemoryEngine;
