//! The response of `GET /encode/{format}`, which describes the id with the given field values.

use super::answer_parts::AnswerParts;
use super::decode_answer::DecodeAnswer;
use super::json_text::JsonText;
use super::match_reading::MatchReading;
use super::written_ids::WrittenIds;
use idmint_core::id::{DecodeFilter, DecoderAt, Format, IdOfFields};

/// The id with the given field values, described as in the response of a decode request.
///
/// The members are `format`, `minted` (always `false`), `type` or `prefix`, `canonical`, `value`,
/// `time`, `time_unix_seconds`, `fields` and `encodings`. They have the same meaning as in a
/// [`DecodeAnswer`].
#[derive(Debug)]
pub struct EncodeAnswer<'a> {
    format: &'a Format,
    text: String,
    decoder: &'a DecoderAt<'a>,
    known: &'a AnswerParts,
}

impl<'a> EncodeAnswer<'a> {
    /// Creates the response for an id. `format` must be one of the decoder's formats, and `known`
    /// must be prepared for these formats. Otherwise, writing the response panics.
    pub fn new(
        format: &'a Format,
        made: &IdOfFields,
        decoder: &'a DecoderAt<'a>,
        known: &'a AnswerParts,
    ) -> EncodeAnswer<'a> {
        let text = format!("{}{}", made.prefix, format.canonical().to_text(made.id));
        EncodeAnswer {
            format,
            text,
            decoder,
            known,
        }
    }

    /// Returns the canonical text of the id.
    pub fn canonical(&self) -> &str {
        &self.text
    }

    /// Decodes the canonical text as an id of the format.
    pub fn decoded(&self) -> DecodeAnswer<'_> {
        let canonical = self.format.canonical().name();
        let filter = DecodeFilter {
            format: Some(&self.format.name),
            encoding: Some(canonical),
            ..DecodeFilter::default()
        };
        DecodeAnswer::new(&self.text, self.decoder, filter, self.known)
    }

    /// Appends the response to `out` as a JSON object.
    ///
    /// # Panics
    /// Panics if the format is not one of the decoder's formats.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let decoded = self.decoded();
        let reading: MatchReading<'_> = decoded
            .readings()
            .next()
            .expect("the canonical text of an id is one");
        let mut json = JsonText(out);
        json.raw(r#"{"format":"#)
            .string(&self.format.name)
            .raw(r#","minted":false"#);
        reading.write_id(&mut json, &mut WrittenIds::default());
        json.raw("}");
    }
}
