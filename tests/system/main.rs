//! What needs more than a toolchain: Debian packages, root, long runs. Run by `make test-all`, never by `make test`.
//!
//! A missing tool fails its test: one that quietly did not run looks like one that passed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

// Shared with tests/properties, tests/process, benches and other users of the vectors.
#[path = "../properties/any_id.rs"]
mod any_id;
#[allow(dead_code, reason = "some of it is used by tests/process alone")]
#[path = "../process/authority.rs"]
mod authority;
#[allow(dead_code, reason = "of the vectors only the chains are needed")]
#[path = "../vectors/cases.rs"]
mod cases;
#[path = "../vectors/chains.rs"]
mod chains;
#[path = "../../benches/instructions/counts.rs"]
mod counts;
#[allow(dead_code, reason = "some of it is used by tests/process alone")]
#[path = "../process/excluding.rs"]
mod excluding;
#[path = "../http1/mod.rs"]
mod http1;
#[path = "../process/ids.rs"]
mod ids;
#[allow(dead_code, reason = "some of it is used by tests/process alone")]
#[path = "../process/load.rs"]
mod load;
#[path = "../process/numbering.rs"]
mod numbering;
#[allow(dead_code, reason = "some of it is used by tests/process alone")]
#[path = "../process/service.rs"]
mod service;

#[allow(dead_code, reason = "some of it is used by tests/process alone")]
#[path = "../process/tls_client.rs"]
mod tls_client;

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
mod slow_disk;
mod sql_functions;
mod status;
mod storage_advice;
mod syncing;
mod systemd;
mod terminal;
mod third_party_cdms;
mod words;
