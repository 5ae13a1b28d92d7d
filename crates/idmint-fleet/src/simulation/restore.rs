//! Simulates a coordinator that is restored from a backup while nodes run. Then the operator fences
//! the fleet.

use std::time::Duration;

use super::faults::Dice;
use super::mistake::Mistake;
use super::network::{Backup, Network};
use super::node::{CLOCK, Condition, Node, WINDOW, entropy, keys};
use super::world::BEGINS;
use crate::high_water::HighWater;
use crate::nonce::Nonce;
use crate::operation::{FenceRule, fence_restored};
use crate::slot_lease::UnseenNodes;
use crate::stored::{FleetMeta, HorizonRecord, ceil_to_millis};
use crate::{Coordinator, FleetEra, JournalledFleet, MemoryCoordinator, Range, Transaction, Write};
use idmint_core::time::UnixNanos;
use idmint_storage::SlotShare;

/// The longest time for which a fence may keep nodes with correct clocks from minting.
const WAIT_MAX: Duration = Duration::from_hours(2);

/// A planned restore of the coordinator and its progress. Times are true times since the run began.
pub(super) enum Restore {
    /// No restore is planned.
    None,
    /// The backup will be made.
    Planned { copied_at: Duration },
    /// The backup was made, and will be restored.
    Copied {
        backup: Box<Backup>,
        restored_at: Duration,
        journals: Journals,
    },
    /// The backup was restored, and the operator will fence the fleet.
    Restored {
        fenced_at: Duration,
        carried_at: Duration,
        backup: Box<Backup>,
        journals: Journals,
    },
}

/// Copies of the coordinator just before each restore, which stand in for the nodes' journals. Lost
/// records are recovered from the copy of the latest era.
type Journals = Vec<(FleetEra, MemoryCoordinator)>;

/// The last step of a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    Nothing,
    Restored,
    Fenced,
    /// The operator has fenced the fleet without importing the nodes' journals. All records since
    /// the backup are lost.
    FencedWithoutJournals,
}

impl Restore {
    /// Plans a restore with a probability of 40 percent.
    pub(super) fn draw(dice: &mut Dice) -> Restore {
        let copied_at = dice.millis(15_000, 70_000);
        if dice.per_mille(400) {
            Restore::Planned { copied_at }
        } else {
            Restore::None
        }
    }

    /// `true` from the restore of the coordinator until the operator has fenced the fleet. In that
    /// time a node may crash, but no node is started or told to shut down.
    pub(super) fn is_under_way(&self) -> bool {
        matches!(self, Restore::Restored { .. })
    }

    /// `true` from the backup until the operator has fenced the fleet after the last restore. A
    /// restore may undo all writes of that time.
    pub(super) fn loses_what_is_new(&self) -> bool {
        matches!(self, Restore::Copied { .. } | Restore::Restored { .. })
    }

    /// Performs the steps of the restore that are due.
    pub(super) fn act(
        &mut self,
        at: Duration,
        (share, is_twice): (SlotShare, bool),
        dice: &mut Dice,
        network: &mut Network,
        (nodes, mistake): (&[Node], Mistake),
    ) -> Result<Done, String> {
        if let Restore::Restored {
            journals,
            carried_at,
            ..
        } = self
            && at >= *carried_at
        {
            let (_, before) = journals.last().expect("it was restored");
            while network.store.revision() <= before.revision() {
                put(&network.store, "/others".to_owned(), Vec::new());
            }
        }
        self.go_on(at, (share, is_twice), dice, network, (nodes, mistake))
    }

    fn go_on(
        &mut self,
        at: Duration,
        (share, is_twice): (SlotShare, bool),
        dice: &mut Dice,
        network: &mut Network,
        (nodes, mistake): (&[Node], Mistake),
    ) -> Result<Done, String> {
        match self {
            Restore::Planned { copied_at } if at >= *copied_at => {
                let restored_at = at + dice.millis(1_000, 40_000);
                if dice.per_mille(400) {
                    burn_a_slot(network, BEGINS.after(at), share);
                }
                if is_twice {
                    raise_the_floor_far(network, BEGINS.after(at));
                }
                *self = Restore::Copied {
                    backup: Box::new(network.back_up()),
                    restored_at,
                    journals: Vec::new(),
                };
                Ok(Done::Nothing)
            }
            Restore::Copied {
                backup,
                restored_at,
                journals,
            } if at >= *restored_at && is_known_by_all(backup, nodes) => {
                journals.push((era_of(&network.store), network.store.copy()));
                network.restore(at, backup);
                let carried_at = at
                    + if dice.per_mille(500) {
                        dice.millis(0, 3_000)
                    } else {
                        dice.millis(60_000, 60_000)
                    };
                *self = Restore::Restored {
                    fenced_at: at + dice.millis(100, 20_000),
                    carried_at,
                    backup: std::mem::take(backup),
                    journals: std::mem::take(journals),
                };
                Ok(Done::Restored)
            }
            Restore::Restored {
                fenced_at,
                backup,
                journals,
                ..
            } if at >= *fenced_at => {
                let is_without = is_twice && journals.len() == 1;
                let latest = journals.iter().max_by_key(|(era, _)| match mistake {
                    Mistake::OrdersErasByFloor => FleetEra { fences: 0, ..*era },
                    _ => *era,
                });
                let mut of_journals = JournalledFleet::default();
                if let Some((era, before)) = latest.filter(|_| !is_without) {
                    // Import the nodes' journals before the fence, as the documentation tells the
                    // operator.
                    bring_back_records(&network.store, before);
                    of_journals.fences = era.fences;
                }
                *self = match is_without {
                    true => Restore::Copied {
                        backup: std::mem::take(backup),
                        restored_at: at + dice.millis(10_000, 40_000),
                        journals: std::mem::take(journals),
                    },
                    false => Restore::None,
                };
                let high_waters: Vec<HighWater> =
                    nodes.iter().map(|node| node.high_water().clone()).collect();
                let unseen = UnseenNodes {
                    window: WINDOW,
                    ahead_max: CLOCK.max_ahead,
                };
                let rule = FenceRule {
                    share,
                    unseen,
                    journals: of_journals,
                    formats: Vec::new(),
                    holds_numbers: false,
                    is_clock_trusted: true,
                };
                let now = BEGINS.after(at);
                let fenced = fence_restored(
                    &*network.store,
                    &keys(),
                    &rule,
                    &high_waters,
                    now,
                    &mut entropy(dice),
                );
                let mut fenced = fenced.expect("memory answers, and one slot at most is far ahead");
                if mistake == Mistake::FencesAboveEveryHorizon {
                    fenced.floor = fenced
                        .floor
                        .max(fenced.far.first().map_or(now, |(_, horizon)| *horizon));
                }
                match fenced.floor.since(now) {
                    wait if wait > WAIT_MAX => {
                        Err(format!("the fence holds up everybody for {wait:?}"))
                    }
                    _ if is_without => Ok(Done::FencedWithoutJournals),
                    _ => Ok(Done::Fenced),
                }
            }
            _ => Ok(Done::Nothing),
        }
    }
}

/// Returns the current era of the fleet in a store.
fn era_of(store: &MemoryCoordinator) -> FleetEra {
    meta_of(store).map_or(FleetEra::default(), |meta| FleetEra {
        fences: meta.fences,
        floor: meta.floor,
        origin: meta.origin().bits(),
    })
}

fn meta_of(store: &MemoryCoordinator) -> Option<FleetMeta> {
    let meta = [Range::one(keys().meta())];
    let mut found = store.read(&meta).expect("memory answers").ranges.remove(0);
    let entry = found.pop()?;
    Some(FleetMeta::from_bytes(&entry.value).expect("it is whole"))
}

/// Sets the fleet's floor 400 days ahead, as a founder with a wrong clock would. Nodes that read
/// this floor wait until an operator fences the fleet.
fn raise_the_floor_far(network: &Network, now: UnixNanos) {
    if let Some(mut meta) = meta_of(&network.store) {
        meta.floor = ceil_to_millis(now.after(Duration::from_hours(24 * 400)));
        put(&network.store, keys().meta(), meta.to_bytes());
    }
}

/// Sets the horizon of a free slot 400 days ahead, as if a node with a wrong clock had held the
/// slot and left.
fn burn_a_slot(network: &Network, now: UnixNanos, share: SlotShare) {
    let snapshot = network
        .store
        .read(&keys().all_slots())
        .expect("memory answers");
    let [_, _, holders, ..] = snapshot.ranges.as_slice() else {
        panic!("all slots are three ranges")
    };
    let is_free = |slot: &u32| {
        holders
            .iter()
            .all(|holder| holder.key != keys().slot(*slot))
    };
    if let Some(slot) = share.iter().find(is_free) {
        let far = ceil_to_millis(now.after(Duration::from_hours(24 * 400)));
        let record = HorizonRecord::new(far, Nonce::new(0), Nonce::new(0), far);
        put(&network.store, keys().horizon(slot), record.to_bytes());
    }
}

/// Copies the ledgers, events and idempotency keys from `before`, which is the store just before
/// its restore.
fn bring_back_records(store: &MemoryCoordinator, before: &MemoryCoordinator) {
    let all = [Range::prefix("/idmint/v1/simulation/")];
    let is_record = |key: &str| {
        ["ledger", "event", "request"]
            .iter()
            .any(|kind| key.contains(&format!("/{kind}")))
    };
    let had = before.read(&all).expect("memory answers").ranges.remove(0);
    for entry in had.into_iter().filter(|entry| is_record(&entry.key)) {
        put(store, entry.key, entry.value);
    }
}

fn put(store: &MemoryCoordinator, key: String, value: Vec<u8>) {
    let write = vec![Write::put(key, value)];
    store
        .commit(&Transaction {
            write,
            ..Transaction::default()
        })
        .expect("memory answers");
}

/// `true` if each node that has not ended has an acknowledged write of its own key since the
/// backup. The restored store lacks this write, so the node can detect the restore. A node without
/// such a write is suspended or new, and is not guaranteed to detect it.
fn is_known_by_all(backup: &Backup, nodes: &[Node]) -> bool {
    let mut there = nodes
        .iter()
        .filter(|node| node.condition != Condition::Gone);
    there.all(|node| node.was_told_after(backup.store.revision()))
}
