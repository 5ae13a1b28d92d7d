//! How connections are accepted, kept in bounds and closed.
//!
//! ```text
//! kernel ─► acceptor ─► listener ─► connection ─► protocol      HTTP/1.1 or HTTP/2
//!              │            │            ├─► stream, outbox     bytes: tracked when read, coalesced when written
//!              └► refusal ◄─┘            ├─► handler            requests: tracked from head to last byte
//!                 not served             └─► timeouts           looks at the activity, and says what took too long
//! ```

mod acceptor;
mod activity;
mod connection;
mod handler;
mod limits;
mod listener;
mod open_connections;
mod outbox;
mod protocol;
mod refusal;
mod stream;
mod timeouts;

pub use handler::Handler;
pub use limits::Limits;
pub use listener::{Drained, serve};
pub use open_connections::OpenConnections;
