//! One simulated run: a fleet from its first start, for four minutes of simulated time.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::{AddAssign, Range};
use std::time::Duration;

use super::appends::Ledgers;
use super::faults::{Dice, Weather};
use super::mistake::{Mistake, horizon_of, is_renewal};
use super::network::{Mishaps, Network};
use super::node::{Condition, Node, WINDOW, instance, keys, time_of};
use super::restore::{Done, Restore};
use crate::fleet_clocks::Skew;
use crate::leased_slots::Event;
use crate::slot_lease::Founding;
use crate::slot_lease::{NodeName, Reply, Request};
use crate::stored::HorizonRecord;
use crate::{Outcome, Revision};
use idmint_core::time::UnixNanos;
use idmint_storage::{SlotRange, SlotShare};

pub(super) const BEGINS: UnixNanos = UnixNanos::from_seconds(1_900_000_000);

/// The length of a run, in simulated time.
const LASTS: Duration = Duration::from_secs(240);

/// A clock is wrong if it differs from the true time by more than this.
const WRONG: Duration = Duration::from_secs(2);

/// The maximum time for which a node may use the clock reading of another node. It covers the
/// duration of a lease and the longest delay of a request.
const VOTES_FOR: Duration = Duration::from_secs(150);

/// Counts of events in one run, or in many runs together.
#[derive(Debug, Default, Clone)]
pub(super) struct Tally {
    pub(super) minted: u64,
    pub(super) acquired: u64,
    pub(super) fenced: u64,
    pub(super) adopted: u64,
    pub(super) reclaimed: u64,
    pub(super) crashes: u64,
    pub(super) pauses: u64,
    pub(super) freezes: u64,
    pub(super) copies: u64,
    pub(super) clock_steps: u64,
    pub(super) clocks_mended: u64,
    /// The number of times that a node was refused a slot because the fleet's clocks contradicted
    /// its own.
    pub(super) clocks_refused: u64,
    /// The number of times that a node with a slot stopped minting because the fleet's clocks
    /// contradicted its own.
    pub(super) clocks_stopped: u64,
    /// The number of times that a node's clock agreed with the fleet's clocks again after a
    /// contradiction, with or without a slot.
    pub(super) clocks_healed: u64,
    pub(super) leaves: u64,
    pub(super) restores: u64,
    pub(super) regressions: u64,
    pub(super) acquired_after_a_fence: u64,
    pub(super) adoptions: u64,
    /// The number of acknowledged writes by which nodes without a slot rewrote their own keys. If
    /// its own key is missing or older, a node knows that the store was restored.
    pub(super) waiting: u64,
    pub(super) wipes: u64,
    pub(super) appended: u64,
    /// The number of reads and appends that nodes refused.
    pub(super) refused: u64,
    /// The number of repeated requests that had already been acknowledged.
    pub(super) retried: u64,
    /// The number of cleanups that found and removed expired idempotency keys.
    pub(super) swept: u64,
    pub(super) mishaps: Mishaps,
}

impl AddAssign<&Tally> for Tally {
    fn add_assign(&mut self, other: &Tally) {
        let (a, b) = (&mut self.mishaps, &other.mishaps);
        for (sum, more) in [
            (&mut self.minted, other.minted),
            (&mut self.acquired, other.acquired),
            (&mut self.fenced, other.fenced),
            (&mut self.adopted, other.adopted),
            (&mut self.reclaimed, other.reclaimed),
            (&mut self.crashes, other.crashes),
            (&mut self.pauses, other.pauses),
            (&mut self.freezes, other.freezes),
            (&mut self.copies, other.copies),
            (&mut self.clock_steps, other.clock_steps),
            (&mut self.clocks_mended, other.clocks_mended),
            (&mut self.clocks_refused, other.clocks_refused),
            (&mut self.clocks_stopped, other.clocks_stopped),
            (&mut self.clocks_healed, other.clocks_healed),
            (&mut self.leaves, other.leaves),
            (&mut self.restores, other.restores),
            (&mut self.regressions, other.regressions),
            (
                &mut self.acquired_after_a_fence,
                other.acquired_after_a_fence,
            ),
            (&mut self.adoptions, other.adoptions),
            (&mut self.waiting, other.waiting),
            (&mut self.wipes, other.wipes),
            (&mut self.appended, other.appended),
            (&mut self.refused, other.refused),
            (&mut self.retried, other.retried),
            (&mut self.swept, other.swept),
            (&mut a.lost_requests, b.lost_requests),
            (&mut a.lost_answers, b.lost_answers),
            (&mut a.late, b.late),
            (&mut a.doubled, b.doubled),
            (&mut a.stale_reads, b.stale_reads),
            (&mut a.leases_ended, b.leases_ended),
            (&mut a.leaderless, b.leaderless),
            (&mut a.full, b.full),
        ] {
            *sum += more;
        }
    }
}

struct World {
    dice: Dice,
    network: Network,
    nodes: Vec<Node>,
    share: SlotShare,
    mistake: Mistake,
    at: Duration,
    weather_until: Duration,
    restore: Restore,
    is_fenced: bool,
    /// `true` if all clocks are right to within about two seconds.
    are_clocks_right: bool,
    /// `true` if the clock of the first node alone is wrong.
    is_one_wrong: bool,
    /// `true` if the same backup is restored twice, with a fence after each restore. The nodes'
    /// journals are imported only after the second restore.
    is_twice: bool,
    /// The time at which the fleet adopts a single node, or `None` if it does not.
    adopts_at: Option<Duration>,
    /// The period for which the adopted node is assumed to have minted every possible id. If the
    /// fleet mints an id of this period, it is a duplicate. `None` before the adoption.
    adopted: Option<Range<UnixNanos>>,
    /// The time at which the coordinator loses all its data, or `None` if it does not. In runs with
    /// such a wipe all clocks are right, because after a wipe only the clocks keep ids unique.
    wiped_at: Option<Duration>,
    /// The highest revision that each process had seen before the wipe, if it was part of the
    /// fleet. A restarted process takes over the entry of the previous process on its machine.
    knew: BTreeMap<u128, Revision>,
    ledgers: Ledgers,
    minted: Vec<u128>,
    tally: Tally,
}

/// Runs the simulation with one random seed, and checks that no id was minted twice.
///
/// # Errors
/// Returns an error if a property is violated.
pub(super) fn run(seed: u64, mistake: Mistake) -> Result<Tally, String> {
    let mut dice = Dice::of(seed);
    let slots =
        NonZeroU32::new(2 + u32::try_from(dice.below(4)).expect("few")).expect("at least 2");
    let mut tally = Tally::default();
    // Draw these values from a second random generator, so that they do not change the other values
    // of a seed.
    let mut apart = Dice::of(!seed);
    let kind = (mistake, apart.per_mille(200), apart.per_mille(300));
    compare(run_share(dice, SlotShare::all(slots), kind, &mut tally)?)?;
    Ok(tally)
}

/// Simulates two coordinators from one seed, and checks that no id was minted twice. Each
/// coordinator hands out its own share of the same eight slots.
///
/// # Errors
/// Returns an error if a property is violated.
pub(super) fn run_regions(seed: u64, shares: [&str; 2]) -> Result<Tally, String> {
    let mut dice = Dice::of(seed);
    let (mut tally, mut minted) = (Tally::default(), Vec::new());
    for share in shares.map(|text| SlotRange::parse(text).expect("a range")) {
        let share = SlotShare::part(NonZeroU32::new(8).expect("not zero"), share).expect("below 8");
        let kind = (Mistake::None, false, false);
        minted.extend(run_share(dice.split(), share, kind, &mut tally)?);
    }
    compare(minted)?;
    Ok(tally)
}

/// Simulates a coordinator with the slots in `share`, and its nodes. Returns the ids that they
/// minted.
///
/// # Errors
/// Returns an error if a property is violated, for example if an id of the adopted node is minted
/// again.
fn run_share(
    mut dice: Dice,
    share: SlotShare,
    (mistake, is_one_wrong, is_twice): (Mistake, bool, bool),
    tally: &mut Tally,
) -> Result<Vec<u128>, String> {
    let network = Network::new(dice.split(), keys());
    let restore = Restore::draw(&mut dice);
    // A single node uses the worker numbers of all slots, so only a fleet that hands out all slots
    // can adopt it.
    let adopts_at = (share.is_whole() && dice.per_mille(300)).then(|| dice.millis(0, 150_000));
    let is_wiped = matches!(restore, Restore::None) && dice.per_mille(250);
    let wiped_at = is_wiped.then(|| dice.millis(80_000, 150_000));
    let mut world = World {
        dice,
        network,
        nodes: Vec::new(),
        share,
        mistake,
        at: Duration::ZERO,
        weather_until: Duration::ZERO,
        restore,
        is_fenced: false,
        adopts_at: adopts_at.filter(|_| !is_wiped),
        adopted: None,
        wiped_at,
        knew: BTreeMap::new(),
        ledgers: Ledgers::default(),
        are_clocks_right: is_wiped,
        is_one_wrong: is_one_wrong && !is_wiped,
        is_twice,
        minted: Vec::new(),
        tally: Tally::default(),
    };
    for place in 0..2 + world.dice.below(3) {
        world.start(place);
    }
    while world.at < LASTS {
        world.step()?;
    }
    world.tally.minted = u64::try_from(world.minted.len()).expect("few");
    world.tally.mishaps = world.network.mishaps.clone();
    world.tally.waiting = world.nodes.iter().map(|node| node.waits).sum();
    (world.tally.appended, world.tally.refused) = (world.ledgers.appended, world.ledgers.refused);
    (world.tally.retried, world.tally.swept) = (world.ledgers.retried, world.ledgers.swept);
    *tally += &world.tally;
    world.check_adopted()?;
    Ok(world.minted)
}

/// Returns the clock reading `shows`, or a time that differs from it by 36 hours or 400 days. Such
/// a time simulates a wrong clock that was not detected yet.
fn wrong_by_days(shows: UnixNanos, dice: &mut Dice) -> UnixNanos {
    const HOURS_36: Duration = Duration::from_hours(36);
    match dice.below(4) {
        0 => shows.before(HOURS_36),
        1 => shows.after(HOURS_36),
        2 => shows.after(Duration::from_hours(400 * 24)),
        _ => shows,
    }
}

fn apart(one: UnixNanos, other: UnixNanos) -> Duration {
    one.since(other).max(other.since(one))
}

/// Checks that no id occurs twice.
fn compare(mut minted: Vec<u128>) -> Result<(), String> {
    minted.sort_unstable();
    match minted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!(
            "{} was minted twice, of {}",
            pair[0],
            time_of(pair[0])
        )),
        None => Ok(()),
    }
}

impl World {
    fn step(&mut self) -> Result<(), String> {
        let passed = self.dice.millis(5, 200);
        self.at += passed;
        if self.at >= self.weather_until {
            self.network.weather = Weather::draw(&mut self.dice);
            let lasts = self.dice.millis(2_000, 30_000);
            // Let some conditions last longer than the 50 s for which a slot is usable without a
            // renewal.
            let factor = if self.dice.per_mille(100) { 4 } else { 1 };
            self.weather_until = self.at + lasts * factor;
        }
        let true_time = BEGINS.after(self.at);
        for node in &mut self.nodes {
            node.pass(passed);
            if apart(node.clock_shows(), true_time) > WRONG && node.condition != Condition::Gone {
                node.wrong_at = Some(self.at);
            }
        }
        for (to, reply) in self.network.arrive(self.at) {
            self.deliver(to.node, to.message, reply);
            self.check_clock(to.node)?;
        }
        // Do not adopt the single node while a restore may still undo recent writes. An operator
        // would have to repeat such an adoption, which is not simulated.
        if self.adopts_at.is_some_and(|at| at <= self.at) && !self.restore.loses_what_is_new() {
            self.adopt();
        }
        for place in 0..self.nodes.len() {
            self.act(place);
        }
        let nodes = (self.nodes.as_slice(), self.mistake);
        match self.restore.act(
            self.at,
            (self.share, self.is_twice),
            &mut self.dice,
            &mut self.network,
            nodes,
        )? {
            Done::Nothing => {}
            Done::Restored => self.tally.restores += 1,
            Done::FencedWithoutJournals => {
                self.is_fenced = true;
                self.ledgers.lose(&self.network.store);
            }
            Done::Fenced => {
                self.is_fenced = true;
                self.ledgers.check(&self.network.store)?;
            }
        }
        self.append()?;
        if self.wiped_at.is_some_and(|at| at <= self.at) {
            self.wipe();
        }
        self.trouble();
        Ok(())
    }

    /// Appends to a ledger at a random node.
    fn append(&mut self) -> Result<(), String> {
        if !self.dice.per_mille(150) {
            return Ok(());
        }
        let place = self.any_place();
        let node = &self.nodes[place];
        let Some(records) = node
            .records
            .as_ref()
            .filter(|_| node.condition == Condition::Running)
        else {
            return Ok(());
        };
        let seen = match self.tally.wipes {
            0 => node.slots.known.highest(),
            // A node that was not part of the old fleet before the wipe uses the new one. It
            // appends nothing, because the checked ledgers belong to the old fleet.
            _ => match self.knew.get(&node.name.instance.bits()) {
                Some(seen) => *seen,
                None => return Ok(()),
            },
        };
        // A lower revision of the store shows a loss of data. But later writes may have raised the
        // revision again. Then the checks below accept missing records.
        let has_lost = self.restore.is_under_way() || self.tally.wipes > 0;
        let is_carried = has_lost && self.network.store.revision() >= seen;
        if self.dice.per_mille(100) {
            let shows = wrong_by_days(node.clock_shows(), &mut self.dice);
            self.ledgers
                .forget(records, shows, self.mistake, &self.network.store);
        }
        self.ledgers.retry(records, is_carried, &mut self.dice)?;
        self.ledgers
            .append(records, BEGINS.after(self.at), is_carried, &mut self.dice)
    }

    /// Wipes the coordinator and starts a new node. The existing nodes cannot reach the coordinator
    /// for 70 seconds, and continue to mint.
    fn wipe(&mut self) {
        self.wiped_at = None;
        let known = self
            .nodes
            .iter()
            .filter(|node| node.high_water().fleet().is_some());
        self.knew = known
            .map(|node| (node.name.instance.bits(), node.high_water().revision()))
            .collect();
        let (cut, machine) = (self.nodes.len(), 50 + self.dice.below(10));
        self.network
            .wipe(self.at, cut, self.at + Duration::from_secs(70));
        self.start(machine);
        self.tally.wipes += 1;
    }

    fn deliver(&mut self, place: usize, message: u64, reply: Reply) {
        let node = &mut self.nodes[place];
        // A suspended or ended node handles no message. A reply that arrives while the node is
        // suspended is dropped, and the request fails when the node continues.
        let listens = matches!(
            node.condition,
            Condition::Running | Condition::Leaving { .. }
        );
        if !node.waits_for(message) || !listens {
            return;
        }
        let was_refused = node.is_clock_refused;
        let (request, reply, event) = node.take_reply(reply, self.mistake);
        match (was_refused, node.is_clock_refused) {
            (false, true) if node.slot().is_none() => self.tally.clocks_refused += 1,
            (false, true) => self.tally.clocks_stopped += 1,
            (true, false) => self.tally.clocks_healed += 1,
            (false, false) | (true, true) => {}
        }
        match &event {
            Event::Acquired(_) => {
                self.tally.acquired += 1;
                self.tally.acquired_after_a_fence += u64::from(self.is_fenced);
            }
            Event::Regressed(_) => self.tally.regressions += 1,
            Event::Fenced(_) => self.tally.fenced += 1,
            Event::Disagrees(error) => panic!("all nodes are alike: {error}"),
            Event::None | Event::Founded(_) | Event::Waiting(_) | Event::Renewed => {}
        }
        let (Request::Commit(transaction), Reply::Outcome(outcome)) = (&request, &reply) else {
            return;
        };
        let Some(sent) = horizon_of(transaction) else {
            return;
        };
        match outcome {
            Outcome::Refused(snapshot) => {
                let records = snapshot.ranges.iter().flatten();
                let mut records =
                    records.filter_map(|entry| HorizonRecord::from_bytes(&entry.value).ok());
                self.tally.adopted +=
                    u64::from(records.any(|record| record.attempt == sent.attempt));
            }
            Outcome::Committed(_) => {
                let is_reclaim = !is_renewal(transaction) && matches!(event, Event::Renewed);
                self.tally.reclaimed += u64::from(is_reclaim);
            }
        }
    }

    /// Checks that a single wrong clock does not stop a node whose clock is right. A node whose
    /// clock seems to be ahead is not checked. The other nodes' clock readings may have been in
    /// transit for a long time, which makes the node's clock look ahead.
    fn check_clock(&self, place: usize) -> Result<(), String> {
        let (node, since) = (&self.nodes[place], self.at.saturating_sub(VOTES_FOR));
        let is_behind = matches!(node.slots.skew(), Skew::Behind(_));
        if !node.is_clock_refused || !is_behind || node.was_wrong_after(since) {
            return Ok(());
        }
        let wrong = self
            .nodes
            .iter()
            .filter(|other| other.was_wrong_after(since));
        if wrong.count() > 1 {
            return Ok(());
        }
        let refusal = node.slots.clock_refusal().expect("it is refused");
        Err(format!("one wrong clock stops a right one: {refusal}"))
    }

    fn act(&mut self, place: usize) {
        let node = &mut self.nodes[place];
        match node.condition {
            Condition::Gone => return,
            Condition::Paused { until } | Condition::Frozen { until } => {
                if self.at < until {
                    return;
                }
                node.condition = Condition::Running;
                // Replies that arrived while the node was suspended were dropped, so its pending
                // request fails.
                node.forget_connections(self.mistake);
            }
            Condition::Leaving { until } if self.at >= until => {
                return node.condition = Condition::Gone;
            }
            Condition::Leaving { .. } | Condition::Running => {}
        }
        // In a real node, minting may happen before or after the renewal of the slot. Draw the
        // order at random.
        let mints_first = self.dice.per_mille(500);
        let count = u32::try_from(1 + self.dice.below(5)).expect("few");
        if mints_first {
            node.mint(count, &mut self.minted);
        }
        if node.act(self.at, place, self.mistake, &mut self.network) {
            node.condition = Condition::Gone;
        }
        if !mints_first {
            node.mint(count, &mut self.minted);
        }
    }

    /// Injects faults into machines, clocks and leases.
    fn trouble(&mut self) {
        let is_restoring = self.restore.is_under_way();
        if !is_restoring && self.dice.per_mille(4) {
            self.network.revoke_a_lease();
        }
        if self.dice.per_mille(10) {
            let place = self.any_place();
            self.nodes[place].mend_clock(BEGINS.after(self.at));
            self.tally.clocks_mended += 1;
        }
        if !self.dice.per_mille(25) {
            return;
        }
        let place = self.any_place();
        let for_a_while = if self.dice.per_mille(300) {
            self.dice.millis(30_000, 150_000)
        } else {
            self.dice.millis(100, 20_000)
        };
        let until = self.at + for_a_while;
        let (nodes, are_steady) = (self.nodes.len(), self.are_clocks_steady());
        let node = &mut self.nodes[place];
        if node.condition == Condition::Gone && !is_restoring {
            // The process restarts on the same machine or on another one.
            self.restart(place);
            return;
        }
        if node.condition != Condition::Running {
            return;
        }
        match self.dice.below(12) {
            0 | 1 => {
                node.condition = Condition::Paused { until };
                self.tally.pauses += 1;
            }
            2 if !are_steady => {
                node.condition = Condition::Frozen { until };
                self.tally.freezes += 1;
            }
            3 | 4 => {
                node.condition = Condition::Gone;
                self.tally.crashes += 1;
            }
            5..8 if !is_restoring => {
                node.leave(self.at + Duration::from_secs(3));
                self.tally.leaves += 1;
            }
            8 | 9 if !are_steady => {
                let most = if self.dice.per_mille(100) {
                    3_600_000
                } else {
                    8_000
                };
                let (by, is_back) = (self.dice.millis(1, most), self.dice.per_mille(500));
                node.step_clock(by, is_back);
                self.tally.clock_steps += 1;
            }
            10 | 11 if nodes < 8 && !is_restoring && !are_steady => {
                if let Some(mut copy) = node.copy(self.share.slots(), &mut self.dice) {
                    copy.forget_connections(self.mistake);
                    self.nodes.push(copy);
                    self.tally.copies += 1;
                }
            }
            _ => {}
        }
    }

    fn any_place(&mut self) -> usize {
        usize::try_from(
            self.dice
                .below(u64::try_from(self.nodes.len()).expect("few")),
        )
        .expect("few")
    }

    /// Adopts a single node that used the worker numbers of all slots. The node is assumed to have
    /// minted every possible id of a few seconds, so any repeated id is found.
    fn adopt(&mut self) {
        self.adopts_at = None;
        let lasts = self.dice.millis(1_000, 4_000);
        let (from, until) =
            self.network
                .adopt(self.share, BEGINS.after(self.at), lasts, self.mistake);
        self.adopted = Some(from..until);
        self.tally.adoptions += 1;
    }

    /// `true` if no clock is stepped, stopped or copied.
    fn are_clocks_steady(&self) -> bool {
        self.are_clocks_right || self.is_one_wrong
    }

    fn start(&mut self, machine: u64) {
        let node = self.new_node(machine);
        self.nodes.push(node);
    }

    fn restart(&mut self, place: usize) {
        let machine = if self.dice.per_mille(700) {
            place as u64
        } else {
            100 + self.dice.below(1000)
        };
        let node = self.new_node(machine);
        // Replies to the previous process of the node are dropped.
        self.nodes[place].condition = Condition::Gone;
        if self.nodes.len() < 12 {
            self.nodes.push(node);
        }
    }

    fn new_node(&mut self, machine: u64) -> Node {
        let true_time = BEGINS.after(self.at);
        // Some clocks are off by up to several minutes.
        let skew = if self.are_clocks_steady() {
            self.dice.millis(0, 2_000)
        } else if self.dice.per_mille(100) {
            self.dice.millis(0, 300_000)
        } else {
            self.dice.millis(0, 3_000)
        };
        let wall = if self.is_one_wrong && self.nodes.is_empty() {
            true_time.after(skew * 10)
        } else if self.dice.per_mille(500) {
            true_time.before(skew)
        } else {
            true_time.after(skew)
        };
        let drift_ppm = i64::try_from(self.dice.below(1_000)).expect("small") - 500;
        let name = NodeName {
            instance: instance(&mut self.dice),
            node: format!("node-{machine}"),
            addr: "0.0.0.0:1".to_owned(),
        };
        let earlier = self
            .nodes
            .iter()
            .rev()
            .find(|node| node.name.node == name.node);
        let high_water = earlier
            .map(|node| node.high_water().clone())
            .unwrap_or_default();
        if let Some(seen) = earlier.and_then(|node| self.knew.get(&node.name.instance.bits())) {
            self.knew.insert(name.instance.bits(), *seen);
        }
        // All clocks are right only in runs with a wipe. Nodes may then still mint while a new
        // fleet is founded. In the other runs, no node has minted before the founding.
        let founding =
            match self.are_clocks_right && self.mistake != Mistake::FoundsAsIfNobodyMinted {
                true => Founding::Again(WINDOW),
                false => Founding::First,
            };
        let on = (&self.network.store, founding, self.mistake);
        Node::start(
            wall,
            drift_ppm,
            name,
            self.share,
            high_water,
            on,
            &mut self.dice,
        )
    }

    /// Checks that no id of the adopted node was minted again.
    fn check_adopted(&self) -> Result<(), String> {
        let Some(adopted) = &self.adopted else {
            return Ok(());
        };
        match self
            .minted
            .iter()
            .find(|id| adopted.contains(&time_of(**id)))
        {
            Some(id) => Err(format!(
                "{id} was minted again, of {}: by a node that was adopted before",
                time_of(*id)
            )),
            None => Ok(()),
        }
    }
}
