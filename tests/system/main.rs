//! Tests that need more than a Rust toolchain, such as Debian packages, root or a long time. `make
//! test-all` runs them, and `make test` does not.
//!
//! If a tool is missing, its tests fail. A test that was skipped would look like a test that
//! passed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

// The benchmark `instructions` uses this file, too.
#[path = "../../benches/instructions/counts.rs"]
mod counts;

mod appending;
mod cutting_proxy;
mod databases;
mod fleet;
mod prometheus;
mod small_disk;
mod tampering_proxy;
mod tools;
mod torture;
mod wall_clock;

mod alerts;
mod before_1970;
mod browser;
mod clients;
mod clock;
mod conjunctions;
mod console;
mod csv;
mod dashboard;
mod disk;
mod helm;
mod image;
mod instruction_counts;
mod interface;
mod killing;
mod kubernetes;
mod ledger;
mod ledgers;
mod long_ticks;
mod manual;
mod many_appends;
mod many_numbers;
mod memory;
mod metrics;
mod oracles;
mod orders;
mod other_generator;
mod page;
mod prefetching;
mod provoked;
mod python_client;
mod release;
mod rows;
mod sizing;
mod slow_disk;
mod sql_functions;
mod status;
mod storage_advice;
mod syncing;
mod systemd;
mod terminal;
mod third_party_cdms;
mod words;
