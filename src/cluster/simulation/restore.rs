//! A coordinator that is restored from a backup under running nodes, and the operator who fences it.

use std::time::Duration;

use super::faults::Dice;
use super::mistake::Mistake;
use super::network::{Backup, Network};
use super::node::{CLOCK, Condition, Node, WINDOW, entropy, keys};
use super::world::BEGINS;
use crate::cluster::high_water::HighWater;
use crate::cluster::nonce::Nonce;
use crate::cluster::operation::{FenceRule, fence_restored};
use crate::cluster::slot_lease::Unheard;
use crate::cluster::slot_share::SlotShare;
use crate::cluster::stored::{HorizonRecord, ceil_to_millis};
use crate::storage::{Coordinator, MemoryCoordinator, Range, Transaction, Write};
use crate::time::UnixNanos;

/// No fence makes nodes with right clocks wait for longer.
const WAIT_MAX: Duration = Duration::from_hours(2);

/// What is going to happen to the coordinator, by the true time.
pub(super) enum Restore {
    /// Nothing, or nothing any more.
    None,
    /// It is copied.
    Planned { copied_at: Duration },
    /// The copy is put back.
    Copied {
        backup: Box<Backup>,
        restored_at: Duration,
    },
    /// The operator has put it back, and is about to fence it. `before` is what it had then.
    Restored {
        fenced_at: Duration,
        carried_at: Duration,
        before: Box<MemoryCoordinator>,
    },
}

/// What has just been done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    Nothing,
    Restored,
    Fenced,
}

impl Restore {
    /// In two runs of five.
    pub(super) fn draw(dice: &mut Dice) -> Restore {
        let copied_at = dice.millis(15_000, 70_000);
        if dice.per_mille(400) {
            Restore::Planned { copied_at }
        } else {
            Restore::None
        }
    }

    /// Whether the operator is at work: nobody starts or ends a node meanwhile.
    pub(super) fn is_under_way(&self) -> bool {
        matches!(self, Restore::Restored { .. })
    }

    /// Whether something is written now that the restore takes away: there is a copy that does not have it.
    pub(super) fn loses_what_is_new(&self) -> bool {
        matches!(self, Restore::Copied { .. } | Restore::Restored { .. })
    }

    /// Does what is due.
    pub(super) fn act(
        &mut self,
        at: Duration,
        share: SlotShare,
        dice: &mut Dice,
        network: &mut Network,
        (nodes, mistake): (&[Node], Mistake),
    ) -> Result<Done, String> {
        if let Restore::Restored {
            before, carried_at, ..
        } = self
            && at >= *carried_at
        {
            while network.store.revision() <= before.revision() {
                put(&network.store, "/others".to_owned(), Vec::new());
            }
        }
        self.go_on(at, share, dice, network, (nodes, mistake))
    }

    fn go_on(
        &mut self,
        at: Duration,
        share: SlotShare,
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
                *self = Restore::Copied {
                    backup: Box::new(network.back_up()),
                    restored_at,
                };
                Ok(Done::Nothing)
            }
            Restore::Copied {
                backup,
                restored_at,
            } if at >= *restored_at && is_known_by_all(backup, nodes) => {
                let before = Box::new(network.store.copy());
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
                    before,
                };
                Ok(Done::Restored)
            }
            Restore::Restored {
                fenced_at, before, ..
            } if at >= *fenced_at => {
                // By the book all journals are there.
                bring_back_records(&network.store, before);
                *self = Restore::None;
                let high_waters: Vec<HighWater> =
                    nodes.iter().map(|node| node.high_water().clone()).collect();
                let unheard = Unheard {
                    window: WINDOW,
                    ahead_max: CLOCK.max_ahead,
                };
                let rule = FenceRule {
                    share,
                    unheard,
                    origin: None,
                    formats: Vec::new(),
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
                        .max(fenced.far.map_or(now, |(_, horizon)| horizon));
                }
                match fenced.floor.since(now) {
                    wait if wait > WAIT_MAX => {
                        Err(format!("the fence holds up everybody for {wait:?}"))
                    }
                    _ => Ok(Done::Fenced),
                }
            }
            _ => Ok(Done::Nothing),
        }
    }
}

/// A node whose clock was 400 days ahead has had a slot that nobody has now, and is gone.
fn burn_a_slot(network: &Network, now: UnixNanos, share: SlotShare) {
    let snapshot = network
        .store
        .read(&keys().all_slots())
        .expect("memory answers");
    let [_, _, holders] = snapshot.ranges.as_slice() else {
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

/// Writes the rows of ledgers that a store had before it was restored.
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

/// Whether each node that is there has a slot, and was told so since the copy was made: then what it was told is not there once
/// the copy is put back. Of one that was told nothing, since it stands still or waits for a slot, nothing is promised.
fn is_known_by_all(backup: &Backup, nodes: &[Node]) -> bool {
    let mut there = nodes
        .iter()
        .filter(|node| node.condition != Condition::Gone);
    there.all(|node| node.was_told_after(backup.store.revision()))
}
