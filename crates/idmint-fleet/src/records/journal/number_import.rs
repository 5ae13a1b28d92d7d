//! Imports numbers from the journals of nodes into a coordinator that has lost these numbers. The
//! import continues each series without a gap, and overwrites no number.

use std::collections::{BTreeMap, BTreeSet};

use super::journal_import::{IMPORTED, ImportError, JournalImport, overtaken};
use super::number_copies::JournalledNumbers;
use super::reimported::{LostNumbers, Reimported};
use crate::coordinator::{Compare, Range, Revision, Transaction, Write};
use crate::records::known_fleet::FleetEra;
use crate::records::numbers::{
    GivenCommit, VoidRow, put_commit, put_forms, remove_wrong, series_to_bytes, void_to_bytes,
};
use idmint_records::ledger::{
    ClosedSeries, FormChange, GivenNumbers, KeyHash, NumberForm, SeriesName,
};
use idmint_storage::StoreError;
use idmint_storage::{NumberRecord, SeriesSummary};

/// The maximum number of requests whose numbers are written in one transaction. For each request,
/// the transaction may also change the form in which numbers are written.
const GIVEN_MAX: usize = 50;

/// The next numbers of a series that one transaction imports.
struct Next<'a> {
    given: &'a [GivenNumbers],
    /// The form in which each entry of `given` is written, or `None` if it is written like the
    /// entry before it.
    forms: &'a [Option<NumberForm>],
    /// The last number that was issued for each idempotency key. If two requests share a key, the
    /// request of the later era counts.
    owners: &'a BTreeMap<KeyHash, u64>,
    /// `true` if a closed series is opened again.
    is_reopened: bool,
    /// The stored first number, if it is wrong and the restore has lost its correction. The
    /// imported numbers replace it.
    replaces: Option<GivenNumbers>,
}

impl JournalImport<'_> {
    /// Continues every series with the journalled numbers, each written in the same form as when it
    /// was issued. Then voids the numbers again that were void before the restore, and closes the
    /// series again that were closed.
    pub(super) fn import_numbers(&self, done: &mut Reimported) -> Result<(), ImportError> {
        for (series, journalled) in &self.copies.numbers.series {
            let mut there = self.store.series_summary(series)?;
            let mut wrong = self.wrong_first(there.as_ref(), journalled)?;
            let head = there.as_ref().and_then(SeriesSummary::head);
            let head = head.filter(|_| wrong.is_none());
            let (next, others) = choose(head.map(|head| head.last), journalled);
            let is_reopened = self.copies.numbers.is_reopened_by(series, &next);
            done.series += u64::from(!next.is_empty());
            let mut forms = &self.copies.numbers.forms_of(series, &next)[..];
            let owners = owners_of_keys(&next);
            let next: Vec<_> = next
                .into_iter()
                .map(|journalled| journalled.given)
                .collect();
            let mut rest = &next[..];
            while !rest.is_empty() {
                let (some, forms_of_some);
                (some, rest) = rest.split_at(count_without_repeated_key(rest));
                (forms_of_some, forms) = forms.split_at(some.len());
                let next = Next {
                    given: some,
                    forms: forms_of_some,
                    owners: &owners,
                    is_reopened,
                    replaces: wrong.take(),
                };
                there = Some(self.continue_series(series, there, next)?);
                done.numbers += some.iter().map(GivenNumbers::count).sum::<u64>();
            }
            self.report_lost_numbers(&others, there.map_or(0, |there| there.last), done)?;
        }
        self.import_voids(done)?;
        for (closed, era) in &self.copies.numbers.closed {
            self.close(closed, *era)?;
        }
        Ok(())
    }

    /// Closes a series again that was closed in the era `era`. The series stays open if it has
    /// numbers above `closed.last` that were issued after a restore had undone the closing. Numbers
    /// of an earlier era do not keep it open, because it was closed while they were lost.
    fn close(&self, closed: &ClosedSeries, era: FleetEra) -> Result<(), ImportError> {
        let (revision, there) = self.store.series_row(&closed.series)?;
        let last = there
            .as_ref()
            .and_then(SeriesSummary::head)
            .map(|head| head.last);
        let is_closed = there.as_ref().is_some_and(|there| there.closed.is_some());
        let numbers = &self.copies.numbers;
        let is_undone = last > closed.last && !numbers.are_before_closing(closed, era, last);
        if is_closed || is_undone {
            return Ok(());
        }
        let closed = ClosedSeries {
            last,
            ..closed.clone()
        };
        let summary = match there {
            Some(there) => SeriesSummary {
                closed: Some(closed),
                ..there
            },
            None => SeriesSummary::unbegun(closed),
        };
        let key = self.store.keys.series(&summary.series);
        let value = series_to_bytes(&key, IMPORTED, &summary);
        self.commit(&Transaction {
            compare: vec![Compare::Modified(key.clone(), revision)],
            otherwise: vec![Range::one(key.clone())],
            write: vec![Write::put(key, value)],
            ..Transaction::default()
        })?;
        Ok(())
    }

    /// Returns the stored first number of a series if it is wrong and the restore has lost its
    /// correction. The wrong number is then the only stored one, and the journals have the right
    /// one.
    fn wrong_first(
        &self,
        there: Option<&SeriesSummary>,
        journalled: &[JournalledNumbers],
    ) -> Result<Option<GivenNumbers>, StoreError> {
        let is_only = |journalled: &&JournalledNumbers| {
            let JournalledNumbers { given, .. } = journalled;
            let ends = there.map(|there| (there.first, there.last));
            journalled.is_corrected && ends == Some((given.first, given.last))
        };
        for JournalledNumbers { given, .. } in journalled.iter().filter(is_only) {
            let stored = self.store.number(&given.series, given.first)?;
            let is_stored = |stored: &NumberRecord| stored.given == *given && stored.void.is_none();
            if stored.is_some_and(|stored| is_stored(&stored.found)) {
                return Ok(Some(given.clone()));
            }
        }
        Ok(None)
    }

    /// Writes numbers that follow the last number of a series, and the forms in which they are
    /// written. Returns the summary of the series with its new last number.
    fn continue_series(
        &self,
        series: &SeriesName,
        before: Option<SeriesSummary>,
        next: Next<'_>,
    ) -> Result<SeriesSummary, ImportError> {
        let Next {
            given,
            forms,
            owners,
            is_reopened,
            replaces,
        } = next;
        let keys = &self.store.keys;
        let of_keys = given
            .iter()
            .map(|given| keys.number_key(series, given.mark.key));
        let form = keys.form_at(series, given[0].first);
        let ranges = [Range::one(keys.series(series)), form]
            .into_iter()
            .chain(of_keys.map(Range::one));
        let mut found = self.store.read(&ranges.collect::<Vec<_>>())?.into_iter();
        let revision = found
            .next()
            .and_then(|found| found.first().map(|row| row.modified))
            .unwrap_or_default();
        let form = found.next().and_then(|mut found| found.pop());
        let form = form
            .map(|row| self.store.form_of(series, &row))
            .transpose()?;
        if self.store.series_summary(series)? != before {
            return Err(overtaken().into());
        }
        let mut transaction = Transaction::default();
        let begun = before.as_ref().filter(|before| before.has_numbers());
        let begun = begun.filter(|_| replaces.is_none());
        let commit = GivenCommit {
            attempt: IMPORTED,
            begins: begun.is_none(),
            given: given.to_vec(),
        };
        let closed = before.as_ref().and_then(|before| before.closed.clone());
        let closed = closed.filter(|_| !is_reopened).map(|closed| ClosedSeries {
            last: Some(commit.last()),
            ..closed
        });
        let summary = put_commit(
            keys,
            (revision, begun),
            &commit,
            closed.as_ref(),
            &mut transaction,
        );
        // If the stored first number is wrong and is replaced, ignore its form. That form is
        // removed together with it.
        let form = form.filter(|_| replaces.is_none());
        let forms = changes(form.map(|change| change.form), given, forms);
        put_forms(keys, &forms, &mut transaction);
        // After the restore, a caller may have repeated its request and received a new number. The
        // idempotency key keeps this new number, so the import does not change its row.
        let mut in_use: BTreeSet<String> = found.flatten().map(|row| row.key).collect();
        let of_others = given
            .iter()
            .filter(|given| owners[&given.mark.key] != given.last);
        if let Some(wrong) = &replaces {
            // An imported number may have the idempotency key of the wrong number, so that key need
            // not be unused. A change of the key's row also changes the series' row, whose revision
            // is compared.
            let key = keys.number_key(series, wrong.mark.key);
            transaction.compare.retain(|compare| *compare.key() != key);
            in_use.remove(&key);
        }
        in_use.extend(of_others.map(|given| keys.number_key(series, given.mark.key)));
        transaction
            .compare
            .retain(|compare| !in_use.contains(compare.key()));
        transaction
            .write
            .retain(|write| !matches!(write, Write::Put { key, .. } if in_use.contains(key)));
        if let Some(wrong) = &replaces {
            remove_wrong(keys, wrong, &mut transaction);
        }
        self.commit(&transaction)?;
        Ok(summary)
    }

    /// Looks up the numbers `others` in the coordinator, and adds the missing ones to the lost
    /// numbers in `done`. `last` is the last stored number of the series.
    fn report_lost_numbers(
        &self,
        others: &[GivenNumbers],
        last: u64,
        done: &mut Reimported,
    ) -> Result<(), StoreError> {
        for some in others.chunks(GIVEN_MAX) {
            let keys: Vec<_> = some
                .iter()
                .map(|given| (given.series.clone(), given.mark.key))
                .collect();
            for (given, found) in some.iter().zip(self.store.given_to(&keys)?.found) {
                if !self.is_there(given, found.as_ref())? {
                    done.lost_numbers.push(LostNumbers {
                        given: given.clone(),
                        is_replaced: given.first <= last,
                    });
                }
            }
        }
        Ok(())
    }

    /// `true` if the coordinator has the journalled numbers `given`, issued to the same request.
    /// `of_key` has the stored numbers for the key of that request.
    fn is_there(
        &self,
        given: &GivenNumbers,
        of_key: Option<&GivenNumbers>,
    ) -> Result<bool, StoreError> {
        let is_same = |there: &GivenNumbers| {
            (there.first, there.last, there.mark) == (given.first, given.last, given.mark)
        };
        if of_key.is_some_and(is_same) {
            return Ok(true);
        }
        let by_number = self.store.number(&given.series, given.first)?;
        Ok(by_number.is_some_and(|there| is_same(&there.found.given)))
    }

    /// Voids the numbers again that are void according to a journal. A number that now belongs to
    /// another request stays valid.
    fn import_voids(&self, done: &mut Reimported) -> Result<(), ImportError> {
        for journalled in &self.copies.numbers.voids {
            let VoidRow { of, void, .. } = &journalled.row;
            let there = self
                .store
                .number(&void.series, void.number)?
                .map(|there| there.found);
            if there.is_some_and(|there| there.given.mark.key == *of && there.void.is_none()) {
                let key = self.store.keys.void(&void.series, void.number);
                let value = void_to_bytes(
                    &key,
                    &VoidRow {
                        attempt: IMPORTED,
                        of: *of,
                        void: void.clone(),
                    },
                );
                self.commit(&Transaction {
                    compare: vec![Compare::Created(key.clone(), Revision::ABSENT)],
                    otherwise: vec![Range::one(key.clone())],
                    write: vec![Write::put(key, value)],
                    ..Transaction::default()
                })?;
                done.voids += 1;
            }
        }
        Ok(())
    }
}

/// Returns the last number of the request that owns each idempotency key of a series.
///
/// Two requests have the same key if a restore lost the numbers of the first one, and the caller
/// repeated its request. The request of the later era owns the key, because the caller received its
/// numbers last.
fn owners_of_keys(next: &[JournalledNumbers]) -> BTreeMap<KeyHash, u64> {
    let mut by_age: Vec<_> = next.iter().collect();
    by_age.sort_by_key(|journalled| (journalled.era, journalled.given.recorded));
    by_age
        .into_iter()
        .map(|JournalledNumbers { given, .. }| (given.mark.key, given.last))
        .collect()
}

/// Returns how many of the first requests fit into one row of numbers. A row must not repeat an
/// idempotency key, because nodes find a request in a row by its key alone.
fn count_without_repeated_key(given: &[GivenNumbers]) -> usize {
    let mut keys = BTreeSet::new();
    let fits = given.iter().take(GIVEN_MAX);
    fits.take_while(|given| keys.insert(given.mark.key)).count()
}

/// Returns the changes of form to store with the numbers `given`. `forms` says how each entry of
/// `given` is written, with `None` if it is written like the numbers before it. `latest` is the
/// form of the number before `given`.
fn changes(
    mut latest: Option<NumberForm>,
    given: &[GivenNumbers],
    forms: &[Option<NumberForm>],
) -> Vec<FormChange> {
    let mut changes = Vec::new();
    for (given, form) in given.iter().zip(forms) {
        if form.is_none() || *form == latest {
            continue;
        }
        latest.clone_from(form);
        changes.extend(form.clone().map(|form| FormChange {
            series: given.series.clone(),
            from: given.first,
            of: given.mark.key,
            form,
        }));
    }
    changes
}

/// Splits the journalled numbers of a series into those that continue the series after `last`, in
/// order, and all others. Leaves out a wrong first number that was later corrected.
fn choose(
    last: Option<u64>,
    journalled: &[JournalledNumbers],
) -> (Vec<JournalledNumbers>, Vec<GivenNumbers>) {
    let journalled: Vec<&JournalledNumbers> = journalled
        .iter()
        .filter(|journalled| !journalled.is_corrected)
        .collect();
    let (mut last, mut next, mut taken) = (last, Vec::new(), BTreeSet::new());
    loop {
        let continues = |journalled: &JournalledNumbers| match last {
            None => journalled.begins,
            Some(last) => last.checked_add(1) == Some(journalled.given.first),
        };
        // `journalled` is sorted by the first number of each entry.
        let from =
            journalled.partition_point(|other| last.is_some_and(|last| other.given.first <= last));
        let candidates = journalled.iter().enumerate().skip(from);
        let candidates = candidates.take_while(|(_, other)| last.is_none() || continues(other));
        // Two entries begin with the same number if an earlier restore lost the first entry, and
        // the number was then issued to another request. Choose the entry of the later era.
        let latest = candidates
            .filter(|(_, other)| continues(other))
            .max_by_key(|(_, other)| (other.era, other.given.recorded, other.given.last));
        let Some((at, chosen)) = latest else { break };
        last = Some(chosen.given.last);
        taken.insert(at);
        next.push((*chosen).clone());
    }
    let others = journalled
        .iter()
        .enumerate()
        .filter(|(at, _)| !taken.contains(at));
    (next, others.map(|(_, other)| other.given.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::journal::number_copies::NumberCopies;
    use idmint_core::time::UnixNanos;
    use idmint_records::ledger::NumberPlan;
    use idmint_storage::RecordPlan;
    use idmint_storage::samples::{form, given_plan, series};

    /// Returns `count` numbers from `first` on, issued to `key`. A higher `era` is later.
    fn journalled(first: u64, count: u64, key: &str, era: u64) -> JournalledNumbers {
        let RecordPlan::Number(NumberPlan { given, .. }) =
            given_plan(&series("acme"), 1, key, None)
        else {
            unreachable!("made")
        };
        let given = GivenNumbers {
            first,
            last: first + count - 1,
            ..given
        };
        JournalledNumbers {
            given,
            begins: first == 1,
            is_corrected: false,
            era: FleetEra {
                floor: UnixNanos::new(era),
                ..FleetEra::default()
            },
        }
    }

    fn firsts_of(journalled: &[JournalledNumbers]) -> Vec<(u64, u64)> {
        let given: Vec<_> = journalled.iter().map(|it| it.given.clone()).collect();
        firsts(&given)
    }

    fn firsts(given: &[GivenNumbers]) -> Vec<(u64, u64)> {
        given
            .iter()
            .map(|given| (given.first, given.last))
            .collect()
    }

    #[test]
    fn a_series_is_continued_without_a_gap_by_what_was_there_last() {
        let all = [
            journalled(1, 1, "a", 1),
            journalled(2, 2, "b", 1),
            journalled(2, 1, "c", 2),
            journalled(3, 1, "d", 2),
            journalled(4, 1, "e", 1),
            journalled(6, 1, "f", 2),
        ];
        let (next, others) = choose(None, &all);
        assert_eq!(
            (firsts_of(&next), firsts(&others)),
            (vec![(1, 1), (2, 2), (3, 3), (4, 4)], vec![(2, 3), (6, 6)])
        );
        let (next, others) = choose(Some(3), &all);
        assert_eq!((firsts_of(&next), others.len()), (vec![(4, 4)], 5));
        assert_eq!(choose(None, &all[1..]).0, [], "nobody knows how it began");
        assert_eq!(choose(Some(9), &all).0, []);
    }

    #[test]
    fn each_number_has_the_form_of_its_own_era() {
        let mut copies = NumberCopies::default();
        let all = [
            journalled(1, 3, "a", 1),
            journalled(4, 1, "lost", 1),
            journalled(5, 1, "b", 1),
            journalled(4, 1, "c", 2),
        ];
        for (at, before) in [(0, "OLD-"), (1, "LOST-")] {
            let JournalledNumbers { given, era, .. } = &all[at];
            let change = FormChange {
                series: given.series.clone(),
                from: given.first,
                of: given.mark.key,
                form: form(before),
            };
            copies.add_form(change, *era);
        }
        let mut sorted = all.to_vec();
        sorted.sort_by_key(|it| it.given.first);
        let (next, _) = choose(None, &sorted);
        assert_eq!(firsts_of(&next), [(1, 3), (4, 4), (5, 5)]);
        assert_eq!(next[1].given, all[3].given, "of the later era");
        // The numbers 4 and 5 were issued as `LOST-4` and `LOST-5`. After a restore, 4 was issued
        // again as `OLD-4`, in the form of the numbers before it. The imported 5 must keep its text
        // `LOST-5`.
        let forms = copies.forms_of(&series("acme"), &next);
        assert_eq!(forms, [Some(form("OLD-")), None, Some(form("LOST-"))]);
        let given: Vec<_> = next.into_iter().map(|it| it.given).collect();
        let stored = changes(None, &given, &forms);
        let text = |number| FormChange::form_at(&stored, number).map(|form| form.text(number));
        let texts = [3, 4, 5].map(|number| text(number).expect("a form"));
        assert_eq!(texts, ["OLD-3", "OLD-4", "LOST-5"]);
    }
}
