//! The byte format of the rows with a fleet's numbers. Each row has a version and a checksum, like
//! all rows of a fleet.
//!
//! ```text
//! series    first number 8, last number 8, microseconds since 1970 when the last number was issued 8; if the series is
//!           closed: attempt 16, row (`number_rows`); a series that was closed before its first number has 1 and 0
//! form      row (`number_rows`)
//! numbers   attempt 16, 1 if the series begins here, else 0, then the numbers of each request, in ascending order:
//!           last number 8, length 2, row (`number_rows`)
//! key       last number of the key (`number_rows`)
//! void      attempt 16, key to which the number was issued 16, row (`number_rows`)
//! ```

use crate::records::rows::{Attempt, opened, sealed, take, take_time};
use idmint_records::ledger::{
    EventTime, FormChange, GivenNumbers, KeyHash, SeriesName, VoidedNumber,
};
use idmint_storage::SeriesSummary;
use idmint_storage::rows::number_rows;

/// The numbers that one transaction issued in a series, to one or more requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::records) struct GivenCommit {
    /// The transaction that wrote the row.
    pub(in crate::records) attempt: Attempt,
    /// `true` if these are the first numbers of the series.
    pub(in crate::records) begins: bool,
    /// The issued numbers in ascending order.
    pub(in crate::records) given: Vec<GivenNumbers>,
}

/// The stored form of a void number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::records) struct VoidRow {
    /// The transaction that wrote the row.
    pub(in crate::records) attempt: Attempt,
    /// The idempotency key of the request that got the number.
    pub(in crate::records) of: KeyHash,
    /// The void number and the reason.
    pub(in crate::records) void: VoidedNumber,
}

impl GivenCommit {
    /// Returns the last issued number.
    pub(in crate::records) fn last(&self) -> u64 {
        self.given.last().expect("it gave something").last
    }
}

/// Returns the value to store under `key` for a series. `attempt` identifies the transaction that
/// writes the value. It is stored only if the series is closed, because earlier versions of this
/// program cannot read a row with it. They cannot read the row of a closed series anyway.
pub(in crate::records) fn series_to_bytes(
    key: &str,
    attempt: Attempt,
    series: &SeriesSummary,
) -> Vec<u8> {
    let SeriesSummary {
        first,
        last,
        updated,
        closed,
        ..
    } = series;
    let mut bytes = [first, last, &updated.micros()]
        .map(|number| number.to_be_bytes())
        .as_flattened()
        .to_vec();
    if let Some(closed) = closed {
        bytes.extend(attempt.0.to_be_bytes());
        bytes.extend(number_rows::closed_to_bytes(closed));
    }
    sealed(key, bytes)
}

/// Decodes a series from the value that is stored under `key`. Returns `None` if the value is
/// damaged or of a later version.
pub(in crate::records) fn series_of_bytes(
    key: &str,
    series: SeriesName,
    bytes: &[u8],
) -> Option<SeriesSummary> {
    let mut content = opened(key, bytes)?;
    let [first, last] = [take(&mut content)?, take(&mut content)?].map(u64::from_be_bytes);
    let updated: EventTime = take_time(&mut content)?;
    let closed = match content.is_empty() {
        true => None,
        false => {
            let _attempt: [u8; 16] = take(&mut content)?;
            Some(number_rows::closed_of_bytes(
                (series.as_str(), last),
                content,
            )?)
        }
    };
    let is_unbegun = (first, last) == (1, 0) && closed.is_some();
    (first <= last || is_unbegun).then_some(SeriesSummary {
        series,
        first,
        last,
        updated,
        closed,
    })
}

/// Returns the value to store under `key` for a change of the form in which numbers are written.
pub(in crate::records) fn form_to_bytes(key: &str, change: &FormChange) -> Vec<u8> {
    sealed(key, number_rows::form_to_bytes(change))
}

/// Decodes the form in which the numbers of a series are written from the number `from` on. Returns
/// `None` if the value under `key` is damaged or of a later version.
pub(in crate::records) fn form_of_bytes(
    key: &str,
    (series, from): (&SeriesName, u64),
    bytes: &[u8],
) -> Option<FormChange> {
    number_rows::form_of_bytes((series.as_str(), from), opened(key, bytes)?)
}

/// Returns the value to store under `key` for the numbers that one transaction issued in a series.
pub(in crate::records) fn commit_to_bytes(key: &str, commit: &GivenCommit) -> Vec<u8> {
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

/// Decodes the numbers that one transaction issued from the value under `key`. `last` is the last
/// of them. Returns `None` if the value is damaged or of a later version.
pub(in crate::records) fn commit_of_bytes(
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

/// Encodes the row that maps an idempotency key to the last number that was issued for it.
pub(in crate::records) fn key_to_bytes(given: &GivenNumbers) -> Vec<u8> {
    number_rows::key_to_bytes((given.series.as_str(), given.mark.key.0), given.last).to_vec()
}

/// Decodes the row of an idempotency key in a series. Returns the last number that was issued for
/// this key, or `None` if the row is damaged.
pub(super) fn key_of_bytes(series: &SeriesName, key: KeyHash, bytes: &[u8]) -> Option<u64> {
    number_rows::key_of_bytes((series.as_str(), key.0), bytes)
}

/// Returns the value to store under `key` for a void number.
pub(in crate::records) fn void_to_bytes(
    key: &str,
    VoidRow { attempt, of, void }: &VoidRow,
) -> Vec<u8> {
    let names = [attempt.0, of.0].map(u128::to_be_bytes);
    sealed(
        key,
        [names.as_flattened(), &number_rows::void_to_bytes(void)].concat(),
    )
}

/// Decodes a void number from the value that is stored under `key`. Returns `None` if the value is
/// damaged or of a later version.
pub(in crate::records) fn void_of_bytes(
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
    use idmint_records::ledger::ClosedSeries;
    use idmint_storage::samples::{assert_only_whole, at, give, series, void_plan};
    use idmint_storage::{NumberStore, RecordPlan};

    #[test]
    fn rows_are_read_as_they_were_written_and_only_whole() {
        let (acme, records) = (series("acme"), crate::conformance::memory_fleet_records());
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
            (1, 6, at(idmint_storage::samples::NOW))
        );
        let closed = ClosedSeries {
            series: acme.clone(),
            last: Some(6),
            recorded: at(idmint_storage::samples::NOW),
            by: Some("the token `till`".to_owned()),
        };
        let unbegun = SeriesSummary::unbegun(ClosedSeries {
            last: None,
            ..closed.clone()
        });
        let with_closed = SeriesSummary {
            closed: Some(closed),
            ..summary.clone()
        };
        for summary in [summary, with_closed, unbegun] {
            let bytes = series_to_bytes("k", Attempt(9), &summary);
            assert_eq!(series_of_bytes("k", acme.clone(), &bytes), Some(summary));
            assert_only_whole(&bytes, |bytes| series_of_bytes("k", acme.clone(), bytes));
        }

        let RecordPlan::Void(plan) = void_plan(&records, &acme, 2, "cancelled") else {
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
