//! What the load is sent to, and whose CPU time counts.

use std::net::SocketAddr;

/// A server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) pid: u32,
}
