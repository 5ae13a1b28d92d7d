//! Internal to idmint: the rules for records that must be stored, without any I/O.
//!
//! * [`ledger`] chains events by checksums, and gives numbers without gaps.
//! * [`conjunction`] reads reports of close approaches, including CCSDS conjunction data messages,
//!   and groups them.
//!
//! A plan describes what to write. It takes effect only after a store has written it to disk. To
//! see how plans work, start reading at `ledger::append`. To see how a report finds its
//! conjunction, start at `conjunction::GroupRequest`.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod conjunction;
pub mod ledger;
