//! The hold on numbers after a restore: no series issues numbers until an operator resumes it.
//!
//! A hold is identified by the floor of the start that set the hold. A floor is a time below which
//! no id is minted. When an operator ends a hold, the identifier of the hold is stored in a row for
//! one series, or in a row for all series. A later hold has another floor, so these rows do not end
//! the later hold.

use redb::{ReadTransaction, ReadableTable, TableDefinition};

use super::database::{Database, DatabaseError, if_there};
use super::record_tables::RecordTables;
use crate::failure::StoreError;
use idmint_core::time::UnixNanos;
use idmint_records::ledger::SeriesName;

/// Maps the name of a row to a hold, which stops series from issuing numbers after a restore. The
/// value is the floor of the start that set the hold, in nanoseconds since 1970. One row is for the
/// current hold, one for the last hold that ended for all series, and one for each series whose
/// hold has ended.
pub(super) const HOLDS: TableDefinition<'_, &str, u64> = TableDefinition::new("number-holds");

/// The key of the current hold, which stops all series from issuing numbers. `ENDED_FOR_ALL` is the
/// key of the last hold that ended for all. Other keys are series names, never empty or `*`.
const HOLD: &str = "";
const ENDED_FOR_ALL: &str = "*";

/// Sets a hold after a restore. No series then issues numbers, because the restored data may lack
/// acknowledged numbers. If a hold with this floor was already set, it stays unchanged, even if it
/// has ended. Returns `true` if the hold may still stop some series.
///
/// # Errors
/// Returns [`DatabaseError`] if it is unknown whether the hold is durable.
pub(crate) fn hold_numbers(database: &Database, floor: UnixNanos) -> Result<bool, DatabaseError> {
    database.attempt(|engine| {
        let transaction = engine.begin_write()?;
        let (before, ended) = {
            let mut holds = transaction.open_table(HOLDS)?;
            let before = holds.insert(HOLD, floor.get())?.map(|row| row.value());
            (before, holds.get(ENDED_FOR_ALL)?.map(|row| row.value()))
        };
        match before == Some(floor.get()) {
            true => transaction.abort()?,
            false => transaction.commit()?,
        }
        Ok(ended != Some(floor.get()))
    })
}

impl RecordTables {
    /// `true` if the series is on hold after a restore, and so issues no numbers. Only a start sets
    /// a hold, so no row is read if no hold was in force when the tables were opened.
    pub(super) fn is_held(&self, series: &SeriesName) -> Result<bool, StoreError> {
        if !self.may_hold {
            return Ok(false);
        }
        self.read(|transaction| {
            let Some(holds) = if_there(transaction, HOLDS)? else {
                return Ok(false);
            };
            let of = |name: &str| Ok::<_, redb::Error>(holds.get(name)?.map(|row| row.value()));
            let Some(hold) = of(HOLD)? else {
                return Ok(false);
            };
            Ok(of(ENDED_FOR_ALL)? != Some(hold) && of(series.as_str())? != Some(hold))
        })
    }

    pub(super) fn end_hold(&self, series: Option<&SeriesName>) -> Result<(), StoreError> {
        self.change(|transaction| {
            let mut holds = transaction.open_table(HOLDS)?;
            let hold = holds.get(HOLD)?.map(|row| row.value());
            if let Some(hold) = hold {
                holds.insert(series.map_or(ENDED_FOR_ALL, SeriesName::as_str), hold)?;
            }
            Ok(())
        })
    }
}

/// `true` if the last hold may still stop some series. The result is `false` if no hold was ever
/// set, or if an operator has ended the last hold for all series with one request. Holds that were
/// ended one series at a time do not count, so the result may be `true` although no series is held.
pub(super) fn may_hold(transaction: &ReadTransaction) -> Result<bool, redb::Error> {
    let Some(holds) = if_there(transaction, HOLDS)? else {
        return Ok(false);
    };
    let of = |name: &str| Ok::<_, redb::Error>(holds.get(name)?.map(|row| row.value()));
    Ok(of(HOLD)? != of(ENDED_FOR_ALL)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::records::NumberStore;
    use crate::samples::series;

    fn held(records: &RecordTables) -> [bool; 2] {
        ["acme", "other"].map(|name| NumberStore::is_held(records, &series(name)).expect("memory"))
    }

    #[test]
    fn a_hold_ends_for_one_series_or_for_all_and_a_later_hold_begins_anew() {
        let database = Arc::new(Database::in_memory().expect("memory suffices"));
        let open = || RecordTables::open(Arc::clone(&database)).expect("memory suffices");
        let restore = |floor| {
            let is_held = hold_numbers(&database, UnixNanos::new(floor)).expect("memory");
            let records = open();
            assert_eq!(is_held, records.may_hold);
            records
        };
        assert_eq!(held(&open()), [false, false], "without a restore");

        let records = restore(7);
        assert_eq!(held(&records), [true, true]);
        NumberStore::end_hold(&records, Some(&series("acme"))).expect("memory");
        assert_eq!(held(&records), [false, true]);
        assert_eq!(held(&open()), [false, true], "after a restart");
        assert_eq!(held(&restore(7)), [false, true], "the same start again");
        NumberStore::end_hold(&records, None).expect("memory");
        assert_eq!(held(&records), [false, false]);
        assert_eq!(held(&open()), [false, false], "after a restart");

        assert_eq!(held(&restore(7)), [false, false], "the same start again");
        assert_eq!(held(&restore(8)), [true, true], "a later restore");
    }
}
