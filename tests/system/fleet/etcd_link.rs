//! The way between a node and a member of etcd, which can be slow, silent one way, stalled, and cut, at an append, too.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// How the way is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Weather {
    Clear,
    /// Each piece takes longer.
    Slow,
    /// What the node sends arrives; what etcd answers is held until it is clear again.
    Silent,
    /// As clear, until a node writes an append: that arrives, and from then on it is silent.
    SilentFromAnAppend,
    /// Nothing arrives either way until it is clear again.
    Stalled,
    /// Connections end, and new ones too.
    Cut,
    /// Every second append is done, and the connection ends before its answer comes.
    CutAfterAppends,
    /// The connection ends at every second append, which arrives later: when the node has made another connection, and asked
    /// again.
    CutBeforeAppends,
}

/// So much longer each piece takes where it is slow.
const SLOW_BY: Duration = Duration::from_millis(150);

/// So much later an append arrives than its connection ends, and so long etcd has for it.
const CUT_APART: Duration = Duration::from_millis(300);

/// What a transaction has that writes an append, as it is sent; nothing that is read before has it.
const APPEND: &[u8] = b"/event/";

/// How often a connection looks how the way is.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A port that leads to a member, for as long as the value lives.
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
    /// Appends that were written where connections end at every second one.
    appends: AtomicU64,
}

impl EtcdLink {
    /// A way to the member at this endpoint.
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
                // A member that has been killed takes none.
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

    /// Where a node finds it.
    pub(super) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn turn(&self, weather: Weather) {
        self.shared.weather.store(weather as u8, Ordering::Relaxed);
    }

    /// How often it has done to something what it was told to.
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

    /// Carries what comes from one end to the other, as the way is, until either has closed.
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
                // Before it is sent on: its answer must not be there first.
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
    /// Ends the connection at an append and sends that on, if the way is such and it is the turn of this one; returns whether it
    /// did.
    fn cut_at_append(&self, node: &TcpStream, etcd: &mut TcpStream, piece: &[u8]) -> bool {
        let is_before = self.is(Weather::CutBeforeAppends);
        if !is_before && !self.is(Weather::CutAfterAppends)
            || self.appends.fetch_add(1, Ordering::Relaxed) % 2 == 1
        {
            return false;
        }
        self.connections_cut.fetch_add(1, Ordering::Relaxed);
        // In either case nothing can be answered any more once etcd has it.
        let _ = node.shutdown(Shutdown::Both);
        if is_before {
            thread::sleep(CUT_APART);
        }
        let _ = etcd.write_all(piece);
        // With its connection etcd may give up what it has only begun.
        thread::sleep(CUT_APART);
        true
    }
}

fn has_append(piece: &[u8]) -> bool {
    piece.windows(APPEND.len()).any(|part| part == APPEND)
}
