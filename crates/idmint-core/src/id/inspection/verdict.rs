//! The verdict on a column: the format of its ids, or the reason why no format was found.

use std::collections::{BTreeMap, BTreeSet};

use super::column::{IdColumn, ReadLines, clear_id, is_id, sorted_readings};
use super::explanation::{Explanation, Reading, bits_of_any_texts};
use crate::id::decoding::{DecodeFilter, Decoded, DecoderAt, Match, Note, to_f64};
use crate::id::encoding::Encoding;
use crate::id::format::Format;
use crate::id::layout::FieldKind;
use crate::named;
use crate::time::UnixTime;

/// The minimum evidence, in bits, for reporting a format. 10 bits mean that the format is about a
/// thousand times as likely as the next best explanation of the column.
const TOLD_BITS: f64 = 10.0;

/// The minimum evidence, in bits, for reporting a format as certain. 20 bits mean that the format
/// is about a million times as likely as the next best explanation of the column.
const CERTAIN_BITS: f64 = 20.0;

/// If a format is at least this rare, its non-canonical encodings are ignored, unless the caller
/// names the format. A rarity of 32 bits means that ids of the format, such as `typeid-uuid`, are
/// 2^32 times rarer than ids of well-known formats.
const RARITY_OF_ANY: u8 = 32;

/// For a format to be found, at most one line in this number of lines may be something other than
/// an id. For example, 5 of 100 lines may be something else. A heading does not count, but a first
/// line that is an id is no heading.
const LINES_OF_ONE_OTHER: u64 = 20;

/// A bound, in bits for each sampled line, for the advantage of a rival explanation. It applies if
/// each line alone is clearly an id of a format of more than 64 bits. The rival rules out the
/// format only if it saves more than this bound for each line, plus [`CERTAIN_BITS`] in total. For
/// comparison, a UUID format saves six bits for each suffix of a TypeID, because these suffixes
/// have the constants of a UUID.
const LOST_BITS_OF_LINE: f64 = 2.0;

/// The number of bits that are subtracted from the evidence for a format for each sampled line
/// whose time, as an id of the format, is implausibly late. Many such lines suggest that the ids
/// have another epoch. A line counts only if its time follows the newest plausible time by at most
/// the span of the plausible times, because a stray number, such as 2^63 - 1, is usually much
/// later.
const BITS_OF_FUTURE_TIME: f64 = 8.0;

/// The minimum number of distinct lines in a column before the lines may also be judged one by one.
/// A column with fewer distinct lines is judged only as a whole.
const CLEAR_MIN: usize = 10;

/// The maximum number of candidates that are reported if no format is found.
const CANDIDATES_MAX: usize = 8;

/// The verdict on a column of texts.
#[derive(Debug)]
pub struct Verdict<'a> {
    /// The number of lines that are not blank.
    pub lines: u64,
    /// The number of blank lines.
    pub blank: u64,
    /// The format that was found for the column, or the reason why no format was found.
    pub finding: Finding<'a>,
    /// The notes about the whole column, such as that all large numbers lost their last digits.
    pub notes: Vec<Note>,
}

/// The format that was found for a column, or the reason why no format was found.
#[derive(Debug)]
pub enum Finding<'a> {
    /// The lines are ids of the format in `candidate`.
    Told {
        /// The format that was found, and a summary of the lines as ids of that format.
        candidate: Candidate<'a>,
        /// The degree of certainty with which the format is found.
        certainty: Certainty,
        /// The evidence for this format, in bits. 10 bits mean that the format is about a thousand
        /// times as likely as the next best explanation of the column, or as random texts if each
        /// line was judged by itself. `None` if the caller named the format.
        evidence_bits: Option<f64>,
    },
    /// The format of the column could not be determined.
    Untold {
        /// The reason why the format cannot be determined.
        why: Untold,
        /// The formats that the column may have, the likeliest first.
        candidates: Vec<Candidate<'a>>,
    },
}

named! {
    /// The degree of certainty with which a format is found.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Certainty {
        /// The format is about a million times as likely as any other explanation (at least 20
        /// bits).
        Certain = "certain",
        /// The format is about a thousand times as likely as any other explanation (at least 10
        /// bits).
        Likely = "likely",
        /// The caller named the format, so it was not compared with others.
        Named = "named",
    }
}

named! {
    /// The reason why the format of a column cannot be determined.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Untold {
        /// The column has no lines, or no format can read at least 19 of 20 lines, or the format
        /// that was found is hidden from the caller.
        NoFormat = "no_format",
        /// Several formats explain the column about equally well.
        SeveralFormats = "several_formats",
        /// The lines of the column are clearly ids, but of several formats. The verdict lists these
        /// formats as candidates, each with the number of its lines.
        MixedFormats = "mixed_formats",
        /// Another explanation of the column is about equally good or better, for example that the
        /// lines are plain numbers, or ids with an unknown epoch.
        NoBetterThanChance = "no_better_than_chance",
    }
}

/// A format that may be the format of a column, with a summary of the lines that are its ids.
#[derive(Debug)]
pub struct Candidate<'a> {
    /// The format that the lines are read as.
    pub format: &'a Format,
    /// The encoding in which the lines are written.
    pub encoding: &'a Encoding,
    /// The number of lines that are ids of the format and have a plausible time.
    pub ids: u64,
    /// The number of lines that are not ids of the format: other texts, unlikely ids, and ids with
    /// an implausible time.
    pub none: u64,
    /// The line numbers, counted from 1, of the first lines that are not ids of the format.
    pub none_at: Vec<u64>,
    /// The earliest and the latest time of the ids, or `None` for a format without time.
    pub span: Option<(UnixTime, UnixTime)>,
    /// The number of ids whose time is earlier than the time of the previous id.
    pub backwards: u64,
    /// The distinct worker numbers in the ids, up to the first thousand.
    pub workers: BTreeSet<u128>,
    /// `true` if the ids have more worker numbers than `workers` contains.
    pub has_more_workers: bool,
}

/// A format and encoding that can read nearly all lines, with the number of bits that it takes to
/// write down the sample of lines as such ids. Fewer bits mean a better explanation.
struct Explained<'a> {
    key: (usize, usize),
    one: Match<'a>,
    bits: f64,
    /// The number of bits that are saved by describing the sample as ids of this format instead of
    /// in the shortest other way, such as random numbers. Negative if the other way is shorter.
    saved: f64,
}

impl<'a> Verdict<'a> {
    /// Returns the format and the encoding that were found for the column, so that the caller can
    /// decode each row with this format. Returns `None` if no format was found, or if the caller
    /// named the format.
    pub fn format_of_rows(&self) -> Option<(&'a Format, &'a Encoding)> {
        match &self.finding {
            Finding::Told {
                candidate,
                certainty: Certainty::Certain | Certainty::Likely,
                ..
            } => Some((candidate.format, candidate.encoding)),
            _ => None,
        }
    }
}

impl<'a> Finding<'a> {
    fn told(candidate: Candidate<'a>, evidence_bits: f64) -> Finding<'a> {
        let certainty = match evidence_bits >= CERTAIN_BITS {
            true => Certainty::Certain,
            false => Certainty::Likely,
        };
        Finding::Told {
            candidate,
            certainty,
            evidence_bits: Some(evidence_bits),
        }
    }

    /// Returns the evidence for the format that was found, in bits. For example, 10 bits mean that
    /// the format is about a thousand times as likely as the next best explanation. Returns 0 if no
    /// format was found, or if the caller named the format.
    fn evidence_bits(&self) -> f64 {
        match self {
            Finding::Told { evidence_bits, .. } => evidence_bits.unwrap_or(0.0),
            Finding::Untold { .. } => 0.0,
        }
    }
}

impl IdColumn {
    /// Returns the verdict on the lines added so far. Pass the same `decoder` and `filter` as to
    /// [`IdColumn::add`].
    pub fn judge<'a>(&self, decoder: &DecoderAt<'a>, filter: DecodeFilter<'_>) -> Verdict<'a> {
        Verdict {
            lines: self.lines,
            blank: self.blank,
            finding: self.find(decoder, filter),
            notes: self.notes(),
        }
    }

    fn find<'a>(&self, decoder: &DecoderAt<'a>, filter: DecodeFilter<'_>) -> Finding<'a> {
        // Compare all formats, including those that are hidden from the caller. Without the hidden
        // formats, a column in one of them could be attributed to a visible format.
        let all = DecodeFilter {
            among: None,
            ..filter
        };
        let mut explained = self.explain(decoder, all);
        explained.sort_by(|one, other| one.bits.total_cmp(&other.bits));
        let finding = self.find_explained(&explained, decoder, filter);
        let is_certain = matches!(
            finding,
            Finding::Told {
                certainty: Certainty::Certain,
                ..
            }
        );
        if is_certain || filter.is_pinned() {
            return finding;
        }
        let clear = self.find_clear(explained.first(), decoder, filter);
        clear
            .filter(|clear| clear.evidence_bits() >= finding.evidence_bits())
            .unwrap_or(finding)
    }

    fn find_explained<'a>(
        &self,
        explained: &[Explained<'a>],
        decoder: &DecoderAt<'a>,
        filter: DecodeFilter<'_>,
    ) -> Finding<'a> {
        let is_permitted = |one: &Explained<'_>| {
            filter
                .among
                .is_none_or(|names| names.contains(&one.one.format().name))
        };
        let no_format = Finding::Untold {
            why: Untold::NoFormat,
            candidates: Vec::new(),
        };
        let Some(best) = explained.first() else {
            return no_format;
        };
        if filter.format.is_some() {
            let candidate = self.candidate(best.key, decoder);
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
            return no_format;
        }
        if evidence_bits >= TOLD_BITS {
            let candidate = self.candidate(best.key, decoder);
            return Finding::told(candidate, evidence_bits);
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
                .map(|one| self.candidate(one.key, decoder))
                .collect(),
        }
    }

    /// Returns the formats and encodings that can read nearly all lines. Each comes with the number
    /// of bits to write down the sample as its ids. Fewer bits mean a better explanation.
    fn explain<'a>(&self, decoder: &DecoderAt<'a>, filter: DecodeFilter<'_>) -> Vec<Explained<'a>> {
        let is_enough = |read: &ReadLines| {
            let is_headed = !self.is_first_id && read.is_headed(self.first_line());
            let others = self.lines - read.count - u64::from(is_headed);
            others * LINES_OF_ONE_OTHER <= self.lines
        };
        // Ignore the non-canonical encodings of very rare formats. The only such built-in format,
        // `typeid-uuid`, has neither constants nor a time. These encodings can read any UUIDs, so
        // reading UUIDs is no evidence for the format.
        let is_any = |key: &(usize, usize)| {
            let format = &decoder.formats()[key.0];
            key.1 > 0 && format.rarity >= RARITY_OF_ANY
        };
        let keys = self
            .readings
            .iter()
            .filter(|(key, read)| filter.format.is_some() || is_enough(read) && !is_any(key));
        let mut readings: BTreeMap<(usize, usize), Vec<Reading<'_, 'a>>> =
            keys.map(|(key, _)| (*key, Vec::new())).collect();
        let mut future_times: BTreeMap<(usize, usize), Vec<UnixTime>> = BTreeMap::new();
        for text in self.sample.values() {
            for found in decoder.readings(text, filter) {
                let key = (found.format_index(), found.encoding_index());
                if !is_id(&found, filter) {
                    let is_future = |time: &UnixTime| *time > decoder.now().into();
                    let time = found.parts().time.filter(is_future);
                    let times = future_times.entry(key).or_default();
                    // Count a text only once if it is read both with and without a prefix.
                    times.extend(
                        time.filter(|time| !found.is_plausible() && times.last() != Some(time)),
                    );
                    continue;
                }
                if let Some(of_key) = readings.get_mut(&key) {
                    // A text may be read both with and without a prefix. Count the text once.
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
            let span = self.readings[key].span;
            let Explanation {
                bits,
                bits_of_rival,
            } = Explanation::of(
                readings,
                span.map(|(_, newest)| newest),
                decoder.formats(),
                decoder.now(),
            );
            let of_others = of_all - bits_of_any_texts(readings.iter().map(|reading| reading.text));
            let is_near = |time: &&UnixTime| {
                span.is_some_and(|(oldest, newest)| {
                    time.nanos() - newest.nanos() <= newest.nanos() - oldest.nanos()
                })
            };
            let near_times = future_times.get(key).into_iter().flatten().filter(is_near);
            let of_future = to_f64(near_times.count() as u128);
            Explained {
                key: *key,
                one: readings[0].found,
                bits: bits + of_others,
                saved: bits_of_rival - bits - BITS_OF_FUTURE_TIME * of_future,
            }
        };
        readings
            .iter()
            .filter(|(_, readings)| !readings.is_empty())
            .map(explain)
            .collect()
    }

    /// Returns a finding if nearly every line, read by itself, is clearly an id.
    ///
    /// `best` is the format that explains the sample in the fewest bits. If `best` is given, the
    /// finding is that format with the evidence of all lines. The result is `None` if a rival
    /// explanation of all lines together is much better. For ids of up to 64 bits, any better rival
    /// suffices, because random texts with the same first letter look like such short ids. If
    /// `best` is `None`, the finding may be that the lines belong to several formats.
    fn find_clear<'a>(
        &self,
        best: Option<&Explained<'a>>,
        decoder: &DecoderAt<'a>,
        filter: DecodeFilter<'_>,
    ) -> Option<Finding<'a>> {
        let is_permitted = |at: usize| {
            let name = &decoder.formats()[at].name;
            filter.among.is_none_or(|names| names.contains(name))
        };
        let is_nearly_all = |count: u64, of_ten: u64| {
            let lines = self.lines - u64::from(self.lines > count && self.lines > 1);
            count > 0 && count * 10 >= lines * of_ten
        };
        if self.sample.len() < CLEAR_MIN {
            return None;
        }
        let (key, count) = self.clear.iter().max_by_key(|(_, count)| **count)?;
        let evidence = self.evidence_of_clear(decoder);
        let bits_of = |key: &(usize, usize)| evidence.get(key).copied().unwrap_or(0.0);
        if let Some(best) = best {
            let lost_max = if best.one.format().greatest() <= u64::MAX.into() {
                0.0
            } else {
                CERTAIN_BITS + LOST_BITS_OF_LINE * to_f64(self.sample.len() as u128)
            };
            let is_best = best.key.0 == key.0
                && best.saved > -lost_max
                && bits_of(key) >= TOLD_BITS
                && !self.are_uuids_of_one_version(*key, decoder);
            return (is_best && is_nearly_all(*count, 8) && is_permitted(key.0))
                .then(|| Finding::told(self.candidate(*key, decoder), bits_of(key)));
        }
        let clear: BTreeMap<_, _> = self
            .clear
            .iter()
            .filter(|(key, _)| bits_of(key) > 0.0)
            .collect();
        let are_permitted = clear.keys().all(|(format, _)| is_permitted(*format));
        let is_mixed = clear.len() > 1 && clear.values().filter(|count| ***count > 1).count() > 1;
        let all = clear.values().copied().sum();
        let is_told = is_mixed && are_permitted && is_nearly_all(all, 9);
        is_told.then(|| {
            let mut counts: Vec<_> = clear.into_iter().collect();
            counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            let candidate = |(key, count): (&(usize, usize), &u64)| Candidate {
                ids: *count,
                ..self.candidate(*key, decoder)
            };
            Finding::Untold {
                why: Untold::MixedFormats,
                candidates: counts
                    .into_iter()
                    .take(CANDIDATES_MAX)
                    .map(candidate)
                    .collect(),
            }
        })
    }

    /// Returns how much likelier, in bits, the lines of the sample that are clearly ids are as ids
    /// than as random texts. There is one total for each format index and encoding index. A total
    /// is negative if random texts are likelier.
    fn evidence_of_clear(&self, decoder: &DecoderAt<'_>) -> BTreeMap<(usize, usize), f64> {
        let mut evidence = BTreeMap::new();
        for text in self.sample.values() {
            let decoded = Decoded {
                matches: sorted_readings(text, decoder, DecodeFilter::default()),
                ..Decoded::default()
            };
            if let Some(best) = clear_id(text, &decoded) {
                let key = (best.format_index(), best.encoding_index());
                *evidence.entry(key).or_insert(0.0) += best.evidence_bits();
            }
        }
        evidence
    }

    /// `true` if no field of the format has a constant value, but all ids in the sample have the
    /// bits of one UUID version and of the UUID variant. The ids are then UUIDs in another
    /// notation, such as suffixes of TypeIDs.
    fn are_uuids_of_one_version(&self, key: (usize, usize), decoder: &DecoderAt<'_>) -> bool {
        let all = DecodeFilter::default();
        let readings = self
            .sample
            .values()
            .flat_map(|text| decoder.readings(text, all))
            .filter(|found| (found.format_index(), found.encoding_index()) == key);
        let mut versions = readings.map(|found| {
            let layout = &found.format().variants[0].layout;
            let has_constant = layout.field_of(FieldKind::Constant).is_some();
            let is_variant = found.id() >> 62 & 3 == 2;
            (is_variant && !has_constant).then_some(found.id() >> 76 & 15)
        });
        let first = versions.next().flatten();
        first.is_some() && versions.all(|version| version == first)
    }

    fn candidate<'a>(&self, key: (usize, usize), decoder: &DecoderAt<'a>) -> Candidate<'a> {
        let read = &self.readings[&key];
        let format = &decoder.formats()[key.0];
        Candidate {
            format,
            encoding: &format.encodings[key.1],
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
