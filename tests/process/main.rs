//! The program as an operator runs it: killed, told to end, started again, misled and handed damaged files.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod client;
mod ids;
mod load;
mod service;

mod abuse;
mod commands;
mod damage;
mod descriptors;
mod ending;
mod killing;
mod memory;
mod refusing;
