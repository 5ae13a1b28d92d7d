//! The databases that the storage advice covers, with the column types and literals of each
//! database.

use crate::id::encoding::Encoding;
use crate::id::format::Prefixes;
use crate::named;

named! {
    /// A database for which idmint advises how to store ids.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Database {
        /// PostgreSQL 12 or later.
        PostgreSql = "postgresql",
        /// MySQL 8 or later.
        MySql = "mysql",
        /// MariaDB 10.11 or later.
        MariaDb = "mariadb",
        /// Microsoft SQL Server 2016 or later.
        SqlServer = "sqlserver",
        /// SQLite 3.
        Sqlite = "sqlite",
    }
}

impl Database {
    /// Returns the type of a column that stores ids in the form `stored`.
    pub(super) fn column(self, stored: Stored<'_>) -> String {
        match (self, stored) {
            (Database::Sqlite, Stored::Number) => "INTEGER".to_owned(),
            (_, Stored::Number) => "bigint".to_owned(),
            (_, Stored::Uuid(_)) => "uuid".to_owned(),
            (Database::PostgreSql, Stored::Bytes(_)) => "bytea".to_owned(),
            (Database::Sqlite, Stored::Bytes(_)) => "BLOB".to_owned(),
            (_, Stored::Bytes(bytes)) => format!("binary({bytes})"),
            (_, Stored::Text(encoding)) => match encoding.fixed_len() {
                Some(len) => self.text_column(&format!("char({len})")),
                None => self.text_column(&format!("varchar({})", encoding.len_max())),
            },
            (_, Stored::ShortText(encoding)) => {
                self.text_column(&format!("varchar({})", encoding.len_max()))
            }
            (_, Stored::PrefixedText(encoding, prefixes)) => {
                let len = prefixes.len_max() + encoding.len_max();
                self.text_column(&format!("varchar({len})"))
            }
        }
    }

    /// Returns the SQL type of a column for texts. The result is the type `letters`, such as
    /// `char(16)`, with a collation that compares texts byte by byte.
    fn text_column(self, letters: &str) -> String {
        match self {
            Database::PostgreSql => format!(r#"{letters} COLLATE "C""#),
            Database::MySql | Database::MariaDb => {
                format!("{letters} CHARACTER SET ascii COLLATE ascii_bin")
            }
            Database::SqlServer => format!("{letters} COLLATE Latin1_General_BIN2"),
            Database::Sqlite => "TEXT".to_owned(),
        }
    }

    /// Returns an SQL literal for an id that is stored in the form `stored`.
    pub(super) fn literal(self, stored: Stored<'_>, id: u128) -> String {
        match stored {
            Stored::Number => id.to_string(),
            Stored::Uuid(encoding)
            | Stored::Text(encoding)
            | Stored::ShortText(encoding)
            | Stored::PrefixedText(encoding, _) => self.quote(&encoding.to_text(id)),
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
            // In MySQL and MariaDB, a backslash in a text starts an escape sequence, unless the
            // server is configured otherwise.
            Database::MySql | Database::MariaDb => format!("'{}'", text.replace('\\', r"\\")),
            Database::PostgreSql | Database::SqlServer | Database::Sqlite => format!("'{text}'"),
        }
    }
}

/// The form in which a database column holds an id: its number, a UUID, its bytes, or its text.
#[derive(Debug, Clone, Copy)]
pub enum Stored<'a> {
    /// The id's number as a signed 64-bit integer.
    Number,
    /// A UUID in the database's own UUID type. The value is the encoding in which applications
    /// write ids in queries.
    Uuid(&'a Encoding),
    /// The id's number in big-endian bytes. The value is the number of bytes that each id takes.
    Bytes(usize),
    /// The id's text in this encoding.
    Text(&'a Encoding),
    /// The id's canonical text in a column of variable length. These texts do not sort like the
    /// ids' numbers.
    ShortText(&'a Encoding),
    /// The id's canonical text with its prefix or type, in a column of variable length. Texts with
    /// different prefixes do not sort like the ids' numbers.
    PrefixedText(&'a Encoding, &'a Prefixes),
}

impl Stored<'_> {
    /// Returns the name that responses use for this form.
    pub const fn name(self) -> &'static str {
        match self {
            Stored::Number => "number",
            Stored::Uuid(_) => "uuid",
            Stored::Bytes(_) => "bytes",
            Stored::Text(_) | Stored::ShortText(_) | Stored::PrefixedText(..) => "text",
        }
    }

    /// `true` if sorting the values of the column sorts the ids as numbers.
    pub fn is_sorted(self) -> bool {
        match self {
            Stored::Number | Stored::Uuid(_) | Stored::Bytes(_) => true,
            Stored::Text(encoding) | Stored::ShortText(encoding) => encoding.is_sortable(),
            Stored::PrefixedText(..) => false,
        }
    }
}
