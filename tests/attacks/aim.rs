//! The target of an attack, and counters of the attackers' traffic and the server's reactions.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_rustls::rustls::ClientConfig;
use tokio_util::sync::CancellationToken;

use super::door::Door;

/// The time over which the attackers connect, one after another. They disconnect over the same
/// time. If all of them connected at once, the test would measure how long a machine with few cores
/// takes to open that many connections.
const ARRIVAL: Duration = Duration::from_secs(1);

/// The protocol that the attackers use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/1.1 without TLS.
    Http1,
    /// HTTP/2 without TLS.
    Http2,
    /// TLS, with HTTP/1.1 inside. Attacks that consist of HTTP/2 frames use HTTP/2 inside.
    Tls,
}

/// One way to carry out an attack: a protocol, and the number of source addresses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    pub(crate) protocol: Protocol,
    /// The number of source addresses, counted from 127.0.0.2. The honest caller uses 127.0.0.1.
    pub(crate) addresses: usize,
}

/// The server under attack, which is either the service or the control (a process for comparison,
/// which accepts everything).
#[derive(Clone)]
pub(crate) struct Aim {
    pub(crate) address: SocketAddr,
    pub(crate) protocol: Protocol,
    addresses: usize,
    /// The TLS configuration of the attackers, or `None` if they connect without TLS.
    pub(crate) encryption: Option<Arc<ClientConfig>>,
    /// Connects honest callers. They always call the service, even while the control (a process for
    /// comparison) is attacked instead.
    pub(crate) door: Door,
    pub(crate) deeds: Arc<Deeds>,
    /// A token that the test cancels when the attackers must disconnect.
    pub(crate) is_over: CancellationToken,
}

/// Counters of the attackers' actions and the server's reactions. All attackers add to these
/// counters, and the test polls them.
#[derive(Default)]
pub(crate) struct Deeds {
    /// Connections that the attackers opened.
    pub(crate) connections: Counter,
    /// Attempts to connect that failed.
    pub(crate) not_connected: Counter,
    /// The highest number of connections that were open at the same time.
    pub(crate) open_at_once: Counter,
    open: Counter,
    /// Bytes that the attackers have written to their sockets.
    pub(crate) bytes: Counter,
    /// Bytes of HTTP/1 responses that the attackers received.
    pub(crate) received: Counter,
    /// Complete requests that the attackers sent.
    pub(crate) requests: Counter,
    /// HTTP/2 frames that the attackers sent.
    pub(crate) frames: Counter,
    /// RST_STREAM and GOAWAY frames that the attackers received.
    pub(crate) resets: Counter,
    /// Connections that the server closed.
    pub(crate) cut: Counter,
    statuses: Mutex<BTreeMap<u16, u64>>,
}

/// A counter to which all attackers add. Ordering: Relaxed, because no other memory depends on the
/// counter.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: usize) -> u64 {
        self.0.fetch_add(more as u64, Ordering::Relaxed) + more as u64
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Aim {
    pub(crate) fn at(
        address: SocketAddr,
        way: Way,
        encryption: Option<Arc<ClientConfig>>,
        door: &Door,
    ) -> Aim {
        let Way {
            protocol,
            addresses,
        } = way;
        let door = door.clone();
        Aim {
            address,
            protocol,
            addresses,
            encryption,
            door,
            deeds: Arc::default(),
            is_over: CancellationToken::new(),
        }
    }

    /// Returns the source address of attacker `number`, with port 0.
    pub(crate) fn source(&self, number: usize) -> SocketAddr {
        let host = u8::try_from(2 + number % self.addresses).expect("few addresses");
        SocketAddr::from((Ipv4Addr::new(127, 0, 0, host), 0))
    }

    /// Starts `count` attackers. They connect one after another within [`ARRIVAL`], and disconnect
    /// in the same order after the attack.
    pub(crate) fn attackers<F>(
        &self,
        count: usize,
        attacker: impl Fn(Aim, usize) -> F,
    ) -> JoinSet<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let arriving = |number| {
            let (attacks, is_over) = (attacker(self.clone(), number), self.is_over.clone());
            let wait = ARRIVAL.mul_f64(number as f64 / count as f64);
            async move {
                sleep(wait).await;
                tokio::select! {
                    () = attacks => panic!("an attacker has no end of its own"),
                    () = async { is_over.cancelled().await; sleep(wait).await } => {}
                }
            }
        };
        (0..count).map(arriving).collect()
    }
}

impl Deeds {
    pub(super) fn opened(&self) {
        self.connections.add(1);
        let open = self.open.add(1);
        self.open_at_once.0.fetch_max(open, Ordering::Relaxed);
    }

    pub(super) fn closed(&self) {
        self.open.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn answered(&self, status: u16) {
        *self.statuses.lock().unwrap().entry(status).or_default() += 1;
    }

    /// Returns the number of responses with this status.
    pub(crate) fn of_status(&self, status: u16) -> u64 {
        self.statuses
            .lock()
            .unwrap()
            .get(&status)
            .copied()
            .unwrap_or(0)
    }

    pub(crate) fn summary(&self) -> String {
        let counts = [
            ("connections", &self.connections),
            ("at once", &self.open_at_once),
            ("not connected", &self.not_connected),
            ("bytes", &self.bytes),
            ("received", &self.received),
            ("requests", &self.requests),
            ("frames", &self.frames),
            ("resets", &self.resets),
            ("cut", &self.cut),
        ];
        let told = counts.iter().filter(|(_, count)| count.get() > 0);
        let told: Vec<_> = told
            .map(|(what, count)| format!("{what} {}", count.get()))
            .collect();
        format!(
            "{}; answers {:?}",
            told.join(", "),
            self.statuses.lock().unwrap()
        )
    }
}
