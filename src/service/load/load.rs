//! The bounds of one process, and what of them is taken.

use std::sync::Arc;

use prometheus::IntGauge;

use super::awaited::AwaitedBodies;
use super::memory::MemoryBudget;
use super::requests::Requests;
use super::shed::ShedCounts;

/// What all callers may take together.
#[derive(Debug, Clone)]
pub struct Load {
    /// The memory that is kept for them.
    pub memory: Arc<MemoryBudget>,
    /// Half of what is never sold: for those who ask how the service is.
    pub reserve: Arc<MemoryBudget>,
    /// The other half: for connections, a few for each peer, so that who comes new can mint when all else is sold.
    pub door: Arc<MemoryBudget>,
    /// The requests that are worked on.
    pub requests: Arc<Requests>,
    /// As many requests again, whose bodies have not come.
    pub bodies: Arc<AwaitedBodies>,
    /// The connections that are open.
    pub connections: IntGauge,
    /// How often somebody was turned away.
    pub counts: Arc<ShedCounts>,
}

impl Load {
    /// At most `memory_max` bytes, and `in_flight_max` requests at once.
    pub fn new(memory_max: usize, in_flight_max: usize) -> Load {
        let counts = Arc::new(ShedCounts::default());
        Load {
            memory: MemoryBudget::new(memory_max, Arc::clone(&counts)),
            reserve: MemoryBudget::for_probes(Arc::clone(&counts)),
            door: MemoryBudget::for_newcomers(Arc::clone(&counts)),
            requests: Requests::new(in_flight_max, Arc::clone(&counts)),
            bodies: AwaitedBodies::new(in_flight_max, Arc::clone(&counts)),
            connections: IntGauge::new("open", "Connections that are open.").expect("a valid name"),
            counts,
        }
    }
}

/// The defaults of the configuration.
impl Default for Load {
    fn default() -> Self {
        Load::new(128 * 1024 * 1024, 4096)
    }
}
