//! `docs/FORMATS.md` says of every built-in format what the program says of it.

use std::fmt::Write;

use idmint::id::{Format, FormatDefinition, LayoutDrawing, PRESETS};
use idmint::wire::{EncodingInfo, FieldWidth, FormatInfo};

use crate::generated::assert_generated;

const PAGE: &str = "docs/FORMATS.md";

#[test]
fn the_chapters_on_formats_are_those_of_the_code() {
    let formats: Vec<Format> = PRESETS.iter().map(built_in).collect();
    assert_generated(PAGE, "formats", &page(&formats));
}

fn built_in(preset: &idmint::id::Preset) -> Format {
    FormatDefinition::from_toml(preset.name, preset.toml)
        .unwrap()
        .compile(preset.name)
        .unwrap()
}

fn page(formats: &[Format]) -> String {
    let infos: Vec<FormatInfo> = formats
        .iter()
        .map(|format| FormatInfo::new(format, &[], None))
        .collect();
    let mut text =
        "\n| format | rule | bits | canonical text | ends |\n|---|---|---|---|---|\n".to_owned();
    for (format, info) in formats.iter().zip(&infos) {
        let canonical = &info.encodings[0];
        let FormatInfo {
            name, rule, bits, ..
        } = info;
        let text_of = format!("`{}`, {} characters", canonical.name, length(canonical));
        writeln!(
            text,
            "| [`{name}`](#{name}) | {rule} | {bits} | {text_of} | {} |",
            end_of(format, info)
        )
        .unwrap();
    }
    for (format, info) in formats.iter().zip(&infos) {
        text += &chapter(format, info);
    }
    text + "\n"
}

fn chapter(format: &Format, info: &FormatInfo) -> String {
    let mut text = format!("\n## {}\n\n{}.\n", info.name, info.summary);
    if !format.enabled {
        text += "\nOff unless enabled.\n";
    }
    text += "\n```text\n";
    text += &LayoutDrawing(&format.variants[0].layout).to_string();
    text += "```\n\n| field | kind | width | greatest | one unit adds |\n|---|---|---|---|---|\n";
    for field in &info.fields {
        let (name, kind, width) = (&field.name, field.kind, width(&field.width));
        writeln!(
            text,
            "| {name} | {kind} | {width} | {} | {} |",
            field.max, field.stride
        )
        .unwrap();
    }
    text += "\n";
    for fact in facts(format, info) {
        writeln!(text, "- {fact}").unwrap();
    }
    text += &encodings(info);
    text += &storage(info);
    text
}

fn facts(format: &Format, info: &FormatInfo) -> Vec<String> {
    let mut facts = vec![format!(
        "**Rule**: {}. **Size**: {} bits, {} bytes.",
        info.rule, info.bits, info.bytes
    )];
    if let (Some(tick), Some(epoch)) = (&info.tick, &info.epoch) {
        facts.push(format!(
            "**Time**: in ticks of {tick} from {epoch}. **Ends**: {}.",
            end_of(format, info)
        ));
    }
    if let (Some(tick), Some(second)) = (&info.per_tick, &info.per_second) {
        facts.push(format!(
            "**Capacity** of one worker number: {tick} ids a tick, {second} a second."
        ));
    }
    if let Some(spread) = info.sequence_spread {
        let first = match spread {
            1 => "the first id of each tick has sequence 0".to_owned(),
            spread => format!(
                "the first id of a tick has one of the first {spread} sequences, told by the tick"
            ),
        };
        facts.push(format!(
            "**Spread**: {first}. Shard by a hash of the id, not by `id % n`."
        ));
    }
    if let Some(monotonic) = info.monotonic {
        facts.push(format!("**Monotonic**: `{}`.", monotonic.name()));
    }
    if format.greatest() < 1 << 53 && format.encoding("decimal").is_some() {
        facts.push("**Number**: every id is below 2^53, so that `Number(id)` of the decimal text is exact.".to_owned());
    }
    if !info.types.is_empty() {
        let types: Vec<_> = info
            .types
            .iter()
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        facts.push(format!(
            "**Types**, and ids of each in one tick: {}.",
            types.join(", ")
        ));
    }
    if let Some(types) = &info.types_minted {
        let which = if types.is_empty() {
            "any, and none".to_owned()
        } else {
            types.join(", ")
        };
        facts.push(format!(
            "**Types**, before a `_`: 0 to 63 of a-z and `_`, beginning and ending with a letter. Minted: {which}."
        ));
    }
    if !info.labels.is_empty() {
        let labels: Vec<_> = info
            .labels
            .iter()
            .map(|(value, label)| format!("{value} is {label}"))
            .collect();
        facts.push(format!("**Worker numbers**: {}.", labels.join(", ")));
    }
    facts.push(format!("**Order**: {}", info.order));
    if let Some(odds) = &info.collision_odds {
        let within = odds
            .within
            .as_ref()
            .map_or_else(|| "ever".to_owned(), |tick| format!("within {tick}"));
        facts.push(format!(
            "**Collisions**: {} random bits. Odds of one in a million with {} ids {within}, even odds with {}.",
            odds.random_bits, odds.one_in_a_million, odds.even
        ));
    }
    facts.push(format!("**Reveals**: {}", info.reveals));
    facts
}

fn encodings(info: &FormatInfo) -> String {
    let time = info
        .example
        .time
        .as_ref()
        .map_or_else(String::new, |time| format!(" of {time}"));
    let mut text =
        format!("\n| encoding | length | sorts | an id{time} | pattern |\n|---|---|---|---|---|\n");
    for encoding in &info.encodings {
        let sorts = if encoding.sortable { "yes" } else { "no" };
        let example = &info.example.encodings[&encoding.name];
        // In a table a bar ends the cell, even in code.
        let pattern = encoding.pattern.replace('|', "\\|");
        let cells = [
            &encoding.name,
            &length(encoding),
            sorts,
            &format!("`{example}`"),
            &format!("`{pattern}`"),
        ];
        writeln!(text, "| {} |", cells.join(" | ")).unwrap();
    }
    text
}

fn storage(info: &FormatInfo) -> String {
    let mut text = "\n| database | column | bind |\n|---|---|---|\n".to_owned();
    for advice in &info.storage {
        writeln!(
            text,
            "| {} | `{}` | {} |",
            advice.database, advice.column, advice.bind
        )
        .unwrap();
    }
    text += "\n```sql\n";
    for (databases, sql) in info.storage_sql() {
        writeln!(text, "-- {}", databases.join(", ")).unwrap();
        sql.statements()
            .for_each(|statement| writeln!(text, "{statement}").unwrap());
    }
    text += "```\n\n";
    for note in info.storage_notes() {
        writeln!(text, "- {note}").unwrap();
    }
    text
}

fn length(encoding: &EncodingInfo) -> String {
    match encoding.length {
        Some(length) => length.to_string(),
        None => format!("{} to {}", encoding.length_min, encoding.length_max),
    }
}

fn width(width: &FieldWidth) -> String {
    match width {
        FieldWidth::Bits { bits } => format!("{bits} bits"),
        FieldWidth::Digits { digits, radix } => format!("{digits} digits of base {radix}"),
        FieldWidth::Cardinality { cardinality } => format!("{cardinality} values"),
    }
}

fn end_of(format: &Format, info: &FormatInfo) -> String {
    match (&info.end, format.end()) {
        (Some(end), _) => end.clone(),
        (None, Some(_)) => "after the year 9999".to_owned(),
        (None, None) => "never".to_owned(),
    }
}
