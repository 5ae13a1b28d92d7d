//! One connection: its protocol, its requests, and how it ends.

mod http2_streams;
mod sent_answer;

mod handler;
mod named_caller;
mod timeouts;

mod connection;

pub(super) use connection::Connection;
pub use handler::Handler;
