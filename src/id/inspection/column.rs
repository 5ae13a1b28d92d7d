//! What a verdict is made of: a bounded sample of the lines, and what each reading of them has in common.

use std::collections::{BTreeMap, BTreeSet};

use super::fingerprint::Fingerprint;
use crate::id::decoding::{DecodeFilter, DecoderAt, Match};
use crate::id::layout::FieldKind;
use crate::time::UnixTime;

/// Longer texts are no ids.
const SAMPLED_LEN_MAX: usize = 256;

/// So many different worker numbers are kept, and so many numbers of lines that are no ids.
pub(super) const WORKERS_MAX: usize = 1000;
const LINES_MAX: usize = 10;

/// A column of texts, line by line. Takes the same memory whatever its length.
///
/// ```
/// use std::sync::Arc;
/// use idmint::id::{Certainty, DecodeFilter, Decoder, Finding, Format, IdColumn};
/// use idmint::time::UnixNanos;
///
/// let decoder = Decoder::new(vec![Arc::new(Format::built_in("ulid").expect("a built-in format"))]);
/// let decoder = decoder.at(UnixNanos::from_seconds(1_469_922_900));
/// let mut column = IdColumn::default();
/// for line in ["id", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "", "01ARZ3NDEKQ8M0Z5R7JY0S4C2W", "01ARZ3NDEJ5V3VYB0M6ZQ6H4X1"] {
///     column.add(line, &decoder, DecodeFilter::default());
/// }
/// let verdict = column.judge(&decoder, DecodeFilter::default());
/// assert_eq!((verdict.lines, verdict.blank), (4, 1));
/// let Finding::Told { candidate, certainty, .. } = &verdict.finding else { panic!("{:?}", verdict.finding) };
/// assert_eq!((candidate.format.name.as_str(), candidate.none, candidate.backwards), ("ulid", 1, 1));
/// assert!(matches!(certainty, Certainty::Certain | Certainty::Likely));
/// ```
#[derive(Debug, Default)]
pub struct IdColumn {
    /// Lines that are not blank.
    pub(super) lines: u64,
    pub(super) blank: u64,
    /// By their fingerprints; empty for a text that is too long for an id.
    pub(super) sample: BTreeMap<Fingerprint, String>,
    /// By the positions of format and encoding.
    pub(super) readings: BTreeMap<(usize, usize), ReadLines>,
    /// The numbers of the first lines, for a reading that begins later.
    first_lines: Vec<u64>,
}

/// The lines that are ids of one format in one encoding.
#[derive(Debug, Default)]
pub(super) struct ReadLines {
    pub(super) count: u64,
    pub(super) span: Option<(UnixTime, UnixTime)>,
    /// How many are earlier than the one before.
    pub(super) backwards: u64,
    pub(super) workers: BTreeSet<u128>,
    pub(super) has_more_workers: bool,
    /// The first lines that are none.
    pub(super) none_at: Vec<u64>,
    before: Option<UnixTime>,
    last_line: u64,
}

impl IdColumn {
    /// So many different texts are judged: those with the least fingerprints, which is a fair choice and always the same.
    pub const SAMPLE_MAX: usize = 1024;

    /// Takes the next line. Blanks around it count for nothing, and a line of nothing else is only counted. The fingerprint of what was
    /// taken; a caller who keeps all of them knows what is there twice.
    pub fn add(
        &mut self,
        line: &str,
        decoder: &DecoderAt<'_>,
        filter: DecodeFilter<'_>,
    ) -> Option<Fingerprint> {
        let text = line.trim();
        if text.is_empty() {
            self.blank += 1;
            return None;
        }
        self.lines += 1;
        let number = self.lines + self.blank;
        let fingerprint = Fingerprint::of(text);
        self.keep(fingerprint, text);
        let filter = DecodeFilter {
            among: None,
            ..filter
        };
        if text.len() <= SAMPLED_LEN_MAX {
            for found in decoder
                .readings(text, filter)
                .into_iter()
                .filter(Match::is_plausible)
            {
                let first_lines = &self.first_lines;
                let key = (found.format_index(), found.encoding_index());
                let read = self
                    .readings
                    .entry(key)
                    .or_insert_with(|| ReadLines::after(first_lines));
                read.add(&found, number);
            }
        }
        self.readings
            .values_mut()
            .for_each(|read| read.note_none(number));
        if self.first_lines.len() < LINES_MAX {
            self.first_lines.push(number);
        }
        Some(fingerprint)
    }

    /// The number of the first line that is not blank.
    pub(super) fn first_line(&self) -> Option<u64> {
        self.first_lines.first().copied()
    }

    fn keep(&mut self, fingerprint: Fingerprint, text: &str) {
        let is_kept = self.sample.len() < Self::SAMPLE_MAX
            || self
                .sample
                .last_key_value()
                .is_some_and(|(last, _)| fingerprint < *last);
        if !is_kept || self.sample.contains_key(&fingerprint) {
            return;
        }
        let kept = if text.len() <= SAMPLED_LEN_MAX {
            text
        } else {
            ""
        };
        self.sample.insert(fingerprint, kept.to_owned());
        if self.sample.len() > Self::SAMPLE_MAX {
            self.sample.pop_last();
        }
    }
}

impl ReadLines {
    /// Of no line so far; those before were none.
    fn after(lines: &[u64]) -> ReadLines {
        ReadLines {
            none_at: lines.to_vec(),
            ..ReadLines::default()
        }
    }

    fn add(&mut self, found: &Match<'_>, line: u64) {
        if self.last_line == line {
            return;
        }
        self.count += 1;
        self.last_line = line;
        let parts = found.parts();
        if let Some(worker) = parts.layout.sum_of(FieldKind::Worker, &parts.values) {
            if self.workers.len() < WORKERS_MAX {
                self.workers.insert(worker);
            } else {
                self.has_more_workers |= !self.workers.contains(&worker);
            }
        }
        if let Some(time) = parts.time {
            self.backwards += u64::from(self.before.is_some_and(|before| time < before));
            self.before = Some(time);
            let (from, to) = self.span.unwrap_or((time, time));
            self.span = Some((from.min(time), to.max(time)));
        }
    }

    fn note_none(&mut self, line: u64) {
        if self.last_line != line && self.none_at.len() < LINES_MAX {
            self.none_at.push(line);
        }
    }

    /// Whether the first line that counts is none, as a heading is.
    pub(super) fn is_headed(&self, first_line: Option<u64>) -> bool {
        self.none_at
            .first()
            .is_some_and(|none| Some(*none) == first_line)
    }
}
