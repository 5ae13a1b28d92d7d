//! The records of ids with memory, in tables of the database: appends, anchors, and beside them the requests and the anchors
//! by time; and numbers.
//!
//! What is decided rests on the first two, so that nothing can disagree: the head of a ledger is its last row, and an
//! idempotency key stands in the row of the append that it came with. The table of requests says only where to look for a
//! key: what is answered is read from that row, and must name the key.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use redb::{ReadOnlyTable, TableDefinition, TableHandle};

use super::anchor_table::{self, ANCHORS, anchors_within};
use super::append_table::{self, APPENDS};
use super::backup;
use super::database::{Database, DatabaseError, if_there};
use super::external_table::{self, BY_EXTERNAL, EXTERNALS, Externals};
use super::logged::{self, Engine};
use super::number_tables::{self, NUMBER_KEYS, NUMBERS, VOIDS};
use super::register_table::{self, REGISTER};
use super::request_table::{self, REQUESTS};
use crate::conjunction::{Anchor, ExternalId, Pair, ReportTally, Tca};
use crate::ledger::{
    EventId, EventTime, GivenNumbers, Head, KeyHash, LedgerId, Link, SeriesHead, SeriesName,
    VoidedNumber,
};
use crate::storage::embedded::database_file::OtherLayout;
use crate::storage::failure::{FailureKind, StoreError};
use crate::storage::records::append_row;
use crate::storage::records::number_rows;
use crate::storage::records::{
    AnchorKey, BackedUp, DoneRequest, LedgerSummary, ListRange, NumberStore, RecordPlan,
    RecordStore, SeriesSummary, StoredAnchor, StoredAppend, StoredConjunction, StoredPair,
    TalliedAnchor, WriteError, WrittenDay,
};

/// Keys that are looked at before what was committed last shows: others wait meanwhile.
const LOOKED_AT_MAX: usize = 100;

type NumberTable = TableDefinition<'static, number_rows::Name<'static>, &'static [u8]>;

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

    /// The appends of a ledger behind the one that ends with `after`, or from the first, at most `count_max`.
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

    /// Pairs in the order of their formats and objects, those behind `after`, at most `count_max`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(crate) fn pairs(
        &self,
        after: Option<(&str, Pair)>,
        count_max: usize,
    ) -> Result<Vec<StoredPair>, StoreError> {
        Ok(self.database.attempt(|engine| {
            let transaction = engine.begin_read()?;
            let (anchors, register) = (
                transaction.open_table(ANCHORS)?,
                transaction.open_table(REGISTER)?,
            );
            let externals = if_there(&transaction, EXTERNALS)?;
            let stored = |(format, pair): (String, Pair)| {
                let of_pair =
                    anchors_within(&anchors, &format, pair, &(Tca(i64::MIN)..=Tca(i64::MAX)))?;
                let stored = |anchor: Anchor| {
                    let key = AnchorKey {
                        format: format.clone(),
                        pair,
                        tca: anchor.tca,
                    };
                    let tally = register_table::tally_of(&register, &format, (anchor.tca, pair))?;
                    Ok(StoredAnchor {
                        anchor,
                        tally,
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
        })?)
    }

    /// Reads one of the tables of numbers; nothing where it was never made.
    fn read_numbers<T>(
        &self,
        table: NumberTable,
        read: impl FnOnce(
            &ReadOnlyTable<number_rows::Name<'static>, &'static [u8]>,
        ) -> Result<Vec<T>, redb::Error>,
    ) -> Result<Vec<T>, StoreError> {
        Ok(self.database.attempt(|engine| {
            if_there(&engine.begin_read()?, table)?.map_or(Ok(Vec::new()), |table| read(&table))
        })?)
    }

    fn read_appends<T>(
        &self,
        read: impl FnOnce(&ReadOnlyTable<append_row::Name, &'static [u8]>) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        Ok(self
            .database
            .attempt(|engine| read(&engine.begin_read()?.open_table(APPENDS)?))?)
    }
}

impl RecordStore for RecordTables {
    fn write(&self, plans: &[RecordPlan]) -> Result<(), WriteError> {
        if plans.is_empty() {
            return Ok(());
        }
        let is_written = self.database.attempt(|engine| {
            engine.commit_logged(&logged::bytes_of(plans), |transaction| {
                logged::all_hold(transaction, plans)
            })
        });
        if is_written.map_err(StoreError::from)? {
            Ok(())
        } else {
            Err(WriteError::Stale)
        }
    }

    fn apply_pending(&self) -> Result<(), StoreError> {
        Ok(self.database.attempt(Engine::apply_pending)?)
    }

    fn head(&self, ledger: LedgerId) -> Result<Option<Head>, StoreError> {
        Ok(self.database.attempt(|engine| {
            engine.look(|transaction| {
                append_table::head_of(&transaction.open_table(APPENDS)?, ledger)
            })
        })?)
    }

    fn ledger(&self, ledger: LedgerId) -> Result<Option<LedgerSummary>, StoreError> {
        self.read_appends(|appends| append_table::summary_of(appends, ledger))
    }

    fn ledgers(
        &self,
        after: Option<LedgerId>,
        count_max: usize,
    ) -> Result<Vec<LedgerSummary>, StoreError> {
        self.read_appends(|appends| append_table::summaries(appends, after, count_max))
    }

    fn chain(
        &self,
        ledger: LedgerId,
        after: Option<EventId>,
        count_max: usize,
    ) -> Result<Vec<Link>, StoreError> {
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
            ..=LOOKED_AT_MAX => engine
                .look(|transaction| request_table::find(&transaction.open_table(REQUESTS)?, keys)),
            _ => request_table::find(&engine.begin_read()?.open_table(REQUESTS)?, keys),
        })?)
    }

    fn forget_requests(&self, since: EventTime, count_max: usize) -> Result<bool, StoreError> {
        Ok(self.database.attempt(|engine| {
            if !request_table::has_old(&engine.begin_read()?.open_table(REQUESTS)?, since)? {
                return Ok(false);
            }
            let transaction = engine.begin_write()?;
            let has_forgotten =
                request_table::forget(&mut transaction.open_table(REQUESTS)?, since, count_max)?;
            transaction.commit()?;
            Ok(has_forgotten)
        })?)
    }

    fn request_days(&self) -> Result<Vec<WrittenDay>, StoreError> {
        Ok(self
            .database
            .attempt(|engine| request_table::days(&engine.begin_read()?.open_table(REQUESTS)?))?)
    }

    fn neighbours(
        &self,
        format: &str,
        times: &mut dyn Iterator<Item = (Pair, Tca)>,
    ) -> Result<Vec<Vec<Anchor>>, StoreError> {
        Ok(self.database.attempt(|engine| {
            let anchors = engine.begin_read()?.open_table(ANCHORS)?;
            times
                .map(|(pair, tca)| anchors_within(&anchors, format, pair, &tca.neighbourhood()))
                .collect()
        })?)
    }

    fn anchors(
        &self,
        after: Option<&AnchorKey>,
        count_max: usize,
    ) -> Result<Vec<TalliedAnchor>, StoreError> {
        Ok(self.database.attempt(|engine| {
            register_table::anchors(
                &engine.begin_read()?.open_table(REGISTER)?,
                after,
                count_max,
            )
        })?)
    }

    fn forget_anchors(&self, old: &[TalliedAnchor]) -> Result<(), StoreError> {
        Ok(self.database.attempt(|engine| {
            let transaction = engine.begin_write()?;
            {
                let mut register = transaction.open_table(REGISTER)?;
                let mut anchors = transaction.open_table(ANCHORS)?;
                let mut externals = Externals::open(&transaction)?;
                for anchor in old {
                    if register_table::remove(&mut register, anchor)? {
                        anchor_table::remove(&mut anchors, &anchor.key)?;
                        externals.remove(&anchor.key)?;
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
            spans
                .map(|(pair, times)| anchors_within(&anchors, format, pair, &times))
                .collect()
        })?)
    }

    fn conjunctions(
        &self,
        range: &ListRange,
        count_max: usize,
    ) -> Result<Vec<StoredConjunction>, StoreError> {
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

    fn add_externals(&self, externals: &[(AnchorKey, ExternalId)]) -> Result<(), StoreError> {
        Ok(self.database.attempt(|engine| {
            let transaction = engine.begin_write()?;
            external_table::add(&transaction, externals)?;
            transaction.commit()
        })?)
    }

    fn externals(&self, anchors: &[AnchorKey]) -> Result<Vec<Vec<ExternalId>>, StoreError> {
        Ok(self.database.attempt(|engine| {
            let table = if_there(&engine.begin_read()?, EXTERNALS)?;
            anchors
                .iter()
                .map(|key| external_table::beside(table.as_ref(), key))
                .collect()
        })?)
    }

    fn anchors_of_external(
        &self,
        format: &str,
        external: &ExternalId,
        count_max: usize,
    ) -> Result<Vec<AnchorKey>, StoreError> {
        Ok(self.database.attempt(|engine| {
            let by_external = if_there(&engine.begin_read()?, BY_EXTERNAL)?;
            by_external.map_or(Ok(Vec::new()), |it| {
                external_table::anchors_of(&it, format, external, count_max)
            })
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

impl NumberStore for RecordTables {
    fn series_head(&self, series: &SeriesName) -> Result<Option<SeriesHead>, StoreError> {
        Ok(self.database.attempt(|engine| {
            engine.look(|transaction| {
                number_tables::head_of(&transaction.open_table(NUMBERS)?, series)
            })
        })?)
    }

    fn series(
        &self,
        after: Option<&SeriesName>,
        count_max: usize,
    ) -> Result<Vec<SeriesSummary>, StoreError> {
        self.read_numbers(NUMBERS, |numbers| {
            number_tables::series(numbers, after, count_max)
        })
    }

    fn given(
        &self,
        series: &SeriesName,
        from: u64,
        count_max: usize,
    ) -> Result<Vec<GivenNumbers>, StoreError> {
        self.read_numbers(NUMBERS, |numbers| {
            number_tables::given(numbers, series, from, count_max)
        })
    }

    fn given_to(
        &self,
        keys: &[(SeriesName, KeyHash)],
    ) -> Result<Vec<Option<GivenNumbers>>, StoreError> {
        Ok(self.database.attempt(|engine| {
            engine.look(|transaction| {
                let (numbers, of_keys) = (
                    transaction.open_table(NUMBERS)?,
                    transaction.open_table(NUMBER_KEYS)?,
                );
                number_tables::given_to(&numbers, &of_keys, keys)
            })
        })?)
    }

    fn voids(
        &self,
        series: &SeriesName,
        numbers: RangeInclusive<u64>,
    ) -> Result<Vec<VoidedNumber>, StoreError> {
        self.read_numbers(VOIDS, |voids| number_tables::voids(voids, series, &numbers))
    }
}

/// Makes the tables in a database that is new. Those of numbers may be missing in one that is not: nothing was written to them.
fn make_tables(engine: &Engine) -> Result<(), redb::Error> {
    let there: Vec<String> = engine
        .begin_read()?
        .list_tables()?
        .map(|table| table.name().to_owned())
        .collect();
    let is_there = |name: &&str| there.iter().any(|there| there == name);
    match [
        APPENDS.name(),
        REQUESTS.name(),
        ANCHORS.name(),
        REGISTER.name(),
    ]
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
    transaction.open_table(EXTERNALS)?;
    transaction.open_table(BY_EXTERNAL)?;
    transaction.open_table(NUMBERS)?;
    transaction.open_table(NUMBER_KEYS)?;
    transaction.open_table(VOIDS)?;
    transaction.commit()
}

#[cfg(test)]
#[path = "damage_tests.rs"]
mod damage;
