//! Generates the SQL functions of a format. The functions read the time and the worker number of an
//! id, and return the first and last id of a time span.

use super::dialect::{SqlDialect, quoted};
use crate::id::encoding::EncodingKind;
use crate::id::format::{Format, Rule};
use crate::id::layout::{Field, FieldKind, Layout};
use crate::time::Tick;

/// The reason why SQL functions cannot be generated for a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    /// The ids of the format have no time.
    #[error("ids of this format carry no time")]
    NoTime,
    /// The time of the ids is split into several fields, or another field comes before the time.
    #[error("ids of this format do not begin with their time, or split it into pieces")]
    TimeNotLeading,
    /// The ids do not fit into signed 64-bit integers, and the time field does not end at the
    /// boundary of a hexadecimal digit.
    #[error("ids of this format exceed 2^63, and their time does not end at a hexadecimal digit")]
    NotOfDigits,
    /// The epoch is before 1970, or is not a whole number of microseconds.
    #[error("the epoch of the format is before 1970, or not a whole microsecond")]
    Epoch,
    /// A field has a `scale`.
    #[error("a field of this format has a scale")]
    Scale,
}

/// The type of the database column that holds the ids. The generated SQL functions take arguments
/// of this type.
#[derive(Clone, Copy)]
enum Column {
    /// Ids are stored as signed 64-bit integers.
    Number,
    /// Ids are stored as UUIDs.
    Uuid,
    /// Ids are stored as this many bytes, or in SQLite as the hexadecimal digits of these bytes.
    Bytes(usize),
}

struct Functions<'a> {
    format: &'a Format,
    layout: &'a Layout,
    time: &'a Field,
    tick: Tick,
    epoch_us: i128,
    column: Column,
    dialect: SqlDialect,
}

const MICRO: u128 = 1_000;

impl Format {
    /// Returns SQL statements that create the functions of this format in a database.
    ///
    /// The functions are `NAME_time`, `NAME_min` and `NAME_max`. If ids have a worker number,
    /// `NAME_worker` is added. Grouped formats also have `NAME_primary` and `NAME_secondary`. If
    /// ids are integers and the canonical text is a number of fixed length, `NAME_number` and
    /// `NAME_text` are added. If ids are stored as bytes or UUIDs, a field that shares bits with
    /// others has no function. No function mints ids, because SQL cannot reserve the time of an id
    /// on disk before the id is used.
    ///
    /// ```
    /// use idmint_core::id::{Format, SqlDialect};
    ///
    /// let sonyflake = Format::built_in("sonyflake").expect("a built-in format");
    /// let sql = sonyflake.sql_functions(SqlDialect::PostgreSql)?;
    /// assert!(sql.contains("CREATE FUNCTION sonyflake_worker(id bigint) RETURNS bigint"));
    /// let uuid4 = Format::built_in("uuid4").expect("a built-in format");
    /// let error = uuid4.sql_functions(SqlDialect::DuckDb).unwrap_err();
    /// assert_eq!(error.to_string(), "ids of this format carry no time");
    /// # Ok::<(), idmint_core::id::SqlError>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`SqlError`] if functions cannot be generated for the format.
    pub fn sql_functions(&self, dialect: SqlDialect) -> Result<String, SqlError> {
        let layout = self.layout();
        let (Some(time), Some(tick)) = (layout.field_of(FieldKind::Time), self.tick) else {
            return Err(SqlError::NoTime);
        };
        let times = layout.fields_of(FieldKind::Time).count();
        if times > 1 || layout.fields()[0].kind != FieldKind::Time {
            return Err(SqlError::TimeNotLeading);
        }
        if layout.fields().iter().any(|field| field.scale > 1) {
            return Err(SqlError::Scale);
        }
        let epoch_ns = self.epoch.nanos();
        if epoch_ns < 0 || epoch_ns % 1_000 != 0 {
            return Err(SqlError::Epoch);
        }
        let mut kinds = self.encodings.iter().map(|one| one.definition().kind);
        let has_uuid = kinds.any(|kind| kind == EncodingKind::Uuid);
        let column = match dialect {
            _ if self.fits_signed_64() => Column::Number,
            SqlDialect::PostgreSql | SqlDialect::DuckDb if has_uuid => Column::Uuid,
            _ => Column::Bytes(self.byte_width()),
        };
        let is_of_digits = time.stride.is_power_of_two() && time.stride.ilog2().is_multiple_of(4);
        if !matches!(column, Column::Number) && !is_of_digits {
            return Err(SqlError::NotOfDigits);
        }
        let functions = Functions {
            format: self,
            layout,
            time,
            tick,
            epoch_us: epoch_ns / 1_000,
            column,
            dialect,
        };
        Ok(functions.write())
    }
}

impl Functions<'_> {
    fn write(&self) -> String {
        let (dialect, column) = (self.dialect, self.column_type());
        let prefix = self.format.name.replace('-', "_");
        let function = |name: &str, argument: [&str; 2], returns: &str, expression: &str| {
            dialect.function(&format!("{prefix}_{name}"), argument, returns, expression)
        };
        let instant = dialect.instant_type();
        let (id, at) = (["id", column.as_str()], ["instant", instant]);
        let ticks = self.value_of(self.time).expect("the time has whole digits");
        let time = dialect.instant(&self.micros_of(&ticks));
        let mut statements = vec![
            function("time", id, instant, &time),
            function("min", at, &column, &self.least_at()),
            function("max", at, &column, &self.greatest_before()),
        ];
        let worker = self.layout.field_of(FieldKind::Worker);
        let mut fields: Vec<_> = worker
            .map(|worker| ("worker", worker))
            .into_iter()
            .collect();
        if self.format.rule == Rule::Grouped {
            let objects = self.layout.fields_of(FieldKind::Object);
            fields.extend(["primary", "secondary"].into_iter().zip(objects));
        }
        for (name, field) in fields {
            let value = self.value_of(field);
            statements.extend(value.map(|value| function(name, id, "bigint", &value)));
        }
        if let Some((letters, len)) = self.digits_of_text() {
            let text_type = format!("char({len})");
            let number = self.number_of_text(letters, len);
            let text = self.text_of_number(letters, len);
            statements.push(function("number", ["id", &text_type], "bigint", &number));
            statements.push(function("text", ["id", "bigint"], &text_type, &text));
        }
        let heading = format!(
            "-- Ids of {} in a column of type {column}, read by {}. Nothing here mints.\n\
             -- {prefix}_min(a) to {prefix}_max(b) are the ids of the ticks that begin from a on and before b. Instants are UTC.\n",
            self.format.name,
            dialect.name()
        );
        heading + &statements.join("")
    }

    fn column_type(&self) -> String {
        match (self.column, self.dialect) {
            (Column::Number, _) => "bigint".to_owned(),
            (Column::Uuid, _) => "uuid".to_owned(),
            (Column::Bytes(_), SqlDialect::PostgreSql) => "bytea".to_owned(),
            (Column::Bytes(bytes), SqlDialect::MySql) => format!("binary({bytes})"),
            (Column::Bytes(_), SqlDialect::DuckDb) => "blob".to_owned(),
            (Column::Bytes(bytes), SqlDialect::Sqlite) => {
                format!("text of {} hexadecimal digits", 2 * bytes)
            }
        }
    }

    /// Returns the number of hexadecimal digits of an id in the column.
    fn digits(&self) -> usize {
        match self.column {
            Column::Number | Column::Uuid => 32,
            Column::Bytes(bytes) => 2 * bytes,
        }
    }

    /// Returns an SQL expression for the hexadecimal digits of the column `id`. The digits are in
    /// lower case, except in MySQL, where their case does not matter.
    fn hex_of_id(&self) -> String {
        let text = match (self.column, self.dialect) {
            (Column::Number, _) | (Column::Bytes(_), SqlDialect::Sqlite) => "id",
            (Column::Uuid, _) => "replace(cast(id AS text), '-', '')",
            (Column::Bytes(_), SqlDialect::PostgreSql) => "encode(id, 'hex')",
            (Column::Bytes(_), SqlDialect::MySql) => "hex(id)",
            (Column::Bytes(_), SqlDialect::DuckDb) => "lower(hex(id))",
        };
        text.to_owned()
    }

    /// Returns an SQL expression for the value of a field in the column `id`. `None` if ids are
    /// stored as bytes or UUIDs, and the field does not fill whole bits that no other field uses.
    fn value_of(&self, field: &Field) -> Option<String> {
        let fields = self.layout.fields().iter();
        let mut above = fields.take_while(|other| other.stride > field.stride);
        if let Column::Number = self.column {
            let rest = above.fold("id".to_owned(), |rest, other| {
                SqlDialect::rest(&rest, other.stride)
            });
            return Some(self.quotient(&rest, field.stride));
        }
        let bits = u128::BITS - field.max.leading_zeros();
        let place = field.stride << bits;
        if !field.stride.is_power_of_two() || !above.all(|other| other.stride.is_multiple_of(place))
        {
            return None;
        }
        let (shift, bits) = (usize_of(field.stride.ilog2()), usize_of(bits));
        let first = self.digits() - (shift + bits).div_ceil(4);
        let end = self.digits() - shift / 4;
        let number = self
            .dialect
            .hex_number(&self.hex_of_id(), first + 1, end - first);
        Some(match field.kind {
            FieldKind::Time => number,
            _ => SqlDialect::rest(&self.quotient(&number, 1 << (shift % 4)), 1 << bits),
        })
    }

    fn quotient(&self, number: &str, divisor: u128) -> String {
        match divisor {
            1 => number.to_owned(),
            _ => self.dialect.quotient(number, divisor),
        }
    }

    /// Returns an SQL expression for the microseconds from the beginning of 1970 to the start of a
    /// tick, rounded down to a whole number. `ticks` is an SQL expression for the number of the
    /// tick.
    fn micros_of(&self, ticks: &str) -> String {
        let (nanos, parts) = (u128::from(self.tick.nanos()), u128::from(self.tick.parts()));
        let dialect = self.dialect;
        let micros = if parts == 1 && nanos % MICRO == 0 {
            format!("{ticks} * {}", nanos / MICRO)
        } else if parts == 1 {
            dialect.quotient(&format!("({ticks} * {nanos})"), MICRO)
        } else {
            // A tick lasts `nanos / parts` nanoseconds, and the product of `ticks` and `nanos`
            // could exceed 64 bits. Count in groups of `parts` ticks instead. Each group lasts
            // `nanos` nanoseconds, and every tick in it begins at a whole nanosecond.
            let rounds = dialect.quotient(ticks, parts);
            let rest = SqlDialect::rest(ticks, parts);
            let begun = dialect.quotient(&format!("({rest} * {nanos} + {})", parts - 1), parts);
            dialect.quotient(&format!("({rounds} * {nanos} + {begun})"), MICRO)
        };
        format!("{micros} + {}", self.epoch_us)
    }

    /// Returns an SQL expression for the number of ticks that begin before `instant`.
    fn ticks_before(&self) -> String {
        let (nanos, parts) = (u128::from(self.tick.nanos()), u128::from(self.tick.parts()));
        let dialect = self.dialect;
        let (micros, epoch) = (dialect.micros("instant"), self.epoch_us);
        let since = dialect.not_negative(&format!("{micros} - {epoch}"));
        if parts == 1 && nanos % MICRO == 0 {
            let micros = nanos / MICRO;
            return match micros {
                1 => since,
                _ => dialect.quotient(&format!("({since} + {})", micros - 1), micros),
            };
        }
        let since = format!("({since} * {MICRO})");
        let rounds = dialect.quotient(&since, nanos);
        let rest = SqlDialect::rest(&since, nanos);
        let begun = dialect.quotient(&format!("({rest} * {parts} + {})", nanos - parts), nanos);
        format!("({rounds} * {parts} + {begun})")
    }

    /// Returns the greatest tick for the SQL functions. Its ids must fit into an integer column.
    /// For other columns, the functions calculate with the next tick in a signed 64-bit integer.
    fn last_tick(&self) -> u128 {
        match self.column {
            Column::Number => {
                let room = u128::from(i64::MAX.unsigned_abs()).saturating_sub(self.rest_greatest());
                self.time.max.min(room / self.time.stride)
            }
            // Ids are not integers here. `greatest_before` calculates with the tick after the last
            // one, which must fit into a signed 64-bit integer.
            Column::Uuid | Column::Bytes(_) => {
                self.time.max.min(u128::from(i64::MAX.unsigned_abs()) - 1)
            }
        }
    }

    /// Returns the smallest id of tick 0, in which the time field is 0.
    fn rest_least(&self) -> u128 {
        self.format.least()
    }

    /// Returns the greatest id of tick 0, in which the time field is 0.
    fn rest_greatest(&self) -> u128 {
        let of_field = |field: &Field| match field.kind {
            FieldKind::Time => 0,
            _ => field.constant.unwrap_or(field.max) * field.stride,
        };
        let rest = |layout: &Layout| layout.fields().iter().map(of_field).sum();
        let greatest = self.format.layouts().map(rest).max();
        greatest.expect("a format has a layout")
    }

    /// Returns an SQL expression for the smallest id of the first tick that begins at or after
    /// `instant`.
    fn least_at(&self) -> String {
        let ticks = self.dialect.least(&self.ticks_before(), self.last_tick());
        self.of_known_instant(self.id_of(&ticks, self.rest_least()))
    }

    /// Returns an SQL expression for the greatest id of the last tick that begins before `instant`.
    fn greatest_before(&self) -> String {
        let (before, end) = (self.ticks_before(), self.last_tick() + 1);
        let ticks = self.dialect.least(&before, end);
        let id = self.id_of(&format!("({ticks} - 1)"), self.rest_greatest());
        self.of_known_instant(match self.column {
            // An integer column needs no special case for an `instant` before the first tick. The
            // result is then less than every id of the format.
            Column::Number => id,
            Column::Uuid | Column::Bytes(_) => format!("CASE WHEN {ticks} > 0 THEN {id} END"),
        })
    }

    /// Returns an SQL expression that is NULL if `instant` is NULL or infinite, and `expression`
    /// otherwise. An explicit check is needed where a function in `expression` ignores NULL:
    /// `least` and `greatest` of DuckDB, and `printf` of SQLite.
    fn of_known_instant(&self, expression: String) -> String {
        match (self.dialect, self.column) {
            (SqlDialect::DuckDb, _) | (SqlDialect::Sqlite, Column::Uuid | Column::Bytes(_)) => {
                let micros = self.dialect.micros("instant");
                format!("CASE WHEN {micros} IS NOT NULL THEN {expression} END")
            }
            _ => expression,
        }
    }

    fn id_of(&self, ticks: &str, rest: u128) -> String {
        let (dialect, shift) = (self.dialect, usize_of(self.time.stride.ilog2()));
        if let Column::Number = self.column {
            return format!("{ticks} * {} + {rest}", self.time.stride);
        }
        let below = shift / 4;
        let hex = dialect.concat(&[
            dialect.to_hex(ticks, self.digits() - below),
            quoted(&format!("{rest:0below$x}")),
        ]);
        match (self.column, dialect) {
            (Column::Uuid, _) => format!("cast({hex} AS uuid)"),
            (_, SqlDialect::PostgreSql) => format!("decode({hex}, 'hex')"),
            (_, SqlDialect::MySql | SqlDialect::DuckDb) => format!("unhex({hex})"),
            (_, SqlDialect::Sqlite) => hex,
        }
    }

    /// Returns the letters of the digits and the length of canonical texts, if SQL can compute the
    /// column's integers from these texts. Texts must have a fixed length, and no prefix or check
    /// digits.
    fn digits_of_text(&self) -> Option<(&str, usize)> {
        let canonical = self.format.canonical();
        let definition = canonical.definition();
        let is_plain = definition.prefix.is_none() && definition.check.is_none();
        let len = canonical
            .fixed_len()
            .filter(|_| matches!(self.column, Column::Number) && is_plain)?;
        let letters = canonical.digit_letters()?;
        // Every number of `len` digits must be below 2^63, so that it fits into a signed 64-bit
        // integer.
        let base = u128::try_from(letters.len()).ok()?;
        let numbers = base.checked_pow(u32::try_from(len).ok()?)?;
        (numbers <= 1 << 63 && !letters.contains('\\')).then_some((letters, len))
    }

    /// Returns an SQL expression for the number of the canonical text `id`, or NULL if the text has
    /// another length or other letters, or its number exceeds the greatest id.
    fn number_of_text(&self, letters: &str, len: usize) -> String {
        let digit = |place: usize| {
            let digit = self.dialect.digit("id", place + 1, letters);
            match weight(letters, len - 1 - place) {
                1 => digit,
                weight => format!("{digit} * cast({weight} AS {})", self.integer()),
            }
        };
        let number = (0..len).map(digit).collect::<Vec<_>>().join(" + ");
        let is_letter = |place| self.dialect.is_letter("id", place, letters);
        let mut conditions = vec![format!("length(id) = {len}")];
        conditions.extend((1..=len).map(is_letter));
        let greatest = self.format.greatest();
        if greatest < weight(letters, len) - 1 {
            conditions.push(format!("{number} <= {greatest}"));
        }
        format!("CASE WHEN {} THEN {number} END", conditions.join(" AND "))
    }

    /// Returns an SQL expression for the canonical text of the number `id`, or NULL if the number
    /// is negative or exceeds the greatest id.
    fn text_of_number(&self, letters: &str, len: usize) -> String {
        let all = quoted(letters);
        let letter = |place: usize| {
            let below = weight(letters, len - 1 - place);
            let above = self.dialect.quotient("id", below);
            let digit = SqlDialect::rest(&above, weight(letters, 1));
            match self.dialect {
                // PostgreSQL requires text positions to be 32-bit integers.
                SqlDialect::PostgreSql => format!("substr({all}, {digit}::int + 1, 1)"),
                _ => format!("substr({all}, {digit} + 1, 1)"),
            }
        };
        let all_letters: Vec<_> = (0..len).map(letter).collect();
        format!(
            "CASE WHEN id BETWEEN 0 AND {} THEN {} END",
            self.format.greatest(),
            self.dialect.concat(&all_letters)
        )
    }

    /// Returns the name of the 64-bit integer type in an SQL cast.
    fn integer(&self) -> &'static str {
        match self.dialect {
            SqlDialect::PostgreSql | SqlDialect::DuckDb => "bigint",
            SqlDialect::MySql => "signed",
            SqlDialect::Sqlite => "integer",
        }
    }
}

/// Returns the weight of the digit at `place`, counted from 0 at the right. The rightmost digit has
/// the weight 1.
fn weight(letters: &str, place: usize) -> u128 {
    (0..place)
        .map(|_| u128::try_from(letters.len()).expect("few letters"))
        .product()
}

fn usize_of(number: u32) -> usize {
    usize::try_from(number).expect("at most 128")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::format::FormatDefinition;
    use crate::id::preset;

    /// Returns the generated SQL functions of SQLite for a decode-only format with these fields.
    fn of_fields(fields: &str) -> String {
        for_sqlite(fields).expect("time leads")
    }

    fn for_sqlite(fields: &str) -> Result<String, SqlError> {
        let text = format!(
            "summary = ''\nrule = 'decode-only'\ntick = '1ms'\nepoch = '2025-01-01T00:00:00Z'\n\
             encodings = ['hex_padded']\nfields = [{fields}]"
        );
        let format = FormatDefinition::from_toml("mine", &text)
            .expect("TOML")
            .compile("mine")
            .expect("sound");
        format.sql_functions(SqlDialect::Sqlite)
    }

    #[test]
    fn a_format_with_a_scale_has_no_functions() {
        let of_scale = |scale: u32| {
            for_sqlite(&format!(
                "{{ name = 'time', kind = 'time', bits = 31, scale = {scale} }},
                 {{ name = 'sequence', kind = 'sequence', bits = 12 }}"
            ))
        };
        assert!(of_scale(1).is_ok());
        assert!(matches!(of_scale(1_000), Err(SqlError::Scale)));
    }

    #[test]
    fn texts_padded_to_more_than_63_bits_have_no_conversion_functions() {
        for (length, has_number) in [
            (15, true),
            (16, false),
            (31, false),
            (32, false),
            (33, false),
        ] {
            let text = format!(
                "summary = ''\nrule = 'decode-only'\ntick = '1ms'\nepoch = '2025-01-01T00:00:00Z'\n\
                 encodings = [{{ kind = 'hex_padded', length = {length} }}]\n\
                 fields = [{{ name = 'time', kind = 'time', bits = 60 }}]"
            );
            let definition = FormatDefinition::from_toml("mine", &text).expect("TOML");
            let format = definition.compile("mine").expect("sound");
            let sql = format.sql_functions(SqlDialect::PostgreSql);
            let sql = sql.expect("numbers with a time");
            assert_eq!(sql.contains("mine_number"), has_number, "{length}");
        }
    }

    #[test]
    fn postgresql_multiplies_no_interval_by_a_number_that_a_double_cannot_hold() {
        // PostgreSQL multiplies an interval by a double, which holds no odd number above 2^53.
        // Microseconds since 1970 exceed this number in 2255.
        let sql = preset("uuid7").sql_functions(SqlDialect::PostgreSql);
        let sql = sql.expect("time leads");
        let line = sql.lines().find(|line| line.contains("interval"));
        let (seconds, micros) = line
            .and_then(|line| line.split_once(" / 1000000) * interval '1 second' + ("))
            .expect("seconds and microseconds");
        assert!(seconds.contains("timestamptz 'epoch' + (("), "{sql}");
        assert!(
            micros.ends_with(" % 1000000) * interval '1 microsecond' $$;"),
            "{sql}"
        );
    }

    #[test]
    fn ids_of_other_programs_are_integers_where_those_programs_store_integers() {
        for name in ["mastodon", "tsid", "sonyflake"] {
            let prefix = format!("CREATE FUNCTION {name}_time(id bigint)");
            let sql = preset(name).sql_functions(SqlDialect::PostgreSql);
            assert!(sql.is_ok_and(|sql| sql.contains(&prefix)), "{name}");
        }
        // The greatest tick is the last one whose ids fit into a signed column.
        let sql = preset("tsid").sql_functions(SqlDialect::Sqlite);
        assert!(sql.is_ok_and(|sql| sql.contains(", 2199023255551) * 4194304 + 0")));
    }

    #[test]
    fn a_field_below_a_stride_of_any_size_is_the_rest_of_the_fields_above() {
        let sql = preset("payment-wide").sql_functions(SqlDialect::Sqlite);
        assert!(
            sql.expect("numbers").contains("\n((id % 46656) / 1024)\n"),
            "1024 x 45 is below the stride 46656 of the time"
        );
        let sql = of_fields(
            "{ name = 'time', kind = 'time', bits = 40, stride = 100_000 },
             { name = 'shard', kind = 'shard', cardinality = 4, stride = 7_000 },
             { name = 'worker', kind = 'worker', cardinality = 5, stride = 1_000 },
             { name = 'sequence', kind = 'sequence', cardinality = 900 }",
        );
        assert!(sql.contains("\n(((id % 100000) % 7000) / 1000)\n"), "{sql}");
    }

    #[test]
    fn a_field_of_bytes_has_a_function_only_if_it_has_bits_of_its_own() {
        let of_worker = |worker: &str, sequence: &str| {
            of_fields(&format!(
                "{{ name = 'time', kind = 'time', bits = 40, stride = {} }},
                 {{ name = 'fixed', kind = 'constant', bits = 2, value = 1, stride = {} }},
                 {{ name = 'worker', kind = 'worker', {worker} }},
                 {{ name = 'sequence', kind = 'sequence', {sequence} }}",
                1_u64 << 40,
                1_u64 << 18
            ))
        };
        let sql = of_worker("cardinality = 45", "bits = 12");
        assert!(sql.contains("_worker"), "bits 12 to 17: {sql}");
        assert!(
            sql.contains(" % 64)\n"),
            "the digits also hold the constant: {sql}"
        );
        for (worker, sequence) in [
            ("cardinality = 45", "cardinality = 1000"),
            ("cardinality = 40, stride = 6000", "bits = 12"),
        ] {
            let sql = of_worker(worker, sequence);
            assert!(!sql.contains("_worker"), "{worker}, {sequence}: {sql}");
            assert!(sql.contains("mine_time"), "the time has digits of its own");
        }
    }
}
