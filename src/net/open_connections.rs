//! The number of open connections, counted by guards.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many connections are open. Clones count together.
#[derive(Clone, Default)]
pub struct OpenConnections {
    /// Written by: `enter`, and `OpenConnection` when dropped. Read by: `enter` and metrics.
    /// Invariant: at most the limit given to `enter`, and the number of `OpenConnection`s alive.
    /// Ordering: `Relaxed`, it guards no other memory. Tested by: `one_connection_too_many_is_told_so`.
    count: Arc<AtomicUsize>,
}

impl OpenConnections {
    /// The number open now.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Counts one more connection until the guard is dropped; `None` if as many are open as may be.
    pub(super) fn enter(&self, connections_max: usize) -> Option<OpenConnection> {
        let add = |count| (count < connections_max).then_some(count + 1);
        self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(OpenConnection { connections: self.clone() })
    }
}

impl fmt::Debug for OpenConnections {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OpenConnections({})", self.count())
    }
}

/// One connection, counted until dropped.
pub(super) struct OpenConnection {
    connections: OpenConnections,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.count.fetch_sub(1, Ordering::Relaxed);
    }
}
