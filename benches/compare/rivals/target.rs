//! The address to which the load is sent, and the process whose CPU time is measured.

use std::net::SocketAddr;

/// A running server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) pid: u32,
}
