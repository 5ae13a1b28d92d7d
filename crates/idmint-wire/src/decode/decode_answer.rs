//! The response of `GET /decode/{id}` and `POST /decode?detail=full`, which has every reading of a
//! text.

use serde::Serialize;

use super::answer_parts::AnswerParts;
use super::json_text::JsonText;
use super::match_reading::MatchReading;
use super::written_ids::WrittenIds;
use idmint_core::id::{
    DecodeFilter, Decoded, DecoderAt, KSUID, Liberty, Match, NearId, Note, Shape,
};
use idmint_records::ledger::{NumberReading, SeriesName};

/// The response for one text: `id`, `matches`, `ambiguous`, `rejected`, `did_you_mean` and `notes`.
///
/// Further members are present where they apply:
///
/// - `shaped_like` if the text only looks like an id of some formats.
/// - `numbers` if the text is a number of a series.
/// - `unlikely` if all readings are [unlikely](idmint_core::id::Match::is_unlikely) and the filter
///   selects no format or encoding. The readings are then listed here and not in `matches`.
/// - `as_given` and `canonical` if the filter permits lenient reading, or if a corrected text was
///   read instead of the given one. `canonical` is the canonical text of the first match.
///
/// Most of a response consists of names and ids. To avoid copies, the response borrows the names,
/// and encodes the ids only when it is written.
///
/// ```
/// use idmint_core::id::{Decoder, FormatDefinition, PRESETS, DecodeFilter};
/// use idmint_core::time::UnixNanos;
/// use idmint_wire::{AnswerParts, DecodeAnswer, KnownDomains};
///
/// let payment = PRESETS.iter().find(|preset| preset.name == "payment").expect("a built-in format");
/// let format = FormatDefinition::from_toml(payment.name, payment.toml)?.compile(payment.name)?;
/// let decoder = Decoder::new(vec![format.into()]);
/// let parts = AnswerParts::new(decoder.formats(), KnownDomains::new());
/// let decoder = decoder.at(UnixNanos::from_seconds(1_800_000_000));
/// let mut json = Vec::new();
/// DecodeAnswer::new("?", &decoder, DecodeFilter::default(), &parts).write_json(&mut json);
/// let none = r#"{"id":"?","matches":[],"ambiguous":false,"rejected":[{"format":"payment","reason":"wrong_length"}],"did_you_mean":[],"notes":[]}"#;
/// assert_eq!(String::from_utf8_lossy(&json), none);
/// # Ok::<(), idmint_core::id::FormatError>(())
/// ```
#[derive(Debug)]
pub struct DecodeAnswer<'a> {
    /// The text as given.
    pub id: &'a str,
    /// Every reading of the text, and the formats that reject it.
    pub decoded: Decoded<'a>,
    /// The unlikely readings, which are not listed in `matches`.
    withheld: Vec<Match<'a>>,
    /// The corrected text that was read, or `None` if the given text was read.
    read_as: Option<String>,
    is_lenient: bool,
    near: Vec<NearId<'a>>,
    /// The notes about damage to the text, for example digits that were lost by rounding.
    pub notes: Vec<Note>,
    /// The formats whose ids look like the text, although the text is not a valid id of them. For
    /// example, the id may have been encoded with a different salt, which shuffles the alphabet.
    /// Empty if the text has a plausible reading, or if `did_you_mean` suggests an id.
    pub shaped_like: Vec<Shape<'a>>,
    /// The ways to read the text as a number of a configured series, such as an invoice number.
    pub numbers: Vec<NumberReading>,
    known: &'a AnswerParts,
}

/// A format that rejects the text, and the reason.
#[derive(Debug, Serialize)]
pub struct RejectedFormat<'a> {
    /// The name of the format.
    pub format: &'a str,
    /// The reason as one word, such as `wrong_length` or `bad_alphabet`.
    pub reason: &'static str,
}

/// The maximum length in bytes of each text in a request with many texts. It is the maximum length
/// of a URL path, which may contain a single text, and much longer than any id.
pub const DECODED_LEN_MAX: usize = 8 * 1024;

impl<'a> DecodeAnswer<'a> {
    /// Decodes the text `id`. `known` must have been [prepared](AnswerParts::new) from the
    /// decoder's formats.
    pub fn new(
        id: &'a str,
        decoder: &DecoderAt<'a>,
        filter: DecodeFilter<'_>,
        known: &'a AnswerParts,
    ) -> DecodeAnswer<'a> {
        let mut decoded = decoder.decode(id, filter);
        let is_unlikely = |decoded: &Decoded<'_>| !filter.is_pinned() && decoded.is_unlikely();
        let is_implausible = |decoded: &Decoded<'_>| {
            let best = decoded.matches.first();
            best.is_none_or(|best| !best.is_plausible())
        };
        let read_as = if is_unlikely(&decoded) || is_implausible(&decoded) {
            decoder.meant_text(id, filter)
        } else {
            None
        };
        if let Some(text) = &read_as {
            decoded = decoder.decode(text, filter);
        }
        let withheld = is_unlikely(&decoded).then(|| std::mem::take(&mut decoded.matches));
        // A best match with an implausible time is doubtful. For example, an id without its hyphens
        // may be read as an id of a different format with an impossible time.
        let is_doubtful = is_implausible(&decoded);
        let notes = decoder.notes(id, decoded.matches.first());
        let near = is_doubtful.then(|| decoder.near_ids(id, filter));
        let near = near.unwrap_or_default();
        let is_unread = is_doubtful && near.is_empty();
        let shaped_like = is_unread.then(|| decoder.shaped_like(id, filter));
        DecodeAnswer {
            id,
            decoded,
            withheld: withheld.unwrap_or_default(),
            read_as,
            is_lenient: filter.liberty == Liberty::Lenient,
            near,
            notes,
            shaped_like: shaped_like.unwrap_or_default(),
            numbers: Vec::new(),
            known,
        }
    }

    /// Adds the readings of the text as a number of a series, such as an invoice number.
    #[must_use]
    pub fn with_numbers(self, numbers: Vec<NumberReading>) -> DecodeAnswer<'a> {
        DecodeAnswer { numbers, ..self }
    }

    /// Returns the corrected text that was read because the caller probably meant it. Returns
    /// `None` if the given text was read.
    pub fn read_as(&self) -> Option<&str> {
        self.read_as.as_deref()
    }

    /// Returns the ids that the caller may have meant, the most likely one first. Suggests ids only
    /// for a text that is not an id, is unlikely to be one, or has an implausible time. See
    /// [`DecoderAt::near_ids`].
    pub fn did_you_mean(&self) -> impl Iterator<Item = &str> {
        self.near.iter().map(|near| near.text.as_str())
    }

    /// Returns the id that was most likely meant, and its reading.
    pub fn nearest(&self) -> Option<(&str, MatchReading<'_>)> {
        let near = self.near.first()?;
        let reading = MatchReading::new(near.found, &near.text, self.known);
        Some((&near.text, reading))
    }

    /// Describes the ids that the text resembles if it is not an id itself. Returns `None` if it
    /// resembles no known ids.
    pub fn shape(&self) -> Option<String> {
        match self.shaped_like.as_slice() {
            [] => None,
            [Shape { name: KSUID, .. }] => {
                Some(
                    "the text looks like a KSUID, whose 160 bits are too many for every format of this \
                     service".to_owned())
            }
            shapes => {
                let names: Vec<_> = shapes.iter().map(|shape| shape.name).collect();
                let salt = match shapes.iter().any(|shape| shape.has_salt) {
                    true => "another salt, or ",
                    false => "",
                };
                Some(format!(
                    "the text looks like one of {}, with {salt}a wrong, missing or extra letter",
                    names.join(" or ")
                ))
            }
        }
    }

    /// Returns `true` if the text is an id of at least one format, or a number of a series.
    pub fn is_match(&self) -> bool {
        !self.decoded.matches.is_empty() || !self.numbers.is_empty()
    }

    /// Returns every reading, with the strongest evidence first.
    pub fn readings(&self) -> impl Iterator<Item = MatchReading<'_>> {
        let text = self.read_as().unwrap_or(self.id);
        self.decoded
            .matches
            .iter()
            .map(move |found| MatchReading::new(*found, text, self.known))
    }

    /// Returns the unlikely readings, the one with the strongest evidence first. A text with an
    /// unlikely reading is probably a word or an everyday number.
    pub fn unlikely(&self) -> impl Iterator<Item = MatchReading<'_>> {
        let text = self.read_as().unwrap_or(self.id);
        self.withheld
            .iter()
            .map(move |found| MatchReading::new(*found, text, self.known))
    }

    /// Appends the unlikely readings to `out` as a JSON array.
    pub fn write_unlikely(&self, out: &mut Vec<u8>) {
        JsonText(out).list(self.unlikely(), |json, reading| {
            reading.write_in_short(json)
        });
    }

    /// Returns the formats that reject the text, each with its reason.
    pub fn rejected(&self) -> impl Iterator<Item = RejectedFormat<'a>> {
        let rejected = self.decoded.rejected.iter();
        rejected.map(|(format, why)| RejectedFormat {
            format: &format.name,
            reason: why.code(),
        })
    }

    /// Appends the response to `out` as a JSON object.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let mut json = JsonText(out);
        json.raw(r#"{"id":"#).string(self.id);
        if self.is_lenient || self.read_as.is_some() {
            json.raw(r#","as_given":"#).bool(self.read_as.is_none());
            let canonical = self.readings().next().map(|reading| reading.canonical());
            json.raw(r#","canonical":"#)
                .string_or_null(canonical.as_deref());
        }
        let mut written_ids = WrittenIds::default();
        json.raw(r#","matches":"#)
            .list(self.readings(), |json, reading| {
                reading.write_json(json, &mut written_ids);
            });
        json.raw(r#","ambiguous":"#)
            .bool(self.decoded.is_ambiguous());
        json.raw(r#","rejected":"#)
            .list(self.rejected(), |json, rejected| {
                json.raw(r#"{"format":"#).string(rejected.format);
                json.raw(r#","reason":""#).raw(rejected.reason).raw("\"}");
            });
        json.raw(r#","did_you_mean":"#).strings(self.did_you_mean());
        write_notes(json.raw(r#","notes":"#), &self.notes);
        if !self.shaped_like.is_empty() {
            json.raw(r#","shaped_like":"#)
                .strings(self.shaped_like.iter().map(|shape| shape.name));
        }
        if !self.numbers.is_empty() {
            json.raw(r#","numbers":"#).list(&self.numbers, write_number);
        }
        if !self.withheld.is_empty() {
            json.raw(r#","unlikely":"#);
            self.write_unlikely(out);
        }
        JsonText(out).raw("}");
    }
}

/// Writes the array of notes.
pub(super) fn write_notes(json: &mut JsonText<'_>, notes: &[Note]) {
    json.list(notes, |json, note| {
        json.raw(r#"{"kind":""#).raw(note.kind.name());
        json.raw(r#"","detail":"#).string(&note.detail).raw("}");
    });
}

fn write_number(json: &mut JsonText<'_>, reading: &NumberReading) {
    json.raw(r#"{"rule":"#).string(&reading.rule);
    json.raw(r#","series":"#)
        .string_or_null(reading.series.as_ref().map(SeriesName::as_str));
    json.raw(r#","number":""#).digits(reading.number.into());
    json.raw(r#"","check":"#)
        .string_or_null(reading.check.as_deref())
        .raw("}");
}
