//! Copies the series of a single node into a fleet. The row of a series itself is written last, and
//! the fleet issues no number of the series before that row exists.

use super::adopted_batch::AdoptedBatch;
use super::record_adopter::{ADOPTED, AdoptError, AdoptedCount, RecordAdopter};
use crate::coordinator::Key;
use crate::records::keys::Keys;
use crate::records::numbers::{
    GivenCommit, VoidRow, commit_to_bytes, form_to_bytes, key_to_bytes, series_to_bytes,
    void_to_bytes,
};
use idmint_records::ledger::{
    ClosedSeries, FormChange, FormerTemplate, GivenNumbers, KeptTemplates, NumberKinds, SeriesName,
    VoidedNumber,
};
use idmint_storage::{NumberStore, SeriesSummary, StoreError};

/// The maximum number of requests whose numbers are stored in one row.
const GIVEN_MAX: usize = 100;

/// The number of series that are read from the folder at a time.
const SERIES_PAGE: usize = 100;

/// The maximum number of rows that are read in one request.
const ROWS_READ_MAX: usize = 100;

impl RecordAdopter {
    /// Checks that the adopted node and the fleet's nodes were last started with the same templates
    /// for the texts of numbers, and with the same kinds for the series in the folder. Also checks
    /// that the fleet has not closed a series of which the folder has further numbers. `of` is the
    /// number store in the folder of the adopted node.
    ///
    /// Call this method only before an adoption begins. Later no node can start on the folder, so
    /// an operator could not correct the difference. When an adoption is repeated after a restore,
    /// a journal may have closed a series again whose numbers only the folder still has.
    ///
    /// The node's last start compared these templates with the texts of all numbers in the folder.
    /// So with the same templates, the fleet never writes one of these texts for another number.
    ///
    /// # Errors
    /// Returns [`AdoptError::OtherTemplates`], [`AdoptError::OtherKind`] or [`AdoptError::Differs`]
    /// if they differ, and [`AdoptError::Store`] if the fleet cannot be read.
    pub(crate) fn check_rules(&self, of: &dyn NumberStore) -> Result<(), AdoptError> {
        if of.series(None, 1)?.is_empty() {
            return Ok(());
        }
        let (own, (_, there)) = (of.templates()?, self.store.number_templates()?);
        let is_alike = there.last().is_none() || there.last() == own.last();
        if own.last().is_none() || !is_alike {
            let text = differences(own.last(), there.last());
            return Err(AdoptError::OtherTemplates(text));
        }
        if let Some(there) = self.store.number_kinds()?
            && let Some((series, own)) = other_kinds(of, &there)?.into_iter().next()
        {
            return Err(AdoptError::OtherKind {
                there: there.of(&series).to_owned(),
                series,
                own,
            });
        }
        for_each_series(of, |own| {
            let there = self.store.series_summary(&own.series)?;
            let last = |summary: &SeriesSummary| summary.head().map(|head| head.last);
            let is_further = |there: &SeriesSummary| last(there) < last(&own);
            match there.filter(|there| there.closed.is_some()) {
                Some(there) if is_further(&there) => Err(AdoptError::Differs {
                    what: format!("series {}", own.series),
                    key: self.store.keys.series(&own.series),
                }),
                Some(_) | None => Ok(()),
            }
        })
    }

    /// Stores the folder's templates for the texts of numbers, and the kinds of its series, in the
    /// fleet. Does nothing on trial. `of` is the folder's number store. Call this method before
    /// [`RecordAdopter::adopt_series`].
    ///
    /// # Errors
    /// Returns [`AdoptError::Store`] if the fleet cannot be read or written.
    pub(crate) fn adopt_rules(&self, of: &dyn NumberStore) -> Result<(), AdoptError> {
        if self.is_trial || of.series(None, 1)?.is_empty() {
            return Ok(());
        }
        let there = self.store.number_kinds()?;
        let is_first = there.is_none();
        let mut kinds = there.map_or_else(|| of.kinds().map(Option::unwrap_or_default), Ok)?;
        let others = other_kinds(of, &kinds)?;
        if is_first || !others.is_empty() {
            let of_series = |(series, kind): (SeriesName, String)| (series.to_string(), kind);
            kinds.0.extend(others.into_iter().map(of_series));
            self.store.keep_number_kinds(&kinds)?;
        }
        let own = of.templates()?;
        loop {
            let (revision, there) = self.store.number_templates()?;
            let both = there.with_taken_over(&own);
            if both == there || self.store.keep_number_templates(revision, &both)? {
                return Ok(());
            }
        }
    }

    /// Copies a series with all its numbers into the fleet. `of` is the number store in the data
    /// folder of the single node, which the fleet takes over. A series that the fleet has closed
    /// stays closed.
    ///
    /// # Errors
    /// Returns [`AdoptError`] if the fleet's numbers differ, or if the fleet cannot be read or
    /// written.
    pub(crate) fn adopt_series(
        &self,
        summary: &SeriesSummary,
        of: &dyn NumberStore,
    ) -> Result<AdoptedCount, AdoptError> {
        let (series, keys) = (&summary.series, &self.store.keys);
        let (revision, there) = self.store.series_row(series)?;
        let differs = |key: &Key| AdoptError::Differs {
            what: format!("series {series}"),
            key: key.clone(),
        };
        let begun = there.as_ref().filter(|there| there.has_numbers());
        if begun.is_some_and(|there| there.first != summary.first) {
            return Err(differs(&keys.series(series)));
        }
        let known = begun.map(|there| there.last);
        let last = summary.head().map(|head| head.last);
        let mut batch = AdoptedBatch::new(&self.store, self.is_trial);
        let mut earlier_form = earlier_form(summary, of)?;
        let (mut count, mut next) = (AdoptedCount::default(), Some(summary.first));
        while let Some(from) = next {
            let given = of.given(series, from, GIVEN_MAX)?;
            let Some(last) = given.last().map(|given| given.last) else {
                break;
            };
            count.parts += given.iter().map(GivenNumbers::count).sum::<u64>();
            count.requests += u64::try_from(given.len()).expect("a page is short");
            // Compare numbers instead of rows, because the rows may group the same numbers
            // differently. `old` has the folder's numbers up to the fleet's last one, so the fleet
            // must have them as well.
            let (old, new) =
                given.split_at(given.partition_point(|given| Some(given.last) <= known));
            let is_alike = self.store.given_from(series, from, old.len())? == old;
            if !is_alike || new.first().is_some_and(|given| Some(given.first) <= known) {
                return Err(differs(&keys.numbers(series, last)));
            }
            let voids = of.voids(series, from..=last)?;
            let mut rows = void_rows_of(keys, &given, &voids);
            let mut forms = of.forms(series, from..=last)?;
            forms.retain(|change| change.from >= from);
            forms.extend(earlier_form.take());
            rows.extend(form_rows_of(keys, &forms));
            if !new.is_empty() {
                rows.extend(rows_of(keys, new, from == summary.first && old.is_empty()));
            }
            for some in rows.chunks(ROWS_READ_MAX) {
                batch
                    .create_missing(some, true)?
                    .map_or(Ok(()), |key| Err(differs(key)))?;
            }
            next = last.checked_add(1);
        }
        // If the fleet has issued numbers after the folder's last number, the fleet's row of the
        // series is newer. Keep that row, even if the folder has closed the series.
        let closed = there.and_then(|there| there.closed);
        if known > last || known == last && (closed.is_some() || summary.closed.is_none()) {
            count.found += 1;
        } else {
            let key = keys.series(series);
            let closed = closed.map(|closed| ClosedSeries { last, ..closed });
            let summary = SeriesSummary {
                closed: closed.or(summary.closed.clone()),
                ..summary.clone()
            };
            let value = series_to_bytes(&key, ADOPTED, &summary);
            batch.update(key, value, revision)?;
            count.written += 1;
        }
        batch.flush()?;
        Ok(count)
    }
}

/// Returns a text that lists the templates that only the folder or only the fleet has. If `folder`
/// is `None`, the folder's node stored no templates at its last start, and the text says so.
fn differences(folder: Option<&KeptTemplates>, fleet: Option<&KeptTemplates>) -> String {
    let Some(folder) = folder else {
        return "the folder has none of the last start".to_owned();
    };
    let (folder, fleet) = (
        folder.templates(),
        fleet.map_or(&[][..], KeptTemplates::templates),
    );
    let sides = [("folder", folder, fleet), ("fleet", fleet, folder)];
    let only = sides.into_iter().flat_map(|(place, some, others)| {
        let is_only_here = |template: &&FormerTemplate| !others.contains(template);
        let text = move |template: &FormerTemplate| {
            let columns = template.to_string().replace('\t', " ");
            format!("only the {place} has `{columns}`")
        };
        some.iter().filter(is_only_here).map(text)
    });
    only.collect::<Vec<_>>().join(", ")
}

/// Returns the folder's series whose kind differs in the fleet, each with its kind in the folder.
/// `of` is the folder's number store.
fn other_kinds(
    of: &dyn NumberStore,
    there: &NumberKinds,
) -> Result<Vec<(SeriesName, String)>, AdoptError> {
    let own = of.kinds()?.unwrap_or_default();
    let mut others = Vec::new();
    for_each_series(of, |SeriesSummary { series, .. }| {
        let kind = own.of(&series);
        if kind != there.of(&series) {
            others.push((series.clone(), kind.to_owned()));
        }
        Ok(())
    })?;
    Ok(others)
}

/// Calls `see` for each series in the folder. `of` is the number store in the folder.
fn for_each_series(
    of: &dyn NumberStore,
    mut see: impl FnMut(SeriesSummary) -> Result<(), AdoptError>,
) -> Result<(), AdoptError> {
    let mut after = None;
    loop {
        let page = of.series(after.as_ref(), SERIES_PAGE)?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = Some(last.series.clone());
        page.into_iter().try_for_each(&mut see)?;
    }
}

/// Converts changes of the form in which numbers are written to rows, each with its key.
fn form_rows_of(keys: &Keys, forms: &[FormChange]) -> Vec<(Key, Vec<u8>)> {
    let row = |change: &FormChange| {
        let key = keys.number_form(&change.series, change.from);
        (key.clone(), form_to_bytes(&key, change))
    };
    forms.iter().map(row).collect()
}

/// Returns the form to store with the first numbers of a gapless series, or `None` if the folder
/// already has one. Without a stored form, the folder's node wrote numbers by the templates of its
/// first start, which the fleet does not have.
fn earlier_form(
    summary: &SeriesSummary,
    of: &dyn NumberStore,
) -> Result<Option<FormChange>, StoreError> {
    let series = &summary.series;
    let Some(first) = of.given(series, summary.first, 1)?.pop() else {
        return Ok(None);
    };
    let is_gapless = of
        .kinds()?
        .is_none_or(|kinds| kinds.of(series) == "gapless");
    if !is_gapless || of.form_at(series, first.first)?.is_some() {
        return Ok(None);
    }
    Ok(of.templates()?.first().map(|templates| FormChange {
        series: series.clone(),
        from: first.first,
        of: first.mark.key,
        form: templates.form(series),
    }))
}

/// Converts issued numbers to rows, each with its key. One row has all the numbers, and each
/// idempotency key has its own row.
fn rows_of(keys: &Keys, given: &[GivenNumbers], begins: bool) -> Vec<(Key, Vec<u8>)> {
    let commit = GivenCommit {
        attempt: ADOPTED,
        begins,
        given: given.to_vec(),
    };
    let key = keys.numbers(&given[0].series, commit.last());
    let value = commit_to_bytes(&key, &commit);
    let of_key = |given: &GivenNumbers| {
        let key = keys.number_key(&given.series, given.mark.key);
        (key, key_to_bytes(given))
    };
    std::iter::once((key, value))
        .chain(given.iter().map(of_key))
        .collect()
}

/// Converts void numbers to rows, each with its key. `given` has all issued numbers, including the
/// void ones, with their requests.
fn void_rows_of(
    keys: &Keys,
    given: &[GivenNumbers],
    voids: &[VoidedNumber],
) -> Vec<(Key, Vec<u8>)> {
    let row = |void: &VoidedNumber| {
        let is_of = |given: &&GivenNumbers| (given.first..=given.last).contains(&void.number);
        let of = given
            .iter()
            .find(is_of)
            .expect("only what is given is made void")
            .mark
            .key;
        let key = keys.void(&void.series, void.number);
        let row = VoidRow {
            attempt: ADOPTED,
            of,
            void: void.clone(),
        };
        (key.clone(), void_to_bytes(&key, &row))
    };
    voids.iter().map(row).collect()
}
