//! The records of ids with memory, in tables of the database: appends, anchors, and beside them the requests and the anchors
//! by time.
//!
//! What is decided rests on the first two, so that nothing can disagree: the head of a ledger is its last row, and an
//! idempotency key stands in the row of the append that it came with. The table of requests says only where to look for a
//! key: what is answered is read from that row, and must name the key.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use redb::{ReadOnlyTable, TableHandle};

use super::anchor_table::{self, ANCHORS, anchors_within};
use super::append_table::{self, APPENDS};
use super::backup;
use super::database::{Database, DatabaseError};
use super::logged::{self, Engine};
use super::register_table::{self, REGISTER};
use super::request_table::{self, REQUESTS};
use crate::conjunction::{Anchor, Pair, ReportTally, Tca};
use crate::ledger::{EventId, EventTime, Head, KeyHash, LedgerId, Link};
use crate::storage::embedded::database_file::OtherLayout;
use crate::storage::failure::{FailureKind, StoreError};
use crate::storage::records::append_row;
use crate::storage::records::{
    AnchorKey, BackedUp, DoneRequest, LedgerSummary, ListRange, RecordPlan, RecordStore, StoredAppend,
    StoredConjunction, StoredPair, TalliedAnchor, WriteError, WrittenDay,
};

/// Keys that are looked at before what was committed last shows: others wait meanwhile.
const LOOKED_AT_MAX: usize = 100;

/// The records of one database.
#[derive(Debug)]
pub(crate) struct RecordTables {
    database: Arc<Database>,
}

impl RecordTables {
    /// The records in `database`, with their tables created if they are not there: on a full disk nothing could be.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub(crate) fn open(database: Arc<Database>) -> Result<RecordTables, DatabaseError> {
        database.attempt(make_tables)?;
        Ok(RecordTables { database })
    }

    /// The appends of a ledger behind the one that ends with `after`, or from the first, at most so many.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(crate) fn appends(
        &self,
        ledger: LedgerId,
        after: Option<EventId>,
        count_max: usize,
    ) -> Result<Vec<StoredAppend>, StoreError> {
        self.read_appends(|appends| append_table::appends_of(appends, ledger, after, count_max))
    }

    /// Pairs in the order of their formats and objects, those behind `after`, at most so many.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(crate) fn pairs(&self, after: Option<(&str, Pair)>, count_max: usize) -> Result<Vec<StoredPair>, StoreError> {
        Ok(self.database.attempt(|engine| {
            let transaction = engine.begin_read()?;
            let (anchors, register) = (transaction.open_table(ANCHORS)?, transaction.open_table(REGISTER)?);
            let stored = |(format, pair): (String, Pair)| {
                let of_pair = anchors_within(&anchors, &format, pair, &(Tca(i64::MIN)..=Tca(i64::MAX)))?;
                let tallied =
                    |anchor: Anchor| Ok((anchor, register_table::tally_of(&register, &format, (anchor.tca, pair))?));
                let anchors = of_pair.into_iter().map(tallied).collect::<Result<_, redb::Error>>()?;
                Ok(StoredPair { format, pair, anchors })
            };
            anchor_table::pairs(&anchors, after, count_max)?.into_iter().map(stored).collect()
        })?)
    }

    fn read_appends<T>(
        &self,
        read: impl FnOnce(&ReadOnlyTable<append_row::Name, &'static [u8]>) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        Ok(self.database.attempt(|engine| read(&engine.begin_read()?.open_table(APPENDS)?))?)
    }
}

impl RecordStore for RecordTables {
    fn write(&self, plans: &[RecordPlan]) -> Result<(), WriteError> {
        if plans.is_empty() {
            return Ok(());
        }
        let is_written = self.database.attempt(|engine| {
            engine.commit_logged(&logged::bytes_of(plans), |transaction| logged::all_hold(transaction, plans))
        });
        if is_written.map_err(StoreError::from)? { Ok(()) } else { Err(WriteError::Stale) }
    }

    fn settle(&self) -> Result<(), StoreError> {
        Ok(self.database.attempt(Engine::settle)?)
    }

    fn head(&self, ledger: LedgerId) -> Result<Option<Head>, StoreError> {
        Ok(self.database.attempt(|engine| {
            engine.look(|transaction| append_table::head_of(&transaction.open_table(APPENDS)?, ledger))
        })?)
    }

    fn ledger(&self, ledger: LedgerId) -> Result<Option<LedgerSummary>, StoreError> {
        self.read_appends(|appends| append_table::summary_of(appends, ledger))
    }

    fn ledgers(&self, after: Option<LedgerId>, count_max: usize) -> Result<Vec<LedgerSummary>, StoreError> {
        self.read_appends(|appends| append_table::summaries(appends, after, count_max))
    }

    fn chain(&self, ledger: LedgerId, after: Option<EventId>, count_max: usize) -> Result<Vec<Link>, StoreError> {
        self.read_appends(|appends| append_table::chain_of(appends, ledger, after, count_max))
    }

    fn link(&self, id: EventId) -> Result<Option<Link>, StoreError> {
        self.read_appends(|appends| append_table::link(appends, id))
    }

    fn append(&self, last: EventId) -> Result<Option<(StoredAppend, Vec<Link>)>, StoreError> {
        self.read_appends(|appends| append_table::append(appends, last))
    }

    fn requests(&self, keys: &[KeyHash]) -> Result<Vec<Option<DoneRequest>>, StoreError> {
        Ok(self.database.attempt(|engine| match keys.len() {
            ..=LOOKED_AT_MAX => {
                engine.look(|transaction| request_table::find(&transaction.open_table(REQUESTS)?, keys))
            }
            _ => request_table::find(&engine.begin_read()?.open_table(REQUESTS)?, keys),
        })?)
    }

    fn forget_requests(&self, since: EventTime, count_max: usize) -> Result<bool, StoreError> {
        Ok(self.database.attempt(|engine| {
            if !request_table::has_old(&engine.begin_read()?.open_table(REQUESTS)?, since)? {
                return Ok(false);
            }
            let transaction = engine.begin_write()?;
            let has_forgotten = request_table::forget(&mut transaction.open_table(REQUESTS)?, since, count_max)?;
            transaction.commit()?;
            Ok(has_forgotten)
        })?)
    }

    fn request_days(&self) -> Result<Vec<WrittenDay>, StoreError> {
        Ok(self.database.attempt(|engine| request_table::days(&engine.begin_read()?.open_table(REQUESTS)?))?)
    }

    fn neighbours(
        &self,
        format: &str,
        times: &mut dyn Iterator<Item = (Pair, Tca)>,
    ) -> Result<Vec<Vec<Anchor>>, StoreError> {
        Ok(self.database.attempt(|engine| {
            let anchors = engine.begin_read()?.open_table(ANCHORS)?;
            times.map(|(pair, tca)| anchors_within(&anchors, format, pair, &tca.neighbourhood())).collect()
        })?)
    }

    fn anchors(&self, after: Option<&AnchorKey>, count_max: usize) -> Result<Vec<TalliedAnchor>, StoreError> {
        Ok(self
            .database
            .attempt(|engine| register_table::anchors(&engine.begin_read()?.open_table(REGISTER)?, after, count_max))?)
    }

    fn forget_anchors(&self, old: &[TalliedAnchor]) -> Result<(), StoreError> {
        Ok(self.database.attempt(|engine| {
            let transaction = engine.begin_write()?;
            {
                let mut register = transaction.open_table(REGISTER)?;
                let mut anchors = transaction.open_table(ANCHORS)?;
                for anchor in old {
                    if register_table::remove(&mut register, anchor)? {
                        anchor_table::remove(&mut anchors, &anchor.key)?;
                    }
                }
            }
            transaction.commit()
        })?)
    }

    fn anchors_within(
        &self,
        format: &str,
        spans: &mut dyn Iterator<Item = (Pair, RangeInclusive<Tca>)>,
    ) -> Result<Vec<Vec<Anchor>>, StoreError> {
        Ok(self.database.attempt(|engine| {
            let anchors = engine.begin_read()?.open_table(ANCHORS)?;
            spans.map(|(pair, times)| anchors_within(&anchors, format, pair, &times)).collect()
        })?)
    }

    fn conjunctions(&self, range: &ListRange, count_max: usize) -> Result<Vec<StoredConjunction>, StoreError> {
        Ok(self.database.attempt(|engine| {
            let transaction = engine.begin_read()?;
            register_table::list(
                &transaction.open_table(REGISTER)?,
                &transaction.open_table(ANCHORS)?,
                range,
                count_max,
            )
        })?)
    }

    fn add_reports(&self, tallies: &[(AnchorKey, ReportTally)]) -> Result<(), StoreError> {
        Ok(self.database.attempt(|engine| {
            let transaction = engine.begin_write()?;
            {
                let mut register = transaction.open_table(REGISTER)?;
                for (key, later) in tallies {
                    register_table::add_reports(&mut register, key, later)?;
                }
            }
            transaction.commit()
        })?)
    }

    fn back_up(&self, folder: &Path) -> Result<BackedUp, StoreError> {
        Ok(backup::copy(&self.database, folder)?)
    }

    fn obstacle(&self) -> Option<FailureKind> {
        (!self.database.is_usable()).then_some(FailureKind::NotUsable)
    }

    fn reopen(&self) -> Result<(), StoreError> {
        Ok(self.database.reopen()?)
    }
}

/// Makes the tables in a database that is new.
fn make_tables(engine: &Engine) -> Result<(), redb::Error> {
    let there: Vec<String> = engine.begin_read()?.list_tables()?.map(|table| table.name().to_owned()).collect();
    let is_there = |name: &&str| there.iter().any(|there| there == name);
    match [APPENDS.name(), REQUESTS.name(), ANCHORS.name(), REGISTER.name()]
        .iter()
        .filter(|name| is_there(name))
        .count()
    {
        4 => return Ok(()),
        0 => {}
        _ => return Err(OtherLayout::Earlier.into()),
    }
    let transaction = engine.begin_write()?;
    transaction.open_table(APPENDS)?;
    transaction.open_table(REQUESTS)?;
    transaction.open_table(ANCHORS)?;
    transaction.open_table(REGISTER)?;
    transaction.commit()
}

#[cfg(test)]
#[path = "damage_tests.rs"]
mod damage;
