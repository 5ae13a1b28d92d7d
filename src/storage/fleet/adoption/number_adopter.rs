//! Numbers of a node that moves into a fleet. The row of a series comes last: until then the fleet gives none of it.

use super::adopted_batch::AdoptedBatch;
use super::record_adopter::{ADOPTED, AdoptError, AdoptedCount, RecordAdopter};
use crate::ledger::{GivenNumbers, VoidedNumber};
use crate::storage::coordinator::Key;
use crate::storage::fleet::keys::Keys;
use crate::storage::fleet::numbers::{
    GivenCommit, VoidRow, commit_to_bytes, key_to_bytes, series_to_bytes, void_to_bytes,
};
use crate::storage::records::{NumberStore, SeriesSummary};

/// Requests whose numbers share a row.
const GIVEN_MAX: usize = 100;

/// Rows that are read at once.
const ROWS_READ_MAX: usize = 100;

impl RecordAdopter {
    /// Adopts a series of the numbers of a folder.
    ///
    /// # Errors
    /// [`AdoptError`].
    pub fn adopt_series(
        &self,
        summary: &SeriesSummary,
        of: &dyn NumberStore,
    ) -> Result<AdoptedCount, AdoptError> {
        let (series, keys) = (&summary.series, &self.store.keys);
        let there = self.store.series_summary(series)?;
        let differs = |key: &Key| AdoptError::Differs {
            what: format!("series {series}"),
            key: key.clone(),
        };
        if there
            .as_ref()
            .is_some_and(|there| there.first != summary.first || there.last < summary.last)
        {
            return Err(differs(&keys.series(series)));
        }
        let mut batch = AdoptedBatch::new(&self.store, self.is_trial);
        let (mut count, mut next) = (AdoptedCount::default(), Some(summary.first));
        while let Some(from) = next {
            let given = of.given(series, from, GIVEN_MAX)?;
            let Some(last) = given.last().map(|given| given.last) else {
                break;
            };
            let rows = rows_of(
                keys,
                &given,
                from == summary.first,
                &of.voids(series, from..=last)?,
            );
            count.parts += given.iter().map(GivenNumbers::count).sum::<u64>();
            count.requests += u64::try_from(given.len()).expect("a page is short");
            for some in rows.chunks(ROWS_READ_MAX) {
                batch
                    .create_missing(some, there.is_none())?
                    .map_or(Ok(()), |key| Err(differs(key)))?;
            }
            next = last.checked_add(1);
        }
        match there {
            Some(_) => count.found += 1,
            None => {
                let key = keys.series(series);
                let value = series_to_bytes(&key, summary);
                batch.create(key, value)?;
                count.written += 1;
            }
        }
        batch.flush()?;
        Ok(count)
    }
}

/// What requests were given as rows of the fleet, with their keys and those numbers that are void.
fn rows_of(
    keys: &Keys,
    given: &[GivenNumbers],
    begins: bool,
    voids: &[VoidedNumber],
) -> Vec<(Key, Vec<u8>)> {
    let commit = GivenCommit {
        attempt: ADOPTED,
        begins,
        given: given.to_vec(),
    };
    let key = keys.numbers(&given[0].series, commit.last());
    let value = commit_to_bytes(&key, &commit);
    let mut rows = vec![(key, value)];
    rows.extend(given.iter().map(|given| {
        (
            keys.number_key(&given.series, given.mark.key),
            key_to_bytes(given),
        )
    }));
    rows.extend(voids.iter().map(|void| {
        let is_of = |given: &&GivenNumbers| (given.first..=given.last).contains(&void.number);
        let of = given
            .iter()
            .find(is_of)
            .expect("only what is given is made void")
            .mark
            .key;
        let key = keys.void(&void.series, void.number);
        let value = void_to_bytes(
            &key,
            &VoidRow {
                attempt: ADOPTED,
                of,
                void: void.clone(),
            },
        );
        (key, value)
    }));
    rows
}
