//! `GET /encode/{format}`: the id of given fields.

use super::answer_parts::AnswerParts;
use super::decode_answer::DecodeAnswer;
use super::json_text::JsonText;
use super::match_reading::MatchReading;
use super::written_ids::WrittenIds;
use crate::id::{DecodeFilter, DecoderAt, Format, IdOfFields};

/// The id of given fields, as it is read back: `format`, `minted`, which is `false`, and `type` or `prefix`, `canonical`, `value`,
/// `time`, `time_unix_seconds`, `fields` and `encodings` as in a [`DecodeAnswer`].
#[derive(Debug)]
pub struct EncodeAnswer<'a> {
    format: &'a Format,
    text: String,
    decoder: &'a DecoderAt<'a>,
    known: &'a AnswerParts,
}

impl<'a> EncodeAnswer<'a> {
    /// The answer for this id of one of the formats of `decoder`. `known`: the parts for the formats of this decoder.
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

    /// The canonical text.
    pub fn canonical(&self) -> &str {
        &self.text
    }

    /// The reading of the canonical text as an id of the format.
    pub fn decoded(&self) -> DecodeAnswer<'_> {
        let canonical = self.format.canonical().name();
        let filter = DecodeFilter {
            format: Some(&self.format.name),
            encoding: Some(canonical),
            ..DecodeFilter::default()
        };
        DecodeAnswer::new(&self.text, self.decoder, filter, self.known)
    }

    /// Writes the answer as a JSON object to the end of `out`.
    ///
    /// # Panics
    /// When the format is none of the decoder's.
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
