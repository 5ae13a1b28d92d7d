//! How often the first reading of a text is wrong without a sign of doubt, and the verdict on a
//! column.
//!
//! `CALIBRATION_IDS` sets the number of texts of each kind. `make torture` draws 100 000.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(
    clippy::cast_possible_truncation,
    reason = "fields are cut out of numbers"
)]

mod kinds;

use std::collections::BTreeMap;
use std::sync::Arc;

use idmint_core::id::{
    Certainty, DecodeFilter, Decoder, DecoderAt, Finding, Format, IdColumn, KSUID, OwnNumbers,
    PRESETS,
};
use idmint_core::time::UnixNanos;
use idmint_testing::generated::assert_generated;
use rand::SeedableRng;
use rand::rngs::StdRng;

use kinds::{Class, KINDS, Kind, NOW, spread};

/// The number of texts of each kind in the table of the documentation.
const TEXTS: usize = 2_000;

/// A ULID that is written as a UUID and has the version 7 or 8 by chance looks exactly like such a
/// UUID: one in 32.
const INDISTINGUISHABLE: &str = "ULID as UUID";

const ROWS: [usize; 5] = [5, 10, 30, 300, 2_000];

/// What the decoder says about texts of one kind.
#[derive(Default)]
struct Row {
    texts: usize,
    right: usize,
    /// The right format is the first or the second one.
    near: usize,
    doubted: usize,
    /// The first reading is of another format, and neither ambiguous nor noted.
    wrong: usize,
    wrong_as: BTreeMap<String, usize>,
}

fn decoder() -> Decoder {
    let formats = PRESETS
        .iter()
        .map(|preset| Format::built_in(preset.name).unwrap());
    let formats = formats.filter(|format| format.enabled).map(Arc::new);
    let own = ["snowflake", "twitter", "instagram"].map(|name| (name.to_owned(), 0..=7));
    let own = OwnNumbers {
        workers: BTreeMap::from(own),
        shard: Some(0),
        domains: [0].into(),
    };
    Decoder::with_own_numbers(formats.collect(), &own)
}

fn row_of(kind: &Kind, texts: usize, decoder: &DecoderAt<'_>, random: &mut StdRng) -> Row {
    let mut row = Row::default();
    for text in spread(kind, texts, random) {
        row.texts += 1;
        let decoded = decoder.decode(&text, DecodeFilter::default());
        let is_told = !decoded.is_unlikely();
        let mut names: Vec<&str> = Vec::new();
        for found in decoded.matches.iter().filter(|_| is_told) {
            let name = found.format().name.as_str();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let shapes = || decoder.shaped_like(&text, DecodeFilter::default());
        if names.is_empty() && shapes().iter().any(|shape| shape.name == KSUID) {
            names.push(KSUID);
        }
        let is_right = names.first().copied() == kind.format;
        row.right += usize::from(is_right);
        let is_near = |format| names.iter().take(2).any(|name| *name == format);
        row.near += usize::from(kind.format.is_some_and(is_near));
        let notes = decoder.notes(&text, decoded.matches.first());
        let is_doubted = is_told && decoded.is_ambiguous() || !notes.is_empty();
        row.doubted += usize::from(is_doubted);
        if let Some(first) = names.first().filter(|_| !is_right && !is_doubted) {
            row.wrong += 1;
            *row.wrong_as.entry((*first).to_owned()).or_default() += 1;
        }
    }
    row
}

/// Returns the format of a column and its certainty, in bits of a millionfold.
fn verdict_on(texts: &[String], decoder: &DecoderAt<'_>) -> (Option<String>, Option<Certainty>) {
    let mut column = IdColumn::default();
    for text in texts {
        column.add(text, decoder, DecodeFilter::default());
    }
    match column.judge(decoder, DecodeFilter::default()).finding {
        Finding::Told {
            candidate,
            certainty,
            ..
        } => (Some(candidate.format.name.clone()), Some(certainty)),
        Finding::Untold { .. } => (None, None),
    }
}

#[test]
fn a_wrong_reading_says_that_it_is_not_certain() {
    let long = std::env::var("CALIBRATION_IDS").ok();
    let texts = long.as_ref().map_or(TEXTS, |texts| texts.parse().unwrap());
    let (decoder, mut random) = (decoder(), StdRng::seed_from_u64(55));
    let decoder = decoder.at(UnixNanos::from_seconds(NOW));
    let mut table = "\n| kind | texts | right | right or second | in doubt | wrong without doubt |\n|---|---|---|---|---|---|\n".to_owned();
    for kind in KINDS {
        let Row {
            texts,
            right,
            near,
            doubted,
            wrong,
            wrong_as,
        } = row_of(kind, texts, &decoder, &mut random);
        let (name, near) = (
            kind.name,
            if kind.format.is_some() {
                near.to_string()
            } else {
                "–".to_owned()
            },
        );
        table += &format!("| {name} | {texts} | {right} | {near} | {doubted} | {wrong} |\n");
        let of_hundred_thousand = match kind.class {
            _ if name == INDISTINGUISHABLE => 5_000,
            Class::NoId => 10,
            _ => 1,
        };
        assert!(
            wrong <= (texts * of_hundred_thousand).div_ceil(100_000),
            "{name}: {wrong} of {texts} are wrong without doubt: {wrong_as:?}"
        );
        if kind.class == Class::Unmistakable {
            assert!(
                doubted * 100 <= texts,
                "{name}: {doubted} of {texts} in doubt"
            );
        }
    }
    println!("{table}");
    if long.is_none() {
        assert_generated(
            "docs/internals/DETECTION.md",
            "calibration",
            &(table + "\n"),
        );
    }
}

#[test]
fn a_column_is_never_told_wrongly_and_told_from_ten_clear_rows_on() {
    let (decoder, mut random) = (decoder(), StdRng::seed_from_u64(56));
    let decoder = decoder.at(UnixNanos::from_seconds(NOW));
    let mut table = "\n| kinds |".to_owned();
    table.extend(ROWS.map(|rows| format!(" {rows} rows |")));
    table += &format!("\n|---|{}\n", "---|".repeat(ROWS.len()));
    // Kinds with the same verdicts share a row.
    let mut verdicts: Vec<(String, Vec<&str>)> = Vec::new();
    for kind in KINDS.iter().filter(|kind| kind.format != Some(KSUID)) {
        let mut row = String::new();
        let mut before = 0;
        for rows in ROWS {
            let texts = spread(kind, rows, &mut random);
            let (format, certainty) = verdict_on(&texts, &decoder);
            if format.is_some() {
                assert_eq!(format.as_deref(), kind.format, "{}, {rows} rows", kind.name);
            }
            let rank = match certainty {
                Some(Certainty::Certain) => 2,
                Some(_) => 1,
                None => 0,
            };
            row += [" – |", " likely |", " certain |"][rank];
            if kind.class == Class::Unmistakable && rows >= 10 {
                assert_eq!(rank, 2, "{}, {rows} rows", kind.name);
            }
            if kind.class == Class::Unmistakable {
                assert!(before <= rank || rows <= 10, "{}, {rows} rows", kind.name);
            }
            before = rank;
        }
        match verdicts.iter_mut().find(|(known, _)| *known == row) {
            Some((_, names)) => names.push(kind.name),
            None => verdicts.push((row, vec![kind.name])),
        }
    }
    for (row, names) in verdicts {
        table += &format!("| {} |{row}\n", names.join("; "));
    }
    assert_generated("docs/internals/DETECTION.md", "columns", &(table + "\n"));
}

#[test]
fn rounded_numbers_are_noted_and_few_others_are() {
    let (decoder, mut random) = (decoder(), StdRng::seed_from_u64(57));
    let decoder = decoder.at(UnixNanos::from_seconds(NOW));
    let twitter = KINDS.iter().find(|kind| kind.name == "Twitter").unwrap();
    let ids = spread(twitter, 20_000, &mut random);
    let large: Vec<&String> = ids
        .iter()
        .filter(|id| id.parse::<u64>().unwrap() >= 1 << 59)
        .collect();
    let is_noted = |text: &str| !decoder.notes(text, None).is_empty();
    let noted = large.iter().filter(|id| is_noted(id)).count();
    assert!(noted * 100 <= large.len(), "{noted} of {}", large.len());
    #[allow(clippy::cast_precision_loss, reason = "digits are lost on purpose")]
    let rounded = large
        .iter()
        .map(|id| (id.parse::<u64>().unwrap() as f64).to_string());
    let rounded: Vec<String> = rounded.take(300).collect();
    let noted = rounded.iter().filter(|text| is_noted(text)).count();
    assert!(noted * 100 >= rounded.len() * 90, "{noted} of 300");
    let mut column = IdColumn::default();
    for text in &rounded {
        column.add(text, &decoder, DecodeFilter::default());
    }
    let verdict = column.judge(&decoder, DecodeFilter::default());
    assert_eq!(verdict.notes.len(), 1, "{:?}", verdict.notes);
}
