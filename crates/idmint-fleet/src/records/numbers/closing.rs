//! The check before a series is closed: every node with a slot must run a version that can read the
//! row of a closed series.
//!
//! Earlier versions cannot read this row. They would issue no number of the series, but would fail
//! with an error. So a series is closed only when no node with a slot runs such a version.

use crate::coordinator::KeyValue;
use crate::records::fleet_records::FleetRecords;
use crate::records::shared_store::unreadable;
use crate::stored::{CLOSED_ROW, SlotRecord};
use idmint_storage::{FailureKind, Obstacle, StoreError};

/// The error if a series cannot be closed yet. Its kind is [`FailureKind::Full`], although space is
/// not the problem. With this kind, the process keeps running and the caller can repeat the
/// request.
const OLDER_NODE: Obstacle = Obstacle::new(
    FailureKind::Full,
    "a node of the fleet runs an earlier version, which cannot read closed series; update all nodes, and then close the \
     series again",
);

impl FleetRecords {
    /// Checks that every node with a slot can read closed series.
    ///
    /// # Errors
    /// Returns [`StoreError`] if a node runs an earlier version, or if the store cannot be read.
    pub(in crate::records) fn check_closing(&self) -> Result<(), StoreError> {
        let keys = &self.store.keys;
        let found = self.store.read(&keys.holders_and_known_rows())?;
        let [holders, announced] = found.as_slice() else {
            panic!("two ranges were asked for")
        };
        for row in holders {
            let holder =
                SlotRecord::from_bytes(&row.value).map_err(|_| unreadable(&row.key, &row.value))?;
            let knows = |known: &KeyValue| {
                let mut rows = known.value.split(|byte| *byte == b' ');
                keys.is_announced_by(&known.key, holder.instance)
                    && rows.any(|row| row == CLOSED_ROW.as_bytes())
            };
            if !announced.iter().any(knows) {
                let text = format!(
                    "{} at {} runs an earlier version, which cannot read closed series: update all nodes of the \
                     fleet, and then close the series again",
                    holder.node, holder.addr
                );
                return Err(StoreError::because(OLDER_NODE, text));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::coordinator::{Coordinator, MemoryCoordinator, Transaction, Write};
    use crate::nonce::Nonce;
    use crate::records::numbers::hold_numbers;
    use crate::records::{FleetRecords, KnownFleet};
    use crate::stored::{KNOWN_ROWS, SlotRecord};
    use idmint_core::time::UnixNanos;
    use idmint_storage::samples::{close_plan, give, series};
    use idmint_storage::{Namespace, NumberStore, RecordStore, WriteError};

    fn fleet() -> (Arc<MemoryCoordinator>, FleetRecords) {
        let coordinator = Arc::new(MemoryCoordinator::default());
        let records = FleetRecords::new(
            Arc::clone(&coordinator) as Arc<dyn Coordinator>,
            &Namespace::default(),
            Arc::<KnownFleet>::default(),
            Arc::default(),
            7,
        );
        (coordinator, records)
    }

    #[test]
    fn a_series_is_not_closed_while_its_numbers_are_held() {
        let (coordinator, records) = fleet();
        let given = give(&records, &series("acme"), 1, "a");
        let key = records.store.keys.number_hold();
        let transaction = Transaction {
            write: vec![hold_numbers(key, UnixNanos::from_seconds(9), true)],
            ..Transaction::default()
        };
        coordinator.commit(&transaction).expect("memory");
        let close = [close_plan(&series("acme"), Some(given.head()))];
        let refused = records.write(&close).expect_err("the series is held");
        assert!(matches!(refused, WriteError::Stale), "{refused:?}");
        records.end_hold(Some(&series("acme"))).expect("memory");
        records.write(&close).expect("the hold has ended");
    }

    #[test]
    fn a_series_is_closed_only_when_every_node_with_a_slot_can_read_that() {
        let (coordinator, records) = fleet();
        let put = |key: &str, value: Vec<u8>| {
            let key = format!("/idmint/v1/default/{key}");
            let write = vec![Write::put(key, value)];
            let transaction = Transaction {
                write,
                ..Transaction::default()
            };
            coordinator.commit(&transaction).expect("memory");
        };
        let given = give(&records, &series("acme"), 1, "a");
        let close = [close_plan(&series("acme"), Some(given.head()))];
        let instance = Nonce::new(5);
        let holder = SlotRecord::new(instance, "old", "10.0.0.7:8080", UnixNanos::from_seconds(9));
        put("slot/00007", holder.to_bytes());
        put(&format!("knows/{instance}/1"), b"number-hold".to_vec());
        let refused = records.write(&close).expect_err("the node cannot read it");
        assert!(
            matches!(&refused, WriteError::NotWritten(error) if error.to_string().contains("10.0.0.7")),
            "{refused:?}"
        );
        assert_eq!(
            records
                .series_state(&series("acme"))
                .expect("memory")
                .closed,
            None
        );
        put(&format!("knows/{instance}/2"), KNOWN_ROWS.into());
        records.write(&close).expect("every node can read it");
    }
}
