//! Where an attack is aimed, and what it did there.

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

/// How long it takes until all have come, and until all have gone. In one instant would measure how long so many connections
/// take, on few cores.
const ARRIVAL: Duration = Duration::from_secs(1);

/// By which protocol attackers come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/1.1 in the clear.
    Http1,
    /// HTTP/2 in the clear.
    Http2,
    /// TLS: HTTP/1.1 in it, where an attack is not one of HTTP/2 alone.
    Tls,
}

/// How attackers come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    pub(crate) protocol: Protocol,
    /// From so many addresses of this machine, 127.0.0.2 and up; the honest caller has 127.0.0.1.
    pub(crate) addresses: usize,
}

/// The server that an attack is aimed at.
#[derive(Clone)]
pub(crate) struct Aim {
    pub(crate) address: SocketAddr,
    pub(crate) protocol: Protocol,
    addresses: usize,
    /// How whoever knows the protocol encrypts; `None` in the clear.
    pub(crate) encryption: Option<Arc<ClientConfig>>,
    /// How others reach the service, whether it is this that is attacked or the control.
    pub(crate) door: Door,
    pub(crate) deeds: Arc<Deeds>,
    /// Cancelled when the attackers are to leave.
    pub(crate) is_over: CancellationToken,
}

/// What attackers did, and what came of it. Counted by all of them, read when they are gone.
#[derive(Default)]
pub(crate) struct Deeds {
    /// Connections that were opened.
    pub(crate) connections: Counter,
    /// Connections that could not be.
    pub(crate) not_connected: Counter,
    /// Most connections that were open at once.
    pub(crate) open_at_once: Counter,
    open: Counter,
    /// Bytes that the kernel took.
    pub(crate) bytes: Counter,
    /// Bytes of answers of HTTP/1.
    pub(crate) received: Counter,
    /// Whole requests that were sent.
    pub(crate) requests: Counter,
    /// HTTP/2 frames that were sent.
    pub(crate) frames: Counter,
    /// Frames that reset a stream or end a connection, received.
    pub(crate) resets: Counter,
    /// Connections that the other side ended.
    pub(crate) cut: Counter,
    statuses: Mutex<BTreeMap<u16, u64>>,
}

/// A number that only threads of this program see.
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

    /// Where the attacker of this number comes from.
    pub(crate) fn source(&self, number: usize) -> SocketAddr {
        let host = u8::try_from(2 + number % self.addresses).expect("few addresses");
        SocketAddr::from((Ipv4Addr::new(127, 0, 0, host), 0))
    }

    /// So many attackers, who come one after the other within [`ARRIVAL`], and leave in that order once it is over.
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

    /// How many answers had this status.
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
