//! The command `idmint formats`, which lists the formats or describes one of them.

use clap::Args;

use crate::cli::exit::Failure;
use crate::cli::print::print;
use crate::cli::settings::Settings;
use crate::server::Catalog;
use idmint_core::id::{FieldKind, Format, FormatAlias, LayoutDrawing, SqlDialect};
use idmint_service::UnknownFormat;
use idmint_wire::{EncodingInfo, FormatInfo, StorageInfo};

/// List the formats, or describe one, offline.
#[derive(Debug, Args)]
pub(in crate::cli) struct Formats {
    /// The format to describe.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print SQL functions to read the ids, for postgresql, mysql (and MariaDB), sqlite or duckdb.
    #[arg(long, value_name = "DATABASE", requires = "name")]
    sql: Option<SqlDialect>,
    #[command(flatten)]
    settings: Settings,
}

impl Formats {
    /// Prints one line for each format, or a description of one format.
    ///
    /// # Errors
    /// Returns exit code 64 if the format is unknown or has no SQL functions, 74 if the output
    /// fails, and 78 if the configuration is invalid.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let config = self.settings.load_without_slot()?;
        let catalog = Catalog::of(&config)?;
        let text = match &self.name {
            None => overview(catalog.formats.iter().map(AsRef::as_ref)),
            Some(name) => {
                let current_name = FormatAlias::current_name(name);
                let mut formats = catalog.formats.iter();
                let named = formats.find(|format| format.name == current_name);
                let format = named.ok_or_else(|| {
                    let names = catalog.names().into_iter();
                    Failure::usage(UnknownFormat::among(names, &catalog.off, name))
                })?;
                match self.sql {
                    Some(dialect) => functions(format, dialect)?,
                    None => description(format),
                }
            }
        };
        print(format_args!("{text}"))
    }
}

fn functions(format: &Format, dialect: SqlDialect) -> Result<String, Failure> {
    let none = |error| {
        Failure::usage(format!(
            "{} has no SQL functions, because {error}",
            format.name
        ))
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
        let rate = info.per_second.clone().unwrap_or_else(|| "-".to_owned());
        let end = end_of(format, &info);
        let day = end.split('T').next().unwrap_or_default().to_owned();
        [
            info.name,
            info.rule,
            info.bits.to_string(),
            length_of(canonical),
            rate,
            day,
            info.summary,
        ]
    });
    table([heads].into_iter().chain(lines))
}

fn length_of(encoding: &EncodingInfo) -> String {
    match encoding.length {
        Some(length) => length.to_string(),
        None => format!("{}-{}", encoding.length_min, encoding.length_max),
    }
}

/// Returns the description of a format without asking a service. The worker numbers and the maximum
/// batch size are missing, because only a service knows them.
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
    text += &table(facts(format, &info));
    text += &format!("\nlayout\n{}", LayoutDrawing(&format.variants[0].layout));
    if !info.types.is_empty() {
        text += "\ntypes, and ids of each that one worker number has in a tick\n";
        let types = info.types.iter();
        text += &table(types.map(|(name, count)| [String::new(), name.clone(), count.clone()]));
    }
    text += "\nencodings, the canonical one first\n";
    text += &encodings(&info);
    text += "\nstorage\n";
    text + &storage(&info)
}

fn facts(format: &Format, info: &FormatInfo) -> Vec<[String; 2]> {
    let mut facts = Vec::new();
    let mut add = |name: &str, fact: &str| facts.push([name, fact].map(str::to_owned));
    match format.mint {
        true => add("rule", &info.rule),
        false => add(
            "rule",
            &format!("{}, decoded only (mint = false)", info.rule),
        ),
    }
    add("size", &format!("{} bits, {} bytes", info.bits, info.bytes));
    if let (Some(tick), Some(epoch)) = (&info.tick, &info.epoch) {
        add("time", &format!("in ticks of {tick} from {epoch}"));
        add("ends", &end_of(format, info));
    }
    if let (Some(tick), Some(second)) = (&info.per_tick, &info.per_second) {
        let capacity =
            format!("each worker number has {tick} ids per tick, which is {second} per second");
        add("capacity", &capacity);
    }
    match info.sequence_spread {
        None => {}
        Some(1) => add("spread", "none: the first id of each tick has sequence 0"),
        Some(spread) => add(
            "spread",
            &format!("the first id of a tick has one of the first {spread} sequences"),
        ),
    }
    if let Some(monotonic) = info.monotonic {
        add("monotonic", monotonic.name());
    }
    let mut fields = info.fields.iter();
    if let Some(worker) = fields.find(|field| field.kind == FieldKind::Worker) {
        let workers = format!("{} from 0 to {}", worker.name, worker.max);
        add("workers", &workers);
    }
    if let Some(types) = &info.types_minted {
        match types.is_empty() {
            true => add("types", "any of a-z and _, and none"),
            false => add("types", &types.join(", ")),
        }
    }
    if !info.prefixes.is_empty() {
        add("prefixes", &info.prefixes.join(", "));
    }
    for (value, label) in &info.labels {
        add("", &format!("{value} is {label}"));
    }
    add("order", &info.order);
    if let Some(odds) = &info.collision_odds {
        let within = odds
            .within
            .as_ref()
            .map_or_else(|| "ever".to_owned(), |tick| format!("within {tick}"));
        add(
            "collisions",
            &format!(
                "{} random bits: odds of one in a million with {} ids {within},",
                odds.random_bits, odds.one_in_a_million
            ),
        );
        add("", &format!("even odds with {}", odds.even));
    }
    add("reveals", &info.reveals);
    let mut example = info.example.encodings[&info.encodings[0].name].clone();
    if let Some(time) = &info.example.time {
        example += &format!(" of {time}");
    }
    add("example", &example);
    facts
}

fn encodings(info: &FormatInfo) -> String {
    let heads = ["", "name", "length", "sorts", "example", "pattern"].map(str::to_owned);
    let lines = info.encodings.iter().map(|encoding| {
        let sorts = if encoding.sortable { "yes" } else { "no" }.to_owned();
        let example = info.example.encodings[&encoding.name].clone();
        let (name, pattern) = (encoding.name.clone(), encoding.pattern.clone());
        [
            String::new(),
            name,
            length_of(encoding),
            sorts,
            example,
            pattern,
        ]
    });
    table([heads].into_iter().chain(lines))
}

/// Returns the advice on how to store the ids in a database: a table of column types, the example
/// statements for each database, and the notes. A note is printed only once.
fn storage(info: &FormatInfo) -> String {
    let heads = ["", "database", "column", "bind"].map(str::to_owned);
    let line = |advice: &StorageInfo| {
        ["", &advice.database, &advice.column, &advice.bind].map(str::to_owned)
    };
    let mut text = table([heads].into_iter().chain(info.storage.iter().map(line)));
    for (databases, sql) in info.storage_sql() {
        let statements = sql.statements();
        text += &format!("\n  {}\n", databases.join(", "));
        text.extend(statements.map(|statement| format!("    {statement}\n")));
    }
    text += "\n";
    let notes = info.storage_notes();
    text.extend(notes.iter().map(|note| format!("  - {note}\n")));
    text
}

/// Formats the lines as a table in which columns are two spaces apart.
fn table<const COLUMNS: usize>(lines: impl IntoIterator<Item = [String; COLUMNS]>) -> String {
    let lines: Vec<[String; COLUMNS]> = lines.into_iter().collect();
    let widths: [usize; COLUMNS] = std::array::from_fn(|at| {
        let widths = lines.iter().map(|line| line[at].chars().count());
        widths.max().unwrap_or(0)
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
