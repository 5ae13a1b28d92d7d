//! One reading of a text: the part that answers in full, in brief and drawings share.

use std::borrow::Cow;

use super::answer_parts::{AnswerParts, FieldParts, FormatParts, KnownDomains};
use super::json_text::JsonText;
use super::written_ids::WrittenIds;
use crate::id::{DomainHash, Field, FieldKind, Format, Match, Parts, Rule, Width};
use crate::ledger::EventId;
use crate::time::Rfc3339Text;

/// One reading of a text: format and encoding, and the fields of the id.
#[derive(Debug)]
pub struct MatchReading<'a> {
    /// Format, encoding and number.
    pub found: Match<'a>,
    /// The values of the fields.
    pub parts: Parts<'a>,
    /// What stands before the text that the encoding wrote; empty where nothing does.
    prefix: Cow<'a, str>,
    known: &'a AnswerParts,
}

/// One field of an id.
#[derive(Debug, Clone, Copy)]
pub struct FieldReading<'a> {
    /// Its name and its kind.
    pub field: &'a Field,
    /// Its value; time in ticks since the epoch.
    pub value: u128,
    /// The number of its values.
    pub width: Width,
    /// The name of the value, if it has one.
    pub label: Option<Label<'a>>,
}

/// The name of a value.
#[derive(Debug, Clone, Copy)]
pub enum Label<'a> {
    /// One that is known beforehand.
    Known(&'a str),
    /// A ledger, by the digits that callers name it by.
    Ledger([u8; 8]),
}

impl Label<'_> {
    /// As text.
    pub fn as_str(&self) -> &str {
        match self {
            Label::Known(name) => name,
            Label::Ledger(digits) => str::from_utf8(digits).expect("hexadecimal digits"),
        }
    }
}

impl<'a> MatchReading<'a> {
    /// The reading of `text` as this match.
    pub(super) fn new(found: Match<'a>, text: &'a str, known: &'a AnswerParts) -> MatchReading<'a> {
        let prefix = Cow::Borrowed(&text[..found.prefix_len()]);
        MatchReading {
            found,
            parts: found.parts(),
            prefix,
            known,
        }
    }

    /// The same of a text that is not kept.
    pub(super) fn of_made_text(
        found: Match<'a>,
        text: &str,
        known: &'a AnswerParts,
    ) -> MatchReading<'a> {
        let prefix = Cow::Owned(text[..found.prefix_len()].to_owned());
        MatchReading {
            found,
            parts: found.parts(),
            prefix,
            known,
        }
    }

    /// What the text begins with, by what it is called: the `type` of a format of types, empty where the text has none, or
    /// the `prefix` where there is one. `None` for any other text, and in encodings that do not have it.
    pub fn beginning(&self) -> Option<(&'static str, &str)> {
        if self.found.encoding_index() > 0 {
            return None;
        }
        match self.found.format().prefixes.type_of(&self.prefix) {
            Some(of_type) => Some(("type", of_type)),
            None if self.prefix.is_empty() => None,
            None => Some(("prefix", &self.prefix)),
        }
    }

    /// The canonical text, behind what the text begins with.
    pub fn canonical(&self) -> String {
        format!(
            "{}{}",
            self.prefix,
            self.found.format().canonical().to_text(self.found.id())
        )
    }

    /// The instant it carries, in RFC 3339 with the digits that its tick has; `None` if it carries none, or one after the
    /// year 9999.
    pub fn time(&self) -> Option<Rfc3339Text> {
        self.parts.time?.rfc3339(
            self.found
                .format()
                .tick
                .map_or(0, |tick| tick.second_digits()),
        )
    }

    /// The instant it carries, in whole seconds since 1970.
    pub fn unix_seconds(&self) -> Option<i128> {
        self.parts.time.map(|time| time.seconds())
    }

    /// The fields, most significant first.
    pub fn fields(&self) -> impl Iterator<Item = FieldReading<'a>> {
        self.parts.numbers().map(|(field, value, width)| {
            let label = label_of(&self.found, field, value, &self.known.domains);
            FieldReading {
                field,
                value,
                width,
                label,
            }
        })
    }

    /// How much likelier the text is as an id of this format than as a random text of its length and letters, in bits to
    /// one decimal place; below zero where it is less likely.
    pub fn evidence_bits(&self) -> f64 {
        (self.found.evidence_bits() * 10.0).round() / 10.0
    }

    /// The same in words: `strong` from 20 bits on, `good` from 4, `fair` down to -4, `weak` as long as it counts, and `hardly
    /// any` below.
    pub fn evidence(&self) -> &'static str {
        match self.found.evidence_bits() {
            _ if self.found.is_unlikely() => "hardly any",
            20.0.. => "strong",
            4.0.. => "good",
            -4.0.. => "fair",
            _ => "weak",
        }
    }

    /// Writes the reading in a few members, for one that is withheld.
    pub(super) fn write_in_short(&self, json: &mut JsonText<'_>) {
        json.raw("{");
        self.write_head(json);
        json.raw(r#","time":"#)
            .string_or_null(self.time().as_deref());
        self.write_evidence(json);
        json.raw("}");
    }

    fn write_evidence(&self, json: &mut JsonText<'_>) {
        json.raw(r#","evidence_bits":"#)
            .number(self.evidence_bits())
            .raw(r#","evidence":""#);
        json.raw(self.evidence()).raw("\"");
    }

    /// Writes format and encoding, the first members of an object.
    pub(super) fn write_head(&self, json: &mut JsonText<'_>) {
        json.raw(&self.format().heads[self.found.encoding_index()]);
    }

    /// Writes the array of the fields.
    pub(super) fn write_fields(&self, json: &mut JsonText<'_>) {
        let parts = &self.format().layouts[self.found.variant_index()];
        for (FieldReading { value, label, .. }, FieldParts { before, after }) in
            self.fields().zip(parts)
        {
            json.raw(before)
                .digits(value)
                .raw(after)
                .string_or_null(label.as_ref().map(Label::as_str))
                .raw("}");
        }
        json.raw("]");
    }

    pub(super) fn write_json(&self, json: &mut JsonText<'_>, written_ids: &mut WrittenIds) {
        json.raw("{");
        self.write_head(json);
        self.write_id(json, written_ids);
        json.raw(r#","plausible":"#).bool(self.found.is_plausible());
        self.write_evidence(json);
        json.raw("}");
    }

    /// Writes the members that say what the id is: what its text begins with, its number, time, fields and encodings.
    pub(super) fn write_id(&self, json: &mut JsonText<'_>, written_ids: &mut WrittenIds) {
        let found = &self.found;
        self.write_beginning(json);
        self.write_text(0, written_ids, json.raw(r#","canonical":"#));
        json.raw(r#","value":""#)
            .digits(found.id())
            .raw(r#"","time":"#)
            .string_or_null(self.time().as_deref());
        json.raw(r#","time_unix_seconds":"#);
        match self.unix_seconds() {
            Some(seconds) => json
                .raw("\"")
                .raw(itoa::Buffer::new().format(seconds))
                .raw("\""),
            None => json.raw("null"),
        };
        self.write_fields(json.raw(r#","fields":"#));
        json.raw(r#","encodings":{"#);
        for (at, name) in self.format().names.iter().enumerate() {
            self.write_text(at, written_ids, json.raw(name));
        }
        json.raw("}");
    }

    /// Writes the member `type` or `prefix`, if the text begins with such.
    pub(super) fn write_beginning(&self, json: &mut JsonText<'_>) {
        if let Some((name, value)) = self.beginning() {
            json.raw(",\"").raw(name).raw("\":").string(value);
        }
    }

    /// Writes the id in the encoding at that position.
    fn write_text(&self, at: usize, written_ids: &mut WrittenIds, json: &mut JsonText<'_>) {
        if at == 0 && !self.prefix.is_empty() {
            json.string(&self.canonical());
            return;
        }
        let (number, encoding) = self.found.encoding_at(at);
        written_ids.write(number, encoding, self.found.id(), json);
    }

    fn format(&self) -> &'a FormatParts {
        &self.known.formats[self.found.format_index()]
    }
}

/// The name of the value of a field, if it has one.
fn label_of<'a>(
    found: &Match<'a>,
    field: &Field,
    value: u128,
    domains: &'a KnownDomains,
) -> Option<Label<'a>> {
    let format = found.format();
    match field.kind {
        FieldKind::Qualifier => Some(Label::Known(
            format
                .variant_of(found.id())
                .name
                .as_deref()
                .unwrap_or("unassigned"),
        )),
        FieldKind::Worker => format
            .labels
            .get(&value)
            .map(String::as_str)
            .map(Label::Known),
        FieldKind::Object => domain_label(format, value, domains).map(Label::Known),
        // The digits hold the version, too, so the number alone is not what a ledger is called.
        FieldKind::Ledger if format.rule == Rule::Chained => {
            EventId::from_value(found.id()).map(|id| Label::Ledger(id.ledger().digits()))
        }
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
