//! The table of anchors, the first reports of conjunctions.

use std::ops::{Bound, RangeInclusive};

use redb::{ReadableTable, TableDefinition};

use super::anchor_row;
use super::database::unreadable;
use idmint_records::conjunction::{Anchor, Pair, Tca};

/// Maps the format, the two objects and the time of an anchor to its rank. Of two anchors of the
/// same objects within two seconds, the older one has the lower rank. A report within one second of
/// both joins the older one.
pub(super) const ANCHORS: TableDefinition<'_, anchor_row::Name<'_>, &[u8]> =
    TableDefinition::new("anchors");

/// Returns the stored anchors of a pair in a range of times.
pub(super) fn anchors_within(
    anchors: &impl ReadableTable<anchor_row::Name<'static>, &'static [u8]>,
    format: &str,
    pair: Pair,
    times: &RangeInclusive<Tca>,
) -> Result<Vec<Anchor>, redb::Error> {
    let (from, to) = (*times.start(), *times.end());
    let rows =
        anchors.range(anchor_row::name(format, pair, from)..=anchor_row::name(format, pair, to))?;
    rows.map(|row| {
        let (name, bytes) = row?;
        anchor_row::from_bytes(name.value(), bytes.value())
            .ok_or_else(|| unreadable_anchor(name.value(), bytes.value()))
    })
    .collect()
}

/// Returns the error of an anchor's row that cannot be decoded.
pub(super) fn unreadable_anchor(name: anchor_row::Name<'_>, row: &[u8]) -> redb::Error {
    let is_whole = anchor_row::is_whole(name, row);
    unreadable(is_whole, &format!("the anchor {name:?} is"))
}

/// Returns up to `count_max` pairs with anchors that follow `after`, sorted by format and objects.
pub(super) fn pairs(
    anchors: &impl ReadableTable<anchor_row::Name<'static>, &'static [u8]>,
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
        let (format, primary, secondary, _) = name.value();
        let pair = (format.to_owned(), Pair { primary, secondary });
        found.push(pair.clone());
        behind = Some(pair);
    }
    Ok(found)
}
