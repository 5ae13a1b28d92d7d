//! The table of number forms. A form says how a series writes its numbers as text. A form is stored
//! under the first number to which it applies, and applies up to the next row of the series.
//!
//! Numbers that an earlier version issued have no row, so the configuration of the first start of
//! this version decides how they are written.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use redb::{ReadableTable, TableDefinition, WriteTransaction};

use super::database::{if_there, unreadable};
use super::record_tables::RecordTables;
use crate::failure::StoreError;
use crate::records::RecordPlan;
use crate::records::rows::number_rows::{self, NumberName};
use idmint_records::ledger::{FormChange, GivenNumbers, NumberForm, SeriesName};

/// Maps a series and a number to the form in which the series writes its numbers from this number
/// on, such as `INV-00042` for 42.
pub(super) const FORMS: TableDefinition<'_, NumberName<'_>, &[u8]> =
    TableDefinition::new("number-forms");

impl RecordTables {
    /// Returns the text form that applies to a number. Reads in the open write transaction, because
    /// it sees the latest commits at once. A new read transaction would have to wait until the
    /// engine has committed them to the tables.
    pub(super) fn latest_form(
        &self,
        series: &SeriesName,
        number: u64,
    ) -> Result<Option<NumberForm>, StoreError> {
        self.look(|transaction| {
            let latest = latest_at(&transaction.open_table(FORMS)?, series, number)?;
            Ok(latest.map(|change| change.form))
        })
    }

    /// Returns the text forms of these numbers in ascending order, each with the first number that
    /// has the form. For example, if the form changed at 4 and at 15, the result for the numbers 10
    /// to 20 has the changes at 4 and at 15.
    pub(super) fn form_changes(
        &self,
        series: &SeriesName,
        numbers: &RangeInclusive<u64>,
    ) -> Result<Vec<FormChange>, StoreError> {
        self.read(|transaction| {
            let Some(forms) = if_there(transaction, FORMS)? else {
                return Ok(Vec::new());
            };
            let mut changes: Vec<FormChange> = latest_at(&forms, series, *numbers.start())?
                .into_iter()
                .collect();
            let after = numbers.start().saturating_add(1)..=*numbers.end();
            if !after.is_empty() {
                let names = (series.as_str(), *after.start())..=(series.as_str(), *after.end());
                for row in forms.range(names)? {
                    let (name, row) = row?;
                    changes.push(change_of(name.value(), row.value())?);
                }
            }
            Ok(changes)
        })
    }
}

/// Returns the changes of text form that must be stored together with plans to issue numbers. A
/// plan changes the form if its numbers are written differently than the preceding number of the
/// series.
pub(super) fn changes_of(
    transaction: &WriteTransaction,
    plans: &[RecordPlan],
) -> Result<Vec<FormChange>, redb::Error> {
    let mut latest: HashMap<&SeriesName, Option<NumberForm>> = HashMap::new();
    let mut changes = Vec::new();
    for plan in plans {
        let RecordPlan::Number(plan) = plan else {
            continue;
        };
        if plan.form.is_none() {
            continue;
        }
        let GivenNumbers { series, first, .. } = &plan.given;
        let before = match latest.get(series) {
            Some(planned) => planned.clone(),
            None => latest_at(&transaction.open_table(FORMS)?, series, *first)?
                .map(|change| change.form),
        };
        changes.extend(plan.form_change(before.as_ref()));
        latest.insert(series, plan.form.clone());
    }
    Ok(changes)
}

/// Removes the stored text forms of the numbers `wrong`, which callers have corrected. Each of them
/// was the only number of its series.
pub(super) fn remove(
    transaction: &WriteTransaction,
    wrong: &[&GivenNumbers],
) -> Result<(), redb::Error> {
    let mut forms = transaction.open_table(FORMS)?;
    for given in wrong {
        forms.remove((given.series.as_str(), given.first))?;
    }
    Ok(())
}

/// Returns the last change of text form at or below a number. A change consists of the form and the
/// first number that has it. Returns `None` if no such change is stored.
fn latest_at(
    forms: &impl ReadableTable<NumberName<'static>, &'static [u8]>,
    series: &SeriesName,
    number: u64,
) -> Result<Option<FormChange>, redb::Error> {
    let names = (series.as_str(), 0)..=(series.as_str(), number);
    let last = forms.range(names)?.next_back().transpose()?;
    last.map(|(name, row)| change_of(name.value(), row.value()))
        .transpose()
}

fn change_of(name: NumberName<'_>, row: &[u8]) -> Result<FormChange, redb::Error> {
    number_rows::form_of_bytes(name, row).ok_or_else(|| {
        let (series, from) = name;
        let what = format!("the form of the numbers of {series} from {from} on is");
        unreadable(number_rows::is_whole(name, row), &what)
    })
}
