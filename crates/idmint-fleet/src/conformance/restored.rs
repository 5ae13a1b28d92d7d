//! Tests that a node that reads or writes records notices that the coordinator was restored from a
//! backup. Harmless events, such as a concurrent renewal of a slot, must not be mistaken for a
//! restore.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::coordinator::{
    Coordinator, CoordinatorError, Lease, MemoryCoordinator, Outcome, Range, Revision, Snapshot,
    Transaction, Write,
};
use crate::records::{AgreedMeta, FleetRecords, KnownFleet, OwnKey};
use idmint_records::ledger::{AppendPlan, Head};
use idmint_storage::Namespace;
use idmint_storage::samples::{NOW, append, create, plan};
use idmint_storage::{FailureKind, StoreError};
use idmint_storage::{LedgerStore, RecordPlan, RecordStore, WriteError};

const HORIZON: &str = "/idmint/v1/default/hz/00003";

/// A coordinator that runs an action once, after it has performed a request and before it responds.
#[derive(Default)]
struct Interrupted {
    memory: MemoryCoordinator,
    before_the_answer: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Interrupted {
    fn once(&self, happens: impl FnOnce() + Send + 'static) {
        *self.before_the_answer.lock().unwrap() = Some(Box::new(happens));
    }

    fn happen(&self) {
        let happens = self.before_the_answer.lock().unwrap().take();
        if let Some(happens) = happens {
            happens();
        }
    }

    /// Writes nine times as another process, so that the revision advances.
    fn write_nine_times(&self) {
        (0..9).for_each(|_| _ = self.write("/others", b""));
    }

    /// Writes a key that the records do not use.
    fn write(&self, key: &str, value: &[u8]) -> Revision {
        let write = vec![Write::put(key.to_owned(), value.to_vec())];
        match self
            .memory
            .commit(&Transaction {
                write,
                ..Transaction::default()
            })
            .unwrap()
        {
            Outcome::Committed(written) => written.revision,
            Outcome::Refused(_) => panic!("nothing is compared"),
        }
    }
}

impl fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.memory.fmt(f)
    }
}

impl Coordinator for Interrupted {
    fn commit(&self, transaction: &Transaction) -> Result<Outcome, CoordinatorError> {
        let outcome = self.memory.commit(transaction);
        self.happen();
        outcome
    }

    fn read(&self, ranges: &[Range]) -> Result<Snapshot, CoordinatorError> {
        let snapshot = self.memory.read(ranges);
        self.happen();
        snapshot
    }

    fn grant(&self, lasts: Duration) -> Result<Lease, CoordinatorError> {
        self.memory.grant(lasts)
    }

    fn keep_alive(&self, lease: Lease) -> Result<bool, CoordinatorError> {
        self.memory.keep_alive(lease)
    }
}

/// A node of a fleet that has renewed its slot and written to a ledger.
struct Bench {
    store: Arc<Interrupted>,
    known: Arc<KnownFleet>,
    records: Arc<FleetRecords>,
    last: AppendPlan,
}

impl Bench {
    fn new() -> Bench {
        let (store, known) = (Arc::<Interrupted>::default(), Arc::<KnownFleet>::default());
        let coordinator = Arc::clone(&store) as Arc<dyn Coordinator>;
        let records = FleetRecords::new(
            coordinator,
            &Namespace::default(),
            Arc::clone(&known),
            Arc::default(),
            7,
        );
        let last = plan(&create("genesis", 1), None, NOW);
        let bench = Bench {
            store,
            known,
            records: Arc::new(records),
            last,
        };
        bench.renew(b"first");
        bench.write(&bench.last).unwrap();
        bench
    }

    /// Renews the slot, and acknowledges the renewal.
    fn renew(&self, value: &[u8]) {
        let revision = self.store.write(HORIZON, value);
        self.known.hold(Some(OwnKey {
            key: HORIZON.to_owned(),
            revision,
            sent: None,
            is_slot: true,
        }));
    }

    fn next(&self, key: u8) -> AppendPlan {
        plan(
            &append(self.last.ledger(), &["a"], key.into()),
            Some(self.last.head()),
            NOW + u64::from(key),
        )
    }

    fn write(&self, plan: &AppendPlan) -> Result<(), WriteError> {
        self.records.write(&[RecordPlan::Append(plan.clone())])
    }

    fn go_on(&mut self, key: u8) {
        let next = self.next(key);
        self.write(&next).unwrap();
        self.last = next;
    }

    fn head(&self) -> Result<Option<Head>, StoreError> {
        self.records.head(self.last.ledger())
    }

    /// Lets the node work again after it has noticed a contradiction between responses. In
    /// production, the thread that renews the node's slot does this.
    fn look_anew(&self) {
        self.known.agree(
            AgreedMeta::default(),
            self.store.memory.revision(),
            self.known.doubts(),
        );
    }
}

fn assert_refused(outcome: &Result<(), WriteError>) {
    let Err(WriteError::NotWritten(error)) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(error.failure_kind(), FailureKind::Unreachable);
}

#[test]
fn a_node_of_a_restored_coordinator_reads_and_writes_nothing_until_it_has_looked_anew() {
    let mut bench = Bench::new();
    let (backup, at_backup) = (bench.store.memory.copy(), bench.last.head());
    bench.go_on(2);
    assert_eq!(
        bench.head().unwrap(),
        Some(bench.last.head()),
        "before, it answers"
    );
    bench.store.memory.restore(&backup);

    assert_eq!(
        bench.head().unwrap_err().failure_kind(),
        FailureKind::Unreachable,
        "a read tells no old head"
    );
    assert_eq!((bench.known.meta(), bench.known.doubts()), (None, 1));
    // Writes of other processes raise the restored store's revision above the highest known one,
    // which hides the restore. The node still refuses all work, because it has noticed the restore
    // before.
    bench.store.write_nine_times();
    assert!(bench.head().is_err());
    assert_refused(&bench.write(&bench.next(3)));

    bench.look_anew();
    bench.known.hold(None);
    assert_eq!(
        bench.head().unwrap(),
        Some(at_backup),
        "an operator has fenced it as it is"
    );
}

#[test]
fn a_write_that_a_restored_coordinator_takes_is_not_acknowledged() {
    let bench = Bench::new();
    let backup = bench.store.memory.copy();
    bench.store.write_nine_times();
    let records = Arc::clone(&bench.records);
    // The restore below changes no key that the transaction compares, so the write is committed.
    // Only the low revision in the response shows the restore.
    let (store, next) = (Arc::clone(&bench.store), bench.next(2));
    bench.head().unwrap();
    bench.store.once(move || store.memory.restore(&backup));
    let outcome = records.write(&[RecordPlan::Append(next)]);
    assert!(
        matches!(&outcome, Err(WriteError::Store(error)) if error.failure_kind() == FailureKind::Unreachable)
    );
    assert_eq!(bench.known.meta(), None);
}

#[test]
fn a_coordinator_that_others_carried_past_what_was_seen_is_known_by_the_horizon_of_the_own_slot() {
    for own_key in [Some(HORIZON), Some("waiting/node"), None] {
        let mut bench = Bench::new();
        let backup = bench.store.memory.copy();
        bench.renew(b"later");
        bench.go_on(2);
        bench.known.hold(own_key.map(|key| OwnKey {
            key: key.to_owned(),
            revision: bench.store.write(key, b"last"),
            sent: None,
            is_slot: key == HORIZON,
        }));
        bench.store.memory.restore(&backup);
        bench.store.write_nine_times();
        let genesis = bench.head().unwrap();
        bench.last = plan(&create("genesis", 1), None, NOW);
        assert_eq!(
            genesis,
            Some(bench.last.head()),
            "the revision alone says nothing"
        );
        let outcome = bench.write(&bench.next(3));
        assert_refused(&outcome);
        let is_noticed = bench.known.meta().is_none();
        assert_eq!(
            (is_noticed, bench.known.doubts()),
            (own_key.is_some(), u64::from(own_key.is_some())),
            "without an own key nothing is sent"
        );
    }
}

#[test]
fn answers_that_overtake_each_other_are_no_loss() {
    let bench = Bench::new();
    let (records, next) = (Arc::clone(&bench.records), bench.next(2));
    let head = next.head();
    // Another thread of this node writes while the response to a read is in transit.
    bench
        .store
        .once(move || records.write(&[RecordPlan::Append(next)]).unwrap());
    assert_eq!(
        bench.head().unwrap(),
        Some(bench.last.head()),
        "as it was when it was read"
    );
    assert_eq!(bench.known.doubts(), 0);
    assert_eq!(bench.head().unwrap(), Some(head));
}

#[test]
fn a_renewal_meanwhile_is_no_loss_whether_it_was_acknowledged_or_not() {
    let mut bench = Bench::new();
    // The coordinator commits the renewal below, but its response has not arrived yet. So its value
    // is still in `sent`.
    let own = OwnKey {
        key: HORIZON.to_owned(),
        revision: Revision(1),
        sent: Some(b"renewed".to_vec()),
        is_slot: true,
    };
    bench.known.hold(Some(own));
    bench.store.write(HORIZON, b"renewed");
    assert!(
        matches!(bench.write(&bench.next(2)), Err(WriteError::Stale)),
        "to be decided on again"
    );
    bench.go_on(2);
    // The renewal is acknowledged before the refusal arrives.
    let (known, renewed) = (Arc::clone(&bench.known), Arc::clone(&bench.store));
    let next = bench.next(3);
    bench.store.once(move || {
        renewed.write(HORIZON, b"again");
        let known = Arc::clone(&known);
        let stored = Arc::clone(&renewed);
        renewed.once(move || {
            let revision =
                stored.memory.read(&[Range::one(HORIZON)]).unwrap().ranges[0][0].modified;
            known.hold(Some(OwnKey {
                key: HORIZON.to_owned(),
                revision,
                sent: None,
                is_slot: true,
            }));
        });
    });
    assert!(matches!(bench.write(&next), Err(WriteError::Stale)));
    bench.go_on(3);
    assert_eq!(
        (bench.known.doubts(), bench.known.meta()),
        (0, Some(Revision::ABSENT))
    );
    // Another node takes this node's slot, so this node's next write is refused. The refusal counts
    // as a doubt, because the store may have lost data.
    bench.store.write(HORIZON, b"of another node");
    assert_refused(&bench.write(&bench.next(4)));
    assert_eq!(bench.known.doubts(), 1);
}

#[test]
fn what_was_found_out_before_a_doubt_does_not_end_it() {
    let bench = Bench::new();
    let asked_before = bench.known.doubts();
    bench.store.write(HORIZON, b"of another node");
    assert_refused(&bench.write(&bench.next(2)));
    bench.known.agree(
        AgreedMeta::default(),
        bench.store.memory.revision(),
        asked_before,
    );
    assert_eq!(bench.known.meta(), None);
    bench.look_anew();
    assert_eq!(bench.known.meta(), Some(Revision::ABSENT));
}
