//! Checks that words and everyday numbers are not decoded, and that real ids are.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use idmint::server::assemble;
use idmint::server::config::Config;
use idmint_core::id::{DecodeFilter, Field, FieldKind, Format};
use idmint_core::minting::Randomness;
use idmint_core::time::{ManualClock, UnixNanos, UnixTime};
use idmint_service::Service;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const TEXTS: usize = 100_000;
const IDS: usize = 1_000_000;
const NOW: u64 = 1_800_000_000;
const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;
const YEAR: u64 = 365 * DAY;
/// The first second of the year 2010, in seconds since 1970. The next constant is that of 2015.
const IN_2010: u64 = 1_262_304_000;
const IN_2015: u64 = 1_420_070_400;

const CUSTOM: &str = r#"
    [formats.invoice]
    summary = "Invoice number: time, worker, counter"
    rule = "sequenced"
    tick = "1s"
    epoch = "2009-01-01T00:00:00Z"
    fields = [{ name = "time", kind = "time", digits = 6, radix = 36 }, { name = "worker", kind = "worker", digits = 1, radix = 36 },
              { name = "sequence", kind = "sequence", digits = 2, radix = 36 }]
    encodings = [{ kind = "radix", name = "base36", radix = 36, case = "upper", length = 9, prefix = "inv_" }]
    [formats.order]
    like = "snowflake"
    epoch = "2008-01-01T00:00:00Z"
"#;

/// A single node with two custom formats in addition to the built-in ones.
static SERVICE: LazyLock<Arc<Service>> = LazyLock::new(|| {
    let config = Config::load(None, std::iter::empty(), CUSTOM.parse().unwrap()).unwrap();
    let clock = Arc::new(ManualClock::at(UnixNanos::from_seconds(NOW)).clock());
    assemble(
        &config,
        clock,
        &Randomness::seeded(1),
        &prometheus::Registry::new(),
    )
    .unwrap()
});

/// The beginnings of syllables in English words.
const ONSETS: &str = "b bl br c ch cl cr d dr f fl fr g gl gr h j k l m n p ph pl pr qu r s sc sh sl sp st str t th tr v w wh";
const NUCLEI: &str = "a e i o u ai au ea ee ie oa oo ou y";
const CODAS: &str =
    "b ck d f g l ll m n nd ng nt p r rd rk rn s ss st t th x tion ing ed er ness able";
/// Words whose letters all belong to one encoding, and long words.
const WORDS: &str = "hello order beef cafe face dead feed added deadbeef notanid invoice snowflake payment internationalization \
    beautifulness bankrupt characteristically responsibility acknowledgement bibliographically classification blackberries \
    monday error null undefined admin accommodations rehabilitation abandoned babbling facade effaced telecommunications";

fn pick(from: &str, random: &mut StdRng) -> String {
    let parts: Vec<_> = from.split_whitespace().collect();
    parts[random.random_range(0..parts.len())].to_owned()
}

/// Draws a word in lower case, capitalized, or in upper case.
fn word(random: &mut StdRng) -> String {
    let mut word = String::new();
    if random.random_ratio(1, 8) {
        word = pick(WORDS, random);
    } else {
        for _ in 0..random.random_range(1..=3) {
            word += &pick(ONSETS, random);
            word += &pick(NUCLEI, random);
            word += &pick(CODAS, random);
        }
    }
    match random.random_range(0..10) {
        0 => word.to_ascii_uppercase(),
        1 => word[..1].to_ascii_uppercase() + &word[1..],
        2 => word + "-" + &pick(WORDS, random),
        _ => word,
    }
}

/// Draws a number as people write it. It has at most as many digits as a date with its time in
/// seconds.
fn number(random: &mut StdRng) -> String {
    let mut between = |from: u64, to: u64| random.random_range(from..to);
    let [year, month, day] = [between(1900, 2100), between(1, 13), between(1, 29)];
    let [hour, minute, second] = [between(0, 24), between(0, 60), between(0, 60)];
    match between(0, 16) {
        0 => year.to_string(),
        1 => format!("{year}-{month:02}-{day:02}"),
        2 => format!("{year}{month:02}{day:02}"),
        3 => format!("{year}{month:02}{day:02}{hour:02}{minute:02}{second:02}"),
        4 => format!("{hour:02}:{minute:02}"),
        5 => format!("{}.{:02}", between(0, 10_000), between(0, 100)),
        6 => format!("{:05}", between(0, 100_000)),
        7 => between(0, NOW).to_string(),
        8 => between(NOW * 500, NOW * 1_000).to_string(),
        9 => format!("+{}", between(10_000_000_000, 500_000_000_000)),
        10 => format!("0{}", between(1_000_000_000, 9_999_999_999)),
        11 => format!("978{}", between(1_000_000_000, 9_999_999_999)),
        12 => format!(
            "{}.{}.{}.{}",
            between(0, 256),
            between(0, 256),
            between(0, 256),
            between(0, 256)
        ),
        13 => format!("{}%", between(0, 101)),
        14 => between(0, 1_000).to_string(),
        _ => 10_u64
            .pow(u32::try_from(between(0, 8)).unwrap())
            .saturating_mul(between(1, 10))
            .to_string(),
    }
}

#[test]
fn of_a_thousand_words_or_numbers_at_most_one_is_taken_for_an_id() {
    let decoding = SERVICE.decoding().at(UnixNanos::from_seconds(NOW));
    let mut random = StdRng::seed_from_u64(31);
    type Draw = fn(&mut StdRng) -> String;
    for (what, draw) in [("words", word as Draw), ("numbers", number)] {
        let mut passed = BTreeMap::new();
        for _ in 0..TEXTS {
            let text = draw(&mut random);
            if let Some(found) = decoding.best(&text, DecodeFilter::default()).found() {
                passed.insert(
                    text.clone(),
                    (found.format().name.clone(), found.evidence_bits()),
                );
            }
        }
        println!("{} of {TEXTS} {what} pass: {passed:?}", passed.len());
        assert!(passed.len() * 1_000 <= TEXTS, "{} of {what}", passed.len());
    }
    for text in [
        "",
        "hello",
        "order",
        "beef",
        "x",
        "not an id",
        "2026",
        "1800000000",
        "1800000000123",
        "0171234567",
    ] {
        assert!(
            decoding
                .best(text, DecodeFilter::default())
                .found()
                .is_none(),
            "{text:?}"
        );
    }
}

/// Draws an id that some service could mint in the second `at`. Its worker number is random, and
/// half of the ids are the first id of their tick.
fn real_id(format: &Format, at: u64, random: &mut StdRng) -> u128 {
    let assigned: Vec<_> = format
        .variants
        .iter()
        .filter(|variant| variant.assigned)
        .collect();
    let layout = &assigned[random.random_range(0..assigned.len())].layout;
    let instant = UnixNanos::new(at * 1_000_000_000 + random.random_range(0..1_000_000_000));
    let ticks = format.ticks_at(UnixTime::from(instant)).unwrap_or_default();
    let mut value = |field: &Field| match (field.kind, field.constant) {
        (_, Some(constant)) => constant,
        (FieldKind::Time, _) => ticks / field.scale % (field.max + 1),
        (FieldKind::Sequence, _) if random.random() => 0,
        _ => random.random_range(0..=field.max),
    };
    layout
        .pack(&layout.fields().iter().map(&mut value).collect::<Vec<_>>())
        .unwrap()
}

#[test]
fn no_real_id_is_withheld_but_payments_that_are_nine_digits() {
    let decoding = SERVICE.decoding().at(UnixNanos::from_seconds(NOW));
    let formats = SERVICE.decoding().formats();
    assert!(
        ["invoice", "order"]
            .iter()
            .all(|name| formats.iter().any(|format| format.name == *name))
    );
    let mut random = StdRng::seed_from_u64(32);
    let (mut lost, mut moments) = (Vec::new(), [0; 4]);
    for at in 0..IDS {
        let format = &formats[at % formats.len()];
        // Skip the first day of a format, in which a 64-bit id is as short as a date. For the
        // 53-bit format, skip the first year.
        let short = if format.name == "js53" { YEAR } else { DAY };
        let begun = u64::try_from(format.epoch.nanos() / 1_000_000_000).unwrap_or(0) + short;
        let years = [IN_2010, IN_2015, NOW - 5 * YEAR, NOW];
        let kind = random.random_range(0..years.len());
        let (from, to) = match years[kind] {
            NOW => (NOW - HOUR, NOW + HOUR),
            from if from + YEAR <= begun => (begun, NOW),
            from => (from.max(begun), from + YEAR),
        };
        moments[kind] += usize::from(from == years[kind] || from == NOW - HOUR);
        let id = real_id(format, random.random_range(from..to), &mut random);
        // Begin ids of `typeid-uuid` with a type. Without one, the text cannot be told apart from a
        // ULID in lower case, because any 128 bits are valid in both formats.
        let of_type = if format.name == "typeid-uuid" {
            "a_"
        } else {
            ""
        };
        let text = format!("{of_type}{}", format.canonical().to_text(id));
        let best = decoding.best(&text, DecodeFilter::default());
        if best.found().is_none() {
            let encoding = Some(format.canonical().name());
            let pinned = DecodeFilter {
                format: Some(&format.name),
                encoding,
                ..DecodeFilter::default()
            };
            assert_eq!(
                decoding.best(&text, pinned).found().map(|found| found.id()),
                Some(id),
                "{text}"
            );
            lost.push((format.name.clone(), text));
        }
    }
    println!(
        "{IDS} ids, {moments:?} of 2010, of 2015, of five years, of this hour and the next; withheld: {lost:?}"
    );
    assert!(moments.iter().all(|count| *count > IDS / 20), "{moments:?}");
    let is_nine_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    assert!(
        lost.iter()
            .all(|(format, text)| format == "payment" && is_nine_digits(text)),
        "{lost:?}"
    );
    assert!(lost.len() * 5_000 < IDS / formats.len(), "{lost:?}");
}
