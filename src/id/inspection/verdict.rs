//! What a column is, or that it cannot be told.

use std::collections::{BTreeMap, BTreeSet};

use super::column::{IdColumn, ReadLines};
use super::explanation::{Explanation, Reading, bits_of_any_texts};
use crate::id::decoding::{DecodeFilter, DecoderAt, Match};
use crate::id::encoding::Encoding;
use crate::id::format::Format;
use crate::time::UnixTime;

/// An explanation that saves no more than this against the next one leaves a doubt: it must be a thousand times as likely.
const TOLD_BITS: f64 = 10.0;

/// From here on it is no longer only likely: a millionfold.
const CERTAIN_BITS: f64 = 20.0;

/// One line in so many may be none, beside a heading.
const LINES_OF_ONE_OTHER: u64 = 20;

/// So many candidates are named where it cannot be told.
const CANDIDATES_MAX: usize = 8;

/// What a column is.
#[derive(Debug)]
pub struct Verdict<'a> {
    /// Lines that are not blank.
    pub lines: u64,
    /// Lines that are.
    pub blank: u64,
    /// What they are.
    pub finding: Finding<'a>,
}

/// What the lines are.
#[derive(Debug)]
pub enum Finding<'a> {
    /// Ids of this format.
    Told {
        /// The format, and what is known of the lines as its ids.
        candidate: Candidate<'a>,
        /// How sure that is.
        certainty: Certainty,
        /// By how many bits nothing else explains the column as well; `None` where the caller named the format.
        evidence_bits: Option<f64>,
    },
    /// It cannot be told.
    Untold {
        /// Why not.
        why: Untold,
        /// What they may be, the likeliest first.
        candidates: Vec<Candidate<'a>>,
    },
}

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// At least 20 bits: a millionfold.
    Certain,
    /// At least 10 bits: a thousandfold.
    Likely,
    /// The caller named the format.
    Named,
}

impl Certainty {
    /// The word for it in answers.
    pub const fn name(self) -> &'static str {
        match self {
            Certainty::Certain => "certain",
            Certainty::Likely => "likely",
            Certainty::Named => "named",
        }
    }
}

/// Why it cannot be told what a column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untold {
    /// No line, or no format that reads 19 of 20.
    NoFormat,
    /// Several formats explain the column about as well.
    SeveralFormats,
    /// What is no format known here explains it about as well: numbers, another layout, another epoch.
    NoBetterThanChance,
}

impl Untold {
    /// The word for it in answers.
    pub const fn name(self) -> &'static str {
        match self {
            Untold::NoFormat => "no_format",
            Untold::SeveralFormats => "several_formats",
            Untold::NoBetterThanChance => "no_better_than_chance",
        }
    }
}

/// The lines of a column as ids of one format.
#[derive(Debug)]
pub struct Candidate<'a> {
    /// The format.
    pub format: &'a Format,
    /// The encoding they are written in.
    pub encoding: &'a Encoding,
    /// How many lines are its ids, and not of a time that cannot be yet.
    pub ids: u64,
    /// How many lines are none.
    pub none: u64,
    /// The numbers of the first of those, from 1.
    pub none_at: Vec<u64>,
    /// The earliest and the latest time; `None` for a format without time.
    pub span: Option<(UnixTime, UnixTime)>,
    /// How many ids are of an earlier time than the one before.
    pub backwards: u64,
    /// The worker numbers, the first thousand that were seen.
    pub workers: BTreeSet<u128>,
    /// Whether there are others.
    pub has_more_workers: bool,
}

/// A reading of nearly all lines, with what it takes to explain the sample by it.
struct Explained<'a> {
    key: (usize, usize),
    one: Match<'a>,
    bits: f64,
    /// How much less that is than what is no format.
    saved: f64,
}

impl IdColumn {
    /// What the lines are that were added, by the same decoder and filter.
    pub fn judge<'a>(&self, decoder: &DecoderAt<'a>, filter: DecodeFilter<'_>) -> Verdict<'a> {
        Verdict {
            lines: self.lines,
            blank: self.blank,
            finding: self.find(decoder, filter),
        }
    }

    fn find<'a>(&self, decoder: &DecoderAt<'a>, filter: DecodeFilter<'_>) -> Finding<'a> {
        // All formats are weighed, also those that the caller is told nothing of: they may be what it is.
        let is_permitted = |one: &Explained<'_>| {
            filter
                .among
                .is_none_or(|names| names.contains(&one.one.format().name))
        };
        let mut explained = self.explain(
            decoder,
            DecodeFilter {
                among: None,
                ..filter
            },
        );
        explained.sort_by(|one, other| one.bits.total_cmp(&other.bits));
        let Some(best) = explained.first() else {
            return Finding::Untold {
                why: Untold::NoFormat,
                candidates: Vec::new(),
            };
        };
        if filter.format.is_some() {
            let candidate = self.candidate(best);
            return Finding::Told {
                candidate,
                certainty: Certainty::Named,
                evidence_bits: None,
            };
        }
        let other = explained.iter().find(|other| other.key.0 != best.key.0);
        let over_other = other.map_or(f64::INFINITY, |other| other.bits - best.bits);
        let evidence_bits = over_other.min(best.saved);
        if evidence_bits >= TOLD_BITS && !is_permitted(best) {
            return Finding::Untold {
                why: Untold::NoFormat,
                candidates: Vec::new(),
            };
        }
        if evidence_bits >= TOLD_BITS {
            let certainty = if evidence_bits >= CERTAIN_BITS {
                Certainty::Certain
            } else {
                Certainty::Likely
            };
            return Finding::Told {
                candidate: self.candidate(best),
                certainty,
                evidence_bits: Some(evidence_bits),
            };
        }
        let why = if best.saved < TOLD_BITS {
            Untold::NoBetterThanChance
        } else {
            Untold::SeveralFormats
        };
        let near = explained
            .iter()
            .filter(|one| is_permitted(one) && one.bits - best.bits < TOLD_BITS && one.saved > 0.0);
        Finding::Untold {
            why,
            candidates: near
                .take(CANDIDATES_MAX)
                .map(|one| self.candidate(one))
                .collect(),
        }
    }

    /// The readings that hold for nearly all lines, each explained.
    fn explain<'a>(&self, decoder: &DecoderAt<'a>, filter: DecodeFilter<'_>) -> Vec<Explained<'a>> {
        let is_enough = |read: &ReadLines| {
            let others = self.lines - read.count - u64::from(read.is_headed(self.first_line()));
            others * LINES_OF_ONE_OTHER <= self.lines
        };
        let keys = self
            .readings
            .iter()
            .filter(|(_, read)| is_enough(read) || filter.format.is_some());
        let mut readings: BTreeMap<(usize, usize), Vec<Reading<'_, 'a>>> =
            keys.map(|(key, _)| (*key, Vec::new())).collect();
        for text in self.sample.values() {
            for found in decoder
                .readings(text, filter)
                .into_iter()
                .filter(Match::is_plausible)
            {
                if let Some(of_key) =
                    readings.get_mut(&(found.format_index(), found.encoding_index()))
                {
                    // A text that is an id with a prefix and without is read once.
                    if of_key
                        .last()
                        .is_none_or(|last| !std::ptr::eq(last.text, text.as_str()))
                    {
                        of_key.push(Reading { text, found });
                    }
                }
            }
        }
        let of_all = bits_of_any_texts(self.sample.values().map(String::as_str));
        let explain = |(key, readings): (&(usize, usize), &Vec<Reading<'_, 'a>>)| {
            let Explanation {
                bits,
                bits_of_rival,
            } = Explanation::of(readings, decoder.formats(), decoder.now());
            let of_others = of_all - bits_of_any_texts(readings.iter().map(|reading| reading.text));
            Explained {
                key: *key,
                one: readings[0].found,
                bits: bits + of_others,
                saved: bits_of_rival - bits,
            }
        };
        readings
            .iter()
            .filter(|(_, readings)| !readings.is_empty())
            .map(explain)
            .collect()
    }

    fn candidate<'a>(&self, explained: &Explained<'a>) -> Candidate<'a> {
        let read = &self.readings[&explained.key];
        Candidate {
            format: explained.one.format(),
            encoding: explained.one.encoding(),
            ids: read.count,
            none: self.lines - read.count,
            none_at: read.none_at.clone(),
            span: read.span,
            backwards: read.backwards,
            workers: read.workers.clone(),
            has_more_workers: read.has_more_workers,
        }
    }
}
