//! Advice on storing ids in databases, as part of the description of a format.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use idmint_core::id::{Format, StorageAdvice};

const DAY: Duration = Duration::from_secs(86_400);

/// One recommended way to store ids in one database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageInfo {
    /// The database: `postgresql`, `mysql`, `mariadb`, `sqlserver` or `sqlite`.
    pub database: String,
    /// The kind of value in the column: `number`, `uuid`, `bytes` or `text`.
    pub stores: String,
    /// The SQL type of the column.
    pub column: String,
    /// A description of the value that a program must bind to a query parameter.
    pub bind: String,
    /// `true` if the values of the column sort in the same order as the ids.
    pub sorted: bool,
    /// SQL statements that create and use a table with this column.
    pub sql: StorageSql,
    /// Additional notes.
    pub notes: Vec<String>,
}

/// SQL statements that can be run without changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageSql {
    /// The statement that creates a table.
    pub create_table: String,
    /// The statement that inserts the example id into the table.
    pub insert: String,
    /// A query for all ids of one day, beginning at the time of the example id. Null if ids do not
    /// begin with the time, or if the column does not sort like the ids.
    pub select_range: Option<String>,
}

impl StorageSql {
    /// Returns the statements in the order in which they must be run.
    pub fn statements(&self) -> impl Iterator<Item = &str> {
        let all = [&self.create_table, &self.insert].into_iter();
        all.chain(&self.select_range).map(String::as_str)
    }
}

impl StorageInfo {
    /// Returns advice on storing ids of the format in each database. The most compact column comes
    /// first.
    pub fn all(format: &Format) -> Vec<StorageInfo> {
        let example = format.example();
        let time = format.split(example).ok().and_then(|parts| parts.time);
        let range = time.and_then(|time| format.range(time, time.after(DAY)).ok());
        let info = |advice: &StorageAdvice<'_>| StorageInfo {
            database: advice.database.name().to_owned(),
            stores: advice.stored.name().to_owned(),
            column: advice.column(),
            bind: advice.bind(),
            sorted: advice.stored.is_sorted(),
            sql: StorageSql {
                create_table: advice.create_table(),
                insert: advice.insert(example),
                select_range: range
                    .and_then(|range| advice.select_range(range.least, range.greatest)),
            },
            notes: advice.notes(),
        };
        format.storage_advice().iter().map(info).collect()
    }
}
