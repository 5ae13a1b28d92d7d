//! The reasons why connections and requests are refused for lack of resources, and their counts.

use std::sync::atomic::{AtomicU64, Ordering};

use idmint_core::named;

named! {
    fn label;
    /// The reason why a request or connection was refused, usually an exhausted resource. The
    /// request had no effect, so the caller may retry.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    pub enum Shed {
        /// All memory of `http.memory_max`, or of the peer's share of it, is in use.
        #[error("all memory for requests (http.memory_max) is in use")]
        Memory = "memory",
        /// The number of requests in flight has reached the limit `http.in_flight_max`.
        #[error("too many requests are in flight (http.in_flight_max)")]
        InFlight = "in_flight",
        /// The request waited for its body, and another request took its place. The setting
        /// `http.in_flight_max` also limits the number of requests that wait for their bodies.
        #[error("the body did not arrive in time, and another request took its place")]
        Bodies = "bodies",
        /// The node has too much long work, such as minting large batches, or too many long
        /// requests.
        #[error("too many long requests are in progress")]
        Bulk = "bulk",
        /// The number of open connections has reached the limit `http.connections_max`.
        #[error("too many connections are open (http.connections_max)")]
        Connections = "connections",
        /// The peer's number of open connections has reached the limit `http.connections_per_peer`.
        #[error("this peer has too many connections open (http.connections_per_peer)")]
        Peer = "peer",
        /// The client sent too many HTTP/2 frames that do not belong to any request.
        #[error("this peer sent too many HTTP/2 frames that belong to no request")]
        Frames = "frames",
        /// The TLS handshake failed, or took longer than `http.header_timeout`.
        #[error("the TLS handshake failed, or took longer than http.header_timeout")]
        Handshake = "handshake",
    }
}

/// The number of refused requests and connections, by reason.
#[derive(Debug, Default)]
pub struct ShedCounts {
    /// The number of refusals for each reason. The index is the position of the reason in
    /// [`Shed::ALL`].
    /// Written by: `count`. Read by: metrics.
    /// Ordering: `Relaxed`, because the counts guard no other memory.
    counts: [AtomicU64; Shed::ALL.len()],
}

impl ShedCounts {
    /// Counts a refusal for the reason `shed`, and returns that reason.
    pub fn count(&self, shed: Shed) -> Shed {
        self.counts[shed as usize].fetch_add(1, Ordering::Relaxed);
        shed
    }

    /// Returns the number of refusals for the reason `shed`.
    pub fn of(&self, shed: Shed) -> u64 {
        self.counts[shed as usize].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_by_itself() {
        let counts = ShedCounts::default();
        for (at, shed) in Shed::ALL.into_iter().enumerate() {
            assert_eq!(shed as usize, at);
            (0..=at).for_each(|_| assert_eq!(counts.count(shed), shed));
        }
        assert_eq!(
            Shed::ALL.map(|shed| counts.of(shed)),
            [1, 2, 3, 4, 5, 6, 7, 8]
        );
    }
}
