//! Reads an id whose format is not known: tries every format and encoding, and ranks the readings.

use std::cell::OnceCell;
use std::sync::Arc;

use super::decode_filter::DecodeFilter;
use super::encoding_groups::{EncodingGroups, Member};
use super::evidence::{OwnNumbers, TimeRule, TimeWeight, Weights, bits_min, bits_of_text, is_everyday};
use super::near_texts::near_texts;
use crate::id::encoding::{Encoding, EncodingKind, LetterSet};
use crate::id::format::{Format, Parts};
use crate::id::layout::{FieldKind, Layout};
use crate::id::rejection::Rejection;
use crate::time::UnixNanos;

/// A reading with fewer bits of evidence more than the next one leaves a doubt.
const AMBIGUOUS_BITS: f64 = 4.0;

/// A near text with less evidence is rather another misspelling.
const NEAR_BITS_MIN: f64 = -4.0;

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
/// ```
#[derive(Debug)]
pub struct Decoder {
    formats: Vec<Arc<Format>>,
    groups: EncodingGroups,
    weights: Vec<Weights>,
    /// For each format, if its ids carry time.
    times: Vec<Option<TimeRule>>,
}

/// A [`Decoder`] at one moment, which decides what times are plausible and recent. Made by [`Decoder::at`], for all texts
/// of one request.
#[derive(Debug)]
pub struct DecoderAt<'a> {
    decoder: &'a Decoder,
    now: UnixNanos,
    /// The weights of times of each format at this moment, computed once an id of it is read: most formats have no reading.
    times: Vec<OnceCell<TimeWeight>>,
    /// The fewest bits that an id of each format has, computed for the first `best`.
    least_bits: OnceCell<Vec<f64>>,
}

/// What a text can be: its readings, and why the other formats have none.
#[derive(Debug, Default)]
pub struct Decoded<'a> {
    /// Every reading, the one with the most evidence first; equal ones in the order of the formats and their encodings.
    pub matches: Vec<Match<'a>>,
    /// The formats that have no reading, each with the reason of the encoding that came nearest.
    pub rejected: Vec<(&'a Format, Rejection)>,
}

/// One reading of a text: a format, an encoding, and the id it then is.
#[derive(Debug, Clone, Copy)]
pub struct Match<'a> {
    decoder: &'a Decoder,
    /// The positions of format and encoding.
    member: Member,
    /// The position of the layout among the format's.
    variant: usize,
    id: u128,
    evidence_bits: f64,
    bits_min: f64,
    is_plausible: bool,
}

/// A text, with its letters and the bits of a random text like it.
#[derive(Debug, Clone, Copy)]
struct Text<'a> {
    text: &'a str,
    letters: LetterSet,
    bits: f64,
    is_everyday: bool,
}

impl Text<'_> {
    /// The number that it is in this encoding. The empty text is no id, even where zero is written so: it is what is left of
    /// a line that has none.
    fn read_as(&self, encoding: &Encoding) -> Result<u128, Rejection> {
        match encoding.read_unbounded(self.text) {
            Ok(_) if self.text.is_empty() => Err(Rejection::WrongLength),
            read => read,
        }
    }

    fn new(text: &str) -> Text<'_> {
        let letters = LetterSet::of(text.as_bytes());
        Text { text, letters, bits: bits_of_text(text, letters), is_everyday: is_everyday(text) }
    }
}

impl Decoder {
    /// A decoder of these formats, of which the first wins where the evidence is the same.
    pub fn new(formats: Vec<Arc<Format>>) -> Decoder {
        Decoder::with_own_numbers(formats, &OwnNumbers::default())
    }

    /// A decoder that knows the numbers minted with here: ids with other numbers are less likely.
    pub fn with_own_numbers(formats: Vec<Arc<Format>>, own: &OwnNumbers) -> Decoder {
        let weights: Vec<_> = formats.iter().map(|format| Weights::new(format, own)).collect();
        let times: Vec<_> = formats.iter().map(|format| TimeRule::of(format)).collect();
        let bits = |(weights, time): (&Weights, &Option<TimeRule>)| weights.least() + time.map_or(0.0, TimeRule::most);
        let bits: Vec<f64> = weights.iter().zip(&times).map(bits).collect();
        Decoder { groups: EncodingGroups::new(&formats, &bits), weights, times, formats }
    }

    /// The formats it tries, in order.
    pub fn formats(&self) -> &[Arc<Format>] {
        &self.formats
    }

    /// The decoder at this moment.
    pub fn at(&self, now: UnixNanos) -> DecoderAt<'_> {
        DecoderAt { decoder: self, now, times: vec![OnceCell::new(); self.times.len()], least_bits: OnceCell::new() }
    }
}

impl<'a> DecoderAt<'a> {
    /// Every reading of `text`, and for the other formats why there is none.
    pub fn decode(&self, text: &str, filter: DecodeFilter<'_>) -> Decoded<'a> {
        let text = Text::new(text);
        let formats = &self.decoder.formats;
        let groups = &self.decoder.groups;
        let mut matches = Vec::with_capacity(formats.len());
        // The number that each group reads, once a member of it is tried: then for all of them.
        let mut numbers = vec![None; groups.all().len()];
        for at in groups.of_texts(text.text.len(), text.letters) {
            for member in groups.all()[at].select(formats, filter) {
                let number = *numbers[at].get_or_insert_with(|| text.read_as(member.of(formats)));
                matches.extend(number.and_then(|id| self.read_as(member, id, text)));
            }
        }
        matches.sort_by(Match::rank);

        // The formats without a reading have the reason of the encoding that came nearest; of equal ones the last.
        let mut is_read = vec![false; formats.len()];
        matches.iter().for_each(|found| is_read[found.member.format] = true);
        let mut nearest: Vec<Option<Rejection>> = vec![None; formats.len()];
        for (at, group) in groups.all().iter().enumerate() {
            for member in group.select(formats, filter).filter(|member| !is_read[member.format]) {
                let number = *numbers[at].get_or_insert_with(|| text.read_as(member.of(formats)));
                if let Err(why) = number.and_then(|id| self.read_as(member, id, text)) {
                    let before = nearest[member.format].into_iter();
                    nearest[member.format] = before.chain([why]).max_by_key(|why| why.nearness());
                }
            }
        }
        let rejected = formats.iter().zip(nearest).filter_map(|(format, why)| Some((&**format, why?)));
        Decoded { rejected: rejected.collect(), matches }
    }

    /// The first of the matches that [`decode`](DecoderAt::decode) finds, without the reasons: for many texts at once.
    pub fn best(&self, text: &str, filter: DecodeFilter<'_>) -> Option<Match<'a>> {
        self.first_of(text, filter).map(|(best, _, _)| best)
    }

    /// As [`best`](DecoderAt::best), and whether it [has a rival](Decoded::is_ambiguous); `None` also where nobody pins a
    /// format or encoding and every reading [is unlikely](Match::is_unlikely).
    pub fn best_and_doubt(&self, text: &str, filter: DecodeFilter<'_>) -> Option<(Match<'a>, bool)> {
        let (best, is_ambiguous, is_any_likely) = self.first_of(text, filter)?;
        is_any_likely.then_some((best, is_ambiguous))
    }

    /// The first match, whether it has a rival, and whether any is to be told.
    fn first_of(&self, text: &str, filter: DecodeFilter<'_>) -> Option<(Match<'a>, bool, bool)> {
        let text = Text::new(text);
        let formats = &self.decoder.formats;
        let least_bits = self.least_bits();
        let mut best: Option<Match<'a>> = None;
        // The most evidence of another id than the best. Two readings as one id have the same, so what was best once never
        // was of the id that is best now.
        let mut second_bits = f64::NEG_INFINITY;
        let mut is_any_likely = filter.is_pinned();
        let groups = &self.decoder.groups;
        for at in groups.of_texts(text.text.len(), text.letters) {
            let mut number = None;
            for member in groups.all()[at].select(formats, filter) {
                // What cannot have nearly as much evidence as the best so far need not be read.
                let most = text.bits - least_bits[member.format];
                if is_any_likely && best.is_some_and(|best| most < best.evidence_bits - AMBIGUOUS_BITS) {
                    continue;
                }
                let number = *number.get_or_insert_with(|| text.read_as(member.of(formats)));
                let Ok(found) = number.and_then(|id| self.read_as(member, id, text)) else { continue };
                is_any_likely |= !found.is_unlikely();
                match best.replace(found) {
                    Some(before) if found.rank(&before).is_ge() => {
                        best = Some(before);
                        if !before.is_same_id(&found) {
                            second_bits = second_bits.max(found.evidence_bits);
                        }
                    }
                    Some(before) if !before.is_same_id(&found) => second_bits = second_bits.max(before.evidence_bits),
                    _ => {}
                }
            }
        }
        best.map(|best| (best, best.evidence_bits - second_bits <= AMBIGUOUS_BITS, is_any_likely))
    }

    /// Texts that are ids and differ from `text` only by spaces or quotes around it, by case, or by separators: at most
    /// four, the likeliest first.
    pub fn did_you_mean(&self, text: &str, filter: DecodeFilter<'_>) -> Vec<String> {
        let mut found: Vec<(String, Match<'_>)> = Vec::new();
        for text in near_texts(text, self.decoder.groups.shapes()) {
            if let Some(best) =
                self.best(&text, filter).filter(|best| best.is_plausible && best.evidence_bits >= NEAR_BITS_MIN)
            {
                found.push((text, best));
            }
        }
        found.sort_by(|(_, one), (_, other)| other.evidence_bits.total_cmp(&one.evidence_bits));
        found.into_iter().map(|(text, _)| text).take(4).collect()
    }

    /// Formats whose ids have a shape of groups between hyphens that this text has too, or one near to it, and that it is
    /// still no id of: it may be one that was written with another salt.
    pub fn shaped_like(&self, text: &str, filter: DecodeFilter<'_>) -> Vec<&'a Format> {
        let (formats, groups) = (&self.decoder.formats, &self.decoder.groups);
        let texts: Vec<String> = std::iter::once(text.to_owned()).chain(near_texts(text, groups.shapes())).collect();
        let has_shape = |encoding: &Encoding| {
            let is_of_another_salt = |text: &String| encoding.read_unbounded(text) == Err(Rejection::NonCanonical);
            let is_salted = matches!(encoding.definition().kind, EncodingKind::Hashids | EncodingKind::Sqids);
            is_salted && !encoding.groups().is_empty() && texts.iter().any(is_of_another_salt)
        };
        let formats = formats.iter().filter(|format| {
            format.encodings.iter().any(|encoding| filter.accepts(format, encoding) && has_shape(encoding))
        });
        formats.map(AsRef::as_ref).collect()
    }

    /// The reading of a number as an id of this member's format.
    fn read_as(&self, member: Member, id: u128, text: Text<'_>) -> Result<Match<'a>, Rejection> {
        let decoder = self.decoder;
        let format = &decoder.formats[member.format];
        let encoding = &format.encodings[member.encoding];
        encoding.check(id)?;
        let variant = format.variant_at(id);
        let layout = &format.variants[variant].layout;
        let mut values = [0; Layout::FIELDS_MAX];
        layout.unpack_into(id, &mut values)?;
        let time = self.time_weight(member.format).zip(layout.sum_of(FieldKind::Time, &values));
        let bits = time.map_or(0.0, |(weight, ticks)| weight.bits(ticks));
        Ok(Match {
            decoder,
            member,
            variant,
            id,
            evidence_bits: text.bits - bits - decoder.weights[member.format].bits(variant, &values),
            bits_min: bits_min(text.is_everyday, text.text.len(), member.encoding == 0, encoding),
            is_plausible: time.is_none_or(|(weight, ticks)| weight.is_plausible(ticks)),
        })
    }

    /// `None` for a format without time.
    fn time_weight(&self, format: usize) -> Option<&TimeWeight> {
        let rule = self.decoder.times[format].as_ref()?;
        Some(self.times[format].get_or_init(|| rule.at(self.now)))
    }

    fn least_bits(&self) -> &[f64] {
        let of_fields = || self.decoder.weights.iter().map(Weights::least);
        let of_time = |format| self.time_weight(format).map_or(0.0, |weight| weight.least());
        self.least_bits.get_or_init(|| of_fields().enumerate().map(|(at, bits)| bits + of_time(at)).collect())
    }
}

impl<'a> Decoded<'a> {
    /// Whether the first match has a rival: see [`Decoded::rivals`].
    pub fn is_ambiguous(&self) -> bool {
        self.matches.first().is_some_and(|best| self.rivals(best).next().is_some())
    }

    /// Whether every match [is unlikely](Match::is_unlikely).
    pub fn is_unlikely(&self) -> bool {
        self.matches.iter().all(Match::is_unlikely)
    }

    /// The matches that leave a doubt about this one: another id, or the same number as another format, with nearly as
    /// much evidence or more. Two encodings of one id leave none.
    pub fn rivals<'b>(&'b self, found: &'b Match<'a>) -> impl Iterator<Item = &'b Match<'a>> {
        self.matches
            .iter()
            .filter(|other| !found.is_same_id(other) && found.evidence_bits - other.evidence_bits <= AMBIGUOUS_BITS)
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

    /// The encodings of the format, the canonical one first, each with the number of its group: encodings of one group write
    /// the same id alike, whatever their formats.
    pub fn encodings(&self) -> impl ExactSizeIterator<Item = (usize, &'a Encoding)> + use<'a> {
        let numbers = self.decoder.groups.of_format(self.member.format);
        numbers.iter().copied().zip(&self.format().encodings)
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

    /// Whether both are one id of one format, in two encodings or one.
    fn is_same_id(&self, other: &Match<'_>) -> bool {
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

    /// The one with more evidence first; of equal ones the first in the order of formats and encodings.
    fn rank(&self, other: &Match<'_>) -> std::cmp::Ordering {
        let indexes = |found: &Match<'_>| (found.member.format, found.member.encoding);
        other.evidence_bits.total_cmp(&self.evidence_bits).then(indexes(self).cmp(&indexes(other)))
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
