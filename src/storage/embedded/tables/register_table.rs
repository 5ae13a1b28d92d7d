//! The anchors of every format by time, with what is known of their reports, in a table of the database.
//!
//! It has a row for each anchor, written and removed in the same transaction.

use redb::{AccessGuard, ReadableTable, Table, TableDefinition};

use super::anchor_row;
use super::anchor_table::AnchorRows;
use crate::conjunction::{Anchor, Pair, ReportTally, Tca};
use crate::storage::records::tally_row;
use crate::storage::records::{AnchorKey, ListPlace, ListRange, StoredConjunction, TalliedAnchor};

/// Format, time and pair of an anchor.
type Name<'a> = (&'a str, i64, u64, u64);

/// The row of each anchor, by time.
pub(super) const REGISTER: TableDefinition<'_, Name<'_>, &[u8]> =
    TableDefinition::new("anchors-by-time");

type Row<'a> = (
    AccessGuard<'a, Name<'static>>,
    AccessGuard<'a, &'static [u8]>,
);

/// The register, as a writing transaction sees it.
pub(super) type Register<'a> = Table<'a, Name<'static>, &'static [u8]>;

/// Adds an anchor.
pub(super) fn add(register: &mut Register<'_>, key: &AnchorKey) -> Result<(), redb::Error> {
    register.insert(name_of(&key.format, (key.tca, key.pair)), [].as_slice())?;
    Ok(())
}

/// Removes an anchor whose reports were not counted since it was read. Returns whether it was removed.
pub(super) fn remove(
    register: &mut Register<'_>,
    TalliedAnchor { key, tally }: &TalliedAnchor,
) -> Result<bool, redb::Error> {
    let place = (key.tca, key.pair);
    let is_as_read = tally_of(register, &key.format, place)? == *tally;
    if is_as_read {
        register.remove(name_of(&key.format, place))?;
    }
    Ok(is_as_read)
}

/// Adds later reports to those of an anchor. Returns whether it is stored.
pub(super) fn add_reports(
    register: &mut Register<'_>,
    key: &AnchorKey,
    later: &ReportTally,
) -> Result<bool, redb::Error> {
    let name = name_of(&key.format, (key.tca, key.pair));
    let Some(earlier) = register
        .get(name)?
        .map(|row| tally_row::from_bytes(row.value()))
    else {
        return Ok(false);
    };
    let tally = earlier.map_or(*later, |earlier| earlier.followed_by(*later));
    register.insert(name, tally_row::to_bytes(&tally).as_slice())?;
    Ok(true)
}

/// What is known of the reports of an anchor.
pub(super) fn tally_of(
    register: &impl ReadableTable<Name<'static>, &'static [u8]>,
    format: &str,
    place: ListPlace,
) -> Result<Option<ReportTally>, redb::Error> {
    Ok(register
        .get(name_of(format, place))?
        .and_then(|row| tally_row::from_bytes(row.value())))
}

/// Conjunctions by time, at most `count_max`.
pub(super) fn list(
    register: &impl ReadableTable<Name<'static>, &'static [u8]>,
    anchors: &impl AnchorRows,
    range: &ListRange,
    count_max: usize,
) -> Result<Vec<StoredConjunction>, redb::Error> {
    let Some((from, to)) = range.places() else {
        return Ok(Vec::new());
    };
    let mut rows = register.range(name_of(&range.format, from)..=name_of(&range.format, to))?;
    let mut listed = Vec::new();
    while listed.len() < count_max {
        let Some(row) = (if range.latest_first {
            rows.next_back()
        } else {
            rows.next()
        }) else {
            break;
        };
        let (name, tally) = row?;
        let (format, tca, primary, secondary) = name.value();
        let (pair, tca) = (Pair { primary, secondary }, Tca(tca));
        let name = anchor_row::name(format, pair, tca);
        let damaged =
            || redb::Error::Corrupted(format!("the anchor {name:?} is not what was written"));
        let row = anchors.get(name)?.ok_or_else(damaged)?;
        let anchor: Anchor = anchor_row::from_bytes(name, row.value()).ok_or_else(damaged)?;
        listed.push(StoredConjunction {
            pair,
            anchor,
            tally: tally_row::from_bytes(tally.value()),
        });
    }
    Ok(listed)
}

/// Anchors from the last row to the first, those before that one, at most `count_max`.
pub(super) fn anchors(
    register: &impl ReadableTable<Name<'static>, &'static [u8]>,
    after: Option<&AnchorKey>,
    count_max: usize,
) -> Result<Vec<TalliedAnchor>, redb::Error> {
    let rows = match after {
        Some(key) => register.range(..name_of(&key.format, (key.tca, key.pair)))?,
        None => register.iter()?,
    };
    let anchor = |row: Result<Row<'_>, redb::StorageError>| {
        let (name, tally) = row?;
        let (format, tca, primary, secondary) = name.value();
        let key = AnchorKey {
            format: format.to_owned(),
            pair: Pair { primary, secondary },
            tca: Tca(tca),
        };
        Ok(TalliedAnchor {
            key,
            tally: tally_row::from_bytes(tally.value()),
        })
    };
    rows.rev().take(count_max).map(anchor).collect()
}

fn name_of(format: &str, (tca, pair): ListPlace) -> Name<'_> {
    (format, tca.0, pair.primary, pair.secondary)
}
