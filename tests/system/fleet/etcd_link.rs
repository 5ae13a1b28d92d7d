//! A link between a node and an etcd member. It can be slow, silent in one direction, stalled or
//! cut. Some conditions begin exactly when the node sends an append.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// The condition of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Weather {
    Clear,
    /// Each chunk of data is delayed by [`SLOW_BY`].
    Slow,
    /// Requests of the node arrive, but responses of etcd are held back until the link is clear
    /// again.
    Silent,
    /// The link is clear until the node sends an append. That append arrives, and then the link is
    /// silent.
    SilentFromAnAppend,
    /// Data in both directions is held back until the link is clear again.
    Stalled,
    /// All connections are closed, including new ones.
    Cut,
    /// For every second append, the connection is closed after etcd has committed the append and
    /// before its response arrives.
    CutAfterAppends,
    /// For every second append, the connection is closed before the append arrives. The append
    /// reaches etcd later, after the node has reconnected and repeated it.
    CutBeforeAppends,
}

/// The delay of each chunk on a slow link.
const SLOW_BY: Duration = Duration::from_millis(150);

/// The time from closing the node's connection until the append is forwarded to etcd. The link then
/// waits for the same time again, so that etcd can commit the append.
const CUT_APART: Duration = Duration::from_millis(300);

/// The bytes that identify an append. Only transactions with an append contain them, and no read
/// that precedes the append does.
const APPEND: &[u8] = b"/event/";

/// The interval at which a held connection checks the condition of the link again.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A local port that forwards connections to an etcd member. It is closed when this value is
/// dropped.
pub(super) struct EtcdLink {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    weather: AtomicU8,
    is_over: AtomicBool,
    pieces_slowed: AtomicU64,
    looks_held: AtomicU64,
    connections_cut: AtomicU64,
    /// The number of appends under the conditions that cut the connection at every second append.
    appends: AtomicU64,
}

impl EtcdLink {
    /// Opens a link to the member at this endpoint.
    pub(super) fn to(endpoint: &str) -> EtcdLink {
        let member: SocketAddr = endpoint
            .strip_prefix("http://")
            .expect("without TLS")
            .parse()
            .expect("an address");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let zero = || AtomicU64::new(0);
        let shared = Arc::new(Shared {
            weather: AtomicU8::new(Weather::Clear as u8),
            is_over: AtomicBool::new(false),
            pieces_slowed: zero(),
            looks_held: zero(),
            connections_cut: zero(),
            appends: zero(),
        });
        let link = EtcdLink {
            address: listener.local_addr().expect("an address"),
            shared: Arc::clone(&shared),
        };
        thread::spawn(move || {
            for node in listener.incoming() {
                if shared.is_over.load(Ordering::Relaxed) {
                    break;
                }
                let Ok(node) = node else { continue };
                if shared.is(Weather::Cut) {
                    shared.connections_cut.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                // The connection fails if the member was killed.
                let Ok(etcd) = TcpStream::connect(member) else {
                    continue;
                };
                let ends = [(&node, &etcd), (&etcd, &node)].map(|(from, to)| {
                    (
                        from.try_clone().expect("a socket"),
                        to.try_clone().expect("a socket"),
                    )
                });
                for (is_answer, (from, to)) in [false, true].into_iter().zip(ends) {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || shared.carry(from, to, is_answer));
                }
            }
        });
        link
    }

    /// Returns the endpoint that the node must use for this member.
    pub(super) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn turn(&self, weather: Weather) {
        self.shared.weather.store(weather as u8, Ordering::Relaxed);
    }

    /// Returns how often bad conditions have affected this link so far.
    pub(super) fn mishaps(&self) -> u64 {
        let Shared {
            pieces_slowed,
            looks_held,
            connections_cut,
            ..
        } = &*self.shared;
        [pieces_slowed, looks_held, connections_cut]
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .sum()
    }
}

impl Drop for EtcdLink {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    fn is(&self, weather: Weather) -> bool {
        self.weather.load(Ordering::Relaxed) == weather as u8
    }

    /// Forwards data from one end to the other, as the current condition demands, until either end
    /// is closed. `is_answer` is `true` for the direction from etcd to the node.
    fn carry(&self, mut from: TcpStream, mut to: TcpStream, is_answer: bool) {
        from.set_read_timeout(Some(LOOK_EVERY))
            .expect("longer than nothing");
        let _ = to.set_nodelay(true);
        let mut piece = [0; 16 * 1024];
        while !self.is_over.load(Ordering::Relaxed) {
            if self.is(Weather::Cut) {
                self.connections_cut.fetch_add(1, Ordering::Relaxed);
                break;
            }
            if self.is(Weather::Stalled) || (is_answer && self.is(Weather::Silent)) {
                self.looks_held.fetch_add(1, Ordering::Relaxed);
                thread::sleep(LOOK_EVERY);
                continue;
            }
            let len = match from.read(&mut piece) {
                Ok(0) => break,
                Ok(len) => len,
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    continue;
                }
                Err(_) => break,
            };
            if !is_answer && self.is(Weather::SilentFromAnAppend) && has_append(&piece[..len]) {
                // Change the condition before forwarding the append, so that its response cannot
                // pass first.
                self.weather.store(Weather::Silent as u8, Ordering::Relaxed);
            }
            if !is_answer
                && has_append(&piece[..len])
                && self.cut_at_append(&from, &mut to, &piece[..len])
            {
                break;
            }
            if self.is(Weather::Slow) {
                self.pieces_slowed.fetch_add(1, Ordering::Relaxed);
                thread::sleep(SLOW_BY);
            }
            if to.write_all(&piece[..len]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}

impl Shared {
    /// Cuts the connection at every second append if the current condition demands it. The append
    /// is forwarded to etcd in this case, but the node gets no response. Returns `true` if the
    /// connection was cut.
    fn cut_at_append(&self, node: &TcpStream, etcd: &mut TcpStream, piece: &[u8]) -> bool {
        let is_before = self.is(Weather::CutBeforeAppends);
        if !is_before && !self.is(Weather::CutAfterAppends)
            || self.appends.fetch_add(1, Ordering::Relaxed) % 2 == 1
        {
            return false;
        }
        self.connections_cut.fetch_add(1, Ordering::Relaxed);
        // Close the node's side first. Then no response can reach the node after etcd has the
        // append.
        let _ = node.shutdown(Shutdown::Both);
        if is_before {
            thread::sleep(CUT_APART);
        }
        let _ = etcd.write_all(piece);
        // Keep the connection to etcd open for a while, because etcd may drop an unfinished request
        // when its connection ends.
        thread::sleep(CUT_APART);
        true
    }
}

fn has_append(piece: &[u8]) -> bool {
    piece.windows(APPEND.len()).any(|part| part == APPEND)
}
