//! One way to read a text as an id. Full responses, brief responses and drawings use this module.

use super::answer_parts::{AnswerParts, FieldParts, FormatParts, KnownDomains};
use super::json_text::JsonText;
use super::written_ids::WrittenIds;
use idmint_core::id::{DomainHash, Field, FieldKind, Format, Match, Parts, Rule, Width};
use idmint_core::time::Rfc3339Text;
use idmint_records::ledger::EventId;

/// One reading of a text as an id, with its format, its encoding and its fields.
#[derive(Debug)]
pub struct MatchReading<'a> {
    /// The match that this reading describes: its format, its encoding and the id as a number.
    pub found: Match<'a>,
    /// The values of the fields.
    pub parts: Parts<'a>,
    /// The prefix before the encoded id. Empty if the text has no prefix.
    prefix: String,
    known: &'a AnswerParts,
}

/// One field of an id, with its value.
#[derive(Debug, Clone, Copy)]
pub struct FieldReading<'a> {
    /// The definition of the field in its layout.
    pub field: &'a Field,
    /// The value of the field. A time is in ticks since the epoch.
    pub value: u128,
    /// The number of values that the field can have.
    pub width: Width,
    /// The name of the field's value, such as the label of a worker number, or `None` if it has
    /// none.
    pub label: Option<Label<'a>>,
}

/// A text that explains the value of a field, such as the configured name of a worker number. For
/// the ledger field of an event's id, it is the id of the ledger.
#[derive(Debug, Clone, Copy)]
pub enum Label<'a> {
    /// A name from the format or the configuration. A type without a name has the label
    /// `unassigned`, and the domain hash 0 without a name has the label `development`.
    Known(&'a str),
    /// The id of a ledger, as eight hexadecimal digits.
    Ledger([u8; 8]),
}

impl Label<'_> {
    /// Returns the label as text.
    pub fn as_str(&self) -> &str {
        match self {
            Label::Known(name) => name,
            Label::Ledger(digits) => str::from_utf8(digits).expect("hexadecimal digits"),
        }
    }
}

impl<'a> MatchReading<'a> {
    /// Creates the reading that belongs to a match of `text`.
    pub(super) fn new(found: Match<'a>, text: &str, known: &'a AnswerParts) -> MatchReading<'a> {
        MatchReading {
            found,
            parts: found.parts(),
            prefix: text[..found.prefix_len()].to_owned(),
            known,
        }
    }

    /// Returns the type or the prefix before the encoded id, as a name and a value such as
    /// `("type", "user")`. The name is `type` for a format with types, and `prefix` for other
    /// formats. A type may be empty.
    ///
    /// Returns `None` if the text has no prefix and the format has no types, or if the encoding is
    /// not the canonical one.
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

    /// Returns the canonical text of the id, including the prefix.
    pub fn canonical(&self) -> String {
        format!(
            "{}{}",
            self.prefix,
            self.found.format().canonical().to_text(self.found.id())
        )
    }

    /// Returns the time of the id in RFC 3339, with as many fraction digits as the tick needs.
    /// Returns `None` if the id has no time, or if its time is after the year 9999.
    pub fn time(&self) -> Option<Rfc3339Text> {
        self.parts.time?.rfc3339(
            self.found
                .format()
                .tick
                .map_or(0, |tick| tick.second_digits()),
        )
    }

    /// Returns the time of the id in whole seconds since 1970, or `None` if it has no time.
    pub fn unix_seconds(&self) -> Option<i128> {
        self.parts.time.map(|time| time.seconds())
    }

    /// Returns the fields of the id, most significant first.
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

    /// Returns the evidence for this reading in bits, rounded to one decimal place.
    ///
    /// The evidence compares two explanations of the text: that it is an id of this format, or a
    /// random text of the same length and letters. For example, 10 bits mean that an id is about
    /// 1000 times more likely. Negative evidence means that a random text is more likely.
    pub fn evidence_bits(&self) -> f64 {
        (self.found.evidence_bits() * 10.0).round() / 10.0
    }

    /// Returns the evidence as a word. The word is `hardly any` if the reading is unlikely.
    /// Otherwise it is `strong` for at least 20 bits, `good` for at least 4, `fair` for at least
    /// -4, and `weak` for less.
    pub fn evidence(&self) -> &'static str {
        match self.found.evidence_bits() {
            _ if self.found.is_unlikely() => "hardly any",
            20.0.. => "strong",
            4.0.. => "good",
            -4.0.. => "fair",
            _ => "weak",
        }
    }

    /// Writes the few members that describe an unlikely reading.
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

    /// Writes the members `format` and `encoding`, which come first in the JSON object.
    pub(super) fn write_head(&self, json: &mut JsonText<'_>) {
        json.raw(&self.format().heads[self.found.encoding_index()]);
    }

    /// Writes the fields as an array.
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

    /// Writes the members that describe the id: the type or prefix, the number, the time, the
    /// fields and the encodings.
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

    /// Writes the member `type` or `prefix` if [`beginning`](MatchReading::beginning) returns one.
    pub(super) fn write_beginning(&self, json: &mut JsonText<'_>) {
        if let Some((name, value)) = self.beginning() {
            json.raw(",\"").raw(name).raw("\":").string(value);
        }
    }

    /// Writes the id as text in the encoding with the index `at`.
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
        // The id of a ledger also includes the version bits after this field, so the value of the
        // field alone is not enough.
        FieldKind::Ledger if format.rule == Rule::Chained => {
            EventId::from_value(found.id()).map(|id| Label::Ledger(id.ledger().digits()))
        }
        _ => None,
    }
}

/// Returns the name of the configured domain with the hash `value`, such as `example.com`. Without
/// such a domain, returns `development` for the hash 0, and `None` for any other hash. Only
/// sequenced formats store a hash in an object field. In other formats, the field contains a
/// catalogue number.
fn domain_label<'a>(format: &Format, value: u128, domains: &'a KnownDomains) -> Option<&'a str> {
    if format.rule != Rule::Sequenced {
        return None;
    }
    let hash = u32::try_from(value).ok()?;
    let development = || (hash == DomainHash::DEVELOPMENT.get()).then_some("development");
    domains.get(&hash).map(String::as_str).or_else(development)
}
