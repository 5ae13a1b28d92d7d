//! The SQL syntax that each database needs for the functions of a format.

use std::str::FromStr;

use crate::named;

named! {
    /// A database for which idmint can generate SQL functions.
    ///
    /// ```
    /// use idmint_core::id::SqlDialect;
    ///
    /// assert_eq!("duckdb".parse(), Ok(SqlDialect::DuckDb));
    /// assert!("oracle".parse::<SqlDialect>().is_err());
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum SqlDialect {
        /// PostgreSQL 14 or later. The generated SQL functions can be used in generated columns,
        /// indexes and partitions.
        PostgreSql = "postgresql",
        /// MySQL 8 and MariaDB 10.11 or later. Generated columns cannot call the generated SQL
        /// functions, but can contain the same expressions.
        MySql = "mysql",
        /// SQLite 3. The output consists of expressions, because SQLite cannot define functions in
        /// SQL.
        Sqlite = "sqlite",
        /// DuckDB 1. The functions are macros.
        DuckDb = "duckdb",
    }
}

/// The error for a text that is not the name of a supported database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the database must be postgresql, mysql (also for MariaDB), sqlite or duckdb")]
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
    /// Returns an SQL expression that divides two non-negative integers and rounds down.
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

    /// Returns an SQL expression that concatenates the texts of the given expressions.
    pub(super) fn concat(self, texts: &[String]) -> String {
        match self {
            SqlDialect::MySql => format!("concat({})", texts.join(", ")),
            _ => texts.join(" || "),
        }
    }

    /// Returns an SQL expression that converts the letter at position `at` (from 1) of a text to
    /// the digit that the letter stands for. `letters` are the letters of all digits in ascending
    /// order.
    pub(super) fn digit(self, text: &str, at: usize, letters: &str) -> String {
        // Search in the letters from digit 1 on, so that the position (from 1) is the digit. For
        // example, `2` is at position 2 of `123`. The letter of digit 0 is not found, which gives
        // 0.
        self.position(text, at, &letters[1..])
    }

    /// Returns an SQL expression that is true if the letter at position `at` (from 1) of a text is
    /// one of `letters`. The text must have a letter at this position.
    pub(super) fn is_letter(self, text: &str, at: usize, letters: &str) -> String {
        format!("{} > 0", self.position(text, at, letters))
    }

    /// Returns an SQL expression for the position (from 1) in `letters` of the letter at position
    /// `at` of a text, or 0 if the letter is not in `letters`.
    fn position(self, text: &str, at: usize, letters: &str) -> String {
        let (letter, letters) = (format!("substr({text}, {at}, 1)"), quoted(letters));
        match self {
            SqlDialect::PostgreSql | SqlDialect::DuckDb => format!("strpos({letters}, {letter})"),
            SqlDialect::MySql => format!("locate(binary {letter}, {letters})"),
            SqlDialect::Sqlite => format!("instr({letters}, {letter})"),
        }
    }

    /// Returns an SQL expression for the number that `len` lower-case hexadecimal digits stand for.
    /// The digits start at position `at` of the text `hex`.
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

    /// Returns an SQL expression that writes a number as `len` hexadecimal digits.
    pub(super) fn to_hex(self, number: &str, len: usize) -> String {
        match self {
            SqlDialect::PostgreSql | SqlDialect::DuckDb => {
                format!("lpad(to_hex({number}), {len}, '0')")
            }
            SqlDialect::MySql => format!("lpad(hex({number}), {len}, '0')"),
            SqlDialect::Sqlite => format!("printf('%0{len}x', {number})"),
        }
    }

    /// Returns an SQL expression for the instant that is `micros` microseconds after the beginning
    /// of 1970.
    pub(super) fn instant(self, micros: &str) -> String {
        match self {
            // PostgreSQL multiplies an interval by a double. Such a product is exact for seconds,
            // but not for all microseconds after 2255, which exceed 2^53.
            SqlDialect::PostgreSql => format!(
                "timestamptz 'epoch' + (({micros}) / 1000000) * interval '1 second' + (({micros}) % 1000000) * interval '1 microsecond'"
            ),
            SqlDialect::MySql => format!(
                "timestampadd(microsecond, {micros}, timestamp'1970-01-01 00:00:00.000000')"
            ),
            SqlDialect::DuckDb => format!("make_timestamp({micros})"),
            SqlDialect::Sqlite => format!(
                "strftime('%Y-%m-%dT%H:%M:%S', ({micros}) / 1000000, 'unixepoch') || printf('.%06dZ', ({micros}) % 1000000)"
            ),
        }
    }

    /// Returns an SQL expression for the number of microseconds from the beginning of 1970 to
    /// `instant`.
    pub(super) fn micros(self, instant: &str) -> String {
        match self {
            SqlDialect::PostgreSql => format!("(extract(epoch from {instant}) * 1000000)::bigint"),
            SqlDialect::MySql => {
                format!("timestampdiff(microsecond, timestamp'1970-01-01 00:00:00', {instant})")
            }
            SqlDialect::DuckDb => format!("epoch_us({instant})"),
            // Read the fraction separately, because SQLite rounds seconds to milliseconds. An
            // offset such as +02:00 can follow the fraction.
            SqlDialect::Sqlite => format!(
                "(strftime('%s', substr({instant}, 1, 19) || CASE WHEN substr({instant}, 20, 1) = '.' \
                 THEN ltrim(substr({instant}, 21), '0123456789') ELSE substr({instant}, 20) END) * 1000000 + \
                 CAST(round(CAST('0' || substr({instant}, 20, 7) AS REAL) * 1000000) AS INTEGER))"
            ),
        }
    }

    /// Returns the SQL type of instants in this database.
    pub(super) fn instant_type(self) -> &'static str {
        match self {
            SqlDialect::PostgreSql => "timestamptz",
            SqlDialect::MySql => "datetime(6)",
            SqlDialect::Sqlite => "text such as 2026-01-31T12:00:00.000000Z",
            SqlDialect::DuckDb => "timestamp",
        }
    }

    /// Returns an SQL statement that creates a function `name` with one argument. The function
    /// returns the value of `expression`.
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

/// Returns the text as an SQL string literal. Only single quotes are escaped, because encodings use
/// only printable ASCII.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
