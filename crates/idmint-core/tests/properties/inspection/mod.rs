//! Checks that the verdict on a column is never wrong. A column without a verdict is accepted. The
//! columns contain ids of each format, mixtures of formats, and values that are not ids.

mod foreign;
mod minted;

use std::collections::BTreeMap;
use std::sync::Arc;

use idmint_core::id::{
    Certainty, DecodeFilter, Decoder, Finding, Format, FormatDefinition, IdColumn, PRESETS, Untold,
};
use idmint_core::time::UnixNanos;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use foreign::FOREIGN;
use minted::{SPANS, column_of};

use crate::NOW;

/// Two custom formats: invoice numbers with eight letters, and ids of a service whose tick is a
/// minute.
const CUSTOM: [(&str, &str); 2] = [
    (
        "invoice",
        r#"
        summary   = "Invoice number: seconds, region, worker, counter"
        rule      = "sequenced"
        tick      = "1s"
        epoch     = "2025-01-01T00:00:00Z"
        fields    = [
            { name = "time", kind = "time", digits = 6, radix = 36 },
            { name = "region", kind = "constant", digits = 1, radix = 36, value = 14 },
            { name = "worker", kind = "worker", digits = 1, radix = 36 },
            { name = "sequence", kind = "sequence", digits = 2, radix = 36 },
        ]
        encodings = [{ kind = "radix", name = "base36", radix = 36, case = "upper", length = 10, prefix = "inv_" }]"#,
    ),
    (
        "parcel",
        r#"
        summary   = "Parcel: 10 ms since 2020, worker, counter"
        rule      = "sequenced"
        tick      = "10ms"
        epoch     = "2020-01-01T00:00:00Z"
        fields    = [
            { name = "time", kind = "time", bits = 40 },
            { name = "worker", kind = "worker", bits = 7 },
            { name = "sequence", kind = "sequence", bits = 16 },
        ]
        encodings = ["decimal", { kind = "hashids", salt = "parcels", min_length = 12 }]"#,
    ),
];

/// Returns all enabled built-in formats and the two custom ones.
fn formats() -> Vec<Arc<Format>> {
    let built_in = PRESETS
        .iter()
        .map(|preset| Format::built_in(preset.name).unwrap())
        .filter(|format| format.enabled);
    let custom = CUSTOM.iter().map(|(name, toml)| {
        FormatDefinition::from_toml(name, toml)
            .unwrap()
            .compile(name)
            .unwrap()
    });
    built_in.chain(custom).map(Arc::new).collect()
}

/// Returns the verdict on a column. The verdict is the format with its certainty and its evidence
/// in bits. If no format was found, it is the reason and the candidates.
fn judge(
    decoder: &Decoder,
    lines: &[String],
    now: UnixNanos,
) -> Result<(String, Certainty, f64), (Untold, Vec<String>)> {
    let decoder = decoder.at(now);
    let mut column = IdColumn::default();
    for line in lines {
        column.add(line, &decoder, DecodeFilter::default());
    }
    match column.judge(&decoder, DecodeFilter::default()).finding {
        Finding::Told {
            candidate,
            certainty,
            evidence_bits,
        } => {
            assert_eq!(
                candidate.ids + candidate.none,
                lines.iter().filter(|line| !line.trim().is_empty()).count() as u64
            );
            Ok((
                candidate.format.name.clone(),
                certainty,
                evidence_bits.unwrap(),
            ))
        }
        Finding::Untold { why, candidates } => Err((
            why,
            candidates
                .iter()
                .map(|candidate| candidate.format.name.clone())
                .collect(),
        )),
    }
}

/// Returns `true` if the format in the verdict, `told`, is right for texts of this format and
/// encoding. Some texts are by specification ids of two formats.
fn is_also(format: &str, encoding: &str, told: &str) -> bool {
    told == format
        || (format == "typeid" && encoding != "typeid" && told == "uuid7")
        || (["xid", "flax"].contains(&format) && encoding == "hex_padded" && told == "objectid")
}

#[derive(Default)]
struct Tally {
    right: usize,
    untold: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn add(
        &mut self,
        what: &str,
        found: Result<(String, Certainty, f64), (Untold, Vec<String>)>,
        is_right: impl Fn(&str) -> bool,
    ) {
        match found {
            Ok((told, ..)) if is_right(&told) => self.right += 1,
            Ok((told, certainty, bits)) => self.wrong.push(format!(
                "{what}: {} {told}, {bits:.0} bits",
                certainty.name()
            )),
            Err(_) => self.untold += 1,
        }
    }

    fn all(&self) -> usize {
        self.right + self.untold + self.wrong.len()
    }
}

#[test]
fn columns_of_every_format_are_told_or_cannot_be_told() {
    let formats = formats();
    let decoder = Decoder::new(formats.clone());
    let mut random = StdRng::seed_from_u64(36);
    let (mut tallies, mut all) = (
        BTreeMap::<String, [Tally; SPANS.len()]>::new(),
        Tally::default(),
    );
    for format in &formats {
        for encoding in &format.encodings {
            let name = format!("{} {}", format.name, encoding.name());
            let is_canonical = encoding.name() == format.canonical().name();
            for (at, span) in SPANS
                .iter()
                .enumerate()
                .filter(|(at, _)| is_canonical || [0, 2, 6].contains(at))
            {
                for workers in [1, 4] {
                    let count = if is_canonical { 1000 } else { 200 };
                    let mut lines =
                        column_of(format, encoding, count, workers, span, NOW, &mut random);
                    for order in if at == 2 {
                        &["in order", "shuffled"][..]
                    } else {
                        &["in order"]
                    }
                    .iter()
                    .copied()
                    {
                        if order == "shuffled" {
                            lines.shuffle(&mut random);
                        }
                        let found = judge(&decoder, &lines, NOW);
                        let what = format!(
                            "{name}, {workers} workers, {}, {order}, such as {}",
                            span.name, lines[0]
                        );
                        let is_right = |told: &str| is_also(&format.name, encoding.name(), told);
                        all.add(&what, found.clone(), is_right);
                        tallies.entry(name.clone()).or_default()[at].add(&what, found, is_right);
                    }
                }
            }
        }
    }
    println!(
        "{:28} {}",
        "told of all",
        SPANS
            .iter()
            .map(|span| format!("{:>12}", span.name))
            .collect::<String>()
    );
    for (name, spans) in &tallies {
        println!(
            "{name:28} {}",
            spans
                .iter()
                .map(|tally| format!("{:>12}", format!("{}/{}", tally.right, tally.all())))
                .collect::<String>()
        );
    }
    println!(
        "{} of {} columns told, {} not, {} wrong",
        all.right,
        all.all(),
        all.untold,
        all.wrong.len()
    );
    all.wrong.iter().for_each(|wrong| println!("WRONG {wrong}"));
    assert!(
        all.wrong.is_empty() && all.right >= 650 && all.all() == 958,
        "{} of {}",
        all.right,
        all.all()
    );
    for format in formats
        .iter()
        .filter(|format| !NEVER_TOLD.contains(&format.name.as_str()))
    {
        let of_a_day = &tallies[&format!("{} {}", format.name, format.canonical().name())][2];
        assert_eq!(
            (of_a_day.right, of_a_day.all()),
            (4, 4),
            "{}, of the last day",
            format.name
        );
    }
}

/// The formats for which there is never a verdict, because neither 128 arbitrary bits nor zeros are
/// evidence for a format.
const NEVER_TOLD: [&str; 2] = ["typeid-uuid", "uuid-nil"];

#[test]
fn what_is_no_id_is_not_told_to_be_one() {
    let decoder = Decoder::new(formats());
    let mut random = StdRng::seed_from_u64(37);
    let (mut kinds, mut all) = (0, Tally::default());
    for (name, draw) in FOREIGN {
        let mut of_kind = Tally::default();
        for count in [1, 2, 5, 20, 1000, 1000, 3000] {
            let mut lines = draw(count, NOW.get(), &mut random);
            for order in ["as it is", "shuffled"] {
                if order == "shuffled" {
                    lines.shuffle(&mut random);
                }
                let found = judge(&decoder, &lines, NOW);
                let what = format!("{name}, {count} lines, {order}, such as {}", lines[0]);
                // An ObjectId consists of seconds and random bits, so the verdict `objectid` is
                // right for this kind.
                let is_right =
                    |told: &str| name == &"hex seconds and random bits" && told == "objectid";
                of_kind.add(&what, found.clone(), is_right);
                all.add(&what, found, is_right);
            }
        }
        kinds += 1;
        println!(
            "{name:44} {} untold, {} wrong",
            of_kind.untold,
            of_kind.wrong.len()
        );
    }
    println!(
        "{kinds} kinds, {} columns, {} wrong",
        all.all(),
        all.wrong.len()
    );
    all.wrong.iter().for_each(|wrong| println!("WRONG {wrong}"));
    assert!(all.wrong.is_empty() && kinds >= 95, "{kinds} kinds");
}

#[test]
fn small_columns_and_mixtures_are_told_or_cannot_be_told() {
    let formats = formats();
    let decoder = Decoder::new(formats.clone());
    let mut random = StdRng::seed_from_u64(38);
    let (mut small, mut mixed) = (
        BTreeMap::<usize, Tally>::new(),
        BTreeMap::<&str, Tally>::new(),
    );
    for format in &formats {
        for span in &SPANS {
            for count in [1, 2, 5, 20] {
                let lines = column_of(format, format.canonical(), count, 1, span, NOW, &mut random);
                let what = format!(
                    "{} of {}, {}, such as {}",
                    count, format.name, span.name, lines[0]
                );
                small
                    .entry(count)
                    .or_default()
                    .add(&what, judge(&decoder, &lines, NOW), |told| {
                        told == format.name
                    });
            }
        }
        let (of_a_day, of_last_year) = (&SPANS[2], &SPANS[6]);
        for other in &formats {
            for (name, span) in [
                ("of the same day", of_a_day),
                ("of last year", of_last_year),
            ] {
                let mut lines = column_of(
                    format,
                    format.canonical(),
                    990,
                    2,
                    of_a_day,
                    NOW,
                    &mut random,
                );
                let others = column_of(other, other.canonical(), 10, 1, span, NOW, &mut random);
                for text in others {
                    lines.insert(random.random_range(0..lines.len()), text);
                }
                let what = format!(
                    "{} with one in a hundred of {} {name}",
                    format.name, other.name
                );
                mixed
                    .entry(name)
                    .or_default()
                    .add(&what, judge(&decoder, &lines, NOW), |told| {
                        told == format.name
                    });
            }
        }
        let words = FOREIGN
            .iter()
            .filter(|(name, _)| ["words", "numbers of 64 bits", "hex of 32"].contains(name));
        for (name, draw) in words {
            let mut lines = column_of(
                format,
                format.canonical(),
                990,
                2,
                of_a_day,
                NOW,
                &mut random,
            );
            for text in draw(10, NOW.get(), &mut random) {
                lines.insert(random.random_range(0..lines.len()), text);
            }
            lines.insert(0, "order_id".to_owned());
            (0..50)
                .for_each(|_| lines.insert(random.random_range(1..lines.len()), "  ".to_owned()));
            let what = format!(
                "{} with a heading, blanks and one in a hundred of {name}",
                format.name
            );
            let found = judge(&decoder, &lines, NOW);
            mixed
                .entry(name)
                .or_default()
                .add(&what, found, |told| told == format.name);
        }
    }
    let (mut wrong, mut columns) = (0, 0);
    let named = small
        .into_iter()
        .map(|(count, tally)| (format!("{count} lines"), tally));
    for (name, tally) in named.chain(
        mixed
            .into_iter()
            .map(|(name, tally)| (format!("one in a hundred {name}"), tally)),
    ) {
        println!(
            "{name:40} {} right, {} untold, {} wrong",
            tally.right,
            tally.untold,
            tally.wrong.len()
        );
        tally
            .wrong
            .iter()
            .for_each(|wrong| println!("WRONG {wrong}"));
        (wrong, columns) = (wrong + tally.wrong.len(), columns + tally.all());
    }
    println!("{columns} columns, {wrong} wrong");
    assert!(wrong == 0 && columns > 2000, "{wrong} of {columns}");
}

#[test]
fn what_the_lines_have_in_common_is_counted() {
    let decoder = Decoder::new(formats());
    let decoder = decoder.at(NOW);
    let snowflake = Format::built_in("snowflake").unwrap();
    let ticks = snowflake
        .ticks_at(idmint_core::time::UnixTime::from(NOW))
        .unwrap()
        - 1_000_000;
    let id = |tick: u128, worker: u128| {
        snowflake
            .canonical()
            .to_text((ticks + tick * 777) << 22 | worker << 17)
    };
    let mut lines = vec!["id".to_owned()];
    lines.extend((0..1000).map(|at| id(at, at % 3)));
    lines[501] = "nonsense".to_owned();
    lines[701] = String::new();
    lines.push(id(4, 1));
    lines.push(id(4, 1));
    let mut column = IdColumn::default();
    let mut fingerprints: Vec<_> = lines
        .iter()
        .filter_map(|line| column.add(line, &decoder, DecodeFilter::default()))
        .collect();
    let verdict = column.judge(&decoder, DecodeFilter::default());
    let Finding::Told {
        candidate,
        certainty,
        ..
    } = verdict.finding
    else {
        panic!("{:?}", verdict.finding)
    };
    assert_eq!(
        (
            candidate.format.name.as_str(),
            certainty == Certainty::Named
        ),
        ("snowflake", false)
    );
    assert_eq!(
        (verdict.lines, verdict.blank, candidate.ids, candidate.none),
        (1002, 1, 1000, 2)
    );
    assert_eq!(
        (candidate.none_at.as_slice(), candidate.backwards),
        (&[1, 502][..], 1)
    );
    assert_eq!(candidate.workers.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
    let (from, to) = candidate.span.unwrap();
    assert_eq!(to.nanos() - from.nanos(), 999 * 777_000_000);
    assert_eq!(
        idmint_core::id::Fingerprint::count_repeated(&mut fingerprints),
        2
    );

    let named = DecodeFilter {
        format: Some("twitter"),
        ..DecodeFilter::default()
    };
    let mut column = IdColumn::default();
    for line in &lines {
        column.add(line, &decoder, named);
    }
    let verdict = column.judge(&decoder, named);
    assert!(
        matches!(
            verdict.finding,
            Finding::Told {
                certainty: Certainty::Named,
                ..
            }
        ),
        "{verdict:?}"
    );
}

#[test]
fn a_first_line_that_is_an_id_of_another_format_is_not_a_heading() {
    let decoder = Decoder::new(formats());
    let found = |lines: &[&str]| {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        judge(&decoder, &lines, NOW)
    };
    let [payment, uuid] = ["1I9ZC1000", "9b2e7c60-1f4a-4d83-a6b5-0c3f8e92d174"];
    let others = [
        "f81d4fae-7dec-41d0-8765-00a0c91e6bf6",
        "3b241101-e2bb-4255-8caf-4136c566a962",
    ];
    for lines in [
        vec![payment, uuid],
        vec![uuid, payment],
        vec![payment, uuid, others[0], others[1]],
        vec!["1573542478315782144", uuid, others[0]],
    ] {
        let Err((why, candidates)) = found(&lines) else {
            panic!("{lines:?}")
        };
        assert_eq!((why, candidates.len()), (Untold::NoFormat, 0), "{lines:?}");
    }
    for heading in ["id", "payment_id", "Order number", "transaction-reference"] {
        let lines = [heading, uuid, others[0], others[1]];
        let told = found(&lines).map(|(format, ..)| format);
        assert_eq!(told, Ok("uuid4".to_owned()), "{heading}");
    }
}

#[test]
fn layouts_that_are_not_known_here_are_not_told_to_be_others() {
    let decoder = Decoder::new(formats());
    let mut random = StdRng::seed_from_u64(39);
    let mut all = Tally::default();
    for _ in 0..600 {
        let (epoch, unit, rest_bits) = foreign::any_layout(&mut random);
        let lines = foreign::column_of_layout(epoch, unit, rest_bits, 300, NOW.get(), &mut random);
        let what = format!(
            "{unit} ns since {epoch} s, {rest_bits} bits below, such as {}",
            lines[0]
        );
        all.add(&what, judge(&decoder, &lines, NOW), |_| false);
    }
    println!(
        "{} columns of layouts and epochs drawn at random, {} wrong",
        all.all(),
        all.wrong.len()
    );
    all.wrong.iter().for_each(|wrong| println!("WRONG {wrong}"));
    assert!(all.wrong.is_empty());
}
