//! Follows the storage advice in real databases. Each recommended column must sort like the ids,
//! keep them distinct, and find the ids of a time span.
//!
//! SQL Server is not tested, because Debian does not package it. The SQL for MySQL runs in MariaDB,
//! which understands it.

use std::time::Duration;

use idmint_core::id::{Database, EXAMPLE_TIME, Format, FormatDefinition, PRESETS, StorageAdvice};
use idmint_core::time::UnixTime;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::databases::{Server, sqlite};
use idmint_testing::any_id::any_id;

const DAY: Duration = Duration::from_secs(86_400);
const IDS: usize = 40;

/// Formats with properties that no built-in format has: UUIDs of any version, some of which MariaDB
/// sorts differently, and texts that must be escaped.
const CUSTOM: [(&str, &str); 2] = [
    (
        "any-128-bits",
        r#"
        summary   = "Time and random bits, also spelled as a UUID of no version"
        rule      = "random"
        tick      = "1ms"
        epoch     = "1970-01-01T00:00:00Z"
        fields    = [{ name = "time", kind = "time", bits = 48 }, { name = "random", kind = "random", bits = 80 }]
        encodings = ["crockford", "uuid"]"#,
    ),
    (
        "unsorted",
        r#"
        summary   = "Random bits that are only ever spelled without order"
        rule      = "random"
        fields    = [{ name = "random", kind = "random", bits = 77 }]
        encodings = [{ kind = "hashids", prefix = "o'\\" }]"#,
    ),
];

fn formats() -> Vec<Format> {
    let built_in = PRESETS.iter().map(|preset| (preset.name, preset.toml));
    let compile = |(name, toml)| {
        FormatDefinition::from_toml(name, toml)
            .unwrap()
            .compile(name)
            .unwrap()
    };
    built_in.chain(CUSTOM).map(compile).collect()
}

/// Ids over the whole range of a format. `day` is the range of ids of one day. The sample contains
/// the first and the last ids of that day and of the two neighbouring days.
struct Sample {
    ids: Vec<u128>,
    day: Option<(u128, u128)>,
}

impl Sample {
    fn of(format: &Format, random: &mut StdRng) -> Sample {
        let mut ids: Vec<u128> = (0..IDS)
            .map(|_| any_id(format, random))
            .chain([format.example()])
            .collect();
        let at = |days: i128| {
            UnixTime::from_nanos(
                EXAMPLE_TIME.nanos() + days * i128::try_from(DAY.as_nanos()).unwrap(),
            )
        };
        let range = |day| {
            format
                .range(at(day), at(day + 1))
                .ok()
                .map(|range| (range.least, range.greatest))
        };
        let edges = [range(-1), range(0), range(1)]
            .into_iter()
            .flatten()
            .flat_map(|(least, greatest)| [least, greatest]);
        ids.extend(edges);
        ids.sort_unstable();
        ids.dedup();
        ids.retain(|id| *id < format.mint_below);
        Sample { ids, day: range(0) }
    }

    /// Returns the ids of that day. Returns no ids if the time is not the leading field of the
    /// format.
    fn of_day(&self) -> Vec<u128> {
        let is_in = |id: &u128| {
            self.day
                .is_some_and(|(least, greatest)| (least..=greatest).contains(id))
        };
        self.ids.iter().copied().filter(is_in).collect()
    }
}

/// Returns the script that tests one piece of advice. It prints the name of each result before the
/// result.
fn script(advice: &StorageAdvice<'_>, sample: &Sample, random: &mut StdRng) -> String {
    let mut ids = sample.ids.clone();
    for last in (1..ids.len()).rev() {
        ids.swap(last, random.random_range(0..=last));
    }
    let mut script = format!("{}\nBEGIN;\n", advice.create_table());
    ids.iter()
        .for_each(|id| script += &format!("{}\n", advice.insert(*id)));
    script +=
        "COMMIT;\nSELECT 'in order';\nSELECT id FROM example ORDER BY id;\nSELECT 'of a day';\n";
    let select = sample
        .day
        .and_then(|(least, greatest)| advice.select_range(least, greatest));
    script += &select.unwrap_or_default();
    script + "\nSELECT 'done';\nDROP TABLE example;\n"
}

/// Asserts that the database sorts the ids like their numbers.
fn assert_sorted(
    advice: &StorageAdvice<'_>,
    sample: &Sample,
    printed: &mut impl Iterator<Item = String>,
    what: &str,
) {
    let mut until = |mark: &str| {
        let lines: Vec<_> = printed
            .by_ref()
            .take_while(|line| line.trim_matches('\'') != mark)
            .collect();
        lines
            .iter()
            .map(|line| line.to_lowercase())
            .collect::<Vec<_>>()
    };
    let spelled = |ids: &[u128]| {
        ids.iter()
            .map(|id| as_printed(advice, *id))
            .collect::<Vec<_>>()
    };
    assert_eq!(until("in order"), [""; 0], "{what}");
    let (mut found, mut expected) = (until("of a day"), spelled(&sample.ids));
    if !advice.stored.is_sorted() {
        found.sort_unstable();
        expected.sort_unstable();
    }
    assert_eq!(found, expected, "{what}, in order");
    let expected = if advice.stored.is_sorted() {
        spelled(&sample.of_day())
    } else {
        Vec::new()
    };
    assert_eq!(until("done"), expected, "{what}, of a day");
}

/// Returns a value in the form in which the client of the database prints it, in lower case. SQLite
/// prints a literal, and all other clients omit the quotes.
fn as_printed(advice: &StorageAdvice<'_>, id: u128) -> String {
    let literal = advice.literal(id).to_lowercase();
    match (
        advice.database,
        literal
            .strip_prefix('\'')
            .and_then(|text| text.strip_suffix('\'')),
    ) {
        (Database::Sqlite, _) | (_, None) => literal,
        (Database::MySql | Database::MariaDb, Some(text)) => {
            text.replace("''", "'").replace(r"\\", r"\")
        }
        (_, Some(text)) => text.replace("''", "'"),
    }
}

/// Tests the advice for these databases in one session.
fn follow(databases: &[Database], run: impl FnOnce(&str) -> Vec<String>) {
    let random = &mut StdRng::seed_from_u64(1);
    let formats = formats();
    let samples: Vec<_> = formats
        .iter()
        .map(|format| Sample::of(format, random))
        .collect();
    let advice: Vec<_> = formats
        .iter()
        .zip(&samples)
        .flat_map(|(format, sample)| {
            format
                .storage_advice()
                .into_iter()
                .map(move |advice| (format, sample, advice))
        })
        .filter(|(_, _, advice)| databases.contains(&advice.database))
        .collect();
    let scripts: String = advice
        .iter()
        .map(|(_, sample, advice)| script(advice, sample, random))
        .collect();
    let mut printed = run(&scripts).into_iter();
    for (format, sample, advice) in &advice {
        let what = format!(
            "{}, {}, {}",
            format.name,
            advice.database.name(),
            advice.column()
        );
        assert_sorted(advice, sample, &mut printed, &what);
    }
    assert_eq!(printed.next(), None);
}

#[test]
fn sqlite_keeps_the_ids_in_order() {
    follow(&[Database::Sqlite], sqlite);
}

#[test]
fn postgresql_keeps_the_ids_in_order_and_would_not_without_the_collation() {
    let server = Server::postgresql();
    follow(&[Database::PostgreSql], |script| server.run(script));
    let sorted =
        server.run("SELECT word FROM (VALUES ('a'), ('B')) AS words (word) ORDER BY word;");
    assert_eq!(
        sorted,
        ["a", "B"],
        "by language, where B stands before a in ASCII"
    );
}

#[test]
fn mariadb_keeps_the_ids_in_order_and_would_not_in_any_column_for_uuids() {
    let server = Server::mariadb();
    follow(&[Database::MySql, Database::MariaDb], |script| {
        server.run(script)
    });
    let sorted = server.run(
        "CREATE TABLE example (id uuid PRIMARY KEY);
         INSERT INTO example (id) VALUES ('00000000-0000-4000-8000-000000000002'), ('10000000-0000-4000-8000-000000000001');
         SELECT id FROM example ORDER BY id;",
    );
    assert_eq!(
        sorted[0], "10000000-0000-4000-8000-000000000001",
        "version 4 sorts by its last group first"
    );
}
