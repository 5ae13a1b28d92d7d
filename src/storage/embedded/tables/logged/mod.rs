//! The log in front of the engine: what is committed by way of it, and what the tables show of that.

mod engine;
mod logged_rows;
mod pending;
mod plan_check;

pub(super) use engine::{COMMITS, Engine, LostEnd};
pub(super) use logged_rows::bytes_of;
pub(super) use plan_check::all_hold;
