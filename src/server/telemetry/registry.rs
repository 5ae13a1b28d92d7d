//! Where all metrics of a process are registered.

use prometheus::Registry;
use prometheus::process_collector::ProcessCollector;

/// A registry with what tells of the process itself: memory, CPU, descriptors and start, under their usual names.
pub(in crate::server) fn registry() -> Registry {
    let registry = Registry::new();
    registry
        .register(Box::new(ProcessCollector::for_self()))
        .expect("an empty registry takes it");
    registry
}
