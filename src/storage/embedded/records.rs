//! What lasts of ids with memory: the events of every ledger and the anchors of every pair.
//!
//! Two tables and nothing beside them, so that nothing can disagree: the head of a ledger is its last row, an idempotency
//! key stands in the row of the append that it came with.

use std::sync::Arc;

use redb::{AccessGuard, ReadableDatabase, ReadableTable, TableDefinition};

use super::append_row::{AppendRow, DoneRequest};
use super::database::{Database, DatabaseError};
use super::{anchor_row, append_row};
use crate::conjunction::{Anchor, AnchorPlan, Pair, Tca};
use crate::ledger::{AppendPlan, EventId, EventTime, Head, LedgerId, Link};
use crate::storage::record_plan::RecordPlan;

/// Ledger and id of the last event to the events of one append.
const APPENDS: TableDefinition<'_, append_row::Name, &[u8]> = TableDefinition::new("appends");

/// Format, pair and time of closest approach to the rank of an anchor.
const ANCHORS: TableDefinition<'_, anchor_row::Name<'_>, &[u8]> = TableDefinition::new("anchors");

type Bytes<'a> = AccessGuard<'a, &'static [u8]>;

/// The appends, as a transaction sees them.
trait AppendRows: ReadableTable<append_row::Name, &'static [u8]> {}
impl<T: ReadableTable<append_row::Name, &'static [u8]>> AppendRows for T {}

/// The anchors, as a transaction sees them.
trait AnchorRows: ReadableTable<anchor_row::Name<'static>, &'static [u8]> {}
impl<T: ReadableTable<anchor_row::Name<'static>, &'static [u8]>> AnchorRows for T {}

/// The records of one database.
#[derive(Debug, Clone)]
pub struct Records {
    database: Arc<Database>,
}

/// Why plans were not written; then none of them was.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// What a plan was decided on holds no longer.
    #[error("a record was written meanwhile")]
    Stale,
    /// The database is damaged or refuses; whether the plans are stored is unknown.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// A ledger from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerSummary {
    /// Its first event.
    pub genesis: EventId,
    /// Its last event.
    pub head: Head,
}

/// Where an anchor stands among all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnchorPlace {
    format: String,
    pair: Pair,
    tca: Tca,
}

impl AnchorPlace {
    fn of((format, primary, secondary, tca): anchor_row::Name<'_>) -> AnchorPlace {
        AnchorPlace { format: format.to_owned(), pair: Pair { primary, secondary }, tca: Tca(tca) }
    }

    fn name(&self) -> anchor_row::Name<'_> {
        anchor_row::name(&self.format, self.pair, self.tca)
    }
}

impl Default for AnchorPlace {
    fn default() -> AnchorPlace {
        AnchorPlace { format: String::new(), pair: Pair { primary: 0, secondary: 0 }, tca: Tca(i64::MIN) }
    }
}

impl Records {
    /// The records in `database`, with their tables created.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn open(database: Arc<Database>) -> Result<Records, DatabaseError> {
        database.attempt(|engine| {
            let transaction = begin_write(engine)?;
            transaction.open_table(APPENDS)?;
            transaction.open_table(ANCHORS)?;
            Ok(transaction.commit()?)
        })?;
        Ok(Records { database })
    }

    /// Whether the disk has refused nothing since the database was opened.
    pub fn is_usable(&self) -> bool {
        self.database.is_usable()
    }

    /// Closes the database and opens it again, after an error of the disk.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn reopen(&self) -> Result<(), DatabaseError> {
        self.database.reopen()
    }

    /// Stores plans in their order, all of them or none, and returns when they will survive a crash.
    ///
    /// Whether what they were decided on still holds is asked inside the transaction that writes them.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn write(&self, plans: &[RecordPlan]) -> Result<(), WriteError> {
        let is_written = self.database.attempt(|engine| {
            let transaction = begin_write(engine)?;
            let is_current = {
                let mut appends = transaction.open_table(APPENDS)?;
                let mut anchors = transaction.open_table(ANCHORS)?;
                all(plans, |plan| match plan {
                    RecordPlan::Append(plan) => write_append(&mut appends, plan),
                    RecordPlan::Anchor(plan) => write_anchor(&mut anchors, plan),
                })?
            };
            if is_current {
                transaction.commit()?
            } else {
                transaction.abort()?
            }
            Ok(is_current)
        })?;
        if is_written { Ok(()) } else { Err(WriteError::Stale) }
    }

    /// The last event of a ledger; `None` if there is no such ledger.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn head(&self, ledger: LedgerId) -> Result<Option<Head>, DatabaseError> {
        self.read_appends(|appends| head_of(appends, ledger))
    }

    /// A ledger; `None` if there is no such ledger.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn ledger(&self, ledger: LedgerId) -> Result<Option<LedgerSummary>, DatabaseError> {
        self.read_appends(|appends| summary_of(appends, ledger))
    }

    /// Ledgers in the order of their ids, those above `after`, at most so many.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn ledgers(&self, after: Option<LedgerId>, count_max: usize) -> Result<Vec<LedgerSummary>, DatabaseError> {
        self.read_appends(|appends| {
            let mut found = Vec::new();
            let mut next = after.map_or(Some(0), |after| after.bits().checked_add(1));
            while let Some(from) = next.filter(|_| found.len() < count_max) {
                let Some(row) = appends.range((from, 0)..)?.next() else { break };
                let ledger = row_of(row?)?.ledger();
                found.extend(summary_of(appends, ledger)?);
                next = ledger.bits().checked_add(1);
            }
            Ok(found)
        })
    }

    /// The events of a ledger after one of them, or from the first, at most so many.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn chain(
        &self,
        ledger: LedgerId,
        after: Option<EventId>,
        count_max: usize,
    ) -> Result<Vec<Link>, DatabaseError> {
        self.read_appends(|appends| {
            let mut links = Vec::new();
            let from = (ledger.bits(), after.map_or(0, |after| after.value().saturating_add(1)));
            for row in appends.range(from..=(ledger.bits(), u128::MAX))? {
                let row = row_of(row?)?;
                let is_asked_for = |link: &Link| after.is_none_or(|after| link.id > after);
                links.extend(links_of(appends, &row)?.filter(is_asked_for));
                if links.len() >= count_max {
                    break;
                }
            }
            links.truncate(count_max);
            Ok(links)
        })
    }

    /// An event of a ledger; `None` if it is not there.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn link(&self, id: EventId) -> Result<Option<Link>, DatabaseError> {
        self.read_appends(|appends| {
            let end = (id.ledger().bits(), u128::MAX);
            let Some(row) = appends.range(AppendRow::name(id)..=end)?.next() else { return Ok(None) };
            let row = row_of(row?)?;
            Ok(links_of(appends, &row)?.find(|link| link.id == id))
        })
    }

    /// The append whose last event is `last`, as events in their chain; `None` if there is none.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn append(&self, last: EventId) -> Result<Option<(AppendRow, Vec<Link>)>, DatabaseError> {
        self.read_appends(|appends| {
            let name = AppendRow::name(last);
            let Some(bytes) = appends.get(name)? else { return Ok(None) };
            let row = AppendRow::from_bytes(name, bytes.value()).ok_or_else(|| append_damaged(name))?;
            let links = links_of(appends, &row)?.collect();
            Ok(Some((row, links)))
        })
    }

    /// Shows the requests with a key that were done since, in no order.
    ///
    /// # Errors
    /// [`DatabaseError`]; some may have been shown.
    pub fn requests_since(&self, since: EventTime, mut show: impl FnMut(DoneRequest)) -> Result<(), DatabaseError> {
        self.read_appends(|appends| {
            // From the last ledger to the first, and in each from its end until the rows are too old.
            let mut newest = appends.last()?;
            while let Some((name, _)) = newest {
                let (ledger, _) = name.value();
                for row in appends.range((ledger, 0)..=(ledger, u128::MAX))?.rev() {
                    let (name, bytes) = row?;
                    let done = append_row::request_of(name.value(), bytes.value());
                    let (recorded, done) = done.ok_or_else(|| append_damaged(name.value()))?;
                    if recorded < since {
                        break;
                    }
                    done.into_iter().for_each(&mut show);
                }
                newest = appends.range(..(ledger, 0))?.next_back().transpose()?;
            }
            Ok(())
        })
    }

    /// For each of these times of a pair the anchors in its [neighbourhood](Tca::neighbourhood).
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn neighbours(
        &self,
        format: &str,
        of: impl Iterator<Item = (Pair, Tca)>,
    ) -> Result<Vec<Vec<Anchor>>, DatabaseError> {
        self.database.attempt(|engine| {
            let anchors = engine.begin_read()?.open_table(ANCHORS)?;
            of.map(|(pair, tca)| neighbours_of(&anchors, format, pair, tca)).collect()
        })
    }

    /// Looks at so many anchors in their order, from a place or the beginning, and forgets those before an instant. Returns
    /// where to go on; `None` at the end.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn forget_anchors(
        &self,
        from: Option<&AnchorPlace>,
        before: Tca,
        count_max: usize,
    ) -> Result<Option<AnchorPlace>, DatabaseError> {
        self.database.attempt(|engine| {
            let transaction = begin_write(engine)?;
            let (old, next) = {
                let mut anchors = transaction.open_table(ANCHORS)?;
                let first = AnchorPlace::default();
                let mut rows = anchors.range(from.unwrap_or(&first).name()..)?;
                let mut old = Vec::new();
                for row in rows.by_ref().take(count_max) {
                    let (name, _) = row?;
                    old.extend(Some(AnchorPlace::of(name.value())).filter(|place| place.tca < before));
                }
                let next = rows.next().transpose()?.map(|(name, _)| AnchorPlace::of(name.value()));
                drop(rows);
                for place in &old {
                    anchors.remove(place.name())?;
                }
                (old, next)
            };
            if old.is_empty() {
                transaction.abort()?
            } else {
                transaction.commit()?
            }
            Ok(next)
        })
    }

    fn read_appends<T>(
        &self,
        read: impl FnOnce(&redb::ReadOnlyTable<append_row::Name, &'static [u8]>) -> Result<T, redb::Error>,
    ) -> Result<T, DatabaseError> {
        self.database.attempt(|engine| read(&engine.begin_read()?.open_table(APPENDS)?))
    }
}

fn begin_write(engine: &redb::Database) -> Result<redb::WriteTransaction, redb::Error> {
    let mut transaction = engine.begin_write()?;
    // A start after a crash must not read the whole database.
    transaction.set_quick_repair(true);
    Ok(transaction)
}

/// Whether every one is, up to the first that is not.
fn all<T, E>(items: &[T], mut is: impl FnMut(&T) -> Result<bool, E>) -> Result<bool, E> {
    for item in items {
        if !is(item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn write_append(
    appends: &mut redb::Table<'_, append_row::Name, &'static [u8]>,
    plan: &AppendPlan,
) -> Result<bool, redb::Error> {
    if head_of(appends, plan.ledger())? != plan.before {
        return Ok(false);
    }
    let row = AppendRow::of(plan);
    let replaced = appends.insert(AppendRow::name(row.head().id), row.to_bytes().as_slice())?.is_some();
    assert!(!replaced, "an id above the head of its ledger is new");
    Ok(true)
}

fn write_anchor(
    anchors: &mut redb::Table<'_, anchor_row::Name<'static>, &'static [u8]>,
    plan: &AnchorPlan,
) -> Result<bool, redb::Error> {
    let AnchorPlan { format, pair, anchor } = plan;
    let neighbours = neighbours_of(anchors, format, *pair, anchor.tca)?;
    if Anchor::find(anchor.tca, &neighbours).is_some() || Anchor::create(anchor.tca, &neighbours) != *anchor {
        return Ok(false);
    }
    let name = anchor_row::name(format, *pair, anchor.tca);
    anchors.insert(name, anchor_row::to_bytes(name, anchor.rank).as_slice())?;
    Ok(true)
}

fn head_of(appends: &impl AppendRows, ledger: LedgerId) -> Result<Option<Head>, redb::Error> {
    let last = appends.range((ledger.bits(), 0)..=(ledger.bits(), u128::MAX))?.next_back();
    last.map(|row| Ok(row_of(row?)?.head())).transpose()
}

fn summary_of(appends: &impl AppendRows, ledger: LedgerId) -> Result<Option<LedgerSummary>, redb::Error> {
    let mut rows = appends.range((ledger.bits(), 0)..=(ledger.bits(), u128::MAX))?;
    let Some(first) = rows.next() else { return Ok(None) };
    let first = row_of(first?)?;
    let head = rows.next_back().map_or(Ok(first.head()), |last| Ok::<_, redb::Error>(row_of(last?)?.head()))?;
    Ok(Some(LedgerSummary { genesis: first.entries[0].id, head }))
}

/// The events of a row, each with the id before it.
fn links_of(appends: &impl AppendRows, row: &AppendRow) -> Result<impl Iterator<Item = Link>, redb::Error> {
    let (first, ledger) = (row.entries[0].id, row.ledger());
    let previous = if row.first_place == 1 {
        EventId::before_genesis(first.timestamp(), ledger)
    } else {
        let before = appends.range((ledger.bits(), 0)..AppendRow::name(first))?.next_back();
        let (name, _) = before.transpose()?.ok_or_else(|| append_missing(row))?;
        EventId::from_value(name.value().1).ok_or_else(|| append_damaged(name.value()))?
    };
    Ok(Link::chain(previous, row.first_place, row.entries.iter().map(|entry| entry.id)))
}

fn row_of((name, bytes): (AccessGuard<'_, append_row::Name>, Bytes<'_>)) -> Result<AppendRow, redb::Error> {
    AppendRow::from_bytes(name.value(), bytes.value()).ok_or_else(|| append_damaged(name.value()))
}

fn neighbours_of(anchors: &impl AnchorRows, format: &str, pair: Pair, tca: Tca) -> Result<Vec<Anchor>, redb::Error> {
    let (from, to) = tca.neighbourhood().into_inner();
    let rows = anchors.range(anchor_row::name(format, pair, from)..=anchor_row::name(format, pair, to))?;
    rows.map(|row| {
        let (name, bytes) = row?;
        let damaged = || redb::Error::Corrupted(format!("the anchor {:?} is not what was written", name.value()));
        anchor_row::from_bytes(name.value(), bytes.value()).ok_or_else(damaged)
    })
    .collect()
}

fn append_damaged((_, last): append_row::Name) -> redb::Error {
    redb::Error::Corrupted(format!("the events up to {last:032x} are not what was written"))
}

fn append_missing(row: &AppendRow) -> redb::Error {
    let (first, place) = (row.entries[0].id, row.first_place);
    redb::Error::Corrupted(format!("the event before {first}, which is the {place}th of its ledger, is missing"))
}
