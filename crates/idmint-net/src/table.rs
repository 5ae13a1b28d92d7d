//! The table of open connections. The table counts connections in total and per peer, and finds
//! idle connections to evict.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus::IntGauge;
use tokio_util::sync::CancellationToken;

use super::limits::Limits;
use super::stream::{Activity, State, idle_for};
use idmint_service::{Shed, network_of};

/// The maximum number of evicted connections that are still closing. While this many are closing,
/// no further connection is evicted.
const LEAVING_MAX: usize = 256;

/// The maximum length of the list of connections that have been idle longest. A scan of the table
/// fills the list, and evictions take connections from it until it is empty, without another scan.
const REMEMBERED_MAX: usize = 1_024;

/// The minimum idle time before a connection is evicted for lack of file descriptors. In such a
/// shortage, each refused connection evicts an idle one. Without this minimum, an attacker that
/// connects fast could also evict callers that are idle only between two requests. A caller that
/// sends requests at least this often keeps its connection.
const SPARED: Duration = Duration::from_secs(1);

/// The open connections of a process. Clones share one table.
#[derive(Clone)]
pub struct OpenConnections(Arc<Mutex<Table>>);

struct Table {
    rows: HashMap<u64, Row>,
    /// The metric that reports the number of open connections.
    open: IntGauge,
    /// The number of connections of each peer that has connections. A peer is a
    /// [network](network_of), so that the many addresses of one IPv6 caller share one limit.
    by_peer: HashMap<IpAddr, usize>,
    next_number: u64,
    /// The number of evicted connections that are not closed yet.
    leaving: usize,
    /// The connections that had been idle longest at the last scan. Each is a pair of its number
    /// and the time at which it became idle. The longest-idle connection is last. A connection that
    /// became idle after the scan has been idle for less time than all of these.
    idle_longest: Vec<(u64, u64)>,
}

impl Table {
    fn shown_by(open: IntGauge) -> Table {
        let (rows, by_peer) = (HashMap::new(), HashMap::new());
        Table {
            rows,
            open,
            by_peer,
            next_number: 0,
            leaving: 0,
            idle_longest: Vec::new(),
        }
    }
}

/// Creates a table whose gauge belongs to no metrics registry.
impl Default for OpenConnections {
    fn default() -> Self {
        Self::shown_by(IntGauge::new("open", "Open connections.").expect("a valid name"))
    }
}

struct Row {
    /// The network of the peer's address.
    peer: IpAddr,
    activity: Arc<Activity>,
    stop: CancellationToken,
    is_leaving: bool,
}

impl Row {
    /// Returns the time at which the connection became idle, if it is idle and can be evicted.
    fn idle_since(&self) -> Option<u64> {
        let is_idle = !self.is_leaving && self.activity.snapshot().state == State::Idle;
        is_idle.then(|| self.activity.idle_since())
    }
}

impl OpenConnections {
    /// Returns an empty table, which reports the number of open connections through this gauge.
    pub fn shown_by(open: IntGauge) -> Self {
        Self(Arc::new(Mutex::new(Table::shown_by(open))))
    }

    /// Returns the number of open connections.
    pub fn count(&self) -> usize {
        self.table().rows.len()
    }

    /// Adds a connection, which stays in the table until the guard is dropped. If the table is
    /// full, evicts the connection that has been idle longest. The limit per peer does not apply to
    /// an exempt peer.
    ///
    /// # Errors
    /// Returns [`Shed::Peer`] if this peer has reached its limit, and [`Shed::Connections`] if the
    /// table is full and no connection is idle.
    pub(super) fn enter(
        &self,
        peer: IpAddr,
        is_exempt: bool,
        limits: &Limits,
        activity: &Arc<Activity>,
        stop: &CancellationToken,
    ) -> Result<OpenConnection, Shed> {
        let peer = network_of(peer);
        let table = &mut *self.table();
        let of_peer = table.by_peer.get(&peer).copied().unwrap_or(0);
        if !is_exempt && of_peer >= limits.connections_per_peer {
            return Err(Shed::Peer);
        }
        if table.rows.len() - table.leaving >= limits.connections_max
            && !table.give_one_up(Duration::ZERO)
        {
            return Err(Shed::Connections);
        }
        let number = table.next_number;
        table.next_number += 1;
        let row = Row {
            peer,
            activity: Arc::clone(activity),
            stop: stop.clone(),
            is_leaving: false,
        };
        table.rows.insert(number, row);
        table.open.inc();
        *table.by_peer.entry(peer).or_default() += 1;
        Ok(OpenConnection {
            connections: self.clone(),
            number,
        })
    }

    /// Evicts the connection that has been idle longest, to free its descriptor for a new
    /// connection. Does nothing if no connection has been idle for [`SPARED`].
    pub(super) fn give_up_idle_longest(&self) {
        self.table().give_one_up(SPARED);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Evicts the connection that has been idle longest, if it has been idle for at least
    /// `idle_min`. Returns `true` if a connection was evicted.
    fn give_one_up(&mut self, idle_min: Duration) -> bool {
        if self.leaving == LEAVING_MAX {
            return false;
        }
        let Some((number, since)) = self.idle_longest() else {
            return false;
        };
        if idle_for(since) < idle_min {
            self.idle_longest.push((number, since));
            return false;
        }
        let row = self.rows.get_mut(&number).expect("it was found there");
        row.is_leaving = true;
        self.leaving += 1;
        row.activity.give_up();
        row.stop.cancel();
        true
    }

    /// Returns the connection that has been idle longest, with the time at which it became idle.
    fn idle_longest(&mut self) -> Option<(u64, u64)> {
        self.next_idle_longest().or_else(|| {
            let idle = self
                .rows
                .iter()
                .filter_map(|(number, row)| Some((*number, row.idle_since()?)));
            self.idle_longest = idle.collect();
            self.idle_longest
                .sort_unstable_by_key(|(_, since)| Reverse(*since));
            let surplus = self.idle_longest.len().saturating_sub(REMEMBERED_MAX);
            self.idle_longest.drain(..surplus);
            self.next_idle_longest()
        })
    }

    /// Removes connections from `idle_longest`, starting with the one that has been idle longest.
    /// Returns the first connection that has been idle ever since the scan that filled this list,
    /// or `None` if no such connection is left.
    fn next_idle_longest(&mut self) -> Option<(u64, u64)> {
        while let Some((number, since)) = self.idle_longest.pop() {
            if self.rows.get(&number).and_then(Row::idle_since) == Some(since) {
                return Some((number, since));
            }
        }
        None
    }

    fn leave(&mut self, number: u64) {
        let Some(row) = self.rows.remove(&number) else {
            return;
        };
        self.open.dec();
        self.leaving -= usize::from(row.is_leaving);
        if let Some(of_peer) = self.by_peer.get_mut(&row.peer) {
            *of_peer -= 1;
            if *of_peer == 0 {
                self.by_peer.remove(&row.peer);
            }
        }
    }
}

impl fmt::Debug for OpenConnections {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OpenConnections({})", self.count())
    }
}

/// The entry of one connection in the table of open connections. The entry is removed when this
/// value is dropped.
#[derive(Debug)]
pub(super) struct OpenConnection {
    connections: OpenConnections,
    number: u64,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.table().leave(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use idmint_service::Load;

    struct Entered {
        entry: Result<OpenConnection, Shed>,
        activity: Arc<Activity>,
        stop: CancellationToken,
    }

    fn enter(open: &OpenConnections, peer: u8, is_exempt: bool, idle_since: u64) -> Entered {
        enter_from(open, [10, 0, 0, peer].into(), is_exempt, idle_since)
    }

    fn enter_from(
        open: &OpenConnections,
        peer: IpAddr,
        is_exempt: bool,
        idle_since: u64,
    ) -> Entered {
        let owner = Load::default().memory.owner(peer);
        let limits = Limits {
            connections_max: 4,
            connections_per_peer: 2,
            ..Limits::default()
        };
        let activity = Arc::new(Activity::idle_since_then(owner, idle_since));
        let stop = CancellationToken::new();
        let entry = open.enter(peer, is_exempt, &limits, &activity, &stop);
        Entered {
            entry,
            activity,
            stop,
        }
    }

    #[test]
    fn a_peer_has_its_share_and_loopback_any_number() {
        let open = OpenConnections::default();
        let mine = [1, 2, 3].map(|at| enter(&open, 1, false, at));
        assert_eq!(mine[2].entry.as_ref().err(), Some(&Shed::Peer));
        let exempt = [4, 5].map(|at| enter(&open, 1, true, at));
        assert!(exempt.iter().all(|one| one.entry.is_ok()));
        assert_eq!(open.count(), 4);
        drop((mine, exempt));
        assert!(open.table().by_peer.is_empty() && open.count() == 0);
    }

    #[test]
    fn all_addresses_of_an_ipv6_network_share_one_limit() {
        for (addresses, other) in [
            (
                ["2001:db8::1", "2001:db8::2", "2001:db8::3"],
                "2001:db8:0:1::1",
            ),
            (["10.0.0.1", "::ffff:10.0.0.1", "10.0.0.1"], "10.0.0.2"),
        ] {
            let open = OpenConnections::default();
            let enter = |address: &str| {
                let peer = address.parse().expect("an address");
                enter_from(&open, peer, false, 1).entry
            };
            let mut entered = addresses.map(enter);
            let third = entered[2].as_ref().err();
            assert_eq!(third, Some(&Shed::Peer), "{addresses:?}");
            let other = enter(other);
            assert!(entered[1].is_ok() && other.is_ok(), "{addresses:?}");
            entered[0] = Err(Shed::Peer);
            assert!(enter(addresses[2]).is_ok(), "one of them has left");
            drop((entered, other));
            assert!(open.table().by_peer.is_empty());
        }
    }

    #[test]
    fn a_full_table_gives_up_the_one_idle_longest_and_none_that_works() {
        let open = OpenConnections::default();
        let others =
            [7, 3, 9, 5].map(|at| enter(&open, u8::try_from(at).expect("small"), false, at));
        let _working = others[1].activity.begin_request(false);
        let newcomer = enter(&open, 20, false, 10);
        assert!(newcomer.entry.is_ok());
        assert_eq!(
            others.each_ref().map(|one| one.stop.is_cancelled()),
            [false, false, false, true]
        );
        let _working =
            [&others[0], &others[2], &newcomer].map(|one| one.activity.begin_request(false));
        assert_eq!(
            enter(&open, 21, false, 11).entry.err(),
            Some(Shed::Connections)
        );
    }

    #[test]
    fn after_one_look_at_all_the_next_go_in_order_and_whoever_moved_meanwhile_stays() {
        let open = OpenConnections::default();
        let others =
            [3, 1, 2, 4].map(|at| enter(&open, u8::try_from(at).expect("small"), false, at));
        let gone = || others.each_ref().map(|one| one.stop.is_cancelled());
        let first = enter(&open, 20, false, 10);
        assert_eq!(
            (gone(), first.entry.is_ok()),
            ([false, true, false, false], true)
        );
        others[2].activity.record_idle();
        let second = enter(&open, 21, false, 11);
        assert_eq!(
            (gone(), second.entry.is_ok()),
            ([true, true, false, false], true),
            "the one of 2 has moved"
        );
        drop(others.map(|one| one.entry));
        assert_eq!(open.table().leaving, 0);
    }
}
