//! Tests the program as an operator runs it. It is killed, stopped, restarted, configured wrongly,
//! and given damaged files.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod faulty_proxy;

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
mod expiring;
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
mod restore;
mod salt;
mod shutdown;
mod starts;
mod status;
mod stumbles;
mod testing;
mod tls;
mod tls_commands;
mod tokens;
mod upgrades;
