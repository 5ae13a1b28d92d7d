//! Compares decode responses byte by byte with the JSON that serde writes for the same results.
//!
//! The service writes responses by hand, from JSON that is prepared for each format. This test
//! builds each response in the simplest way instead. It tries every encoding separately, and has a
//! struct for every JSON object.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use idmint_core::id::{
    DecodeFilter, Decoder, DecoderAt, DomainHash, Encoding, Field, FieldKind, Format,
    FormatDefinition, Liberty, Match, PRESETS, Rejection, Rule,
};
use idmint_core::time::UnixNanos;
use idmint_wire::{AnswerParts, BriefReading, DecodeAnswer, FieldWidth, KnownDomains};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use idmint_testing::hostile_texts::Target;

const TEXTS: u32 = 20_000;

/// Beginnings of generated texts. Some are types or prefixes, and some only look like one.
const BEGINNINGS: [&str; 5] = ["user_", "pi_", "line_item_", "User_", "_"];

/// A format whose ids contain characters that must be escaped in JSON.
const QUOTED: &str = r#"
    summary = "letters that JSON escapes"
    rule = "decode-only"
    tick = "3600s"
    epoch = "1900-01-01T00:00:00Z"
    fields = [{ name = "time", kind = "time", bits = 30 }, { name = "worker", kind = "worker", cardinality = 3 }]
    encodings = [{ kind = "radix", alphabet = '"\ab' }, { kind = "hex", prefix = '"' }, "decimal"]
    labels = { 1 = "one\n\u0001\"", 2 = "zwei: ü" }
"#;

#[derive(Serialize)]
struct Answer<'a> {
    id: &'a str,
    matches: Vec<Reading<'a>>,
    ambiguous: bool,
    rejected: Vec<Rejected<'a>>,
    did_you_mean: Vec<String>,
    notes: Vec<NoteOfAnswer>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shaped_like: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unlikely: Vec<Unlikely<'a>>,
}

#[derive(Clone, Serialize)]
struct NoteOfAnswer {
    kind: &'static str,
    detail: String,
}

#[derive(Serialize)]
struct Unlikely<'a> {
    format: &'a str,
    encoding: &'a str,
    time: Option<String>,
    evidence_bits: f64,
    evidence: &'static str,
}

#[derive(Serialize)]
struct Reading<'a> {
    format: &'a str,
    encoding: &'a str,
    #[serde(flatten)]
    beginning: BTreeMap<&'static str, String>,
    canonical: String,
    value: String,
    time: Option<String>,
    time_unix_seconds: Option<String>,
    fields: Vec<FieldOfReading<'a>>,
    encodings: Box<RawValue>,
    plausible: bool,
    evidence_bits: f64,
    evidence: &'static str,
}

#[derive(Serialize)]
struct Brief<'a> {
    id: &'a str,
    format: Option<&'a str>,
    encoding: Option<&'a str>,
    #[serde(flatten)]
    beginning: BTreeMap<&'static str, String>,
    time: Option<String>,
    fields: Vec<FieldOfReading<'a>>,
    ambiguous: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    did_you_mean: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<NoteOfAnswer>,
}

#[derive(Serialize)]
struct FieldOfReading<'a> {
    name: &'a str,
    kind: FieldKind,
    value: String,
    width: FieldWidth,
    label: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
struct Rejected<'a> {
    format: &'a str,
    reason: Rejection,
}

fn label<'a>(
    found: &Match<'a>,
    field: &Field,
    value: u128,
    domains: &'a KnownDomains,
) -> Option<Cow<'a, str>> {
    let format = found.format();
    let name = match field.kind {
        FieldKind::Ledger if format.rule == Rule::Chained => {
            return Some(format!("{:08x}", found.id() & 0xffff_ffff).into());
        }
        FieldKind::Qualifier => Some(
            format
                .variant_of(found.id())
                .name
                .as_deref()
                .unwrap_or("unassigned"),
        ),
        FieldKind::Worker => format.labels.get(&value).map(String::as_str),
        FieldKind::Object if format.rule == Rule::Sequenced => {
            let known = domains
                .iter()
                .find(|(hash, _)| u128::from(**hash) == value)
                .map(|(_, name)| name.as_str());
            known.or((value == u128::from(DomainHash::DEVELOPMENT.get())).then_some("development"))
        }
        _ => None,
    };
    name.map(Cow::from)
}

/// Returns the encodings as a JSON object in the order of the format. A map of serde_json would not
/// keep this order.
fn encodings(format: &Format, prefix: &str, id: u128) -> Box<RawValue> {
    let member = |(at, encoding): (usize, &Encoding)| {
        let text = format!(
            "{}{}",
            if at == 0 { prefix } else { "" },
            encoding.to_text(id)
        );
        format!("{}:{}", Value::from(encoding.name()), Value::from(text))
    };
    let members: Vec<_> = format.encodings.iter().enumerate().map(member).collect();
    RawValue::from_string(format!("{{{}}}", members.join(","))).unwrap()
}

fn time(found: &Match<'_>) -> Option<String> {
    let digits = found.format().tick.map_or(0, |tick| tick.second_digits());
    found
        .format()
        .split(found.id())
        .unwrap()
        .time?
        .to_text(digits)
}

fn fields<'a>(found: &Match<'a>, domains: &'a KnownDomains) -> Vec<FieldOfReading<'a>> {
    let parts = found.format().split(found.id()).unwrap();
    let fields = parts.numbers().map(|(field, value, width)| FieldOfReading {
        name: &field.name,
        kind: field.kind,
        value: value.to_string(),
        width: width.into(),
        label: label(found, field, value, domains),
    });
    fields.collect()
}

/// Returns the type or the prefix with which the text begins, if the format has it.
fn beginning(found: &Match<'_>, text: &str) -> BTreeMap<&'static str, String> {
    let prefix = &text[..found.prefix_len()];
    let is_canonical = found.encoding().name() == found.format().canonical().name();
    let told = match (is_canonical, found.format().prefixes.are_types()) {
        (false, _) => None,
        (true, true) => Some(("type", prefix.trim_end_matches('_').to_owned())),
        (true, false) => {
            Some(("prefix", prefix.to_owned())).filter(|(_, prefix)| !prefix.is_empty())
        }
    };
    told.into_iter().collect()
}

fn reading<'a>(found: &Match<'a>, text: &str, domains: &'a KnownDomains) -> Reading<'a> {
    let prefix = &text[..found.prefix_len()];
    let (format, id) = (found.format(), found.id());
    let parts = format.split(id).unwrap();
    Reading {
        format: &format.name,
        encoding: found.encoding().name(),
        beginning: beginning(found, text),
        canonical: format!("{prefix}{}", format.canonical().to_text(id)),
        value: id.to_string(),
        time: time(found),
        time_unix_seconds: parts
            .time
            .map(|time| time.nanos().div_euclid(1_000_000_000).to_string()),
        fields: fields(found, domains),
        encodings: encodings(format, prefix, id),
        plausible: found.is_plausible(),
        evidence_bits: (found.evidence_bits() * 10.0).round() / 10.0,
        evidence: evidence(found),
    }
}

/// Reads a text in an encoding. The empty text is never an id.
fn read(encoding: &Encoding, text: &str) -> Result<u128, Rejection> {
    encoding.read(text).and_then(|id| {
        if text.is_empty() {
            Err(Rejection::WrongLength)
        } else {
            Ok(id)
        }
    })
}

fn is_told(text: &str, best: &Match<'_>) -> bool {
    let is_canonical = best.encoding().name() == best.format().canonical().name();
    let has_a_length = best.encoding().fixed_len().is_some() || text.len() >= 15;
    best.evidence_bits() >= bits_min(text, is_canonical, has_a_length)
}

/// Returns the minimum evidence, in bits, that a reading needs to be reported if the caller has
/// named neither the format nor the encoding.
fn bits_min(text: &str, is_canonical: bool, has_a_length: bool) -> f64 {
    let has = |is: fn(&u8) -> bool| text.as_bytes().iter().any(is);
    let is_mixed = has(u8::is_ascii_alphabetic) && has(u8::is_ascii_digit);
    match text.len() < 20 && !is_mixed {
        true if !is_canonical => -9.0,
        true if has_a_length => -16.0,
        true => -4.0,
        false if is_canonical => -24.0,
        false => -29.0,
    }
}

fn evidence(found: &Match<'_>) -> &'static str {
    if found.is_unlikely() {
        return "hardly any";
    }
    let words = [(-4.0, "weak"), (4.0, "fair"), (20.0, "good")];
    words
        .iter()
        .find(|(below, _)| found.evidence_bits() < *below)
        .map_or("strong", |(_, words)| words)
}

fn unlikely<'a>(found: &Match<'a>) -> Unlikely<'a> {
    let evidence_bits = (found.evidence_bits() * 10.0).round() / 10.0;
    let (format, encoding) = (&found.format().name, found.encoding().name());
    Unlikely {
        format,
        encoding,
        time: time(found),
        evidence_bits,
        evidence: evidence(found),
    }
}

/// Tries each encoding of each format by itself. Asserts that each successful reading is a match.
/// Also asserts that each format without a match has the reason of the encoding that the text
/// resembles most.
fn assert_decoded(decoder: &Decoder, at: &DecoderAt<'_>, text: &str, filter: DecodeFilter<'_>) {
    let decoded = at.decode(text, filter);
    let mut found: BTreeMap<_, _> = decoded
        .matches
        .iter()
        .map(|found| {
            (
                (found.format().name.as_str(), found.encoding().name()),
                found.id(),
            )
        })
        .collect();
    assert_eq!(found.len(), decoded.matches.len(), "{text:?}");
    let mut rejected = decoded.rejected.iter();
    for format in decoder
        .formats()
        .iter()
        .filter(|format| filter.format.is_none_or(|name| name == format.name))
    {
        let tried = format
            .encodings
            .iter()
            .filter(|encoding| filter.encoding.is_none_or(|name| name == encoding.name()));
        let mut reasons = Vec::new();
        let (mut is_tried, mut is_read) = (false, false);
        for encoding in tried {
            is_tried = true;
            match read(encoding, text).and_then(|id| format.split(id).map(|_| id)) {
                Ok(id) => {
                    is_read = true;
                    assert_eq!(
                        found.remove(&(&*format.name, encoding.name())),
                        Some(id),
                        "{text:?}"
                    );
                }
                Err(why) => reasons.push(why),
            }
        }
        let canonical = Some(format.canonical());
        let canonical = canonical
            .filter(|canonical| filter.encoding.is_none_or(|name| name == canonical.name()));
        let behind = canonical.and_then(|canonical| format.prefixes.read(text, canonical));
        let behind = behind.map(|read| match read? {
            (_, id) if id > format.greatest() => Err(Rejection::OutOfRange),
            (_, id) => format.split(id).map(|_| id),
        });
        if let Some(Ok(id)) = behind {
            is_read = true;
            assert_eq!(
                found.remove(&(&*format.name, format.canonical().name())),
                Some(id),
                "{text:?}"
            );
        }
        if let (Some(Err(expected)), false) = (behind, is_read) {
            let (of, why) = rejected
                .next()
                .unwrap_or_else(|| panic!("{} and {text:?}", format.name));
            assert_eq!(
                (&of.name, *why),
                (&format.name, expected),
                "{text:?}: what is behind the prefix says why"
            );
        } else if is_tried && !is_read {
            let (of, why) = rejected
                .next()
                .unwrap_or_else(|| panic!("{} and {text:?}", format.name));
            // Treat a text of the wrong length as equally similar to an id as a text with wrong
            // letters, like the decoder.
            let nearness =
                |why: &Rejection| why.nearness() + u8::from(*why == Rejection::WrongLength);
            let nearest = reasons.iter().map(nearness).max();
            assert_eq!(
                (&of.name, Some(nearness(why))),
                (&format.name, nearest),
                "{text:?}: {why} of {reasons:?}"
            );
            assert!(reasons.contains(why), "{text:?}: {why} of {reasons:?}");
        }
    }
    assert!(
        found.is_empty() && rejected.next().is_none(),
        "{text:?}: {found:?}"
    );
}

fn assert_answers(
    at: &DecoderAt<'_>,
    parts: &AnswerParts,
    domains: &KnownDomains,
    text: &str,
    filter: DecodeFilter<'_>,
) {
    let decoded = at.decode(text, filter);
    let is_pinned = filter.format.is_some() || filter.encoding.is_some();
    let did_you_mean = match decoded.matches.first() {
        Some(best)
            if best.is_plausible()
                && (is_pinned || decoded.matches.iter().any(|found| is_told(text, found))) =>
        {
            None
        }
        _ => Some(at.did_you_mean(text, filter)),
    };
    let shaped_like = match &did_you_mean {
        Some(near) if near.is_empty() => at.shaped_like(text, filter),
        _ => Vec::new(),
    };
    let shaped_like = shaped_like.iter().map(|shape| shape.name).collect();
    let is_told = is_pinned
        || decoded.matches.iter().any(|found| is_told(text, found))
        || decoded.matches.is_empty();
    let is_ambiguous = decoded.is_ambiguous();
    let (matches, withheld) = if is_told {
        (decoded.matches, Vec::new())
    } else {
        (Vec::new(), decoded.matches)
    };
    let notes: Vec<NoteOfAnswer> = at
        .notes(text, matches.first())
        .into_iter()
        .map(|note| NoteOfAnswer {
            kind: note.kind.name(),
            detail: note.detail,
        })
        .collect();
    let expected = Answer {
        id: text,
        matches: matches
            .iter()
            .map(|found| reading(found, text, domains))
            .collect(),
        ambiguous: is_told && is_ambiguous,
        rejected: decoded
            .rejected
            .iter()
            .map(|(of, why)| Rejected {
                format: &of.name,
                reason: *why,
            })
            .collect(),
        did_you_mean: did_you_mean.clone().unwrap_or_default(),
        notes: notes.clone(),
        shaped_like,
        unlikely: withheld.iter().map(unlikely).collect(),
    };
    let mut written = Vec::new();
    DecodeAnswer::new(text, at, filter, parts).write_json(&mut written);
    assert_eq!(
        String::from_utf8(written).unwrap(),
        serde_json::to_string(&expected).unwrap()
    );

    let best = matches.first();
    let expected = Brief {
        id: text,
        format: best.map(|best| best.format().name.as_str()),
        encoding: best.map(|best| best.encoding().name()),
        beginning: best.map(|best| beginning(best, text)).unwrap_or_default(),
        time: best.and_then(time),
        fields: best.map(|best| fields(best, domains)).unwrap_or_default(),
        ambiguous: is_told && is_ambiguous,
        did_you_mean: did_you_mean.unwrap_or_default(),
        notes,
    };
    let mut written = Vec::new();
    BriefReading::new(text, at, filter, parts).write_json(&mut written);
    assert_eq!(
        String::from_utf8(written).unwrap(),
        serde_json::to_string(&expected).unwrap()
    );
}

#[test]
fn every_answer_is_what_serde_makes_of_its_parts() {
    let compiled = |name: &str, toml: &str| {
        FormatDefinition::from_toml(name, toml)
            .unwrap()
            .compile(name)
            .unwrap()
    };
    let mut formats: Vec<_> = PRESETS
        .iter()
        .map(|preset| Arc::new(compiled(preset.name, preset.toml)))
        .collect();
    formats.push(Arc::new(compiled("quoted", QUOTED)));
    let instagram = PRESETS
        .iter()
        .find(|preset| preset.name == "instagram")
        .unwrap();
    let prefixed = format!("prefixes = ['pi_', 'user_']\n{}", instagram.toml);
    formats.push(Arc::new(compiled("prefixed", &prefixed)));
    let decoder = Decoder::new(formats);
    let domains = KnownDomains::from([
        (3, "a \"b\" \\ c".to_owned()),
        (u32::MAX, "é\n\u{7f}\u{2028}".to_owned()),
    ]);
    let parts = AnswerParts::new(decoder.formats(), domains.clone());

    let mut random = StdRng::seed_from_u64(5);
    let targets = Target::all_of(
        decoder.formats().iter().map(|format| &**format),
        &mut random,
    );
    let mut text = String::new();
    for _ in 0..TEXTS {
        // Decode at any time from before the first epoch to after the last tick of most formats.
        let at = decoder.at(UnixNanos::new(random.random_range(0..=u64::MAX)));
        let target = &targets[random.random_range(0..targets.len())];
        target.draw(&mut random, &mut text);
        if random.random_ratio(1, 8) {
            text.insert_str(0, BEGINNINGS[random.random_range(0..BEGINNINGS.len())]);
        }
        let filter = DecodeFilter {
            among: None,
            liberty: Liberty::Canonical,
            format: random.random_ratio(1, 8).then_some(&target.format.name),
            encoding: random.random_ratio(1, 8).then_some(target.encoding.name()),
        };
        assert_decoded(&decoder, &at, &text, filter);
        assert_answers(&at, &parts, &domains, &text, filter);
    }
}
