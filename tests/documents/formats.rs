//! Checks that `docs/FORMATS.md` and `docs/formats/` describe every built-in format as the program
//! does.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;

use idmint_core::id::{Format, FormatDefinition, LayoutDrawing, PRESETS};
use idmint_wire::{EncodingInfo, FieldWidth, FormatInfo};

use idmint_testing::generated::{assert_generated, assert_page};

use crate::references::root;

#[test]
fn the_table_of_formats_is_that_of_the_code() {
    assert_generated("docs/FORMATS.md", "formats", &table(&built_in_formats()));
}

#[test]
fn every_built_in_format_has_a_page_and_no_other_format_has_one() {
    let formats = built_in_formats();
    for format in &formats {
        let info = FormatInfo::new(format, &[], None);
        assert_page(
            &format!("docs/formats/{}.md", info.name),
            &page(format, &info),
        );
    }
    let pages: BTreeSet<String> = fs::read_dir(root().join("docs/formats"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected: BTreeSet<String> = formats
        .iter()
        .map(|format| format!("{}.md", format.name))
        .collect();
    assert_eq!(pages, expected);
}

fn built_in_formats() -> Vec<Format> {
    PRESETS.iter().map(built_in).collect()
}

fn built_in(preset: &idmint_core::id::Preset) -> Format {
    FormatDefinition::from_toml(preset.name, preset.toml)
        .unwrap()
        .compile(preset.name)
        .unwrap()
}

fn table(formats: &[Format]) -> String {
    let mut text =
        "\n| format | rule | bits | canonical text, characters |\n|---|---|---|---|\n".to_owned();
    for format in formats {
        let info = FormatInfo::new(format, &[], None);
        let canonical = &info.encodings[0];
        let text_of = format!("`{}`, {}", canonical.name, length(canonical));
        let FormatInfo {
            name, rule, bits, ..
        } = &info;
        writeln!(
            text,
            "| [`{name}`](formats/{name}.md) | {rule} | {bits} | {text_of} |"
        )
        .unwrap();
    }
    text + "\n"
}

fn page(format: &Format, info: &FormatInfo) -> String {
    let mut text = format!(
        "# {}\n\n{}. See also the [list of all formats](../FORMATS.md).\n",
        info.name, info.summary
    );
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
            "**Time**: counts ticks of {tick} since {epoch}. **Ends**: {}.",
            end_of(format, info)
        ));
    }
    if let (Some(tick), Some(second)) = (&info.per_tick, &info.per_second) {
        // In a format whose ticks are longer than a second, a worker number can mint less than one
        // id per second.
        let per_second = match second.as_str() {
            "0" => String::new(),
            second => format!(", which is {} ids per second", grouped(second)),
        };
        facts.push(format!(
            "**Capacity**: {} ids per tick for each worker number (the part of an id that keeps machines apart){per_second}.",
            grouped(&tick.to_string())
        ));
    }
    if let Some(spread) = info.sequence_spread {
        let first = match spread {
            1 => "the first id of each tick has sequence 0".to_owned(),
            spread => format!(
                "the first id of each tick has a sequence below {spread}, chosen by a hash of the tick, so that ids minted one at a time do not all end alike"
            ),
        };
        facts.push(format!(
            "**Spread**: {first}. To choose a shard, use a hash of the id, because `id % n` fills shards unevenly."
        ));
    }
    if let Some(monotonic) = info.monotonic {
        facts.push(format!("**Monotonic**: `{}`.", monotonic.name()));
    }
    if format.greatest() < 1 << 53 && format.encoding("decimal").is_some() {
        facts.push(
            "**Number**: every id is below 2^53, so `Number(id)` in JavaScript is exact."
                .to_owned(),
        );
    }
    if !info.types.is_empty() {
        let types: Vec<_> = info
            .types
            .iter()
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        facts.push(format!(
            "**Types**, with the number of ids of each type that a worker number allows per tick: {}.",
            types.join(", ")
        ));
    }
    if let Some(types) = &info.types_minted {
        let which = if types.is_empty() {
            "any, or no type".to_owned()
        } else {
            types.join(", ")
        };
        facts.push(format!(
            "**Type**: the text before the last `_` of an id. It has at most 63 characters: `a` to `z` and `_`. A type begins and ends with a letter, or is empty. Minted types: {which}."
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
    facts.push(format!("**Order of ids**: {}", info.order));
    if let Some(odds) = &info.collision_odds {
        let within = odds.within.as_ref().map_or_else(
            || "in all".to_owned(),
            |tick| match tick.split_once('/') {
                Some((tick, parts)) => format!("in the same 1/{parts} of {tick}"),
                None => format!("in the same tick of {tick}"),
            },
        );
        facts.push(format!(
            "**Collisions**: each id has {} random bits. If {} ids are minted {within}, the chance that two of them are equal is one in a million. If {} ids are minted {within}, the chance that two of them are equal is one half.",
            odds.random_bits,
            grouped(&odds.one_in_a_million.to_string()),
            grouped(&odds.even.to_string())
        ));
    }
    facts.push(format!("**An id reveals**: {}", info.reveals));
    facts
}

/// Separates groups of three digits, such as `3 040 000`.
fn grouped(digits: &str) -> String {
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().collect();
    String::from_utf8(groups.join(&b' ')).expect("digits")
}

fn encodings(info: &FormatInfo) -> String {
    let time = info
        .example
        .time
        .as_ref()
        .map_or_else(String::new, |time| format!(" of {time}"));
    let mut text = format!(
        "\n| encoding | length | sorts | example{time} | pattern |\n|---|---|---|---|---|\n"
    );
    for encoding in &info.encodings {
        let sorts = if encoding.sortable { "yes" } else { "no" };
        let example = &info.example.encodings[&encoding.name];
        // Escape bars, because a bar ends the cell of a Markdown table even inside code.
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
