//! Limits on connections: their number, and the time for which each may wait.

use std::time::Duration;

use idmint_service::MemoryBudget;

/// The memory that an idle open connection uses, in bytes.
///
/// Source: resident memory of 10 000 idle connections that have each had a response.
pub(crate) const CONNECTION_LEN: usize = 8 * 1024;

/// The limits of one connection, and of all connections together.
///
/// By default, a connection is closed after 75 s without progress, or if a request head takes
/// longer than 5 s. A slow but honest caller stays within these limits.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The maximum number of open connections. A further connection replaces the one that has been
    /// idle longest, or is refused if no connection is idle. Keep this value well below the file
    /// descriptor limit.
    pub connections_max: usize,
    /// The maximum number of open connections of one peer. Loopback addresses and trusted proxies
    /// are exempt.
    pub connections_per_peer: usize,
    /// The age after which a connection is closed with its next response, or `None` for no limit.
    /// Each connection gets a random jitter of up to ±10 %.
    pub connection_age_max: Option<Duration>,
    /// The maximum time from the first byte of a request to the end of its head. For the first head
    /// the time starts when the connection is accepted.
    pub header_timeout: Duration,
    /// The maximum time without progress: the time between two requests, or the time to send one
    /// KiB of a response. In HTTP/2 each stream has its own limit for its response.
    pub idle_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            connections_per_peer: 5_000,
            connection_age_max: None,
            header_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(75),
        }
    }
}

impl Limits {
    /// Returns a `connections_max` for a process with `memory_max` bytes of memory. It is the
    /// number of idle connections that fit into the [reservable](MemoryBudget::reservable) part of
    /// the memory, but at least 6 000 and at most 10 000.
    ///
    /// With less memory than 6 000 connections need, new connections are refused for lack of memory
    /// before their number reaches the limit.
    pub fn connections_for(memory_max: usize) -> usize {
        let connections = MemoryBudget::reservable(memory_max) / CONNECTION_LEN;
        connections.clamp(6_000, 10_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_derived_from_memory_within_bounds() {
        const MIB: usize = 1 << 20;
        let connections = [32, 64, 80, 128, 1024].map(|mib| Limits::connections_for(mib * MIB));
        assert_eq!(connections, [6_000, 6_144, 8_192, 10_000, 10_000]);
    }
}
