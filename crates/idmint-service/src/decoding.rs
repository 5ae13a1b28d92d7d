//! Decoding of ids, shared by the HTTP routes and the commands.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::formats::UnknownFormat;
use idmint_core::id::{
    DecodeFilter, Decoder, DecoderAt, Fingerprint, Format, FormatAlias, IdColumn, IdOfFields,
    Verdict,
};
use idmint_core::time::UnixNanos;
use idmint_records::ledger::NumberRules;
use idmint_wire::{
    AnswerParts, BriefReading, ColumnIds, DecodeAnswer, EncodeAnswer, InspectAnswer, KnownDomains,
};

/// A decoder of ids and of numbers such as `INV-00042`. It knows the domains hashed in SIQ ids.
pub struct Decoding {
    decoder: Decoder,
    parts: AnswerParts,
    numbers: NumberRules,
    /// The names of the disabled formats.
    off: Vec<String>,
}

/// A decoder for one request, with the time of the request. An id with a later time is implausible,
/// because an id cannot have been minted in the future.
pub struct DecodingAt<'a> {
    decoder: DecoderAt<'a>,
    parts: &'a AnswerParts,
    numbers: &'a NumberRules,
}

/// The error for a decode filter that names an unknown format or encoding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownReading {
    /// No format has this name.
    #[error(transparent)]
    Format(UnknownFormat),
    /// None of the tried formats has this encoding.
    #[error(
        "none of the tried formats has an encoding {given:?}; their encodings are {}",
        .known.join(", ")
    )]
    Encoding {
        /// The name that the caller gave.
        given: String,
        /// The names of the encodings that the tried formats have.
        known: Vec<String>,
    },
}

impl Decoding {
    /// Creates a decoder that also recognizes the domains in `domains`. The rules `numbers` define
    /// how numbers of series are written, such as `INV-00042`, so it recognizes them too. `off`
    /// contains the names of the disabled formats, for errors.
    pub fn new(
        decoder: Decoder,
        domains: KnownDomains,
        numbers: NumberRules,
        off: Vec<String>,
    ) -> Decoding {
        Decoding {
            parts: AnswerParts::new(decoder.formats(), domains),
            decoder,
            numbers,
            off,
        }
    }

    /// Returns the rules for how numbers of series are written.
    pub fn number_rules(&self) -> &NumberRules {
        &self.numbers
    }

    /// Returns the decoder of ids.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Returns all formats that the decoder tries, in order.
    pub fn formats(&self) -> &[Arc<Format>] {
        self.decoder.formats()
    }

    /// Returns the format with this current or former name.
    ///
    /// # Errors
    /// Returns [`UnknownFormat`] if no enabled format has this name. The error says that the format
    /// is disabled, or lists the enabled formats.
    pub fn format(&self, name: &str) -> Result<&Arc<Format>, UnknownFormat> {
        let current = FormatAlias::current_name(name);
        self.formats()
            .iter()
            .find(|format| format.name == current)
            .ok_or_else(|| {
                let names = self.formats().iter().map(|format| format.name.as_str());
                UnknownFormat::among(names, &self.off, name)
            })
    }

    /// Checks that the format and the encoding that a filter names exist, if it names any.
    ///
    /// # Errors
    /// Returns [`UnknownReading`] if the format or the encoding does not exist.
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
        let Some(given) = filter.encoding else {
            return Ok(());
        };
        let tried = tried.iter().filter(|format| is_among(format));
        let known: BTreeSet<&str> = tried
            .flat_map(|format| format.encodings.iter().map(|encoding| encoding.name()))
            .collect();
        if known.contains(given) {
            return Ok(());
        }
        Err(UnknownReading::Encoding {
            given: given.to_owned(),
            known: known.into_iter().map(str::to_owned).collect(),
        })
    }

    /// Returns a decoder for a request at the time `now`. The decoder treats times in ids after
    /// `now` as implausible.
    pub fn at(&self, now: UnixNanos) -> DecodingAt<'_> {
        DecodingAt {
            decoder: self.decoder.at(now),
            parts: &self.parts,
            numbers: &self.numbers,
        }
    }
}

/// `true` if texts are read as ids and also as numbers of a series, such as invoice numbers.
/// `false` if the filter selects id formats or an encoding, which numbers do not have.
fn has_numbers(filter: DecodeFilter<'_>) -> bool {
    !filter.is_pinned() && filter.among.is_none()
}

impl DecodingAt<'_> {
    /// Adds a line of a file to a column, whose format is later judged from all its lines together.
    /// Returns the hash of the line, so that the caller can count repeated lines. Returns `None` if
    /// the line is blank.
    pub fn inspect(
        &self,
        column: &mut IdColumn,
        line: &str,
        filter: DecodeFilter<'_>,
    ) -> Option<Fingerprint> {
        column.add(line, &self.decoder, filter)
    }

    /// Returns the verdict on a column of ids: the formats that its lines fit. `duplicates` is the
    /// number of lines that repeat earlier lines.
    pub fn verdict(
        &self,
        column: &IdColumn,
        duplicates: u64,
        filter: DecodeFilter<'_>,
    ) -> InspectAnswer<'_> {
        InspectAnswer::new(&self.judge(column, filter), duplicates)
    }

    /// Returns all possible readings of a text as an id. The result also contains readings as a
    /// number of a series, such as `INV-00042`, unless the filter selects formats or an encoding.
    pub fn decode<'a>(&'a self, text: &'a str, filter: DecodeFilter<'_>) -> DecodeAnswer<'a> {
        let answer = DecodeAnswer::new(text, &self.decoder, filter, self.parts);
        if has_numbers(filter) {
            answer.with_numbers(self.numbers.read(text))
        } else {
            answer
        }
    }

    /// Returns `true` if [`decode`](DecodingAt::decode) reads the text as a number of a series.
    pub fn is_number(&self, text: &str, filter: DecodeFilter<'_>) -> bool {
        has_numbers(filter) && !self.numbers.read(text).is_empty()
    }

    /// Returns the response to an encode request. `made` is the id that was made from the given
    /// field values. Its format must be one of the decoder's formats.
    pub fn encoded<'a>(&'a self, format: &'a Format, made: &IdOfFields) -> EncodeAnswer<'a> {
        EncodeAnswer::new(format, made, &self.decoder, self.parts)
    }

    /// Decodes the example id of a format, and returns the names of the other formats that are
    /// nearly as likely. If there are any, the text of an id does not show to which of these
    /// formats the id belongs.
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

    /// Returns the most likely reading of a text as an id.
    pub fn best<'a>(&'a self, text: &'a str, filter: DecodeFilter<'_>) -> BriefReading<'a> {
        BriefReading::new(text, &self.decoder, filter, self.parts)
    }

    /// Returns the most likely reading of a text in a column of ids. If the format and the encoding
    /// of the column are known, pass them as `ids_of`. The result then also contains the
    /// reading of the text as an id of this format.
    pub fn best_in_column<'a>(
        &'a self,
        text: &'a str,
        filter: DecodeFilter<'_>,
        ids_of: Option<ColumnIds<'_>>,
    ) -> BriefReading<'a> {
        let own = self.best(text, filter);
        match ids_of {
            None => own,
            Some(ids) => own.in_column(ids, &self.decoder, filter, self.parts),
        }
    }

    /// Returns the verdict on a column of ids. The verdict has no count of repeated lines, because
    /// the caller keeps that count.
    pub fn judge(&self, column: &IdColumn, filter: DecodeFilter<'_>) -> Verdict<'_> {
        column.judge(&self.decoder, filter)
    }
}
