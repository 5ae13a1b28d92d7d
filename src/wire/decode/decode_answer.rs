//! `GET /decode/{id}`, and `POST /decode?detail=full`: every reading of a text.

use serde::Serialize;

use super::answer_parts::AnswerParts;
use super::json_text::JsonText;
use super::match_reading::MatchReading;
use super::written_ids::WrittenIds;
use crate::id::{DecodeFilter, Decoded, DecoderAt, KSUID, Match, NearId};
use crate::ledger::{NumberReading, SeriesName};

/// The answer for one text: `id`, `matches`, `ambiguous`, `rejected` and `did_you_mean`; `shaped_like` where there are such
/// formats, `numbers` where it is a number of a series, and `unlikely` where all readings are [unlikely](crate::id::Match::is_unlikely) and the filter pins none: then
/// they are no matches. Where it was to be read leniently, `as_given` tells whether the matches are of the text itself.
///
/// Borrows the names, and encodes the ids only when it is written: most of an answer is names and ids.
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
/// let none = r#"{"id":"?","matches":[],"ambiguous":false,"rejected":[{"format":"payment","reason":"wrong_length"}],"did_you_mean":[]}"#;
/// assert_eq!(String::from_utf8_lossy(&json), none);
/// # Ok::<(), idmint::id::FormatError>(())
/// ```
#[derive(Debug)]
pub struct DecodeAnswer<'a> {
    /// The text as it was given.
    pub id: &'a str,
    /// Every reading of it, and the formats that have none.
    pub decoded: Decoded<'a>,
    /// The readings that are withheld.
    withheld: Vec<Match<'a>>,
    /// The text that was read, where another one was given.
    read_as: Option<String>,
    is_lenient: bool,
    near: Vec<NearId<'a>>,
    /// The names of formats whose ids have the shape of a text that is no id, or hardly one: it may be of another salt.
    pub shaped_like: Vec<&'a str>,
    /// What it is as a number of a series.
    pub numbers: Vec<NumberReading>,
    known: &'a AnswerParts,
}

/// A format of which the text is no id.
#[derive(Debug, Serialize)]
pub struct RejectedFormat<'a> {
    /// The format.
    pub format: &'a str,
    /// The reason as one word: `wrong_length`, `bad_alphabet`, ….
    pub reason: &'static str,
}

/// The longest text where many are decoded at once, in bytes: far longer than any id, and as long as a path can be.
pub const DECODED_LEN_MAX: usize = 8 * 1024;

impl<'a> DecodeAnswer<'a> {
    /// Decodes `id`. `known`: the parts for the formats of this decoder.
    pub fn new(
        id: &'a str,
        decoder: &DecoderAt<'a>,
        filter: DecodeFilter<'_>,
        known: &'a AnswerParts,
    ) -> DecodeAnswer<'a> {
        let read_as = if filter.lenient {
            decoder.lenient_text(id, filter)
        } else {
            None
        };
        let mut decoded = decoder.decode(read_as.as_deref().unwrap_or(id), filter);
        let is_withheld = !filter.is_pinned() && decoded.is_unlikely();
        let withheld = if is_withheld {
            std::mem::take(&mut decoded.matches)
        } else {
            Vec::new()
        };
        // An id without its hyphens may read as an id of another format, and of a time that cannot be.
        let is_doubtful = decoded
            .matches
            .first()
            .is_none_or(|best| !best.is_plausible());
        let near = if is_doubtful {
            decoder.near_ids(id, filter)
        } else {
            Vec::new()
        };
        let shaped_like = if is_doubtful && near.is_empty() {
            decoder.shaped_like(id, filter)
        } else {
            Vec::new()
        };
        DecodeAnswer {
            id,
            decoded,
            withheld,
            read_as,
            is_lenient: filter.lenient,
            near,
            shaped_like,
            numbers: Vec::new(),
            known,
        }
    }

    /// The same of a text that may be a number of a series, too.
    #[must_use]
    pub fn with_numbers(self, numbers: Vec<NumberReading>) -> DecodeAnswer<'a> {
        DecodeAnswer { numbers, ..self }
    }

    /// The text that its matches are readings of, where it was read leniently; `None` if they are of the text as it was given.
    pub fn read_as(&self) -> Option<&str> {
        self.read_as.as_deref()
    }

    /// Ids that are near to a text that is no id, or hardly one, the likeliest first: see [`DecoderAt::near_ids`].
    pub fn did_you_mean(&self) -> impl Iterator<Item = &str> {
        self.near.iter().map(|near| near.text.as_str())
    }

    /// The first of those, and its best reading.
    pub fn nearest(&self) -> Option<(&str, MatchReading<'_>)> {
        let near = self.near.first()?;
        Some((
            &near.text,
            MatchReading::new(near.found, &near.text, self.known),
        ))
    }

    /// What it looks like, though it is no id, in words; `None` if like nothing.
    pub fn shape(&self) -> Option<String> {
        match self.shaped_like.as_slice() {
            [] => None,
            [KSUID] => Some(
                "it has the shape of a KSUID, whose 160 bits are more than any format has here"
                    .to_owned(),
            ),
            names => Some(format!(
                "it has the shape of one of {}, with another salt, or a letter that is wrong, missing or too many",
                names.join(" or ")
            )),
        }
    }

    /// Whether the text is an id of any format, or a number of a series.
    pub fn is_match(&self) -> bool {
        !self.decoded.matches.is_empty() || !self.numbers.is_empty()
    }

    /// Every reading, the one with the most evidence first.
    pub fn readings(&self) -> impl Iterator<Item = MatchReading<'_>> {
        let text = self.read_as().unwrap_or(self.id);
        self.decoded
            .matches
            .iter()
            .map(move |found| MatchReading::new(*found, text, self.known))
    }

    /// The readings that are withheld, because a word or an everyday number is likelier; the one with the most evidence
    /// first.
    pub fn unlikely(&self) -> impl Iterator<Item = MatchReading<'_>> {
        let text = self.read_as().unwrap_or(self.id);
        self.withheld
            .iter()
            .map(move |found| MatchReading::new(*found, text, self.known))
    }

    /// Writes the array of the readings that are withheld.
    pub fn write_unlikely(&self, out: &mut Vec<u8>) {
        let mut json = JsonText(out);
        json.raw("[");
        for (at, reading) in self.unlikely().enumerate() {
            reading.write_in_short(json.raw(if at == 0 { "" } else { "," }));
        }
        json.raw("]");
    }

    /// The formats without a reading.
    pub fn rejected(&self) -> impl Iterator<Item = RejectedFormat<'a>> {
        let rejected = self.decoded.rejected.iter();
        rejected.map(|(format, why)| RejectedFormat {
            format: &format.name,
            reason: why.code(),
        })
    }

    /// Writes the answer as a JSON object to the end of `out`.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let mut json = JsonText(out);
        json.raw(r#"{"id":"#).string(self.id);
        if self.is_lenient {
            json.raw(r#","as_given":"#).bool(self.read_as.is_none());
        }
        json.raw(r#","matches":["#);
        let mut written_ids = WrittenIds::default();
        for (at, reading) in self.readings().enumerate() {
            reading.write_json(json.raw(if at == 0 { "" } else { "," }), &mut written_ids);
        }
        json.raw(r#"],"ambiguous":"#)
            .bool(self.decoded.is_ambiguous())
            .raw(r#","rejected":["#);
        for (at, rejected) in self.rejected().enumerate() {
            json.raw(if at == 0 {
                r#"{"format":"#
            } else {
                r#",{"format":"#
            });
            json.string(rejected.format)
                .raw(r#","reason":""#)
                .raw(rejected.reason)
                .raw("\"}");
        }
        json.raw(r#"],"did_you_mean":"#)
            .strings(self.did_you_mean());
        if !self.shaped_like.is_empty() {
            json.raw(r#","shaped_like":"#)
                .strings(self.shaped_like.iter().copied());
        }
        if !self.numbers.is_empty() {
            json.raw(r#","numbers":"#);
            for (at, reading) in self.numbers.iter().enumerate() {
                write_number(json.raw(if at == 0 { "[" } else { "," }), reading);
            }
            json.raw("]");
        }
        if !self.withheld.is_empty() {
            json.raw(r#","unlikely":"#);
            self.write_unlikely(out);
        }
        JsonText(out).raw("}");
    }
}

fn write_number(
    json: &mut JsonText<'_>,
    NumberReading {
        rule,
        series,
        number,
        check,
    }: &NumberReading,
) {
    json.raw(r#"{"rule":"#)
        .string(rule)
        .raw(r#","series":"#)
        .string_or_null(series.as_ref().map(SeriesName::as_str));
    json.raw(r#","number":""#)
        .digits((*number).into())
        .raw(r#"","check":"#)
        .string_or_null(check.as_deref())
        .raw("}");
}
