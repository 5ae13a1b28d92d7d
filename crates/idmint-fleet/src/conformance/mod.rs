//! Runs the conformance suite of `idmint-storage` on every coordinator, and then checks that
//! concern only a fleet's records.

#[cfg(feature = "etcd")]
#[allow(dead_code, reason = "tests/system uses the rest of it")]
#[path = "../../../../tests/system/fleet/etcd_cluster.rs"]
mod etcd_cluster;

mod restored;
mod rows_in_redb;

use std::sync::Arc;

use self::rows_in_redb::RowsInRedb;
use crate::coordinator::{Coordinator, MemoryCoordinator};
use crate::records::{FleetRecords, KnownFleet, Room};
use idmint_storage::{Namespace, RecordStore, Records, SimulatedDatabase, samples};

/// Runs a check of a fleet's records on every kind of coordinator: in memory, in a redb table, and
/// in etcd with one and with three members, if etcd is compiled in.
fn on_every_coordinator(check: impl Fn(&dyn RecordStore)) {
    check(&memory_fleet_records());
    check(&fleet_records(Arc::new(RowsInRedb::new())));
    #[cfg(feature = "etcd")]
    for count in [1, 3] {
        let cluster = etcd_cluster::EtcdCluster::start(count);
        check(&fleet_records(connect(&cluster)));
    }
}

idmint_storage::record_store_tests!(on_every_coordinator);

#[cfg(feature = "etcd")]
fn connect(cluster: &etcd_cluster::EtcdCluster) -> Arc<dyn Coordinator> {
    use idmint_storage::{EtcdEndpoint, EtcdSettings};

    let endpoint = |text: &String| EtcdEndpoint::parse(text).expect("scheme, host and port");
    let settings = EtcdSettings {
        endpoints: cluster.endpoints().iter().map(endpoint).collect(),
        namespace: Namespace::default(),
        access: None,
        quota: 2 << 30,
        tls: None,
    };
    crate::connect(&settings).expect("there is nothing to read")
}

/// Returns the records as seen by one node of a fleet.
fn fleet_records(coordinator: Arc<dyn Coordinator>) -> FleetRecords {
    FleetRecords::new(
        coordinator,
        &Namespace::default(),
        Arc::<KnownFleet>::default(),
        Arc::<Room>::default(),
        rand::random(),
    )
}

/// Returns the record store of one node, with an empty coordinator in memory.
pub(crate) fn memory_fleet_records() -> FleetRecords {
    fleet_records(Arc::new(MemoryCoordinator::default()))
}

/// Returns an empty store of every kind.
fn every_store(seed: u64) -> Vec<Records> {
    vec![
        samples::memory_records().expect("memory suffices"),
        SimulatedDatabase::new(seed)
            .open_records()
            .expect("the disk works"),
        Arc::new(memory_fleet_records()),
    ]
}

#[test]
fn engines_that_are_asked_for_the_same_numbers_store_the_same() {
    idmint_storage::conformance::stores_agree_on_numbers(every_store);
}

#[test]
fn engines_that_are_asked_for_the_same_store_the_same() {
    idmint_storage::conformance::stores_agree_on_records(every_store);
}
