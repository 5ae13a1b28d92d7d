//! Tests that an adoption can be interrupted at any step and continued, without repeating an id or
//! losing a record.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use super::{Adopted, Adoption, AdoptionError, AdoptionStep};
use crate::fleet_keys::FleetKeys;
use crate::high_water::HighWater;
use crate::nonce::{Entropy, Nonce};
use crate::operation::{FenceRule, RestoreFence, fence_restored, raise_restored_floor};
use crate::records::SharedRecords;
use crate::slot_lease::{Founding, UnseenNodes};
use crate::stored::{Adopting, FleetMeta, HorizonRecord};
use crate::{
    AgreedMeta, AppendJournal, Coordinator, CoordinatorError, FleetEra, FleetRecords,
    JournalCopies, JournalImport, KeyValue, KnownFleet, MemoryCoordinator, Range, Reimported,
    Revision, Transaction, Write,
};
use idmint_core::minting::HorizonPlan;
use idmint_core::time::UnixNanos;
use idmint_records::conjunction::{ExternalId, Pair, ReportCount, Seen, Tca};
use idmint_records::ledger::{
    AppendPlan, GivenNumbers, NumberKinds, NumberRule, NumberRules, NumberTemplate, SeriesPattern,
    VoidPlan,
};
use idmint_storage::SlotShare;
use idmint_storage::samples::{
    NOW, anchor, anchor_of, append, at, close_plan, create, give, given_plan, links, near, plan,
    ready, series, void_request, write, write_ledger,
};
use idmint_storage::{
    AdoptedFolder, AdoptionProgress, AnchorKey, ConjunctionStore, FailureKind, KeptFormat,
    LedgerStore, ListRange, Namespace, NumberStore, Opened, OwnEngine, RecordPlan, RecordStore,
    RequestStore, StoreError,
};

const DAY_MICROS: u64 = 86_400_000_000;
const CLOCK: UnixNanos = UnixNanos::from_seconds(1_800_000_000);

/// A horizon ahead of the clock that is not a whole number of milliseconds.
const HORIZON: UnixNanos = UnixNanos::new(1_800_000_033_000_000_001);

/// Returns a store that fails after `left` commits. If `loses_answer` is set, the store instead
/// loses the response to the next commit, and then works normally.
fn unreliable(
    left: &Arc<AtomicUsize>,
    loses_answer: bool,
    store: &Arc<MemoryCoordinator>,
) -> Arc<dyn Coordinator> {
    let commits_left = Arc::clone(left);
    store.committed_by(move |store, transaction| {
        let left = commits_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(1)
        });
        match left {
            Ok(_) => store.commit(transaction),
            Err(_) if loses_answer => {
                commits_left.store(usize::MAX, Ordering::Relaxed);
                store.commit(transaction)?;
                Err(CoordinatorError::NoAnswer("lost".to_owned()))
            }
            Err(_) => Err(CoordinatorError::NotSent("killed".to_owned())),
        }
    })
}

/// Returns a store that fails after this number of commits.
fn lost_after(commits: usize, store: &Arc<MemoryCoordinator>) -> Arc<dyn Coordinator> {
    unreliable(&Arc::new(AtomicUsize::new(commits)), false, store)
}

fn format(tick: &str) -> KeptFormat {
    let description = BTreeMap::from([("tick".to_owned(), tick.to_owned())]);
    KeptFormat {
        name: "snowflake".to_owned(),
        description,
        is_minted: true,
    }
}

/// The folder of a node that has minted, with the records that the node acknowledged.
struct Node {
    folder: TempDir,
    ledgers: Vec<Vec<AppendPlan>>,
    given: Vec<GivenNumbers>,
}

impl Node {
    fn new() -> Node {
        Node::with_rules(&NumberRules::default())
    }

    /// Creates a node that was started with these rules for numbers.
    fn with_rules(rules: &NumberRules) -> Node {
        // No test here simulates a power loss. Every node syncs about ten times, so use a folder in
        // memory, which is faster.
        let folder = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .expect("a temporary folder");
        let store = ready(
            open(folder.path()).expect("it is new"),
            HORIZON,
            &[format("1ms")],
        );
        let records = store.records().expect("the store works");
        // An adoption keeps the idempotency keys of the last three days. One day would not be
        // enough, because the last append may come from a clock that was ahead.
        let of_days = [("old", 90, 4), ("before", 91, 2), ("ahead", 92, 1)]
            .map(|(name, key, days)| plan(&create(name, key), None, NOW - days * DAY_MICROS));
        of_days
            .iter()
            .for_each(|plan| write(&*records, std::slice::from_ref(plan)));
        let mut long = vec![plan(&create("long", 100), None, NOW)];
        for key in 101..600 {
            let (ledger, head) = (long[0].ledger(), long.last().map(AppendPlan::head));
            long.push(plan(&append(ledger, &["a", "b", "c"], key), head, NOW + 5));
        }
        write(&*records, &long);
        let mut ledgers: Vec<Vec<AppendPlan>> = of_days.map(|plan| vec![plan]).into();
        ledgers.extend([write_ledger(&*records, "genesis", 10).to_vec(), long]);
        let anchors = [
            anchor(5_000_000, 0),
            anchor(6_500_000, 1),
            anchor_of("other", (1, 2), 5_000_000, 0),
        ];
        records
            .write(&anchors)
            .expect("nothing was written meanwhile");
        let many: Vec<RecordPlan> = (1..=150)
            .map(|second| anchor_of("conjunction", (7, 100 + second), 9, 0))
            .collect();
        records.write(&many).expect("nothing was written meanwhile");
        records
            .add_reports(&[(tallied(), tally())])
            .expect("the store works");
        records
            .add_externals(&externals().map(|external| (tallied(), external)))
            .expect("the store works");
        let order = |at: u32| {
            give(
                &*records,
                &series("acme-2026"),
                1 + at % 3,
                &format!("order-{at}"),
            )
        };
        let mut given: Vec<GivenNumbers> = (0..250).map(order).collect();
        given.push(give(&*records, &series("acme"), 1, "order-1"));
        for given in [&given[1], &given[249]] {
            let request = void_request(&given.series, given.last, "cancelled");
            let plan = VoidPlan::make(&request, Some(given), at(NOW)).expect("it was given");
            records
                .write(&[RecordPlan::Void(plan)])
                .expect("it is not void");
        }
        records.agree_on_rules(rules).expect("the first rules");
        Node {
            folder,
            ledgers,
            given,
        }
    }

    fn adopted(&self) -> Result<AdoptedFolder, StoreError> {
        AdoptedFolder::open(self.folder.path())
    }

    /// Starts a node on the folder. Returns the error if it does not start.
    fn start(&self) -> Result<(), StoreError> {
        open(self.folder.path()).map(drop)
    }
}

fn tallied() -> AnchorKey {
    AnchorKey {
        format: "conjunction".to_owned(),
        pair: Pair {
            primary: 1,
            secondary: 2,
        },
        tca: Tca(5_000_000),
    }
}

fn externals() -> [ExternalId; 2] {
    ["20240201T00hz", "A/7"].map(|text| ExternalId::new(text).expect("short"))
}

fn tally() -> ReportCount {
    ReportCount::of(Seen {
        at: CLOCK,
        tca: Tca(5_000_001),
    })
}

fn open(dir: &Path) -> Result<idmint_storage::Opened, StoreError> {
    OwnEngine::Embedded {
        data_dir: dir.to_owned(),
    }
    .open(0, None)
}

fn keys() -> FleetKeys {
    FleetKeys::below(Namespace::default().key_prefix())
}

fn adoption(coordinator: Arc<dyn Coordinator>) -> Adoption {
    Adoption {
        coordinator,
        namespace: Namespace::default(),
        endpoints: vec!["http://etcd-0:2379".to_owned()],
        share: share(8),
        formats: vec![format("1ms")],
        now: CLOCK,
        ahead_max: Duration::from_secs(5),
        founding: Founding::First,
    }
}

fn run(adoption: &Adoption, node: &Node) -> Result<(Adopted, Vec<AdoptionStep>), AdoptionError> {
    let mut steps = Vec::new();
    let mut folder = node.adopted()?;
    let done = adoption.run(&mut folder, &mut Entropy::new(|| 7), &mut |step| {
        steps.push(step)
    })?;
    Ok((done, steps))
}

/// Returns all keys and values of the fleet.
fn content(store: &MemoryCoordinator) -> Vec<KeyValue> {
    store
        .read(&[Range::prefix(Namespace::default().key_prefix())])
        .expect("memory answers")
        .ranges
        .remove(0)
}

fn share(slots: u32) -> SlotShare {
    SlotShare::all(NonZeroU32::new(slots).expect("not zero"))
}

fn values(store: &MemoryCoordinator) -> BTreeMap<String, Vec<u8>> {
    content(store)
        .into_iter()
        .map(|entry| (entry.key, entry.value))
        .collect()
}

fn meta(store: &MemoryCoordinator) -> Option<FleetMeta> {
    let found = store
        .read(&[Range::one(keys().meta())])
        .expect("memory answers")
        .ranges
        .remove(0);
    found
        .first()
        .map(|entry| FleetMeta::from_bytes(&entry.value).expect("it is whole"))
}

fn put_meta(store: &MemoryCoordinator, meta: &FleetMeta) {
    let transaction = Transaction {
        write: vec![Write::put(keys().meta(), meta.to_bytes())],
        ..Transaction::default()
    };
    store.commit(&transaction).expect("memory answers");
}

fn records(store: &Arc<MemoryCoordinator>) -> FleetRecords {
    let known = Arc::<KnownFleet>::default();
    FleetRecords::new(
        Arc::clone(store) as Arc<dyn Coordinator>,
        &Namespace::default(),
        known,
        Arc::default(),
        1,
    )
}

/// Returns the records of a node that keeps a journal, and the folder of the journal.
fn records_with_journal(store: &Arc<MemoryCoordinator>) -> (tempfile::TempDir, FleetRecords) {
    let journal = tempfile::tempdir().expect("a temporary folder");
    let kept = AppendJournal::of(journal.path(), &Namespace::default(), || ());
    let records = records_of_node(store).with_journal(Some(kept));
    (journal, records)
}

/// Returns the records as a node of the fleet sees them. Writes fail if the fleet does not allow
/// them.
fn records_of_node(store: &Arc<MemoryCoordinator>) -> FleetRecords {
    let found = store
        .read(&[Range::one(keys().meta())])
        .expect("memory answers")
        .ranges
        .remove(0);
    let known = Arc::new(KnownFleet::agreeing(AgreedMeta {
        revision: found.first().map_or(Revision::ABSENT, |meta| meta.modified),
        records: meta(store).map_or(SharedRecords::Complete, |meta| meta.records()),
        ..AgreedMeta::default()
    }));
    FleetRecords::new(
        Arc::clone(store) as Arc<dyn Coordinator>,
        &Namespace::default(),
        known,
        Arc::default(),
        1,
    )
}

fn assert_all_is_there(node: &Node, store: &Arc<MemoryCoordinator>) {
    let meta = meta(store).expect("there is a fleet");
    assert!(meta.floor >= HORIZON, "{} is below {HORIZON}", meta.floor);
    assert_eq!(
        meta.formats,
        BTreeMap::from([("snowflake".to_owned(), format("1ms").description)])
    );
    let records = records(store);
    let listed = records.ledgers(None, 100).expect("reads");
    assert_eq!(listed.len(), node.ledgers.len());
    for plans in &node.ledgers {
        let (ledger, head) = (plans[0].ledger(), plans.last().expect("not empty").head());
        assert!(
            listed
                .iter()
                .any(|listed| (listed.genesis, listed.head) == (plans[0].head().id, head))
        );
        assert_eq!(
            records.chain(ledger, None, 10_000).expect("reads"),
            links(plans)
        );
        for plan in plans {
            let (stored, links) = records
                .append(plan.head().id)
                .expect("reads")
                .expect("it is there");
            assert_eq!((stored.mark, &stored.entries), (plan.mark, &plan.entries));
            assert_eq!(links, plan.links().collect::<Vec<_>>());
            let key = plan.mark.expect("each has one").key;
            let done = records.request(key).expect("reads");
            let is_of_the_last_days = plan.recorded > at(NOW - 3 * DAY_MICROS);
            assert_eq!(
                done.map(|done| done.last),
                is_of_the_last_days.then(|| plan.head().id)
            );
        }
    }
    assert_eq!(near(&records, 5_500_000), [(5_000_000, 0), (6_500_000, 1)]);
    let all = |format: &str| ListRange {
        format: format.to_owned(),
        times: Tca(i64::MIN)..=Tca(i64::MAX),
        after: None,
        latest_first: false,
    };
    let conjunctions = records
        .conjunctions(&all("conjunction"), 1_000)
        .expect("reads");
    assert_eq!(conjunctions.len(), 152);
    let of_tallied = conjunctions
        .iter()
        .find(|one| (one.pair, one.anchor.tca) == (tallied().pair, tallied().tca));
    assert_eq!(of_tallied.expect("it is there").report_count, Some(tally()));
    assert_eq!(
        records
            .conjunctions(&all("other"), 10)
            .expect("reads")
            .len(),
        1
    );
    assert_eq!(
        records.externals(&[tallied()]).expect("reads"),
        [externals()]
    );
    let listed = records.series(None, 9).expect("reads");
    assert_eq!(
        listed
            .iter()
            .map(|one| (one.first, one.last))
            .collect::<Vec<_>>(),
        [(1, 1), (1, 499)]
    );
    assert_eq!(
        records.given(&series("acme-2026"), 0, 999).expect("reads"),
        node.given[..250]
    );
    for given in &node.given {
        let of_key = records
            .given_to(&[(given.series.clone(), given.mark.key)])
            .expect("reads");
        assert_eq!(of_key, [Some(given.clone())]);
    }
    let voids = records.voids(&series("acme-2026"), 0..=999).expect("reads");
    assert_eq!(
        voids.iter().map(|void| void.number).collect::<Vec<_>>(),
        [3, 499]
    );
    for external in externals() {
        assert_eq!(
            records
                .anchors_of_external("conjunction", &external, 9)
                .expect("reads"),
            [tallied()]
        );
    }
}

#[test]
fn a_fleet_has_all_of_a_folder_and_no_node_starts_there_any_more() {
    let (node, store) = (Node::new(), Arc::new(MemoryCoordinator::default()));
    let adoption = adoption(Arc::clone(&store) as Arc<dyn Coordinator>);
    let (done, steps) = run(&adoption, &node).expect("nothing is in the way");
    assert_all_is_there(&node, &store);
    let Adopted::Done { floor, records } = done else {
        panic!("{done:?}")
    };
    assert_eq!(
        floor,
        UnixNanos::new(1_800_000_033_001_000_000),
        "the horizon, in whole milliseconds"
    );
    assert_eq!(
        (
            records.formats,
            records.ledgers.written,
            records.ledgers.parts
        ),
        (1, 5, 506)
    );
    assert_eq!(
        (records.ledgers.requests, records.ledgers.found),
        (505, 0),
        "one key is older than three days"
    );
    assert_eq!(
        (
            records.pairs.written,
            records.pairs.parts,
            records.pairs.found
        ),
        (152, 153, 0)
    );
    assert_eq!(
        (
            records.series.written,
            records.series.parts,
            records.series.requests
        ),
        (2, 500, 251)
    );
    assert_eq!(
        steps[..2],
        [AdoptionStep::Marked, AdoptionStep::FloorRaised(floor)]
    );
    let refused = node.start().expect_err("its ids go on in the fleet");
    assert_eq!(refused.failure_kind(), FailureKind::Disagrees);
    assert!(
        refused
            .to_string()
            .contains("fleet default at http://etcd-0:2379"),
        "{refused}"
    );
    let floored = OwnEngine::Embedded {
        data_dir: node.folder.path().to_owned(),
    }
    .open(0, Some(HORIZON));
    assert_eq!(
        floored
            .map(drop)
            .expect_err("no floor helps")
            .failure_kind(),
        FailureKind::Disagrees
    );

    let before = content(&store);
    assert_eq!(
        run(&adoption, &node).expect("it is known").0,
        Adopted::Before
    );
    assert_eq!(content(&store), before);
}

#[test]
fn broken_off_anywhere_it_goes_on_and_ends_the_same() {
    let (whole, store) = (Node::new(), Arc::new(MemoryCoordinator::default()));
    run(
        &adoption(Arc::clone(&store) as Arc<dyn Coordinator>),
        &whole,
    )
    .expect("nothing is in the way");
    let expected = values(&store);
    let (mut broken_off, mut resumed) = (0, 0);
    for loses_answer in [false, true] {
        for commits in 0.. {
            let (node, store) = (Node::new(), Arc::new(MemoryCoordinator::default()));
            let commits_left = Arc::new(AtomicUsize::new(commits));
            let outcome = run(
                &adoption(unreliable(&commits_left, loses_answer, &store)),
                &node,
            );
            let state = meta(&store).and_then(|meta| meta.adopting);
            let is_compared = matches!(state, None | Some(Adopting::Comparing(_)));
            assert!(
                node.start().is_err() || outcome.is_err() && is_compared,
                "its horizon may be what the fleet goes by"
            );
            // Before copying begins, the store has no row except the agreement.
            assert!(
                !is_compared || outcome.is_ok() || content(&store).len() <= 1,
                "the floor comes first"
            );
            let records = records(&store);
            for ledger in records.ledgers(None, 10).expect("reads") {
                let chain = records
                    .chain(ledger.head.id.ledger(), None, 10_000)
                    .expect("reads");
                assert_eq!(
                    chain.last().map(|link| (link.id, link.place)),
                    Some((ledger.head.id, ledger.head.place))
                );
            }
            if outcome.is_err() {
                broken_off += 1;
                let reliable = adoption(Arc::clone(&store) as Arc<dyn Coordinator>);
                let (_, steps) = run(&reliable, &node).expect("nothing is in the way");
                resumed += usize::from(steps[0] == AdoptionStep::Resumed);
            }
            assert_all_is_there(&node, &store);
            assert_eq!(values(&store), expected);
            if outcome.is_ok() && commits_left.load(Ordering::Relaxed) < 1_000 {
                break;
            }
        }
    }
    assert!(
        broken_off > 5 && resumed + 1 == broken_off,
        "{resumed} of {broken_off}"
    );
}

#[test]
fn a_run_that_ended_between_the_two_marks_of_the_folder_is_gone_on_with_by_the_second() {
    let (node, store) = (Node::new(), Arc::new(MemoryCoordinator::default()));
    let horizon = node.folder.path().join("horizon");
    let unmarked = std::fs::read(&horizon).expect("it is there");
    run(&adoption(lost_after(1, &store)), &node).expect_err("it is broken off");
    let version = || std::fs::read(&horizon).expect("it is there")[11];
    assert_eq!((unmarked[11], version()), (2, 3));
    std::fs::write(&horizon, unmarked).expect("the folder is writable");
    run(&adoption(lost_after(0, &store)), &node).expect_err("it is broken off");
    assert_eq!(
        (version(), content(&store).len()),
        (3, 1),
        "no record is copied before"
    );
}

#[test]
fn what_the_fleet_has_otherwise_is_named_and_the_folder_stays_as_it_was() {
    let put = |store: &MemoryCoordinator, key: &str, value: Vec<u8>| {
        let write = vec![Write::put(key.to_owned(), value)];
        store
            .commit(&Transaction {
                write,
                ..Transaction::default()
            })
            .expect("memory answers");
    };
    let of_fleet = {
        let (node, store) = (Node::new(), Arc::new(MemoryCoordinator::default()));
        run(&adoption(Arc::clone(&store) as Arc<dyn Coordinator>), &node)
            .expect("nothing is in the way");
        values(&store)
    };
    let node = Node::new();
    let mut names = BTreeSet::new();
    for (key, value) in &of_fleet {
        let Some(kind) = key
            .strip_prefix(&Namespace::default().key_prefix())
            .and_then(|key| key.split('/').next())
        else {
            panic!("{key} is another's")
        };
        // Change the last byte of one row of each kind.
        if !["ledger", "event", "request", "conj"].contains(&kind) || !names.insert(kind) {
            continue;
        }
        let store = Arc::new(MemoryCoordinator::default());
        let mut other = value.clone();
        *other.last_mut().expect("a row has bytes") ^= 1;
        put(&store, key, other);
        let before = content(&store);
        let refused = run(&adoption(Arc::clone(&store) as Arc<dyn Coordinator>), &node)
            .expect_err("it differs");
        assert_eq!(refused.failure_kind(), FailureKind::Damaged, "{refused}");
        assert!(refused.to_string().contains(key.as_str()), "{refused}");
        assert_eq!(content(&store), before, "nothing is written over");
        node.start().expect("the folder was not begun with");
    }
    assert_eq!(names.len(), 4);
}

#[test]
fn a_format_that_differs_is_named_with_the_difference() {
    let (node, store) = (Node::new(), Arc::new(MemoryCoordinator::default()));
    let sound = adoption(Arc::clone(&store) as Arc<dyn Coordinator>);
    let configured = Adoption {
        formats: vec![format("1s")],
        ..adoption(Arc::clone(&store) as Arc<dyn Coordinator>)
    };
    let refused = run(&configured, &node)
        .expect_err("another tick")
        .to_string();
    assert!(
        refused.contains("the configuration")
            && refused.contains("tick is 1ms in the folder, but 1s"),
        "{refused}"
    );

    let mut other = FleetMeta::new(Nonce::new(1), sound.share, UnixNanos::default());
    other
        .formats
        .insert("snowflake".to_owned(), format("1s").description);
    let value = other.to_bytes();
    let write = vec![Write::put(keys().meta(), value)];
    store
        .commit(&Transaction {
            write,
            ..Transaction::default()
        })
        .expect("memory answers");
    let refused = run(&sound, &node).expect_err("another tick");
    assert_eq!(refused.failure_kind(), FailureKind::Damaged);
    assert!(
        refused
            .to_string()
            .contains("tick is 1ms in the folder, but 1s in "),
        "{refused}"
    );
    let fewer = Adoption {
        share: share(1),
        ..adoption(Arc::clone(&store) as Arc<dyn Coordinator>)
    };
    assert_eq!(
        run(&fewer, &node).expect_err("fewer slots").failure_kind(),
        FailureKind::Disagrees
    );
    assert_eq!(content(&store).len(), 1, "nothing was written");
    node.start().expect("the folder was not begun with");
}

#[test]
fn a_folder_goes_to_one_fleet_alone() {
    let (node, store) = (Node::new(), Arc::new(MemoryCoordinator::default()));
    run(&adoption(lost_after(2, &store)), &node).expect_err("it is broken off");
    let note = node
        .adopted()
        .expect("it is whole")
        .note()
        .cloned()
        .expect("it has begun");
    assert!(matches!(note.progress, AdoptionProgress::FloorRaised(_)));
    for elsewhere in [
        adoption(Arc::new(MemoryCoordinator::default())),
        Adoption {
            namespace: Namespace::parse("other").expect("a name"),
            ..adoption(Arc::clone(&store) as Arc<dyn Coordinator>)
        },
    ] {
        let refused = run(&elsewhere, &node).expect_err("another fleet");
        assert!(
            matches!(refused, AdoptionError::OtherFleet { .. }),
            "{refused}"
        );
        assert_eq!(refused.failure_kind(), FailureKind::Disagrees);
    }
    run(&adoption(Arc::clone(&store) as Arc<dyn Coordinator>), &node).expect("its own fleet");
    assert_all_is_there(&node, &store);
}

/// Fences the fleet after a restore. `origin` is the fleet's first name according to the journals.
fn fence(store: &MemoryCoordinator, origin: Option<Nonce>) {
    fence_with(store, origin, &[]);
}

fn fence_rule(origin: Option<Nonce>) -> FenceRule {
    FenceRule {
        share: share(8),
        unseen: UnseenNodes {
            window: Duration::from_secs(60),
            ahead_max: Duration::ZERO,
        },
        journals: crate::JournalledFleet {
            names: origin.into_iter().collect(),
            ..crate::JournalledFleet::default()
        },
        formats: Vec::new(),
        holds_numbers: false,
        is_clock_trusted: true,
    }
}

/// Fences like [`fence`]. `high_waters` has the highest values that each node has seen.
fn fence_with(
    store: &MemoryCoordinator,
    origin: Option<Nonce>,
    high_waters: &[HighWater],
) -> RestoreFence {
    let rule = fence_rule(origin);
    let mut entropy = Entropy::of_kernel();
    fence_restored(store, &keys(), &rule, high_waters, CLOCK, &mut entropy).expect("memory answers")
}

#[test]
fn after_a_wipe_the_fleet_adopts_again_although_its_name_at_the_adoption_is_forgotten() {
    let founded = FleetMeta::new(Nonce::new(1), share(8), UnixNanos::from_seconds(9));
    let (node, store) = half_adopted(&founded);
    let adoption = adoption(Arc::clone(&store) as Arc<dyn Coordinator>);
    let nothing = MemoryCoordinator::default();
    // This fence gives the fleet a new name. The interrupted adoption must still be able to end.
    fence(&store, None);
    run(&adoption, &node).expect("nothing is in the way");
    // First, the journals of another fleet, whose first name is 2, are given. The adoption must be
    // refused. Then the right journals are given.
    for (origin, is_adopted) in [(2, false), (1, true)] {
        store.restore(&nothing);
        fence(&store, Some(Nonce::new(origin)));
        match run(&adoption, &node) {
            Ok((Adopted::Done { .. }, _)) => assert!(is_adopted),
            Err(AdoptionError::OtherFleet { .. }) => assert!(!is_adopted),
            other => panic!("{other:?}"),
        }
    }
    assert_all_is_there(&node, &store);
}

#[test]
fn what_a_restore_has_taken_away_is_adopted_again_by_the_fleet_of_the_new_name() {
    let founded = FleetMeta::new(Nonce::new(1), share(8), UnixNanos::from_seconds(9));
    let (node, store) = half_adopted(&founded);
    let (adoption, half) = (
        adoption(Arc::clone(&store) as Arc<dyn Coordinator>),
        store.copy(),
    );
    run(&adoption, &node).expect("nothing is in the way");
    store.restore(&half);
    (0..2).for_each(|_| fence(&store, None));
    let (done, steps) = run(&adoption, &node).expect("it was adopted under a former name");
    let Adopted::Done { records, .. } = done else {
        panic!("{done:?}")
    };
    assert_eq!(
        (steps[0], records.ledgers.written, records.ledgers.found),
        (AdoptionStep::Resumed, 4, 1)
    );
    assert_all_is_there(&node, &store);
    let before = content(&store);
    assert_eq!(
        run(&adoption, &node).expect("it is known").0,
        Adopted::Before
    );
    assert_eq!(content(&store), before, "nothing is doubled");
}

/// Returns the folder of a node that has minted in one slot up to this horizon.
fn folder_of_slot(slot: u32, slots: u32, horizon: UnixNanos) -> AdoptedFolder {
    let folder = tempfile::tempdir().expect("a temporary folder").keep();
    let engine = OwnEngine::Embedded {
        data_dir: folder.clone(),
    };
    let Opened::First(first) = engine.open(slot, None).expect("it is new") else {
        panic!("it is new")
    };
    let (reserved, _) = first
        .reserve(HorizonPlan::at(horizon))
        .expect("it is writable");
    drop(
        reserved
            .agree_on_formats(slots, &[format("1ms")])
            .expect("they are new"),
    );
    AdoptedFolder::open(&folder).expect("nobody else has it")
}

#[test]
fn a_node_that_was_far_ahead_leaves_its_horizon_to_its_own_slot_or_is_refused() {
    let far = CLOCK.after(Duration::from_hours(24 * 400));
    let near = CLOCK.after(Duration::from_secs(60));
    for (slot, slots, horizon, other, is_adopted) in [
        (3, 8, far, None, true),
        (3, 8, far, Some((5, near)), true),
        (3, 8, far, Some((3, far)), true),
        (3, 8, far, Some((5, far)), false),
        (0, 1, far, None, false),
        (0, 1, near, None, true),
    ] {
        let store = Arc::new(MemoryCoordinator::default());
        let founded = FleetMeta::new(Nonce::new(1), share(8), UnixNanos::from_seconds(9));
        let mut write = vec![Write::put(keys().meta(), founded.to_bytes())];
        write.extend(other.map(|(slot, horizon)| {
            let record = HorizonRecord::new(horizon, Nonce::new(2), Nonce::new(3), CLOCK);
            Write::put(keys().horizon(slot), record.to_bytes())
        }));
        let transaction = Transaction {
            write,
            ..Transaction::default()
        };
        store.commit(&transaction).expect("memory answers");
        let before = content(&store);
        let adoption = adoption(Arc::clone(&store) as Arc<dyn Coordinator>);
        let mut folder = folder_of_slot(slot, slots, horizon);
        let mut steps = Vec::new();
        let adopted = adoption.run(&mut folder, &mut Entropy::of_kernel(), &mut |step| {
            steps.push(step)
        });
        assert_eq!(adopted.is_ok(), is_adopted, "{adopted:?}");
        if let Err(error) = adopted {
            assert_eq!(error.failure_kind(), FailureKind::Disagrees, "{error}");
            assert!(folder.note().is_none() && content(&store) == before);
            continue;
        }
        let meta = meta(&store).expect("a fleet");
        let key = keys().horizon(slot);
        let of_slot = values(&store).remove(&key).map(|value| {
            HorizonRecord::from_bytes(&value)
                .expect("it is whole")
                .horizon
        });
        if horizon == far {
            assert!(
                meta.floor < near && meta.least.is_some_and(|least| least.0 < near),
                "nobody else waits"
            );
            assert_eq!(of_slot, Some(far));
            assert!(steps.contains(&AdoptionStep::SlotRests(slot, far)));
        } else {
            assert_eq!(
                (meta.floor, of_slot),
                (near, None),
                "the control is for all slots"
            );
        }
    }
}

#[test]
fn a_restore_to_before_an_adoption_is_noticed_whatever_the_horizon_of_the_folder() {
    let first_horizon = CLOCK.after(Duration::from_secs(60));
    for second_horizon in [
        CLOCK.after(Duration::from_secs(30)),
        first_horizon,
        CLOCK.after(Duration::from_secs(90)),
        CLOCK.after(Duration::from_hours(24 * 400)),
    ] {
        let store = Arc::new(MemoryCoordinator::default());
        let adoption = adoption(Arc::clone(&store) as Arc<dyn Coordinator>);
        let adopt = |folder: &mut AdoptedFolder| {
            let adopted = adoption.run(folder, &mut Entropy::of_kernel(), &mut |_| {});
            assert!(matches!(adopted, Ok(Adopted::Done { .. })), "{adopted:?}");
        };
        adopt(&mut folder_of_slot(3, 8, first_horizon));
        let backup = store.copy();
        let mut second = folder_of_slot(4, 8, second_horizon);
        adopt(&mut second);
        let meta = meta(&store).expect("a fleet");
        let mut known = HighWater::default();
        let era = FleetEra::first(meta.fleet, meta.floor);
        known.meet(meta.fleet, era, Revision(1), CLOCK);
        known.adopted(meta.least, &meta.known_adoptions(), meta.records());
        let lacks_records = |store: &MemoryCoordinator| {
            fence_with(store, Some(meta.fleet), std::slice::from_ref(&known)).lacks_records
        };
        assert!(!lacks_records(&store.copy()), "nothing is lost yet");

        store.restore(&backup);
        assert!(lacks_records(&store), "lost: {second_horizon}");
        adopt(&mut second);
        assert!(!lacks_records(&store), "adopted again: {second_horizon}");
    }
}

#[test]
fn after_a_restore_to_before_two_adoptions_both_must_be_repeated() {
    let horizons = [60, 90].map(|after| CLOCK.after(Duration::from_secs(after)));
    for order in [[0, 1], [1, 0]] {
        let store = Arc::new(MemoryCoordinator::default());
        let adoption = adoption(Arc::clone(&store) as Arc<dyn Coordinator>);
        put_meta(&store, &FleetMeta::new(Nonce::new(1), share(8), CLOCK));
        let backup = store.copy();
        let mut folders = [3, 4].map(|slot| folder_of_slot(slot, 8, horizons[slot as usize - 3]));
        let adopt = |folder: &mut AdoptedFolder| {
            adoption.run(folder, &mut Entropy::of_kernel(), &mut |_| {})
        };
        let has_version = |v| values(&store)[&keys().meta()].starts_with(v);
        assert!(has_version(b"{\"v\":1,"));
        for folder in &mut folders {
            assert!(matches!(adopt(folder), Ok(Adopted::Done { .. })));
        }
        assert!(
            has_version(b"{\"v\":4,"),
            "earlier programs would drop the ids"
        );
        let mut known = HighWater::default();
        remember(&mut known, &store);
        store.restore(&backup);
        for folder in &mut folders {
            let text = adopt(folder).expect_err("not fenced yet").to_string();
            assert!(text.contains("fence-restore"), "{text}");
        }
        let lost = |known: &mut HighWater| {
            let fenced = fence_with(&store, Some(Nonce::new(1)), std::slice::from_ref(known));
            remember(known, &store);
            fenced.lacks_records
        };
        assert!(lost(&mut known));
        let [first, second] = order;
        for _ in 0..2 {
            assert!(matches!(
                adopt(&mut folders[first]),
                Ok(Adopted::Done { .. })
            ));
            assert!(lost(&mut known), "the other one is missing");
        }
        assert!(lost(&mut HighWater::default()), "etcd knows it too");
        adopt(&mut folders[second]).expect("adopted again");
        assert!(!lost(&mut known), "both are there");
    }
}

/// Lets a node join the fleet in the store, and remember its agreement in `known`.
fn remember(known: &mut HighWater, store: &MemoryCoordinator) {
    let meta = meta(store).expect("a fleet");
    let era = FleetEra {
        fences: meta.fences,
        ..FleetEra::first(meta.fleet, meta.floor)
    };
    known.meet(meta.fleet, era, Revision(1), CLOCK);
    known.adopted(meta.least, &meta.known_adoptions(), meta.records());
}

/// Returns a folder and a fleet that has adopted some of its ledgers, but not all.
fn half_adopted(founded: &FleetMeta) -> (Node, Arc<MemoryCoordinator>) {
    for commits in 2..100 {
        let (node, store) = (Node::new(), Arc::new(MemoryCoordinator::default()));
        put_meta(&store, founded);
        run(&adoption(lost_after(commits, &store)), &node).expect_err("it is broken off");
        if !records(&store).ledgers(None, 10).expect("reads").is_empty() {
            return (node, store);
        }
    }
    panic!("a ledger takes fewer commits")
}

#[test]
fn nodes_use_no_records_and_fences_forget_nothing_until_all_of_a_folder_is_there() {
    let founded = FleetMeta::new(Nonce::new(1), share(8), UnixNanos::from_seconds(9));
    let store = Arc::new(MemoryCoordinator::default());
    put_meta(&store, &founded);
    let joined_before = records_of_node(&store);
    let acme = series("acme-2026");
    // The first number of a series that the fleet does not have yet.
    let number_one = given_plan(&acme, 1, "by-the-fleet", None);
    let give_one = |records: &FleetRecords| records.write(std::slice::from_ref(&number_one));
    let node = Node::new();
    for commits in [1, 2, 4, 7] {
        run(&adoption(lost_after(commits, &store)), &node).expect_err("it is broken off");
        for records in [&joined_before, &records_of_node(&store)] {
            give_one(records).expect_err("the folder may have this number");
        }
    }
    records_of_node(&store)
        .ledgers(None, 10)
        .expect_err("nothing is read");

    let is_adopting = |origin| fence_with(&store, origin, &[]).is_adopting;
    assert!(is_adopting(Some(founded.fleet)), "with journals");
    assert!(is_adopting(None) && is_adopting(None), "without");
    give_one(&records_of_node(&store)).expect_err("the folder may have this number");
    run(&adoption(Arc::clone(&store) as Arc<dyn Coordinator>), &node).expect("it goes on");
    assert!(!is_adopting(None), "all records are there");
    give_one(&records_of_node(&store)).expect_err("the folder had this number");
    let next = give(&records_of_node(&store), &acme, 1, "by-the-fleet");
    assert_eq!(next.first, node.given[249].last + 1);
    let control = Arc::new(MemoryCoordinator::default());
    give_one(&records(&control)).expect("the first number of an empty fleet");
}

#[test]
fn what_a_node_writes_during_the_first_comparison_is_found_and_both_sides_go_on() {
    for is_killed in [false, true] {
        let (node, store) = (Node::new(), Arc::new(MemoryCoordinator::default()));
        let founded = FleetMeta::new(Nonce::new(1), share(8), UnixNanos::from_seconds(9));
        put_meta(&store, &founded);
        let of_fleet = records_of_node(&store);
        let commits = AtomicUsize::new(0);
        // A node issues number 1 just before the adoption's first commit, which stops the nodes.
        // The second commit would let them continue.
        let overtaken = store.committed_by(move |store, transaction| {
            match commits.fetch_add(1, Ordering::Relaxed) {
                0 => drop(give(&of_fleet, &series("acme-2026"), 1, "by-the-fleet")),
                _ if is_killed => return Err(CoordinatorError::NotSent("killed".to_owned())),
                _ => {}
            }
            store.commit(transaction)
        });
        for (coordinator, is_ended) in [
            (overtaken, !is_killed),
            (Arc::clone(&store) as Arc<dyn Coordinator>, true),
        ] {
            let refused = run(&adoption(coordinator), &node).expect_err("number 1 is given twice");
            assert_eq!(refused.failure_kind(), FailureKind::Damaged, "{refused}");
            let after = meta(&store).expect("a fleet");
            assert_eq!(after.adopting.is_none(), is_ended, "{after:?}");
            assert_eq!(after.least, None, "no adoption can be lost");
            node.start().expect("the folder is not marked");
        }
        let of_node = records_of_node(&store);
        assert!(of_node.ledgers(None, 10).expect("reads").is_empty());
        let next = give(&of_node, &series("acme-2026"), 1, "next");
        assert_eq!(next.first, 2);
    }
}

#[test]
fn a_comparison_that_was_interrupted_is_ended_by_a_fence_or_the_next_adoption() {
    let (node, store) = (Node::new(), Arc::new(MemoryCoordinator::default()));
    let state = || meta(&store).expect("there is a fleet").adopting;
    let adopting = adoption(Arc::clone(&store) as Arc<dyn Coordinator>);
    let interrupt = || {
        run(&adoption(lost_after(1, &store)), &Node::new()).expect_err("it is broken off");
        assert!(matches!(state(), Some(Adopting::Comparing(_))));
    };
    interrupt();
    assert!(
        meta(&store).expect("a fleet").floor >= HORIZON,
        "a node may mint"
    );
    raise_restored_floor(&*store, &keys(), &fence_rule(None), &[], CLOCK).expect("memory answers");
    assert_eq!(state(), None, "journals are imported");
    interrupt();
    assert!(!fence_with(&store, None, &[]).is_adopting);
    assert_eq!(state(), None);
    interrupt();
    let mut folder = node.adopted().expect("it is whole");
    let done = adopting.run(&mut folder, &mut Entropy::of_kernel(), &mut |_| {});
    assert!(matches!(done, Ok(Adopted::Done { .. })), "{done:?}");
    assert_eq!(state(), None);

    // The fence ends the comparison of a run that is still in progress.
    let (node, store) = (Node::new(), Arc::new(MemoryCoordinator::default()));
    let commits = AtomicUsize::new(0);
    let fenced = store.committed_by(move |store, transaction| {
        if commits.fetch_add(1, Ordering::Relaxed) == 1 {
            fence_with(store, None, &[]);
        }
        store.commit(transaction)
    });
    let overtaken = run(&adoption(fenced), &node).expect_err("nodes may have written since");
    assert!(matches!(overtaken, AdoptionError::Overtaken), "{overtaken}");
    run(&adoption(Arc::clone(&store) as Arc<dyn Coordinator>), &node).expect("it goes on");
    assert_all_is_there(&node, &store);
}

#[test]
fn nodes_may_append_to_what_an_earlier_adoption_has_brought() {
    let founded = FleetMeta::new(Nonce::new(1), share(8), UnixNanos::from_seconds(9));
    let (node, store) = half_adopted(&founded);
    let mut half = meta(&store).expect("there is a fleet");
    assert!(half.floor >= HORIZON && half.fleet == founded.fleet);
    let other = Node::new();
    let mut folder = other.adopted().expect("it is whole");
    let adopting = adoption(Arc::clone(&store) as Arc<dyn Coordinator>);
    let other = adopting.run(&mut folder, &mut Entropy::of_kernel(), &mut |_| {});
    let other = other.expect_err("one adoption after the other");
    assert!(matches!(other, AdoptionError::Unfinished(_)), "{other}");
    assert_eq!(other.failure_kind(), FailureKind::Disagrees);
    // Nodes of an earlier version used records even during an adoption.
    half.adopting = None;
    put_meta(&store, &half);

    let of_node = records_of_node(&store);
    let seen = of_node.ledgers(None, 10).expect("reads");
    assert_eq!(seen.len(), 1);
    let head = seen[0].head;
    let more = plan(
        &append(head.id.ledger(), &["more"], 7_000),
        Some(head),
        NOW + 10_000_000,
    );
    write(&of_node, std::slice::from_ref(&more));

    let (done, _) = run(&adoption(Arc::clone(&store) as Arc<dyn Coordinator>), &node)
        .expect("it is there, and more");
    let Adopted::Done { records, .. } = done else {
        panic!("{done:?}")
    };
    assert_eq!((records.ledgers.written, records.ledgers.found), (4, 1));
    assert_eq!(
        of_node.head(head.id.ledger()).expect("reads"),
        Some(more.head())
    );
}

#[test]
fn a_folder_that_runs_is_damaged_or_has_nothing_is_refused() {
    let node = Node::new();
    let running = open(node.folder.path()).expect("it starts");
    assert_eq!(
        node.adopted().err().expect("it runs").failure_kind(),
        FailureKind::Locked
    );
    drop(running);
    std::fs::remove_file(node.folder.path().join("idmint.redb")).expect("it is there");
    assert_eq!(
        node.adopted()
            .err()
            .expect("its records are lost")
            .failure_kind(),
        FailureKind::Damaged
    );
    let empty = tempfile::tempdir().expect("a temporary folder");
    let missing = empty.path().join("none");
    for nothing in [empty.path(), missing.as_path()] {
        let refused = AdoptedFolder::open(nothing)
            .err()
            .expect("there is nothing");
        assert!(
            refused.to_string().contains("nothing to adopt"),
            "{refused}"
        );
    }
    assert!(!missing.exists(), "no folder is made");
}

#[test]
fn a_series_that_the_fleet_has_closed_is_not_opened_again() {
    let (node, store) = (Node::new(), Arc::new(MemoryCoordinator::default()));
    let acme = series("acme");
    records(&store)
        .write(&[close_plan(&acme, None)])
        .expect("nothing was written meanwhile");
    let before = content(&store);
    let refused = run(&adoption(Arc::clone(&store) as Arc<dyn Coordinator>), &node)
        .expect_err("the folder has a number of the closed series");
    assert_eq!(refused.failure_kind(), FailureKind::Damaged, "{refused}");
    assert!(refused.to_string().contains("series acme"), "{refused}");
    assert_eq!(content(&store), before);
    node.start().expect("the adoption has not begun");
}

/// Imports the rows of a node's journal after a restore, as a fence does.
fn import(store: &Arc<MemoryCoordinator>, journal: &TempDir) -> Reimported {
    fence(store, None);
    let paths = [journal.path().to_owned()];
    let copies = JournalCopies::read(&paths, &Namespace::default()).expect("it is whole");
    let meta = store.read(&[Range::one(keys().meta())]).expect("memory");
    let import = JournalImport::new(
        Arc::clone(store) as Arc<dyn Coordinator>,
        &Namespace::default(),
        meta.ranges[0][0].modified,
        &copies,
    );
    import.run().expect("memory answers")
}

#[test]
fn a_closed_series_comes_back_whole_and_closed_after_a_restore_to_before_the_adoption() {
    // The folder or the fleet closed the series. A journal has the first numbers, or none of them.
    for (is_own, is_read) in [(true, true), (true, false), (false, true), (false, false)] {
        let (mut node, store) = (Node::new(), Arc::new(MemoryCoordinator::default()));
        let acme = series("acme-2026");
        let close = |records: &dyn RecordStore| {
            let head = records.series_head(&acme).expect("reads");
            records
                .write(&[close_plan(&acme, head)])
                .expect("it is open");
        };
        if is_own {
            let opened = open(node.folder.path()).expect("it starts");
            close(
                &*ready(opened, HORIZON, &[format("1ms")])
                    .records()
                    .expect("works"),
            );
        }
        let adoption = adoption(store.clone());
        fence(&store, None);
        let backup = store.copy();
        run(&adoption, &node).expect("nothing is in the way");
        let (journal, of_node) = records_with_journal(&store);
        if is_read {
            let first = (acme.clone(), node.given[0].mark.key);
            of_node.given_to(&[first]).expect("reads");
        }
        if !is_own {
            node.given.insert(250, give(&of_node, &acme, 1, "later"));
            close(&of_node);
        }
        let closed = of_node.series_state(&acme).expect("reads").closed;

        store.restore(&backup);
        import(&store, &journal);
        let before = records(&store).series_state(&acme).expect("reads");
        assert!(before.closed.is_some() && before.head.is_some() == is_read);
        run(&adoption, &node).expect("the fleet has had all of the folder");
        let done = import(&store, &journal);

        assert_eq!(
            (done.lost_numbers, done.numbers),
            (vec![], u64::from(!is_own))
        );
        let of_node = records_of_node(&store);
        let given = of_node.given(&acme, 0, 999).expect("reads");
        assert_eq!(given, node.given[..node.given.len() - 1]);
        let state = of_node.series_state(&acme).expect("reads");
        assert_eq!(
            (state.head.map(|head| head.last), state.closed),
            (closed.as_ref().and_then(|it| it.last), closed)
        );
        of_node
            .write(&[given_plan(&acme, 1, "new", state.head)])
            .expect_err("it is closed");
    }
}

#[test]
fn conjunctions_that_the_fleet_has_removed_are_adopted_again_beside_a_later_one() {
    // The folder has conjunctions of the pair at 5.0 s and 6.5 s. A report can join one of these or
    // the later one if they are at most 2 s apart.
    for (later, is_adopted) in [(8_500_001, true), (8_500_000, false), (5_000_001, false)] {
        let (node, store) = (Node::new(), Arc::new(MemoryCoordinator::default()));
        let adoption = adoption(store.clone());
        fence(&store, None);
        let backup = store.copy();
        run(&adoption, &node).expect("nothing is in the way");
        let (journal, of_node) = records_with_journal(&store);
        let mut old = of_node.anchors(None, 999).expect("reads");
        old.retain(|old| (&old.key.format, old.key.pair) == (&tallied().format, tallied().pair));
        of_node.forget_anchors(&old).expect("memory answers");
        let written = of_node.write(&[anchor(later, 0)]);
        written.expect("the pair has no conjunction");

        store.restore(&backup);
        import(&store, &journal);
        let adopted = run(&adoption, &node);

        assert_eq!(adopted.is_ok(), is_adopted, "{later}: {adopted:?}");
        let records = records_of_node(&store);
        if !is_adopted {
            assert_eq!(near(&records, later), [(later, 0)]);
            continue;
        }
        let all = [5_500_000, later].map(|tca| near(&records, tca));
        assert_eq!(
            all,
            [vec![(5_000_000, 0), (6_500_000, 1)], vec![(later, 0)]]
        );
        assert_eq!(import(&store, &journal), Reimported::default());
        assert_eq!(
            records.externals(&[tallied()]).expect("reads"),
            [externals()]
        );
    }
}

/// Returns rules that write the numbers of all series that match `pattern` as `text`.
fn rules(pattern: &str, text: &str) -> NumberRules {
    let rule = NumberRule {
        template: NumberTemplate::from_text(text).expect("a template"),
        ..NumberRule::new("any", SeriesPattern::from_text(pattern).expect("a pattern"))
    };
    NumberRules::new(vec![rule]).expect("one rule")
}

#[test]
fn a_folder_with_other_texts_of_numbers_is_refused_and_stays_as_it_is() {
    let (node, store) = (
        Node::with_rules(&rules("acme", "A-{n}")),
        Arc::new(MemoryCoordinator::default()),
    );
    let fleet = records(&store);
    fleet.agree_on_rules(&rules("acme", "B-{n}")).expect("new");
    let before = content(&store);

    let refused = run(&adoption(store.clone()), &node).expect_err("the texts differ");

    assert_eq!(refused.failure_kind(), FailureKind::Disagrees);
    let text = refused.to_string();
    for part in [
        "only the folder has `acme A-{n} -",
        "only the fleet has `acme B-{n} -",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(content(&store), before);
    node.start().expect("the folder is not marked");
    // With the same rules as in the folder, the adoption must succeed.
    fleet
        .agree_on_rules(&rules("acme", "A-{n}"))
        .expect("no numbers yet");
    run(&adoption(store.clone()), &node).expect("the texts are alike");
}

#[test]
fn an_adopted_series_keeps_its_kind() {
    let node = Node::new();
    let kinds = |kind: &str| NumberKinds([("acme-*".to_owned(), kind.to_owned())].into());
    let (with_kinds, without) = <(Arc<MemoryCoordinator>, Arc<MemoryCoordinator>)>::default();
    let fleet = records(&with_kinds);
    fleet.agree_on_kinds(&kinds("blocks")).expect("new");

    let refused = run(&adoption(with_kinds.clone()), &node).expect_err("a kind would change");

    assert_eq!(refused.failure_kind(), FailureKind::Disagrees);
    let text = refused.to_string();
    for part in ["acme-2026", "gapless in the folder", "blocks in the"] {
        assert!(text.contains(part), "{text}");
    }
    node.start().expect("the folder is not marked");
    let adopted = Node::new();
    run(&adoption(without.clone()), &adopted).expect("the fleet has no kinds");
    let refused = records_of_node(&without).agree_on_kinds(&kinds("blocks"));
    assert!(refused.is_err(), "the series has numbers");
    // With the same kinds, the adoption must succeed.
    fleet
        .agree_on_kinds(&kinds("gapless"))
        .expect("no numbers yet");
    run(&adoption(with_kinds.clone()), &node).expect("the kinds are alike");
}

#[test]
fn a_fleet_compares_the_texts_of_adopted_numbers_with_later_rules() {
    let node = Node::with_rules(&rules("acme", "A-{n}"));
    let later = rules("beta", "A-{n}");
    let store = Arc::new(MemoryCoordinator::default());
    run(&adoption(store.clone()), &node).expect("there is no fleet yet");
    let fleet = records_of_node(&store);

    let refused = fleet.agree_on_rules(&later).expect_err("A-1 is of acme");

    assert_eq!(refused.failure_kind(), FailureKind::Disagrees);
    assert!(refused.to_string().contains("A-1"), "{refused}");
    // Two changes are allowed: another text, and the same text in a fleet that has not adopted any
    // numbers.
    fleet.agree_on_rules(&rules("beta", "B-{n}")).expect("free");
    let empty = Arc::new(MemoryCoordinator::default());
    let of_empty = records_of_node(&empty);
    of_empty.agree_on_rules(&later).expect("no numbers yet");
}

#[test]
fn a_folder_is_adopted_again_after_a_wipe_although_the_fleet_has_other_texts_by_then() {
    let node = Node::with_rules(&rules("acme", "A-{n}"));
    let store = Arc::new(MemoryCoordinator::default());
    run(&adoption(store.clone()), &node).expect("there is no fleet yet");
    let origin = meta(&store).expect("the adoption founds a fleet").origin();
    store.restore(&MemoryCoordinator::default());
    fence(&store, Some(origin));
    records_of_node(&store)
        .agree_on_rules(&rules("acme", "B-{n}"))
        .expect("new");

    let (done, _) = run(&adoption(store.clone()), &node).expect("no node can start on the folder");

    assert!(matches!(done, Adopted::Done { .. }), "{done:?}");
    assert_all_is_there(&node, &store);
    let fleet = records_of_node(&store);
    let refused = fleet
        .agree_on_rules(&rules("beta", "A-{n}"))
        .expect_err("A-1 is of acme");
    assert!(refused.to_string().contains("A-1"), "{refused}");
    // A rule with another text is allowed.
    fleet.agree_on_rules(&rules("beta", "C-{n}")).expect("free");
}
