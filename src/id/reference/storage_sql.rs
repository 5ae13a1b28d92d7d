//! How each database writes the type of a column and the value in it.

use super::storage_advice::{Database, Stored};
use crate::id::encoding::Encoding;

/// The SQL of one database.
#[derive(Debug, Clone, Copy)]
pub(in crate::id) struct Sql(Database);

impl Sql {
    /// That of this one.
    pub(in crate::id) const fn of(database: Database) -> Sql {
        Sql(database)
    }

    /// The type of a column.
    pub(in crate::id) fn column(self, stored: Stored<'_>) -> String {
        match (self.0, stored) {
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
        match self.0 {
            Database::PostgreSql => format!(r#"{letters} COLLATE "C""#),
            Database::MySql | Database::MariaDb => format!("{letters} CHARACTER SET ascii COLLATE ascii_bin"),
            Database::SqlServer => format!("{letters} COLLATE Latin1_General_BIN2"),
            Database::Sqlite => "TEXT".to_owned(),
        }
    }

    /// A value of such a column.
    pub(in crate::id) fn literal(self, stored: Stored<'_>, id: u128) -> String {
        match stored {
            Stored::Number => id.to_string(),
            Stored::Uuid(encoding) | Stored::Text(encoding) => self.quoted(&encoding.to_text(id)),
            Stored::Bytes(bytes) => {
                let digits = format!("{id:0width$x}", width = 2 * bytes);
                match self.0 {
                    Database::PostgreSql => format!(r"'\x{digits}'"),
                    Database::MySql | Database::MariaDb | Database::SqlServer => format!("0x{digits}"),
                    Database::Sqlite => format!("X'{digits}'"),
                }
            }
        }
    }

    fn quoted(self, text: &str) -> String {
        let text = text.replace('\'', "''");
        match self.0 {
            // A backslash escapes here, unless the server is told otherwise.
            Database::MySql | Database::MariaDb => format!("'{}'", text.replace('\\', r"\\")),
            Database::PostgreSql | Database::SqlServer | Database::Sqlite => format!("'{text}'"),
        }
    }
}
