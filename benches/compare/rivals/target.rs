//! The address that the load is sent to, and the process whose CPU time counts.

use std::net::SocketAddr;

/// A running server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) pid: u32,
}
