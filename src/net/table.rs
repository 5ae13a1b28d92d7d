//! The connections that are open: how many, whose, and which of them can be given up.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus::IntGauge;
use tokio_util::sync::CancellationToken;

use super::limits::Limits;
use super::stream::{Activity, State};
use crate::service::Shed;

/// How many connections that were given up may still be saying goodbye.
const LEAVING_MAX: usize = 256;

/// The open connections of a process. Clones are one table.
#[derive(Clone)]
pub struct OpenConnections(Arc<Mutex<Table>>);

struct Table {
    rows: HashMap<u64, Row>,
    /// How many those are.
    open: IntGauge,
    /// Connections of each peer that has any.
    by_peer: HashMap<IpAddr, usize>,
    next_number: u64,
    /// Given up to make room, and not closed yet.
    leaving: usize,
}

impl Table {
    fn shown_by(open: IntGauge) -> Table {
        Table { rows: HashMap::new(), open, by_peer: HashMap::new(), next_number: 0, leaving: 0 }
    }
}

/// Shown by nothing.
impl Default for OpenConnections {
    fn default() -> Self {
        Self::shown_by(IntGauge::new("open", "Connections that are open.").expect("a valid name"))
    }
}

struct Row {
    peer: IpAddr,
    activity: Arc<Activity>,
    stop: CancellationToken,
    is_leaving: bool,
}

impl OpenConnections {
    /// An empty table, whose length this gauge shows.
    pub fn shown_by(open: IntGauge) -> Self {
        Self(Arc::new(Mutex::new(Table::shown_by(open))))
    }

    /// The number open now.
    pub fn count(&self) -> usize {
        self.table().rows.len()
    }

    /// Enters one more connection until the guard is dropped. If the table is full, the one that is idle longest is told
    /// to stop. A peer that is exempt may have any number.
    ///
    /// # Errors
    /// [`Shed::Connections`] if none is idle, [`Shed::Peer`] if this peer has as many as it may.
    pub(super) fn enter(
        &self,
        peer: IpAddr,
        is_exempt: bool,
        limits: &Limits,
        activity: &Arc<Activity>,
        stop: &CancellationToken,
    ) -> Result<OpenConnection, Shed> {
        let table = &mut *self.table();
        let of_peer = table.by_peer.get(&peer).copied().unwrap_or(0);
        if !is_exempt && of_peer >= limits.connections_per_peer {
            return Err(Shed::Peer);
        }
        if table.rows.len() - table.leaving >= limits.connections_max && !table.give_one_up() {
            return Err(Shed::Connections);
        }
        let number = table.next_number;
        table.next_number += 1;
        let row = Row { peer, activity: Arc::clone(activity), stop: stop.clone(), is_leaving: false };
        table.rows.insert(number, row);
        table.open.inc();
        *table.by_peer.entry(peer).or_default() += 1;
        Ok(OpenConnection { connections: self.clone(), number })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Tells the connection that is idle longest to stop; says whether there was one.
    fn give_one_up(&mut self) -> bool {
        let idle = self.rows.values_mut().filter(|row| !row.is_leaving && row.activity.snapshot().state == State::Idle);
        let Some(row) = idle.min_by_key(|row| row.activity.idle_since()) else { return false };
        if self.leaving == LEAVING_MAX {
            return false;
        }
        row.is_leaving = true;
        self.leaving += 1;
        row.activity.give_up();
        row.stop.cancel();
        true
    }

    fn leave(&mut self, number: u64) {
        let Some(row) = self.rows.remove(&number) else { return };
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

/// One connection, in the table until dropped.
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
    use crate::service::Load;

    struct Entered {
        entry: Result<OpenConnection, Shed>,
        activity: Arc<Activity>,
        stop: CancellationToken,
    }

    fn enter(open: &OpenConnections, peer: u8, is_exempt: bool, idle_since: u64) -> Entered {
        let payer = Load::default().memory.payer([10, 0, 0, peer].into());
        let limits = Limits { connections_max: 4, connections_per_peer: 2, ..Limits::default() };
        let (activity, stop) = (Arc::new(Activity::idle_since_then(payer, idle_since)), CancellationToken::new());
        let entry = open.enter(IpAddr::from([10, 0, 0, peer]), is_exempt, &limits, &activity, &stop);
        Entered { entry, activity, stop }
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
    fn a_full_table_gives_up_the_one_idle_longest_and_none_that_works() {
        let open = OpenConnections::default();
        let others = [7, 3, 9, 5].map(|at| enter(&open, u8::try_from(at).expect("small"), false, at));
        let _working = others[1].activity.begin_request(false);
        let newcomer = enter(&open, 20, false, 10);
        assert!(newcomer.entry.is_ok());
        assert_eq!(others.each_ref().map(|one| one.stop.is_cancelled()), [false, false, false, true]);
        let _working = [&others[0], &others[2], &newcomer].map(|one| one.activity.begin_request(false));
        assert_eq!(enter(&open, 21, false, 11).entry.err(), Some(Shed::Connections));
    }
}
