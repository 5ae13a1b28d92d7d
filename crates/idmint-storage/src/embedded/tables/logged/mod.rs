//! The log in front of the engine: how commits are written to it, and how they get into the tables.

mod engine;
mod logged_rows;
mod pending;
mod plan_check;

pub(super) use engine::{COMMITS, Engine, LostEnd};
pub(super) use logged_rows::bytes_of;
pub(super) use plan_check::all_hold;
