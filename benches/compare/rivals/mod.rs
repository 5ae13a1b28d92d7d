//! Everything that is measured, each a process of its own.

pub(crate) mod bare;
pub(crate) mod idmint;
pub(crate) mod nginx;
pub(crate) mod postgresql;
pub(crate) mod redis;

use std::net::SocketAddr;

/// Where a server answers, and whose time counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) pid: u32,
}
