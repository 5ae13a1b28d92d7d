//! A store of rows in an in-memory redb table. It is used only in this suite, and shows everything
//! that such a store must implement.

use std::time::Duration;

use redb::backends::InMemoryBackend;
use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};

use crate::coordinator::{
    Compare, Coordinator, CoordinatorError, KeyValue, Lease, Outcome, Range, Revision, Snapshot,
    Term, Transaction, Write,
};

/// The entries by key. Each entry has the revision that created it, the revision that last wrote
/// it, and its content.
const ENTRIES: TableDefinition<'_, &str, (u64, u64, &[u8])> = TableDefinition::new("entries");
const REVISION: TableDefinition<'_, (), u64> = TableDefinition::new("revision");

/// An in-memory store of rows. It has no leases, because records need none.
#[derive(Debug)]
pub(super) struct RowsInRedb(Database);

impl RowsInRedb {
    pub(super) fn new() -> RowsInRedb {
        let database = Database::builder()
            .create_with_backend(InMemoryBackend::new())
            .expect("memory suffices");
        let rows = RowsInRedb(database);
        let empty = Transaction {
            write: vec![Write::Delete("none".to_owned())],
            ..Transaction::default()
        };
        rows.commit(&empty).expect("both tables are made");
        rows
    }

    fn try_commit(&self, transaction: &Transaction) -> Result<Outcome, redb::Error> {
        let mut writing = self.0.begin_write()?;
        writing.set_durability(Durability::None)?;
        let outcome = {
            let (mut entries, mut revisions) =
                (writing.open_table(ENTRIES)?, writing.open_table(REVISION)?);
            let revision = revisions.get(())?.map_or(0, |revision| revision.value());
            if !holds(&entries, &transaction.compare)? {
                Outcome::Refused(snapshot(&entries, revision, &transaction.otherwise)?)
            } else {
                let revision = revision + u64::from(!transaction.write.is_empty());
                revisions.insert((), revision)?;
                for write in &transaction.write {
                    match write {
                        Write::Put {
                            key,
                            value,
                            lease: None,
                        } => {
                            let created = entries
                                .get(&**key)?
                                .map_or(revision, |entry| entry.value().0);
                            entries.insert(&**key, (created, revision, &**value))?;
                        }
                        Write::Put {
                            lease: Some(lease), ..
                        } => panic!("a record under {lease:?}"),
                        Write::Delete(key) => drop(entries.remove(&**key)?),
                    }
                }
                Outcome::Committed(snapshot(&entries, revision, &transaction.then_read)?)
            }
        };
        writing.commit()?;
        Ok(outcome)
    }

    fn try_read(&self, ranges: &[Range]) -> Result<Snapshot, redb::Error> {
        let reading = self.0.begin_read()?;
        let revision = reading
            .open_table(REVISION)?
            .get(())?
            .map_or(0, |revision| revision.value());
        snapshot(&reading.open_table(ENTRIES)?, revision, ranges)
    }
}

impl Coordinator for RowsInRedb {
    fn commit(&self, transaction: &Transaction) -> Result<Outcome, CoordinatorError> {
        Ok(self.try_commit(transaction).expect("memory does not fail"))
    }

    fn read(&self, ranges: &[Range]) -> Result<Snapshot, CoordinatorError> {
        Ok(self.try_read(ranges).expect("memory does not fail"))
    }

    fn grant(&self, _lasts: Duration) -> Result<Lease, CoordinatorError> {
        Err(CoordinatorError::Refused("there are no leases".to_owned()))
    }

    fn keep_alive(&self, _lease: Lease) -> Result<bool, CoordinatorError> {
        Ok(false)
    }
}

/// The table of entries, opened for reading or for writing.
trait Entries: ReadableTable<&'static str, (u64, u64, &'static [u8])> {}

impl<T: ReadableTable<&'static str, (u64, u64, &'static [u8])>> Entries for T {}

fn holds(entries: &impl Entries, compares: &[Compare]) -> Result<bool, redb::Error> {
    for compare in compares {
        let entry = entries.get(compare.key().as_str())?;
        let (created, modified) = entry.map_or((0, 0), |entry| (entry.value().0, entry.value().1));
        let holds = match compare {
            Compare::Created(_, expected) => Revision(created) == *expected,
            Compare::Modified(_, expected) => Revision(modified) == *expected,
        };
        if !holds {
            return Ok(false);
        }
    }
    Ok(true)
}

fn snapshot(
    entries: &impl Entries,
    revision: u64,
    ranges: &[Range],
) -> Result<Snapshot, redb::Error> {
    let ranges = ranges
        .iter()
        .map(|range| within(entries, range))
        .collect::<Result<_, _>>()?;
    Ok(Snapshot {
        revision: Revision(revision),
        ranges,
        term: Term::default(),
    })
}

fn within(entries: &impl Entries, range: &Range) -> Result<Vec<KeyValue>, redb::Error> {
    // No key contains a zero byte, so this range contains only `from`.
    let to = range
        .to
        .clone()
        .unwrap_or_else(|| format!("{}\0", range.from));
    if to <= range.from {
        return Ok(Vec::new());
    }
    let count_max = if range.count_max == 0 {
        usize::MAX
    } else {
        range.count_max
    };
    let mut found = entries.range(range.from.as_str()..to.as_str())?;
    let next = || {
        if range.is_descending {
            found.next_back()
        } else {
            found.next()
        }
    };
    std::iter::from_fn(next)
        .take(count_max)
        .map(|row| {
            let (key, entry) = row?;
            let (created, modified, value) = entry.value();
            let [created, modified] = [created, modified].map(Revision);
            Ok(KeyValue {
                key: key.value().to_owned(),
                value: value.to_owned(),
                created,
                modified,
            })
        })
        .collect()
}
