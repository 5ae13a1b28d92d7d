//! Limits on the memory, the number of requests and the amount of long-running work that callers
//! may use at once. Requests beyond the limits are refused.

mod fair_queue;
mod memory;
mod pending;
mod shed;
mod work_limits;

use std::sync::Arc;

use prometheus::IntGauge;

pub use fair_queue::Place;
pub use memory::{BudgetOwner, MemoryBudget, MemoryReservation, ReservedBody, network_of};
pub use pending::{PendingBodies, PendingBody, Sender};
pub use shed::{Shed, ShedCounts};
pub use work_limits::{BulkPass, PeerBulk, WorkLimits};

/// The limits that apply to all callers together.
#[derive(Debug, Clone)]
pub struct Load {
    /// The memory budget for connections, bodies and responses.
    pub memory: Arc<MemoryBudget>,
    /// The memory budget for health checks. The main budget keeps some memory free, and this budget
    /// has one half of that memory.
    pub reserve: Arc<MemoryBudget>,
    /// The memory budget for new connections: 8 MiB, which `memory` never hands out. Each peer can
    /// open a few connections from this budget, so a new peer can mint even when `memory` is
    /// exhausted.
    pub door: Arc<MemoryBudget>,
    /// The limits on requests in flight and on long work.
    pub requests: Arc<WorkLimits>,
    /// The pending requests whose bodies have not arrived yet. Their maximum number equals the
    /// limit on requests in flight.
    pub bodies: Arc<PendingBodies>,
    /// The number of open connections.
    pub connections: IntGauge,
    /// The number of refused requests and connections, by reason.
    pub counts: Arc<ShedCounts>,
}

impl Load {
    /// Creates limits of `memory_max` bytes and `in_flight_max` requests at once.
    pub fn new(memory_max: usize, in_flight_max: usize) -> Load {
        let counts = Arc::new(ShedCounts::default());
        Load {
            memory: MemoryBudget::new(memory_max, Arc::clone(&counts)),
            reserve: MemoryBudget::for_probes(Arc::clone(&counts)),
            door: MemoryBudget::for_newcomers(Arc::clone(&counts)),
            requests: WorkLimits::new(in_flight_max, Arc::clone(&counts)),
            bodies: PendingBodies::new(in_flight_max, Arc::clone(&counts)),
            connections: IntGauge::new("open", "Open connections.").expect("a valid name"),
            counts,
        }
    }
}

/// Limits with the default values of the configuration.
impl Default for Load {
    fn default() -> Self {
        Load::new(128 * 1024 * 1024, 4096)
    }
}
