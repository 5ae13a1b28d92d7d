//! A log in front of the database engine. Commits are first written to the log, and then to the
//! engine's tables.

mod engine;
mod logged_rows;
mod pending;
mod plan_check;

pub(super) use engine::{Engine, LostEnd};
pub(super) use logged_rows::bytes_of;
pub(super) use plan_check::all_hold;
