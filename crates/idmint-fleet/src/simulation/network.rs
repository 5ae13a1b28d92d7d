//! The coordinator, and the network between it and the nodes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::faults::{Dice, Weather};
use super::mistake::Mistake;
use crate::agreement::{Agreement, OwnLayout};
use crate::fleet_keys::FleetKeys;
use crate::nonce::Nonce;
use crate::slot_lease::{Reply, Request};
use crate::stored::{FleetMeta, HorizonRecord};
use crate::{Coordinator, CoordinatorError, Lease, MemoryCoordinator, Outcome, Snapshot};
use idmint_core::time::UnixNanos;
use idmint_storage::SlotShare;

/// The timeout of a node's request.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The number of earlier states that a stale read may return.
const HISTORY: usize = 12;

/// Identifies a request by the index of its node and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) node: usize,
    pub(super) message: u64,
}

/// A message in transit. Messages are kept in a map that is ordered by arrival time.
#[derive(Debug)]
enum Parcel {
    /// A request to the coordinator. `answer_after` is `None` if no node waits for the response,
    /// which is then dropped.
    Request {
        request: Request,
        answer_after: Option<(Address, Duration)>,
    },
    /// A reply to a node.
    Reply { to: Address, reply: Reply },
}

/// A copy of the coordinator's store. After a restore, its leases last for their full time again.
#[derive(Default)]
pub(super) struct Backup {
    pub(super) store: MemoryCoordinator,
    leases: BTreeMap<i64, Duration>,
}

/// Counts of network faults.
#[derive(Debug, Default, Clone)]
pub(super) struct Mishaps {
    pub(super) lost_requests: u64,
    pub(super) lost_answers: u64,
    pub(super) late: u64,
    pub(super) doubled: u64,
    pub(super) stale_reads: u64,
    pub(super) leases_ended: u64,
    pub(super) leaderless: u64,
    pub(super) full: u64,
}

/// The coordinator, and all messages in transit. All times are true times since the run began.
pub(super) struct Network {
    pub(super) dice: Dice,
    pub(super) weather: Weather,
    pub(super) mishaps: Mishaps,
    pub(super) store: Arc<MemoryCoordinator>,
    /// How many nodes, counted from the first one, are cut off from the coordinator, and the time
    /// at which they can reach it again.
    cut: (usize, Duration),
    keys: FleetKeys,
    lease_time: BTreeMap<i64, (Duration, Duration)>,
    history: VecDeque<Snapshot>,
    on_the_way: BTreeMap<(Duration, u64), Parcel>,
    sent: u64,
}

impl Network {
    pub(super) fn new(dice: Dice, keys: FleetKeys) -> Network {
        Network {
            dice,
            weather: Weather::Calm,
            mishaps: Mishaps::default(),
            store: Arc::default(),
            cut: (0, Duration::ZERO),
            keys,
            lease_time: BTreeMap::new(),
            history: VecDeque::new(),
            on_the_way: BTreeMap::new(),
            sent: 0,
        }
    }

    /// Sends a request and draws its fate at random.
    pub(super) fn send(&mut self, now: Duration, from: Address, request: Request) {
        let no_answer = Reply::Failed(CoordinatorError::NoAnswer("timeout".to_owned()));
        if from.node < self.cut.0 && now < self.cut.1 {
            return self.put(
                now + TIMEOUT,
                Parcel::Reply {
                    to: from,
                    reply: no_answer,
                },
            );
        }
        let there = match self.weather {
            Weather::Rough => self.dice.millis(1, 700),
            _ => self.dice.millis(1, 30),
        };
        let late = self.dice.millis(1_000, 90_000);
        let trouble = match self.weather {
            Weather::Calm => self.dice.below(100),
            Weather::Rough => self.dice.below(25),
            // Without a leader, most requests are lost. Some are done once the cluster has a leader
            // again.
            Weather::Leaderless => {
                self.mishaps.leaderless += 1;
                self.dice.below(3)
            }
            Weather::Full if matches!(request, Request::Commit(_)) => {
                self.mishaps.full += 1;
                let reply = Reply::Failed(CoordinatorError::Full("no space".to_owned()));
                return self.put(now + there, Parcel::Reply { to: from, reply });
            }
            Weather::Full => 50,
        };
        match trouble {
            0 => {
                self.mishaps.lost_requests += 1;
                self.put(
                    now + TIMEOUT,
                    Parcel::Reply {
                        to: from,
                        reply: no_answer,
                    },
                );
            }
            1 => {
                self.mishaps.late += 1;
                self.put(
                    now + late,
                    Parcel::Request {
                        request,
                        answer_after: None,
                    },
                );
                self.put(
                    now + TIMEOUT,
                    Parcel::Reply {
                        to: from,
                        reply: no_answer,
                    },
                );
            }
            2 if self.weather == Weather::Leaderless => {
                let reply = Reply::Failed(CoordinatorError::NotSent("no leader".to_owned()));
                self.put(now + there, Parcel::Reply { to: from, reply });
            }
            2 => {
                self.mishaps.lost_answers += 1;
                self.put(
                    now + there,
                    Parcel::Request {
                        request,
                        answer_after: None,
                    },
                );
                self.put(
                    now + TIMEOUT,
                    Parcel::Reply {
                        to: from,
                        reply: no_answer,
                    },
                );
            }
            3 => {
                self.mishaps.doubled += 1;
                self.put(
                    now + late,
                    Parcel::Request {
                        request: request.clone(),
                        answer_after: None,
                    },
                );
                self.deliver(now, there, from, request, no_answer);
            }
            _ => self.deliver(now, there, from, request, no_answer),
        }
    }

    fn deliver(
        &mut self,
        now: Duration,
        there: Duration,
        from: Address,
        request: Request,
        no_answer: Reply,
    ) {
        let back = self.dice.millis(
            1,
            if self.weather == Weather::Rough {
                700
            } else {
                30
            },
        );
        let in_time = there + back < TIMEOUT;
        let answer_after = in_time.then_some((from, back));
        self.put(
            now + there,
            Parcel::Request {
                request,
                answer_after,
            },
        );
        if !in_time {
            self.mishaps.lost_answers += 1;
            self.put(
                now + TIMEOUT,
                Parcel::Reply {
                    to: from,
                    reply: no_answer,
                },
            );
        }
    }

    fn put(&mut self, at: Duration, parcel: Parcel) {
        self.sent += 1;
        self.on_the_way.insert((at, self.sent), parcel);
    }

    /// Handles all messages that arrive up to `now`, and returns the replies for the nodes.
    pub(super) fn arrive(&mut self, now: Duration) -> Vec<(Address, Reply)> {
        self.end_leases(now);
        let mut replies = Vec::new();
        while let Some(entry) = self
            .on_the_way
            .first_entry()
            .filter(|entry| entry.key().0 <= now)
        {
            let at = entry.key().0;
            match entry.remove() {
                Parcel::Reply { to, reply } => replies.push((to, reply)),
                Parcel::Request {
                    request,
                    answer_after,
                } => {
                    let reply = self.serve(at, &request);
                    if let Some((to, back)) = answer_after {
                        self.put(at + back, Parcel::Reply { to, reply });
                    }
                }
            }
        }
        replies
    }

    fn serve(&mut self, now: Duration, request: &Request) -> Reply {
        if let Request::Read(ranges) = request
            && *ranges == self.keys.all_slots()
            && !self.history.is_empty()
            && self.dice.per_mille(if self.weather == Weather::Rough {
                300
            } else {
                20
            })
        {
            self.mishaps.stale_reads += 1;
            let at = self
                .dice
                .below(u64::try_from(self.history.len()).expect("a short list"));
            return Reply::Read(
                self.history[usize::try_from(at).expect("its place in a list")].clone(),
            );
        }
        let reply = request.send(&*self.store);
        match (request, &reply) {
            (Request::Grant(lasts), Reply::Granted(lease)) => {
                self.lease_time.insert(lease.0, (*lasts, now + *lasts));
            }
            (Request::KeepAlive(lease), Reply::KeptAlive(true)) => {
                let (lasts, ends) = self
                    .lease_time
                    .get_mut(&lease.0)
                    .expect("a lease that was granted");
                *ends = now + *lasts;
            }
            (Request::Commit(_), Reply::Outcome(Outcome::Committed(_))) => {
                let snapshot = self
                    .store
                    .read(&self.keys.all_slots())
                    .expect("memory answers");
                if self.history.len() == HISTORY {
                    self.history.pop_front();
                }
                self.history.push_back(snapshot);
            }
            _ => {}
        }
        reply
    }

    /// Stops the coordinator, restores a backup, and starts it again. All messages in transit are
    /// lost.
    pub(super) fn restore(&mut self, now: Duration, backup: &Backup) {
        self.store.restore(&backup.store);
        self.history.clear();
        self.lease_time = backup
            .leases
            .iter()
            .map(|(lease, lasts)| (*lease, (*lasts, now + *lasts)))
            .collect();
        for parcel in std::mem::take(&mut self.on_the_way).into_values() {
            let to = match parcel {
                Parcel::Reply { to, .. }
                | Parcel::Request {
                    answer_after: Some((to, _)),
                    ..
                } => to,
                Parcel::Request {
                    answer_after: None, ..
                } => continue,
            };
            let reply = Reply::Failed(CoordinatorError::NoAnswer("it was stopped".to_owned()));
            self.put(now + TIMEOUT, Parcel::Reply { to, reply });
        }
    }

    /// Wipes the coordinator's store. The first `cut` nodes cannot reach the coordinator until
    /// `until`.
    pub(super) fn wipe(&mut self, now: Duration, cut: usize, until: Duration) {
        self.restore(
            now,
            &Backup {
                store: MemoryCoordinator::default(),
                leases: BTreeMap::new(),
            },
        );
        self.cut = (cut, until);
    }

    pub(super) fn back_up(&self) -> Backup {
        let leases = self
            .lease_time
            .iter()
            .map(|(lease, (lasts, _))| (*lease, *lasts))
            .collect();
        Backup {
            store: self.store.copy(),
            leases,
        }
    }

    fn end_leases(&mut self, now: Duration) {
        let ended: Vec<i64> = self
            .lease_time
            .iter()
            .filter(|(_, (_, ends))| *ends <= now)
            .map(|(lease, _)| *lease)
            .collect();
        for lease in ended {
            self.lease_time.remove(&lease);
            self.store.end_lease(Lease(lease));
        }
    }

    /// Adopts a single node that has stopped minting. That node has minted for a period of length
    /// `lasts`, which begins after all times for which the fleet may have minted. Returns the start
    /// and the end of that period. Requests in transit reach the store only after the adoption.
    pub(super) fn adopt(
        &mut self,
        share: SlotShare,
        now: UnixNanos,
        lasts: Duration,
        mistake: Mistake,
    ) -> (UnixNanos, UnixNanos) {
        let snapshot = self
            .store
            .read(&self.keys.all_slots())
            .expect("memory answers");
        let [meta, horizons, ..] = snapshot.ranges.as_slice() else {
            panic!("all slots are three ranges")
        };
        let records = horizons
            .iter()
            .map(|entry| HorizonRecord::from_bytes(&entry.value).expect("it is whole"));
        // The period begins at or above the fleet's floor, because a fence sets the floor above all
        // earlier ids.
        let floor = meta.first().map(|entry| {
            FleetMeta::from_bytes(&entry.value)
                .expect("it is whole")
                .floor
        });
        let from = records
            .map(|record| record.horizon)
            .chain(floor)
            .fold(now, UnixNanos::max);
        let until = from.after(lasts);
        let layout = OwnLayout {
            share,
            formats: Vec::new(),
        };
        let fleet = Nonce::new(self.dice.bits());
        let raised = match layout.compare_above(until, None, &self.keys, meta.first(), now, fleet) {
            Ok(Agreement::ToWrite(transaction)) => transaction,
            // The floor is already at `until`. As the period begins at or above the floor, this
            // happens only if `lasts` is 0.
            Ok(Agreement::Agreed(_)) => return (from, until),
            Err(error) => panic!("all nodes are alike: {error}"),
        };
        let transaction = mistake.of_floor(raised, until, &self.keys, &*self.store);
        let outcome = self.store.commit(&transaction).expect("memory answers");
        assert!(
            matches!(outcome, Outcome::Committed(_)),
            "nobody writes at the same time"
        );
        (from, until)
    }

    /// Ends a random lease early.
    pub(super) fn revoke_a_lease(&mut self) {
        let Some(count) = u64::try_from(self.lease_time.len())
            .ok()
            .filter(|count| *count > 0)
        else {
            return;
        };
        let at = usize::try_from(self.dice.below(count)).expect("its place in a list");
        let lease = *self.lease_time.keys().nth(at).expect("it is one of them");
        self.mishaps.leases_ended += 1;
        self.lease_time.remove(&lease);
        self.store.end_lease(Lease(lease));
    }
}
