//! Why a caller was turned away, and how often.

use std::sync::atomic::{AtomicU64, Ordering};

/// What there is too little of. The caller may come again: nothing was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Shed {
    /// `http.memory_max`, or one peer's share of it.
    #[error("all memory for requests is in use")]
    Memory,
    /// `http.in_flight_max`.
    #[error("as many requests are in flight as may be")]
    InFlight,
    /// Room for requests whose bodies have not come, as many as `http.in_flight_max`.
    #[error("the body did not come, and its place was needed for another request")]
    Bodies,
    /// Room for long work.
    #[error("as much long work is going on as this node can do soon")]
    Bulk,
    /// `http.connections_max`.
    #[error("as many connections are open as may be")]
    Connections,
    /// `http.connections_per_peer`.
    #[error("this peer has as many connections as it may have")]
    Peer,
    /// HTTP/2 frames that ask for nothing.
    #[error("too many frames came without a request")]
    Frames,
    /// A handshake of TLS that failed, or took longer than `http.header_timeout`.
    #[error("a TLS handshake failed")]
    Handshake,
}

impl Shed {
    /// All of them.
    pub const ALL: [Shed; 8] = [
        Shed::Memory,
        Shed::InFlight,
        Shed::Bodies,
        Shed::Bulk,
        Shed::Connections,
        Shed::Peer,
        Shed::Frames,
        Shed::Handshake,
    ];

    /// How metrics name it.
    pub fn label(self) -> &'static str {
        match self {
            Shed::Memory => "memory",
            Shed::InFlight => "in_flight",
            Shed::Bodies => "bodies",
            Shed::Bulk => "bulk",
            Shed::Connections => "connections",
            Shed::Peer => "peer",
            Shed::Frames => "frames",
            Shed::Handshake => "handshake",
        }
    }
}

/// How often callers were turned away.
#[derive(Debug, Default)]
pub struct ShedCounts {
    /// By the place in [`Shed::ALL`].
    /// Written by: `count`. Read by: metrics. Ordering: `Relaxed`, they guard nothing.
    counts: [AtomicU64; Shed::ALL.len()],
}

impl ShedCounts {
    /// One more; hands the reason on.
    pub fn count(&self, shed: Shed) -> Shed {
        self.counts[shed as usize].fetch_add(1, Ordering::Relaxed);
        shed
    }

    /// How often it was for this.
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
