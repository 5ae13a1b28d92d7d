//! The part of a transaction draft that issues numbers, voids numbers and closes series.

use std::collections::{BTreeMap, BTreeSet};

use super::hold::Hold;
use super::rows::{
    GivenCommit, VoidRow, commit_of_bytes, commit_to_bytes, form_of_bytes, form_to_bytes,
    key_to_bytes, series_to_bytes, void_to_bytes,
};
use super::series::summary_of;
use crate::coordinator::{Compare, Key, KeyValue, Range, Revision, Transaction, Write};
use crate::records::keys::Keys;
use crate::records::rows::Attempt;
use crate::records::shared_store::unreadable;
use idmint_records::ledger::{
    ClosePlan, ClosedSeries, FormChange, GivenNumbers, KeyHash, NumberForm, NumberPlan, SeriesHead,
    SeriesName, VoidPlan,
};
use idmint_storage::StoreError;
use idmint_storage::{RecordPlan, SeriesSummary};

/// An estimate of the rows that a transaction needs to issue or void numbers and close series.
#[derive(Default)]
pub(in crate::records) struct NumbersNeed<'a> {
    series: BTreeSet<&'a SeriesName>,
    given: usize,
    voids: usize,
    removed: usize,
}

impl<'a> NumbersNeed<'a> {
    /// Adds a plan to issue numbers, and returns the approximate size of its rows in bytes.
    pub(in crate::records) fn add_number(&mut self, plan: &'a NumberPlan) -> usize {
        self.given += 1;
        let of_series = if self.series.insert(&plan.given.series) {
            1_000
        } else {
            0
        };
        self.removed += usize::from(plan.replaces.is_some());
        of_series + 500 + plan.given.by.as_ref().map_or(0, String::len)
    }

    /// Adds a plan to void a number. Returns the approximate size of its rows in bytes.
    pub(in crate::records) fn add_void(&mut self, plan: &VoidPlan) -> usize {
        self.voids += 1;
        500 + plan.void.reason.as_str().len() + plan.void.by.as_ref().map_or(0, String::len)
    }

    /// Adds a plan to close a series, and returns the approximate size of its rows in bytes.
    pub(in crate::records) fn add_close(&mut self, plan: &'a ClosePlan) -> usize {
        self.series.insert(&plan.closed.series);
        1_000 + plan.closed.by.as_ref().map_or(0, String::len)
    }

    /// Returns an upper bound on the number of rows that the transaction writes. It is also an
    /// upper bound on the rows that it compares, and on the rows that are read for it.
    pub(in crate::records) fn rows(&self) -> usize {
        let of_hold = if self.series.is_empty() { 0 } else { 2 };
        4 * self.series.len() + self.given + 2 * self.voids + 4 * self.removed + of_hold
    }
}

/// The numbers that one transaction issues and voids, and the series that it closes.
#[derive(Default)]
pub(in crate::records) struct NumberDraft {
    series: BTreeMap<SeriesName, OfSeries>,
    keys: BTreeMap<(SeriesName, KeyHash), Revision>,
    voids: BTreeMap<(SeriesName, u64), OfVoid>,
    /// The revision of the row that stops all series after a restore, or [`Revision::ABSENT`] if
    /// there is no such row.
    hold: Revision,
}

/// The stored state of a series, and the numbers that the transaction issues.
#[derive(Default)]
struct OfSeries {
    revision: Revision,
    is_held: bool,
    before: Option<SeriesSummary>,
    /// The number whose form is read. It is the first number to issue. If the transaction only
    /// closes the series, it is the last issued number, or `None` if there is none.
    first: Option<u64>,
    /// The stored row with the form of the number `first`. The transaction need not compare this
    /// row, because each change of it also changes the row of the series, which is compared.
    form_row: Option<KeyValue>,
    /// The form in which the last number of the series is written, after the plans that were added
    /// so far.
    form: Option<NumberForm>,
    given: Vec<GivenNumbers>,
    forms: Vec<FormChange>,
    closed: Option<ClosedSeries>,
    /// The wrong first number that the transaction removes.
    replaces: Option<GivenNumbers>,
}

/// A number to void, with its plan and the stored row that contains the number. `revision` is the
/// revision of the row that marks the number as void, or [`Revision::ABSENT`] if it is not void
/// yet.
#[derive(Default)]
struct OfVoid {
    revision: Revision,
    number: Option<StoredNumber>,
    plan: Option<VoidPlan>,
}

/// The key of the stored row that contains a number, and the request that got the number. Such a
/// row is deleted only if the first number of a series was wrong and is replaced.
struct StoredNumber {
    key: Key,
    revision: Revision,
    request: KeyHash,
}

impl NumberDraft {
    /// `true` if the store has a hold, which stops all series after a restore, even if an operator
    /// has ended it. `false` if the row was not read, because no number is issued and no series
    /// closed.
    pub(in crate::records) fn finds_hold(&self) -> bool {
        self.hold != Revision::ABSENT
    }

    /// Creates a draft for these plans, without reading any rows.
    pub(in crate::records) fn of(plans: &[RecordPlan]) -> NumberDraft {
        let mut round = NumberDraft::default();
        for plan in plans {
            match plan {
                RecordPlan::Number(NumberPlan { given, .. }) => {
                    let of_series = round.series.entry(given.series.clone()).or_default();
                    of_series.first.get_or_insert(given.first);
                    round
                        .keys
                        .entry((given.series.clone(), given.mark.key))
                        .or_default();
                }
                RecordPlan::Void(VoidPlan { void, .. }) => {
                    round
                        .voids
                        .entry((void.series.clone(), void.number))
                        .or_default();
                }
                RecordPlan::Close(ClosePlan { closed, .. }) => {
                    let of_series = round.series.entry(closed.series.clone()).or_default();
                    of_series.first = of_series.first.or(closed.last);
                }
                RecordPlan::Append(_) | RecordPlan::Anchor(_) => {}
            }
        }
        round
    }

    /// Returns the key ranges that must be read for this draft, in the order in which
    /// [`NumberDraft::take`] expects their rows.
    pub(in crate::records) fn ranges(&self, keys: &Keys) -> Vec<Range> {
        let series = self.series.keys().map(|series| keys.series(series));
        let forms = self
            .series
            .iter()
            .filter_map(|(series, of_series)| Some(keys.form_at(series, of_series.first?)));
        let of_keys = self
            .keys
            .keys()
            .map(|(series, key)| keys.number_key(series, *key));
        let voids = self
            .voids
            .keys()
            .map(|(series, number)| keys.void(series, *number));
        let void_numbers = self.voids.keys().map(|(series, number)| Range {
            count_max: 1,
            ..keys.numbers_from(series, *number)
        });
        let of_hold =
            (!self.series.is_empty()).then(|| [keys.number_hold(), keys.ended_hold(None)]);
        let ended = self
            .series
            .keys()
            .map(|series| keys.ended_hold(Some(series)));
        let hold = of_hold.into_iter().flatten().chain(ended);
        hold.chain(series)
            .chain(of_keys)
            .chain(voids)
            .map(Range::one)
            .chain(void_numbers)
            .chain(forms)
            .collect()
    }

    /// Adds the stored rows to the draft. Calls `next` once for each key range from
    /// [`NumberDraft::ranges`], in the same order, to get the row in that range.
    ///
    /// # Errors
    /// Returns [`StoreError`] if a row is damaged.
    pub(in crate::records) fn take(
        &mut self,
        keys: &Keys,
        mut next: impl FnMut() -> Option<KeyValue>,
    ) -> Result<(), StoreError> {
        if !self.series.is_empty() {
            let (hold, for_all) = (next(), next());
            self.hold = revision_of(hold.as_ref());
            for of_series in self.series.values_mut() {
                let ended = next();
                of_series.is_held =
                    Hold::is_in_force(hold.as_ref(), [for_all.as_ref(), ended.as_ref()])?;
            }
        }
        for (series, of_series) in &mut self.series {
            let found = next();
            of_series.revision = revision_of(found.as_ref());
            of_series.before = found
                .map(|row| summary_of(series.clone(), &row))
                .transpose()?;
        }
        self.keys
            .values_mut()
            .for_each(|revision| *revision = revision_of(next().as_ref()));
        self.voids
            .values_mut()
            .for_each(|void| void.revision = revision_of(next().as_ref()));
        for ((series, number), void) in &mut self.voids {
            void.number = match next() {
                Some(row) => stored_number(keys, (series, *number), row)?,
                None => None,
            };
        }
        for (series, of_series) in &mut self.series {
            if of_series.first.is_none() {
                continue;
            }
            of_series.form_row = next();
            let Some(row) = &of_series.form_row else {
                continue;
            };
            let from = keys.form_of(&row.key).map(|(_, from)| from);
            let change = from.and_then(|from| form_of_bytes(&row.key, (series, from), &row.value));
            let change = change.ok_or_else(|| unreadable(&row.key, &row.value))?;
            of_series.form = Some(change.form);
        }
        Ok(())
    }

    /// Adds a plan to issue numbers. Returns `false` if the plan is based on outdated rows, or if
    /// the series is held. A plan that skips numbers ignores the hold, because an operator uses
    /// such a plan to resume the series.
    #[must_use]
    pub(in crate::records) fn add_number(&mut self, plan: &NumberPlan) -> bool {
        let NumberPlan {
            before,
            given,
            replaces,
            form,
        } = plan;
        let of_series = self
            .series
            .get_mut(&given.series)
            .expect("its series was read");
        let key = (given.series.clone(), given.mark.key);
        // The plan is valid only if its idempotency key is still unused.
        let is_unused = self.keys.get(&key) == Some(&Revision::ABSENT);
        let is_current = is_unused && of_series.is_open_after(*before);
        let may_give = !of_series.is_held || given.skipped(given.last).is_some();
        of_series.given.push(given.clone());
        of_series
            .forms
            .extend(plan.form_change(of_series.form.as_ref()));
        of_series.form = form.clone().or(of_series.form.take());
        if replaces.is_some() {
            of_series.replaces.clone_from(replaces);
        }
        is_current && may_give
    }

    /// Adds a plan to close a series. Returns `false` if the series has changed since the plan was
    /// made, if it is already closed, or if it is held.
    #[must_use]
    pub(in crate::records) fn add_close(
        &mut self,
        ClosePlan { before, closed }: &ClosePlan,
    ) -> bool {
        let of_series = self
            .series
            .get_mut(&closed.series)
            .expect("its series was read");
        let is_current = of_series.is_open_after(*before) && !of_series.is_held;
        of_series.closed = Some(closed.clone());
        is_current
    }

    /// Adds a plan to void a number. Returns `false` if the number is already void, or does not
    /// belong to the request that the plan names.
    #[must_use]
    pub(in crate::records) fn add_void(&mut self, plan: &VoidPlan) -> bool {
        let place = (plan.void.series.clone(), plan.void.number);
        let of_void = self.voids.get_mut(&place).expect("its row was read");
        let is_first = of_void.plan.replace(plan.clone()).is_none();
        let number = of_void.number.as_ref();
        let is_stored = number.is_some_and(|number| number.request == plan.of);
        is_first && is_stored && of_void.revision == Revision::ABSENT
    }

    /// Adds all comparisons and writes of the draft to a transaction.
    pub(in crate::records) fn write(
        &self,
        keys: &Keys,
        attempt: Attempt,
        transaction: &mut Transaction,
    ) {
        if !self.series.is_empty() {
            let hold = Compare::Modified(keys.number_hold(), self.hold);
            transaction.compare.push(hold);
        }
        for (series, of_series) in &self.series {
            if of_series.given.is_empty() {
                close(keys, attempt, series, of_series, transaction);
                continue;
            }
            // A wrong first number is the only number of its series. If it is replaced, treat the
            // series as if it had no number before.
            let before = of_series.before.as_ref();
            let before = before.filter(|_| of_series.replaces.is_none());
            let commit = GivenCommit {
                attempt,
                begins: before.is_none(),
                given: of_series.given.clone(),
            };
            let closed = of_series.closed.as_ref();
            put_commit(
                keys,
                (of_series.revision, before),
                &commit,
                closed,
                transaction,
            );
            put_forms(keys, &of_series.forms, transaction);
            if let Some(wrong) = &of_series.replaces {
                remove_wrong(keys, wrong, transaction);
            }
        }
        for ((series, number), of_void) in &self.voids {
            let VoidPlan { of, void } = of_void.plan.clone().expect("its plan was added");
            let stored = of_void.number.as_ref().expect("its plan was accepted");
            transaction
                .compare
                .push(Compare::Modified(stored.key.clone(), stored.revision));
            let key = keys.void(series, *number);
            transaction
                .compare
                .push(Compare::Created(key.clone(), Revision::ABSENT));
            transaction.otherwise.push(Range::one(key.clone()));
            let value = void_to_bytes(&key, &VoidRow { attempt, of, void });
            transaction.write.push(Write::put(key, value));
        }
    }

    /// Returns, for each series that has numbers, the key of the row with its last number before
    /// the transaction. The new numbers or the closing directly follow that number.
    pub(in crate::records) fn predecessors<'p>(
        keys: &'p Keys,
        plans: &'p [RecordPlan],
    ) -> impl Iterator<Item = Key> + 'p {
        let mut seen = BTreeSet::new();
        plans.iter().filter_map(move |plan| match plan {
            RecordPlan::Number(NumberPlan { before, given, .. })
                if seen.insert(given.series.clone()) =>
            {
                before.map(|head| keys.numbers(&given.series, head.last))
            }
            RecordPlan::Close(ClosePlan { before, closed })
                if seen.insert(closed.series.clone()) =>
            {
                before.map(|head| keys.numbers(&closed.series, head.last))
            }
            RecordPlan::Number(_)
            | RecordPlan::Void(_)
            | RecordPlan::Close(_)
            | RecordPlan::Append(_)
            | RecordPlan::Anchor(_) => None,
        })
    }

    /// Returns, for each series, the stored row that says how its last number before the
    /// transaction is written.
    pub(in crate::records) fn form_rows(&self) -> impl Iterator<Item = &KeyValue> {
        self.series
            .values()
            .filter_map(|of_series| of_series.form_row.as_ref())
    }
}

impl OfSeries {
    /// `true` if the series is not closed and its last number is `last`, after the plans that were
    /// added so far.
    fn is_open_after(&self, last: Option<SeriesHead>) -> bool {
        let stored = self.before.as_ref();
        let head = self.given.last().map(GivenNumbers::head);
        let head = head.or(stored.and_then(SeriesSummary::head));
        let is_closed =
            self.closed.is_some() || stored.is_some_and(|stored| stored.closed.is_some());
        head == last && !is_closed
    }
}

/// Adds issued numbers and their idempotency keys to a transaction, and closes the series if
/// `closed` is given. `before` is the series' stored summary, or `None` if the series begins with
/// these numbers. `revision` is the revision of the series' row. Returns the new summary.
pub(in crate::records) fn put_commit(
    keys: &Keys,
    (revision, before): (Revision, Option<&SeriesSummary>),
    commit: &GivenCommit,
    closed: Option<&ClosedSeries>,
    transaction: &mut Transaction,
) -> SeriesSummary {
    let GivenNumbers { series, first, .. } = commit.given.first().expect("it gave something");
    let first = *first;
    let expected = before.map_or(Some(first), |before| before.last.checked_add(1));
    assert_eq!(
        expected,
        Some(first),
        "no number of {series} is left out, and none is given twice"
    );
    let GivenNumbers { last, recorded, .. } = *commit.given.last().expect("it gave something");
    let key = keys.series(series);
    let summary = SeriesSummary {
        series: series.clone(),
        first: before.map_or(first, |s| s.first),
        last,
        updated: recorded,
        closed: closed.cloned(),
    };
    transaction
        .compare
        .push(Compare::Modified(key.clone(), revision));
    let value = series_to_bytes(&key, commit.attempt, &summary);
    transaction.write.push(Write::put(key, value));
    let key = keys.numbers(series, last);
    transaction.otherwise.push(Range::one(key.clone()));
    transaction
        .write
        .push(Write::put(key.clone(), commit_to_bytes(&key, commit)));
    for given in &commit.given {
        let key = keys.number_key(series, given.mark.key);
        transaction
            .compare
            .push(Compare::Created(key.clone(), Revision::ABSENT));
        transaction.write.push(Write::put(key, key_to_bytes(given)));
    }
    summary
}

/// Adds changes of the form in which numbers are written. The transaction must also issue the first
/// number in each new form. It need not compare these rows. If another node writes one of them, it
/// also changes the row of the series, which is compared.
pub(in crate::records) fn put_forms(
    keys: &Keys,
    forms: &[FormChange],
    transaction: &mut Transaction,
) {
    for change in forms {
        let key = keys.number_form(&change.series, change.from);
        let value = form_to_bytes(&key, change);
        transaction.write.push(Write::put(key, value));
    }
}

/// Adds the closing of a series to a transaction that issues none of its numbers. The closing
/// changes the row of the series. Transactions that were drafted earlier compare that row, so they
/// cannot issue numbers any more.
fn close(
    keys: &Keys,
    attempt: Attempt,
    series: &SeriesName,
    of_series: &OfSeries,
    transaction: &mut Transaction,
) {
    let closed = of_series.closed.clone().expect("its plan was added");
    let summary = match of_series.before.clone() {
        Some(before) => SeriesSummary {
            closed: Some(closed),
            ..before
        },
        None => SeriesSummary::unbegun(closed),
    };
    let key = keys.series(series);
    transaction
        .compare
        .push(Compare::Modified(key.clone(), of_series.revision));
    transaction.otherwise.push(Range::one(key.clone()));
    let value = series_to_bytes(&key, attempt, &summary);
    transaction.write.push(Write::put(key, value));
}

/// Adds the deletion of a wrong first number to the transaction that issues the right one. The
/// transaction fails if the wrong number is void.
pub(in crate::records) fn remove_wrong(
    keys: &Keys,
    wrong: &GivenNumbers,
    transaction: &mut Transaction,
) {
    let void = keys.void(&wrong.series, wrong.last);
    transaction
        .compare
        .push(Compare::Created(void, Revision::ABSENT));
    let rows = [
        keys.numbers(&wrong.series, wrong.last),
        keys.number_key(&wrong.series, wrong.mark.key),
        keys.number_form(&wrong.series, wrong.first),
    ];
    for key in rows {
        // etcd refuses a transaction that writes a key twice. If the transaction already writes the
        // row, it replaces the row, so no deletion is needed.
        if !transaction.write.iter().any(|write| *write.key() == key) {
            transaction.write.push(Write::Delete(key));
        }
    }
}

/// Returns the stored number `number`, or `None` if it was not issued. `row` is the first row of
/// the series whose last number is at or above `number`. No other row can contain it.
fn stored_number(
    keys: &Keys,
    (series, number): (&SeriesName, u64),
    row: KeyValue,
) -> Result<Option<StoredNumber>, StoreError> {
    let last = keys.numbers_of(&row.key).map(|(_, last)| last);
    let commit = last
        .and_then(|last| commit_of_bytes(&row.key, series, last, &row.value))
        .ok_or_else(|| unreadable(&row.key, &row.value))?;
    let given = commit
        .given
        .iter()
        .find(|given| (given.first..=given.last).contains(&number));
    Ok(given.map(|given| StoredNumber {
        request: given.mark.key,
        revision: row.modified,
        key: row.key,
    }))
}

fn revision_of(found: Option<&KeyValue>) -> Revision {
    found.map_or(Revision::ABSENT, |row| row.modified)
}
