//! Checks the detection of the format of a text: the ranking of the possible formats, and the
//! suggestions of similar ids.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use idmint::server::assemble;
use idmint::server::config::Config;
use idmint_core::id::{DecodeFilter, Encoding, FieldKind, Format, Rejection, Rule};
use idmint_core::minting::Randomness;
use idmint_core::time::{ManualClock, UnixNanos, UnixTime};
use idmint_service::Service;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use idmint_testing::cases;
use idmint_testing::generated::assert_generated;

const IDS: usize = 20_000;
const NOW_NANOS: u64 = 1_800_000_000_000_000_000;
const NOW: UnixNanos = UnixNanos::new(NOW_NANOS);
/// The earliest time of generated ids, five years before `NOW`.
const SINCE: u64 = NOW_NANOS - 5 * 365 * 86_400 * 1_000_000_000;

/// A single node with the default configuration, which knows the worker numbers that it mints with.
static SERVICE: LazyLock<Arc<Service>> = LazyLock::new(|| {
    let config = Config::load(None, std::iter::empty(), toml::Table::new()).unwrap();
    let clock = Arc::new(ManualClock::at(NOW).clock());
    assemble(
        &config,
        clock,
        &Randomness::seeded(1),
        &prometheus::Registry::new(),
    )
    .unwrap()
});

fn is_minted(format: &Format) -> bool {
    matches!(format.rule, Rule::Sequenced | Rule::Random | Rule::Grouped)
}

/// Draws an id that the service could mint at the moment `at`.
fn mint_at(format: &Format, at: UnixNanos, random: &mut StdRng) -> u128 {
    let assigned: Vec<_> = format
        .variants
        .iter()
        .filter(|variant| variant.assigned)
        .collect();
    let layout = &assigned[random.random_range(0..assigned.len())].layout;
    let workers = SERVICE.formats().named(&format.name).unwrap().workers();
    let values = layout
        .fields()
        .iter()
        .map(|field| match (field.kind, field.constant) {
            (_, Some(constant)) => constant,
            (FieldKind::Time, _) => format.ticks_at(UnixTime::from(at)).unwrap(),
            (FieldKind::Worker, _) => workers[random.random_range(0..workers.len())].into(),
            (FieldKind::Shard, _) => 0,
            // Half of the ids are the first id of their tick.
            (FieldKind::Sequence, _) if random.random() => {
                random.random_range(0..format.sequence_spread).into()
            }
            // Draw the number of a conjunction's object below 70 000, as catalogue numbers are
            // today. Any other object field holds a domain, which is 0 because none is configured.
            (FieldKind::Object, _) if format.rule == Rule::Grouped => {
                random.random_range(1..70_000)
            }
            (FieldKind::Object, _) => 0,
            _ => random.random_range(0..=field.max),
        });
    layout.pack(&values.collect::<Vec<_>>()).unwrap()
}

/// The formats that were detected for ids of one format.
#[derive(Default)]
struct Row {
    ids: usize,
    ambiguous: usize,
    /// The number of ids for which each format came first.
    first: BTreeMap<String, usize>,
    /// The number of ids for which the right format came first without ambiguity.
    clearly_right: usize,
}

/// Draws ids of all formats that can be minted, decodes their canonical texts, and counts the
/// results.
fn confusion(seed: u64) -> BTreeMap<String, Row> {
    let mut random = StdRng::seed_from_u64(seed);
    let decoder = SERVICE.decoding().decoder().at(NOW);
    let formats: Vec<_> = SERVICE
        .decoding()
        .decoder()
        .formats()
        .iter()
        .filter(|format| is_minted(format))
        .collect();
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for at in 0..IDS {
        let format = formats[at % formats.len()];
        // Some formats, such as payment, began less than five years ago.
        let since = SINCE.max(u64::try_from(format.epoch.nanos()).unwrap());
        let instant = UnixNanos::new(random.random_range(since..NOW_NANOS));
        let id = mint_at(format, instant, &mut random);
        let decoded = decoder.decode(&format.canonical().to_text(id), DecodeFilter::default());
        assert!(
            decoded
                .matches
                .iter()
                .any(|found| found.format().name == format.name && found.id() == id)
        );
        let row = rows.entry(format.name.clone()).or_default();
        row.ids += 1;
        let first = decoded.matches[0].format();
        *row.first.entry(first.name.clone()).or_default() += 1;
        row.ambiguous += usize::from(decoded.is_ambiguous());
        row.clearly_right += usize::from(!decoded.is_ambiguous() && first.name == format.name);
    }
    rows
}

#[test]
fn the_right_format_comes_first_unless_there_is_a_doubt() {
    let rows = confusion(7);
    assert_eq!(rows.values().map(|row| row.ids).sum::<usize>(), IDS);
    let is_decimal = |name: &str| {
        let format = SERVICE
            .decoding()
            .decoder()
            .formats()
            .iter()
            .find(|format| format.name == name)
            .unwrap();
        format.canonical().name() == "decimal"
    };
    // An old Flax id looks like one in three random texts of its length, so it is always in doubt.
    let is_rare = |name: &str| !is_decimal(name) && name != "flax";
    let (mut clear, mut right, mut others, mut others_ambiguous) = (0, 0, 0, 0);
    for (name, row) in &rows {
        clear += row.ids - row.ambiguous;
        right += row.clearly_right;
        if is_rare(name) {
            others += row.ids;
            others_ambiguous += row.ambiguous;
        }
    }
    assert!(
        right * 100 >= clear * 99,
        "{right} of {clear} without doubt are right"
    );
    assert!(
        others_ambiguous * 100 <= others,
        "{others_ambiguous} of {others} that are neither decimal numbers nor Flax ids are in doubt"
    );
    assert_generated("docs/internals/DETECTION.md", "detection", &table(&rows));
}

fn table(rows: &BTreeMap<String, Row>) -> String {
    let mut text = "\n| ids of | ambiguous | first |\n|---|---|---|\n".to_owned();
    for (name, row) in rows {
        let mut firsts: Vec<_> = row.first.iter().collect();
        firsts.sort_by_key(|(_, count)| Reverse(**count));
        let firsts: Vec<_> = firsts
            .iter()
            .map(|(first, count)| format!("{first} {count}"))
            .collect();
        let (ids, ambiguous) = (row.ids, row.ambiguous);
        text += &format!("| {name}, {ids} | {ambiguous} | {} |\n", firsts.join(", "));
    }
    text + "\n"
}

#[test]
fn a_decimal_of_another_program_names_its_format_first_or_second() {
    let decoder = SERVICE.decoding().decoder().at(NOW);
    for (format, fields) in [
        ("snowflake", [("worker", 17), ("shard", 9), ("sequence", 3)]),
        ("twitter", [("worker", 372), ("sequence", 0), ("", 0)]),
        ("sonyflake", [("machine", 43_507), ("sequence", 0), ("", 0)]),
        ("tsid", [("random", 3_141_593), ("", 0), ("", 0)]),
        ("mastodon", [("sequence_data", 54_321), ("", 0), ("", 0)]),
    ] {
        let format = SERVICE.decoding().format(format).unwrap();
        // 2024-06-01
        let at = UnixNanos::from_seconds(1_717_200_000);
        let value = |name: &str| fields.iter().find(|(field, _)| *field == name);
        let layout = &format.variants[0].layout;
        let values = layout.fields().iter().map(|field| match field.kind {
            FieldKind::Time => format.ticks_at(UnixTime::from(at)).unwrap(),
            _ => value(&field.name).unwrap().1,
        });
        let id = layout.pack(&values.collect::<Vec<_>>()).unwrap();
        let decoded = decoder.decode(&id.to_string(), DecodeFilter::default());
        let mut names: Vec<&str> = Vec::new();
        for found in &decoded.matches {
            if !names.contains(&found.format().name.as_str()) {
                names.push(&found.format().name);
            }
        }
        assert!(
            names[..2].contains(&format.name.as_str()),
            "{}: {names:?}",
            format.name
        );
        assert!(decoded.is_ambiguous());
    }
}

#[test]
fn a_ulid_from_before_uuid7_that_looks_like_one_is_in_doubt() {
    let decoder = SERVICE.decoding().decoder().at(NOW);
    let rest = "b2c-9a71-5d3c2b1a0f4e";
    for (ms, version, is_ambiguous) in [
        (1_530_000_000_000_u64, '7', true),
        (1_530_000_000_000, '8', true),
        (1_730_000_000_000, '7', false),
        (1_730_000_000_000, '8', false),
    ] {
        let time = format!("{ms:012x}");
        let text = format!("{}-{}-{version}{rest}", &time[..8], &time[8..]);
        let decoded = decoder.decode(&text, DecodeFilter::default());
        let names: Vec<&str> = decoded
            .matches
            .iter()
            .map(|found| &*found.format().name)
            .collect();
        assert_eq!(names[0], format!("uuid{version}"), "{text}: {names:?}");
        assert!(names.contains(&"ulid"), "{text}: {names:?}");
        assert_eq!(decoded.is_ambiguous(), is_ambiguous, "{text}");
    }
}

/// Reads the text with each encoding, one after the other, without any work shared between them.
fn read_one_by_one(format: &Format, text: &str) -> Result<Vec<(String, u128)>, Rejection> {
    let read = |encoding: &Encoding| {
        let id = encoding.read(text)?;
        if text.is_empty() {
            return Err(Rejection::WrongLength);
        }
        format.split(id).map(|_| (encoding.name().to_owned(), id))
    };
    let readings: Vec<_> = format.encodings.iter().map(read).collect();
    // Report the refusal of the encoding whose texts are most similar. A wrong length counts as
    // similar as wrong letters. Among equally similar encodings, the canonical one, which is the
    // first, is reported.
    let readings_by_place = readings.iter().enumerate();
    let refusals =
        readings_by_place.filter_map(|(at, reading)| Some((at, reading.as_ref().err().copied()?)));
    let nearest = refusals
        .max_by_key(|(at, why)| {
            (
                why.nearness() + u8::from(*why == Rejection::WrongLength),
                *at == 0,
            )
        })
        .map(|(_, why)| why);
    let read: Vec<_> = readings.into_iter().filter_map(Result::ok).collect();
    if read.is_empty() {
        Err(nearest.unwrap())
    } else {
        Ok(read)
    }
}

#[test]
fn reading_spellings_together_gives_what_each_gives_by_itself() {
    let mut random = StdRng::seed_from_u64(11);
    let decoder = SERVICE.decoding().decoder().at(NOW);
    let ids = SERVICE
        .decoding()
        .decoder()
        .formats()
        .iter()
        .flat_map(|format| {
            let id = random.random_range(0..=format.greatest());
            format
                .encodings
                .iter()
                .map(move |encoding| encoding.to_text(id))
        });
    let mut texts: Vec<String> = ids.collect();
    texts.extend(
        cases::valid()
            .into_iter()
            .flat_map(|case| case.encodings)
            .map(|(_, text)| text),
    );
    texts.extend(cases::unreadable().into_iter().map(|case| case.text));
    let halves: Vec<_> = texts
        .iter()
        .map(|text| text.chars().take(text.chars().count() / 2).collect())
        .collect();
    texts.extend(halves);
    assert!(texts.len() > 1_000);
    for text in &texts {
        let decoded = decoder.decode(text, DecodeFilter::default());
        for format in SERVICE.decoding().decoder().formats() {
            let mut found: Vec<_> = decoded
                .matches
                .iter()
                .filter(|found| found.format().name == format.name)
                .map(|found| (found.encoding().name().to_owned(), found.id()))
                .collect();
            let why = decoded
                .rejected
                .iter()
                .find(|(rejected, _)| rejected.name == format.name);
            match read_one_by_one(format, text) {
                Ok(mut read) => {
                    read.sort();
                    found.sort();
                    assert_eq!(found, read, "{text:?} as {}", format.name);
                    assert!(why.is_none());
                }
                Err(expected) => {
                    assert_eq!(
                        why.map(|(_, why)| *why),
                        Some(expected),
                        "{text:?} as {}",
                        format.name
                    );
                    assert!(found.is_empty());
                }
            }
        }
        let best = decoder.best(text, DecodeFilter::default());
        let first = decoded.matches.first();
        assert_eq!(
            best.as_ref()
                .map(|best| (&best.format().name, best.encoding().name(), best.id())),
            first.map(|first| (&first.format().name, first.encoding().name(), first.id())),
            "{text:?}"
        );
    }
}

#[test]
fn a_copy_with_a_slip_leads_to_the_id() {
    let decoder = SERVICE.decoding().decoder().at(NOW);
    for (copied, meant) in [
        (" 175928847299117063\n", "175928847299117063"),
        (
            "\"01ARZ3NDEKTSV4RRFFQ69G5FAV\",",
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        ),
        ("01arz3ndektsv4rrffq69g5fav", "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        (
            "017F22E2-79B0-7CC3-98C4-DC0C0C07398F",
            "017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
        ),
        (
            "{017f22e279b07cc398c4dc0c0c07398f}",
            "017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
        ),
        ("ZWWQLZZPJJMXMDLKPVWQ", "zwwqlzz-pjjmxmd-lkpvwq"),
        ("zwwqlzz pjjmxmd lkpvwq", "zwwqlzz-pjjmxmd-lkpvwq"),
        ("1i9zc1002", "1I9ZC1002"),
        ("175_928_847_299_117_063", "175928847299117063"),
    ] {
        let near = decoder.did_you_mean(copied, DecodeFilter::default());
        assert_eq!(near[0], meant, "{copied:?}: {near:?}");
        assert!(near.len() <= 4);
        assert!(
            near.iter()
                .all(|text| decoder.best(text, DecodeFilter::default()).is_some())
        );
    }
    assert!(decoder.did_you_mean("", DecodeFilter::default()).is_empty());
    assert!(
        decoder
            .did_you_mean(
                "no id at all, whatever is done to it",
                DecodeFilter::default()
            )
            .is_empty()
    );
}

#[test]
fn the_evidence_of_published_ids_names_their_format() {
    let decoder = SERVICE.decoding().decoder().at(NOW);
    for (text, format) in [
        ("zwwqlzz-pjjmxmd-lkpvwq", "conjunction"),
        ("0005cd7556b05092aecc815daa77f99c", "evently"),
        ("1I9ZC1002", "payment"),
        ("0RdKJcxqVBiAiQr0", "flax"),
        ("did:siq:iuxvojaaf4c6s6aaaaaaaaaaaaaah", "siq"),
        ("175928847299117063", "snowflake"),
        ("1541815603606036480", "twitter"),
        ("c232ab00-9414-11ec-b3c8-9f6bdeced846", "uuid1"),
        ("1ec9414c-232a-6b00-b3c8-9f6bdeced846", "uuid6"),
        ("017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "uuid7"),
        ("919108f7-52d1-4320-9bac-f847db4148a8", "uuid4"),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "ulid"),
        ("-JhLeOlGIEjaIOFHR0xd", "firebase"),
        ("9m4e2mr0ui3e8a215n4g", "xid"),
        ("00000000-0000-0000-0000-000000000000", "uuid-nil"),
        ("ffffffff-ffff-ffff-ffff-ffffffffffff", "uuid-max"),
        ("c232ab00-9414-21ec-b3c8-9f6bdeced846", "uuid2"),
        ("5df41881-3aed-3515-88a7-2f4a814cf09e", "uuid3"),
        ("2ed6657d-e927-568b-95e1-2665a8aea6a2", "uuid5"),
        ("2489e9ad-2ee2-8e00-8ec9-32d5f69181c0", "uuid8"),
        ("103270115826048975", "mastodon"),
        ("01226N0640J7Q", "tsid"),
        // This id is from MongoDB's documentation. It has the same evidence as a flax id, but flax
        // ids are rarer.
        ("507f1f77bcf86cd799439011", "objectid"),
    ] {
        let decoded = decoder.decode(text, DecodeFilter::default());
        let readings: Vec<_> = decoded
            .matches
            .iter()
            .map(|found| (&found.format().name, found.evidence_bits()))
            .collect();
        assert_eq!(readings[0].0, format, "{text}: {readings:?}");
        println!("{text} ambiguous={} {readings:?}", decoded.is_ambiguous());
    }
}
