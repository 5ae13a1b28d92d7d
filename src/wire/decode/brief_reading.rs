//! `POST /decode`: the best reading of each text, in brief.

use std::fmt;

use super::answer_parts::AnswerParts;
use super::json_text::JsonText;
use super::match_reading::MatchReading;
use crate::id::{DecodeFilter, DecoderAt, Match};

/// The best reading of a text: `id`, `format`, `encoding`, `time`, `fields` and `ambiguous` as in a
/// [`DecodeAnswer`](super::DecodeAnswer), and nothing but `id` where there is none, or one that is
/// [unlikely](crate::id::Match::is_unlikely). Then `did_you_mean` where there are such ids; and where it was to be read
/// leniently, `as_given` and the `canonical` text.
///
/// Borrows what it tells of, and is written without a copy of it. As text it is one line without its end: the members
/// between tabs, each field as `name=value`, then `ambiguous=true`, `as_given=false` with `canonical=…`, and a `did_you_mean=…` for
/// each, if so, and `-` for what there is not. In the id, control characters and the backslash are escaped as in Rust, so that it
/// stays one line of these columns.
#[derive(Debug)]
pub struct BriefReading<'a> {
    id: &'a str,
    reading: Option<MatchReading<'a>>,
    is_ambiguous: bool,
    is_lenient: bool,
    is_as_given: bool,
    did_you_mean: Vec<String>,
}

/// The first match of a text, or of the one that was meant.
struct BestMatch<'a> {
    /// With whether it has a rival.
    best: Option<(Match<'a>, bool)>,
    /// The text that was meant, where it is another.
    meant: Option<String>,
}

impl<'a> BestMatch<'a> {
    fn of(id: &str, decoder: &DecoderAt<'a>, filter: DecodeFilter<'_>) -> BestMatch<'a> {
        let best = decoder.best_and_doubt(id, filter);
        let is_to_be_meant = filter.lenient && is_doubtful(best);
        match is_to_be_meant
            .then(|| decoder.lenient_text(id, filter))
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
    /// Reads `id`. `known`: the parts for the formats of this decoder.
    pub fn new(
        id: &'a str,
        decoder: &DecoderAt<'a>,
        filter: DecodeFilter<'_>,
        known: &'a AnswerParts,
    ) -> BriefReading<'a> {
        let first = BestMatch::of(id, decoder, filter);
        let reading = first.best.map(|(best, _)| match &first.meant {
            None => MatchReading::new(best, id, known),
            Some(text) => MatchReading::of_made_text(best, text, known),
        });
        BriefReading {
            id,
            did_you_mean: if is_doubtful(first.best) {
                decoder.did_you_mean(id, filter)
            } else {
                Vec::new()
            },
            is_ambiguous: first.best.is_some_and(|(_, is_ambiguous)| is_ambiguous),
            is_lenient: filter.lenient,
            is_as_given: first.meant.is_none(),
            reading,
        }
    }

    /// The reading that it would tell of, without what else that may be: for whoever tells no more.
    pub fn reading_of(
        id: &str,
        decoder: &DecoderAt<'a>,
        filter: DecodeFilter<'_>,
        known: &'a AnswerParts,
    ) -> Option<MatchReading<'a>> {
        let BestMatch { best, meant } = BestMatch::of(id, decoder, filter);
        let (best, _) = best?;
        Some(MatchReading::of_made_text(
            best,
            meant.as_deref().unwrap_or(id),
            known,
        ))
    }

    /// The match that it tells of.
    pub fn found(&self) -> Option<Match<'a>> {
        self.reading.as_ref().map(|reading| reading.found)
    }

    /// The text that the format would write of its id, where that was asked for.
    fn canonical(&self) -> Option<String> {
        self.reading.as_ref().map(MatchReading::canonical)
    }

    /// Writes the reading as a JSON object to the end of `out`.
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
                reading.write_head(json.raw(","));
                reading.write_beginning(&mut json);
                json.raw(r#","time":"#)
                    .string_or_null(reading.time().as_deref());
                reading.write_fields(json.raw(r#","fields":"#));
                json.raw(r#","ambiguous":"#).bool(self.is_ambiguous);
            }
        }
        if self.is_lenient {
            json.raw(r#","as_given":"#).bool(self.is_as_given);
            json.raw(r#","canonical":"#)
                .string_or_null(self.canonical().as_deref());
        }
        if !self.did_you_mean.is_empty() {
            json.raw(r#","did_you_mean":"#)
                .strings(self.did_you_mean.iter().map(String::as_str));
        }
        json.raw("}");
    }
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
            f.write_str(if self.is_ambiguous {
                "\tambiguous=true"
            } else {
                ""
            })?;
        } else {
            f.write_str("\t-\t-\t-")?;
        }
        if let Some(canonical) = self.canonical().filter(|_| !self.is_as_given) {
            f.write_str("\tas_given=false\tcanonical=")?;
            write_escaped(f, &canonical)?;
        }
        self.did_you_mean.iter().try_for_each(|text| {
            f.write_str("\tdid_you_mean=")?;
            write_escaped(f, text)
        })
    }
}

/// Writes a text so that it is one column of one line.
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
