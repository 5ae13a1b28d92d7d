//! The ids of other originators, in two tables of the database: those beside each anchor, and the anchors of each id.

use redb::{ReadableTable, Table, TableDefinition, WriteTransaction};

use super::register_table::{REGISTER, Register};
use crate::conjunction::{ExternalId, Pair, Tca};
use crate::storage::records::{AnchorKey, ListPlace, ListRange, externals_row};

/// Format, time and pair of an anchor.
type Name<'a> = (&'a str, i64, u64, u64);

/// Format and id; time and pair of an anchor that has it.
type NameOfId<'a> = (&'a str, &'a str, i64, u64, u64);

/// The ids beside each anchor that has any.
pub(super) const EXTERNALS: TableDefinition<'_, Name<'_>, &[u8]> =
    TableDefinition::new("externals");

/// The anchors of each id.
pub(super) const BY_EXTERNAL: TableDefinition<'_, NameOfId<'_>, &[u8]> =
    TableDefinition::new("anchors-by-external");

/// Keeps ids beside anchors that are stored.
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

/// The ids beside an anchor; none where there is no table of them yet.
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
    let damaged = || {
        redb::Error::Corrupted(format!(
            "what stands beside {key:?} is not what was written"
        ))
    };
    externals_row::from_bytes(row.value()).ok_or_else(damaged)
}

/// The anchors that have an id, at most `count_max`, the latest first.
pub(super) fn anchors_of(
    by_external: &impl ReadableTable<NameOfId<'static>, &'static [u8]>,
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

/// The tables, while anchors are forgotten.
pub(super) struct Externals<'a> {
    table: Table<'a, Name<'static>, &'static [u8]>,
    by_external: Table<'a, NameOfId<'static>, &'static [u8]>,
}

impl<'a> Externals<'a> {
    pub(super) fn open(transaction: &'a WriteTransaction) -> Result<Externals<'a>, redb::Error> {
        let (table, by_external) = (
            transaction.open_table(EXTERNALS)?,
            transaction.open_table(BY_EXTERNAL)?,
        );
        Ok(Externals { table, by_external })
    }

    /// Removes the ids beside an anchor.
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
