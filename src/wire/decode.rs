//! `GET /decode/{id}`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::formats::FieldWidth;
use crate::id::{Decoded, DecoderAt, DomainHash, Field, FieldKind, Format, Match, Parts, Pin, Rule};

/// What a text can be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecodeAnswer {
    /// The text as it was given.
    pub id: String,
    /// Every reading of it, the one with the most evidence first.
    pub matches: Vec<MatchReading>,
    /// Whether another reading has nearly as much evidence as the first: less than 4 bits below it.
    pub ambiguous: bool,
    /// The formats that have none.
    pub rejected: Vec<RejectedFormat>,
    /// Ids that the text is near to, where it is none: without what stands around it, in the other case, with other
    /// separators.
    pub did_you_mean: Vec<String>,
}

/// One reading: a format and a spelling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatchReading {
    /// The format.
    pub format: String,
    /// The spelling that was given.
    pub encoding: String,
    /// The same id in the format's canonical spelling.
    pub canonical: String,
    /// The id as a number.
    pub value: String,
    /// The instant it carries, in RFC 3339; null if it carries none, or one after the year 9999.
    pub time: Option<String>,
    /// The same in whole seconds since 1970.
    pub time_unix_seconds: Option<String>,
    /// Its fields, most significant first.
    pub fields: Vec<FieldReading>,
    /// The same id in every spelling of the format.
    pub encodings: BTreeMap<String, String>,
    /// Whether the instant is not further in the future than the format allows for.
    pub plausible: bool,
    /// How much likelier the text is as an id of this format than as a random text of its length and letters, in bits to
    /// one decimal place; below zero where it is less likely.
    pub evidence_bits: f64,
}

/// One field of an id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldReading {
    /// The field's name.
    pub name: String,
    /// What it is for.
    pub kind: FieldKind,
    /// Its value; time in ticks since the epoch.
    pub value: String,
    /// How many values it has.
    pub width: FieldWidth,
    /// What the value stands for, where that is known.
    pub label: Option<String>,
}

/// A format that the text is not an id of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedFormat {
    /// The format.
    pub format: String,
    /// Why not, as one word: `wrong_length`, `bad_alphabet`, ….
    pub reason: String,
}

/// No text is longer where many are decoded at once, in bytes; far longer than any id, and what an address can hold.
pub const DECODED_LEN_MAX: usize = 8 * 1024;

/// The domains that a deployment knows, by their hashes.
pub type KnownDomains = BTreeMap<u32, String>;

impl DecodeAnswer {
    /// What the decoder makes of `id`.
    pub fn new(id: &str, decoder: &DecoderAt<'_>, pin: Pin<'_>, domains: &KnownDomains) -> DecodeAnswer {
        let decoded = decoder.decode(id, pin);
        let matches: Vec<_> = decoded.matches.iter().map(|found| MatchReading::new(found, domains)).collect();
        DecodeAnswer {
            id: id.to_owned(),
            did_you_mean: if matches.is_empty() { decoder.did_you_mean(id, pin) } else { Vec::new() },
            ambiguous: decoded.is_ambiguous(),
            rejected: RejectedFormat::all(&decoded),
            matches,
        }
    }
}

impl RejectedFormat {
    /// Every format that has no reading, with its reason.
    fn all(decoded: &Decoded) -> Vec<RejectedFormat> {
        let rejected = decoded.rejected.iter();
        rejected
            .map(|(format, why)| RejectedFormat { format: format.name.clone(), reason: why.code().to_owned() })
            .collect()
    }
}

impl MatchReading {
    fn new(found: &Match, domains: &KnownDomains) -> MatchReading {
        let format = found.format();
        let id = found.id();
        let parts = found.parts();
        let fields = parts.numbers().map(|(field, value, width)| {
            let label = label_of(found, field, value, domains).map(str::to_owned);
            let (name, value) = (field.name.clone(), value.to_string());
            FieldReading { name, kind: field.kind, value, width: width.into(), label }
        });
        MatchReading {
            format: format.name.clone(),
            encoding: found.encoding().name().to_owned(),
            canonical: format.canonical().to_text(id),
            value: id.to_string(),
            time: time_of(format, &parts),
            time_unix_seconds: parts.time.map(|time| time.seconds().to_string()),
            fields: fields.collect(),
            encodings: format
                .encodings
                .iter()
                .map(|spelling| (spelling.name().to_owned(), spelling.to_text(id)))
                .collect(),
            plausible: found.is_plausible(),
            evidence_bits: (found.evidence_bits() * 10.0).round() / 10.0,
        }
    }
}

/// The instant of an id with the digits that its tick has; `None` where there is none, or RFC 3339 cannot write it.
pub(super) fn time_of(format: &Format, parts: &Parts<'_>) -> Option<String> {
    parts.time?.to_text(format.tick.map_or(0, |tick| tick.second_digits()))
}

/// What the value of a field stands for, where that is known.
pub(super) fn label_of<'a>(found: &'a Match, field: &Field, value: u128, domains: &'a KnownDomains) -> Option<&'a str> {
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
