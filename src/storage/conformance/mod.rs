//! What every engine has to do. Another engine joins [`on_every_engine`], or [`on_all_records`] where it keeps records
//! alone, and nothing else here changes.

#[cfg(feature = "etcd")]
#[allow(dead_code, reason = "some of it is used by tests/system alone")]
#[path = "../../../tests/system/fleet/etcd_cluster.rs"]
mod etcd_cluster;

mod anchors;
mod equal_engines;
mod numbers;
mod records;
mod restored;
mod rows_in_redb;
mod starts;

use std::slice;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use self::rows_in_redb::RowsInRedb;
use super::coordinator::{Coordinator, MemoryCoordinator};
use super::engine::OwnEngine;
use super::etcd::Namespace;
use super::failure::FailureKind;
use super::fleet::{FleetRecords, KnownFleet, Room};
use super::memory::MemoryEngine;
use super::records::{RecordPlan, RecordStore, WriteError};
use super::samples::ready;
use super::start::Opened;
use crate::time::UnixNanos;

/// An engine with a store of its own, which can be opened again and again: closed in between, or as after a kill.
enum EngineUnderTest {
    Memory(MemoryEngine),
    Embedded(TempDir),
}

impl EngineUnderTest {
    fn every() -> [EngineUnderTest; 2] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        [
            EngineUnderTest::Memory(MemoryEngine::new()),
            EngineUnderTest::Embedded(folder),
        ]
    }

    fn open(&self) -> Opened {
        match self {
            EngineUnderTest::Memory(engine) => engine.open(),
            EngineUnderTest::Embedded(folder) => {
                let choice = OwnEngine::Embedded {
                    data_dir: folder.path().to_owned(),
                };
                // Other tests start programs, and until a child is one it holds the locks of this process.
                for _ in 0..10_000 {
                    match choice.open(0, None) {
                        Err(error) if error.failure_kind() == FailureKind::Locked => {
                            std::thread::sleep(Duration::from_millis(1));
                        }
                        opened => return opened.expect("the folder is usable"),
                    }
                }
                panic!("{folder:?} stays locked")
            }
        }
    }
}

/// Checks each engine, from an empty store on.
fn on_every_engine(check: impl Fn(&EngineUnderTest)) {
    EngineUnderTest::every().iter().for_each(check);
}

/// Checks the records of each engine, from an empty store on: those of a fleet in memory, in a further store of rows and, where
/// there is an etcd, in one with one member and in one with three.
fn on_all_records(check: impl Fn(&dyn RecordStore)) {
    on_every_engine(|engine| {
        let store = ready(engine.open(), UnixNanos::new(500), &[]);
        check(&*store.records().expect("the store works"));
    });
    check(&fleet_records(Arc::new(MemoryCoordinator::default())));
    check(&fleet_records(Arc::new(RowsInRedb::new())));
    #[cfg(feature = "etcd")]
    for count in [1, 3] {
        let cluster = etcd_cluster::EtcdCluster::start(count);
        check(&fleet_records(connect(&cluster)));
    }
}

#[cfg(feature = "etcd")]
fn connect(cluster: &etcd_cluster::EtcdCluster) -> Arc<dyn Coordinator> {
    use super::etcd::{EtcdEndpoint, EtcdSettings};

    let endpoint = |text: &String| EtcdEndpoint::parse(text).expect("scheme, host and port");
    let endpoints = cluster.endpoints().iter().map(endpoint).collect();
    let settings = EtcdSettings {
        endpoints,
        namespace: Namespace::default(),
        access: None,
        quota: 2 << 30,
        tls: None,
    };
    settings.connect().expect("there is nothing to read")
}

/// The records of one node of a fleet.
fn fleet_records(coordinator: Arc<dyn Coordinator>) -> FleetRecords {
    FleetRecords::new(
        coordinator,
        &Namespace::default(),
        Arc::<KnownFleet>::default(),
        Arc::<Room>::default(),
        rand::random(),
    )
}

/// Nothing of these plans may be written, since something was meanwhile.
fn assert_stale(records: &dyn RecordStore, plans: &[RecordPlan]) {
    assert!(
        matches!(records.write(plans), Err(WriteError::Stale)),
        "{plans:?}"
    );
}

/// Writes plans that were all made from what stands now, each by a thread of its own, all at one moment: one of them is written,
/// and which is told.
fn written_of(records: &dyn RecordStore, plans: &[RecordPlan]) -> usize {
    let begin = Barrier::new(plans.len());
    let is_written = |plan: &RecordPlan| {
        begin.wait();
        match records.write(slice::from_ref(plan)) {
            Ok(()) => true,
            Err(WriteError::Stale) => false,
            Err(WriteError::Store(error) | WriteError::NotWritten(error)) => panic!("{error}"),
        }
    };
    let written: Vec<bool> = thread::scope(|scope| {
        let writers: Vec<_> = plans
            .iter()
            .map(|plan| scope.spawn(|| is_written(plan)))
            .collect();
        writers
            .into_iter()
            .map(|writer| writer.join().expect("no writer panics"))
            .collect()
    });
    let places: Vec<usize> = (0..plans.len()).filter(|at| written[*at]).collect();
    assert!(matches!(places[..], [_]), "{written:?} of {plans:?}");
    places[0]
}
