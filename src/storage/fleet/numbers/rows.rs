//! Numbers as bytes, under the keys of their series. As all rows of a fleet they are sealed by version and checksum.
//!
//! ```text
//! series    first number 8, last number 8, microseconds since 1970 when that was given 8
//! numbers   attempt 16, 1 if the series begins with it, else 0, then what each request was given, in the order of the numbers:
//!           last number 8, length 2, row (`number_rows`)
//! key       its last number (`number_rows`)
//! void      attempt 16, key that the number was given to 16, row (`number_rows`)
//! ```

use crate::ledger::{EventTime, GivenNumbers, KeyHash, SeriesName, VoidedNumber};
use crate::storage::fleet::rows::{Attempt, opened, sealed, take, take_time};
use crate::storage::records::SeriesSummary;
use crate::storage::records::number_rows;

/// What one transaction gave of one series, to one request at least.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::storage::fleet) struct GivenCommit {
    /// The transaction that wrote it.
    pub(in crate::storage::fleet) attempt: Attempt,
    /// Whether there was nothing of the series before.
    pub(in crate::storage::fleet) begins: bool,
    /// In the order of the numbers.
    pub(in crate::storage::fleet) given: Vec<GivenNumbers>,
}

/// A number that is void.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::storage::fleet) struct VoidRow {
    /// The transaction that wrote it.
    pub(in crate::storage::fleet) attempt: Attempt,
    /// The key that the number was given to.
    pub(in crate::storage::fleet) of: KeyHash,
    /// The number.
    pub(in crate::storage::fleet) void: VoidedNumber,
}

impl GivenCommit {
    /// The last of its numbers.
    pub(in crate::storage::fleet) fn last(&self) -> u64 {
        self.given.last().expect("it gave something").last
    }
}

/// A series as bytes, under its key.
pub(in crate::storage::fleet) fn series_to_bytes(key: &str, series: &SeriesSummary) -> Vec<u8> {
    let SeriesSummary {
        first,
        last,
        updated,
        ..
    } = series;
    sealed(
        key,
        [first, last, &updated.micros()]
            .map(|number| number.to_be_bytes())
            .as_flattened()
            .to_vec(),
    )
}

/// Reads the row of that key, which is that of this series; `None` when it is not what was written.
pub(super) fn series_of_bytes(
    key: &str,
    series: SeriesName,
    bytes: &[u8],
) -> Option<SeriesSummary> {
    let mut content = opened(key, bytes)?;
    let [first, last] = [take(&mut content)?, take(&mut content)?].map(u64::from_be_bytes);
    let updated: EventTime = take_time(&mut content)?;
    (content.is_empty() && first <= last).then_some(SeriesSummary {
        series,
        first,
        last,
        updated,
    })
}

/// What a transaction gave as bytes, under its key.
pub(in crate::storage::fleet) fn commit_to_bytes(key: &str, commit: &GivenCommit) -> Vec<u8> {
    let mut bytes = commit.attempt.0.to_be_bytes().to_vec();
    bytes.push(u8::from(commit.begins));
    for given in &commit.given {
        let row = number_rows::given_to_bytes(given);
        bytes.extend(given.last.to_be_bytes());
        bytes.extend(
            u16::try_from(row.len())
                .expect("what is kept of a request is short")
                .to_be_bytes(),
        );
        bytes.extend(row);
    }
    sealed(key, bytes)
}

/// Reads the row of that key, which has numbers of this series up to `last`; `None` when it is not what was written.
pub(in crate::storage::fleet) fn commit_of_bytes(
    key: &str,
    series: &SeriesName,
    last: u64,
    bytes: &[u8],
) -> Option<GivenCommit> {
    let mut rest = opened(key, bytes)?;
    let attempt = Attempt(u128::from_be_bytes(take(&mut rest)?));
    let begins = match take(&mut rest)? {
        [0] => false,
        [1] => true,
        _ => return None,
    };
    let mut given: Vec<GivenNumbers> = Vec::new();
    while !rest.is_empty() {
        let last = u64::from_be_bytes(take(&mut rest)?);
        let len = usize::from(u16::from_be_bytes(take(&mut rest)?));
        let (row, behind) = rest.split_at_checked(len)?;
        rest = behind;
        let next = number_rows::given_of_bytes((series.as_str(), last), row)?;
        let follows = given
            .last()
            .is_none_or(|before| before.last.checked_add(1) == Some(next.first));
        follows.then(|| given.push(next))?;
    }
    (given.last()?.last == last).then_some(GivenCommit {
        attempt,
        begins,
        given,
    })
}

/// What a key was given, by its last number, as bytes, under its key.
pub(in crate::storage::fleet) fn key_to_bytes(given: &GivenNumbers) -> Vec<u8> {
    number_rows::key_to_bytes((given.series.as_str(), given.mark.key.0), given.last).to_vec()
}

/// Reads the row of the key of a series; `None` when it is not what was written.
pub(super) fn key_of_bytes(series: &SeriesName, key: KeyHash, bytes: &[u8]) -> Option<u64> {
    number_rows::key_of_bytes((series.as_str(), key.0), bytes)
}

/// A number that is void as bytes, under its key.
pub(in crate::storage::fleet) fn void_to_bytes(
    key: &str,
    VoidRow { attempt, of, void }: &VoidRow,
) -> Vec<u8> {
    let names = [attempt.0, of.0].map(u128::to_be_bytes);
    sealed(
        key,
        [names.as_flattened(), &number_rows::void_to_bytes(void)].concat(),
    )
}

/// Reads the row of that key, which is that of this number; `None` when it is not what was written.
pub(in crate::storage::fleet) fn void_of_bytes(
    key: &str,
    (series, number): (&SeriesName, u64),
    bytes: &[u8],
) -> Option<VoidRow> {
    let mut content = opened(key, bytes)?;
    let attempt = Attempt(u128::from_be_bytes(take(&mut content)?));
    let of = KeyHash(u128::from_be_bytes(take(&mut content)?));
    let void = number_rows::void_of_bytes((series.as_str(), number), content)?;
    Some(VoidRow { attempt, of, void })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::fleet::FleetRecords;
    use crate::storage::records::{NumberStore, RecordPlan};
    use crate::storage::samples::{assert_only_whole, at, give, series, void_plan};

    #[test]
    fn rows_are_read_as_they_were_written_and_only_whole() {
        let (acme, records) = (series("acme"), FleetRecords::in_memory());
        let given = vec![
            give(&records, &acme, 1, "a"),
            give(&records, &acme, 3, "b"),
            give(&records, &acme, 2, "c"),
        ];
        let commit = GivenCommit {
            attempt: Attempt(7),
            begins: true,
            given,
        };
        assert_eq!(commit.last(), 6);
        let bytes = commit_to_bytes("k", &commit);
        assert_eq!(commit_of_bytes("k", &acme, 6, &bytes), Some(commit.clone()));
        assert_eq!(
            (
                commit_of_bytes("k", &acme, 5, &bytes),
                commit_of_bytes("j", &acme, 6, &bytes)
            ),
            (None, None)
        );
        assert_eq!(commit_of_bytes("k", &series("acm"), 6, &bytes), None);
        assert_only_whole(&bytes, |bytes| commit_of_bytes("k", &acme, 6, bytes));
        let with_a_hole = GivenCommit {
            given: vec![commit.given[0].clone(), commit.given[2].clone()],
            ..commit
        };
        assert_eq!(
            commit_of_bytes("k", &acme, 6, &commit_to_bytes("k", &with_a_hole)),
            None
        );

        let summary = records.series(None, 1).expect("memory").remove(0);
        assert_eq!(
            (summary.first, summary.last, summary.updated),
            (1, 6, at(crate::storage::samples::NOW))
        );
        let bytes = series_to_bytes("k", &summary);
        assert_eq!(series_of_bytes("k", acme.clone(), &bytes), Some(summary));
        assert_only_whole(&bytes, |bytes| series_of_bytes("k", acme.clone(), bytes));

        let RecordPlan::Void(plan) = void_plan(&acme, 2, "cancelled") else {
            unreachable!("made")
        };
        let row = VoidRow {
            attempt: Attempt(8),
            of: plan.of,
            void: plan.void,
        };
        let bytes = void_to_bytes("k", &row);
        assert_eq!(void_of_bytes("k", (&acme, 2), &bytes), Some(row));
        assert_eq!(void_of_bytes("k", (&acme, 3), &bytes), None);
        assert_only_whole(&bytes, |bytes| void_of_bytes("k", (&acme, 2), bytes));
    }
}
