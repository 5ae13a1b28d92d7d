//! The short response of `POST /decode`, which has the most likely reading of each text.

use std::fmt;

use super::answer_parts::AnswerParts;
use super::decode_answer::write_notes;
use super::json_text::JsonText;
use super::match_reading::MatchReading;
use idmint_core::id::{DecodeFilter, DecoderAt, Liberty, Match, Note, NoteKind};

/// The most likely reading of a text, in short form. It borrows its data and is written without a
/// copy.
///
/// In JSON, the members are `id`, `format`, `encoding`, `time`, `fields` and `ambiguous`, as in a
/// [`DecodeAnswer`](super::DecodeAnswer). If there is no reading, or only an
/// [unlikely](idmint_core::id::Match::is_unlikely) one, only `id` has a value. Further members are
/// present where they apply:
///
/// - `type` or `prefix` if the text has one.
/// - `as_given` and `canonical` if the filter permits lenient reading, or if a corrected text was
///   read instead of the given one.
/// - `did_you_mean` if the caller may have meant other ids.
/// - `notes` if the text is probably damaged.
/// - `read_as` if the best reading is not an id of the format of the text's
///   [column](BriefReading::in_column).
///
/// As text, a reading is one line without the final line feed. Tabs separate the members, and a
/// missing member is written as `-`. Each field is written as `name=value`. Where they apply,
/// further members follow: `type=…` or `prefix=…`, `ambiguous=true`, `as_given=false` and
/// `canonical=…`, `read_as=…`, a `did_you_mean=…` for each id that the caller may have meant, and a
/// `note=…` for each kind of note. Control characters and backslashes in the id are escaped as in
/// Rust, so that the id stays within its line and column.
#[derive(Debug)]
pub struct BriefReading<'a> {
    id: &'a str,
    reading: Option<MatchReading<'a>>,
    is_ambiguous: bool,
    is_lenient: bool,
    is_as_given: bool,
    did_you_mean: Vec<String>,
    notes: Vec<Note>,
    in_column: Option<RowReading<'a>>,
}

/// The format of a column's ids, as far as the reading of each row needs it.
#[derive(Debug, Clone, Copy)]
pub struct ColumnIds<'a> {
    /// The name of the format.
    pub format: &'a str,
    /// The name of the encoding.
    pub encoding: &'a str,
    /// [`IdColumn::may_lack_digits`](idmint_core::id::IdColumn::may_lack_digits). If `false`, an id
    /// of the column gets no note that its digits are lost.
    pub may_lack_digits: bool,
}

/// The result of reading a text as an id of the format of its column. A column is a list of texts
/// with the same format.
#[derive(Debug)]
pub enum RowReading<'a> {
    /// The most likely reading of the text alone, [`BriefReading::own`], is already an id of the
    /// column's format. So no other reading is needed.
    Own,
    /// The text can be read as an id of the column's format, and the value is that reading. Another
    /// reading of the text may be more likely.
    As(Box<MatchReading<'a>>),
    /// The text is not an id of the column's format. An unlikely reading or one with an implausible
    /// time does not count.
    Other,
}

/// The most likely match of a text. If the text has no plausible match, this may be the match of a
/// corrected text that the caller probably meant. The filter's [`Liberty`] limits the corrections.
struct BestMatch<'a> {
    /// The match, and `true` if it is ambiguous. A match is ambiguous if another one is nearly as
    /// likely, or if the evidence is so weak that the text may be random. `None` if the text has no
    /// match. Unlikely matches count only if the filter names a format or an encoding.
    best: Option<(Match<'a>, bool)>,
    /// The corrected text that was read, or `None` if the given text was read.
    meant: Option<String>,
}

impl<'a> BestMatch<'a> {
    fn of(id: &str, decoder: &DecoderAt<'a>, filter: DecodeFilter<'_>) -> BestMatch<'a> {
        let best = decoder.best_and_doubt(id, filter);
        match is_doubtful(best)
            .then(|| decoder.meant_text(id, filter))
            .flatten()
        {
            Some(text) => BestMatch {
                best: decoder.best_and_doubt(&text, filter),
                meant: Some(text),
            },
            None => BestMatch { best, meant: None },
        }
    }
}

fn is_doubtful(best: Option<(Match<'_>, bool)>) -> bool {
    best.is_none_or(|(best, _)| !best.is_plausible())
}

impl<'a> BriefReading<'a> {
    /// Decodes the text `id`. `known` must have been [prepared](AnswerParts::new) from the
    /// decoder's formats.
    pub fn new(
        id: &'a str,
        decoder: &DecoderAt<'a>,
        filter: DecodeFilter<'_>,
        known: &'a AnswerParts,
    ) -> BriefReading<'a> {
        let first = BestMatch::of(id, decoder, filter);
        let text = first.meant.as_deref().unwrap_or(id);
        let reading = first
            .best
            .map(|(best, _)| MatchReading::new(best, text, known));
        let did_you_mean = is_doubtful(first.best).then(|| decoder.did_you_mean(id, filter));
        BriefReading {
            id,
            did_you_mean: did_you_mean.unwrap_or_default(),
            is_ambiguous: first.best.is_some_and(|(_, is_ambiguous)| is_ambiguous),
            is_lenient: filter.liberty == Liberty::Lenient,
            notes: decoder.notes(id, first.best.as_ref().map(|(best, _)| best)),
            is_as_given: first.meant.is_none(),
            reading,
            in_column: None,
        }
    }

    /// Adds the reading of the text as an id of the format of the column (list of texts) that
    /// contains the text. [`row`](BriefReading::row) then returns that reading.
    ///
    /// A word or an everyday number is not read as an id, unless the filter names a format or an
    /// encoding. A reading in an encoding other than the column's counts only if it is more likely
    /// than a random text.
    #[must_use]
    pub fn in_column(
        mut self,
        ids: ColumnIds<'_>,
        decoder: &DecoderAt<'a>,
        filter: DecodeFilter<'_>,
        known: &'a AnswerParts,
    ) -> BriefReading<'a> {
        let ColumnIds {
            format, encoding, ..
        } = ids;
        let is_id = |found: &Match<'_>| {
            let is_likely = filter.is_pinned() || !found.is_unlikely();
            let has_encoding = found.encoding().name() == encoding;
            found.is_plausible() && is_likely && (has_encoding || found.evidence_bits() > 0.0)
        };
        let is_own = |found: Match<'_>| found.format().name == format && is_id(&found);
        let row = if self.found().is_some_and(is_own) {
            RowReading::Own
        } else {
            let filter = DecodeFilter {
                format: Some(format),
                ..filter
            };
            // Try the encoding of the column first. If another encoding writes the same id as the
            // same text, it could otherwise become the best match.
            let in_encoding = DecodeFilter {
                encoding: filter.encoding.or(Some(encoding)),
                ..filter
            };
            let exact = decoder.best_and_doubt(self.id, in_encoding);
            let BestMatch { best, meant } = match exact.filter(|(exact, _)| is_id(exact)) {
                None => BestMatch::of(self.id, decoder, filter),
                best => BestMatch { best, meant: None },
            };
            let text = meant.as_deref().unwrap_or(self.id);
            best.filter(|(best, _)| is_id(best))
                .map_or(RowReading::Other, |(best, _)| {
                    RowReading::As(Box::new(MatchReading::new(best, text, known)))
                })
        };
        if !ids.may_lack_digits && !matches!(row, RowReading::Other) {
            self.notes.retain(|note| note.kind != NoteKind::DigitsLost);
        }
        self.in_column = Some(row);
        self
    }

    /// Returns the result of reading the text as an id of its column's format. Returns `None` if
    /// [`in_column`](BriefReading::in_column) was not called.
    pub fn row(&self) -> Option<&RowReading<'a>> {
        self.in_column.as_ref()
    }

    /// Returns the most likely reading of the text alone, without regard to its column. Unlikely
    /// readings count only if the filter names a format or an encoding.
    pub fn own(&self) -> Option<&MatchReading<'a>> {
        self.reading.as_ref()
    }

    /// Returns the notes about damage to the text.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// `true` if another reading is nearly as likely as the best one, or the text may be random.
    pub fn is_ambiguous(&self) -> bool {
        self.is_ambiguous
    }

    /// `true` if the given text was read. `false` if a corrected text that the caller probably
    /// meant was read in its place.
    pub fn is_as_given(&self) -> bool {
        self.is_as_given
    }

    /// Returns the match of the best reading, or `None` if the text has no reading.
    pub fn found(&self) -> Option<Match<'a>> {
        self.reading.as_ref().map(|reading| reading.found)
    }

    fn canonical(&self) -> Option<String> {
        self.reading.as_ref().map(MatchReading::canonical)
    }

    /// Appends the reading to `out` as a JSON object.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let mut json = JsonText(out);
        json.raw(r#"{"id":"#).string(self.id);
        match &self.reading {
            None => {
                json.raw(
                    r#","format":null,"encoding":null,"time":null,"fields":[],"ambiguous":false"#,
                );
            }
            Some(reading) => {
                write_members(reading, json.raw(","));
                json.raw(r#","ambiguous":"#).bool(self.is_ambiguous);
            }
        }
        if self.is_lenient || !self.is_as_given {
            json.raw(r#","as_given":"#).bool(self.is_as_given);
            json.raw(r#","canonical":"#)
                .string_or_null(self.canonical().as_deref());
        }
        if !self.did_you_mean.is_empty() {
            json.raw(r#","did_you_mean":"#)
                .strings(self.did_you_mean.iter().map(String::as_str));
        }
        if !self.notes.is_empty() {
            write_notes(json.raw(r#","notes":"#), &self.notes);
        }
        match &self.in_column {
            None | Some(RowReading::Own) => {}
            Some(RowReading::As(reading)) => {
                write_members(reading, json.raw(r#","read_as":{"#));
                json.raw("}");
            }
            Some(RowReading::Other) => {
                json.raw(r#","read_as":null"#);
            }
        }
        json.raw("}");
    }
}

fn write_members(reading: &MatchReading<'_>, json: &mut JsonText<'_>) {
    reading.write_head(json);
    reading.write_beginning(json);
    json.raw(r#","time":"#)
        .string_or_null(reading.time().as_deref());
    reading.write_fields(json.raw(r#","fields":"#));
}

impl fmt::Display for BriefReading<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(f, self.id)?;
        if let Some(reading) = &self.reading {
            let MatchReading { found, parts, .. } = reading;
            let time = reading.time();
            write!(
                f,
                "\t{}\t{}\t{}",
                found.format().name,
                found.encoding().name(),
                time.as_deref().unwrap_or("-")
            )?;
            for (field, value, _) in parts.numbers() {
                write!(f, "\t{}={}", field.name, itoa::Buffer::new().format(value))?;
            }
            if let Some((name, value)) = reading.beginning() {
                write!(f, "\t{name}={value}")?;
            }
            if self.is_ambiguous {
                f.write_str("\tambiguous=true")?;
            }
        } else {
            f.write_str("\t-\t-\t-")?;
        }
        if let Some(canonical) = self.canonical().filter(|_| !self.is_as_given) {
            f.write_str("\tas_given=false\tcanonical=")?;
            write_escaped(f, &canonical)?;
        }
        match &self.in_column {
            None | Some(RowReading::Own) => {}
            Some(RowReading::As(reading)) => {
                write!(f, "\tread_as={}", reading.found.format().name)?;
            }
            Some(RowReading::Other) => f.write_str("\tread_as=-")?,
        }
        self.did_you_mean.iter().try_for_each(|text| {
            f.write_str("\tdid_you_mean=")?;
            write_escaped(f, text)
        })?;
        self.notes
            .iter()
            .try_for_each(|note| write!(f, "\tnote={}", note.kind.name()))
    }
}

/// Writes a text with escaped control characters and backslashes, because a raw tab or line feed
/// would split the row.
fn write_escaped(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let breaks_the_line = |letter: char| letter.is_control() || letter == '\\';
    for part in text.split_inclusive(breaks_the_line) {
        match part
            .char_indices()
            .next_back()
            .filter(|(_, letter)| breaks_the_line(*letter))
        {
            Some((at, letter)) => write!(f, "{}{}", &part[..at], letter.escape_default())?,
            None => f.write_str(part)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::KnownDomains;
    use idmint_core::id::{Decoder, FieldKind, Finding, Format, IdColumn, PRESETS};
    use idmint_core::time::UnixNanos;

    const NOW: u64 = 1_796_000_000;

    /// Words and numbers that are not ids, although each of them is a plausible id in some encoding
    /// of some format. For example, `payment` can write an id as the decimal number 4006381333931.
    const EVERYDAY: [&str; 10] = [
        "0",
        "1",
        "42",
        "12345",
        "20241231",
        "4155550123",
        "4006381333931",
        "deadbeef",
        "cafe",
        "a",
    ];

    /// Returns the text of an id of `format` with a time between `at` and `at + 7` seconds before
    /// `NOW`.
    fn text_of(format: &Format, encoding: &str, at: u64) -> String {
        let part = Duration::from_millis(at * 7_919 % 1_000);
        let time = UnixNanos::from_seconds(NOW - at - at * at % 7).before(part);
        let layout = &format.variants[0].layout;
        let value = |kind, max: u128| match kind {
            FieldKind::Time => format.ticks_at(time.into()).expect("a time of the format"),
            FieldKind::Random => {
                (u128::from(at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835) >> 17)
                    & max
            }
            FieldKind::Sequence => u128::from(at % 3),
            _ => 0,
        };
        let fields = layout.fields().iter();
        let values: Vec<u128> = fields.map(|field| value(field.kind, field.max)).collect();
        let id = layout.pack(&values).expect("values of the fields");
        format.encoding(encoding).expect("an encoding").to_text(id)
    }

    #[test]
    fn a_row_in_the_encoding_of_its_column_is_one_of_its_ids_even_if_another_encoding_equals_it() {
        let snowflake = Format::built_in("snowflake").expect("a built-in format");
        let decoder = Decoder::new(vec![Arc::new(snowflake)]);
        let known = AnswerParts::new(decoder.formats(), KnownDomains::new());
        let decoder = decoder.at(UnixNanos::from_seconds(NOW));
        let filter = DecodeFilter::default();
        // The encodings `hex` and `hex_padded` write this id as the same text. The id has the
        // sequence 100 in the first millisecond of 2026.
        let row = |encoding| {
            BriefReading::new("143503fe00067064", &decoder, filter, &known).in_column(
                ColumnIds {
                    format: "snowflake",
                    encoding,
                    may_lack_digits: false,
                },
                &decoder,
                filter,
                &known,
            )
        };
        let padded = row("hex_padded");
        let Some(RowReading::As(reading)) = padded.row() else {
            panic!("{padded}: {:?}", padded.row())
        };
        assert_eq!(reading.found.encoding().name(), "hex_padded");
        assert!(matches!(row("hex").row(), Some(RowReading::Own)));
        assert!(matches!(row("decimal").row(), Some(RowReading::Other)));
    }

    #[test]
    fn words_and_everyday_numbers_are_no_rows_of_a_column_of_ids() {
        let formats = PRESETS
            .iter()
            .filter_map(|preset| Format::built_in(preset.name));
        let decoder = Decoder::new(
            formats
                .filter(|format| format.enabled)
                .map(Arc::new)
                .collect(),
        );
        let known = AnswerParts::new(decoder.formats(), KnownDomains::new());
        let decoder_at = decoder.at(UnixNanos::from_seconds(NOW));
        let filter = DecodeFilter {
            liberty: Liberty::Lenient,
            ..DecodeFilter::default()
        };
        for (name, encoding) in [
            ("payment", "base36"),
            ("snowflake", "decimal"),
            ("ulid", "crockford"),
        ] {
            let mut formats = decoder.formats().iter();
            let format = formats.find(|format| format.name == name);
            let format = format.expect("a built-in format");
            let ids: Vec<String> = (0..300)
                .map(|at| text_of(format, encoding, 300 - at))
                .collect();
            let mut column = IdColumn::default();
            for text in ids.iter().map(String::as_str).chain(EVERYDAY) {
                column.add(text, &decoder_at, filter);
            }
            let verdict = column.judge(&decoder_at, filter);
            let Finding::Told { candidate, .. } = &verdict.finding else {
                panic!("{name}: {:?}", verdict.finding)
            };
            assert_eq!((candidate.ids, candidate.none), (300, 10), "{name}");
            let (format, encoding) = verdict.format_of_rows().expect("a format");
            assert_eq!(format.name, name);
            let row = |text| {
                BriefReading::new(text, &decoder_at, filter, &known).in_column(
                    ColumnIds {
                        format: name,
                        encoding: encoding.name(),
                        may_lack_digits: false,
                    },
                    &decoder_at,
                    filter,
                    &known,
                )
            };
            for text in EVERYDAY {
                let row = row(text);
                assert!(
                    matches!(row.row(), Some(RowReading::Other)),
                    "{name}: {row}"
                );
            }
            for text in ids.iter().map(String::as_str) {
                let row = row(text);
                assert!(
                    !matches!(row.row(), Some(RowReading::Other)),
                    "{name}: {row}"
                );
            }
        }
    }
}
