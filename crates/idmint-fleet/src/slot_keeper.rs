//! The thread that leases and renews this node's slot, which determines its worker numbers. The
//! thread reserves time in advance, so that minting does not wait for the coordinator.

use std::fmt;
use std::mem::{self, Discriminant};
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
use super::slot_lease::{LeaseRule, NodeName, Reply, Step};
use crate::{Coordinator, KnownFleet};
use idmint_core::minting::{Mint, Refusal, SlotLack};
use idmint_core::time::{Clock, UnixNanos};
use idmint_storage::{FormatsError, RequestOutcome, Reserver, ReserverCounts, Waiting};

/// The maximum time that the thread sleeps before it checks what is due. This time is short,
/// because the minting clock may run faster than the clock that measures the sleep.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The thread warns if the fleet's floor is further ahead of the clock than this. If the clocks are
/// right, neither a new fleet nor `fence-restore` sets the floor so far ahead.
const FLOOR_FAR: Duration = Duration::from_secs(300);

/// The thread that leases a slot, and begins and ends the mint's sessions. During a session, the
/// mint uses the slot's worker numbers.
pub struct SlotKeeper {
    shared: Arc<Shared>,
    state: watch::Receiver<State>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The state of the thread, as callers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct State {
    slot: Option<u32>,
    /// The time up to which this node can mint ids, or `None` if it cannot mint at the moment.
    usable_until: Option<UnixNanos>,
    skew: Skew,
    has_ended: bool,
}

/// The state that the thread and its callers share.
#[derive(Debug, Default)]
struct Shared {
    wanted: Mutex<Wanted>,
    asked: Condvar,
    counts: SlotCounts,
    disagreement: Mutex<Option<FormatsError>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Wanted {
    /// The latest time for which a caller needs ids. The thread must reserve time up to this
    /// instant.
    needed: UnixNanos,
    /// `true` once the slot must be released.
    is_ending: bool,
}

/// Counters of this node's slot renewals, slot losses and requests, and a flag for lost data. The
/// counters only increase. Relaxed accesses suffice, because no other data depends on these values.
#[derive(Debug, Default)]
struct SlotCounts {
    renewed: AtomicU64,
    fenced: AtomicU64,
    is_regressed: AtomicBool,
    requests: [AtomicU64; RequestOutcome::ALL.len()],
}

impl SlotCounts {
    fn count(&self, outcome: RequestOutcome) {
        self.requests[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }
}

impl SlotKeeper {
    /// Starts the thread, which looks for a slot, and begins and ends the sessions of `mint`.
    ///
    /// The thread updates `known` once this node agrees with its fleet. `kept` is the file with the
    /// highest values that the coordinator has acknowledged to this node and its earlier processes.
    /// The thread keeps that file up to date. It calls `count_founding` if this node creates the
    /// fleet.
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
        let node = rule.node().clone();
        let slots = LeasedSlots::new(mint, rule, kept.begin(), known, entropy);
        let worker = Worker {
            slots,
            node,
            clock,
            coordinator,
            shared: Arc::clone(&shared),
            kept,
            report,
            count_founding: Box::new(count_founding),
            floor_told: UnixNanos::default(),
            lack_log: LackLog::default(),
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

    /// Waits until this node finds that its configuration contradicts the fleet's, and returns the
    /// difference. Never completes if the node and the fleet agree.
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
}

impl Reserver for SlotKeeper {
    /// Does nothing. The thread renews the slot by itself, at the latest when half of the reserved
    /// time has passed.
    fn refill(&self) {}

    /// Waits until ids can be minted for times up to `needed`, or until this node cannot mint, for
    /// example because it has lost its slot. Always returns `true`, so that the caller tries again.
    /// If the mint then refuses, its refusal gives the reason.
    fn raise_to(&self, needed: UnixNanos) -> Waiting<'_, bool> {
        self.shared
            .want(|wanted| wanted.needed = wanted.needed.max(needed));
        let mut state = self.state.clone();
        Box::pin(async move {
            let is_decided = |state: &State| state.usable_until.is_none_or(|until| until >= needed);
            // An error means that the thread has ended, so this node cannot mint.
            let _ = state.wait_for(is_decided).await;
            true
        })
    }

    /// Stops minting and releases the slot, so that another node can lease it at once. Waits for a
    /// few seconds at most. A slot that could not be released by then stays leased until the lease
    /// expires.
    fn release(&self) -> Waiting<'_, ()> {
        self.shared.want(|wanted| wanted.is_ending = true);
        let mut state = self.state.clone();
        Box::pin(async move {
            let _ = state.wait_for(|state| state.has_ended).await;
        })
    }

    fn leased_slot(&self) -> Option<u32> {
        self.state.borrow().slot
    }

    fn counts(&self) -> ReserverCounts {
        let counts = &self.shared.counts;
        ReserverCounts {
            extended: counts.renewed.load(Ordering::Relaxed),
            failed: 0,
            fenced: counts.fenced.load(Ordering::Relaxed),
            is_regressed: counts.is_regressed.load(Ordering::Relaxed),
            peer_skew_seconds: self.state.borrow().skew.seconds(),
            requests: RequestOutcome::ALL
                .map(|outcome| counts.requests[outcome as usize].load(Ordering::Relaxed)),
        }
    }
}

impl Drop for SlotKeeper {
    fn drop(&mut self) {
        self.shared.want(|wanted| wanted.is_ending = true);
        // If the thread panicked, the panic has already been logged.
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

    /// Waits until the callers' needs differ from `known`, or until `most` has passed.
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

/// The last logged reason for having no slot.
#[derive(Debug, Default)]
struct LackLog(Option<Discriminant<SlotLack>>);

impl LackLog {
    /// `true` if this kind of reason differs from the one logged last. The times and durations in a
    /// reason are ignored, because they change with each attempt.
    fn is_new(&mut self, lack: &SlotLack) -> bool {
        let kind = mem::discriminant(lack);
        self.0.replace(kind) != Some(kind)
    }

    /// Forgets the last reason, because the node has a slot again.
    fn clear(&mut self) {
        self.0 = None;
    }
}

struct Worker {
    slots: LeasedSlots,
    node: NodeName,
    clock: Arc<Clock>,
    coordinator: Arc<dyn Coordinator>,
    shared: Arc<Shared>,
    kept: KeptHighWater,
    report: watch::Sender<State>,
    count_founding: Box<dyn Fn() + Send>,
    /// The floor that was logged last because it is far ahead.
    floor_told: UnixNanos,
    lack_log: LackLog,
    /// `true` if the coordinator responded to the last request.
    is_answered: bool,
    /// `true` if the fleet's clocks did not contradict this node's clock at the last check.
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
                    self.shared.counts.count(reply.request_outcome());
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

    /// Logs and counts an event. Returns `true` if the thread must end.
    fn has_ended_by(&mut self, event: Event) -> bool {
        match event {
            Event::None => {}
            Event::Founded(floor) => {
                (self.count_founding)();
                warn!(
                    floor = %floor,
                    node = %self.node.node,
                    addr = %self.node.addr,
                    "this node founded a fleet because this etcd namespace had none; it mints from {floor} on by this \
                     node's clock; if other nodes minted here before, see docs/FLEET.md, \"After a restore\""
                );
            }
            Event::Waiting(refusal) => self.log_lack(&refusal),
            Event::Renewed => {
                self.shared.counts.renewed.fetch_add(1, Ordering::Relaxed);
            }
            Event::Acquired(slot) => {
                self.lack_log.clear();
                match self.slots.refusal() {
                    None => info!(slot, "this node holds slot {slot} and mints"),
                    Some(refusal) => info!(
                        slot,
                        "this node holds slot {slot}, but does not mint yet: {refusal}"
                    ),
                }
            }
            Event::Fenced(slot) => {
                self.shared.counts.fenced.fetch_add(1, Ordering::Relaxed);
                warn!(
                    slot,
                    "slot {slot} was lost, or may be lost, to another node; this node mints nothing until it has \
                     another slot"
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
                        "etcd has lost acknowledged writes ({loss}), as after a restore from a backup or a wipe, or it is another \
                         etcd; check that etcd.endpoints names the members of one etcd, then run `idmint fleet fence-restore` to \
                         mint again"
                    );
                }
            }
            Event::Disagrees(problem) => {
                error!(
                    "this node ends, because its configuration does not agree with its fleet: {problem}"
                );
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

    /// Logs once when the coordinator stops responding, and once when it responds again.
    fn log_failure(&mut self, reply: &Reply) {
        let is_answered = !matches!(reply, Reply::Failed(_));
        match reply {
            Reply::Failed(error) if self.is_answered => {
                warn!(
                    "{error}; the request is retried, and minting continues while reserved time is left"
                );
            }
            _ if is_answered && !self.is_answered => info!("the coordinator (etcd) responds again"),
            _ => {}
        }
        self.is_answered = is_answered;
    }

    /// Logs why this node has no slot, unless this reason was logged last.
    fn log_lack(&mut self, refusal: &Refusal) {
        let Refusal::NoWorkerSlot { lack, retry_after } = refusal else {
            return;
        };
        match lack {
            SlotLack::BeforeFloor { floor } if *retry_after > FLOOR_FAR => {
                self.log_floor(floor, retry_after);
            }
            lack if self.lack_log.is_new(lack) => {
                info!(wait_s = retry_after.as_secs(), "{refusal}");
            }
            _ => {}
        }
    }

    /// Logs the fleet's floor if it is so far ahead that no node with a correct clock can have set
    /// it.
    fn log_floor(&mut self, floor: &UnixNanos, retry_after: &Duration) {
        if self.floor_told == *floor {
            return;
        }
        self.floor_told = *floor;
        warn!(
            floor = %floor,
            wait_s = retry_after.as_secs(),
            "this node mints nothing for {} s: the fleet begins at {floor}; if it was founded or fenced with a clock \
             that was ahead, see docs/FLEET.md, \"A fleet that begins too late\"",
            retry_after.as_secs()
        );
    }

    /// Logs when the fleet's clocks start or stop contradicting this node's clock.
    fn log_clock(&mut self) {
        let refusal = self.slots.clock_refusal();
        match &refusal {
            Some(refusal) if self.is_clock_right => {
                warn!(
                    "{refusal}; this node mints no sequenced ids until the wrong clock is corrected"
                );
            }
            None if !self.is_clock_right => {
                info!("the clock of this node agrees with the clocks of the fleet again")
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
            info!(
                "the loss of writes in etcd is over: etcd has them again, or an operator fenced the fleet"
            );
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
