//! The tables of external ids, which are ids that other organizations gave to conjunctions. One
//! table maps conjunctions to external ids, and the other maps external ids to conjunctions.

use redb::{ReadTransaction, ReadableTable, Table, TableDefinition, WriteTransaction};

use super::database::{if_there, unreadable};
use super::register_table::{REGISTER, Register};
use crate::records::rows::externals_row;
use crate::records::{AnchorKey, ListPlace, ListRange};
use idmint_records::conjunction::{ExternalId, Pair, Tca};

/// The key of a close approach: the id format, time and two objects of its first report.
type Name<'a> = (&'a str, i64, u64, u64);

/// The key of a row: a format and an external id, followed by the time and the two objects of a
/// conjunction that has this id.
type NameOfId<'a> = (&'a str, &'a str, i64, u64, u64);

/// Maps the first report of a conjunction to the conjunction's external ids.
pub(super) const EXTERNALS: TableDefinition<'_, Name<'_>, &[u8]> =
    TableDefinition::new("externals");

/// Maps an external id to the first reports of all close approaches that have this external id.
pub(super) const BY_EXTERNAL: TableDefinition<'_, NameOfId<'_>, &[u8]> =
    TableDefinition::new("anchors-by-external");

/// Attaches external ids to conjunctions, which are identified by their anchors. Skips a
/// conjunction whose anchor is not stored.
pub(super) fn add(
    transaction: &WriteTransaction,
    externals: &[(AnchorKey, ExternalId)],
) -> Result<(), redb::Error> {
    let register: Register<'_> = transaction.open_table(REGISTER)?;
    let mut table = transaction.open_table(EXTERNALS)?;
    let mut by_external = transaction.open_table(BY_EXTERNAL)?;
    for (key, external) in externals {
        let name = name_of(key);
        if register.get(name)?.is_none() {
            continue;
        }
        let mut of_anchor = beside(Some(&table), key)?;
        if externals_row::add(&mut of_anchor, external) {
            table.insert(name, externals_row::to_bytes(&of_anchor).as_slice())?;
            by_external.insert(name_of_id(key, external), [].as_slice())?;
        }
    }
    Ok(())
}

/// Returns the external ids of a conjunction. The result is empty if the table does not exist yet.
pub(super) fn beside(
    table: Option<&impl ReadableTable<Name<'static>, &'static [u8]>>,
    key: &AnchorKey,
) -> Result<Vec<ExternalId>, redb::Error> {
    let Some(row) = table
        .map(|table| table.get(name_of(key)))
        .transpose()?
        .flatten()
    else {
        return Ok(Vec::new());
    };
    externals_row::from_bytes(row.value()).ok_or_else(|| {
        let is_whole = externals_row::is_whole(row.value());
        unreadable(is_whole, &format!("the entry beside {key:?} is"))
    })
}

/// Returns up to `count_max` anchors with this external id, the latest ones first.
pub(super) fn anchors_of(
    transaction: &ReadTransaction,
    format: &str,
    external: &ExternalId,
    count_max: usize,
) -> Result<Vec<AnchorKey>, redb::Error> {
    let of_both = |(tca, pair): ListPlace| {
        (
            format,
            external.as_str(),
            tca.0,
            pair.primary,
            pair.secondary,
        )
    };
    let Some(by_external) = if_there(transaction, BY_EXTERNAL)? else {
        return Ok(Vec::new());
    };
    let rows = by_external
        .range(of_both(ListRange::FIRST)..=of_both(ListRange::LAST))?
        .rev()
        .take(count_max);
    rows.map(|row| {
        let (name, _) = row?;
        let (format, _, tca, primary, secondary) = name.value();
        Ok(AnchorKey {
            format: format.to_owned(),
            pair: Pair { primary, secondary },
            tca: Tca(tca),
        })
    })
    .collect()
}

/// The two tables of external ids, opened for writing. When old close approaches are removed, their
/// external ids are removed from both tables.
pub(super) struct Externals<'a> {
    table: Table<'a, Name<'static>, &'static [u8]>,
    by_external: Table<'a, NameOfId<'static>, &'static [u8]>,
}

impl<'a> Externals<'a> {
    pub(super) fn open(transaction: &'a WriteTransaction) -> Result<Externals<'a>, redb::Error> {
        let table = transaction.open_table(EXTERNALS)?;
        let by_external = transaction.open_table(BY_EXTERNAL)?;
        Ok(Externals { table, by_external })
    }

    /// Removes all external ids of an anchor.
    pub(super) fn remove(&mut self, key: &AnchorKey) -> Result<(), redb::Error> {
        let externals = beside(Some(&self.table), key)?;
        for external in &externals {
            self.by_external.remove(name_of_id(key, external))?;
        }
        if !externals.is_empty() {
            self.table.remove(name_of(key))?;
        }
        Ok(())
    }
}

fn name_of(AnchorKey { format, pair, tca }: &AnchorKey) -> Name<'_> {
    (format, tca.0, pair.primary, pair.secondary)
}

fn name_of_id<'a>(
    AnchorKey { format, pair, tca }: &'a AnchorKey,
    external: &'a ExternalId,
) -> NameOfId<'a> {
    (
        format,
        external.as_str(),
        tca.0,
        pair.primary,
        pair.secondary,
    )
}
