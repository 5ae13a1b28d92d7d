//! A coordinator that is restored from a backup under running nodes, and the operator who fences it.

use std::time::Duration;

use super::faults::Dice;
use super::network::{Backup, Network};
use super::node::{CLOCK, Condition, Node, WINDOW, entropy, keys};
use super::world::BEGINS;
use crate::cluster::high_water::HighWater;
use crate::cluster::operation::{FenceRule, fence_restored};
use crate::cluster::slot_share::SlotShare;

/// What is going to happen to the coordinator, by the true time.
pub(super) enum Restore {
    /// Nothing, or nothing any more.
    None,
    /// It is copied.
    Planned { copied_at: Duration },
    /// The copy is put back.
    Copied { backup: Box<Backup>, restored_at: Duration },
    /// The operator has put it back, and is about to fence it.
    Restored { fenced_at: Duration },
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
        if dice.per_mille(400) { Restore::Planned { copied_at } } else { Restore::None }
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
        nodes: &[Node],
    ) -> Done {
        match self {
            Restore::Planned { copied_at } if at >= *copied_at => {
                let restored_at = at + dice.millis(1_000, 40_000);
                *self = Restore::Copied { backup: Box::new(network.back_up()), restored_at };
                Done::Nothing
            }
            Restore::Copied { backup, restored_at } if at >= *restored_at && is_known_by_all(backup, nodes) => {
                network.restore(at, backup);
                *self = Restore::Restored { fenced_at: at + dice.millis(100, 20_000) };
                Done::Restored
            }
            Restore::Restored { fenced_at } if at >= *fenced_at => {
                *self = Restore::None;
                let high_waters: Vec<HighWater> = nodes.iter().map(|node| node.high_water().clone()).collect();
                let rule = FenceRule { share, window: WINDOW, ahead_max: CLOCK.max_ahead, origin: None };
                let now = BEGINS.after(at);
                fence_restored(&network.store, &keys(), &rule, &high_waters, now, &mut entropy(dice))
                    .expect("memory answers");
                Done::Fenced
            }
            _ => Done::Nothing,
        }
    }
}

/// Whether each node that is there has a slot, and was told so since the copy was made: then what it was told is not there once
/// the copy is put back. Of one that was told nothing, since it stands still or waits for a slot, nothing is promised.
fn is_known_by_all(backup: &Backup, nodes: &[Node]) -> bool {
    let mut there = nodes.iter().filter(|node| node.condition != Condition::Gone);
    there.all(|node| node.was_told_after(backup.store.revision()))
}
