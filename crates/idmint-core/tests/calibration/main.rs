//! Calibrates the decoder with texts of known formats. The tests count how often the best
//! reading of a text has the wrong format, although the decoder does not mark it as doubtful. They
//! also check the verdict on a column.
//!
//! `CALIBRATION_IDS` sets the number of texts of each kind, and the number of rows of the longest
//! columns. `make torture` sets it to 100 000.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(
    clippy::cast_possible_truncation,
    reason = "fields are cut out of numbers"
)]

mod kinds;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use idmint_core::id::{
    Certainty, DecodeFilter, Decoder, DecoderAt, Finding, Format, IdColumn, KSUID, Liberty,
    OwnNumbers, PRESETS,
};
use idmint_core::time::UnixNanos;
use idmint_testing::generated::assert_generated;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use kinds::{
    BASE36, BASE64_URL, CROCKFORD, Class, DIGITS, KINDS, Kind, NOW, TOKENS, spread, tokens,
};

/// The number of texts of each kind from which the table in the documentation is computed.
const TEXTS: usize = 2_000;

/// The kind of text that the decoder cannot recognize. One in 32 ULIDs that are written as UUIDs
/// has the version and variant of UUIDv7 or UUIDv8 by chance. With a time from 2021 on, such a ULID
/// looks exactly like one of these UUIDs.
const INDISTINGUISHABLE: &str = "ULID as UUID";

/// The numbers of rows of a column for which the table of the documentation has a verdict.
const ROWS: [usize; 4] = [5, 10, 30, 1_000];

/// The results of decoding all texts of one kind, which form one row of the table.
#[derive(Default)]
struct Row {
    texts: usize,
    right: usize,
    /// The number of texts with the right format in the first or second place of the decoder's list
    /// of possible formats.
    near: usize,
    /// The number of texts for which the first reading, or one of its rivals (readings that are
    /// nearly as likely), has the right format.
    listed: usize,
    /// The number of texts for which the first reading and its rivals have at most two formats. In
    /// `near_of_two` of these texts, the right format is the first or the second one in the list.
    of_two: usize,
    near_of_two: usize,
    doubted: usize,
    /// The number of texts with a wrong format in the first reading, although the reading is not
    /// ambiguous and has no note.
    wrong: usize,
    wrong_as: BTreeMap<String, usize>,
}

fn decoder() -> Decoder {
    let formats = PRESETS
        .iter()
        .map(|preset| Format::built_in(preset.name).unwrap());
    let formats = formats.filter(|format| format.enabled).map(Arc::new);
    let own = ["snowflake", "twitter", "instagram"].map(|name| (name.to_owned(), 0..=7));
    let own = own
        .into_iter()
        .chain([("conjunction-v1".to_owned(), 1..=1)]);
    let own = OwnNumbers {
        workers: own.collect(),
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
        let is_near = kind.format.is_some_and(is_near);
        row.near += usize::from(is_near);
        let candidates: BTreeSet<&str> = decoded
            .matches
            .first()
            .into_iter()
            .flat_map(|first| decoded.rivals(first).chain([first]))
            .map(|found| found.format().name.as_str())
            .collect();
        row.listed += usize::from(
            kind.format
                .is_some_and(|format| candidates.contains(format)),
        );
        row.of_two += usize::from(candidates.len() <= 2);
        row.near_of_two += usize::from(candidates.len() <= 2 && is_near);
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

/// Returns the number of texts of each kind that `CALIBRATION_IDS` asks for.
fn texts_of_long_run() -> Option<usize> {
    let texts = std::env::var("CALIBRATION_IDS").ok();
    texts.map(|texts| texts.parse().unwrap())
}

#[test]
fn a_wrong_reading_says_that_it_is_not_certain() {
    let long = texts_of_long_run();
    let texts = long.unwrap_or(TEXTS);
    let (decoder, mut random) = (decoder(), StdRng::seed_from_u64(55));
    let decoder = decoder.at(UnixNanos::from_seconds(NOW));
    let mut table = "\n| kind | texts | right | right or second | in doubt | wrong without doubt |\n|---|---|---|---|---|---|\n".to_owned();
    let (mut ids, mut wrong_ids, mut faults) = (0, 0, Vec::new());
    for kind in KINDS {
        let row = row_of(kind, texts, &decoder, &mut random);
        let (name, texts) = (kind.name, row.texts);
        let near = kind.format.map_or("–".to_owned(), |_| row.near.to_string());
        table += &format!(
            "| {name} | {texts} | {} | {near} | {} | {} |\n",
            row.right, row.doubted, row.wrong
        );
        let of_hundred_thousand = match kind.class {
            _ if name == INDISTINGUISHABLE => 2_500,
            Class::NoId => 10,
            _ => {
                ids += texts;
                wrong_ids += row.wrong;
                3
            }
        };
        if row.wrong > (texts * of_hundred_thousand).div_ceil(100_000) {
            let (wrong, wrong_as) = (row.wrong, &row.wrong_as);
            faults.push(format!(
                "{name}: {wrong} are wrong without doubt: {wrong_as:?}"
            ));
        }
        if kind.class == Class::Unmistakable && row.doubted * 100 > texts {
            faults.push(format!("{name}: {} are in doubt", row.doubted));
        }
        if kind.class == Class::Decimal {
            let (of_two, near_of_two) = (row.of_two, row.near_of_two);
            println!(
                "{name}: {} are listed, {near_of_two} of {of_two} with two formats are near",
                row.listed
            );
            if row.listed * 1_000 < texts * 999 {
                faults.push(format!("{name}: {} are listed", row.listed));
            }
            if near_of_two * 100 < of_two * 99 {
                faults.push(format!(
                    "{name}: {near_of_two} of {of_two} are right or second"
                ));
            }
        }
    }
    println!("{table}");
    if wrong_ids * 100_000 > ids {
        faults.push(format!("{wrong_ids} of {ids} ids are wrong without doubt"));
    }
    assert!(
        faults.is_empty(),
        "of {texts} texts of each kind:\n{}",
        faults.join("\n")
    );
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
    let long = texts_of_long_run();
    let rows: Vec<usize> = ROWS.into_iter().chain(long).collect();
    for kind in KINDS.iter().filter(|kind| kind.format != Some(KSUID)) {
        let (mut verdict, mut before) = (String::new(), 0);
        let mut column = IdColumn::default();
        let texts = spread(kind, *rows.last().unwrap(), &mut random);
        for (at, text) in texts.iter().enumerate() {
            column.add(text, &decoder, DecodeFilter::default());
            let count = at + 1;
            if !rows.contains(&count) {
                continue;
            }
            let finding = column.judge(&decoder, DecodeFilter::default()).finding;
            let told = match &finding {
                Finding::Told {
                    candidate,
                    certainty,
                    ..
                } => Some((candidate.format.name.as_str(), *certainty)),
                Finding::Untold { .. } => None,
            };
            let rank = match told {
                Some((_, Certainty::Certain)) => 2,
                Some(_) => 1,
                None => 0,
            };
            let name = kind.name;
            if let Some((format, _)) = told {
                assert_eq!(Some(format), kind.format, "{name}, {count} rows");
            }
            if kind.class == Class::Unmistakable {
                let rank_min = [0, 1, 2][usize::from(count >= 10) + usize::from(count >= 30)];
                assert!(rank >= rank_min, "{name}, {count} rows");
            }
            assert!(
                before <= rank,
                "{name}: {count} rows are less certain than fewer"
            );
            if rank == 2 {
                let format = DecodeFilter {
                    format: kind.format,
                    ..DecodeFilter::default()
                };
                let is_read = |text: &String| decoder.best(text, format).is_some();
                assert!(texts[..count].iter().all(is_read), "{name}, {count} rows");
            }
            verdict += [" – |", " likely |", " certain |"][rank];
            before = rank;
        }
        match verdicts.iter_mut().find(|(known, _)| *known == verdict) {
            Some((_, names)) => names.push(kind.name),
            None => verdicts.push((verdict, vec![kind.name])),
        }
    }
    for (verdict, names) in verdicts {
        table += &format!("| {} |{verdict}\n", names.join("; "));
    }
    println!("{table}");
    if long.is_none() {
        assert_generated("docs/internals/DETECTION.md", "columns", &(table + "\n"));
    }
}

#[test]
fn ids_with_another_epoch_are_not_told_to_be_those_of_a_known_one() {
    const DAY: u64 = 86_400;
    let (decoder, mut random) = (decoder(), StdRng::seed_from_u64(63));
    let decoder = decoder.at(UnixNanos::from_seconds(NOW));
    let now = NOW * 1_000 - 1_288_834_974_657;
    // With the epoch of Twitter, these ids end long before now, or some of them begin after now.
    for (end, years) in [-400, -30, 10, 50, 100, 200]
        .into_iter()
        .flat_map(|days| [(days, 2), (days, 8), (days, 14)])
    {
        let end = now.checked_add_signed(end * (DAY * 1_000).cast_signed());
        let end = end.unwrap();
        let from = end - years * 365 * DAY * 1_000;
        for rows in [30, 1_000, 5_000] {
            let mut column = IdColumn::default();
            for _ in 0..rows {
                let time: u64 = random.random_range(from..end);
                let id = time << 22 | random.random_range(0..1_u64 << 10) << 12;
                column.add(&id.to_string(), &decoder, DecodeFilter::default());
            }
            let finding = column.judge(&decoder, DecodeFilter::default()).finding;
            let is_told = matches!(finding, Finding::Told { .. });
            assert!(
                !is_told,
                "{rows} rows of {years} years until {end}: {finding:?}"
            );
        }
    }
    // The control: a stray number does not hide ids with the right epoch.
    for strays in [0, 1, 5] {
        let mut column = IdColumn::default();
        for row in 0..1_000 {
            let time: u64 = random.random_range(now - 8 * 365 * DAY * 1_000..now);
            let id = match row < strays {
                true => i64::MAX as u64 - row,
                false => time << 22 | random.random_range(0..1_u64 << 10) << 12,
            };
            column.add(&id.to_string(), &decoder, DecodeFilter::default());
        }
        let id = (now - 60_000) << 22;
        column.add(&id.to_string(), &decoder, DecodeFilter::default());
        let verdict = column.judge(&decoder, DecodeFilter::default());
        let format = verdict.format_of_rows().map(|(format, _)| &format.name[..]);
        assert_eq!(format, Some("twitter"), "{strays}: {:?}", verdict.finding);
    }
}

#[test]
fn random_tokens_are_not_told_to_be_ids() {
    let (decoder, mut random) = (decoder(), StdRng::seed_from_u64(58));
    let decoder = decoder.at(UnixNanos::from_seconds(NOW));
    for (name, head, len, alphabet) in TOKENS {
        for rows in [10, 40, 1_000].repeat(4) {
            let texts = tokens(head, len, alphabet, rows, &mut random);
            let mut column = IdColumn::default();
            for text in &texts {
                column.add(text, &decoder, DecodeFilter::default());
            }
            let finding = column.judge(&decoder, DecodeFilter::default()).finding;
            let is_told = matches!(finding, Finding::Told { .. });
            assert!(
                !is_told,
                "{name}, {rows} rows, such as {}: {finding:?}",
                texts[0]
            );
        }
    }
}

#[test]
fn a_lone_random_text_is_seldom_read_without_doubt() {
    const TEXTS: usize = 10_000;
    let (decoder, mut random) = (decoder(), StdRng::seed_from_u64(62));
    let decoder = decoder.at(UnixNanos::from_seconds(NOW));
    // `sure_max` is the permitted number of texts in 1000 that are read without doubt.
    for (name, len, alphabet, sure_max, format) in [
        ("token of base 64", 16, BASE64_URL, 5, "flax"),
        ("number of 19 digits", 19, DIGITS, 20, "instagram"),
        ("token of base 36", 9, BASE36, 60, "payment"),
        ("token of base 32", 13, CROCKFORD, 30, "tsid"),
    ] {
        let (mut plausible, mut sure) = (0, 0);
        for text in tokens("", len, alphabet, TEXTS, &mut random) {
            let decoded = decoder.decode(&text, DecodeFilter::default());
            let Some(first) = decoded.matches.first() else {
                continue;
            };
            plausible += usize::from(first.format().name == format && first.is_plausible());
            let is_doubted = decoded.is_unlikely()
                || decoded.is_ambiguous()
                || !decoder.notes(&text, Some(first)).is_empty();
            sure += usize::from(!is_doubted);
        }
        println!("{name}: {plausible} of {TEXTS} read as {format}, {sure} without doubt");
        assert!(plausible > 0, "{name}: none reads as {format}");
        assert!(sure * 1000 <= TEXTS * sure_max, "{name}: {sure} of {TEXTS}");
    }
}

#[test]
fn wrapping_does_not_change_the_reading_of_an_id() {
    let (decoder, mut random) = (decoder(), StdRng::seed_from_u64(60));
    let decoder = decoder.at(UnixNanos::from_seconds(NOW));
    let filter = DecodeFilter {
        liberty: Liberty::Lenient,
        ..DecodeFilter::default()
    };
    for kind in KINDS {
        for text in spread(kind, 200, &mut random) {
            let read = decoder.best_and_doubt(&text, filter);
            if read.is_none_or(|(best, _)| !best.is_plausible()) {
                continue;
            }
            for (before, after) in [(" ", ""), ("\"", "\""), ("", ","), ("[", "]")] {
                let wrapped = format!("{before}{text}{after}");
                let meant = decoder.meant_text(&wrapped, filter);
                assert_eq!(meant.as_ref(), Some(&text), "{}: {wrapped}", kind.name);
            }
        }
    }
}

#[test]
fn the_writing_of_ids_does_not_change_their_verdict() {
    let (decoder, mut random) = (decoder(), StdRng::seed_from_u64(61));
    let decoder = decoder.at(UnixNanos::from_seconds(NOW));
    let filter = DecodeFilter {
        liberty: Liberty::Lenient,
        ..DecodeFilter::default()
    };
    let verdict = |texts: Vec<String>| {
        let mut column = IdColumn::default();
        for text in texts {
            column.add(&text, &decoder, filter);
        }
        let verdict = column.judge(&decoder, filter);
        verdict
            .format_of_rows()
            .map(|(format, _)| format.name.clone())
    };
    type Writing = fn(&String) -> String;
    let lower: Writing = |text| text.to_lowercase();
    let upper: Writing = |text| text.to_uppercase();
    let writings: [(&str, [Writing; 4]); 4] = [
        (
            "ULID",
            [
                lower,
                |text| format!("\"{text}\","),
                |text| format!("[{text}]"),
                upper,
            ],
        ),
        (
            "ObjectId",
            [
                |text| format!("0x{text}"),
                |text| format!("\\x{text}"),
                |text| format!("ObjectId(\"{text}\"),"),
                upper,
            ],
        ),
        (
            "UUIDv7",
            [
                upper,
                |text| format!("{{{text}}}"),
                |text| format!("urn:uuid:{text}"),
                lower,
            ],
        ),
        (
            "Evently",
            [
                |text| format!("'{text}'"),
                |text| format!("{text};"),
                upper,
                lower,
            ],
        ),
    ];
    for (name, writings) in writings {
        let kind = KINDS.iter().find(|kind| kind.name == name).unwrap();
        for rows in [20, 400] {
            let texts = spread(kind, rows, &mut random);
            for (at, write) in writings.iter().enumerate() {
                let written: Vec<String> = texts.iter().map(write).collect();
                let such_as = written[0].clone();
                let format = verdict(written);
                assert_eq!(
                    format.as_deref(),
                    kind.format,
                    "{rows} rows, {at}: {such_as}"
                );
            }
        }
    }
}

#[test]
fn wrapping_does_not_change_the_verdict_on_numbers() {
    let (decoder, mut random) = (decoder(), StdRng::seed_from_u64(59));
    let decoder = decoder.at(UnixNanos::from_seconds(NOW));
    let filter = DecodeFilter {
        liberty: Liberty::Lenient,
        ..DecodeFilter::default()
    };
    for rows in [10, 12, 40, 1_000] {
        let numbers: Vec<u64> = (0..rows)
            .map(|_| random.random_range(2_300_000_000_000_000_000..3_900_000_000_000_000_000))
            .collect();
        for (before, after) in [("", ""), ("\"", "\""), ("", ","), ("\"", "\","), ("[", "]")] {
            let mut column = IdColumn::default();
            for number in &numbers {
                column.add(&format!("{before}{number}{after}"), &decoder, filter);
            }
            let finding = column.judge(&decoder, filter).finding;
            let is_told = matches!(finding, Finding::Told { .. });
            assert!(
                !is_told,
                "{rows} of {before}{}{after}: {finding:?}",
                numbers[0]
            );
        }
    }
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
    for (before, after) in [("\"", "\""), ("", ","), ("[", "]")] {
        let mut column = IdColumn::default();
        for text in &rounded {
            column.add(
                &format!("{before}{text}{after}"),
                &decoder,
                DecodeFilter::default(),
            );
        }
        let wrapped = column.judge(&decoder, DecodeFilter::default());
        assert_eq!(wrapped.notes, verdict.notes);
    }
}
