//! A model of the slot lease protocol (`crates/idmint-fleet/src/slot_lease/`). The model has two
//! processes and one slot, and tries every order of all possible events.
//!
//! A read may return any earlier state. Once a request is sent, it may be executed at any later
//! time, repeatedly, or never. Its response may also arrive at any time, if the process still waits
//! for it. A lease may end at any time. A process may be killed, and restart with a clock that
//! shows any time. Any other event may happen between two ticks of a clock, so the clocks may
//! differ by any amount. The model has no deadlines. A process mints every id that it may mint as
//! early as possible, which is the worst case. [`Bounds`] limits the exploration.

use std::collections::BTreeSet;

use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::store::{Place, Request, Revision, Snapshot, Store, Tick, Write};

/// The number of ticks above the clock to which a process raises the horizon.
const WINDOW: Tick = 2;

/// The property that must hold in every state.
const UNIQUE: &str = "no id is minted twice";

/// The bounds of the exploration.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// The last tick of any clock.
    ticks: Tick,
    /// The number of requests that a process sends in total, including after restarts.
    attempts: u8,
    /// The number of writes to the store.
    revisions: Revision,
    /// The number of times that processes are killed.
    crashes: u8,
}

/// A deliberate mistake in the processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    /// A renewal does not compare the revision of the horizon.
    RenewsWithoutComparing,
    /// A process that takes a slot starts at its own clock, and ignores the slot's horizon.
    StartsAtOwnClock,
    /// A process that releases a slot lowers the horizon to its own clock.
    LowersHorizonAtShutdown,
    /// A process treats a renewal without a response as committed if it reads a later horizon.
    BelievesARead,
}

struct Protocol {
    bounds: Bounds,
    mistake: Mistake,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    store: Store,
    processes: [Process; 2],
    /// All requests that were sent and can still be executed, or whose response a process waits
    /// for.
    sent: BTreeSet<Request>,
    /// All responses that a process waits for. Each has its request, `true` if the request was
    /// executed, and the state of the store at that time.
    answered: BTreeSet<(Request, bool, Snapshot)>,
    /// The minted ids as a bitmap, with one bit per tick.
    minted: u32,
    has_minted_twice: bool,
    seen: Seen,
}

/// Events that have occurred at least once on the path to a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Seen {
    /// The processes that have minted, as a bitmap.
    minted_by: u8,
    fenced: bool,
    adopted: bool,
    reclaimed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Process {
    clock: Tick,
    attempts: u8,
    crashes: u8,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    Looking,
    Acquiring { request: Request, start: Tick },
    Holding(Holding),
    Dead,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Holding {
    /// The next tick for which to mint an id.
    next: Tick,
    /// The acknowledged horizon.
    horizon: Tick,
    revision: Revision,
    /// The write that created the holder's key, or 0 if the process knows that the key is gone.
    created: Revision,
    pending: Option<Request>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Action {
    /// A clock advances by one tick.
    Tick(Place),
    /// A process reads the state at this index of the history. If the slot is free, the process
    /// requests it.
    Look(Place, usize),
    /// A holder requests a later horizon. If its key is gone, the holder requests the key again.
    Renew(Place),
    /// A holder shuts down and releases its slot.
    Release(Place),
    Crash(Place),
    /// A process restarts with a clock that shows this tick.
    Start(Place, Tick),
    /// The store executes a request, which may have been executed before.
    Do(Request),
    /// A process receives a response.
    Answer(Request, bool, Snapshot),
    /// The lease of the slot ends.
    EndLease,
}

impl Protocol {
    /// Returns a unique number for the next request of a process.
    fn attempt_of(process: &Process, place: Place) -> u8 {
        1 + process.attempts * 2 + place
    }

    fn acquire(&self, process: &Process, place: Place, found: Snapshot) -> (Request, Tick) {
        let start = match self.mistake {
            Mistake::StartsAtOwnClock => process.clock,
            _ => process.clock.max(found.horizon),
        };
        let request = Request {
            from: place,
            attempt: Protocol::attempt_of(process, place),
            write: Write::Hold,
            horizon: start + WINDOW,
            horizon_revision: Some(found.horizon_revision),
            holder_created: Some(0),
        };
        (request, start)
    }

    fn renew(&self, process: &Process, place: Place, holding: &Holding) -> Request {
        let is_careless = self.mistake == Mistake::RenewsWithoutComparing;
        Request {
            from: place,
            attempt: Protocol::attempt_of(process, place),
            write: if holding.created == 0 {
                Write::Hold
            } else {
                Write::Renew
            },
            horizon: holding.horizon.max(process.clock + WINDOW),
            horizon_revision: (!is_careless).then_some(holding.revision),
            holder_created: (!is_careless).then_some(holding.created),
        }
    }

    fn release(&self, process: &Process, place: Place, holding: &Holding) -> Request {
        let lowers = self.mistake == Mistake::LowersHorizonAtShutdown;
        Request {
            from: place,
            attempt: Protocol::attempt_of(process, place),
            write: if lowers {
                Write::ReleaseAndLower
            } else {
                Write::Release
            },
            horizon: if lowers { process.clock } else { 0 },
            horizon_revision: None,
            holder_created: Some(holding.created),
        }
    }

    /// Returns the next phase of a process that receives a response to its pending request.
    fn learn(
        &self,
        phase: Phase,
        request: Request,
        is_done: bool,
        found: Snapshot,
        seen: &mut Seen,
    ) -> Phase {
        let is_own = found.attempt == request.attempt;
        match phase {
            Phase::Acquiring {
                request: asked,
                start,
            } if asked == request => {
                seen.adopted |= !is_done && is_own;
                if !is_done && !is_own {
                    return Phase::Looking;
                }
                let revision = found.horizon_revision;
                let (next, horizon) = (start, request.horizon);
                Phase::Holding(Holding {
                    next,
                    horizon,
                    revision,
                    created: revision,
                    pending: None,
                })
            }
            Phase::Holding(holding) if holding.pending == Some(request) => {
                let is_believed = self.mistake == Mistake::BelievesARead
                    && found.horizon_revision > holding.revision;
                if is_done || is_own || is_believed {
                    let is_reclaim = request.write == Write::Hold;
                    seen.adopted |= !is_done && is_own;
                    seen.reclaimed |= is_reclaim;
                    let created = if is_reclaim {
                        found.horizon_revision
                    } else {
                        holding.created
                    };
                    let (horizon, revision) = (request.horizon, found.horizon_revision);
                    return Phase::Holding(Holding {
                        horizon,
                        revision,
                        created,
                        pending: None,
                        ..holding
                    });
                }
                let is_as_it_was = found.horizon_revision == holding.revision;
                if is_as_it_was && found.holder_created == 0 && holding.created != 0 {
                    return Phase::Holding(Holding {
                        created: 0,
                        pending: None,
                        ..holding
                    });
                }
                seen.fenced = true;
                Phase::Looking
            }
            phase => phase,
        }
    }
}

impl State {
    /// Mints all ids that a process may mint at this point.
    fn mint(&mut self, place: Place) {
        let process = &mut self.processes[usize::from(place)];
        let Phase::Holding(holding) = &mut process.phase else {
            return;
        };
        for tick in holding.next.max(process.clock)..holding.horizon {
            self.has_minted_twice |= self.minted & (1 << tick) != 0;
            self.minted |= 1 << tick;
            self.seen.minted_by |= 1 << place;
            holding.next = tick + 1;
        }
    }

    /// Removes entries that can no longer have an effect: responses that no process waits for, and
    /// requests whose comparisons can never succeed again.
    fn forget(&mut self) {
        let processes = self.processes;
        let is_waited_for = |request: &Request| match processes[usize::from(request.from)].phase {
            Phase::Acquiring { request: asked, .. } => asked == *request,
            Phase::Holding(holding) => holding.pending == Some(*request),
            Phase::Looking | Phase::Dead => false,
        };
        self.answered.retain(|(request, ..)| is_waited_for(request));
        self.sent
            .retain(|request| is_waited_for(request) || self.store.may_yet_allow(request));
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let process = Process {
            clock: 0,
            attempts: 0,
            crashes: 0,
            phase: Phase::Looking,
        };
        vec![State {
            store: Store::new(),
            processes: [process; 2],
            sent: BTreeSet::new(),
            answered: BTreeSet::new(),
            minted: 0,
            has_minted_twice: false,
            seen: Seen::default(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (process, place) in state.processes.iter().zip(0..) {
            let can_ask = process.attempts < self.bounds.attempts;
            if process.phase != Phase::Dead && process.clock < self.bounds.ticks {
                actions.push(Action::Tick(place));
            }
            if process.phase != Phase::Dead && process.crashes < self.bounds.crashes {
                actions.push(Action::Crash(place));
            }
            match process.phase {
                Phase::Looking if can_ask => {
                    let free = state
                        .store
                        .history
                        .iter()
                        .enumerate()
                        .filter(|(_, found)| found.holder_created == 0);
                    actions.extend(free.map(|(at, _)| Action::Look(place, at)));
                }
                Phase::Holding(holding) => {
                    if holding.pending.is_none() && can_ask {
                        actions.push(Action::Renew(place));
                    }
                    if holding.created != 0 && can_ask {
                        actions.push(Action::Release(place));
                    }
                }
                Phase::Dead => {
                    actions.extend((0..=process.clock).map(|clock| Action::Start(place, clock)))
                }
                Phase::Looking | Phase::Acquiring { .. } => {}
            }
        }
        let can_write = state.store.revision() < self.bounds.revisions;
        actions.extend(
            state
                .sent
                .iter()
                .filter(|sent| can_write || !state.store.allows(sent))
                .copied()
                .map(Action::Do),
        );
        if can_write && state.store.now().holder_created != 0 {
            actions.push(Action::EndLease);
        }
        let answers = state.answered.iter();
        actions.extend(
            answers.map(|(request, is_done, found)| Action::Answer(*request, *is_done, *found)),
        );
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        let place_of = |place: Place| usize::from(place);
        match action {
            Action::Tick(place) => state.processes[place_of(place)].clock += 1,
            Action::Crash(place) => {
                let process = &mut state.processes[place_of(place)];
                process.crashes += 1;
                process.phase = Phase::Dead;
            }
            Action::Start(place, clock) => {
                let process = &mut state.processes[place_of(place)];
                (process.clock, process.phase) = (clock, Phase::Looking);
            }
            Action::Look(place, at) => {
                let process = &mut state.processes[place_of(place)];
                let (request, start) = self.acquire(process, place, state.store.history[at]);
                process.attempts += 1;
                process.phase = Phase::Acquiring { request, start };
                state.sent.insert(request);
            }
            Action::Renew(place) | Action::Release(place) => {
                let process = &mut state.processes[place_of(place)];
                let Phase::Holding(holding) = process.phase else {
                    return None;
                };
                let is_renewal = matches!(action, Action::Renew(_));
                let request = match is_renewal {
                    true => self.renew(process, place, &holding),
                    false => self.release(process, place, &holding),
                };
                process.attempts += 1;
                process.phase = match is_renewal {
                    true => Phase::Holding(Holding {
                        pending: Some(request),
                        ..holding
                    }),
                    false => Phase::Looking,
                };
                state.sent.insert(request);
            }
            Action::Do(request) => {
                let (is_done, found) = state.store.commit(&request);
                state.answered.insert((request, is_done, found));
            }
            Action::Answer(request, is_done, found) => {
                let process = &mut state.processes[place_of(request.from)];
                process.phase = self.learn(process.phase, request, is_done, found, &mut state.seen);
                state.mint(request.from);
            }
            Action::EndLease => state.store.end_lease(),
        }
        state.forget();
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Protocol>> {
        vec![
            Property::always(UNIQUE, |_, state: &State| !state.has_minted_twice),
            Property::sometimes("both processes mint", |_, state: &State| {
                state.seen.minted_by == 0b11
            }),
            Property::sometimes("a holder is fenced", |_, state: &State| state.seen.fenced),
            Property::sometimes(
                "a request without an answer is adopted",
                |_, state: &State| state.seen.adopted,
            ),
            Property::sometimes("a lost key is put again", |_, state: &State| {
                state.seen.reclaimed
            }),
        ]
    }
}

/// The bounds for `make test`. The first set has no kills. The second set has kills, and smaller
/// bounds to make up for them.
const FEW: [Bounds; 2] = [
    Bounds {
        ticks: 2,
        attempts: 3,
        revisions: 4,
        crashes: 0,
    },
    Bounds {
        ticks: 1,
        attempts: 2,
        revisions: 4,
        crashes: 1,
    },
];

/// The bounds for `make torture`.
const MANY: [Bounds; 2] = [
    Bounds {
        ticks: 3,
        attempts: 3,
        revisions: 4,
        crashes: 0,
    },
    Bounds {
        ticks: 2,
        attempts: 2,
        revisions: 4,
        crashes: 1,
    },
];

#[test]
fn no_order_of_events_mints_an_id_twice() {
    let all = if std::env::var_os("MODEL_MANY").is_some() {
        MANY
    } else {
        FEW
    };
    for bounds in all {
        let checker = Protocol {
            bounds,
            mistake: Mistake::None,
        }
        .checker()
        .threads(2)
        .spawn_bfs()
        .join();
        println!(
            "{} states of {bounds:?}, all of them",
            checker.unique_state_count()
        );
        checker.assert_no_discovery(UNIQUE);
        assert!(
            checker.is_done() && checker.unique_state_count() > 100_000,
            "{bounds:?}"
        );
        if bounds.attempts >= 3 {
            // `assert_properties` also asserts that each kind of event occurs. With fewer than
            // three requests, a process cannot take a slot and create its key again after the key
            // is gone.
            checker.assert_properties();
        }
    }
}

/// Checks that the model finds each deliberate mistake. Otherwise, a model without findings would
/// prove nothing.
#[test]
fn every_deliberate_mistake_is_found() {
    for mistake in [
        Mistake::RenewsWithoutComparing,
        Mistake::StartsAtOwnClock,
        Mistake::LowersHorizonAtShutdown,
        Mistake::BelievesARead,
    ] {
        let checker = Protocol {
            bounds: FEW[0],
            mistake,
        }
        .checker()
        .threads(2);
        let checker = checker
            .finish_when(HasDiscoveries::AnyFailures)
            .spawn_bfs()
            .join();
        let steps = checker
            .discovery(UNIQUE)
            .unwrap_or_else(|| panic!("{mistake:?} is not found"));
        println!("{mistake:?}: {:?}", steps.into_actions());
    }
}
