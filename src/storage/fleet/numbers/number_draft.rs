//! What one transaction gives and makes void, on top of what is stored.

use std::collections::{BTreeMap, BTreeSet};

use super::rows::{
    GivenCommit, VoidRow, commit_to_bytes, key_to_bytes, series_to_bytes, void_to_bytes,
};
use super::series::summary_of;
use crate::ledger::{GivenNumbers, KeyHash, NumberPlan, SeriesHead, SeriesName, VoidPlan};
use crate::storage::coordinator::{Compare, Key, KeyValue, Range, Revision, Transaction, Write};
use crate::storage::failure::StoreError;
use crate::storage::fleet::keys::Keys;
use crate::storage::fleet::rows::Attempt;
use crate::storage::records::{RecordPlan, SeriesSummary};

/// What plans need of a transaction.
#[derive(Default)]
pub(in crate::storage::fleet) struct NumbersNeed<'a> {
    series: BTreeSet<&'a SeriesName>,
    given: usize,
    voids: usize,
}

impl<'a> NumbersNeed<'a> {
    /// Adds what this one gives; returns about how many bytes that is.
    pub(in crate::storage::fleet) fn add_number(&mut self, plan: &'a NumberPlan) -> usize {
        self.given += 1;
        let of_series = if self.series.insert(&plan.given.series) {
            500
        } else {
            0
        };
        of_series + 500 + plan.given.by.as_ref().map_or(0, String::len)
    }

    /// Adds what this one makes void; returns about how many bytes that is.
    pub(in crate::storage::fleet) fn add_void(&mut self, plan: &VoidPlan) -> usize {
        self.voids += 1;
        500 + plan.void.reason.as_str().len() + plan.void.by.as_ref().map_or(0, String::len)
    }

    /// Rows that are written, at most. Fewer are compared.
    pub(in crate::storage::fleet) fn rows(&self) -> usize {
        2 * self.series.len() + self.given + self.voids
    }
}

/// Numbers of a round.
#[derive(Default)]
pub(in crate::storage::fleet) struct NumberDraft {
    series: BTreeMap<SeriesName, OfSeries>,
    keys: BTreeMap<(SeriesName, KeyHash), Revision>,
    voids: BTreeMap<(SeriesName, u64), OfVoid>,
}

/// A series before the round, and what the round gives of it.
#[derive(Default)]
struct OfSeries {
    revision: Revision,
    before: Option<SeriesSummary>,
    given: Vec<GivenNumbers>,
}

/// What was known of a number as void before the round, and what the round makes of it.
#[derive(Default)]
struct OfVoid {
    revision: Revision,
    plan: Option<VoidPlan>,
}

impl NumberDraft {
    /// What these plans are about; nothing of it is read yet.
    pub(in crate::storage::fleet) fn of(plans: &[RecordPlan]) -> NumberDraft {
        let mut round = NumberDraft::default();
        for plan in plans {
            match plan {
                RecordPlan::Number(NumberPlan { given, .. }) => {
                    round.series.entry(given.series.clone()).or_default();
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
                RecordPlan::Append(_) | RecordPlan::Anchor(_) => {}
            }
        }
        round
    }

    /// What is to be read, in the order in which [`NumberDraft::take`] takes it.
    pub(in crate::storage::fleet) fn ranges(&self, keys: &Keys) -> Vec<Range> {
        let series = self.series.keys().map(|series| keys.series(series));
        let of_keys = self
            .keys
            .keys()
            .map(|(series, key)| keys.number_key(series, *key));
        let voids = self
            .voids
            .keys()
            .map(|(series, number)| keys.void(series, *number));
        series.chain(of_keys).chain(voids).map(Range::one).collect()
    }

    /// Takes in what was read.
    ///
    /// # Errors
    /// [`StoreError`]: it is not what was written.
    pub(in crate::storage::fleet) fn take(
        &mut self,
        mut next: impl FnMut() -> Option<KeyValue>,
    ) -> Result<(), StoreError> {
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
        Ok(())
    }

    /// Adds numbers. Returns whether what they were decided on still holds.
    #[must_use]
    pub(in crate::storage::fleet) fn add_number(
        &mut self,
        NumberPlan { before, given }: &NumberPlan,
    ) -> bool {
        let of_series = self
            .series
            .get_mut(&given.series)
            .expect("its series was read");
        let stored = of_series.before.as_ref().map(|series| SeriesHead {
            last: series.last,
            recorded: series.updated,
        });
        let head = of_series.given.last().map(GivenNumbers::head).or(stored);
        let key = (given.series.clone(), given.mark.key);
        // Somebody may have been faster with the same key.
        let is_current = head == *before && self.keys.get(&key) == Some(&Revision::ABSENT);
        of_series.given.push(given.clone());
        is_current
    }

    /// Makes a number void. Returns whether it was not.
    #[must_use]
    pub(in crate::storage::fleet) fn add_void(&mut self, plan: &VoidPlan) -> bool {
        let place = (plan.void.series.clone(), plan.void.number);
        let of_void = self.voids.get_mut(&place).expect("its row was read");
        of_void.plan.replace(plan.clone()).is_none() && of_void.revision == Revision::ABSENT
    }

    /// Adds all of it to a transaction.
    pub(in crate::storage::fleet) fn write(
        &self,
        keys: &Keys,
        attempt: Attempt,
        transaction: &mut Transaction,
    ) {
        for of_series in self.series.values() {
            let commit = GivenCommit {
                attempt,
                begins: of_series.before.is_none(),
                given: of_series.given.clone(),
            };
            put_commit(
                keys,
                of_series.before.as_ref(),
                of_series.revision,
                &commit,
                transaction,
            );
        }
        for ((series, number), of_void) in &self.voids {
            let VoidPlan { of, void } = of_void.plan.clone().expect("its plan was added");
            let key = keys.void(series, *number);
            transaction
                .compare
                .push(Compare::Created(key.clone(), Revision::ABSENT));
            transaction.otherwise.push(Range::one(key.clone()));
            let value = void_to_bytes(&key, &VoidRow { attempt, of, void });
            transaction.write.push(Write::put(key, value));
        }
    }

    /// The keys of the rows that the first numbers of each series stand behind.
    pub(in crate::storage::fleet) fn predecessors<'p>(
        keys: &'p Keys,
        plans: &'p [RecordPlan],
    ) -> impl Iterator<Item = Key> + 'p {
        let mut seen = BTreeSet::new();
        plans.iter().filter_map(move |plan| match plan {
            RecordPlan::Number(NumberPlan { before, given })
                if seen.insert(given.series.clone()) =>
            {
                before.map(|head| keys.numbers(&given.series, head.last))
            }
            RecordPlan::Number(_)
            | RecordPlan::Void(_)
            | RecordPlan::Append(_)
            | RecordPlan::Anchor(_) => None,
        })
    }
}

/// Adds to a transaction what was given of a series, whose row was as it is `before` by this revision, with the keys. Returns the
/// series after it.
pub(in crate::storage::fleet) fn put_commit(
    keys: &Keys,
    before: Option<&SeriesSummary>,
    revision: Revision,
    commit: &GivenCommit,
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
    };
    transaction
        .compare
        .push(Compare::Modified(key.clone(), revision));
    transaction
        .write
        .push(Write::put(key.clone(), series_to_bytes(&key, &summary)));
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

fn revision_of(found: Option<&KeyValue>) -> Revision {
    found.map_or(Revision::ABSENT, |row| row.modified)
}
