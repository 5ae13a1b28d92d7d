//! Decodes ids of unknown format. The decoder tries every format and encoding, and ranks the
//! resulting ids by likelihood.

use std::cell::OnceCell;
use std::sync::Arc;

use super::decode_filter::DecodeFilter;
use super::encoding_groups::{EncodingGroups, GroupOfLen, Member};
use super::evidence::{FieldBits, OwnNumbers, TimeRule, TimeWeight, Weights, bits_min};
use super::given_text::GivenText;
use super::least_bits::LeastBits;
use super::spelling::Spelling;
use crate::id::encoding::Encoding;
use crate::id::format::{Format, Parts};
use crate::id::rejection::Rejection;
use crate::time::UnixNanos;

/// A text is ambiguous if its best reading leads another reading by at most this evidence, in bits.
/// A reading interprets the text as an id of one format. With a lead of 4 bits, the best reading is
/// 16 times as likely as the other one, its rival.
pub(super) const AMBIGUOUS_BITS: f64 = 4.0;

/// The bound that replaces [`AMBIGUOUS_BITS`] if both readings have a plausible time and the
/// encoding of the other one is at least as usual. This bound is higher, because only the evidence
/// favors the best reading. With a lead of 17 bits, about one text in 2^17 is read wrongly.
pub(super) const AMBIGUOUS_BITS_OF_EQUALS: f64 = 17.0;

/// Decodes texts of unknown format by trying every format and encoding.
///
/// The decoder is strict: it accepts an id only if encoding that id gives exactly the same text.
///
/// ```
/// use std::sync::Arc;
/// use idmint_core::id::{DecodeFilter, Decoder, Format, Rejection};
/// use idmint_core::time::UnixNanos;
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
    /// Entry `[f][e]` says how common it is to write an id of format `f` in its encoding `e`.
    spellings: Vec<Vec<Spelling>>,
    /// The way in which each format stores time, or `None` for a format whose ids have no time.
    times: Vec<Option<TimeRule>>,
}

/// A view of a [`Decoder`] at one moment. Seen from that moment, the time in an id is recent, past
/// or implausible, such as a time in the far future.
///
/// [`Decoder::at`] creates a `DecoderAt`, once for all texts of one request.
#[derive(Debug)]
pub struct DecoderAt<'a> {
    pub(super) decoder: &'a Decoder,
    now: UnixNanos,
    /// For each format, how improbable a recent, a past and an implausible time is in an id, seen
    /// from the moment `now`. Each entry is computed on first use.
    times: Vec<OnceCell<TimeWeight>>,
    /// For each format, lower bounds for the evidence against its ids. The bounds quickly rule out
    /// unlikely formats. All entries are computed on first use.
    least_bits: OnceCell<Vec<LeastBits>>,
    /// Lower bounds, in bits, for the evidence against the ids that a group of encodings writes.
    /// Entry `n` is for texts of `n` bytes, and has one bound for each group that can write such
    /// texts.
    pub(super) least_of_groups: Vec<OnceCell<Vec<f64>>>,
}

/// The result of decoding a text: all ids that the text can be read as, and a reason for each
/// format that cannot read the text.
#[derive(Debug, Default)]
pub struct Decoded<'a> {
    /// The readings of the text, the likeliest first. Readings with equal evidence are in the order
    /// of the formats. If the caller named a format, the reading in its canonical encoding comes
    /// first, provided that all texts of that encoding have one length.
    pub matches: Vec<Match<'a>>,
    /// The formats that cannot read the text, each with the reason. The reason comes from the
    /// encoding whose texts resemble the given text most.
    pub rejected: Vec<(&'a Format, Rejection)>,
}

/// One reading of a text: a format, an encoding, and the resulting id.
#[derive(Debug, Clone, Copy)]
pub struct Match<'a> {
    decoder: &'a Decoder,
    member: Member,
    /// The index of the format's variant that the id has.
    variant: usize,
    id: u128,
    prefix_len: usize,
    pub(super) is_expected: bool,
    pub(super) evidence_bits: f64,
    bits_min: f64,
    is_plausible: bool,
    is_usual: bool,
    /// `true` if the evidence for this reading is so weak that the text may be random instead.
    pub(super) is_weak: bool,
}

/// The number that the encodings of one group read from a text, or the reason why they cannot read
/// the text. All encodings of a group read the same number.
type ReadNumber = Result<u128, Rejection>;

impl Decoder {
    /// Creates a decoder for these formats. If a text is equally likely in two formats, the decoder
    /// prefers the format that comes first in `formats`.
    pub fn new(formats: Vec<Arc<Format>>) -> Decoder {
        Decoder::with_own_numbers(formats, &OwnNumbers::default())
    }

    /// Creates a decoder for a service with the worker numbers, the shard number and the hashes of
    /// domain names in `own`. Ids that contain these values count as likelier than other ids.
    pub fn with_own_numbers(formats: Vec<Arc<Format>>, own: &OwnNumbers) -> Decoder {
        let weights: Vec<_> = formats
            .iter()
            .map(|format| Weights::new(format, own))
            .collect();
        let spellings = formats.iter().map(|format| Spelling::of_all(format));
        let times: Vec<_> = formats.iter().map(|format| TimeRule::of(format)).collect();
        let bits = |(weights, time): (&Weights, &Option<TimeRule>)| {
            weights.least() + time.map_or(0.0, TimeRule::most)
        };
        let bits: Vec<f64> = weights.iter().zip(&times).map(bits).collect();
        Decoder {
            groups: EncodingGroups::new(&formats, &bits),
            spellings: spellings.collect(),
            weights,
            times,
            formats,
        }
    }

    /// Returns the formats of the decoder, in the order in which they were passed to
    /// [`Decoder::new`].
    pub fn formats(&self) -> &[Arc<Format>] {
        &self.formats
    }

    /// Returns a view of the decoder that judges the times of ids at the moment `now`.
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
    /// Returns the formats of the decoder, in order.
    pub(in crate::id) fn formats(&self) -> &'a [Arc<Format>] {
        &self.decoder.formats
    }

    /// Returns the moment at which this decoder judges the times of ids.
    pub(in crate::id) fn now(&self) -> UnixNanos {
        self.now
    }

    /// Returns every id that `text` can be read as, and a reason for each format that cannot read
    /// `text`.
    pub fn decode(&self, text: &str, filter: DecodeFilter<'_>) -> Decoded<'a> {
        let text = GivenText::new(text, filter);
        let (formats, groups) = (&self.decoder.formats, &self.decoder.groups);
        let (mut matches, mut numbers) = self.read_bare(text, filter);
        let behind_prefixes: Vec<_> = self.read_behind_prefixes(text, filter).collect();
        matches.extend(behind_prefixes.iter().filter_map(|(_, read)| read.ok()));
        matches.sort_by(Match::rank);

        // Report one reason for each format that cannot read the text. The reason comes from the
        // encoding that the text resembles most. If the text resembles several encodings equally,
        // the reason comes from the canonical encoding, or else from the last one. If the text
        // starts with a prefix of the format, report why the rest of the text is not an id instead.
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

    /// Returns every reading of `text` (a format, an encoding and the id) in no particular order.
    /// Unlike `decode`, this function does not find out why other formats cannot read the text.
    pub(in crate::id) fn readings(&self, text: &str, filter: DecodeFilter<'_>) -> Vec<Match<'a>> {
        let text = GivenText::new(text, filter);
        let (mut matches, _) = self.read_bare(text, filter);
        matches.extend(
            self.read_behind_prefixes(text, filter)
                .filter_map(|(_, read)| read.ok()),
        );
        matches
    }

    /// Returns the readings of the whole text as an id, without looking for a prefix. Also returns
    /// the number that each group of encodings read from the text, or `None` if the group was not
    /// tried. The encodings of a group read every text as the same number.
    fn read_bare(
        &self,
        text: GivenText<'_>,
        filter: DecodeFilter<'_>,
    ) -> (Vec<Match<'a>>, Vec<Option<ReadNumber>>) {
        let (formats, groups) = (&self.decoder.formats, &self.decoder.groups);
        let mut matches = Vec::with_capacity(formats.len());
        // The number that each group of encodings reads from the text. The encodings of a group
        // read the same number, so the number is computed once, for the first of them.
        let mut numbers = vec![None; groups.all().len()];
        for &GroupOfLen { at, .. } in groups.of_texts(text.text.len(), text.letters) {
            for member in groups.all()[at].select(formats, filter) {
                let number = *numbers[at].get_or_insert_with(|| text.read_as(member.of(formats)));
                matches.extend(number.and_then(|id| self.read_as(member, id, text)));
            }
        }
        (matches, numbers)
    }

    /// Reads the text as a prefix, such as `user_`, followed by an id. Returns one result for each
    /// format that has a prefix with which the text starts.
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

    /// Interprets the number `id`, which was read from `text`, as an id of the format and encoding
    /// in `member`, and computes the evidence for that reading.
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
        let is_plausible = time.is_none_or(|(weight, ticks)| weight.is_plausible(ticks));
        let spelling = decoder.spellings[member.format][member.encoding];
        let bits_of_id = bits_of_time + bits_of_fields + spelling.bits(id);
        let evidence_bits = text.bits - text.prefix_bits - bits_of_id;
        Ok(Match {
            decoder,
            member,
            variant,
            id,
            prefix_len: text.prefix_len,
            is_expected: text.is_of_format
                && member.encoding == 0
                && encoding.fixed_len().is_some(),
            evidence_bits,
            bits_min: bits_min(
                text.is_everyday,
                text.text.len(),
                member.encoding == 0,
                encoding,
            ),
            is_plausible,
            is_usual: spelling.is_usual(),
            is_weak: !text.is_pinned && evidence_bits < spelling.bits_of_clear(is_plausible),
        })
    }

    /// Returns how strongly a time speaks against an id of the format with index `format`. Returns
    /// `None` if the format has no time.
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
    /// `true` if the first match has a [rival](Decoded::rivals), or if its evidence is so weak that
    /// the text may be random. A match in the canonical encoding of the format that the caller
    /// named is not ambiguous, provided that all texts of that encoding have the same length.
    pub fn is_ambiguous(&self) -> bool {
        self.matches.first().is_some_and(|best| {
            !best.is_expected && (best.is_weak || self.rivals(best).next().is_some())
        })
    }

    /// `true` if every match [is unlikely](Match::is_unlikely).
    pub fn is_unlikely(&self) -> bool {
        self.matches.iter().all(Match::is_unlikely)
    }

    /// Returns the rivals of `found`: the matches that make `found` ambiguous.
    ///
    /// A rival is another id, or the same number in another format. Its evidence is at most 4 bits
    /// less than the evidence of `found`. If both readings are plausible, the limit is 17 bits
    /// instead of 4, unless only `found` is in the usual encoding of its format. Two encodings of
    /// one id are not rivals.
    pub fn rivals<'b>(&'b self, found: &'b Match<'a>) -> impl Iterator<Item = &'b Match<'a>> {
        self.matches.iter().filter(|other| other.is_rival_of(found))
    }
}

impl<'a> Match<'a> {
    /// Returns the format of this reading.
    pub fn format(&self) -> &'a Format {
        &self.decoder.formats[self.member.format]
    }

    /// Returns the encoding of this reading.
    pub fn encoding(&self) -> &'a Encoding {
        self.member.of(&self.decoder.formats)
    }

    /// Returns the index of this match's format in the decoder's list of formats.
    pub fn format_index(&self) -> usize {
        self.member.format
    }

    /// Returns the index of the match's encoding in the list of the format's encodings.
    pub fn encoding_index(&self) -> usize {
        self.member.encoding
    }

    /// Returns the index of the id's variant among the variants of the format.
    pub fn variant_index(&self) -> usize {
        self.variant
    }

    /// Returns the encoding at index `at` of this match's format, and the index of the group of
    /// encodings that it belongs to.
    ///
    /// Encodings in one group write an id as the same text, even if their formats differ.
    pub fn encoding_at(&self, at: usize) -> (usize, &'a Encoding) {
        (
            self.decoder.groups.of_format(self.member.format)[at],
            &self.format().encodings[at],
        )
    }

    /// Returns the id as a number.
    pub fn id(&self) -> u128 {
        self.id
    }

    /// Returns the layout of the id, the values of its fields, and its time.
    pub fn parts(&self) -> Parts<'a> {
        let parts = self.format().split_as(self.variant, self.id);
        parts.expect("a match splits, checked when it was made")
    }

    /// Returns the length in bytes of the prefix at the start of the text, such as 5 for `user_`.
    /// The prefix is not part of the id's number.
    pub fn prefix_len(&self) -> usize {
        self.prefix_len
    }

    /// Returns the kind of this reading: 0 if the time of the id is implausible, 2 if the time is
    /// plausible and the encoding is usual for the format (such as the canonical one), and 1
    /// otherwise.
    pub(super) fn kind(&self) -> usize {
        usize::from(self.is_plausible) + usize::from(self.is_plausible && self.is_usual)
    }

    /// The number of values that `kind` can return.
    pub(super) const KINDS: usize = 3;

    /// Returns the bound, in bits, for the lead in evidence of this reading over a reading of the
    /// kind `kind`. Up to this bound, the text is ambiguous.
    pub(super) fn bits_of_rival(&self, kind: usize) -> f64 {
        if self.is_plausible && self.kind() <= kind {
            AMBIGUOUS_BITS_OF_EQUALS
        } else {
            AMBIGUOUS_BITS
        }
    }

    /// `true` if this reading makes `best` ambiguous.
    pub(super) fn is_rival_of(&self, best: &Match<'_>) -> bool {
        let bits = best.bits_of_rival(self.kind());
        !best.is_same_id(self) && best.evidence_bits - self.evidence_bits <= bits
    }

    /// `true` if both matches have the same format and the same number, even if their encodings
    /// differ.
    pub(super) fn is_same_id(&self, other: &Match<'_>) -> bool {
        (self.member.format, self.id) == (other.member.format, other.id)
    }

    /// `true` if the evidence is below [`evidence_bits_min`](Match::evidence_bits_min), so the text
    /// is more likely a word or an everyday number.
    pub fn is_unlikely(&self) -> bool {
        self.evidence_bits < self.bits_min
    }

    /// Returns the minimum evidence, in bits, that this reading needs to count as likely. The
    /// minimum does not apply if the caller named the format or encoding.
    ///
    /// The minimum depends on the text and on the encoding:
    /// - A text that mixes letters and digits, or has at least 20 characters, needs -24 bits in the
    ///   canonical encoding and -29 bits in another encoding.
    /// - A text of fewer than 20 characters that are only letters or only digits needs -16 bits in
    ///   the canonical encoding and -9 bits in another encoding.
    /// - A text of fewer than 15 characters that are only letters or only digits needs -4 bits
    ///   instead of -16 if the canonical encoding has no fixed length.
    pub fn evidence_bits_min(&self) -> f64 {
        self.bits_min
    }

    /// Orders readings of a text by decreasing evidence, then by the order of formats. If the
    /// caller named a format, the reading in its canonical encoding comes before all others,
    /// provided that all texts of that encoding have the same length.
    pub(in crate::id) fn rank(&self, other: &Match<'_>) -> std::cmp::Ordering {
        let more_evidence = other.evidence_bits.total_cmp(&self.evidence_bits);
        other
            .is_expected
            .cmp(&self.is_expected)
            .then(more_evidence)
            .then(self.member.cmp(&other.member))
    }

    /// Returns how much more likely the text is as an id of this format than as a random text of
    /// the same length and letters, in bits.
    ///
    /// The evidence is the binary logarithm of the ratio, so 10 bits mean about a thousand times as
    /// likely. It is negative if a random text is more likely.
    pub fn evidence_bits(&self) -> f64 {
        self.evidence_bits
    }

    /// `true` if the id has no time, or its time is neither before the format's `plausible_from`
    /// nor more than `plausible_ahead` after the moment of decoding.
    pub fn is_plausible(&self) -> bool {
        self.is_plausible
    }
}

/// A measure of how closely a text resembles the texts of an encoding. A text of the wrong length
/// and a text with wrong letters count as equally close.
///
/// For example, a base36 id without its last letter has the wrong length for the canonical
/// encoding, base36, and wrong letters for the decimal encoding. Both reasons count equally. The
/// reason from the canonical encoding is reported, because it is more helpful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Nearness {
    of_reason: u8,
    is_canonical: bool,
}

impl Nearness {
    fn of(why: Rejection, member: Member) -> Nearness {
        let of_reason = if why == Rejection::WrongLength {
            Rejection::BadAlphabet
        } else {
            why
        }
        .nearness();
        Nearness {
            of_reason,
            is_canonical: member.encoding == 0,
        }
    }
}
