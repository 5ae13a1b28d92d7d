//! How connections are accepted, kept in bounds and closed.

mod accepting;
mod activity;
mod connection;
mod listener;
mod outbox;
mod patience;
mod stream;

pub use connection::Handler;
pub use listener::{Drained, Limits, OpenConnections, serve};
