//! Tests of the slot keeper with a coordinator in memory and a clock that the tests control.

use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::fleet_keys::FleetKeys;
use crate::high_water::KeptHighWater;
use crate::nonce::Nonce;
use crate::operation::{FenceRule, fence_restored};
use crate::slot_lease::{ClockLimits, NodeName};
use crate::slot_lease::{Founding, UnseenNodes};
use crate::stored::{FleetMeta, KNOWN_ROWS, StoredInstant};
use crate::{
    CoordinatorError, FleetRecords, KnownFleet, Lease, MemoryCoordinator, Outcome, Range, Revision,
    Snapshot, Transaction, Write,
};
use idmint_core::id::preset;
use idmint_core::minting::{Denied, LaneCount, MintSettings, Minter, Refusal, SlotLack, SlotLanes};
use idmint_core::time::ManualClock;
use idmint_storage::SlotShare;
use idmint_storage::samples::anchor;
use idmint_storage::{KeptFormat, Namespace, RecordPlan, RecordStore, WriteError};

const NOON: UnixNanos = UnixNanos::from_seconds(1_900_000_000);
const AHEAD_MAX: Duration = Duration::from_secs(5);
const SKEW_MAX: Duration = Duration::from_secs(5);

/// A coordinator from which a test can cut off the nodes.
#[derive(Debug, Default)]
struct Cuttable {
    store: MemoryCoordinator,
    is_cut: AtomicBool,
    /// `true` if the next commit succeeds but its response is lost.
    loses_answer: AtomicBool,
    last_lease: Mutex<Option<Lease>>,
    /// A record that another writer stores between the next commit and its response. `overtaken` is
    /// the outcome of that write.
    overtaking: Mutex<Option<(FleetRecords, RecordPlan)>>,
    overtaken: Mutex<Option<Result<(), WriteError>>>,
}

impl Cuttable {
    fn reached(&self) -> Result<&MemoryCoordinator, CoordinatorError> {
        if self.is_cut.load(Ordering::SeqCst) {
            return Err(CoordinatorError::NoAnswer("cut off".to_owned()));
        }
        Ok(&self.store)
    }
}

impl Coordinator for Cuttable {
    fn commit(&self, transaction: &Transaction) -> Result<Outcome, CoordinatorError> {
        let outcome = self.reached()?.commit(transaction);
        let overtaking = self.overtaking.lock().expect("no holder panics").take();
        if let Some((records, plan)) = overtaking {
            *self.overtaken.lock().expect("no holder panics") = Some(records.write(&[plan]));
        }
        match self.loses_answer.swap(false, Ordering::SeqCst) {
            true => Err(CoordinatorError::NoAnswer("lost".to_owned())),
            false => outcome,
        }
    }

    fn read(&self, ranges: &[Range]) -> Result<Snapshot, CoordinatorError> {
        self.reached()?.read(ranges)
    }

    fn grant(&self, lasts: Duration) -> Result<Lease, CoordinatorError> {
        let lease = self.reached()?.grant(lasts)?;
        *self.last_lease.lock().expect("no holder panics") = Some(lease);
        Ok(lease)
    }

    fn keep_alive(&self, lease: Lease) -> Result<bool, CoordinatorError> {
        self.reached()?.keep_alive(lease)
    }
}

struct TestNode {
    hand: ManualClock,
    mint: Arc<Mint>,
    minter: Arc<Minter>,
    keeper: SlotKeeper,
    known: Arc<KnownFleet>,
    /// The number of times that the node has founded a fleet.
    founded: Arc<AtomicU64>,
}

impl TestNode {
    fn start(coordinator: &Arc<Cuttable>, number: u128, hand: ManualClock) -> TestNode {
        TestNode::of_fleet(coordinator, number, hand, (2, Vec::new()))
    }

    /// Starts a node of a fleet. `fleet` is the number of slots and the formats.
    fn of_fleet(
        coordinator: &Arc<Cuttable>,
        number: u128,
        hand: ManualClock,
        fleet: (u32, Vec<KeptFormat>),
    ) -> TestNode {
        TestNode::with(coordinator, number, hand, fleet, KeptHighWater::default())
    }

    fn with(
        coordinator: &Arc<Cuttable>,
        number: u128,
        hand: ManualClock,
        (slots, formats): (u32, Vec<KeptFormat>),
        kept: KeptHighWater,
    ) -> TestNode {
        let wait_max = Duration::from_millis(250);
        let (lead_max, window) = (Duration::from_millis(5), Duration::from_secs(60));
        let mut mint = Mint::new(
            Arc::new(hand.clock()),
            MintSettings {
                wait_max,
                lead_max,
                window,
                shard: 0,
            },
        );
        let (format, slots) = (
            Arc::new(preset("snowflake")),
            NonZeroU32::new(slots).expect("not zero"),
        );
        let lanes = SlotLanes::of(&format, slots, LaneCount::UpTo(8), 0).expect("fits");
        let minter = mint.add_leased(format, lanes);
        let mint = Arc::new(mint);
        let node = NodeName {
            instance: Nonce::new(number),
            node: format!("node-{number}"),
            addr: String::new(),
        };
        let rule = LeaseRule::new(
            keys(),
            SlotShare::all(slots),
            formats,
            node,
            ClockLimits {
                max_ahead: AHEAD_MAX,
                skew_max: SKEW_MAX,
            },
            Founding::First,
        );
        let (coordinator, known) = (
            Arc::clone(coordinator) as Arc<dyn Coordinator>,
            Arc::<KnownFleet>::default(),
        );
        let (to_mint, to_known) = (Arc::clone(&mint), Arc::clone(&known));
        let founded = Arc::<AtomicU64>::default();
        let count = {
            let founded = Arc::clone(&founded);
            move || {
                founded.fetch_add(1, Ordering::SeqCst);
            }
        };
        let keeper = SlotKeeper::start(
            to_mint,
            coordinator,
            rule,
            to_known,
            kept,
            Entropy::of_kernel(),
            count,
        );
        TestNode {
            hand,
            mint,
            minter,
            keeper,
            known,
            founded,
        }
    }

    /// Advances the clock in steps until the condition holds.
    async fn pass_until(&self, is_so: impl Fn(&TestNode) -> bool) {
        while !is_so(self) {
            self.hand.advance(Duration::from_millis(200));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Advances the clock until the condition holds, while the node keeps minting. The steps are so
    /// small that even a slow writer thread renews before the reserved time runs out.
    async fn mint_on_until(&self, is_so: impl Fn(&TestNode) -> bool) {
        while !is_so(self) {
            let left = self.usable_until().since(self.hand.wall());
            self.hand
                .advance((left * 3 / 4).min(Duration::from_millis(200)));
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert!(self.mint.session().is_ok(), "it never stops");
        }
    }

    async fn begin(&self) -> u32 {
        self.pass_until(|node| node.mint.session().is_ok()).await;
        self.keeper.leased_slot().expect("it mints")
    }

    /// Mints an id. Like any caller, waits until the horizon is high enough.
    async fn mint(&self) -> Result<u128, Refusal> {
        let request = self
            .minter
            .request(NonZeroU32::MIN, None)
            .expect("a sound request");
        loop {
            match self.minter.reserve(&request) {
                Ok(mut granted) => {
                    let mut id = [0];
                    assert_eq!(granted.batch.fill(&mut id), 1);
                    return Ok(id[0]);
                }
                Err(Denied::Refused(refusal)) => return Err(refusal),
                Err(Denied::Horizon { needed }) => {
                    self.keeper.raise_to(needed).await;
                }
            }
        }
    }

    /// Returns the last reported time up to which the node may mint.
    fn usable_until(&self) -> UnixNanos {
        self.keeper.state.borrow().usable_until.unwrap_or_default()
    }

    fn lack(&self) -> Option<SlotLack> {
        match self.mint.session() {
            Err(Refusal::NoWorkerSlot { lack, .. }) => Some(lack),
            _ => None,
        }
    }
}

#[test]
fn a_reason_for_having_no_slot_is_logged_once_until_it_changes() {
    let mut log = LackLog::default();
    let ahead = |seconds| SlotLack::AheadOfFounder {
        ahead: Duration::from_secs(seconds),
    };
    let lacks = [
        SlotLack::Founding,
        ahead(7),
        ahead(8),
        SlotLack::Founding,
        SlotLack::Founding,
    ];
    let logged = lacks.map(|lack| log.is_new(&lack));
    assert_eq!(logged, [true, true, false, true, false]);
    log.clear();
    assert!(log.is_new(&SlotLack::Founding), "the node had a slot");
}

fn keys() -> FleetKeys {
    FleetKeys::below("/idmint/v1/test/")
}

fn holder_of(coordinator: &Cuttable, slot: u32) -> usize {
    coordinator
        .store
        .read(&[Range::one(keys().slot(slot))])
        .expect("memory answers")
        .ranges[0]
        .len()
}

/// Returns the entries in which processes announce the kinds of rows that they can read.
fn announced(coordinator: &Cuttable) -> Vec<Vec<u8>> {
    let ranges = [Range::prefix(keys().all_known_rows())];
    let found = coordinator.store.read(&ranges).expect("memory answers");
    let values = found.ranges[0].iter().map(|entry| entry.value.clone());
    values.collect()
}

#[tokio::test]
async fn two_nodes_have_two_slots_and_a_third_waits_until_one_is_given_back() {
    let coordinator = Arc::new(Cuttable::default());
    let node = |number| TestNode::start(&coordinator, number, ManualClock::at(NOON));
    let (one, two) = (node(1), node(2));
    assert_ne!(one.begin().await, two.begin().await);
    assert_ne!(
        one.mint().await.expect("it has a slot"),
        two.mint().await.expect("it has a slot")
    );
    let third = TestNode::start(
        &coordinator,
        3,
        ManualClock::at(one.hand.wall().after(Duration::from_secs(120))),
    );
    third
        .pass_until(|node| node.lack() == Some(SlotLack::NoneFree))
        .await;
    assert!(matches!(
        third.mint().await,
        Err(Refusal::NoWorkerSlot { .. })
    ));

    let slot = one.keeper.leased_slot().expect("it has one");
    one.keeper.release().await;
    assert_eq!(
        (one.lack(), holder_of(&coordinator, slot)),
        (Some(SlotLack::Released), 0)
    );
    assert_eq!(third.begin().await, slot);
    third.mint().await.expect("it has a slot");
    assert_eq!(third.keeper.counts().fenced, 0);
}

#[tokio::test]
async fn an_idle_node_goes_on_renewing_its_slot() {
    let coordinator = Arc::new(Cuttable::default());
    let node = TestNode::start(&coordinator, 1, ManualClock::at(NOON));
    node.begin().await;
    let until = node.hand.wall().after(Duration::from_secs(300));
    node.mint_on_until(|node| node.hand.wall() >= until).await;
    node.mint().await.expect("it has a slot");
    assert!(
        node.keeper.counts().extended >= 20,
        "{:?}",
        node.keeper.counts()
    );
}

#[tokio::test]
async fn a_lost_lease_is_taken_back_and_nobody_notices() {
    let coordinator = Arc::new(Cuttable::default());
    let node = TestNode::start(&coordinator, 1, ManualClock::at(NOON));
    let slot = node.begin().await;
    let lease = coordinator
        .last_lease
        .lock()
        .expect("no holder panics")
        .expect("one was granted");
    assert_eq!(announced(&coordinator), [KNOWN_ROWS.as_bytes()]);
    coordinator.store.end_lease(lease);
    assert_eq!(holder_of(&coordinator, slot), 0);
    assert_eq!(announced(&coordinator).len(), 0);
    node.mint_on_until(|_| holder_of(&coordinator, slot) == 1)
        .await;
    assert_eq!(announced(&coordinator), [KNOWN_ROWS.as_bytes()]);
    assert_eq!(
        (node.keeper.leased_slot(), node.keeper.counts().fenced),
        (Some(slot), 0)
    );
    node.mint().await.expect("it has its slot");
}

#[tokio::test]
async fn a_node_whose_slot_was_taken_is_fenced_and_takes_another() {
    let coordinator = Arc::new(Cuttable::default());
    let node = TestNode::start(&coordinator, 1, ManualClock::at(NOON));
    let slot = node.begin().await;
    let before = node.mint().await.expect("it has a slot");
    let entry = coordinator
        .store
        .read(&[Range::one(keys().horizon(slot))])
        .expect("memory answers");
    let taken = Write::put(keys().horizon(slot), entry.ranges[0][0].value.clone());
    let transaction = Transaction {
        write: vec![taken],
        ..Transaction::default()
    };
    assert!(
        matches!(coordinator.store.commit(&transaction), Ok(Outcome::Committed(found)) if found.revision > Revision::ABSENT)
    );
    node.pass_until(|node| node.keeper.counts().fenced == 1 && node.mint.session().is_ok())
        .await;
    assert_ne!(
        node.keeper.leased_slot(),
        Some(slot),
        "its own key still holds the lost one"
    );
    assert_ne!(node.mint().await.expect("it has another slot"), before);
}

#[tokio::test]
async fn without_the_coordinator_minting_goes_on_to_the_deadline_and_again_when_it_is_back() {
    let coordinator = Arc::new(Cuttable::default());
    let node = TestNode::start(&coordinator, 1, ManualClock::at(NOON));
    let slot = node.begin().await;
    node.pass_until(|node| node.keeper.counts().extended >= 15)
        .await;
    // A renewal is due every 5 s and reserves 50 s. So after the renewal that is due now, more than
    // 44 s are left.
    let left = || node.usable_until().since(node.hand.wall());
    while left() < Duration::from_secs(44) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    coordinator.is_cut.store(true, Ordering::SeqCst);
    while left() > Duration::from_millis(200) {
        node.mint().await.expect("it is reserved");
        node.hand.advance(Duration::from_millis(200));
    }
    node.hand.advance(Duration::from_millis(200));
    let request = node
        .minter
        .request(NonZeroU32::MIN, None)
        .expect("a sound request");
    assert!(
        node.minter.reserve(&request).is_err(),
        "the deadline has come"
    );
    let has_tried = || node.keeper.counts().requests[RequestOutcome::NoAnswer as usize] > 0;
    node.pass_until(|node| node.lack() == Some(SlotLack::Overdue) && has_tried())
        .await;
    assert!(matches!(
        node.mint().await,
        Err(Refusal::NoWorkerSlot {
            lack: SlotLack::Overdue,
            ..
        })
    ));

    coordinator.is_cut.store(false, Ordering::SeqCst);
    assert_eq!(node.begin().await, slot, "nobody took it meanwhile");
    node.mint().await.expect("it has its slot again");
}

#[tokio::test]
async fn a_node_that_mints_otherwise_than_its_fleet_never_begins() {
    let coordinator = Arc::new(Cuttable::default());
    let format = |tick: &str| KeptFormat {
        name: "snowflake".to_owned(),
        description: [("tick".to_owned(), tick.to_owned())].into(),
        is_minted: true,
    };
    let one = TestNode::of_fleet(
        &coordinator,
        1,
        ManualClock::at(NOON),
        (2, vec![format("1ms")]),
    );
    one.begin().await;
    let other = TestNode::of_fleet(
        &coordinator,
        2,
        ManualClock::at(NOON),
        (2, vec![format("1s")]),
    );
    let problem = other.keeper.disagrees().await.to_string();
    assert!(
        problem.contains("tick: stored 1ms, configured 1s"),
        "{problem}"
    );
    assert!(other.mint().await.is_err());
    one.mint().await.expect("it is not concerned");
}

/// Advances the clocks of several nodes together until the condition holds.
async fn pass_together_until(nodes: &[&TestNode], is_so: impl Fn() -> bool) {
    while !is_so() {
        nodes
            .iter()
            .for_each(|node| node.hand.advance(Duration::from_millis(200)));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_clock_that_two_others_refute_gets_no_slot_until_it_is_right() {
    let coordinator = Arc::new(Cuttable::default());
    let node = |number, clock| {
        TestNode::of_fleet(
            &coordinator,
            number,
            ManualClock::at(clock),
            (4, Vec::new()),
        )
    };
    let (one, two) = (node(1, NOON), node(2, NOON));
    pass_together_until(&[&one, &two], || {
        [&one, &two].iter().all(|node| node.mint.session().is_ok())
    })
    .await;
    let third = node(3, one.hand.wall().after(Duration::from_secs(60)));
    let all = [&one, &two, &third];
    pass_together_until(&all, || {
        matches!(third.mint.session(), Err(Refusal::ClockAheadOfFleet { .. }))
    })
    .await;
    assert!(
        (50.0..=60.0).contains(&third.keeper.counts().peer_skew_seconds),
        "{}",
        third.keeper.counts().peer_skew_seconds
    );
    assert!(matches!(
        third.mint().await,
        Err(Refusal::ClockAheadOfFleet { .. })
    ));
    assert_eq!(
        (
            third.keeper.leased_slot(),
            one.keeper.counts().peer_skew_seconds
        ),
        (None, 0.0)
    );
    assert!(
        third.mint.clock().ahead_of_fleet().is_some()
            && one.mint.clock().ahead_of_fleet().is_none()
    );

    third.hand.set_wall(one.hand.wall());
    pass_together_until(&all, || third.mint.session().is_ok()).await;
    third.mint().await.expect("it has a slot");
    assert_eq!(third.mint.clock().ahead_of_fleet(), None);
}

#[tokio::test]
async fn a_node_that_turns_out_to_be_behind_keeps_its_slot_and_goes_by_its_clock_once_that_is_right()
 {
    let coordinator = Arc::new(Cuttable::default());
    let node = |number, clock| {
        TestNode::of_fleet(
            &coordinator,
            number,
            ManualClock::at(clock),
            (4, Vec::new()),
        )
    };
    let one = node(1, NOON.before(Duration::from_secs(60)));
    let slot = one.begin().await;
    let right = one.hand.wall().after(Duration::from_secs(60));
    let (two, three) = (node(2, right), node(3, right));
    let all = [&one, &two, &three];
    let is_outvoted = || matches!(one.mint.session(), Err(Refusal::ClockBehindFleet { .. }));
    pass_together_until(&all, || {
        is_outvoted() && two.mint.session().is_ok() && three.mint.session().is_ok()
    })
    .await;
    assert_eq!(one.keeper.leased_slot(), Some(slot));
    let behind = one.mint.clock().behind_fleet().expect("two prove it");
    assert!((50..=60).contains(&behind.as_secs()), "{behind:?}");
    // On a slow machine, the thread may notice only now that its renewal is overdue.
    for node in [&two, &three] {
        while node.mint().await.is_err() {
            pass_together_until(&all, || node.mint.session().is_ok()).await;
        }
    }

    one.hand.set_wall(two.hand.wall());
    pass_together_until(&all, || one.mint.session().is_ok()).await;
    assert_eq!(
        (one.keeper.leased_slot(), one.keeper.counts().fenced),
        (Some(slot), 0)
    );
    assert!(
        two.hand.wall().since(one.mint.clock().now()) < Duration::from_secs(5),
        "it has followed"
    );
    assert_eq!(one.mint.clock().behind_fleet(), None);
}

/// Fences the node's fleet, as an operator does after a restore.
fn fence(coordinator: &Cuttable, node: &TestNode) -> UnixNanos {
    let share = SlotShare::all(NonZeroU32::new(2).expect("not zero"));
    let rule = FenceRule {
        share,
        unseen: UnseenNodes {
            window: Duration::from_secs(60),
            ahead_max: AHEAD_MAX,
        },
        journals: crate::JournalledFleet::default(),
        formats: Vec::new(),
        holds_numbers: false,
        is_clock_trusted: true,
    };
    let now = node.hand.wall();
    let fence = fence_restored(
        &coordinator.store,
        &keys(),
        &rule,
        &[],
        now,
        &mut Entropy::of_kernel(),
    );
    fence.expect("memory answers").floor
}

#[tokio::test]
async fn a_founder_whose_founding_was_not_answered_counts_it_once() {
    for lost in 0..4 {
        let coordinator = Arc::new(Cuttable::default());
        let node = TestNode::start(&coordinator, 1, ManualClock::at(NOON));
        let commits = || node.keeper.counts().requests[RequestOutcome::Done as usize];
        node.pass_until(|_| commits() >= lost).await;
        coordinator.loses_answer.store(true, Ordering::SeqCst);
        node.begin().await;
        assert_eq!(
            node.founded.load(Ordering::SeqCst),
            1,
            "after {lost} answers"
        );
    }
}

#[tokio::test]
async fn a_write_that_is_refused_for_a_renewal_which_is_not_answered_yet_is_no_sign_of_a_restore() {
    let coordinator = Arc::new(Cuttable::default());
    let node = TestNode::start(&coordinator, 1, ManualClock::at(NOON));
    node.begin().await;
    let namespace = Namespace::parse("test").expect("a namespace");
    let shared = Arc::clone(&coordinator) as Arc<dyn Coordinator>;
    let records = FleetRecords::new(
        shared,
        &namespace,
        Arc::clone(&node.known),
        Arc::default(),
        7,
    );
    *coordinator.overtaking.lock().expect("no holder panics") = Some((records, anchor(0, 0)));
    node.pass_until(|_| {
        coordinator
            .overtaken
            .lock()
            .expect("no holder panics")
            .is_some()
    })
    .await;
    let overtaken = coordinator
        .overtaken
        .lock()
        .expect("no holder panics")
        .take();
    assert!(
        matches!(overtaken, Some(Err(WriteError::Stale))),
        "it is to be planned anew: {overtaken:?}"
    );
    assert_eq!(
        (node.known.doubts(), node.known.meta().is_some()),
        (0, true)
    );
}

#[tokio::test]
async fn a_node_with_a_slot_keeps_on_disk_that_its_fleet_has_adopted_a_folder() {
    let coordinator = Arc::new(Cuttable::default());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kept = || KeptHighWater::of(folder.path(), &Namespace::default());
    let mut of_node = kept();
    of_node.begin();
    let hand = ManualClock::at(NOON);
    let node = TestNode::with(&coordinator, 1, hand, (2, Vec::new()), of_node);
    let slot = node.begin().await;
    let least = || kept().read().expect("it is whole").least();
    assert_eq!(least(), None);

    // The horizon of an adopted folder may be below the floor. The node keeps its slot
    // nevertheless.
    let snapshot = coordinator.store.read(&[Range::one(keys().meta())]);
    let snapshot = snapshot.expect("memory answers");
    let mut meta = FleetMeta::from_bytes(&snapshot.ranges[0][0].value).expect("it is whole");
    meta.least = Some(StoredInstant(meta.floor.before(Duration::from_hours(1))));
    let write = vec![Write::put(keys().meta(), meta.to_bytes())];
    let transaction = Transaction {
        write,
        ..Transaction::default()
    };
    coordinator
        .store
        .commit(&transaction)
        .expect("memory answers");
    let extended = node.keeper.counts().extended;
    node.pass_until(|node| node.keeper.counts().extended >= extended + 3)
        .await;
    assert_eq!(
        (node.keeper.leased_slot(), node.keeper.counts().fenced),
        (Some(slot), 0)
    );
    assert_eq!(least(), meta.least);
}

#[tokio::test]
async fn a_node_whose_coordinator_was_restored_mints_nothing_until_it_is_fenced() {
    let coordinator = Arc::new(Cuttable::default());
    let node = TestNode::start(&coordinator, 1, ManualClock::at(NOON));
    node.begin().await;
    node.pass_until(|node| node.keeper.counts().extended >= 5)
        .await;
    let backup = coordinator.store.copy();
    let renewed = node.keeper.counts().extended;
    node.pass_until(|node| node.keeper.counts().extended >= renewed + 2)
        .await;
    let mut ids = vec![node.mint().await.expect("it has a slot")];

    coordinator.store.restore(&backup);
    node.pass_until(|node| node.lack() == Some(SlotLack::Regressed))
        .await;
    assert_eq!(
        (node.keeper.counts().is_regressed, node.keeper.leased_slot()),
        (true, None)
    );
    let refusal = node
        .mint()
        .await
        .expect_err("nothing is minted")
        .to_string();
    assert!(refusal.contains("idmint fleet fence-restore"), "{refusal}");
    // Writes by other clients raise the store's revision above its value before the restore. The
    // revision alone no longer shows the restore, but the node must still refuse to mint.
    for _ in 0..100 {
        let write = vec![Write::put("/another".to_owned(), Vec::new())];
        coordinator
            .store
            .commit(&Transaction {
                write,
                ..Transaction::default()
            })
            .expect("memory answers");
    }
    let asked = || node.keeper.counts().requests[RequestOutcome::Done as usize];
    let before = asked();
    node.pass_until(|_| asked() >= before + 10).await;
    assert_eq!(
        node.lack(),
        Some(SlotLack::Regressed),
        "however often it looks"
    );

    let floor = fence(&coordinator, &node);
    node.begin().await;
    assert!(node.hand.wall() >= floor && !node.keeper.counts().is_regressed);
    ids.push(node.mint().await.expect("it has a slot"));
    assert!(ids[0] < ids[1]);
}

#[tokio::test]
async fn a_node_that_starts_again_knows_that_its_coordinator_was_wiped_or_restored() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kept = || KeptHighWater::of(folder.path(), &idmint_storage::Namespace::default());
    let coordinator = Arc::new(Cuttable::default());
    let hand = ManualClock::at(NOON);
    let node =
        |hand: &ManualClock| TestNode::with(&coordinator, 1, hand.clone(), (2, Vec::new()), kept());
    let first = node(&hand);
    first.begin().await;
    let backup = coordinator.store.copy();
    first
        .pass_until(|node| node.keeper.counts().extended >= 3)
        .await;
    let before = first.mint().await.expect("it has a slot");
    first.keeper.release().await;
    drop(first);

    for earlier in [MemoryCoordinator::default(), backup] {
        coordinator.store.restore(&earlier);
        let again = node(&hand);
        again
            .pass_until(|node| node.lack() == Some(SlotLack::Regressed))
            .await;
        let revision = coordinator.store.revision();
        let until = hand.wall().after(Duration::from_secs(20));
        again.pass_until(|node| node.hand.wall() >= until).await;
        assert_eq!(
            coordinator.store.revision(),
            revision,
            "it founds no fleet and takes no slot"
        );
        again.keeper.release().await;
    }
    let again = node(&hand);
    again
        .pass_until(|node| node.lack() == Some(SlotLack::Regressed))
        .await;
    fence(&coordinator, &again);
    again.begin().await;
    assert!(again.mint().await.expect("it has a slot") > before);
}
