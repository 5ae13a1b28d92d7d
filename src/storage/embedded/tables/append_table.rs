//! The appends of every ledger, in a table of the database.

use redb::{AccessGuard, ReadableTable, TableDefinition};

use crate::ledger::{EventId, EventTime, Head, LedgerId, Link};
use crate::storage::records::append_row;
use crate::storage::records::{DoneRequest, LedgerSummary, StoredAppend};

/// Ledger and id of the last event to the events of one append.
pub(super) const APPENDS: TableDefinition<'_, append_row::Name, &[u8]> = TableDefinition::new("appends");

/// The appends, as a transaction sees them.
pub(super) trait AppendRows: ReadableTable<append_row::Name, &'static [u8]> {}
impl<T: ReadableTable<append_row::Name, &'static [u8]>> AppendRows for T {}

/// The last event of a ledger.
pub(super) fn head_of(appends: &impl AppendRows, ledger: LedgerId) -> Result<Option<Head>, redb::Error> {
    let last = appends.range((ledger.bits(), 0)..=(ledger.bits(), u128::MAX))?.next_back();
    last.map(|row| Ok(ends(row?)?.1)).transpose()
}

/// A ledger, if it is there.
pub(super) fn summary_of(appends: &impl AppendRows, ledger: LedgerId) -> Result<Option<LedgerSummary>, redb::Error> {
    let mut rows = appends.range((ledger.bits(), 0)..=(ledger.bits(), u128::MAX))?;
    let Some(first) = rows.next() else { return Ok(None) };
    let (genesis, head_of_first) = ends(first?)?;
    let head = rows.next_back().map_or(Ok(head_of_first), |last| Ok::<_, redb::Error>(ends(last?)?.1))?;
    Ok(Some(LedgerSummary { genesis, head }))
}

/// Ledgers in the order of their ids, those above `after`, at most so many.
pub(super) fn summaries(
    appends: &impl AppendRows,
    after: Option<LedgerId>,
    count_max: usize,
) -> Result<Vec<LedgerSummary>, redb::Error> {
    let mut found = Vec::new();
    let mut next = after.map_or(Some(0), |after| after.bits().checked_add(1));
    while let Some(from) = next.filter(|_| found.len() < count_max) {
        let Some(row) = appends.range((from, 0)..)?.next() else { break };
        let (name, _) = row?;
        let (bits, _) = name.value();
        let ledger = LedgerId::from_bits(bits).ok_or_else(|| damaged(name.value()))?;
        found.extend(summary_of(appends, ledger)?);
        next = ledger.bits().checked_add(1);
    }
    Ok(found)
}

/// The events of a ledger after one of them, or from the first, at most so many.
pub(super) fn chain_of(
    appends: &impl AppendRows,
    ledger: LedgerId,
    after: Option<EventId>,
    count_max: usize,
) -> Result<Vec<Link>, redb::Error> {
    let mut links = Vec::new();
    let from = (ledger.bits(), after.map_or(0, |after| after.value().saturating_add(1)));
    for row in appends.range(from..=(ledger.bits(), u128::MAX))? {
        let append = read(row?)?;
        let is_asked_for = |link: &Link| after.is_none_or(|after| link.id > after);
        links.extend(links_of(appends, &append)?.filter(is_asked_for));
        if links.len() >= count_max {
            break;
        }
    }
    links.truncate(count_max);
    Ok(links)
}

/// The appends of a ledger behind the one that ends with `after`, or from the first, at most so many.
pub(super) fn appends_of(
    appends: &impl AppendRows,
    ledger: LedgerId,
    after: Option<EventId>,
    count_max: usize,
) -> Result<Vec<StoredAppend>, redb::Error> {
    let from = (ledger.bits(), after.map_or(0, |after| after.value().saturating_add(1)));
    appends.range(from..=(ledger.bits(), u128::MAX))?.take(count_max).map(|row| read(row?)).collect()
}

/// An event, if it is there.
pub(super) fn link(appends: &impl AppendRows, id: EventId) -> Result<Option<Link>, redb::Error> {
    let end = (id.ledger().bits(), u128::MAX);
    let Some(row) = appends.range(append_row::name(id)..=end)?.next() else { return Ok(None) };
    let append = read(row?)?;
    Ok(links_of(appends, &append)?.find(|link| link.id == id))
}

/// The append whose last event is `last`, and its events in their chain.
pub(super) fn append(
    appends: &impl AppendRows,
    last: EventId,
) -> Result<Option<(StoredAppend, Vec<Link>)>, redb::Error> {
    let name = append_row::name(last);
    let Some(bytes) = appends.get(name)? else { return Ok(None) };
    let append = append_row::from_bytes(name, bytes.value()).ok_or_else(|| damaged(name))?;
    let links = links_of(appends, &append)?.collect();
    Ok(Some((append, links)))
}

/// Shows the requests with a key that were done since, as they stand in the rows.
pub(super) fn requests_since(
    appends: &impl AppendRows,
    since: EventTime,
    mut show: impl FnMut(DoneRequest) -> Result<(), redb::Error>,
) -> Result<(), redb::Error> {
    // From the last ledger to the first, and in each from its end until the rows are too old.
    let mut newest = appends.last()?;
    while let Some((name, _)) = newest {
        let (ledger, _) = name.value();
        for row in appends.range((ledger, 0)..=(ledger, u128::MAX))?.rev() {
            let (name, bytes) = row?;
            let done = append_row::request_of(name.value(), bytes.value());
            let (recorded, done) = done.ok_or_else(|| damaged(name.value()))?;
            if recorded < since {
                break;
            }
            done.map_or(Ok(()), &mut show)?;
        }
        newest = appends.range(..(ledger, 0))?.next_back().transpose()?;
    }
    Ok(())
}

/// The events of an append, each with the id before it.
fn links_of(appends: &impl AppendRows, append: &StoredAppend) -> Result<impl Iterator<Item = Link>, redb::Error> {
    let (first, ledger) = (append.entries[0].id, append.ledger());
    let previous = if append.first_place == 1 {
        EventId::before_genesis(first.timestamp(), ledger)
    } else {
        let before = appends.range((ledger.bits(), 0)..append_row::name(first))?.next_back();
        let (name, _) = before.transpose()?.ok_or_else(|| missing_before(append))?;
        EventId::from_value(name.value().1).ok_or_else(|| damaged(name.value()))?
    };
    Ok(Link::chain(previous, append.first_place, append.entries.iter().map(|entry| entry.id)))
}

type Row<'a> = (AccessGuard<'a, append_row::Name>, AccessGuard<'a, &'static [u8]>);

/// The first event of a row, and the head after it.
fn ends((name, bytes): Row<'_>) -> Result<(EventId, Head), redb::Error> {
    append_row::ends_of(name.value(), bytes.value()).ok_or_else(|| damaged(name.value()))
}

fn read((name, bytes): Row<'_>) -> Result<StoredAppend, redb::Error> {
    append_row::from_bytes(name.value(), bytes.value()).ok_or_else(|| damaged(name.value()))
}

fn damaged((_, last): append_row::Name) -> redb::Error {
    redb::Error::Corrupted(format!("the events up to {last:032x} are not what was written"))
}

fn missing_before(append: &StoredAppend) -> redb::Error {
    let (first, place) = (append.entries[0].id, append.first_place);
    redb::Error::Corrupted(format!("the event before {first}, which is the {place}th of its ledger, is missing"))
}
