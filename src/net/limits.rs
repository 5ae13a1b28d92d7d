//! What connections may take: how many at once, and how long each may wait.

use std::time::Duration;

/// What one connection, and all together, may take.
///
/// Source of the defaults: they end a stalled head, and an idle connection, sooner than a caller would notice, and
/// leave a slow but honest one alone.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections open at once; one more is answered 503 and closed. Keep it well below the file descriptor limit.
    pub connections_max: usize,
    /// Those of one peer, loopback and trusted proxies apart.
    pub connections_per_peer: usize,
    /// After this time, give or take a tenth, a connection is closed with its next answer.
    pub connection_age_max: Option<Duration>,
    /// From the first byte of a request to the end of its head, and from accepting to the end of the first head.
    pub header_timeout: Duration,
    /// How long nothing may move on a connection: between requests; or a KiB of an answer, of each stream in HTTP/2.
    pub idle_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            connections_per_peer: 5_000,
            connection_age_max: None,
            header_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(60),
        }
    }
}
