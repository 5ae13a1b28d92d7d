//! The database table with the events of all ledgers. Each row contains events that were appended
//! together.

use redb::{AccessGuard, ReadOnlyTable, ReadableTable, Table, TableDefinition};

use super::database::unreadable;
use super::record_tables::RecordTables;
use crate::failure::StoreError;
use crate::records::rows::append_row::{self, Extent};
use crate::records::{LedgerStore, LedgerSummary, StoredAppend};
use idmint_records::ledger::{Entry, EventId, Head, LedgerId, Link};

/// Maps a ledger and the id of an event to the row of events that ends with that event. A row
/// contains an append, or one chunk of a long append. Long appends are split because the engine
/// always reads whole rows. Otherwise, reading a single event or a list of ledgers could cost as
/// much as reading the longest append.
pub(super) const APPENDS: TableDefinition<'_, append_row::AppendName, &[u8]> =
    TableDefinition::new("appends");

/// The table of appends, opened for reading.
type Appends = ReadOnlyTable<append_row::AppendName, &'static [u8]>;

impl LedgerStore for RecordTables {
    fn head(&self, ledger: LedgerId) -> Result<Option<Head>, StoreError> {
        self.look(|transaction| head_of(&transaction.open_table(APPENDS)?, ledger))
    }

    fn ledger(&self, ledger: LedgerId) -> Result<Option<LedgerSummary>, StoreError> {
        self.read(|transaction| summary_of(&transaction.open_table(APPENDS)?, ledger))
    }

    fn ledgers(
        &self,
        after: Option<LedgerId>,
        count_max: usize,
    ) -> Result<Vec<LedgerSummary>, StoreError> {
        self.read(|transaction| {
            let appends = transaction.open_table(APPENDS)?;
            let mut found = Vec::new();
            let mut next = after.map_or(Some(0), |after| after.bits().checked_add(1));
            while let Some(from) = next.filter(|_| found.len() < count_max) {
                let Some(row) = appends.range((from, 0)..)?.next() else {
                    break;
                };
                let (name, _) = row?;
                let (bits, _) = name.value();
                let ledger = LedgerId::from_bits(bits).ok_or_else(|| damaged(name.value()))?;
                found.extend(summary_of(&appends, ledger)?);
                next = ledger.bits().checked_add(1);
            }
            Ok(found)
        })
    }

    fn chain(
        &self,
        ledger: LedgerId,
        after: Option<EventId>,
        count_max: usize,
    ) -> Result<Vec<Link>, StoreError> {
        self.read(|transaction| {
            let appends = transaction.open_table(APPENDS)?;
            let mut links = Vec::new();
            for row in rows_behind(&appends, ledger, after)? {
                let (_, append) = read(&row?, append_row::row_from_bytes)?;
                let is_asked_for = |link: &Link| after.is_none_or(|after| link.id > after);
                links.extend(links_of(&appends, &append)?.filter(is_asked_for));
                if links.len() >= count_max {
                    break;
                }
            }
            links.truncate(count_max);
            Ok(links)
        })
    }

    fn link(&self, id: EventId) -> Result<Option<Link>, StoreError> {
        self.read(|transaction| {
            let appends = transaction.open_table(APPENDS)?;
            let end = (id.ledger().bits(), u128::MAX);
            let Some(row) = appends.range(append_row::name(id)..=end)?.next() else {
                return Ok(None);
            };
            let (_, append) = read(&row?, append_row::row_from_bytes)?;
            Ok(links_of(&appends, &append)?.find(|link| link.id == id))
        })
    }

    fn append(&self, last: EventId) -> Result<Option<(StoredAppend, Vec<Link>)>, StoreError> {
        self.read(|transaction| {
            let appends = transaction.open_table(APPENDS)?;
            let name = append_row::name(last);
            let Some(bytes) = appends.get(name)? else {
                return Ok(None);
            };
            let (extent, append) = append_row::row_from_bytes(name, bytes.value())
                .ok_or_else(|| unreadable_row(name, bytes.value()))?;
            let append = match extent {
                Extent::Whole => append,
                Extent::Piece => return Ok(None),
                Extent::LastPiece => joined(pieces_before(&appends, &append)?, append),
            };
            let links = links_of(&appends, &append)?.collect();
            Ok(Some((append, links)))
        })
    }
}

impl RecordTables {
    /// Returns up to `count_max` appends of a ledger, oldest first. The list begins after the
    /// append whose last event is `after`, or with the first append if `after` is `None`.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the database cannot be read.
    pub(crate) fn appends(
        &self,
        ledger: LedgerId,
        after: Option<EventId>,
        count_max: usize,
    ) -> Result<Vec<StoredAppend>, StoreError> {
        self.read(|transaction| {
            let appends = transaction.open_table(APPENDS)?;
            let (mut found, mut pieces) = (Vec::new(), Vec::new());
            let mut place = after.is_none().then_some(1);
            for row in rows_behind(&appends, ledger, after)? {
                let row = row?;
                let (extent, append) = read(&row, append_row::row_from_bytes)?;
                if place.is_some_and(|place| place != append.first_place) {
                    return Err(damaged(row.0.value()));
                }
                place = Some(append.head().place + 1);
                match extent {
                    Extent::Piece => pieces.push(append),
                    Extent::Whole | Extent::LastPiece => {
                        found.push(joined(std::mem::take(&mut pieces), append))
                    }
                }
                if found.len() == count_max {
                    break;
                }
            }
            match pieces.last() {
                None => Ok(found),
                Some(piece) => Err(damaged(append_row::name(piece.head().id))),
            }
        })
    }
}

/// Returns the last event of a ledger, or `None` if the ledger does not exist.
pub(super) fn head_of(
    appends: &Table<'_, append_row::AppendName, &'static [u8]>,
    ledger: LedgerId,
) -> Result<Option<Head>, redb::Error> {
    let last = appends
        .range((ledger.bits(), 0)..=(ledger.bits(), u128::MAX))?
        .next_back();
    last.map(|row| read(&row?, append_row::head_of)).transpose()
}

fn summary_of(appends: &Appends, ledger: LedgerId) -> Result<Option<LedgerSummary>, redb::Error> {
    let mut rows = rows_behind(appends, ledger, None)?;
    let Some(first) = rows.next().transpose()? else {
        return Ok(None);
    };
    let last = rows.next_back().transpose()?;
    let head = read(last.as_ref().unwrap_or(&first), append_row::head_of)?;
    Ok(Some(LedgerSummary {
        genesis: read(&first, append_row::first_of)?,
        head,
    }))
}

/// Returns the rows of a ledger that contain an event later than `after`, or all rows if `after` is
/// `None`.
fn rows_behind(
    appends: &Appends,
    ledger: LedgerId,
    after: Option<EventId>,
) -> Result<redb::Range<'static, append_row::AppendName, &'static [u8]>, redb::Error> {
    let from = after.map_or(0, |after| after.value().saturating_add(1));
    Ok(appends.range((ledger.bits(), from)..=(ledger.bits(), u128::MAX))?)
}

/// Returns the other rows of a long append, which is split into rows. `last` is its last row.
fn pieces_before(appends: &Appends, last: &StoredAppend) -> Result<Vec<StoredAppend>, redb::Error> {
    let name = append_row::name(last.head().id);
    let (mut pieces, mut next_place) = (Vec::new(), last.first_place);
    for row in appends.range((name.0, 0)..name)?.rev() {
        let (extent, before) = read(&row?, append_row::row_from_bytes)?;
        if before.head().place + 1 != next_place {
            return Err(damaged(name));
        }
        if extent != Extent::Piece {
            break;
        }
        next_place = before.first_place;
        pieces.push(before);
    }
    pieces.reverse();
    Ok(pieces)
}

/// Joins the rows of a long append. `pieces` are all rows except `last`, in order.
fn joined(pieces: Vec<StoredAppend>, last: StoredAppend) -> StoredAppend {
    let first_place = pieces
        .first()
        .map_or(last.first_place, |first| first.first_place);
    let mut entries: Vec<Entry> = pieces.into_iter().flat_map(|piece| piece.entries).collect();
    entries.extend(last.entries);
    StoredAppend {
        first_place,
        entries,
        ..last
    }
}

/// Returns events that were written together, each with the id of the ledger's event before it.
fn links_of(
    appends: &Appends,
    append: &StoredAppend,
) -> Result<impl Iterator<Item = Link>, redb::Error> {
    let (first, ledger) = (append.entries[0].id, append.ledger());
    let previous = if append.first_place == 1 {
        EventId::before_genesis(first.timestamp(), ledger)
    } else {
        let before = appends
            .range((ledger.bits(), 0)..append_row::name(first))?
            .next_back();
        let (name, _) = before.transpose()?.ok_or_else(|| missing_before(append))?;
        EventId::from_value(name.value().1).ok_or_else(|| damaged(name.value()))?
    };
    Ok(Link::chain(
        previous,
        append.first_place,
        append.entries.iter().map(|entry| entry.id),
    ))
}

type Row<'a> = (
    AccessGuard<'a, append_row::AppendName>,
    AccessGuard<'a, &'static [u8]>,
);

/// Parses a row with the function `read`. If `read` returns `None`, the row is damaged or written
/// by a later version, so the result is an error.
fn read<T>(
    (name, bytes): &Row<'_>,
    read: impl FnOnce(append_row::AppendName, &[u8]) -> Option<T>,
) -> Result<T, redb::Error> {
    read(name.value(), bytes.value()).ok_or_else(|| unreadable_row(name.value(), bytes.value()))
}

fn unreadable_row(name: append_row::AppendName, row: &[u8]) -> redb::Error {
    let is_whole = append_row::is_whole(name, row);
    unreadable(is_whole, &format!("the events up to {:032x} are", name.1))
}

fn damaged((_, last): append_row::AppendName) -> redb::Error {
    redb::Error::Corrupted(format!("the events up to {last:032x} are corrupted"))
}

fn missing_before(append: &StoredAppend) -> redb::Error {
    let (first, place) = (append.entries[0].id, append.first_place);
    redb::Error::Corrupted(format!(
        "the event before {first}, which is the {place}th of its ledger, is missing"
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::embedded::tables::database::Database;
    use crate::embedded::tables::logged::Engine;
    use crate::embedded::tables::{RecordTables, backup};
    use crate::samples::{NOW, append, create, links, plan, write};
    use idmint_records::ledger::AppendPlan;

    /// Returns the plans of a ledger that has four appends: the first event, a thousand events,
    /// another thousand events, and a single event.
    fn long_ledger() -> [AppendPlan; 4] {
        let names = vec!["event"; 1_000];
        let genesis = plan(&create("genesis", 10), None, NOW);
        let first = plan(
            &append(genesis.ledger(), &names, 11),
            Some(genesis.head()),
            NOW + 1_000_000,
        );
        let second = plan(
            &append(genesis.ledger(), &names, 12),
            Some(first.head()),
            NOW + 2_000_000,
        );
        let last = plan(
            &append(genesis.ledger(), &["last"], 13),
            Some(second.head()),
            NOW + 3_000_000,
        );
        [genesis, first, second, last]
    }

    fn in_memory() -> (Arc<Database>, RecordTables) {
        let database = Arc::new(Database::on_simulated_disk().expect("memory suffices"));
        let records = RecordTables::open(Arc::clone(&database)).expect("it is new");
        (database, records)
    }

    /// Returns the lengths of all rows in the table.
    fn row_lengths(database: &Database) -> Vec<usize> {
        let lengths = database.attempt(|engine| {
            let appends = engine.begin_read()?.open_table(APPENDS)?;
            let rows = appends.range((0, 0)..)?;
            rows.map(|row| Ok(row?.1.value().len()))
                .collect::<Result<_, redb::Error>>()
        });
        lengths.expect("the database works")
    }

    #[test]
    fn no_row_is_long_and_a_backup_counts_appends() {
        let (database, records) = in_memory();
        let plans = long_ledger();
        write(&records, &plans);
        let lengths = row_lengths(&database);
        assert_eq!(lengths.len(), 1 + 4 + 4 + 1);
        assert!(lengths.iter().all(|len| *len < 16 * 1024), "{lengths:?}");
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert_eq!(
            backup::copy(&database, &folder.path().join("copy"))
                .expect("copies")
                .appends,
            4
        );

        let ledger = plans[0].ledger();
        let all: Vec<_> = plans.iter().map(StoredAppend::of).collect();
        for count_max in [1, 2, 3, 9] {
            let mut found = Vec::new();
            loop {
                let after = found.last().map(|append: &StoredAppend| append.head().id);
                let page = records.appends(ledger, after, count_max).expect("reads");
                assert!(page.len() <= count_max);
                if page.is_empty() {
                    break;
                }
                found.extend(page);
            }
            assert_eq!(found, all, "{count_max} at once");
        }
    }

    #[test]
    fn long_rows_of_earlier_versions_are_read_and_appended_to() {
        let (database, records) = in_memory();
        let plans = long_ledger();
        write(&records, &plans[..1]);
        let write_whole = |engine: &Engine| {
            let transaction = engine.begin_write()?;
            let row = append_row::to_bytes(&StoredAppend::of(&plans[1]));
            transaction
                .open_table(APPENDS)?
                .insert(append_row::name(plans[1].head().id), row.as_slice())?;
            transaction.commit()
        };
        database.attempt(write_whole).expect("the database works");
        write(&records, &plans[2..]);
        let ledger = plans[0].ledger();
        assert_eq!(
            row_lengths(&database)
                .iter()
                .filter(|len| **len > 16 * 1024)
                .count(),
            1
        );
        assert_eq!(
            records.chain(ledger, None, 3_000).expect("reads"),
            links(&plans)
        );
        for plan in &plans {
            let (stored, links) = records
                .append(plan.head().id)
                .expect("reads")
                .expect("is there");
            assert_eq!(
                (stored, links),
                (StoredAppend::of(plan), plan.links().collect())
            );
        }
        assert_eq!(records.appends(ledger, None, 9).expect("reads").len(), 4);
    }

    #[test]
    fn an_append_without_one_of_its_pieces_is_damage() {
        let plans = long_ledger();
        let names = |plan: &AppendPlan| {
            append_row::rows_of(&StoredAppend::of(plan))
                .map(|row| row.0)
                .collect::<Vec<_>>()
        };
        let pieces = names(&plans[1]);
        for removed in &pieces {
            let (database, records) = in_memory();
            write(&records, &plans);
            let remove = |engine: &Engine| {
                let transaction = engine.begin_write()?;
                transaction
                    .open_table(APPENDS)?
                    .remove(*removed)?
                    .expect("it was there");
                transaction.commit()
            };
            database.attempt(remove).expect("the database works");
            if removed == pieces.last().expect("there are some") {
                assert_eq!(records.append(plans[1].head().id).expect("reads"), None);
                records
                    .append(plans[2].head().id)
                    .expect_err("pieces of two appends are not one");
            } else {
                records
                    .append(plans[1].head().id)
                    .expect_err("a piece is missing");
            }
            records
                .appends(plans[0].ledger(), None, 9)
                .expect_err("a piece is missing");
        }
    }
}
