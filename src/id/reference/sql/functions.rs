//! The functions of a format: when an id was minted and by whom, and where the ids of a time span begin and end.

use super::dialect::{SqlDialect, quoted};
use crate::id::encoding::EncodingKind;
use crate::id::format::Format;
use crate::id::layout::{Field, FieldKind, Layout};
use crate::time::Tick;

/// Why there are no functions for a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    /// Ids of this format carry no time.
    #[error("its ids carry no time")]
    NoTime,
    /// Something that varies stands above the time, or the time is in pieces.
    #[error("its ids do not begin with their time, or have it in several pieces")]
    TimeNotLeading,
    /// The numbers are greater than those of a database, and their digits are not those of the fields.
    #[error("its ids are above 2^63, and no hexadecimal digit begins where their time ends")]
    NotOfDigits,
    /// The time counts from before 1970, or from within a microsecond.
    #[error("its epoch is before 1970, or within a microsecond")]
    Epoch,
}

/// How a column holds the ids that the functions take.
#[derive(Clone, Copy)]
enum Column {
    /// As a number of 64 bits with a sign.
    Number,
    /// As a UUID.
    Uuid,
    /// As so many bytes; in SQLite as their hexadecimal digits.
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
    /// Functions of this format for a database, as statements: `NAME_time`, `NAME_min`, `NAME_max`, and `NAME_worker` where ids
    /// have a worker number; of a format whose ids are numbers and whose canonical text has digits of one length also
    /// `NAME_number` and `NAME_text`. Nothing of it mints: that would be outside of every horizon.
    ///
    /// ```
    /// use idmint::id::{Format, SqlDialect};
    ///
    /// let sonyflake = Format::built_in("sonyflake").expect("a built-in format");
    /// let sql = sonyflake.sql_functions(SqlDialect::PostgreSql)?;
    /// assert!(sql.contains("CREATE FUNCTION sonyflake_worker(id bigint) RETURNS bigint"));
    /// let uuid4 = Format::built_in("uuid4").expect("a built-in format");
    /// assert_eq!(uuid4.sql_functions(SqlDialect::DuckDb).unwrap_err().to_string(), "its ids carry no time");
    /// # Ok::<(), idmint::id::SqlError>(())
    /// ```
    ///
    /// # Errors
    /// [`SqlError`] says why there are none.
    pub fn sql_functions(&self, dialect: SqlDialect) -> Result<String, SqlError> {
        let layout = &self.variants[0].layout;
        let (Some(time), Some(tick)) = (layout.field_of(FieldKind::Time), self.tick) else {
            return Err(SqlError::NoTime);
        };
        let times = layout
            .fields()
            .iter()
            .filter(|field| field.kind == FieldKind::Time)
            .count();
        if times > 1 || layout.fields()[0].kind != FieldKind::Time {
            return Err(SqlError::TimeNotLeading);
        }
        let epoch_ns = self.epoch.nanos();
        if epoch_ns < 0 || epoch_ns % 1_000 != 0 {
            return Err(SqlError::Epoch);
        }
        let has_uuid = self
            .encodings
            .iter()
            .any(|encoding| encoding.definition().kind == EncodingKind::Uuid);
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
        let (id, at, instant) = (
            ["id", column.as_str()],
            ["instant", dialect.instant_type()],
            dialect.instant_type(),
        );
        let ticks = self.value_of(self.time);
        let mut statements = vec![
            function(
                "time",
                id,
                instant,
                &dialect.instant(&self.micros_of(&ticks)),
            ),
            function("min", at, &column, &self.least_at()),
            function("max", at, &column, &self.greatest_before()),
        ];
        if let Some(worker) = self.layout.field_of(FieldKind::Worker) {
            statements.push(function("worker", id, "bigint", &self.value_of(worker)));
        }
        if let Some((letters, len)) = self.digits_of_text() {
            let text_type = format!("char({len})");
            statements.push(function(
                "number",
                ["id", &text_type],
                "bigint",
                &self.number_of_text(letters, len),
            ));
            statements.push(function(
                "text",
                ["id", "bigint"],
                &text_type,
                &self.text_of_number(letters, len),
            ));
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

    /// How many hexadecimal digits an id has.
    fn digits(&self) -> usize {
        match self.column {
            Column::Number | Column::Uuid => 32,
            Column::Bytes(bytes) => 2 * bytes,
        }
    }

    /// The digits of the id, in small letters.
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

    /// The value of a field of `id`.
    fn value_of(&self, field: &Field) -> String {
        let (dialect, values) = (self.dialect, field.max + 1);
        if let Column::Number = self.column {
            let above = if field.stride == 1 {
                "id".to_owned()
            } else {
                dialect.quotient("id", field.stride)
            };
            return if field.kind == FieldKind::Time {
                above
            } else {
                SqlDialect::rest(&above, values)
            };
        }
        let (shift, bits) = (
            usize_of(field.stride.ilog2()),
            usize_of(u128::BITS - field.max.leading_zeros()),
        );
        let (first, end) = (
            self.digits() - (shift + bits).div_ceil(4),
            self.digits() - shift / 4,
        );
        let number = dialect.hex_number(&self.hex_of_id(), first + 1, end - first);
        if field.kind == FieldKind::Time {
            return number;
        }
        let above = if shift % 4 == 0 {
            number
        } else {
            dialect.quotient(&number, 1 << (shift % 4))
        };
        SqlDialect::rest(&above, values)
    }

    /// The microseconds from 1970 to when `ticks` have passed.
    fn micros_of(&self, ticks: &str) -> String {
        let (nanos, parts) = (u128::from(self.tick.nanos()), u128::from(self.tick.parts()));
        let dialect = self.dialect;
        let micros = if parts == 1 && nanos % MICRO == 0 {
            format!("{ticks} * {}", nanos / MICRO)
        } else if parts == 1 {
            dialect.quotient(&format!("({ticks} * {nanos})"), MICRO)
        } else {
            // Whole rounds of `nanos` nanoseconds, so that no product is beyond 64 bits. A tick begins at a whole nanosecond.
            let (rounds, rest) = (
                dialect.quotient(ticks, parts),
                SqlDialect::rest(ticks, parts),
            );
            let begun = dialect.quotient(&format!("({rest} * {nanos} + {})", parts - 1), parts);
            dialect.quotient(&format!("({rounds} * {nanos} + {begun})"), MICRO)
        };
        format!("{micros} + {}", self.epoch_us)
    }

    /// How many ticks begin before `instant`.
    fn ticks_before(&self) -> String {
        let (nanos, parts) = (u128::from(self.tick.nanos()), u128::from(self.tick.parts()));
        let dialect = self.dialect;
        let since = dialect.not_negative(&format!(
            "{} - {}",
            dialect.micros("instant"),
            self.epoch_us
        ));
        if parts == 1 && nanos % MICRO == 0 {
            let micros = nanos / MICRO;
            return match micros {
                1 => since,
                _ => dialect.quotient(&format!("({since} + {})", micros - 1), micros),
            };
        }
        let since = format!("({since} * {MICRO})");
        let (rounds, rest) = (
            dialect.quotient(&since, nanos),
            SqlDialect::rest(&since, nanos),
        );
        let begun = dialect.quotient(&format!("({rest} * {parts} + {})", nanos - parts), nanos);
        format!("({rounds} * {parts} + {begun})")
    }

    /// The greatest tick that an id in the column has.
    fn last_tick(&self) -> u128 {
        match self.column {
            Column::Number => {
                let room = u128::from(i64::MAX.unsigned_abs()).saturating_sub(self.rest_greatest());
                self.time.max.min(room / self.time.stride)
            }
            // One more is still a number of 64 bits with a sign.
            Column::Uuid | Column::Bytes(_) => {
                self.time.max.min(u128::from(i64::MAX.unsigned_abs()) - 1)
            }
        }
    }

    /// What stands below the time in the least id of a tick.
    fn rest_least(&self) -> u128 {
        self.format
            .variants
            .iter()
            .map(|variant| variant.layout.least())
            .min()
            .expect("a format has a layout")
    }

    /// The same in the greatest id.
    fn rest_greatest(&self) -> u128 {
        let rest = |layout: &Layout| {
            let fields = layout
                .fields()
                .iter()
                .filter(|field| field.kind != FieldKind::Time);
            fields
                .map(|field| field.constant.unwrap_or(field.max) * field.stride)
                .sum()
        };
        self.format
            .variants
            .iter()
            .map(|variant| rest(&variant.layout))
            .max()
            .expect("a format has a layout")
    }

    /// The least id of the first tick that begins at `instant` or later.
    fn least_at(&self) -> String {
        let ticks = self.dialect.least(&self.ticks_before(), self.last_tick());
        self.id_of(&ticks, self.rest_least())
    }

    /// The greatest id of the last tick that begins before `instant`.
    fn greatest_before(&self) -> String {
        let ticks = self
            .dialect
            .least(&self.ticks_before(), self.last_tick() + 1);
        let id = self.id_of(&format!("({ticks} - 1)"), self.rest_greatest());
        match self.column {
            // Before the first tick that is a number below all ids.
            Column::Number => id,
            Column::Uuid | Column::Bytes(_) => format!("CASE WHEN {ticks} > 0 THEN {id} END"),
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

    /// The letters and the length of the canonical text, where it is a number in digits of one length.
    fn digits_of_text(&self) -> Option<(&str, usize)> {
        let canonical = self.format.canonical();
        let definition = canonical.definition();
        let is_plain = definition.prefix.is_none() && definition.check.is_none();
        let len = canonical
            .fixed_len()
            .filter(|_| matches!(self.column, Column::Number) && is_plain)?;
        let letters = canonical.digit_letters()?;
        // Every digit stands for a share that 64 bits hold.
        let base = u128::try_from(letters.len()).ok()?;
        let weight = base.checked_pow(u32::try_from(len - 1).ok()?)?;
        (weight * base <= 1 << 63 && !letters.contains('\\')).then_some((letters, len))
    }

    fn number_of_text(&self, letters: &str, len: usize) -> String {
        let digit = |place: usize| {
            let digit = self.dialect.digit("id", place + 1, letters);
            match weight(letters, len - 1 - place) {
                1 => digit,
                weight => format!("{digit} * cast({weight} AS {})", self.integer()),
            }
        };
        (0..len).map(digit).collect::<Vec<_>>().join(" + ")
    }

    fn text_of_number(&self, letters: &str, len: usize) -> String {
        let letter = |place: usize| {
            let above = self
                .dialect
                .quotient("id", weight(letters, len - 1 - place));
            let digit = SqlDialect::rest(&above, weight(letters, 1));
            match self.dialect {
                // A place in a text has 32 bits there.
                SqlDialect::PostgreSql => {
                    format!("substr({}, {digit}::int + 1, 1)", quoted(letters))
                }
                _ => format!("substr({}, {digit} + 1, 1)", quoted(letters)),
            }
        };
        self.dialect
            .concat(&(0..len).map(letter).collect::<Vec<_>>())
    }

    /// The type of whole numbers of 64 bits in a cast.
    fn integer(&self) -> &'static str {
        match self.dialect {
            SqlDialect::PostgreSql | SqlDialect::DuckDb => "bigint",
            SqlDialect::MySql => "signed",
            SqlDialect::Sqlite => "integer",
        }
    }
}

/// What a digit of this place counts, from the right.
fn weight(letters: &str, place: usize) -> u128 {
    (0..place)
        .map(|_| u128::try_from(letters.len()).expect("few letters"))
        .product()
}

fn usize_of(number: u32) -> usize {
    usize::try_from(number).expect("at most 128")
}
