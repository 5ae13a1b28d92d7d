//! The program as an operator runs it: killed, told to end, started again, misled and handed damaged files.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod authority;
#[path = "../vectors/cases.rs"]
#[allow(dead_code, reason = "of the vectors only the chains are needed")]
mod cases;
#[path = "../vectors/chain_with_keys.rs"]
mod chain_with_keys;
#[path = "../vectors/chains.rs"]
mod chains;
mod excluding;
mod faulty_proxy;
#[path = "../http1/mod.rs"]
mod http1;
mod ids;
mod load;
mod numbering;
mod service;
mod tls_client;

mod abuse;
mod admin_listen;
mod audit;
mod audit_leaving;
mod backup;
mod blocks;
mod cdm;
mod commands;
mod conjunctions;
mod csv;
mod damage;
mod descriptors;
mod file_size;
mod inspect;
mod killing;
mod ledger;
mod ledger_service;
mod log;
mod memory;
mod numbers;
mod other_generator;
mod rate;
mod records;
mod refusing;
mod restarts;
mod salt;
mod shutdown;
mod status;
mod stumbles;
mod testing;
mod tls;
mod tls_commands;
mod tokens;
mod upgrades;
