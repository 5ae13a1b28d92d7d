//! `idmint formats`.

use std::io::{self, Write};

use clap::Args;

use crate::cli::exit::{Exit, Failure};
use crate::cli::settings::Settings;
use crate::id::{FieldKind, Format, LayoutDrawing, SqlDialect};
use crate::server::Catalog;
use crate::wire::{FormatInfo, StorageInfo};

/// Say which formats there are, or everything about one, offline.
#[derive(Debug, Args)]
pub(in crate::cli) struct Formats {
    /// The format to say everything about.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Functions that read its ids in SQL, for postgresql, mysql (and MariaDB), sqlite or duckdb.
    #[arg(long, value_name = "DATABASE", requires = "name")]
    sql: Option<SqlDialect>,
    #[command(flatten)]
    settings: Settings,
}

impl Formats {
    /// Prints one line for each format, or all that is known of one.
    ///
    /// # Errors
    /// 64 for a format that there is not, and one without functions in SQL; 78.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let config = self.settings.load(toml::Table::new())?;
        let catalog = Catalog::of(&config)?;
        let text = match &self.name {
            None => overview(catalog.formats.iter().map(AsRef::as_ref)),
            Some(name) => match catalog.formats.iter().find(|format| format.name == *name) {
                Some(format) => match self.sql {
                    Some(dialect) => functions(format, dialect)?,
                    None => description(format),
                },
                None => {
                    let names: Vec<_> = catalog
                        .formats
                        .iter()
                        .map(|format| format.name.as_str())
                        .collect();
                    return Err(Failure::new(
                        Exit::Usage,
                        format!("format {name}: there is {}", names.join(", ")),
                    ));
                }
            },
        };
        // Whoever reads may have seen enough.
        let _ = io::stdout().write_all(text.as_bytes());
        Ok(())
    }
}

fn functions(format: &Format, dialect: SqlDialect) -> Result<String, Failure> {
    let none = |error| {
        Failure::new(
            Exit::Usage,
            format!(
                "{}: there are no functions for it, since {error}",
                format.name
            ),
        )
    };
    format.sql_functions(dialect).map_err(none)
}

fn overview<'a>(formats: impl Iterator<Item = &'a Format>) -> String {
    let heads = [
        "format",
        "rule",
        "bits",
        "length",
        "ids/s a worker",
        "ends",
        "summary",
    ]
    .map(str::to_owned);
    let lines = formats.map(|format| {
        let info = offline(format);
        let canonical = &info.encodings[0];
        let length = match canonical.length {
            Some(length) => length.to_string(),
            None => format!("{}-{}", canonical.length_min, canonical.length_max),
        };
        let rate = info.per_second.clone().unwrap_or_else(|| "-".to_owned());
        let end = end_of(format, &info);
        let day = end.split('T').next().unwrap_or_default().to_owned();
        [
            info.name,
            info.rule,
            info.bits.to_string(),
            length,
            rate,
            day,
            info.summary,
        ]
    });
    table(&std::iter::once(heads).chain(lines).collect::<Vec<_>>())
}

/// What is known of a format without a service: neither its worker numbers here nor how many ids one request can have.
fn offline(format: &Format) -> FormatInfo {
    FormatInfo::new(format, &[], None)
}

fn end_of(format: &Format, info: &FormatInfo) -> String {
    match (&info.end, format.end()) {
        (Some(end), _) => end.clone(),
        (None, Some(_)) => "after 9999".to_owned(),
        (None, None) => "never".to_owned(),
    }
}

fn description(format: &Format) -> String {
    let info = offline(format);
    let mut text = format!("{}\n{}\n\n", info.name, info.summary);
    text += &table(&facts(format, &info));
    text += &format!("\nlayout\n{}", LayoutDrawing(&format.variants[0].layout));
    if !info.types.is_empty() {
        text += "\ntypes, and ids of each that one worker number has in a tick\n";
        text += &table(
            &info
                .types
                .iter()
                .map(|(name, count)| ["".to_owned(), name.clone(), count.clone()])
                .collect::<Vec<_>>(),
        );
    }
    text += "\nspellings, the canonical one first\n";
    text += &encodings(&info);
    text += "\nstorage\n";
    text + &storage(&info)
}

fn facts(format: &Format, info: &FormatInfo) -> Vec<[String; 2]> {
    let mut facts = vec![
        ["rule", &info.rule].map(str::to_owned),
        [
            "size".to_owned(),
            format!("{} bits, {} bytes", info.bits, info.bytes),
        ],
    ];
    let mut add = |name: &str, fact: String| facts.push([name.to_owned(), fact]);
    if let (Some(tick), Some(epoch)) = (&info.tick, &info.epoch) {
        add("time", format!("in ticks of {tick} from {epoch}"));
        add("ends", end_of(format, info));
    }
    if let (Some(tick), Some(second)) = (&info.per_tick, &info.per_second) {
        add(
            "capacity",
            format!("{tick} ids a tick for each worker number, {second} a second"),
        );
    }
    match info.sequence_spread {
        None => {}
        Some(1) => add(
            "spread",
            "none: the first id of each tick has sequence 0".to_owned(),
        ),
        Some(spread) => add(
            "spread",
            format!("the first id of a tick has one of the first {spread} sequences"),
        ),
    }
    if let Some(monotonic) = info.monotonic {
        add("monotonic", monotonic.name().to_owned());
    }
    if let Some(worker) = info
        .fields
        .iter()
        .find(|field| field.kind == FieldKind::Worker)
    {
        add(
            "workers",
            format!("{} from 0 to {}", worker.name, worker.max),
        );
    }
    if let Some(types) = &info.types_minted {
        add(
            "types",
            if types.is_empty() {
                "any of a-z and _, and none".to_owned()
            } else {
                types.join(", ")
            },
        );
    }
    if !info.prefixes.is_empty() {
        add("prefixes", info.prefixes.join(", "));
    }
    for (value, label) in &info.labels {
        add("", format!("{value} is {label}"));
    }
    add("order", info.order.clone());
    if let Some(odds) = &info.collision_odds {
        let within = odds
            .within
            .as_ref()
            .map_or_else(|| "ever".to_owned(), |tick| format!("within {tick}"));
        add(
            "collisions",
            format!(
                "{} random bits: odds of one in a million with {} ids {within},",
                odds.random_bits, odds.one_in_a_million
            ),
        );
        add("", format!("even odds with {}", odds.even));
    }
    add("reveals", info.reveals.clone());
    let time = info
        .example
        .time
        .as_ref()
        .map_or_else(String::new, |time| format!(" of {time}"));
    add(
        "example",
        format!("{}{time}", info.example.encodings[&info.encodings[0].name]),
    );
    facts
}

fn encodings(info: &FormatInfo) -> String {
    let heads = ["", "name", "length", "sorts", "example", "pattern"].map(str::to_owned);
    let lines = info.encodings.iter().map(|encoding| {
        let length = match encoding.length {
            Some(length) => length.to_string(),
            None => format!("{}-{}", encoding.length_min, encoding.length_max),
        };
        let sorts = if encoding.sortable { "yes" } else { "no" }.to_owned();
        let example = info.example.encodings[&encoding.name].clone();
        [
            "".to_owned(),
            encoding.name.clone(),
            length,
            sorts,
            example,
            encoding.pattern.clone(),
        ]
    });
    table(&std::iter::once(heads).chain(lines).collect::<Vec<_>>())
}

/// The columns; what to run, with the first of each database; and the notes, each once.
fn storage(info: &FormatInfo) -> String {
    let heads = ["", "database", "column", "bind"].map(str::to_owned);
    let line = |advice: &StorageInfo| {
        [
            "".to_owned(),
            advice.database.clone(),
            advice.column.clone(),
            advice.bind.clone(),
        ]
    };
    let mut text = table(
        &std::iter::once(heads)
            .chain(info.storage.iter().map(line))
            .collect::<Vec<_>>(),
    );
    for (databases, sql) in info.storage_sql() {
        let statements = sql
            .statements()
            .map(|statement| format!("    {statement}\n"));
        text += &format!(
            "\n  {}\n{}",
            databases.join(", "),
            statements.collect::<String>()
        );
    }
    text += "\n";
    text + &info
        .storage_notes()
        .iter()
        .map(|note| format!("  - {note}\n"))
        .collect::<String>()
}

/// Lines whose columns stand below each other, two spaces apart.
fn table<const COLUMNS: usize>(lines: &[[String; COLUMNS]]) -> String {
    let widths: [usize; COLUMNS] = std::array::from_fn(|at| {
        lines
            .iter()
            .map(|line| line[at].chars().count())
            .max()
            .unwrap_or(0)
    });
    let line = |line: &[String; COLUMNS]| {
        let cells = line
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    lines.iter().map(line).collect()
}
