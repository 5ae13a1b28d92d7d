//! `POST /decode`: the best reading of each text, in brief.

use std::fmt;

use super::answer_parts::AnswerParts;
use super::json_text::JsonText;
use super::match_reading::MatchReading;
use crate::id::{DecodeFilter, DecoderAt, Match};

/// The best reading of a text: `id`, `format`, `encoding`, `time`, `fields` and `ambiguous` as in a
/// [`DecodeAnswer`](super::DecodeAnswer), and nothing but `id` where there is none, or one that is
/// [unlikely](crate::id::Match::is_unlikely).
///
/// Borrows what it tells of, and is written without a copy of it. As text it is one line without its end: the members
/// between tabs, each field as `name=value`, then `ambiguous=true` if so, and `-` for what there is not. In the id, control characters and the
/// backslash are escaped as in Rust, so that it stays one line of these columns.
#[derive(Debug)]
pub struct BriefReading<'a> {
    id: &'a str,
    reading: Option<MatchReading<'a>>,
    is_ambiguous: bool,
}

impl<'a> BriefReading<'a> {
    /// Reads `id`. `known`: the parts for the formats of this decoder.
    pub fn new(
        id: &'a str,
        decoder: &DecoderAt<'a>,
        filter: DecodeFilter<'_>,
        known: &'a AnswerParts,
    ) -> BriefReading<'a> {
        let best = decoder.best_and_doubt(id, filter);
        let is_ambiguous = best.is_some_and(|(_, is_ambiguous)| is_ambiguous);
        BriefReading { id, reading: best.map(|(best, _)| MatchReading::new(best, known)), is_ambiguous }
    }

    /// The reading that it tells of.
    pub fn found(&self) -> Option<Match<'a>> {
        self.reading.as_ref().map(|reading| reading.found)
    }

    /// Writes the reading as a JSON object to the end of `out`.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let mut json = JsonText(out);
        json.raw(r#"{"id":"#).string(self.id);
        let Some(reading) = &self.reading else {
            json.raw(r#","format":null,"encoding":null,"time":null,"fields":[],"ambiguous":false}"#);
            return;
        };
        reading.write_head(json.raw(","));
        json.raw(r#","time":"#).string_or_null(reading.time().as_deref());
        reading.write_fields(json.raw(r#","fields":"#));
        json.raw(r#","ambiguous":"#).bool(self.is_ambiguous).raw("}");
    }
}

impl fmt::Display for BriefReading<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let breaks_the_line = |letter: char| letter.is_control() || letter == '\\';
        for part in self.id.split_inclusive(breaks_the_line) {
            match part.char_indices().next_back().filter(|(_, letter)| breaks_the_line(*letter)) {
                Some((at, letter)) => write!(f, "{}{}", &part[..at], letter.escape_default())?,
                None => f.write_str(part)?,
            }
        }
        let Some(MatchReading { found, parts, .. }) = &self.reading else { return f.write_str("\t-\t-\t-") };
        let time = self.reading.as_ref().and_then(MatchReading::time);
        write!(f, "\t{}\t{}\t{}", found.format().name, found.encoding().name(), time.as_deref().unwrap_or("-"))?;
        for (field, value, _) in parts.numbers() {
            write!(f, "\t{}={}", field.name, itoa::Buffer::new().format(value))?;
        }
        f.write_str(if self.is_ambiguous { "\tambiguous=true" } else { "" })
    }
}
