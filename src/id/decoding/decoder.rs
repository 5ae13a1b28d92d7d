//! Reads an id whose format is not known: tries every format and encoding, and ranks the readings.

use std::cell::OnceCell;
use std::sync::Arc;

use super::decode_filter::DecodeFilter;
use super::encoding_groups::{EncodingGroups, GroupOfLen, Member};
use super::evidence::{FieldBits, OwnNumbers, TimeRule, TimeWeight, Weights, bits_min};
use super::given_text::GivenText;
use super::least_bits::LeastBits;
use super::nearness::Nearness;
use crate::id::encoding::Encoding;
use crate::id::format::{Format, Parts};
use crate::id::rejection::Rejection;
use crate::time::UnixNanos;

/// A reading with fewer bits of evidence more than the next one leaves a doubt.
pub(super) const AMBIGUOUS_BITS: f64 = 4.0;

/// Reads texts whose format is not known, by trying every format and encoding.
///
/// Strict: a reading counts only if writing its id again gives exactly the same text.
///
/// ```
/// use std::sync::Arc;
/// use idmint::id::{DecodeFilter, Decoder, Format, Rejection};
/// use idmint::time::UnixNanos;
///
/// let format = Format::built_in("payment").expect("a built-in format");
/// let decoder = Decoder::new(vec![Arc::new(format)]);
/// let decoder = decoder.at(UnixNanos::from_seconds(1_800_000_000));
///
/// let decoded = decoder.decode("1I9ZC1002", DecodeFilter::default());
/// assert_eq!(decoded.matches[0].encoding().name(), "base36");
/// assert_eq!(decoded.matches[0].parts().values, [91_164_961, 0, 2]);
///
/// let decoded = decoder.decode("1I9ZC1002", DecodeFilter { encoding: Some("decimal"), ..DecodeFilter::default() });
/// assert_eq!(decoded.rejected[0].1, Rejection::BadAlphabet);
/// assert_eq!(decoder.did_you_mean(" 1i9zc1002", DecodeFilter::default()), ["1I9ZC1002"]);
/// assert_eq!(decoder.lenient_text(" 1i9zc1002", DecodeFilter::default()).as_deref(), Some("1I9ZC1002"));
/// ```
#[derive(Debug)]
pub struct Decoder {
    pub(super) formats: Vec<Arc<Format>>,
    pub(super) groups: EncodingGroups,
    weights: Vec<Weights>,
    /// For each format, if its ids carry time.
    times: Vec<Option<TimeRule>>,
}

/// A [`Decoder`] at one moment, which decides what times are plausible and recent. Made by [`Decoder::at`], for all texts
/// of one request.
#[derive(Debug)]
pub struct DecoderAt<'a> {
    pub(super) decoder: &'a Decoder,
    now: UnixNanos,
    /// The weights of times of each format at this moment, computed once an id of it is read: most formats have no reading.
    times: Vec<OnceCell<TimeWeight>>,
    /// The fewest bits that ids of each format have, computed for the first `best`.
    least_bits: OnceCell<Vec<LeastBits>>,
    /// By the length of a text: the fewest bits that an id has in each of the groups that have such texts.
    pub(super) least_of_groups: Vec<OnceCell<Vec<f64>>>,
}

/// What a text can be: its readings, and why the other formats have none.
#[derive(Debug, Default)]
pub struct Decoded<'a> {
    /// Every reading: first the canonical text, of its one length, of a format that was asked for, then by evidence and order.
    pub matches: Vec<Match<'a>>,
    /// The formats that have no reading, each with the reason of the encoding that came nearest.
    pub rejected: Vec<(&'a Format, Rejection)>,
}

/// One reading of a text: a format, an encoding, and the id it then is.
#[derive(Debug, Clone, Copy)]
pub struct Match<'a> {
    decoder: &'a Decoder,
    member: Member,
    /// The position of the layout among the format's.
    variant: usize,
    id: u128,
    prefix_len: usize,
    pub(super) is_expected: bool,
    pub(super) evidence_bits: f64,
    bits_min: f64,
    is_plausible: bool,
}

/// What a group of encodings reads a text as.
type ReadNumber = Result<u128, Rejection>;

impl Decoder {
    /// A decoder of these formats, of which the first wins where the evidence is the same.
    pub fn new(formats: Vec<Arc<Format>>) -> Decoder {
        Decoder::with_own_numbers(formats, &OwnNumbers::default())
    }

    /// A decoder that knows the numbers minted with here: ids with other numbers are less likely.
    pub fn with_own_numbers(formats: Vec<Arc<Format>>, own: &OwnNumbers) -> Decoder {
        let weights: Vec<_> = formats
            .iter()
            .map(|format| Weights::new(format, own))
            .collect();
        let times: Vec<_> = formats.iter().map(|format| TimeRule::of(format)).collect();
        let bits = |(weights, time): (&Weights, &Option<TimeRule>)| {
            weights.least() + time.map_or(0.0, TimeRule::most)
        };
        let bits: Vec<f64> = weights.iter().zip(&times).map(bits).collect();
        Decoder {
            groups: EncodingGroups::new(&formats, &bits),
            weights,
            times,
            formats,
        }
    }

    /// The formats it tries, in order.
    pub fn formats(&self) -> &[Arc<Format>] {
        &self.formats
    }

    /// The decoder at this moment.
    pub fn at(&self, now: UnixNanos) -> DecoderAt<'_> {
        DecoderAt {
            decoder: self,
            now,
            times: vec![OnceCell::new(); self.times.len()],
            least_bits: OnceCell::new(),
            least_of_groups: vec![OnceCell::new(); self.groups.lens()],
        }
    }
}

impl<'a> DecoderAt<'a> {
    /// The formats it tries.
    pub(in crate::id) fn formats(&self) -> &'a [Arc<Format>] {
        &self.decoder.formats
    }

    /// The moment.
    pub(in crate::id) fn now(&self) -> UnixNanos {
        self.now
    }

    /// Every reading of `text`, and for the other formats why there is none.
    pub fn decode(&self, text: &str, filter: DecodeFilter<'_>) -> Decoded<'a> {
        let text = GivenText::new(text, filter.format.is_some());
        let (formats, groups) = (&self.decoder.formats, &self.decoder.groups);
        let (mut matches, mut numbers) = self.read_bare(text, filter);
        let behind_prefixes: Vec<_> = self.read_behind_prefixes(text, filter).collect();
        matches.extend(behind_prefixes.iter().filter_map(|(_, read)| read.ok()));
        matches.sort_by(Match::rank);

        // The formats without a reading have the reason of the encoding that came nearest; of equal ones that of the canonical
        // encoding, or the last. Where a prefix is there, that of what is behind it.
        let mut is_read = vec![false; formats.len()];
        matches
            .iter()
            .for_each(|found| is_read[found.member.format] = true);
        let mut nearest: Vec<Option<(Nearness, Rejection)>> = vec![None; formats.len()];
        for (at, group) in groups.all().iter().enumerate() {
            for member in group
                .select(formats, filter)
                .filter(|member| !is_read[member.format])
            {
                let number = *numbers[at].get_or_insert_with(|| text.read_as(member.of(formats)));
                if let Err(why) = number.and_then(|id| self.read_as(member, id, text)) {
                    let before = nearest[member.format].into_iter();
                    let now = (Nearness::of(why, member), why);
                    nearest[member.format] =
                        before.chain([now]).max_by_key(|(nearness, _)| *nearness);
                }
            }
        }
        for (member, read) in behind_prefixes {
            if let (Err(why), false) = (read, is_read[member.format]) {
                nearest[member.format] = Some((Nearness::of(why, member), why));
            }
        }
        let rejected = formats
            .iter()
            .zip(nearest)
            .filter_map(|(format, why)| Some((&**format, why?.1)));
        Decoded {
            rejected: rejected.collect(),
            matches,
        }
    }

    /// Every reading of `text`, in no order and without the reasons: for columns of ids, whose evidence is added up.
    pub(in crate::id) fn readings(&self, text: &str, filter: DecodeFilter<'_>) -> Vec<Match<'a>> {
        let text = GivenText::new(text, filter.format.is_some());
        let (mut matches, _) = self.read_bare(text, filter);
        matches.extend(
            self.read_behind_prefixes(text, filter)
                .filter_map(|(_, read)| read.ok()),
        );
        matches
    }

    /// The readings of a text as it is, without a prefix, and by group the numbers that were read for it.
    fn read_bare(
        &self,
        text: GivenText<'_>,
        filter: DecodeFilter<'_>,
    ) -> (Vec<Match<'a>>, Vec<Option<ReadNumber>>) {
        let (formats, groups) = (&self.decoder.formats, &self.decoder.groups);
        let mut matches = Vec::with_capacity(formats.len());
        // The number that each group reads, once a member of it is tried: then for all of them.
        let mut numbers = vec![None; groups.all().len()];
        for &GroupOfLen { at, .. } in groups.of_texts(text.text.len(), text.letters) {
            for member in groups.all()[at].select(formats, filter) {
                let number = *numbers[at].get_or_insert_with(|| text.read_as(member.of(formats)));
                matches.extend(number.and_then(|id| self.read_as(member, id, text)));
            }
        }
        (matches, numbers)
    }

    /// What is behind the prefixes of formats that have any.
    pub(super) fn read_behind_prefixes(
        &self,
        text: GivenText<'_>,
        filter: DecodeFilter<'_>,
    ) -> impl Iterator<Item = (Member, Result<Match<'a>, Rejection>)> {
        let formats = &self.decoder.formats;
        self.decoder
            .groups
            .behind_prefixes()
            .iter()
            .filter_map(move |member| {
                let format = &formats[member.format];
                let read = text
                    .read_behind_prefix(format)
                    .filter(|_| filter.accepts(format, format.canonical()))?;
                Some((
                    *member,
                    read.and_then(|(id, text)| self.read_as(*member, id, text)),
                ))
            })
    }

    /// The reading of a number as an id of this member's format.
    pub(super) fn read_as(
        &self,
        member: Member,
        id: u128,
        text: GivenText<'_>,
    ) -> Result<Match<'a>, Rejection> {
        let decoder = self.decoder;
        let format = &decoder.formats[member.format];
        let encoding = &format.encodings[member.encoding];
        encoding.check(id)?;
        let variant = format.variant_at(id);
        let FieldBits {
            bits: bits_of_fields,
            ticks,
        } = decoder.weights[member.format].weigh(variant, id)?;
        let time = self.time_weight(member.format).zip(ticks);
        let bits_of_time = time.map_or(0.0, |(weight, ticks)| weight.bits(ticks));
        Ok(Match {
            decoder,
            member,
            variant,
            id,
            prefix_len: text.prefix_len,
            is_expected: text.is_of_format
                && member.encoding == 0
                && encoding.fixed_len().is_some(),
            evidence_bits: text.bits - text.prefix_bits - bits_of_time - bits_of_fields,
            bits_min: bits_min(
                text.is_everyday,
                text.text.len(),
                member.encoding == 0,
                encoding,
            ),
            is_plausible: time.is_none_or(|(weight, ticks)| weight.is_plausible(ticks)),
        })
    }

    /// `None` for a format without time.
    fn time_weight(&self, format: usize) -> Option<&TimeWeight> {
        let rule = self.decoder.times[format].as_ref()?;
        Some(self.times[format].get_or_init(|| rule.at(self.now)))
    }

    pub(super) fn least_bits(&self) -> &[LeastBits] {
        let of_format = |(at, format): (usize, &Arc<Format>)| {
            let weights = &self.decoder.weights[at];
            LeastBits::new(
                format,
                weights.least(),
                weights.constants(),
                self.time_weight(at).copied(),
            )
        };
        self.least_bits.get_or_init(|| {
            self.decoder
                .formats
                .iter()
                .enumerate()
                .map(of_format)
                .collect()
        })
    }
}

impl<'a> Decoded<'a> {
    /// Whether the first match has a rival: see [`Decoded::rivals`].
    pub fn is_ambiguous(&self) -> bool {
        self.matches
            .first()
            .is_some_and(|best| !best.is_expected && self.rivals(best).next().is_some())
    }

    /// Whether every match [is unlikely](Match::is_unlikely).
    pub fn is_unlikely(&self) -> bool {
        self.matches.iter().all(Match::is_unlikely)
    }

    /// The matches that leave a doubt about this one: another id, or the same number as another format, with nearly as
    /// much evidence or more. Two encodings of one id leave none.
    pub fn rivals<'b>(&'b self, found: &'b Match<'a>) -> impl Iterator<Item = &'b Match<'a>> {
        self.matches.iter().filter(|other| {
            !found.is_same_id(other) && found.evidence_bits - other.evidence_bits <= AMBIGUOUS_BITS
        })
    }
}

impl<'a> Match<'a> {
    /// The format of this reading.
    pub fn format(&self) -> &'a Format {
        &self.decoder.formats[self.member.format]
    }

    /// The encoding of this reading.
    pub fn encoding(&self) -> &'a Encoding {
        self.member.of(&self.decoder.formats)
    }

    /// The position of the format among those of the decoder.
    pub fn format_index(&self) -> usize {
        self.member.format
    }

    /// The position of the encoding among those of the format.
    pub fn encoding_index(&self) -> usize {
        self.member.encoding
    }

    /// The position of the layout among those of the format.
    pub fn variant_index(&self) -> usize {
        self.variant
    }

    /// The encoding of the format at that position, with the number of its group: encodings of one group write the same id
    /// alike, whatever their formats.
    pub fn encoding_at(&self, at: usize) -> (usize, &'a Encoding) {
        (
            self.decoder.groups.of_format(self.member.format)[at],
            &self.format().encodings[at],
        )
    }

    /// The id as a number.
    pub fn id(&self) -> u128 {
        self.id
    }

    /// The id taken apart.
    pub fn parts(&self) -> Parts<'a> {
        let parts = self.format().split_as(self.variant, self.id);
        parts.expect("a match splits, checked when it was made")
    }

    /// How many bytes of the text are a prefix of the format, which is no part of the number.
    pub fn prefix_len(&self) -> usize {
        self.prefix_len
    }

    /// Whether both are one id of one format, in two encodings or one.
    pub(super) fn is_same_id(&self, other: &Match<'_>) -> bool {
        (self.member.format, self.id) == (other.member.format, other.id)
    }

    /// Whether there is less evidence than [`evidence_bits_min`](Match::evidence_bits_min): the text is rather a word or an
    /// everyday number.
    pub fn is_unlikely(&self) -> bool {
        self.evidence_bits < self.bits_min
    }

    /// The least evidence with which the text counts as an id, unless the caller has said what it is: for fewer than
    /// twenty letters or digits alone -16 bits in the canonical encoding, and -4 in another and where fewer than 15 of them are
    /// a text of any length; for other texts -24.
    pub fn evidence_bits_min(&self) -> f64 {
        self.bits_min
    }

    /// The one that is expected first, then the one with more evidence; of equal ones the first in the order of formats.
    pub(super) fn rank(&self, other: &Match<'_>) -> std::cmp::Ordering {
        let more_evidence = other.evidence_bits.total_cmp(&self.evidence_bits);
        other
            .is_expected
            .cmp(&self.is_expected)
            .then(more_evidence)
            .then(self.member.cmp(&other.member))
    }

    /// How much likelier the text is as an id of this format than as a random text of its length and letters, in bits;
    /// below zero where it is less likely.
    pub fn evidence_bits(&self) -> f64 {
        self.evidence_bits
    }

    /// Whether the time of the id lies no later than the format's `plausible_ahead` after the moment of decoding; true
    /// without a time.
    pub fn is_plausible(&self) -> bool {
        self.is_plausible
    }
}
