//! `GET /decode/{id}`.

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::formats::FieldWidth;
use crate::id::{Decoded, DecoderAt, DomainHash, Field, FieldKind, Format, Match, Parts, Pin, Rule};

/// What a text can be. Borrows names and spells ids only when it is written: most of an answer is both.
#[derive(Debug, Serialize)]
pub struct DecodeAnswer<'a> {
    /// The text as it was given.
    pub id: &'a str,
    /// Every reading of it, the one with the most evidence first.
    pub matches: Vec<MatchReading<'a>>,
    /// Whether another reading has nearly as much evidence as the first: at most 4 bits less.
    pub ambiguous: bool,
    /// The formats that have none.
    pub rejected: Vec<RejectedFormat<'a>>,
    /// Ids that the text is near to, where it is none: without what stands around it, in the other case, with other
    /// separators.
    pub did_you_mean: Vec<String>,
}

/// One reading: a format and a spelling.
#[derive(Debug, Serialize)]
pub struct MatchReading<'a> {
    /// The format.
    pub format: &'a str,
    /// The spelling that was given.
    pub encoding: &'a str,
    /// The same id in the format's canonical spelling.
    pub canonical: String,
    /// The id as a number.
    pub value: Decimal,
    /// The instant it carries, in RFC 3339; null if it carries none, or one after the year 9999.
    pub time: Option<String>,
    /// The same in whole seconds since 1970.
    pub time_unix_seconds: Option<String>,
    /// Its fields, most significant first.
    pub fields: Vec<FieldReading<'a>>,
    /// The same id in every spelling of the format.
    pub encodings: Spellings<'a>,
    /// Whether the instant is not further in the future than the format allows for.
    pub plausible: bool,
    /// How much likelier the text is as an id of this format than as a random text of its length and letters, in bits to
    /// one decimal place; below zero where it is less likely.
    pub evidence_bits: f64,
}

/// One field of an id.
#[derive(Debug, Serialize)]
pub struct FieldReading<'a> {
    /// The field's name.
    pub name: &'a str,
    /// What it is for.
    pub kind: FieldKind,
    /// Its value; time in ticks since the epoch.
    pub value: Decimal,
    /// How many values it has.
    pub width: FieldWidth,
    /// What the value stands for, where that is known.
    pub label: Option<&'a str>,
}

/// A number as a string of decimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal(pub u128);

/// An id in every spelling of its format: an object of texts, the canonical one first.
#[derive(Debug, Clone, Copy)]
pub struct Spellings<'a> {
    format: &'a Format,
    id: u128,
}

/// A format that the text is not an id of.
#[derive(Debug, Serialize)]
pub struct RejectedFormat<'a> {
    /// The format.
    pub format: &'a str,
    /// Why not, as one word: `wrong_length`, `bad_alphabet`, ….
    pub reason: &'static str,
}

/// No text is longer where many are decoded at once, in bytes; far longer than any id, and what an address can hold.
pub const DECODED_LEN_MAX: usize = 8 * 1024;

/// The domains that a deployment knows, by their hashes.
pub type KnownDomains = BTreeMap<u32, String>;

impl<'a> DecodeAnswer<'a> {
    /// What the decoder makes of `id`.
    pub fn new(id: &'a str, decoder: &DecoderAt<'a>, pin: Pin<'_>, domains: &'a KnownDomains) -> DecodeAnswer<'a> {
        let decoded = decoder.decode(id, pin);
        DecodeAnswer {
            id,
            did_you_mean: if decoded.matches.is_empty() { decoder.did_you_mean(id, pin) } else { Vec::new() },
            ambiguous: decoded.is_ambiguous(),
            rejected: RejectedFormat::all(&decoded),
            matches: decoded.matches.iter().map(|found| MatchReading::new(found, domains)).collect(),
        }
    }
}

impl<'a> RejectedFormat<'a> {
    /// Every format that has no reading, with its reason.
    fn all(decoded: &Decoded<'a>) -> Vec<RejectedFormat<'a>> {
        let rejected = decoded.rejected.iter();
        rejected.map(|(format, why)| RejectedFormat { format: &format.name, reason: why.code() }).collect()
    }
}

impl<'a> MatchReading<'a> {
    fn new(found: &Match<'a>, domains: &'a KnownDomains) -> MatchReading<'a> {
        let (format, id, parts) = (found.format(), found.id(), found.parts());
        MatchReading {
            format: &format.name,
            encoding: found.encoding().name(),
            canonical: format.canonical().to_text(id),
            value: Decimal(id),
            time: time_of(format, &parts),
            time_unix_seconds: parts.time.map(|time| time.seconds().to_string()),
            fields: FieldReading::all(found, &parts, domains).collect(),
            encodings: Spellings { format, id },
            plausible: found.is_plausible(),
            evidence_bits: (found.evidence_bits() * 10.0).round() / 10.0,
        }
    }
}

impl<'a> FieldReading<'a> {
    /// The numbers that an id carries.
    pub(super) fn all(
        found: &Match<'a>,
        parts: &Parts<'a>,
        domains: &'a KnownDomains,
    ) -> impl Iterator<Item = FieldReading<'a>> {
        parts.numbers().map(|(field, value, width)| FieldReading {
            name: &field.name,
            kind: field.kind,
            value: Decimal(value),
            width: width.into(),
            label: label_of(found, field, value, domains),
        })
    }
}

impl Serialize for Spellings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(Some(self.format.encodings.len()))?;
        let mut text = Vec::with_capacity(64);
        for encoding in &self.format.encodings {
            text.resize(encoding.len(self.id), 0);
            encoding.write(self.id, &mut text);
            members.serialize_entry(encoding.name(), str::from_utf8(&text).expect("spellings are ASCII"))?;
        }
        members.end()
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(itoa::Buffer::new().format(self.0))
    }
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(itoa::Buffer::new().format(self.0))
    }
}

/// The instant of an id with the digits that its tick has; `None` where there is none, or RFC 3339 cannot write it.
pub(super) fn time_of(format: &Format, parts: &Parts<'_>) -> Option<String> {
    parts.time?.to_text(format.tick.map_or(0, |tick| tick.second_digits()))
}

/// What the value of a field stands for, where that is known.
fn label_of<'a>(found: &Match<'a>, field: &Field, value: u128, domains: &'a KnownDomains) -> Option<&'a str> {
    let format = found.format();
    match field.kind {
        FieldKind::Qualifier => Some(format.variant_of(found.id()).name.as_deref().unwrap_or("unassigned")),
        FieldKind::Worker => format.labels.get(&value).map(String::as_str),
        FieldKind::Object => domain_label(format, value, domains),
        _ => None,
    }
}

/// The domain whose hash this is. Only a sequenced format hashes domains: other objects are catalogue numbers.
fn domain_label<'a>(format: &Format, value: u128, domains: &'a KnownDomains) -> Option<&'a str> {
    if format.rule != Rule::Sequenced {
        return None;
    }
    let hash = u32::try_from(value).ok()?;
    let development = || (hash == DomainHash::DEVELOPMENT.get()).then_some("development");
    domains.get(&hash).map(String::as_str).or_else(development)
}
