//! Reading ids: by the routes and by the commands alike.

use std::sync::Arc;

use crate::id::{DecodeFilter, Decoder, DecoderAt, Fingerprint, Format, IdColumn, IdOfFields};
use crate::ledger::NumberRules;
use crate::service::formats::UnknownFormat;
use crate::time::UnixNanos;
use crate::wire::{
    AnswerParts, BriefReading, DecodeAnswer, EncodeAnswer, InspectAnswer, KnownDomains,
    MatchReading,
};

/// What reads ids, and what is said of those that it reads.
pub struct Decoding {
    decoder: Decoder,
    parts: AnswerParts,
    numbers: NumberRules,
}

/// Decoding at one moment, which decides what times are plausible.
pub struct DecodingAt<'a> {
    decoder: DecoderAt<'a>,
    parts: &'a AnswerParts,
    numbers: &'a NumberRules,
}

/// What is asked to be tried is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownReading {
    /// No format has this name.
    #[error(transparent)]
    Format(UnknownFormat),
    /// None of the formats that are tried has this encoding.
    #[error("no format that is tried has an encoding {0:?}; /formats lists them")]
    Encoding(String),
}

impl Decoding {
    /// Reads with this decoder, names these domains, and knows how numbers of series are written.
    pub fn new(decoder: Decoder, domains: KnownDomains, numbers: NumberRules) -> Decoding {
        Decoding {
            parts: AnswerParts::new(decoder.formats(), domains),
            decoder,
            numbers,
        }
    }

    /// How numbers of series are written.
    pub fn number_rules(&self) -> &NumberRules {
        &self.numbers
    }

    /// What reads ids.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Every format that is tried, in order.
    pub fn formats(&self) -> &[Arc<Format>] {
        self.decoder.formats()
    }

    /// The format of that name.
    ///
    /// # Errors
    /// [`UnknownFormat`] says which there are.
    pub fn format(&self, name: &str) -> Result<&Arc<Format>, UnknownFormat> {
        self.formats()
            .iter()
            .find(|format| format.name == name)
            .ok_or_else(|| {
                UnknownFormat::among(
                    self.formats().iter().map(|format| format.name.as_str()),
                    name,
                )
            })
    }

    /// That there are formats and encodings of these names.
    ///
    /// # Errors
    /// [`UnknownReading`].
    pub fn check(&self, filter: DecodeFilter<'_>) -> Result<(), UnknownReading> {
        let tried = match filter.format {
            None => self.formats(),
            Some(name) => std::slice::from_ref(self.format(name).map_err(UnknownReading::Format)?),
        };
        let is_among = |format: &Format| {
            filter
                .among
                .is_none_or(|names| names.contains(&format.name))
        };
        match filter.encoding {
            Some(name)
                if !tried
                    .iter()
                    .any(|format| is_among(format) && format.encoding(name).is_some()) =>
            {
                Err(UnknownReading::Encoding(name.to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Decoding while the clock shows `now`.
    pub fn at(&self, now: UnixNanos) -> DecodingAt<'_> {
        DecodingAt {
            decoder: self.decoder.at(now),
            parts: &self.parts,
            numbers: &self.numbers,
        }
    }
}

impl DecodingAt<'_> {
    /// Adds a line to a column. Its fingerprint, if it is not blank.
    pub fn inspect(
        &self,
        column: &mut IdColumn,
        line: &str,
        filter: DecodeFilter<'_>,
    ) -> Option<Fingerprint> {
        column.add(line, &self.decoder, filter)
    }

    /// The verdict on a column, of whose lines `duplicates` were there before.
    pub fn verdict(
        &self,
        column: &IdColumn,
        duplicates: u64,
        filter: DecodeFilter<'_>,
    ) -> InspectAnswer<'_> {
        InspectAnswer::new(&column.judge(&self.decoder, filter), duplicates)
    }

    /// All that a text can be as an id, and as a number of a series, unless it is asked for some ids alone.
    pub fn decode<'a>(&'a self, text: &'a str, filter: DecodeFilter<'_>) -> DecodeAnswer<'a> {
        let answer = DecodeAnswer::new(text, &self.decoder, filter, self.parts);
        let is_for_all = !filter.is_pinned() && filter.among.is_none();
        if is_for_all {
            answer.with_numbers(self.numbers.read(text))
        } else {
            answer
        }
    }

    /// What is said of an id that was made of fields, of one of the formats that are tried.
    pub fn encoded<'a>(&'a self, format: &'a Format, made: &IdOfFields) -> EncodeAnswer<'a> {
        EncodeAnswer::new(format, made, &self.decoder, self.parts)
    }

    /// Formats that ids of this one may be taken for, because the evidence leaves a doubt.
    pub fn rivals(&self, format: &Format) -> Vec<String> {
        let text = format.canonical().to_text(format.example());
        let decoded = self.decoder.decode(&text, DecodeFilter::default());
        let Some(found) = decoded
            .matches
            .iter()
            .find(|found| found.format().name == format.name)
        else {
            return Vec::new();
        };
        let mut names: Vec<String> = Vec::new();
        for rival in decoded.rivals(found).map(|rival| &rival.format().name) {
            if !names.contains(rival) {
                names.push(rival.clone());
            }
        }
        names
    }

    /// What a text is most likely.
    pub fn best<'a>(&'a self, text: &'a str, filter: DecodeFilter<'_>) -> BriefReading<'a> {
        BriefReading::new(text, &self.decoder, filter, self.parts)
    }

    /// The reading of that, without the ids that the text is near to.
    pub fn reading_of(&self, text: &str, filter: DecodeFilter<'_>) -> Option<MatchReading<'_>> {
        BriefReading::reading_of(text, &self.decoder, filter, self.parts)
    }
}
