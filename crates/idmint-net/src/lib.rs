//! Internal to idmint: accepts connections, limits them and closes them.
//!
//! ```text
//! kernel ─► acceptor ─► listener ─► connection ─► protocol      HTTP/1.1 or HTTP/2
//!              │            │            ├─► turns              a share of the processor for each peer
//!              │            │            ├─► tls                the handshake of connections with TLS
//!              │            │            ├─► stream, outbox     bytes: tracked when read, coalesced when written
//!              └► refusal ◄─┘            ├─► handler            requests: tracked from head to last byte
//!                 not served             └─► timeouts           checks the activity, and reports what took too long
//! ```
//!
//! The handler, the refusals and the observer of requests are parameters, so this crate contains no
//! routes. Start reading at [`serve`].

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod acceptor;
mod callers;
mod connection;
mod fair_share;
mod limits;
mod listener;
mod refusal;
mod stream;
mod table;
mod tls;

pub use callers::Callers;
pub use connection::{
    ConnectedCaller, ConnectionObserver, Dispatch, Handler, RequestObserver, ResponseBody,
    ResponseObserver,
};
pub use limits::Limits;
pub use listener::{Drained, Security, Terms, serve};
pub use table::OpenConnections;
pub use tls::Tls;
