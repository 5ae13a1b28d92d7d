//! The thread that leases a slot and renews it, so that no mint waits for the coordinator while there is time reserved.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::watch;
use tracing::{error, info, warn};

use super::fleet_clocks::Skew;
use super::high_water::KeptHighWater;
use super::leased_slots::{Event, LeasedSlots};
use super::nonce::Entropy;
use super::slot_lease::{LeaseRule, Reply, RequestOutcome, Step};
use crate::minting::{Mint, Refusal, SlotLack};
use crate::storage::{Coordinator, FormatsError, KnownFleet};
use crate::time::{Clock, UnixNanos};

/// How long the thread sleeps at most: the clock it goes by may run faster than the one that it sleeps by.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A floor that is further ahead than this is worth a word: no right clock founds or fences a fleet so far ahead.
const FLOOR_FAR: Duration = Duration::from_secs(300);

/// Leases a slot, and begins and ends the sessions in which it is used, on a thread of its own.
pub struct SlotKeeper {
    shared: Arc<Shared>,
    state: watch::Receiver<State>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the thread has achieved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct State {
    slot: Option<u32>,
    /// Below this ids can be minted now; `None` where there is no session.
    usable_until: Option<UnixNanos>,
    skew: Skew,
    has_ended: bool,
}

/// What the thread and its callers have in common.
#[derive(Debug, Default)]
struct Shared {
    wanted: Mutex<Wanted>,
    asked: Condvar,
    counts: SlotCounts,
    disagreement: Mutex<Option<FormatsError>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Wanted {
    /// Callers wait until ids can be minted up to this instant.
    needed: UnixNanos,
    /// The slot is to be given back.
    is_ending: bool,
}

/// What is counted of slots. Each number only grows; Relaxed, since nothing else depends on them.
#[derive(Debug, Default)]
pub struct SlotCounts {
    renewed: AtomicU64,
    fenced: AtomicU64,
    is_regressed: AtomicBool,
    requests: [AtomicU64; RequestOutcome::ALL.len()],
}

impl SlotCounts {
    /// How often the time that is reserved was extended.
    pub fn renewed(&self) -> u64 {
        self.renewed.load(Ordering::Relaxed)
    }

    /// How often a slot was lost to another node.
    pub fn fenced(&self) -> u64 {
        self.fenced.load(Ordering::Relaxed)
    }

    /// Whether the coordinator has lost what it had acknowledged to this node, and was not fenced since.
    pub fn is_regressed(&self) -> bool {
        self.is_regressed.load(Ordering::Relaxed)
    }

    /// Requests to the coordinator with this outcome.
    pub fn of(&self, outcome: RequestOutcome) -> u64 {
        self.requests[outcome as usize].load(Ordering::Relaxed)
    }

    fn count(&self, outcome: RequestOutcome) {
        self.requests[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }
}

impl SlotKeeper {
    /// Begins to look for a slot; sessions of `mint` begin and end with it. What the fleet has agreed on, once this node agrees
    /// with it, is told by `known`. `kept` is what this node knew of its coordinator when it ended, and will know.
    /// `count_founding` is called where there was no fleet and this node has founded one.
    pub fn start(
        mint: Arc<Mint>,
        coordinator: Arc<dyn Coordinator>,
        rule: LeaseRule,
        known: Arc<KnownFleet>,
        mut kept: KeptHighWater,
        entropy: Entropy,
        count_founding: impl Fn() + Send + 'static,
    ) -> SlotKeeper {
        let shared = Arc::new(Shared::default());
        let (report, state) = watch::channel(State::default());
        let clock = Arc::clone(mint.clock());
        let slots = LeasedSlots::new(mint, rule, kept.begin(), known, entropy);
        let worker = Worker {
            slots,
            clock,
            coordinator,
            shared: Arc::clone(&shared),
            kept,
            report,
            count_founding: Box::new(count_founding),
            floor_told: UnixNanos::default(),
            is_answered: true,
            is_clock_right: true,
        };
        let thread = thread::Builder::new()
            .name("slot".to_owned())
            .spawn(move || worker.run())
            .expect("a program that just started can start a thread");
        SlotKeeper {
            shared,
            state,
            thread: Mutex::new(Some(thread)),
        }
    }

    /// Asks for enough time for ids up to `needed`, and waits until it is reserved, or until there is no slot.
    pub async fn raise_to(&self, needed: UnixNanos) {
        self.shared
            .want(|wanted| wanted.needed = wanted.needed.max(needed));
        let mut state = self.state.clone();
        let is_decided = |state: &State| state.usable_until.is_none_or(|until| until >= needed);
        // An error: the thread has ended, and its slot with it.
        let _ = state.wait_for(is_decided).await;
    }

    /// Returns when this node may not mint in its fleet, with the difference, and never otherwise.
    pub async fn disagrees(&self) -> FormatsError {
        let mut state = self.state.clone();
        let _ = state.wait_for(|state| state.has_ended).await;
        let found = self
            .shared
            .disagreement
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match found {
            Some(error) => error,
            None => std::future::pending().await,
        }
    }

    /// The slot that is held.
    pub fn slot(&self) -> Option<u32> {
        self.state.borrow().slot
    }

    /// How far the clock is ahead of the median of the fleet's clocks, in seconds, for certain; negative if it is behind.
    pub fn peer_skew_seconds(&self) -> f64 {
        self.state.borrow().skew.seconds()
    }

    /// What is counted.
    pub fn counts(&self) -> &SlotCounts {
        &self.shared.counts
    }

    /// Ends minting and gives the slot back, so that another node can have it at once. Waits until that is done, or left to
    /// the end of its lease: a few seconds at most.
    pub async fn release(&self) {
        self.shared.want(|wanted| wanted.is_ending = true);
        let _ = self.state.clone().wait_for(|state| state.has_ended).await;
    }
}

impl Drop for SlotKeeper {
    fn drop(&mut self) {
        self.shared.want(|wanted| wanted.is_ending = true);
        // A thread that panicked has said so.
        if let Some(thread) = self
            .thread
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for SlotKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotKeeper")
            .field("state", &*self.state.borrow())
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn want(&self, change: impl FnOnce(&mut Wanted)) {
        change(&mut self.wanted());
        self.asked.notify_one();
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().expect("no holder of this lock panics")
    }

    /// Waits until something else is wanted, at most so long.
    fn wait(&self, known: Wanted, most: Duration) {
        let is_known = |wanted: &mut Wanted| {
            wanted.needed == known.needed && wanted.is_ending == known.is_ending
        };
        drop(
            self.asked
                .wait_timeout_while(self.wanted(), most, is_known)
                .expect("no holder of this lock panics"),
        );
    }
}

struct Worker {
    slots: LeasedSlots,
    clock: Arc<Clock>,
    coordinator: Arc<dyn Coordinator>,
    shared: Arc<Shared>,
    kept: KeptHighWater,
    report: watch::Sender<State>,
    count_founding: Box<dyn Fn() + Send>,
    /// The far floor of the fleet that was said last.
    floor_told: UnixNanos,
    /// Whether the coordinator answered when it was last asked.
    is_answered: bool,
    /// Whether the clocks of the fleet had nothing to say against this one.
    is_clock_right: bool,
}

impl Worker {
    fn run(mut self) {
        let mut is_ending = false;
        loop {
            let wanted = *self.shared.wanted();
            if wanted.is_ending && !is_ending {
                is_ending = true;
                self.slots.release();
                self.tell();
            }
            match self.slots.next(self.clock.now(), wanted.needed) {
                Step::Ended => break,
                Step::WaitUntil(until) => {
                    self.tell();
                    self.shared
                        .wait(wanted, until.since(self.clock.now()).min(LOOK_EVERY));
                }
                Step::Send(request) => {
                    let reply = request.send(self.coordinator.as_ref());
                    self.shared.counts.count(RequestOutcome::of(&reply));
                    self.log_failure(&reply);
                    let event = self.slots.answer(self.clock.now(), reply);
                    self.log_clock();
                    if self.has_ended_by(event) {
                        break;
                    }
                    self.tell();
                    self.kept.keep(self.clock.now(), self.slots.high_water());
                }
            }
        }
        self.kept.keep_last(self.slots.high_water());
        self.report.send_replace(State {
            has_ended: true,
            ..State::default()
        });
    }

    /// Tells what happened; returns whether nothing can be done any more.
    fn has_ended_by(&mut self, event: Event) -> bool {
        match event {
            Event::None => {}
            Event::Founded(floor) => {
                (self.count_founding)();
                warn!(
                    floor = %floor,
                    "there was no fleet in this namespace of etcd, and this node has founded one, which mints from {floor} on by \
                     its clock: a first start, or etcd was wiped; if others minted in it, see docs/FLEET.md, \"After a restore\""
                );
            }
            Event::Waiting(refusal) => self.log_floor(&refusal),
            Event::Renewed => {
                self.shared.counts.renewed.fetch_add(1, Ordering::Relaxed);
            }
            Event::Acquired(slot) => match self.slots.refusal() {
                None => info!(slot, "this node has slot {slot} and mints"),
                Some(refusal) => info!(
                    slot,
                    "this node has slot {slot}, and does not mint yet: {refusal}"
                ),
            },
            Event::Fenced(slot) => {
                self.shared.counts.fenced.fetch_add(1, Ordering::Relaxed);
                warn!(
                    slot,
                    "slot {slot} was lost to another node, or may be; nothing is minted until there is another slot"
                );
            }
            Event::Regressed(loss) => {
                if !self
                    .shared
                    .counts
                    .is_regressed
                    .swap(true, Ordering::Relaxed)
                {
                    error!(
                        "etcd has lost what it had acknowledged ({loss}), as after a restore from a backup or a wipe; nothing is \
                         minted until `idmint fleet fence-restore` was run"
                    );
                }
            }
            Event::Disagrees(problem) => {
                error!("this node may not mint in its fleet: {problem}");
                *self
                    .shared
                    .disagreement
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = Some(problem);
                return true;
            }
        }
        false
    }

    /// Says when the coordinator stops answering, and when it answers again.
    fn log_failure(&mut self, reply: &Reply) {
        let is_answered = !matches!(reply, Reply::Failed(_));
        match reply {
            Reply::Failed(error) if self.is_answered => {
                warn!(
                    "{error}; minting goes on for as long as time is reserved, and this is tried again"
                );
            }
            _ if is_answered && !self.is_answered => info!("the coordinator answers again"),
            _ => {}
        }
        self.is_answered = is_answered;
    }

    /// Says where the fleet begins, if that is further ahead than any node with a right clock founds one.
    fn log_floor(&mut self, refusal: &Refusal) {
        let Refusal::NoWorkerSlot {
            lack: SlotLack::BeforeFloor { floor },
            retry_after,
        } = refusal
        else {
            return;
        };
        if *retry_after <= FLOOR_FAR || self.floor_told == *floor {
            return;
        }
        self.floor_told = *floor;
        warn!(
            floor = %floor,
            wait_s = retry_after.as_secs(),
            "nothing is minted here for {} s: the fleet begins at {floor}; if a clock that was ahead has founded it or was fenced \
             with it, see docs/FLEET.md, \"A fleet that begins too late\"",
            retry_after.as_secs()
        );
    }

    /// Says when the clock is not believed any more, and when it is again.
    fn log_clock(&mut self) {
        let refusal = self.slots.clock_refusal();
        match &refusal {
            Some(refusal) if self.is_clock_right => {
                warn!("{refusal}; no id is minted by number until one of them is mended");
            }
            None if !self.is_clock_right => {
                info!("the clock agrees with the clocks of the fleet again")
            }
            _ => {}
        }
        self.is_clock_right = refusal.is_none();
    }

    fn tell(&self) {
        if self.slots.is_confirmed()
            && self
                .shared
                .counts
                .is_regressed
                .swap(false, Ordering::Relaxed)
        {
            info!("etcd has all that it had acknowledged, or was fenced");
        }
        let state = State {
            slot: self.slots.slot(),
            usable_until: self.slots.usable_until(),
            skew: self.slots.skew(),
            has_ended: false,
        };
        self.report.send_if_modified(|told| {
            let is_new = *told != state;
            *told = state;
            is_new
        });
    }
}

#[cfg(test)]
#[path = "slot_keeper_tests.rs"]
mod tests;
