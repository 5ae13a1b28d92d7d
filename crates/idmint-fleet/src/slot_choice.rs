//! Chooses a slot for this node. No other node holds that slot, and its earlier holders can no
//! longer use it.

use std::time::Duration;

use tracing::warn;

use super::fleet_keys::FleetKeys;
use super::nonce::Entropy;
use super::slot_lease::NodeName;
use super::stored::{HorizonRecord, SlotRecord};
use crate::{KeyValue, Revision, Snapshot};
use idmint_core::time::UnixNanos;
use idmint_storage::SlotShare;

/// A slot that was free when it was read from the store. The transaction that takes the slot
/// compares `holder` and `revision`, because they may be outdated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FreeSlot {
    pub(super) slot: u32,
    /// The revision that created the key of the slot's holder, or [`Revision::ABSENT`] if the slot
    /// has no holder. If there is a holder, it is an earlier process of this node.
    pub(super) holder: Revision,
    /// The revision that last wrote the slot's horizon.
    pub(super) revision: Revision,
    /// The slot's horizon, the time up to which ids may have been minted in the slot. If the slot
    /// was never used, the horizon is the start of 1970.
    pub(super) horizon: UnixNanos,
}

/// The result of looking for a free slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// This slot can be taken.
    Take(FreeSlot),
    /// No slot can be taken yet, because the horizon of every free slot is too far ahead of this
    /// node's clock. The value is the time until the first slot can be taken.
    Rests(Duration),
    /// No slot can be taken. Each one is held by a node, or its stored horizon cannot be read.
    AllHeld,
}

/// Chooses a slot for this node at random from the free slots whose horizon has passed. So nodes
/// that start at the same time rarely choose the same slot. If no horizon has passed, chooses the
/// free slot with the lowest horizon, but only if it is at most `ahead_max` ahead.
///
/// `snapshot` is the response to [`FleetKeys::all_slots`].
pub(super) fn choose(
    snapshot: &Snapshot,
    keys: &FleetKeys,
    share: SlotShare,
    node: &NodeName,
    now: UnixNanos,
    ahead_max: Duration,
    entropy: &mut Entropy,
) -> Choice {
    let [_, horizons, holders, ..] = snapshot.ranges.as_slice() else {
        panic!("all slots are three ranges")
    };
    let free: Vec<FreeSlot> = share
        .iter()
        .filter_map(|slot| free_slot(slot, keys, horizons, holders, node))
        .collect();
    let passed: Vec<&FreeSlot> = free.iter().filter(|free| free.horizon <= now).collect();
    if !passed.is_empty() {
        let at = entropy.below(u64::try_from(passed.len()).expect("slots are fewer than 2^32"));
        return Choice::Take(*passed[usize::try_from(at).expect("it is the place in a list")]);
    }
    let Some(first) = free.into_iter().min_by_key(|free| free.horizon) else {
        return Choice::AllHeld;
    };
    match first.horizon.since(now.after(ahead_max)) {
        Duration::ZERO => Choice::Take(first),
        rests => Choice::Rests(rests),
    }
}

fn free_slot(
    slot: u32,
    keys: &FleetKeys,
    horizons: &[KeyValue],
    holders: &[KeyValue],
    node: &NodeName,
) -> Option<FreeSlot> {
    let entry_of = |entries: &'_ [KeyValue], key: String| -> Option<usize> {
        entries
            .binary_search_by(|entry| entry.key.as_str().cmp(key.as_str()))
            .ok()
    };
    let holder = match entry_of(holders, keys.slot(slot)).map(|at| &holders[at]) {
        None => Revision::ABSENT,
        Some(entry) if is_of(entry, node) => entry.created,
        Some(_) => return None,
    };
    let Some(entry) = entry_of(horizons, keys.horizon(slot)).map(|at| &horizons[at]) else {
        return Some(FreeSlot {
            slot,
            holder,
            revision: Revision::ABSENT,
            horizon: UnixNanos::default(),
        });
    };
    match HorizonRecord::from_bytes(&entry.value) {
        Ok(record) => Some(FreeSlot {
            slot,
            holder,
            revision: entry.modified,
            horizon: record.horizon,
        }),
        Err(error) => {
            warn!(
                slot,
                "slot {slot} is not used, because its horizon in the etcd key {} cannot be read: {error}",
                entry.key
            );
            None
        }
    }
}

/// `true` if an earlier process of this node holds the slot.
///
/// That process must have ended, because this process now listens on the same address. So this node
/// need not wait until the lease expires. If the process still runs after all, it stops minting
/// like any node that loses its slot.
fn is_of(holder: &KeyValue, node: &NodeName) -> bool {
    SlotRecord::from_bytes(&holder.value).is_ok_and(|record| {
        record.node == node.node && record.addr == node.addr && record.instance != node.instance
    })
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::nonce::Nonce;
    use crate::{Coordinator, MemoryCoordinator, Transaction, Write};
    use idmint_storage::SlotRange;

    const NOON: UnixNanos = UnixNanos::from_seconds(1_900_000_000);
    const AHEAD_MAX: Duration = Duration::from_secs(5);

    fn keys() -> FleetKeys {
        FleetKeys::below("/idmint/v1/test/")
    }

    fn node(instance: u128) -> NodeName {
        NodeName {
            instance: Nonce::new(instance),
            node: "here".to_owned(),
            addr: "127.0.0.1:1".to_owned(),
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

    fn reserve(store: &MemoryCoordinator, slot: u32, seconds_ahead: i64) {
        let ahead = Duration::from_secs(seconds_ahead.unsigned_abs());
        let horizon = if seconds_ahead < 0 {
            NOON.before(ahead)
        } else {
            NOON.after(ahead)
        };
        let record = HorizonRecord::new(horizon, Nonce::new(1), Nonce::new(2), NOON);
        put(store, keys().horizon(slot), record.to_bytes());
    }

    fn hold(store: &MemoryCoordinator, slot: u32, instance: u128, addr: &str) {
        put(
            store,
            keys().slot(slot),
            SlotRecord::new(Nonce::new(instance), "here", addr, NOON).to_bytes(),
        );
    }

    fn choose_of(store: &MemoryCoordinator, slots: u32, draw: u128) -> Choice {
        let snapshot = store.read(&keys().all_slots()).expect("memory answers");
        let share = SlotShare::all(NonZeroU32::new(slots).expect("not zero"));
        choose(
            &snapshot,
            &keys(),
            share,
            &node(9),
            NOON,
            AHEAD_MAX,
            &mut Entropy::new(move || draw),
        )
    }

    fn slot_of(choice: Choice) -> u32 {
        let Choice::Take(free) = choice else {
            panic!("{choice:?}")
        };
        free.slot
    }

    #[test]
    fn any_slot_whose_horizon_has_passed_is_taken_at_random() {
        let store = MemoryCoordinator::default();
        reserve(&store, 0, 60);
        reserve(&store, 1, -1);
        hold(&store, 2, 1, "127.0.0.1:2");
        assert_eq!(
            [0, 1, 2, 3].map(|draw| slot_of(choose_of(&store, 4, draw))),
            [1, 3, 1, 3]
        );
    }

    #[test]
    fn only_slots_of_the_share_are_taken() {
        let store = MemoryCoordinator::default();
        let snapshot = store.read(&keys().all_slots()).expect("memory answers");
        let range = SlotRange::parse("2-3").expect("a range");
        let share = SlotShare::part(NonZeroU32::new(8).expect("not zero"), range).expect("within");
        let taken = |draw: u128| {
            choose(
                &snapshot,
                &keys(),
                share,
                &node(9),
                NOON,
                AHEAD_MAX,
                &mut Entropy::new(move || draw),
            )
        };
        assert_eq!([0, 1, 2, 3].map(|draw| slot_of(taken(draw))), [2, 3, 2, 3]);
    }

    #[test]
    fn without_one_the_first_to_pass_is_taken_if_it_is_near_enough() {
        let store = MemoryCoordinator::default();
        reserve(&store, 0, 5);
        reserve(&store, 1, 4);
        assert_eq!(slot_of(choose_of(&store, 2, 0)), 1);
        reserve(&store, 0, 7);
        reserve(&store, 1, 9);
        assert_eq!(
            choose_of(&store, 2, 0),
            Choice::Rests(Duration::from_secs(2))
        );
        hold(&store, 0, 1, "127.0.0.1:2");
        hold(&store, 1, 1, "127.0.0.1:3");
        assert_eq!(choose_of(&store, 2, 0), Choice::AllHeld);
    }

    #[test]
    fn the_slot_of_an_earlier_process_of_this_node_need_not_wait_for_its_lease() {
        let store = MemoryCoordinator::default();
        hold(&store, 0, 1, "127.0.0.1:1");
        reserve(&store, 0, -1);
        let Choice::Take(free) = choose_of(&store, 1, 0) else {
            panic!("it is free for this node")
        };
        assert_ne!(
            free.holder,
            Revision::ABSENT,
            "taking it compares who held it"
        );
        hold(&store, 0, 9, "127.0.0.1:1");
        assert_eq!(
            choose_of(&store, 1, 0),
            Choice::AllHeld,
            "this process itself is no earlier one"
        );
    }

    #[test]
    fn a_slot_whose_horizon_cannot_be_read_is_left_alone() {
        let store = MemoryCoordinator::default();
        put(&store, keys().horizon(0), b"{\"v\":2}".to_vec());
        assert_eq!(choose_of(&store, 1, 0), Choice::AllHeld);
    }
}
