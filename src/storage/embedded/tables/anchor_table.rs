//! The anchors of every pair, in a table of the database.

use std::ops::{Bound, RangeInclusive};

use redb::{ReadableTable, Table, TableDefinition};

use super::anchor_row;
use crate::conjunction::{Anchor, Pair, Tca};
use crate::storage::records::AnchorKey;

/// Format, pair and time of closest approach to the rank of an anchor.
pub(super) const ANCHORS: TableDefinition<'_, anchor_row::Name<'_>, &[u8]> =
    TableDefinition::new("anchors");

/// The anchors, as a transaction sees them.
pub(super) trait AnchorRows:
    ReadableTable<anchor_row::Name<'static>, &'static [u8]>
{
}
impl<T: ReadableTable<anchor_row::Name<'static>, &'static [u8]>> AnchorRows for T {}

/// The anchors of a pair within these times.
pub(super) fn anchors_within(
    anchors: &impl AnchorRows,
    format: &str,
    pair: Pair,
    times: &RangeInclusive<Tca>,
) -> Result<Vec<Anchor>, redb::Error> {
    let (from, to) = (*times.start(), *times.end());
    let rows =
        anchors.range(anchor_row::name(format, pair, from)..=anchor_row::name(format, pair, to))?;
    rows.map(|row| {
        let (name, bytes) = row?;
        let damaged = || {
            redb::Error::Corrupted(format!(
                "the anchor {:?} is not what was written",
                name.value()
            ))
        };
        anchor_row::from_bytes(name.value(), bytes.value()).ok_or_else(damaged)
    })
    .collect()
}

/// Pairs in the order of their formats and objects, those behind `after`, at most `count_max`.
pub(super) fn pairs(
    anchors: &impl AnchorRows,
    after: Option<(&str, Pair)>,
    count_max: usize,
) -> Result<Vec<(String, Pair)>, redb::Error> {
    let mut found: Vec<(String, Pair)> = Vec::new();
    let mut behind = after.map(|(format, pair)| (format.to_owned(), pair));
    while found.len() < count_max {
        let last = behind
            .as_ref()
            .map(|(format, pair)| anchor_row::name(format, *pair, Tca(i64::MAX)));
        let row = match last {
            Some(last) => anchors
                .range((Bound::Excluded(last), Bound::Unbounded))?
                .next(),
            None => anchors.iter()?.next(),
        };
        let Some((name, _)) = row.transpose()? else {
            break;
        };
        let AnchorKey { format, pair, .. } = key_of(name.value());
        found.push((format.clone(), pair));
        behind = Some((format, pair));
    }
    Ok(found)
}

/// Removes an anchor.
pub(super) fn remove(
    anchors: &mut Table<'_, anchor_row::Name<'static>, &'static [u8]>,
    AnchorKey { format, pair, tca }: &AnchorKey,
) -> Result<(), redb::Error> {
    anchors.remove(anchor_row::name(format, *pair, *tca))?;
    Ok(())
}

fn key_of((format, primary, secondary, tca): anchor_row::Name<'_>) -> AnchorKey {
    AnchorKey {
        format: format.to_owned(),
        pair: Pair { primary, secondary },
        tca: Tca(tca),
    }
}
