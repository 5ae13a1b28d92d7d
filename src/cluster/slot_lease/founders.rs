//! The clocks of those who would found a fleet.
//!
//! Before there is a fleet nothing tells whose clock is right, and whoever founds it says from when on it mints. So each says
//! first, for as long as a lease, what its clock shows, and one that is ahead of another leaves it to that.

use std::time::Duration;

use super::reservation::{LEASE, assert_guarded};
use super::rule::{LeaseRule, NodeName};
use crate::cluster::stored::SlotRecord;
use crate::storage::{Compare, KeyValue, Lease, Revision, Transaction, Write};
use crate::time::UnixNanos;

/// What tells other founders of this one.
pub(super) fn announcement(rule: &LeaseRule, lease: Lease, now: UnixNanos) -> Transaction {
    let key = rule.keys.founder(rule.node.instance);
    let record = SlotRecord::new(rule.node.instance, &rule.node.node, &rule.node.addr, now);
    let value = record.to_bytes();
    let transaction = Transaction {
        compare: vec![Compare::Created(key.clone(), Revision::ABSENT)],
        write: vec![Write::Put {
            key,
            value,
            lease: Some(lease),
        }],
        ..Transaction::default()
    };
    assert_guarded(&transaction);
    transaction
}

/// How far a clock that shows `now` is ahead, for certain, of the earliest clock of all other founders: each has written down
/// at most a lease ago what it showed.
pub(super) fn ahead_of_earliest(
    founders: &[KeyValue],
    node: &NodeName,
    now: UnixNanos,
) -> Duration {
    let others = founders
        .iter()
        .filter_map(|entry| SlotRecord::from_bytes(&entry.value).ok());
    let others = others.filter(|founder| founder.instance != node.instance);
    others
        .map(|founder| now.since(founder.since.after(LEASE)))
        .max()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::nonce::Nonce;

    const NOON: UnixNanos = UnixNanos::from_seconds(1_900_000_000);

    fn founder(process: u128, clock: UnixNanos) -> KeyValue {
        let value = SlotRecord::new(Nonce::new(process), "node", "", clock).to_bytes();
        KeyValue {
            key: format!("founder/{process}"),
            value,
            created: Revision(1),
            modified: Revision(1),
        }
    }

    #[test]
    fn a_clock_is_ahead_of_another_founders_by_what_a_lease_cannot_explain() {
        let node = NodeName {
            instance: Nonce::new(1),
            node: "node".to_owned(),
            addr: String::new(),
        };
        let day = Duration::from_hours(24);
        let ahead = |others: &[KeyValue]| ahead_of_earliest(others, &node, NOON);
        assert_eq!(ahead(&[]), Duration::ZERO);
        assert_eq!(
            ahead(&[founder(1, NOON.before(day))]),
            Duration::ZERO,
            "its own"
        );
        assert_eq!(
            ahead(&[founder(2, NOON.before(LEASE))]),
            Duration::ZERO,
            "it may be as old"
        );
        assert_eq!(
            ahead(&[founder(2, NOON.after(day))]),
            Duration::ZERO,
            "behind"
        );
        let both = [founder(2, NOON), founder(3, NOON.before(day))];
        assert_eq!(ahead(&both), day - LEASE);
    }
}
