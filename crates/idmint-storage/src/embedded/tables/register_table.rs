//! The table that lists the anchors of every format by time, with their report counts.
//!
//! The table has one row for each anchor. The row is written and removed in the same transaction as
//! the anchor.

use std::ops::RangeInclusive;

use redb::{AccessGuard, ReadableTable, Table, TableDefinition};

use super::anchor_row;
use super::anchor_table::{self, ANCHORS, anchors_within, unreadable_anchor};
use super::database::if_there;
use super::external_table::{self, EXTERNALS, Externals};
use super::record_tables::RecordTables;
use crate::failure::StoreError;
use crate::records::rows::report_count_row;
use crate::records::{
    AnchorKey, ConjunctionStore, CountedAnchor, ListPlace, ListRange, StoredAnchor,
    StoredConjunction, StoredPair,
};
use idmint_records::conjunction::{Anchor, ExternalId, Pair, ReportCount, Tca};

/// The key of a close approach: the id format, time and two objects of its first report.
type Name<'a> = (&'a str, i64, u64, u64);

/// Maps the first report of a close approach to the count of all reports of this close approach.
pub(super) const REGISTER: TableDefinition<'_, Name<'_>, &[u8]> =
    TableDefinition::new("anchors-by-time");

type Row<'a> = (
    AccessGuard<'a, Name<'static>>,
    AccessGuard<'a, &'static [u8]>,
);

/// The table of anchors by time, opened for writing.
pub(super) type Register<'a> = Table<'a, Name<'static>, &'static [u8]>;

impl ConjunctionStore for RecordTables {
    fn anchors_within(
        &self,
        format: &str,
        spans: &mut dyn Iterator<Item = (Pair, RangeInclusive<Tca>)>,
    ) -> Result<Vec<Vec<Anchor>>, StoreError> {
        let spans: Vec<_> = spans.collect();
        self.read(|transaction| {
            let anchors = transaction.open_table(ANCHORS)?;
            spans
                .iter()
                .map(|(pair, times)| anchors_within(&anchors, format, *pair, times))
                .collect()
        })
    }

    fn conjunctions(
        &self,
        range: &ListRange,
        count_max: usize,
    ) -> Result<Vec<StoredConjunction>, StoreError> {
        let Some((from, to)) = range.places() else {
            return Ok(Vec::new());
        };
        let names = name_of(&range.format, from)..=name_of(&range.format, to);
        self.read(|transaction| {
            let anchors = transaction.open_table(ANCHORS)?;
            let mut rows = transaction.open_table(REGISTER)?.range(names.clone())?;
            let mut listed = Vec::new();
            while listed.len() < count_max {
                let Some(row) = (if range.latest_first {
                    rows.next_back()
                } else {
                    rows.next()
                }) else {
                    break;
                };
                let CountedAnchor { key, report_count } = tallied(row)?;
                let name = anchor_row::name(&key.format, key.pair, key.tca);
                let missing = || redb::Error::Corrupted(format!("the anchor {name:?} is missing"));
                let row = anchors.get(name)?.ok_or_else(missing)?;
                listed.push(StoredConjunction {
                    pair: key.pair,
                    anchor: anchor_row::from_bytes(name, row.value())
                        .ok_or_else(|| unreadable_anchor(name, row.value()))?,
                    report_count,
                });
            }
            Ok(listed)
        })
    }

    fn add_reports(&self, report_counts: &[(AnchorKey, ReportCount)]) -> Result<(), StoreError> {
        self.change(|transaction| {
            let mut register = transaction.open_table(REGISTER)?;
            for (key, later) in report_counts {
                let name = name_of(&key.format, (key.tca, key.pair));
                let Some(earlier) = register
                    .get(name)?
                    .map(|row| report_count_row::from_bytes(row.value()))
                else {
                    continue;
                };
                let report_count = earlier.map_or(*later, |earlier| earlier.followed_by(*later));
                register.insert(name, report_count_row::to_bytes(&report_count).as_slice())?;
            }
            Ok(())
        })
    }

    fn add_externals(&self, externals: &[(AnchorKey, ExternalId)]) -> Result<(), StoreError> {
        self.change(|transaction| external_table::add(transaction, externals))
    }

    fn externals(&self, anchors: &[AnchorKey]) -> Result<Vec<Vec<ExternalId>>, StoreError> {
        self.read(|transaction| {
            let table = if_there(transaction, EXTERNALS)?;
            anchors
                .iter()
                .map(|key| external_table::beside(table.as_ref(), key))
                .collect()
        })
    }

    fn anchors_of_external(
        &self,
        format: &str,
        external: &ExternalId,
        count_max: usize,
    ) -> Result<Vec<AnchorKey>, StoreError> {
        self.read(|transaction| {
            external_table::anchors_of(transaction, format, external, count_max)
        })
    }

    fn anchors(
        &self,
        after: Option<&AnchorKey>,
        count_max: usize,
    ) -> Result<Vec<CountedAnchor>, StoreError> {
        self.read(|transaction| {
            let register = transaction.open_table(REGISTER)?;
            let rows = match after {
                Some(key) => register.range(..name_of(&key.format, (key.tca, key.pair)))?,
                None => register.iter()?,
            };
            rows.rev().take(count_max).map(tallied).collect()
        })
    }

    fn forget_anchors(&self, old: &[CountedAnchor]) -> Result<(), StoreError> {
        self.change(|transaction| {
            let mut register = transaction.open_table(REGISTER)?;
            let mut anchors = transaction.open_table(ANCHORS)?;
            let mut externals = Externals::open(transaction)?;
            for CountedAnchor { key, report_count } in old {
                let place = (key.tca, key.pair);
                if report_count_of(&register, &key.format, place)? == *report_count {
                    register.remove(name_of(&key.format, place))?;
                    anchors.remove(anchor_row::name(&key.format, key.pair, key.tca))?;
                    externals.remove(key)?;
                }
            }
            Ok(())
        })
    }
}

impl RecordTables {
    /// Returns up to `count_max` pairs of objects that follow `after`, each with its anchors. The
    /// pairs are ordered by format and objects.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the database cannot be read.
    pub(crate) fn pairs(
        &self,
        after: Option<(&str, Pair)>,
        count_max: usize,
    ) -> Result<Vec<StoredPair>, StoreError> {
        self.read(|transaction| {
            let anchors = transaction.open_table(ANCHORS)?;
            let register = transaction.open_table(REGISTER)?;
            let externals = if_there(transaction, EXTERNALS)?;
            let stored = |(format, pair): (String, Pair)| {
                let of_pair =
                    anchors_within(&anchors, &format, pair, &(Tca(i64::MIN)..=Tca(i64::MAX)))?;
                let stored = |anchor: Anchor| {
                    let key = AnchorKey {
                        format: format.clone(),
                        pair,
                        tca: anchor.tca,
                    };
                    Ok(StoredAnchor {
                        anchor,
                        report_count: report_count_of(&register, &format, (anchor.tca, pair))?,
                        externals: external_table::beside(externals.as_ref(), &key)?,
                    })
                };
                let anchors = of_pair
                    .into_iter()
                    .map(stored)
                    .collect::<Result<_, redb::Error>>()?;
                Ok(StoredPair {
                    format,
                    pair,
                    anchors,
                })
            };
            anchor_table::pairs(&anchors, after, count_max)?
                .into_iter()
                .map(stored)
                .collect()
        })
    }
}

/// Adds a row for an anchor, without a report count.
pub(super) fn add(register: &mut Register<'_>, key: &AnchorKey) -> Result<(), redb::Error> {
    register.insert(name_of(&key.format, (key.tca, key.pair)), [].as_slice())?;
    Ok(())
}

/// Returns the report count of a close approach, or `None` if no valid count is stored.
fn report_count_of(
    register: &impl ReadableTable<Name<'static>, &'static [u8]>,
    format: &str,
    place: ListPlace,
) -> Result<Option<ReportCount>, redb::Error> {
    Ok(register
        .get(name_of(format, place))?
        .and_then(|row| report_count_row::from_bytes(row.value())))
}

fn tallied(row: Result<Row<'_>, redb::StorageError>) -> Result<CountedAnchor, redb::Error> {
    let (name, report_count) = row?;
    let (format, tca, primary, secondary) = name.value();
    Ok(CountedAnchor {
        key: AnchorKey {
            format: format.to_owned(),
            pair: Pair { primary, secondary },
            tca: Tca(tca),
        },
        report_count: report_count_row::from_bytes(report_count.value()),
    })
}

fn name_of(format: &str, (tca, pair): ListPlace) -> Name<'_> {
    (format, tca.0, pair.primary, pair.secondary)
}
