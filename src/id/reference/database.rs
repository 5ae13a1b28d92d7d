//! The databases that there is advice for, and how each writes the type of a column and a value in it.

use super::stored::Stored;
use crate::id::encoding::Encoding;

/// The databases that there is advice for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Database {
    /// PostgreSQL 12 or later.
    PostgreSql,
    /// MySQL 8 or later.
    MySql,
    /// MariaDB 10.11 or later.
    MariaDb,
    /// Microsoft SQL Server 2016 or later.
    SqlServer,
    /// SQLite 3.
    Sqlite,
}

impl Database {
    /// Every database, in the order of answers.
    pub const ALL: [Database; 5] = [
        Database::PostgreSql,
        Database::MySql,
        Database::MariaDb,
        Database::SqlServer,
        Database::Sqlite,
    ];

    /// Its name in answers, for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Database::PostgreSql => "postgresql",
            Database::MySql => "mysql",
            Database::MariaDb => "mariadb",
            Database::SqlServer => "sqlserver",
            Database::Sqlite => "sqlite",
        }
    }
}

impl Database {
    /// The type of a column.
    pub(super) fn column(self, stored: Stored<'_>) -> String {
        match (self, stored) {
            (Database::Sqlite, Stored::Number) => "INTEGER".to_owned(),
            (_, Stored::Number) => "bigint".to_owned(),
            (_, Stored::Uuid(_)) => "uuid".to_owned(),
            (Database::PostgreSql, Stored::Bytes(_)) => "bytea".to_owned(),
            (Database::Sqlite, Stored::Bytes(_)) => "BLOB".to_owned(),
            (_, Stored::Bytes(bytes)) => format!("binary({bytes})"),
            (_, Stored::Text(encoding)) => self.text_column(encoding),
        }
    }

    /// Text that is compared byte by byte.
    fn text_column(self, encoding: &Encoding) -> String {
        let letters = match encoding.fixed_len() {
            Some(len) => format!("char({len})"),
            None => format!("varchar({})", encoding.len_max()),
        };
        match self {
            Database::PostgreSql => format!(r#"{letters} COLLATE "C""#),
            Database::MySql | Database::MariaDb => {
                format!("{letters} CHARACTER SET ascii COLLATE ascii_bin")
            }
            Database::SqlServer => format!("{letters} COLLATE Latin1_General_BIN2"),
            Database::Sqlite => "TEXT".to_owned(),
        }
    }

    /// A value of such a column, as SQL writes it.
    pub(super) fn literal(self, stored: Stored<'_>, id: u128) -> String {
        match stored {
            Stored::Number => id.to_string(),
            Stored::Uuid(encoding) | Stored::Text(encoding) => self.quote(&encoding.to_text(id)),
            Stored::Bytes(bytes) => {
                let digits = format!("{id:0width$x}", width = 2 * bytes);
                match self {
                    Database::PostgreSql => format!(r"'\x{digits}'"),
                    Database::MySql | Database::MariaDb | Database::SqlServer => {
                        format!("0x{digits}")
                    }
                    Database::Sqlite => format!("X'{digits}'"),
                }
            }
        }
    }

    fn quote(self, text: &str) -> String {
        let text = text.replace('\'', "''");
        match self {
            // A backslash escapes here, unless the server is told otherwise.
            Database::MySql | Database::MariaDb => format!("'{}'", text.replace('\\', r"\\")),
            Database::PostgreSql | Database::SqlServer | Database::Sqlite => format!("'{text}'"),
        }
    }
}
