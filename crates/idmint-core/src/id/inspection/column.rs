//! Collects the lines of a column of texts, to determine the format of the column. An [`IdColumn`]
//! keeps a sample of bounded size, and a summary of the lines that each format can read.

use std::collections::{BTreeMap, BTreeSet};

use super::fingerprint::Fingerprint;
use crate::id::decoding::{
    DecodeFilter, Decoded, DecoderAt, Match, Note, bits_of_rounded, large_number, lost_digits_note,
    rounded, without_wrapping,
};
use crate::id::format::Parts;
use crate::id::layout::FieldKind;
use crate::time::UnixTime;

/// The maximum length in bytes of a line in the sample of a column. A longer text is no id.
const SAMPLED_LEN_MAX: usize = 256;

/// The minimum evidence, in bits, for the note that the numbers of a column have lost their last
/// digits by rounding. With 20 bits, one random column in 2^20 looks rounded by chance.
const ROUNDED_BITS_MIN: u64 = 20;

/// The maximum number of distinct worker numbers that are stored for each format and encoding.
pub(super) const WORKERS_MAX: usize = 1000;
const LINES_MAX: usize = 10;

/// A column of texts. The caller adds the lines one by one. The memory use does not depend on the
/// number of lines.
///
/// ```
/// use std::sync::Arc;
/// use idmint_core::id::{Certainty, DecodeFilter, Decoder, Finding, Format, IdColumn};
/// use idmint_core::time::UnixNanos;
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
    /// The number of lines that are not blank.
    pub(super) lines: u64,
    pub(super) blank: u64,
    /// A sample of the texts, each with its fingerprint (a hash of the text) as the key. A text
    /// that is too long for an id is stored as the empty text.
    pub(super) sample: BTreeMap<Fingerprint, String>,
    /// A summary of the lines that each encoding reads, keyed by format and encoding index.
    pub(super) readings: BTreeMap<(usize, usize), ReadLines>,
    /// The number of lines that are clearly ids of a format even without the other lines of the
    /// column, keyed by format index and encoding index.
    pub(super) clear: BTreeMap<(usize, usize), u64>,
    /// The number of lines with a number so large that a floating-point number may not hold it
    /// exactly.
    large: u64,
    /// The number of lines counted in `large` that may have lost digits to floating-point rounding.
    rounded: u64,
    /// The evidence, in bits, that the large numbers were rounded to floating-point numbers. With
    /// 20 bits, one random column in 2^20 looks rounded. The evidence counts only if all large
    /// numbers look rounded, so that `rounded` equals `large`.
    rounded_bits: u64,
    /// The line numbers of the first lines that are not blank, at most ten. The list `none_at` of a
    /// format, which has the lines that are not its ids, begins with the lines before its first id.
    first_lines: Vec<u64>,
    /// `true` if the first line that is not blank is clearly an id, or a number that is likely an
    /// id. Such a line is not the heading of the column.
    pub(super) is_first_id: bool,
}

/// A summary of the lines that are ids of one format in one encoding.
#[derive(Debug, Default)]
pub(super) struct ReadLines {
    pub(super) count: u64,
    pub(super) span: Option<(UnixTime, UnixTime)>,
    /// The number of ids whose time is earlier than the time of the previous id.
    pub(super) backwards: u64,
    pub(super) workers: BTreeSet<u128>,
    pub(super) has_more_workers: bool,
    /// The line numbers of the first lines that are not ids of the format, at most ten.
    pub(super) none_at: Vec<u64>,
    before: Option<UnixTime>,
    last_line: u64,
}

impl IdColumn {
    /// The maximum number of distinct texts in the sample. The sample keeps the texts with the
    /// smallest fingerprints, which is an unbiased and reproducible choice.
    pub const SAMPLE_MAX: usize = 1024;

    /// Adds the next line. Whitespace and byte order marks around the text are ignored, and a blank
    /// line is only counted.
    ///
    /// Returns the fingerprint of the text, or `None` for a blank line. A caller that keeps all
    /// fingerprints can find duplicates.
    pub fn add(
        &mut self,
        line: &str,
        decoder: &DecoderAt<'_>,
        filter: DecodeFilter<'_>,
    ) -> Option<Fingerprint> {
        let text = line.trim_matches(|letter: char| letter.is_whitespace() || letter == '\u{feff}');
        if text.is_empty() {
            self.blank += 1;
            return None;
        }
        self.lines += 1;
        let number = self.lines + self.blank;
        let fingerprint = Fingerprint::of(text);
        let bare = without_wrapping(text);
        if let Some(large) = large_number(bare) {
            self.large += 1;
            self.rounded += u64::from(rounded(bare).is_some());
            self.rounded_bits += u64::from(bits_of_rounded(large));
        }
        let filter = DecodeFilter {
            among: None,
            ..filter
        };
        let mut decoded = Decoded::default();
        let mut meant = None;
        if text.len() <= SAMPLED_LEN_MAX {
            decoded.matches = sorted_readings(text, decoder, filter);
            let is_likely = filter.is_pinned() || !decoded.is_unlikely();
            if !is_likely || !decoded.matches.first().is_some_and(Match::is_plausible) {
                meant = decoder.meant_text(text, filter);
            }
            if let Some(meant) = &meant {
                decoded.matches = sorted_readings(meant, decoder, filter);
            }
        }
        let read = meant.as_deref().unwrap_or(text);
        self.keep(fingerprint, read);
        if !decoded.matches.is_empty() {
            let is_told = decoded.matches[0].is_plausible() && !decoded.is_unlikely();
            let may_be_id = is_told && (!decoded.is_ambiguous() || is_number(read));
            self.is_first_id |= self.lines == 1 && may_be_id;
            if let Some(best) = clear_id(read, &decoded) {
                let key = (best.format_index(), best.encoding_index());
                *self.clear.entry(key).or_default() += 1;
            }
            let ids = decoded.matches.into_iter();
            for found in ids.filter(|found| is_id(found, filter)) {
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

    /// Returns the column's notes: at most one, that all large numbers have lost their last digits.
    pub(super) fn notes(&self) -> Vec<Note> {
        let is_rounded =
            self.large > 0 && self.large == self.rounded && self.rounded_bits >= ROUNDED_BITS_MIN;
        let note = is_rounded.then(|| lost_digits_note(self.rounded));
        note.into_iter().collect()
    }

    /// `true` if at least one large number in 16 looks rounded, so that single rows may have lost
    /// digits. Fewer intact Snowflake ids look rounded by chance: one in 256, or one in 25 if each
    /// id is the first of its tick.
    pub fn may_lack_digits(&self) -> bool {
        self.rounded * 16 >= self.large
    }

    /// Returns the line number of the first line in the column that is not blank.
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

/// Returns the readings of a text, the likeliest first.
pub(super) fn sorted_readings<'a>(
    text: &str,
    decoder: &DecoderAt<'a>,
    filter: DecodeFilter<'_>,
) -> Vec<Match<'a>> {
    let mut matches = decoder.readings(text, filter);
    matches.sort_by(Match::rank);
    matches
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|letter| letter.is_ascii_digit())
}

/// Returns the likeliest id of a line that alone is clearly an id of one format. `None` for a
/// decimal number, because many formats have decimal ids. The readings in `decoded` must be sorted.
pub(super) fn clear_id<'a>(text: &str, decoded: &Decoded<'a>) -> Option<Match<'a>> {
    let best = decoded.matches.first().filter(|best| best.is_plausible());
    let is_clear = !decoded.is_unlikely() && !decoded.is_ambiguous() && !is_number(text);
    best.copied().filter(|_| is_clear)
}

/// Returns the worker number of an id, or `None` if the id has no worker field. If worker fields
/// have different names, the first one counts.
pub(super) fn worker_in(parts: &Parts<'_>) -> Option<u128> {
    let mut numbers = parts.numbers();
    let worker = numbers.find(|(field, ..)| field.kind == FieldKind::Worker)?;
    Some(worker.1)
}

/// `true` if `found` counts as an id of the column. An id with an implausible time does not, and a
/// likely word or everyday number only if the caller named the format or the encoding.
pub(super) fn is_id(found: &Match<'_>, filter: DecodeFilter<'_>) -> bool {
    found.is_plausible() && (filter.is_pinned() || !found.is_unlikely())
}

impl ReadLines {
    /// Creates an empty summary for a format that could read none of the lines so far as an id.
    /// `lines` are the numbers of the first of these lines.
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
        if let Some(worker) = worker_in(&parts) {
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

    /// `true` if the first line that is not blank is not an id, so it may be the heading of the
    /// column. `first_line` is the number of that line.
    pub(super) fn is_headed(&self, first_line: Option<u64>) -> bool {
        self.none_at
            .first()
            .is_some_and(|none| Some(*none) == first_line)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::id::{Decoder, Finding, FormatDefinition};
    use crate::time::UnixNanos;

    #[test]
    fn worker_fields_of_other_names_are_not_added_up() {
        let two = r#"
            summary = "two worker fields"
            rule = "decode-only"
            tick = "1ms"
            epoch = "2020-01-01T00:00:00Z"
            fields = [{ name = "time", kind = "time", bits = 42 },
                      { name = "datacenter", kind = "worker", bits = 5 },
                      { name = "machine", kind = "worker", bits = 5 }]
            encodings = ["decimal"]"#;
        let format = FormatDefinition::from_toml("two", two).expect("TOML");
        let format = format.compile("two").expect("a format");
        let decoder = Decoder::new(vec![Arc::new(format)]);
        let decoder = decoder.at(UnixNanos::from_seconds(1_800_000_000));
        let filter = DecodeFilter {
            format: Some("two"),
            ..DecodeFilter::default()
        };
        let mut column = IdColumn::default();
        for (datacenter, machine) in [(1_u64, 2), (2, 1), (0, 3)] {
            let id = 200_000_000_000 << 10 | datacenter << 5 | machine;
            column.add(&id.to_string(), &decoder, filter);
        }
        let Finding::Told { candidate, .. } = column.judge(&decoder, filter).finding else {
            panic!("the format is named")
        };
        assert_eq!(candidate.workers, [0, 1, 2].into());
    }
}
