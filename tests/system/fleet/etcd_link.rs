//! A link between a node and an etcd member, which can be slow, silent in one direction, stalled or
//! cut, also at an append.

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
    /// Each chunk is delayed.
    Slow,
    /// Requests of the node arrive, but responses of etcd are held until the link is clear again.
    Silent,
    /// The link is clear until the node writes an append. The append arrives, and from then on the
    /// link is silent.
    SilentFromAnAppend,
    /// Nothing arrives in either direction until the link is clear again.
    Stalled,
    /// Connections end, including new ones.
    Cut,
    /// Every second append is committed, and its connection ends before the response arrives.
    CutAfterAppends,
    /// The connection ends at every second append. The append arrives later, when the node has
    /// reconnected and retried.
    CutBeforeAppends,
}

/// The delay of each chunk on a slow link.
const SLOW_BY: Duration = Duration::from_millis(150);

/// The time from the end of a connection to the arrival of its append, and then the time that etcd
/// has to commit it.
const CUT_APART: Duration = Duration::from_millis(300);

/// A byte sequence that only transactions with an append contain, and no earlier read.
const APPEND: &[u8] = b"/event/";

/// The interval at which a connection checks the condition of the link.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A local port that forwards to a member while the value lives.
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
    /// The number of appends while every second one ends its connection.
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
                // A killed member accepts no connection.
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

    /// Returns the endpoint of the link for a node.
    pub(super) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn turn(&self, weather: Weather) {
        self.shared.weather.store(weather as u8, Ordering::Relaxed);
    }

    /// Returns the number of times that bad conditions have affected this link so far.
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

    /// Forwards data from one end to the other under the current condition, until either end has
    /// closed.
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
                // Switch before the append is forwarded, so that its response cannot get through
                // first.
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
    /// Ends the connection at an append and forwards the append, if the condition asks for that and
    /// it is this append's turn. Returns `true` if the connection was ended.
    fn cut_at_append(&self, node: &TcpStream, etcd: &mut TcpStream, piece: &[u8]) -> bool {
        let is_before = self.is(Weather::CutBeforeAppends);
        if !is_before && !self.is(Weather::CutAfterAppends)
            || self.appends.fetch_add(1, Ordering::Relaxed) % 2 == 1
        {
            return false;
        }
        self.connections_cut.fetch_add(1, Ordering::Relaxed);
        // In either case, no response can get through once etcd has the append.
        let _ = node.shutdown(Shutdown::Both);
        if is_before {
            thread::sleep(CUT_APART);
        }
        let _ = etcd.write_all(piece);
        // etcd may abandon an unfinished request when its connection ends, so keep the connection
        // open.
        thread::sleep(CUT_APART);
        true
    }
}

fn has_append(piece: &[u8]) -> bool {
    piece.windows(APPEND.len()).any(|part| part == APPEND)
}
