//! The response of `POST /inspect`: the verdict on a column, which is a list of texts that should
//! all have the same format.

use std::fmt;

use serde::Serialize;

use idmint_core::id::{Candidate, Finding, Verdict};
use idmint_core::time::UnixTime;

/// The value of `certainty` if the format of the column could not be determined.
const CANNOT_BE_TOLD: &str = "cannot_be_told";

/// The maximum number of worker numbers in a response.
const WORKERS_LISTED_MAX: usize = 32;

/// The verdict on a column: its format, or the reason why the format could not be determined. Also
/// includes properties of the lines, such as the number of duplicates.
///
/// Members that depend on the format are null if the format could not be determined. As plain text,
/// the response has one line for each member that is not null.
#[derive(Debug, Default, Serialize)]
pub struct InspectAnswer<'a> {
    format: Option<&'a str>,
    encoding: Option<&'a str>,
    certainty: &'static str,
    why: Option<&'static str>,
    evidence_bits: Option<f64>,
    lines: u64,
    blank: u64,
    /// The number of lines that are ids of the format with a plausible time.
    ids: Option<u64>,
    /// The number of non-blank lines that `ids` does not count.
    none: Option<u64>,
    /// The line numbers, counted from 1, of the first lines that `none` counts.
    none_lines: Vec<u64>,
    /// The number of lines that are equal to an earlier line.
    duplicates: u64,
    /// The number of ids whose time is earlier than the time of the previous id.
    backwards: Option<u64>,
    from: Option<String>,
    to: Option<String>,
    workers: Option<Workers>,
    /// The number of lines whose id [could be minted
    /// again](idmint_core::id::Format::can_mint_again). Only the command `idmint inspect --format`
    /// counts these lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    mintable: Option<u64>,
    candidates: Vec<InspectCandidate<'a>>,
    notes: Vec<InspectNote>,
}

/// A note about the whole column, for example that digits were lost by rounding.
#[derive(Debug, Serialize)]
struct InspectNote {
    kind: &'static str,
    detail: String,
}

/// The worker numbers in a column's ids.
#[derive(Debug, Serialize)]
struct Workers {
    /// The number of different worker numbers. If `more` is `true`, this is only a lower bound.
    count: usize,
    /// `true` if the column has more worker numbers than `count`.
    more: bool,
    /// The smallest worker numbers.
    numbers: Vec<String>,
}

/// A possible format of the column. Listed if the format could not be determined.
#[derive(Debug, Serialize)]
struct InspectCandidate<'a> {
    format: &'a str,
    encoding: &'a str,
    ids: u64,
    from: Option<String>,
    to: Option<String>,
}

impl<'a> InspectAnswer<'a> {
    /// Creates the response for a verdict. `duplicates` is the number of lines that are equal to an
    /// earlier line.
    pub fn new(verdict: &Verdict<'a>, duplicates: u64) -> InspectAnswer<'a> {
        let notes = verdict.notes.iter().map(|note| InspectNote {
            kind: note.kind.name(),
            detail: note.detail.clone(),
        });
        let unknown = InspectAnswer {
            certainty: CANNOT_BE_TOLD,
            lines: verdict.lines,
            blank: verdict.blank,
            duplicates,
            notes: notes.collect(),
            ..InspectAnswer::default()
        };
        match &verdict.finding {
            Finding::Untold { why, candidates } => InspectAnswer {
                why: Some(why.name()),
                candidates: candidates.iter().map(InspectCandidate::new).collect(),
                ..unknown
            },
            Finding::Told {
                candidate,
                certainty,
                evidence_bits,
            } => {
                let told = InspectCandidate::new(candidate);
                InspectAnswer {
                    format: Some(told.format),
                    encoding: Some(told.encoding),
                    certainty: certainty.name(),
                    evidence_bits: evidence_bits.map(|bits| (bits * 10.0).round() / 10.0),
                    ids: Some(told.ids),
                    none: Some(candidate.none),
                    none_lines: candidate.none_at.clone(),
                    backwards: candidate.span.map(|_| candidate.backwards),
                    from: told.from,
                    to: told.to,
                    workers: Workers::of(candidate),
                    ..unknown
                }
            }
        }
    }

    /// Adds the number of lines whose id could be minted again.
    #[must_use]
    pub fn with_mintable(self, mintable: Option<u64>) -> InspectAnswer<'a> {
        InspectAnswer { mintable, ..self }
    }

    /// Returns `true` if the format of the column was determined.
    pub fn is_told(&self) -> bool {
        self.format.is_some()
    }
}

impl Workers {
    /// Returns the worker numbers in the ids, or `None` if the format has no worker field.
    fn of(candidate: &Candidate<'_>) -> Option<Workers> {
        let numbers = candidate
            .workers
            .iter()
            .take(WORKERS_LISTED_MAX)
            .map(u128::to_string);
        let workers = Workers {
            count: candidate.workers.len(),
            more: candidate.has_more_workers,
            numbers: numbers.collect(),
        };
        (workers.count > 0).then_some(workers)
    }
}

impl<'a> InspectCandidate<'a> {
    fn new(candidate: &Candidate<'a>) -> InspectCandidate<'a> {
        let digits = candidate.format.tick.map_or(0, |tick| tick.second_digits());
        let text = |time: UnixTime| time.to_text(digits);
        InspectCandidate {
            format: &candidate.format.name,
            encoding: candidate.encoding.name(),
            ids: candidate.ids,
            from: candidate.span.and_then(|(from, _)| text(from)),
            to: candidate.span.and_then(|(_, to)| text(to)),
        }
    }
}

impl fmt::Display for InspectAnswer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.format, self.encoding) {
            (Some(format), Some(encoding)) => {
                writeln!(f, "format      {format} ({encoding}), {}", self.certainty)?
            }
            _ => {
                let why = match self.why {
                    Some("no_format") => "no format reads 19 of 20 lines in one encoding",
                    Some("several_formats") => "several formats fit the lines equally well",
                    Some("mixed_formats") => "the lines are ids of several formats",
                    _ => "no built-in format fits the lines better than random text",
                };
                writeln!(f, "format      unknown: {why}")?;
            }
        }
        for candidate in &self.candidates {
            let (format, encoding) = (candidate.format, candidate.encoding);
            match self.why {
                Some("mixed_formats") => {
                    let ids = candidate.ids;
                    write!(f, "has         {ids} of {format} ({encoding})")?;
                }
                _ => write!(f, "may be      {format} ({encoding})")?,
            }
            write_span(f, ", ", &candidate.from, &candidate.to)?;
        }
        writeln!(f, "lines       {}", self.lines)?;
        if self.blank > 0 {
            writeln!(f, "blank       {}", self.blank)?;
        }
        if let Some(none) = self.none {
            let lines: Vec<String> = self.none_lines.iter().map(u64::to_string).collect();
            let more = match none > self.none_lines.len() as u64 {
                true => ", …",
                false => "",
            };
            match none {
                0 => writeln!(f, "none        0")?,
                _ => writeln!(f, "none        {none} (row {}{more})", lines.join(", "))?,
            }
        }
        writeln!(f, "duplicates  {}", self.duplicates)?;
        if let Some(backwards) = self.backwards {
            writeln!(f, "backwards   {backwards}")?;
            write_span(f, "span        ", &self.from, &self.to)?;
        }
        if let Some(workers) = &self.workers {
            let (count, numbers) = (workers.count, &workers.numbers);
            let rest = if count > numbers.len() { ", …" } else { "" };
            let more = if workers.more { "more than " } else { "" };
            writeln!(f, "workers     {more}{count}: {}{rest}", numbers.join(", "))?;
        }
        if let Some(mintable) = self.mintable {
            let lines = self.lines;
            writeln!(
                f,
                "mintable    {mintable} of {lines} lines can be minted again"
            )?;
        }
        for note in &self.notes {
            writeln!(f, "note        {}", note.detail)?;
        }
        Ok(())
    }
}

fn write_span(
    f: &mut fmt::Formatter<'_>,
    before: &str,
    from: &Option<String>,
    to: &Option<String>,
) -> fmt::Result {
    match (from, to) {
        (Some(from), Some(to)) => writeln!(f, "{before}{from} to {to}"),
        _ => writeln!(f),
    }
}
