//! Advice on storage, as part of a format's description.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::{Format, StorageAdvice};

const DAY: Duration = Duration::from_secs(86_400);

/// One way to keep ids in one database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageInfo {
    /// The database: `postgresql`, `mysql`, `mariadb`, `sqlserver` or `sqlite`.
    pub database: String,
    /// What the column holds: `number`, `uuid`, `bytes` or `text`.
    pub stores: String,
    /// The type of the column.
    pub column: String,
    /// What a program binds to a parameter.
    pub bind: String,
    /// Whether the column sorts like the ids.
    pub sorted: bool,
    /// What to run.
    pub sql: StorageSql,
    /// What else there is to know.
    pub notes: Vec<String>,
}

/// Statements that run as they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageSql {
    /// A table.
    pub create_table: String,
    /// Puts the example into it.
    pub insert: String,
    /// Reads the ids of the day from the example on; `None` where the time is not what ids begin with, or the column does not sort.
    pub select_range: Option<String>,
}

impl StorageSql {
    /// The statements, in the order in which they are run.
    pub fn statements(&self) -> impl Iterator<Item = &str> {
        [
            Some(&self.create_table),
            Some(&self.insert),
            self.select_range.as_ref(),
        ]
        .into_iter()
        .flatten()
        .map(String::as_str)
    }
}

impl StorageInfo {
    /// The advice for every database, the most compact column first.
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
