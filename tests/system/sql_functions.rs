//! Runs the SQL functions that idmint generates in real databases, on ids of the service. Their
//! results must be the same as those of the library.

use std::fmt::Write;

use idmint_core::id::{FieldKind, Format, FormatDefinition, SqlDialect};
use idmint_core::time::UnixTime;

use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::databases::{Server, duckdb, sqlite};
use idmint_testing::any_id::any_id;
use idmint_testing::service::{Home, Service, until};

/// The number of ids that are minted of each format.
const IDS: usize = 10_000;

/// The queries of mint requests for formats of every kind: numbers, numbers as text, UUIDs and
/// bytes.
const ORDERS: [&str; 10] = [
    "snowflake?",
    "twitter?",
    "instagram?",
    "conjunction-v1?",
    "js53?",
    "payment?",
    "siq?type=message&",
    "uuid7?",
    "ulid?",
    "flax?",
];

/// Fields whose strides leave gaps. The ids of the first format are integers, and those of the
/// second format are bytes.
const WITH_GAPS: [(&str, &str); 2] = [
    (
        "gaps-of-numbers",
        "{ name = 'time', kind = 'time', bits = 40, stride = 100_000 },
     { name = 'shard', kind = 'shard', cardinality = 4, stride = 7_000 },
     { name = 'worker', kind = 'worker', cardinality = 5, stride = 1_000 },
     { name = 'sequence', kind = 'sequence', cardinality = 900 }",
    ),
    (
        "gaps-of-bytes",
        "{ name = 'time', kind = 'time', bits = 40, stride = 0x100_0000_0000 },
     { name = 'fixed', kind = 'constant', bits = 2, value = 1, stride = 0x4_0000 },
     { name = 'worker', kind = 'worker', cardinality = 45 },
     { name = 'sequence', kind = 'sequence', bits = 12 }",
    ),
];

/// Formats for which no functions can be generated, each with a part of the reason.
const WITHOUT: [(&str, &str); 3] = [
    ("uuid4", "carry no time"),
    ("uuid1", "do not begin with their time"),
    ("uuid6", "split it into pieces"),
];

/// Ids of one format, and instants for which the functions are compared.
struct Sample {
    format: Format,
    ids: Vec<u128>,
    at: Vec<UnixTime>,
}

fn moved(instant: UnixTime, micros: i128) -> UnixTime {
    UnixTime::from_nanos((instant.nanos() / 1_000 + micros) * 1_000)
}

impl Sample {
    /// Returns a sample of ids and instants. The ids are minted by a service, or are the first and
    /// last ids of ticks. The instants are at the limits of ticks and within ticks.
    fn minted(service: &Service, order: &str) -> Sample {
        let name = order.split('?').next().unwrap();
        let format = Format::built_in(name).unwrap();
        let mut ids: Vec<u128> = Vec::new();
        while ids.len() < IDS {
            let body = until("ids are minted", || {
                let answer = service.post(&format!("/ids/{order}count=1000"));
                (answer.status == 200).then(|| answer.text())
            });
            ids.extend(
                body.lines()
                    .map(|text| format.canonical().read(text).unwrap()),
            );
        }
        let times = ids
            .iter()
            .step_by(IDS / 20)
            .map(|id| format.split(*id).unwrap().time.unwrap());
        // Use times of up to 15 years later, because ids of `instagram` fit into a signed column
        // until 2046.
        let years_on = |time: UnixTime| moved(time, 86_400_000_000 * 365 * 15);
        let times = times.flat_map(|time| [time, years_on(time)]);
        let at: Vec<UnixTime> = times
            .flat_map(|time| [-1, 0, 1, 500, 999_999].map(|micros| moved(time, micros)))
            .collect();
        let borders = at
            .iter()
            .filter_map(|at| format.range(*at, moved(*at, 60_000_000)).ok());
        ids.extend(borders.flat_map(|range| [range.least, range.greatest]));
        Sample { format, ids, at }
    }

    /// Returns a sample of ids over the whole range of a format's fields.
    fn of_any_ids(format: Format) -> Sample {
        let mut random = StdRng::seed_from_u64(77);
        let ids: Vec<u128> = (0..IDS).map(|_| any_id(&format, &mut random)).collect();
        let times = ids[..40]
            .iter()
            .map(|id| format.split(*id).unwrap().time.unwrap());
        let at = times.flat_map(|time| {
            [-1_000_000, -1, 0, 1, 500, 999_999, 1_000_000, 2_000_000]
                .map(|micros| moved(time, micros))
        });
        let at = at.collect();
        Sample { format, ids, at }
    }

    /// Returns a sample of a format with these fields and a tick of 1 ms.
    fn of_fields(name: &str, fields: &str) -> Sample {
        let text = format!(
            "summary = ''\nrule = 'decode-only'\ntick = '1ms'\nepoch = '2025-01-01T00:00:00Z'\n\
             encodings = ['hex_padded']\nfields = [{fields}]"
        );
        let definition = FormatDefinition::from_toml(name, &text).unwrap();
        Sample::of_any_ids(definition.compile(name).unwrap())
    }

    /// Returns the script of one session. Each line of its output has the name of a check, and the
    /// number of rows for which the function and the library differ.
    fn script(&self, dialect: SqlDialect) -> String {
        let sql = self.format.sql_functions(dialect).unwrap();
        let named = Named::of(&sql, &self.format, dialect);
        let mut script = if dialect == SqlDialect::Sqlite {
            String::new()
        } else {
            sql.clone()
        };
        let (column, text) = (named.column(), "varchar(64)");
        let instant = if dialect == SqlDialect::Sqlite {
            "text"
        } else {
            dialect_instant(dialect)
        };
        writeln!(
            script,
            "CREATE TABLE ids (id {column}, moment {instant}, worker bigint, letters {text}, object1 bigint, object2 bigint);"
        )
        .unwrap();
        writeln!(
            script,
            "CREATE TABLE spans (instant {instant}, least {column}, greatest {column});"
        )
        .unwrap();
        for ids in self.ids.chunks(500) {
            let rows = ids
                .iter()
                .map(|id| self.row(*id, dialect, &named))
                .collect::<Vec<_>>();
            writeln!(script, "INSERT INTO ids VALUES {};", rows.join(", ")).unwrap();
        }
        let spans: Vec<_> = self
            .at
            .iter()
            .filter_map(|at| self.span(*at, dialect, &named))
            .collect();
        writeln!(script, "INSERT INTO spans VALUES {};", spans.join(", ")).unwrap();
        let mut count = |what: &str, table: &str, found: &str, expected: &str| {
            let differs = format!("NOT ({found} = {expected}) OR ({found}) IS NULL");
            writeln!(
                script,
                "SELECT '{what}', count(*) FROM {table} WHERE {differs};"
            )
            .unwrap();
        };
        count("time", "ids", &named.call("time", "id"), "moment");
        count("min", "spans", &named.call("min", "instant"), "least");
        count("max", "spans", &named.call("max", "instant"), "greatest");
        if named.has("worker") {
            count("worker", "ids", &named.call("worker", "id"), "worker");
        }
        if named.has("primary") {
            count("primary", "ids", &named.call("primary", "id"), "object1");
            count(
                "secondary",
                "ids",
                &named.call("secondary", "id"),
                "object2",
            );
        }
        if named.has("text") {
            count("text", "ids", &named.call("text", "id"), "letters");
            count("number", "ids", &named.call("number", "letters"), "id");
            self.write_wrong(&mut script, dialect, &named);
        }
        writeln!(
            script,
            "SELECT 'NULL', count(*) FROM (SELECT cast(NULL AS {instant}) AS instant) AS unknown \
             WHERE {} IS NOT NULL OR {} IS NOT NULL;",
            named.call("min", "instant"),
            named.call("max", "instant")
        )
        .unwrap();
        writeln!(
            script,
            "SELECT 'rows', count(*) FROM ids;\nSELECT 'spans', count(*) FROM spans;"
        )
        .unwrap();
        script + "DROP TABLE ids;\nDROP TABLE spans;\n"
    }

    /// Writes statements that count how often the functions return a value other than NULL for
    /// texts and numbers that are not ids.
    fn write_wrong(&self, script: &mut String, dialect: SqlDialect, named: &Named<'_>) {
        let text = self.format.canonical().to_text(self.ids[0]);
        let mut wrong = vec![text[1..].to_owned(), format!("?{}", &text[1..])];
        if dialect != SqlDialect::MySql {
            // MySQL refuses a text that is longer than the argument.
            wrong.push(format!("{text}0"));
        }
        let texts: Vec<_> = wrong.iter().map(|text| format!("('{text}')")).collect();
        let after = self.format.greatest() + 1;
        writeln!(
            script,
            "CREATE TABLE texts (letters varchar(64));\nINSERT INTO texts VALUES {};\n\
             CREATE TABLE numbers (id bigint);\nINSERT INTO numbers VALUES (-1), ({after});\n\
             SELECT 'no text', count(*) FROM texts WHERE {} IS NOT NULL;\n\
             SELECT 'no number', count(*) FROM numbers WHERE {} IS NOT NULL;\n\
             DROP TABLE texts;\nDROP TABLE numbers;",
            texts.join(", "),
            named.call("number", "letters"),
            named.call("text", "id")
        )
        .unwrap();
    }

    fn row(&self, id: u128, dialect: SqlDialect, named: &Named<'_>) -> String {
        let parts = self.format.split(id).unwrap();
        let worker = parts
            .layout
            .sum_of(FieldKind::Worker, &parts.values)
            .unwrap_or(0);
        let (at, letters) = (
            literal_instant(parts.time.unwrap(), dialect),
            self.format.canonical().to_text(id),
        );
        let fields = parts.layout.fields().iter().zip(&parts.values);
        let mut objects = fields.filter(|(field, _)| field.kind == FieldKind::Object);
        let mut object = || objects.next().map_or(0, |(_, value)| *value);
        let (primary, secondary) = (object(), object());
        let id = named.literal(id);
        format!("({id}, {at}, {worker}, '{letters}', {primary}, {secondary})")
    }

    /// Returns SQL values for an instant, the first id at or after it, and the last id before it.
    fn span(&self, at: UnixTime, dialect: SqlDialect, named: &Named<'_>) -> Option<String> {
        let minute = 60_000_000;
        let least = self.format.range(at, moved(at, minute)).ok()?.least;
        let greatest = self.format.range(moved(at, -minute), at).ok()?.greatest;
        let [least, greatest] = [least, greatest].map(|id| named.literal(id));
        Some(format!(
            "({}, {least}, {greatest})",
            literal_instant(at, dialect)
        ))
    }
}

/// The SQL functions of one format in one database.
struct Named<'a> {
    sql: &'a str,
    prefix: String,
    dialect: SqlDialect,
    is_number: bool,
    uuid: Option<String>,
    bytes: usize,
    format: &'a Format,
}

impl<'a> Named<'a> {
    fn of(sql: &'a str, format: &'a Format, dialect: SqlDialect) -> Named<'a> {
        let head = sql.lines().next().unwrap();
        let column = head
            .split("of type ")
            .nth(1)
            .unwrap()
            .split(", read by")
            .next()
            .unwrap();
        let uuid = (column == "uuid").then(|| "uuid".to_owned());
        let prefix = format.name.replace('-', "_");
        Named {
            sql,
            prefix,
            dialect,
            is_number: column == "bigint",
            uuid,
            bytes: format.byte_width(),
            format,
        }
    }

    fn column(&self) -> String {
        match (self.is_number, &self.uuid, self.dialect) {
            (true, _, _) => "bigint".to_owned(),
            (false, Some(uuid), _) => uuid.clone(),
            (false, None, SqlDialect::PostgreSql) => "bytea".to_owned(),
            (false, None, SqlDialect::MySql) => format!("binary({})", self.bytes),
            (false, None, SqlDialect::Sqlite) => "text".to_owned(),
            (false, None, SqlDialect::DuckDb) => "blob".to_owned(),
        }
    }

    fn literal(&self, id: u128) -> String {
        let digits = format!("{id:0width$x}", width = 2 * self.bytes);
        match (self.is_number, &self.uuid, self.dialect) {
            (true, _, _) => id.to_string(),
            (false, Some(uuid), _) => {
                format!("'{}'", self.format.encoding(uuid).unwrap().to_text(id))
            }
            (false, None, SqlDialect::PostgreSql) => format!("'\\x{digits}'"),
            (false, None, SqlDialect::MySql) => format!("0x{digits}"),
            (false, None, SqlDialect::Sqlite) => format!("'{digits}'"),
            (false, None, SqlDialect::DuckDb) => format!("unhex('{digits}')"),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.sql.contains(&format!("{}_{name}", self.prefix))
    }

    /// Returns an SQL expression that calls a function with a column. For `SQLite`, returns the
    /// expression that stands for the function. The column must then have the name of the argument.
    fn call(&self, name: &str, column: &str) -> String {
        if self.dialect != SqlDialect::Sqlite {
            return format!("{}_{name}({column})", self.prefix);
        }
        let (_, behind) = self
            .sql
            .split_once(&format!("-- {}_{name}, of ", self.prefix))
            .unwrap();
        let expression = behind.lines().nth(1).unwrap();
        if name == "number" {
            let of_letters = expression
                .replace("substr(id,", "substr(letters,")
                .replace("length(id)", "length(letters)");
            return format!("({of_letters})");
        }
        format!("({expression})")
    }
}

fn dialect_instant(dialect: SqlDialect) -> &'static str {
    match dialect {
        SqlDialect::PostgreSql => "timestamptz",
        SqlDialect::MySql => "datetime(6)",
        SqlDialect::Sqlite => "text",
        SqlDialect::DuckDb => "timestamp",
    }
}

fn literal_instant(instant: UnixTime, dialect: SqlDialect) -> String {
    let text = instant.to_text(6).unwrap();
    match dialect {
        SqlDialect::PostgreSql | SqlDialect::Sqlite => format!("'{text}'"),
        SqlDialect::MySql | SqlDialect::DuckDb => {
            format!("timestamp'{}'", text.replace('T', " ").replace('Z', ""))
        }
    }
}

/// Runs the script of each format, and asserts that every check finds no difference.
fn compare(dialect: SqlDialect, run: impl Fn(&str) -> Vec<String>) {
    let home = Home::new();
    let service = Service::start(home.serve());
    service.wait_until_ready();
    let (mut rows, mut checks) = (0, 0);
    let samples = ORDERS.map(|order| (order, Sample::minted(&service, order)));
    let built_in = ["conjunction", "payment-wide"]
        .map(|name| (name, Sample::of_any_ids(Format::built_in(name).unwrap())));
    let custom = WITH_GAPS.map(|(name, fields)| (name, Sample::of_fields(name, fields)));
    for (order, sample) in samples.into_iter().chain(built_in).chain(custom) {
        for line in run(&sample.script(dialect)) {
            let (what, count) = line
                .split_once(['|', '\t', ','])
                .unwrap_or_else(|| panic!("{order}: {line}"));
            let (what, count): (_, usize) = (what.trim_matches('\''), count.parse().unwrap());
            match what {
                "rows" => {
                    assert_eq!(count, sample.ids.len(), "{order}");
                    rows += count;
                }
                "spans" => assert!(count > 150, "{order}: {count} instants"),
                _ => {
                    assert_eq!(count, 0, "{}: {order} {what} differs", dialect.name());
                    checks += 1;
                }
            }
        }
    }
    println!(
        "{}: {rows} ids, {checks} functions, no difference",
        dialect.name()
    );
    // Each format has three functions and a check with NULL. Nine formats also have a function for
    // the worker. `payment` and `payment-wide` have two functions for their texts, and two checks
    // with invalid texts and numbers. `conjunction` has a function for each object.
    let formats = ORDERS.len() + 2 + WITH_GAPS.len();
    assert!(
        rows >= formats * IDS && checks >= 4 * formats + 9 + 8 + 2,
        "{rows} ids, {checks} functions"
    );
}

#[test]
fn postgresql_reads_ids_as_the_service_does_in_generated_columns_and_partitions_too() {
    let server = Server::postgresql();
    compare(SqlDialect::PostgreSql, |script| server.run(script));
    let snowflake = Format::built_in("snowflake").unwrap();
    let example = snowflake.example();
    // Use the functions that the comparison above has created.
    let printed = server.run(&format!(
        "CREATE TABLE orders (id bigint, at timestamptz GENERATED ALWAYS AS (snowflake_time(id)) STORED);\n\
         CREATE INDEX by_worker ON orders (snowflake_worker(id));\n\
         INSERT INTO orders (id) VALUES ({example});\n\
         SELECT at = snowflake_time(id) FROM orders;\n\
         CREATE TABLE parted (id bigint) PARTITION BY RANGE (snowflake_time(id));\n\
         CREATE TABLE all_of_it PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (MAXVALUE);\n\
         INSERT INTO parted VALUES ({example});\n\
         SELECT count(*) FROM all_of_it;\n"
    ));
    assert_eq!(printed, ["t", "1"]);
}

#[test]
fn mariadb_reads_ids_as_the_service_does_and_their_expressions_in_generated_columns() {
    let server = Server::mariadb();
    compare(SqlDialect::MySql, |script| server.run(script));
    let snowflake = Format::built_in("snowflake").unwrap();
    let sql = snowflake.sql_functions(SqlDialect::MySql).unwrap();
    let (_, expression) = sql.split_once("RETURN ").unwrap();
    let expression = expression.split(';').next().unwrap();
    let printed = server.run(&format!(
        "CREATE TABLE orders (id bigint, at datetime(6) GENERATED ALWAYS AS ({expression}) STORED);\n\
         INSERT INTO orders (id) VALUES ({});\nSELECT at = snowflake_time(id) FROM orders;\n",
        snowflake.example()
    ));
    assert_eq!(printed, ["1"]);
}

#[test]
fn sqlite_reads_ids_as_the_service_does() {
    compare(SqlDialect::Sqlite, sqlite);
}

/// `SQLite` keeps instants as texts, which can have an offset.
#[test]
fn sqlite_reads_an_offset_after_an_instant() {
    let snowflake = Format::built_in("snowflake").unwrap();
    let sql = snowflake.sql_functions(SqlDialect::Sqlite).unwrap();
    let named = Named::of(&sql, &snowflake, SqlDialect::Sqlite);
    let least = |instant: &str| {
        let min = named.call("min", "instant");
        sqlite(&format!(
            "SELECT {min} FROM (SELECT '{instant}' AS instant);"
        ))
    };
    let utc = least("2026-01-31T10:00:00.25Z");
    assert_ne!(utc, ["NULL"]);
    for instant in [
        "2026-01-31T12:00:00.25+02:00",
        "2026-01-31 12:00:00.250000 +02:00",
        "2026-01-31 10:00:00.25",
    ] {
        assert_eq!(least(instant), utc, "{instant}");
    }
    assert_eq!(
        least("2026-01-31T12:00:00+02:00"),
        least("2026-01-31T10:00:00Z")
    );
    assert_eq!(least("2026-01-31T12:00:00/02:00"), ["NULL"]);
}

#[test]
fn duckdb_reads_ids_as_the_service_does() {
    compare(SqlDialect::DuckDb, duckdb);
    let snowflake = Format::built_in("snowflake").unwrap();
    let sql = snowflake.sql_functions(SqlDialect::DuckDb).unwrap();
    let printed = duckdb(&format!(
        "{sql}SELECT snowflake_min(never) IS NULL, snowflake_max(never) IS NULL FROM (SELECT 'infinity'::timestamp AS never);"
    ));
    assert_eq!(printed, ["True|True"]);
}

#[test]
fn formats_without_functions_say_why() {
    for (name, why) in WITHOUT {
        for dialect in SqlDialect::ALL {
            let error = Format::built_in(name)
                .unwrap()
                .sql_functions(dialect)
                .unwrap_err()
                .to_string();
            assert!(error.contains(why), "{name}: {error}");
        }
    }
}
