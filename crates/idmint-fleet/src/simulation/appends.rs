//! Appends events to ledgers during a run, and checks that no later response or append contradicts
//! an acknowledged append.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::faults::Dice;
use super::mistake::Mistake;
use super::node::keys;
use super::world::BEGINS;
use crate::{
    Coordinator, CoordinatorError, FleetRecords, KnownFleet, Lease, MemoryCoordinator, Outcome,
    Range, Revision, Snapshot, Transaction, Write,
};
use idmint_core::time::UnixNanos;
use idmint_records::ledger::{EventId, Head, KeyHash, LedgerId};
use idmint_storage::samples::{append, at, create, plan};
use idmint_storage::{LedgerStore, Namespace, RecordPlan, RecordStore, RequestStore, WrittenDay};

/// The connection between a node's records and the coordinator. It may lose requests and responses.
struct Way {
    store: Arc<MemoryCoordinator>,
    dice: Mutex<Dice>,
    /// The highest revision that the node has seen so far. Used only with
    /// [`Mistake::LooksAtNoRevision`], to hide lower revisions from the node.
    told: Mutex<Revision>,
    mistake: Mistake,
}

/// Returns a node's record store on top of the simulated coordinator.
pub(super) fn records_on(
    store: &Arc<MemoryCoordinator>,
    known: &Arc<KnownFleet>,
    mistake: Mistake,
    dice: &mut Dice,
) -> FleetRecords {
    let (dice, told) = (Mutex::new(dice.split()), Mutex::default());
    let way = Way {
        store: Arc::clone(store),
        dice,
        told,
        mistake,
    };
    let namespace = Namespace::parse("simulation").expect("a name");
    FleetRecords::new(
        Arc::new(way),
        &namespace,
        Arc::clone(known),
        Arc::default(),
        7,
    )
}

/// Returns a record store for checks. It reads the coordinator directly, not through a simulated
/// node.
fn all_records(store: &Arc<MemoryCoordinator>) -> FleetRecords {
    let coordinator = Arc::clone(store) as Arc<dyn Coordinator>;
    let namespace = Namespace::parse("simulation").expect("a name");
    FleetRecords::new(coordinator, &namespace, Arc::default(), Arc::default(), 8)
}

impl Way {
    fn per_mille(&self, cases: u32) -> bool {
        self.dice
            .lock()
            .expect("no holder of this lock panics")
            .per_mille(cases)
    }

    fn told(&self, snapshot: Snapshot) -> Snapshot {
        if self.mistake != Mistake::LooksAtNoRevision {
            return snapshot;
        }
        let mut told = self.told.lock().expect("no holder of this lock panics");
        // A record store with this mistake does not notice the lower revisions of a restored
        // coordinator. Simulate that by raising the revision in each response above all earlier
        // ones.
        *told = snapshot.revision.max(told.next());
        Snapshot {
            revision: *told,
            ..snapshot
        }
    }
}

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Way")
    }
}

impl Coordinator for Way {
    fn commit(&self, transaction: &Transaction) -> Result<Outcome, CoordinatorError> {
        let no_answer = || CoordinatorError::NoAnswer("lost".to_owned());
        if self.per_mille(20) {
            return Err(no_answer());
        }
        let mut transaction = transaction.clone();
        if self.mistake == Mistake::ComparesNoOwnKey {
            transaction
                .compare
                .retain(|compare| keys().slot_of_horizon(compare.key()).is_none());
        }
        if self.mistake == Mistake::ComparesNoWaitingKey {
            transaction
                .compare
                .retain(|compare| !is_waiting(compare.key()));
        }
        let outcome = self.store.commit(&transaction)?;
        if self.per_mille(20) {
            return Err(no_answer());
        }
        Ok(match outcome {
            Outcome::Committed(snapshot) => Outcome::Committed(self.told(snapshot)),
            Outcome::Refused(snapshot) => Outcome::Refused(self.told(snapshot)),
        })
    }

    fn read(&self, ranges: &[Range]) -> Result<Snapshot, CoordinatorError> {
        self.store.read(ranges).map(|snapshot| self.told(snapshot))
    }

    fn grant(&self, lasts: Duration) -> Result<Lease, CoordinatorError> {
        self.store.grant(lasts)
    }

    fn keep_alive(&self, lease: Lease) -> Result<bool, CoordinatorError> {
        self.store.keep_alive(lease)
    }

    fn wait(&self, _pause: Duration) {}
}

/// The number of ledgers that the simulation creates first, each dated on a different day. It is
/// one more than the number of days for which idempotency keys are kept.
const LEDGERS: usize = 4;

const DAY_MICROS: u64 = 24 * 3600 * 1_000_000;

/// The ledgers of a run, and what callers know of them.
#[derive(Debug, Default)]
pub(super) struct Ledgers {
    /// The last acknowledged event of each ledger.
    acknowledged: BTreeMap<LedgerId, Head>,
    /// The idempotency keys of all acknowledged appends of this run, each with the last event of
    /// its append.
    answered: Vec<(KeyHash, EventId)>,
    keys: u128,
    pub(super) appended: u64,
    pub(super) refused: u64,
    pub(super) retried: u64,
    pub(super) swept: u64,
}

impl Ledgers {
    /// Simulates a caller that repeats a random acknowledged append. Idempotency keys are kept for
    /// 24 hours, and the run is shorter. So the key must still be known, unless data was lost and
    /// this node cannot detect the loss (`is_carried`).
    ///
    /// # Errors
    /// Returns an error if the key is no longer known, because the events would be appended twice.
    pub(super) fn retry(
        &mut self,
        records: &FleetRecords,
        is_carried: bool,
        dice: &mut Dice,
    ) -> Result<(), String> {
        let Some(nth) = dice
            .below(u64::try_from(self.answered.len()).expect("few") + 1)
            .checked_sub(1)
        else {
            return Ok(());
        };
        let (key, last) = self.answered[usize::try_from(nth).expect("few")];
        let Ok(found) = records.request(key) else {
            return Ok(());
        };
        self.retried += 1;
        if !is_carried && found.map(|done| done.last) != Some(last) {
            return Err(format!(
                "a request that was answered is known as {found:?} when it is sent again"
            ));
        }
        Ok(())
    }

    /// Forgets the acknowledged appends that are missing after a restore without journals. The
    /// simulated callers are told of this loss, so it is no error.
    pub(super) fn lose(&mut self, store: &Arc<MemoryCoordinator>) {
        let records = all_records(store);
        let there = |ledger: &LedgerId| records.head(*ledger).expect("memory answers");
        let heads = self
            .acknowledged
            .keys()
            .map(|ledger| (*ledger, there(ledger)));
        self.acknowledged = heads
            .filter_map(|(ledger, head)| Some((ledger, head?)))
            .collect();
        self.answered.clear();
    }

    /// Checks that the last acknowledged event of each ledger still exists.
    ///
    /// # Errors
    /// Returns an error if such an event is missing.
    pub(super) fn check(&self, store: &Arc<MemoryCoordinator>) -> Result<(), String> {
        let records = all_records(store);
        let is_lost = |head: &&Head| records.append(head.id).expect("memory answers").is_none();
        match self.acknowledged.values().find(is_lost) {
            Some(lost) => Err(format!(
                "the fence has lost {} in place {}",
                lost.id, lost.place
            )),
            None => Ok(()),
        }
    }

    /// Removes old idempotency keys at a node whose clock shows `now`.
    pub(super) fn forget(
        &mut self,
        records: &FleetRecords,
        now: UnixNanos,
        mistake: Mistake,
        store: &MemoryCoordinator,
    ) {
        if mistake == Mistake::SweepsByItsOwnClock {
            return forget_what_a_clock_calls_old(now, store);
        }
        let Ok(Some(judging_time)) = records.judging_time(now) else {
            return;
        };
        let since = at(judging_time.get() / 1_000 - DAY_MICROS);
        self.swept += u64::from(records.forget_requests(since, 100).unwrap_or_default());
    }

    /// Reads a ledger and appends to it at one node. `is_carried` is `true` if the coordinator has
    /// lost data, but later writes have raised its revision as high as the node had seen it. No
    /// read by the node can then detect the loss.
    ///
    /// # Errors
    /// Returns an error if the response contradicts an acknowledged append.
    pub(super) fn append(
        &mut self,
        records: &FleetRecords,
        now: UnixNanos,
        is_carried: bool,
        dice: &mut Dice,
    ) -> Result<(), String> {
        self.keys += 1;
        let micros = now.get() / 1_000;
        if self.acknowledged.len() < LEDGERS {
            // Create the ledgers on consecutive days, the last one today.
            let days_ago = u64::try_from(LEDGERS - 1 - self.acknowledged.len()).expect("few");
            let micros = micros - days_ago * DAY_MICROS;
            let genesis = plan(
                &create(&format!("ledger {}", self.keys), self.keys),
                None,
                micros,
            );
            if records
                .write(&[RecordPlan::Append(genesis.clone())])
                .is_ok()
            {
                self.acknowledged.insert(genesis.ledger(), genesis.head());
            }
            return Ok(());
        }
        let nth = usize::from(dice.per_mille(500));
        let (ledger, last) = self
            .acknowledged
            .iter()
            .nth(nth)
            .map(|(ledger, head)| (*ledger, *head))
            .expect("two");
        let Ok(head) = records.head(ledger) else {
            self.refused += 1;
            return Ok(());
        };
        let place = head.map_or(0, |head| head.place);
        if place < last.place && !is_carried {
            return Err(format!(
                "a ledger of {place} events was told of, of which {} are acknowledged",
                last.place
            ));
        }
        let Some(head) = head else { return Ok(()) };
        let next = plan(&append(ledger, &["a"], self.keys), Some(head), micros);
        match records.write(&[RecordPlan::Append(next.clone())]) {
            Ok(()) if next.head().place <= last.place => Err(format!(
                "an event was acknowledged in place {}, {} were before",
                next.head().place,
                last.place
            )),
            Ok(()) => {
                self.appended += 1;
                self.answered.push((KeyHash(self.keys), next.head().id));
                self.acknowledged.insert(ledger, next.head());
                Ok(())
            }
            Err(_) => {
                self.refused += 1;
                Ok(())
            }
        }
    }
}

/// `true` if this is the waiting key of a node, which it rewrites while it has no slot.
pub(super) fn is_waiting(key: &str) -> bool {
    key.contains("/waiting/")
}

/// Removes all idempotency keys if the run's first day ended at least 24 hours before `now`. A node
/// with this mistake relies on its own clock alone, which may be wrong.
fn forget_what_a_clock_calls_old(now: UnixNanos, store: &MemoryCoordinator) {
    let since = now.before(Duration::from_hours(24));
    if WrittenDay::of_clock(since) <= WrittenDay::of_clock(BEGINS) {
        return;
    }
    let keys = store
        .read(&[Range::prefix("/idmint/v1/simulation/request")])
        .expect("memory answers")
        .ranges
        .remove(0);
    for entry in keys {
        let write = vec![Write::Delete(entry.key)];
        store
            .commit(&Transaction {
                write,
                ..Transaction::default()
            })
            .expect("memory answers");
    }
}
