//! `GET /decode/{id}`.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Serialize;

use super::answer_parts::{AnswerParts, FieldParts, FormatParts};
use super::json_text::{JsonText, is_plain};
use crate::id::{
    DecodeFilter, Decoded, DecoderAt, DomainHash, Encoding, Field, FieldKind, Format, Match, Parts, Rule, Width,
};
use crate::time::Rfc3339Text;

/// What a text can be: `id`, `matches`, `ambiguous`, `rejected` and `did_you_mean`.
///
/// Borrows names, and spells ids only when it is written: most of an answer is both.
///
/// ```
/// use idmint::id::{Decoder, FormatDefinition, PRESETS, DecodeFilter};
/// use idmint::time::UnixNanos;
/// use idmint::wire::{AnswerParts, DecodeAnswer, KnownDomains};
///
/// let payment = PRESETS.iter().find(|preset| preset.name == "payment").expect("a built-in format");
/// let format = FormatDefinition::from_toml(payment.name, payment.toml)?.compile(payment.name)?;
/// let decoder = Decoder::new(vec![format.into()]);
/// let parts = AnswerParts::new(decoder.formats(), KnownDomains::new());
/// let decoder = decoder.at(UnixNanos::from_seconds(1_800_000_000));
/// let mut json = Vec::new();
/// DecodeAnswer::new("?", &decoder, DecodeFilter::default(), &parts).write_json(&mut json);
/// let none = r#"{"id":"?","matches":[],"ambiguous":false,"rejected":[{"format":"payment","reason":"bad_alphabet"}],"did_you_mean":[]}"#;
/// assert_eq!(String::from_utf8_lossy(&json), none);
/// # Ok::<(), idmint::id::FormatError>(())
/// ```
#[derive(Debug)]
pub struct DecodeAnswer<'a> {
    /// The text as it was given.
    pub id: &'a str,
    /// Every reading of it, and the formats that have none.
    pub decoded: Decoded<'a>,
    /// Ids that the text is near to, where it is none: without what stands around it, in the other case, with other
    /// separators.
    pub did_you_mean: Vec<String>,
    known: &'a AnswerParts,
}

/// One reading: a format and a spelling, and what the id carries.
#[derive(Debug)]
pub struct MatchReading<'a> {
    /// Format, spelling and number.
    pub found: Match<'a>,
    /// The number taken apart.
    pub parts: Parts<'a>,
    known: &'a AnswerParts,
}

/// One field of an id.
#[derive(Debug, Clone, Copy)]
pub struct FieldReading<'a> {
    /// Its name, and what it is for.
    pub field: &'a Field,
    /// Its value; time in ticks since the epoch.
    pub value: u128,
    /// How many values it has.
    pub width: Width,
    /// What the value stands for, where that is known.
    pub label: Option<&'a str>,
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
    /// What the decoder makes of `id`; `known` belongs to it.
    pub fn new(
        id: &'a str,
        decoder: &DecoderAt<'a>,
        filter: DecodeFilter<'_>,
        known: &'a AnswerParts,
    ) -> DecodeAnswer<'a> {
        let decoded = decoder.decode(id, filter);
        let did_you_mean = if decoded.matches.is_empty() { decoder.did_you_mean(id, filter) } else { Vec::new() };
        DecodeAnswer { id, decoded, did_you_mean, known }
    }

    /// Whether there is a reading.
    pub fn is_match(&self) -> bool {
        !self.decoded.matches.is_empty()
    }

    /// Every reading, the one with the most evidence first.
    pub fn readings(&self) -> impl Iterator<Item = MatchReading<'a>> {
        self.decoded.matches.iter().map(|found| MatchReading::new(*found, self.known))
    }

    /// The formats that have none.
    pub fn rejected(&self) -> impl Iterator<Item = RejectedFormat<'a>> {
        let rejected = self.decoded.rejected.iter();
        rejected.map(|(format, why)| RejectedFormat { format: &format.name, reason: why.code() })
    }

    /// Writes the answer as a JSON object to the end of `out`.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let mut json = JsonText(out);
        json.raw(r#"{"id":"#).string(self.id).raw(r#","matches":["#);
        let mut spellings = Spellings::default();
        for (at, reading) in self.readings().enumerate() {
            reading.write_json(json.raw(if at == 0 { "" } else { "," }), &mut spellings);
        }
        json.raw(r#"],"ambiguous":"#).raw(bool_name(self.decoded.is_ambiguous())).raw(r#","rejected":["#);
        for (at, rejected) in self.rejected().enumerate() {
            json.raw(if at == 0 { r#"{"format":"# } else { r#",{"format":"# });
            json.string(rejected.format).raw(r#","reason":""#).raw(rejected.reason).raw("\"}");
        }
        json.raw(r#"],"did_you_mean":["#);
        for (at, text) in self.did_you_mean.iter().enumerate() {
            json.raw(if at == 0 { "" } else { "," }).string(text);
        }
        json.raw("]}");
    }
}

impl<'a> MatchReading<'a> {
    /// This match taken apart.
    pub(super) fn new(found: Match<'a>, known: &'a AnswerParts) -> MatchReading<'a> {
        MatchReading { found, parts: found.parts(), known }
    }

    /// The instant it carries, in RFC 3339 with the digits that its tick has; `None` if it carries none, or one after the
    /// year 9999.
    pub fn time(&self) -> Option<Rfc3339Text> {
        self.parts.time?.rfc3339(self.found.format().tick.map_or(0, |tick| tick.second_digits()))
    }

    /// The same in whole seconds since 1970.
    pub fn unix_seconds(&self) -> Option<i128> {
        self.parts.time.map(|time| time.seconds())
    }

    /// The numbers that it carries, most significant first.
    pub fn fields(&self) -> impl Iterator<Item = FieldReading<'a>> {
        self.parts.numbers().map(|(field, value, width)| {
            let label = label_of(&self.found, field, value, &self.known.domains);
            FieldReading { field, value, width, label }
        })
    }

    /// How much likelier the text is as an id of this format than as a random text of its length and letters, in bits to
    /// one decimal place; below zero where it is less likely.
    pub fn evidence_bits(&self) -> f64 {
        (self.found.evidence_bits() * 10.0).round() / 10.0
    }

    /// Format and spelling, as the first members of an object.
    pub(super) fn write_head(&self, json: &mut JsonText<'_>) {
        json.raw(&self.format().heads[self.found.encoding_index()]);
    }

    /// An array of the fields.
    pub(super) fn write_fields(&self, json: &mut JsonText<'_>) {
        let parts = &self.format().layouts[self.found.variant_index()];
        for (FieldReading { value, label, .. }, FieldParts { before, after }) in self.fields().zip(parts) {
            json.raw(before).digits(value).raw(after).string_or_null(label).raw("}");
        }
        json.raw("]");
    }

    fn write_json(&self, json: &mut JsonText<'_>, spellings: &mut Spellings) {
        let found = &self.found;
        json.raw("{");
        self.write_head(json);
        let (number, canonical) = found.encodings().next().expect("a format has a spelling");
        spellings.write(number, canonical, found.id(), json.raw(r#","canonical":"#));
        json.raw(r#","value":""#).digits(found.id()).raw(r#"","time":"#).string_or_null(self.time().as_deref());
        json.raw(r#","time_unix_seconds":"#);
        match self.unix_seconds() {
            Some(seconds) => json.raw("\"").raw(itoa::Buffer::new().format(seconds)).raw("\""),
            None => json.raw("null"),
        };
        self.write_fields(json.raw(r#","fields":"#));
        json.raw(r#","encodings":{"#);
        for ((number, encoding), name) in found.encodings().zip(&self.format().names) {
            spellings.write(number, encoding, found.id(), json.raw(name));
        }
        json.raw(r#"},"plausible":"#).raw(bool_name(found.is_plausible()));
        json.raw(r#","evidence_bits":"#).number(self.evidence_bits()).raw("}");
    }

    fn format(&self) -> &'a FormatParts {
        &self.known.formats[self.found.format_index()]
    }
}

/// Where in an answer each spelling stands already: formats that share one spell the same id alike.
#[derive(Debug, Default)]
struct Spellings(Vec<Option<Spelled>>);

/// The id that was spelled last in one spelling, and where its text stands, in quotes.
#[derive(Debug, Clone)]
struct Spelled {
    id: u128,
    text: Range<usize>,
}

impl Spellings {
    /// Writes an id in the spelling of that number, in quotes.
    fn write(&mut self, number: usize, encoding: &Encoding, id: u128, JsonText(out): &mut JsonText<'_>) {
        if self.0.len() <= number {
            self.0.resize(number + 1, None);
        }
        if let Some(spelled) = self.0[number].as_ref().filter(|spelled| spelled.id == id) {
            return out.extend_from_within(spelled.text.clone());
        }
        let start = out.len();
        out.push(b'"');
        out.resize(start + 1 + encoding.len(id), b'"');
        encoding.write(id, &mut out[start + 1..]);
        if is_plain(&out[start + 1..]) {
            out.push(b'"');
        } else {
            let text = String::from_utf8(out.split_off(start + 1)).expect("spellings are ASCII");
            out.truncate(start);
            JsonText(out).string(&text);
        }
        self.0[number] = Some(Spelled { id, text: start..out.len() });
    }
}

const fn bool_name(is_so: bool) -> &'static str {
    if is_so { "true" } else { "false" }
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
