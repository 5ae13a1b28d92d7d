//! A simulated node that runs the production code of its clock, of minting and of leasing slots.
//! Its machine can stop, start and be copied.

use std::num::NonZeroU32;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::appends::{is_waiting, records_on};
use super::faults::Dice;
use super::mistake::{Maker, Mistake, horizon_of};
use super::network::{Address, Network};
use crate::fleet_keys::FleetKeys;
use crate::high_water::HighWater;
use crate::leased_slots::{Event, HeldSlot, LeasedSlots};
use crate::nonce::{Entropy, Nonce};
use crate::slot_lease::Founding;
use crate::slot_lease::{ClockLimits, LeaseRule, NodeName, Reply, Request, Step};
use crate::{
    CoordinatorError, FleetRecords, KnownFleet, MemoryCoordinator, Outcome, Revision, Write,
};
use idmint_core::id::{Format, preset};
use idmint_core::minting::{
    Denied, Durable, HorizonPlan, LaneCount, Mint, MintSettings, Minter, SessionStart, SlotLanes,
};
use idmint_core::time::{Clock, ManualClock, UnixNanos};
use idmint_storage::SlotShare;

static FORMAT: LazyLock<Arc<Format>> = LazyLock::new(|| Arc::new(preset("snowflake")));

/// The configured clock limits.
pub(super) const CLOCK: ClockLimits = ClockLimits {
    max_ahead: Duration::from_secs(5),
    skew_max: Duration::from_secs(5),
};

/// The configured reservation window.
pub(super) const WINDOW: Duration = Duration::from_secs(60);

/// The current state of a simulated node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    Running,
    /// The process is suspended, while the clocks of its machine continue.
    Paused {
        until: Duration,
    },
    /// The whole machine is suspended, including its clocks.
    Frozen {
        until: Duration,
    },
    /// The node was told to shut down.
    Leaving {
        until: Duration,
    },
    /// The node has shut down.
    Gone,
}

pub(super) struct Node {
    pub(super) condition: Condition,
    pub(super) name: NodeName,
    hand: ManualClock,
    clock: Arc<Clock>,
    minter: Arc<Minter>,
    pub(super) slots: LeasedSlots,
    /// The drift of the node's clock in parts per million, positive if the clock is fast.
    drift_ppm: i64,
    asked: Option<(u64, Request)>,
    messages: u64,
    sleeps_until: UnixNanos,
    needed: UnixNanos,
    /// The highest horizon that the node has requested for its current slot.
    asked_for: UnixNanos,
    /// `true` if the node refuses to mint because the other nodes' clocks contradict its own.
    pub(super) is_clock_refused: bool,
    /// The last time at which the node's clock was wrong, or `None` if it never was. A clock is
    /// wrong if it differs from the true time by more than the limit for correct clocks.
    pub(super) wrong_at: Option<Duration>,
    /// The revision of the last acknowledged write of the key that this node rewrites regularly.
    /// The key is its slot's horizon, or a separate key while it has no slot.
    told: Revision,
    /// A statistic: the number of acknowledged writes of the separate key that this node rewrites
    /// while it has no slot.
    pub(super) waits: u64,
    /// In a copied node, the instant below which the original may mint the same ids.
    shared_below: Option<UnixNanos>,
    /// The node's records, or `None` for a copy of a node.
    pub(super) records: Option<FleetRecords>,
}

impl Node {
    /// Starts a node. `high_water` has the highest values, such as revisions, that an earlier
    /// process on the same machine had seen and saved.
    pub(super) fn start(
        wall: UnixNanos,
        drift_ppm: i64,
        name: NodeName,
        share: SlotShare,
        high_water: HighWater,
        (store, founding, mistake): (&Arc<MemoryCoordinator>, Founding, Mistake),
        dice: &mut Dice,
    ) -> Node {
        let hand = ManualClock::at(wall);
        let clock = Arc::new(hand.clock());
        let (mint, minter) = mint(&clock, share.slots());
        let rule = LeaseRule::new(keys(), share, Vec::new(), name.clone(), CLOCK, founding);
        let known = Arc::<KnownFleet>::default();
        // Refuse reads and writes of records until the node has accepted the fleet's agreement.
        known.withdraw();
        let records = records_on(store, &known, mistake, dice);
        let slots = LeasedSlots::new(mint, rule, high_water, known, entropy(dice));
        Node {
            records: Some(records),
            ..Node::of(hand, clock, minter, slots, drift_ppm, name)
        }
    }

    fn of(
        hand: ManualClock,
        clock: Arc<Clock>,
        minter: Arc<Minter>,
        slots: LeasedSlots,
        drift_ppm: i64,
        name: NodeName,
    ) -> Node {
        Node {
            condition: Condition::Running,
            name,
            hand,
            clock,
            minter,
            slots,
            drift_ppm,
            asked: None,
            messages: 0,
            sleeps_until: UnixNanos::default(),
            needed: UnixNanos::default(),
            asked_for: UnixNanos::default(),
            is_clock_refused: false,
            wrong_at: None,
            told: Revision::ABSENT,
            waits: 0,
            shared_below: None,
            records: None,
        }
    }

    /// Copies the memory of the node to another machine. The copy does not know that it is a copy,
    /// and has no connections.
    pub(super) fn copy(&self, slots: NonZeroU32, dice: &mut Dice) -> Option<Node> {
        let held = self.slots.held.as_ref().filter(|held| held.is_minting)?;
        // Copy only a node that still has reserved time, because the copy can mint the same ids as
        // the original only in that time.
        held.session
            .horizon()
            .get()
            .checked_sub(self.clock.now().get() + 1)?;
        let hand = ManualClock::at(self.clock.now());
        let clock = Arc::new(hand.clock());
        let (mint, minter) = mint(&clock, slots);
        let start = clock.now();
        let session = mint.prepare_in_slot(SessionStart::at(start), held.slot);
        let usable_until = held.session.horizon().max(start);
        let plan = HorizonPlan::leased(usable_until, usable_until);
        let durable = Durable::write(plan, |_| Ok::<(), std::convert::Infallible>(()))
            .expect("it was, before the copy");
        session.raise(&durable, clock.now());
        mint.begin(Arc::clone(&session));
        let held = HeldSlot {
            slot: held.slot,
            session,
            reserved_at: held.reserved_at,
            is_minting: true,
        };
        let lease = self.slots.lease.clone();
        let slots = LeasedSlots {
            mint,
            lease,
            entropy: entropy(dice),
            held: Some(held),
            has_minted: true,
            known: Arc::default(),
            doubts: 0,
        };
        let mut copy = Node::of(
            hand,
            clock,
            minter,
            slots,
            self.drift_ppm,
            self.name.clone(),
        );
        copy.shared_below = Some(self.asked_for);
        copy.asked_for = self.asked_for;
        copy.asked.clone_from(&self.asked);
        copy.is_clock_refused = self.is_clock_refused;
        copy.wrong_at = self.wrong_at;
        Some(copy)
    }

    /// Returns the highest values, such as revisions, that this node and its earlier processes have
    /// seen.
    pub(super) fn high_water(&self) -> &HighWater {
        self.slots.high_water()
    }

    /// `true` if a restore to this revision would undo the last acknowledged write of the key that
    /// the node rewrites regularly. The node can detect such a restore by that key's revision.
    pub(super) fn was_told_after(&self, revision: Revision) -> bool {
        self.told > revision
    }

    /// Lets time pass on the machine.
    pub(super) fn pass(&mut self, passed: Duration) {
        if matches!(self.condition, Condition::Frozen { .. } | Condition::Gone) {
            return;
        }
        let millionths = u64::try_from(1_000_000 + self.drift_ppm).expect("a clock runs forward");
        let nanos =
            u64::try_from(passed.as_nanos()).expect("a short while") / 1000 * millionths / 1000;
        self.hand.advance(Duration::from_nanos(nanos));
    }

    /// Returns the current reading of the node's clock.
    pub(super) fn clock_shows(&self) -> UnixNanos {
        self.clock.now()
    }

    /// `true` if the clock was wrong at or after this time.
    pub(super) fn was_wrong_after(&self, at: Duration) -> bool {
        self.wrong_at.is_some_and(|wrong_at| wrong_at >= at)
    }

    /// Sets the wall clock forward or, if `is_back` is `true`, back.
    pub(super) fn step_clock(&mut self, by: Duration, is_back: bool) {
        let wall = self.hand.wall();
        self.hand.set_wall(if is_back {
            wall.before(by)
        } else {
            wall.after(by)
        });
        self.clock.observe(CLOCK.skew_max);
    }

    /// Sets the wall clock right, as an NTP client does.
    pub(super) fn mend_clock(&mut self, true_time: UnixNanos) {
        self.hand.set_wall(true_time);
        self.clock.observe(CLOCK.skew_max);
    }

    /// Returns the slot that the node holds.
    pub(super) fn slot(&self) -> Option<u32> {
        self.slots.slot()
    }

    /// Tells the node to shut down.
    pub(super) fn leave(&mut self, until: Duration) {
        self.condition = Condition::Leaving { until };
        self.slots.release();
        self.asked = None;
        self.sleeps_until = UnixNanos::default();
    }

    /// `true` if the node still waits for the reply to this message.
    pub(super) fn waits_for(&self, message: u64) -> bool {
        self.asked
            .as_ref()
            .is_some_and(|(asked, _)| *asked == message)
    }

    /// Lets the node handle the reply to its pending request. Returns that request, the reply as
    /// changed by `mistake`, and the event that follows from it.
    pub(super) fn take_reply(&mut self, reply: Reply, mistake: Mistake) -> (Request, Reply, Event) {
        let (_, request) = self.asked.take().expect("a reply that is waited for");
        if mistake == Mistake::ForgetsHighWater {
            self.slots.lease.high_water = HighWater::default();
        }
        let now = self.clock.now();
        let reply = mistake.of_reply(
            &request,
            reply,
            &Maker {
                keys: &keys(),
                instance: self.name.instance,
                now,
            },
        );
        let event = self.slots.answer(now, reply.clone());
        self.is_clock_refused = self.slots.clock_refusal().is_some();
        if let (Event::Acquired(_) | Event::Renewed, Reply::Outcome(Outcome::Committed(written))) =
            (&event, &reply)
        {
            self.told = written.revision;
        }
        if let (Request::Commit(transaction), Reply::Outcome(Outcome::Committed(written))) =
            (&request, &reply)
            && transaction
                .write
                .iter()
                .any(|write| matches!(write, Write::Put { key, .. } if is_waiting(key)))
        {
            self.told = written.revision;
            self.waits += 1;
        }
        if matches!(event, Event::Regressed(_)) {
            self.told = Revision::ABSENT;
        }
        if matches!(event, Event::Fenced(_) | Event::Regressed(_)) {
            self.shared_below = None;
            self.asked_for = UnixNanos::default();
        }
        self.sleeps_until = UnixNanos::default();
        (request, reply, event)
    }

    /// Fails the pending request, if there is one, because the node is a copy without connections
    /// or was suspended.
    pub(super) fn forget_connections(&mut self, mistake: Mistake) {
        if self.asked.is_some() {
            self.take_reply(
                Reply::Failed(CoordinatorError::NoAnswer("another machine".to_owned())),
                mistake,
            );
        }
    }

    /// Does the work of a real node's threads at this simulated time. Returns `true` if the node
    /// has shut down.
    pub(super) fn act(
        &mut self,
        at: Duration,
        place: usize,
        mistake: Mistake,
        network: &mut Network,
    ) -> bool {
        let now = self.clock.now();
        if self.asked.is_some() || (now < self.sleeps_until && self.needed <= now) {
            return false;
        }
        match self.slots.next(now, std::mem::take(&mut self.needed)) {
            Step::WaitUntil(until) => self.sleeps_until = until,
            Step::Ended => return true,
            Step::Send(request) => {
                let maker = Maker {
                    keys: &keys(),
                    instance: self.name.instance,
                    now,
                };
                let request = mistake.of_request(request, &maker);
                if let Request::Commit(transaction) = &request
                    && let Some(record) = horizon_of(transaction)
                {
                    self.asked_for = self.asked_for.max(record.horizon);
                }
                self.messages += 1;
                self.asked = Some((self.messages, request.clone()));
                network.send(
                    at,
                    Address {
                        node: place,
                        message: self.messages,
                    },
                    request,
                );
            }
        }
        false
    }

    /// Tries to mint a few ids.
    pub(super) fn mint(&mut self, count: u32, minted: &mut Vec<u128>) {
        let request = self
            .minter
            .request(NonZeroU32::new(count).expect("some"), None)
            .expect("a sound request");
        match self.minter.reserve(&request) {
            Ok(mut granted) => {
                assert!(
                    !self.is_clock_refused,
                    "by a clock that is refused nothing is minted"
                );
                let (mut ids, first) = ([0; 8], minted.len());
                let count = granted.batch.fill(&mut ids);
                minted.extend_from_slice(&ids[..count]);
                if let Some(shared_below) = self.shared_below {
                    let is_its_own = |id: &u128| time_of(*id) >= shared_below;
                    let own: Vec<u128> = minted.drain(first..).filter(is_its_own).collect();
                    minted.extend(own);
                }
            }
            Err(Denied::Horizon { needed }) => self.needed = needed,
            Err(Denied::Refused(_)) => {}
        }
    }
}

/// Returns the time field of an id.
pub(super) fn time_of(id: u128) -> UnixNanos {
    let time = FORMAT.split(id).expect("an id").time.expect("has a time");
    UnixNanos::new(u64::try_from(time.nanos()).expect("after 1970"))
}

pub(super) fn keys() -> FleetKeys {
    FleetKeys::below("/idmint/v1/simulation/")
}

pub(super) fn instance(dice: &mut Dice) -> Nonce {
    Nonce::new(dice.bits())
}

pub(super) fn entropy(dice: &mut Dice) -> Entropy {
    let mut dice = dice.split();
    Entropy::new(move || dice.bits())
}

fn mint(clock: &Arc<Clock>, slots: NonZeroU32) -> (Arc<Mint>, Arc<Minter>) {
    let settings = MintSettings {
        wait_max: Duration::from_millis(250),
        lead_max: Duration::from_millis(5),
        window: WINDOW,
        shard: 0,
    };
    let lanes = SlotLanes::of(&FORMAT, slots, LaneCount::UpTo(1), 0).expect("few slots fit");
    let mut mint = Mint::new(Arc::clone(clock), settings);
    let minter = mint.add_leased(Arc::clone(&FORMAT), lanes);
    (Arc::new(mint), minter)
}
