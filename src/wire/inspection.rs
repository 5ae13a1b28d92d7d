//! `POST /inspect`: the verdict on a column of ids.

use std::fmt;

use serde::Serialize;

use crate::id::{Candidate, Finding, Verdict};
use crate::time::UnixTime;

/// What stands for the certainty of a column that cannot be told.
const CANNOT_BE_TOLD: &str = "cannot_be_told";

/// So many worker numbers are listed.
const WORKERS_LISTED_MAX: usize = 32;

/// What a column is, or that it cannot be told, and what its lines have in common.
///
/// What is only known of the ids of a format is null where none is told. As text: a line for each member that says something.
#[derive(Debug, Serialize)]
pub struct InspectAnswer<'a> {
    format: Option<&'a str>,
    encoding: Option<&'a str>,
    certainty: &'static str,
    why: Option<&'static str>,
    evidence_bits: Option<f64>,
    lines: u64,
    blank: u64,
    ids: Option<u64>,
    none: Option<u64>,
    none_lines: Vec<u64>,
    duplicates: u64,
    backwards: Option<u64>,
    from: Option<String>,
    to: Option<String>,
    workers: Option<Workers>,
    candidates: Vec<InspectCandidate<'a>>,
}

/// The worker numbers of the ids.
#[derive(Debug, Serialize)]
struct Workers {
    /// How many there are, or the least number that there may be.
    count: usize,
    /// Whether there are more than that.
    more: bool,
    /// The least of them.
    numbers: Vec<String>,
}

/// What a column may be that cannot be told.
#[derive(Debug, Serialize)]
struct InspectCandidate<'a> {
    format: &'a str,
    encoding: &'a str,
    ids: u64,
    from: Option<String>,
    to: Option<String>,
}

impl<'a> InspectAnswer<'a> {
    /// What is said of a column of which `duplicates` lines were there before.
    pub fn new(verdict: &Verdict<'a>, duplicates: u64) -> InspectAnswer<'a> {
        let unknown = InspectAnswer {
            format: None,
            encoding: None,
            certainty: CANNOT_BE_TOLD,
            why: None,
            evidence_bits: None,
            lines: verdict.lines,
            blank: verdict.blank,
            ids: None,
            none: None,
            none_lines: Vec::new(),
            duplicates,
            backwards: None,
            from: None,
            to: None,
            workers: None,
            candidates: Vec::new(),
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
                let InspectCandidate {
                    format,
                    encoding,
                    ids,
                    from,
                    to,
                } = InspectCandidate::new(candidate);
                InspectAnswer {
                    format: Some(format),
                    encoding: Some(encoding),
                    certainty: certainty.name(),
                    evidence_bits: evidence_bits.map(|bits| (bits * 10.0).round() / 10.0),
                    ids: Some(ids),
                    none: Some(candidate.none),
                    none_lines: candidate.none_at.clone(),
                    backwards: candidate.span.map(|_| candidate.backwards),
                    from,
                    to,
                    workers: Workers::of(candidate),
                    ..unknown
                }
            }
        }
    }

    /// Whether it is told what the column is.
    pub fn is_told(&self) -> bool {
        self.format.is_some()
    }
}

impl Workers {
    /// `None` where the format has none.
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
                    Some("no_format") => "no format reads 19 of 20 lines",
                    Some("several_formats") => "several formats explain the lines as well",
                    _ => "what is no format known here explains the lines as well",
                };
                writeln!(f, "format      cannot be told: {why}")?;
            }
        }
        for candidate in &self.candidates {
            write!(
                f,
                "may be      {} ({})",
                candidate.format, candidate.encoding
            )?;
            write_span(f, ", ", &candidate.from, &candidate.to)?;
        }
        writeln!(f, "lines       {}", self.lines)?;
        if self.blank > 0 {
            writeln!(f, "blank       {}", self.blank)?;
        }
        if let Some(none) = self.none {
            let lines: Vec<String> = self.none_lines.iter().map(u64::to_string).collect();
            let of_lines = if none == 0 {
                String::new()
            } else {
                format!(" (line {}", lines.join(", "))
            };
            let more = if none > self.none_lines.len() as u64 {
                ", …)"
            } else if none == 0 {
                ""
            } else {
                ")"
            };
            writeln!(f, "none        {none}{of_lines}{more}")?;
        }
        writeln!(f, "duplicates  {}", self.duplicates)?;
        if let Some(backwards) = self.backwards {
            writeln!(f, "backwards   {backwards}")?;
            write_span(f, "span        ", &self.from, &self.to)?;
        }
        if let Some(Workers {
            count,
            more,
            numbers,
        }) = &self.workers
        {
            let rest = if *count > numbers.len() { ", …" } else { "" };
            let more = if *more { "more than " } else { "" };
            writeln!(f, "workers     {more}{count}: {}{rest}", numbers.join(", "))?;
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
