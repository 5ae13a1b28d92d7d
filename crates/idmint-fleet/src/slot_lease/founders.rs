//! Compares the clocks of the nodes that want to found a fleet.
//!
//! Before a fleet exists, no node knows whose clock is right, and the clock of the founder
//! determines the time from which the fleet mints. So each node that wants to found the fleet first
//! announces its clock reading under a lease. A node whose clock is too far ahead of another
//! announced clock waits, so that the other node founds the fleet.

use std::time::Duration;

use super::reservation::assert_guarded;
use super::rule::{LEASE, LeaseRule, NodeName};
use crate::stored::SlotRecord;
use crate::{Compare, KeyValue, Lease, Revision, Transaction, Write};
use idmint_core::time::UnixNanos;

/// Returns the transaction that announces this node and its clock reading to the other nodes that
/// want to found the fleet.
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

/// Returns how far a clock that shows `now` is proven to be ahead of the earliest clock among the
/// other founders. An announced clock reading may be up to one lease duration old. For example,
/// with a lease of 60 s, a reading of 100 s before `now` proves a difference of only 40 s.
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
    use crate::nonce::Nonce;

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
