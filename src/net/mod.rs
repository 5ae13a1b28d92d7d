//! How connections are accepted, kept in bounds and closed.

mod accepting;
mod activity;
mod connection;
mod listener;
mod outbox;
mod stream;
mod timeouts;

pub use connection::Handler;
pub use listener::{Drained, Limits, OpenConnections, serve};
