//! How each database writes what a function of a format is made of.

use std::str::FromStr;

/// A database that functions can be written for.
///
/// ```
/// use idmint::id::SqlDialect;
///
/// assert_eq!("duckdb".parse(), Ok(SqlDialect::DuckDb));
/// assert!("oracle".parse::<SqlDialect>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SqlDialect {
    /// PostgreSQL 14 or later: functions, which generated columns, indexes and partitions may have.
    PostgreSql,
    /// MySQL 8 and MariaDB 10.11 or later: functions, which generated columns may not have; their expressions may stand there.
    MySql,
    /// SQLite 3: expressions, since it has no functions of its own.
    Sqlite,
    /// DuckDB 1: macros.
    DuckDb,
}

/// A name that is no database's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is postgresql, mysql (also for MariaDB), sqlite and duckdb")]
pub struct DialectError;

impl FromStr for SqlDialect {
    type Err = DialectError;

    fn from_str(text: &str) -> Result<SqlDialect, DialectError> {
        SqlDialect::ALL
            .into_iter()
            .find(|dialect| dialect.name() == text)
            .ok_or(DialectError)
    }
}

impl SqlDialect {
    /// Each of them.
    pub const ALL: [SqlDialect; 4] = [
        SqlDialect::PostgreSql,
        SqlDialect::MySql,
        SqlDialect::Sqlite,
        SqlDialect::DuckDb,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            SqlDialect::PostgreSql => "postgresql",
            SqlDialect::MySql => "mysql",
            SqlDialect::Sqlite => "sqlite",
            SqlDialect::DuckDb => "duckdb",
        }
    }

    /// Quotient of whole numbers that are not negative, without its fraction.
    pub(super) fn quotient(self, number: &str, divisor: u128) -> String {
        match self {
            SqlDialect::PostgreSql | SqlDialect::Sqlite => format!("({number} / {divisor})"),
            SqlDialect::MySql => format!("({number} DIV {divisor})"),
            SqlDialect::DuckDb => format!("({number} // {divisor})"),
        }
    }

    pub(super) fn rest(number: &str, divisor: u128) -> String {
        format!("({number} % {divisor})")
    }

    pub(super) fn least(self, number: &str, bound: u128) -> String {
        match self {
            SqlDialect::Sqlite => format!("min({number}, {bound})"),
            _ => format!("least({number}, {bound})"),
        }
    }

    pub(super) fn not_negative(self, number: &str) -> String {
        match self {
            SqlDialect::Sqlite => format!("max({number}, 0)"),
            _ => format!("greatest({number}, 0)"),
        }
    }

    /// The texts behind each other.
    pub(super) fn concat(self, texts: &[String]) -> String {
        match self {
            SqlDialect::MySql => format!("concat({})", texts.join(", ")),
            _ => texts.join(" || "),
        }
    }

    /// The value of one letter of a text; `letters` are the digits of a number, the smallest first.
    pub(super) fn digit(self, text: &str, at: usize, letters: &str) -> String {
        // What is not found has place 0, so the letter that stands for zero need not be looked for.
        let (letter, others) = (format!("substr({text}, {at}, 1)"), quoted(&letters[1..]));
        match self {
            SqlDialect::PostgreSql | SqlDialect::DuckDb => format!("strpos({others}, {letter})"),
            SqlDialect::MySql => format!("locate(binary {letter}, {others})"),
            SqlDialect::Sqlite => format!("instr({others}, {letter})"),
        }
    }

    /// The number that hexadecimal digits in small letters are.
    pub(super) fn hex_number(self, hex: &str, at: usize, len: usize) -> String {
        let digits = format!("substr({hex}, {at}, {len})");
        match self {
            SqlDialect::PostgreSql => format!("('x' || lpad({digits}, 16, '0'))::bit(64)::bigint"),
            SqlDialect::MySql => format!("cast(conv({digits}, 16, 10) AS signed)"),
            SqlDialect::DuckDb => format!("('0x' || {digits})::bigint"),
            SqlDialect::Sqlite => {
                let digit = |place: usize| {
                    let digit = self.digit(hex, at + place, "0123456789abcdef");
                    format!("{digit} * {}", 1_u128 << (4 * (len - 1 - place)))
                };
                format!("({})", (0..len).map(digit).collect::<Vec<_>>().join(" + "))
            }
        }
    }

    /// A number in `len` hexadecimal digits.
    pub(super) fn to_hex(self, number: &str, len: usize) -> String {
        match self {
            SqlDialect::PostgreSql | SqlDialect::DuckDb => {
                format!("lpad(to_hex({number}), {len}, '0')")
            }
            SqlDialect::MySql => format!("lpad(hex({number}), {len}, '0')"),
            SqlDialect::Sqlite => format!("printf('%0{len}x', {number})"),
        }
    }

    /// The instant `micros` after 1970.
    pub(super) fn instant(self, micros: &str) -> String {
        match self {
            SqlDialect::PostgreSql => {
                format!("timestamptz 'epoch' + ({micros}) * interval '1 microsecond'")
            }
            SqlDialect::MySql => format!(
                "timestampadd(microsecond, {micros}, timestamp'1970-01-01 00:00:00.000000')"
            ),
            SqlDialect::DuckDb => format!("make_timestamp({micros})"),
            SqlDialect::Sqlite => format!(
                "strftime('%Y-%m-%dT%H:%M:%S', ({micros}) / 1000000, 'unixepoch') || printf('.%06dZ', ({micros}) % 1000000)"
            ),
        }
    }

    /// The microseconds from 1970 to an instant.
    pub(super) fn micros(self, instant: &str) -> String {
        match self {
            SqlDialect::PostgreSql => format!("(extract(epoch from {instant}) * 1000000)::bigint"),
            SqlDialect::MySql => {
                format!("timestampdiff(microsecond, timestamp'1970-01-01 00:00:00', {instant})")
            }
            SqlDialect::DuckDb => format!("epoch_us({instant})"),
            SqlDialect::Sqlite => format!(
                "(strftime('%s', substr({instant}, 1, 19)) * 1000000 + \
                 CAST(substr(rtrim({instant}, 'Z') || '000000', 21, 6) AS INTEGER))"
            ),
        }
    }

    /// The type of an instant.
    pub(super) fn instant_type(self) -> &'static str {
        match self {
            SqlDialect::PostgreSql => "timestamptz",
            SqlDialect::MySql => "datetime(6)",
            SqlDialect::Sqlite => "text such as 2026-01-31T12:00:00.000000Z",
            SqlDialect::DuckDb => "timestamp",
        }
    }

    /// A function of one argument.
    pub(super) fn function(
        self,
        name: &str,
        argument: [&str; 2],
        returns: &str,
        expression: &str,
    ) -> String {
        let [argument, of_type] = argument;
        match self {
            SqlDialect::PostgreSql => format!(
                "CREATE FUNCTION {name}({argument} {of_type}) RETURNS {returns}\n    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE\n    \
                 AS $$ SELECT {expression} $$;\n"
            ),
            SqlDialect::MySql => format!(
                "CREATE FUNCTION {name}({argument} {of_type}) RETURNS {returns} DETERMINISTIC NO SQL\n    RETURN {expression};\n"
            ),
            SqlDialect::DuckDb => {
                format!("CREATE MACRO {name}({argument}) AS\n    {expression};\n")
            }
            SqlDialect::Sqlite => {
                format!("-- {name}, of {argument} ({of_type}), is {returns}:\n{expression}\n")
            }
        }
    }
}

/// A text as SQL has it; letters of encodings are printable ASCII.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
