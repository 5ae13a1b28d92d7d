//! Helpers that several benchmarks use.
#![allow(dead_code, reason = "each benchmark uses its own part of this")]

pub(crate) mod busy;
pub(crate) mod clients;
pub(crate) mod comparison;
pub(crate) mod server;
pub(crate) mod service;
