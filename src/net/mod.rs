//! How connections are accepted, kept in bounds and closed.
//!
//! ```text
//! kernel ─► acceptor ─► listener ─► connection ─► protocol      HTTP/1.1 or HTTP/2
//!              │            │            ├─► turns              a share of the processor for each peer
//!              │            │            ├─► tls                the handshake, where it is spoken
//!              │            │            ├─► stream, outbox     bytes: tracked when read, coalesced when written
//!              └► refusal ◄─┘            ├─► handler            requests: tracked from head to last byte
//!                 not served             └─► timeouts           looks at the activity, and says what took too long
//! ```

mod acceptor;
mod callers;
mod connection;
mod limits;
mod listener;
mod refusal;
mod stream;
mod table;
mod tls;
mod turns;

pub use callers::Callers;
pub use connection::Handler;
pub use limits::Limits;
pub use listener::{Drained, Terms, serve};
pub use table::OpenConnections;
pub use tls::Tls;
