//! Evidence measures how well a reading explains a text. It ranks the readings of one text.
//!
//! The evidence compares two counts: the number of texts with the same length and alphabet as the
//! given text, and the number of ids that the format could have minted. The smaller the number of
//! ids is compared with the number of texts, the stronger the evidence that the text is an id. The
//! unit is bits:
//!
//! ```text
//! evidence = log2(texts of this length over these letters)
//!          - log2(ids that the format could have minted)
//! ```
//!
//! In other words, evidence is the binary logarithm of how much likelier the text is as an id of
//! this format than as a random text. Evidence of 10 bits means about a thousand times as likely.
//!
//! The second logarithm is called the evidence against an id. The first logarithm is equal for all
//! readings of one text, so readings differ only in the second.
//!
//! The evidence is negative if a random text is the better explanation, such as for three digits
//! read as a 64-bit number. A text of letters alone, in one case or with an initial capital, may be
//! a word. Each letter of a word counts 3 bits, like one of eight letters instead of 26, because
//! guessing games show that the letters of words are that predictable.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::time::Duration;

use super::packed_layout::{Constants, FieldPlace, PackedLayout};
use super::spelling::BITS_OF_OTHER_ENCODING;
use crate::id::encoding::{Encoding, LetterSet};
use crate::id::format::{Format, Prefixes, Rule};
use crate::id::layout::{Field, FieldKind, Layout};
use crate::id::rejection::Rejection;
use crate::time::{Tick, UnixNanos, UnixTime};

/// The minimum evidence, in bits, for reading fewer than twenty characters, all letters or all
/// digits, as an id in the canonical encoding of a format.
///
/// With less evidence, the text is more likely a word or an everyday number. The minimum does not
/// apply if the caller named the format or the encoding. A decimal id of a 64-bit format has less
/// evidence only in the first hours after the epoch, when ids have at most 14 digits.
const BITS_MIN_OF_EVERYDAY: f64 = -16.0;

/// The minimum evidence, in bits, for an id in a non-canonical encoding, if the text may be a word
/// or an everyday number. Such a text has at most 19 characters, all letters or all digits. At -9
/// bits, the text is 2^9 times likelier as a random text than as an id.
const BITS_MIN_OF_OTHER_EVERYDAY: f64 = -9.0;

/// The minimum evidence, in bits, for an id in a canonical encoding without fixed length, if the
/// text has at most 14 characters, all letters or all digits. Such short ids are rare. At -4 bits,
/// the text is 16 times likelier as a random text than as an id.
const BITS_MIN_OF_RARE: f64 = -4.0;

/// The minimum number of decimal digits in a 64-bit id, except for ids of the first day after the
/// epoch of their format.
const USUAL_LEN_MIN: usize = 15;

/// The minimum evidence, in bits, for reading a text as an id in the canonical encoding of a
/// format, if the text cannot be a word or an everyday number. An id has less evidence only if all
/// its letters happen to belong to a smaller alphabet, such as a base62 id without lower-case
/// letters.
const BITS_MIN: f64 = -24.0;

/// The maximum length, in characters, of a text that may be a word or an everyday number instead of
/// an id.
const EVERYDAY_LEN_MAX: usize = 19;

/// The information in one letter of an English word, in bits.
pub(in crate::id) const BITS_OF_A_LETTER: f64 = 3.0;

/// The number of bits by which an implausible time reduces the evidence for an id, in addition to
/// the bits of the time itself. At most one id in 2^10 has an implausible time, either because the
/// clock of its generator ran ahead or because somebody invented the id.
const IMPLAUSIBLE_BITS: f64 = 10.0;

/// The maximum age of a recent id. Ids are mostly decoded soon after they were minted. The decoder
/// therefore assumes that half of all ids are from the last thirty days, and that the other half
/// may have any plausible time.
const RECENT: Duration = Duration::from_secs(30 * 86_400);

/// Sequence numbers below this bound are likelier than greater ones in ids of a format that this
/// service only decodes. Other generators count from 0 in each tick, so small numbers are more
/// common.
const FIRST_OF_OTHERS: u32 = 16;

/// The worker numbers, shard and domains of this service. The decoder assumes that half of all ids
/// have these values, and that the other half may have any value.
///
/// ```
/// use std::collections::{BTreeMap, BTreeSet};
/// use idmint_core::id::OwnNumbers;
///
/// let own = OwnNumbers {
///     workers: BTreeMap::from([("snowflake".to_owned(), 0..=7)]),
///     shard: Some(7),
///     domains: BTreeSet::from([0]),
/// };
/// assert_ne!(own, OwnNumbers::default());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnNumbers {
    /// The worker numbers of this service, by the name of the format.
    pub workers: BTreeMap<String, RangeInclusive<u32>>,
    /// The value of the shard fields in ids of this service.
    pub shard: Option<u64>,
    /// The hashes of the domains for which this service mints ids.
    pub domains: BTreeSet<u32>,
}

/// The evidence against an id, in bits, without the evidence of its time. It comes from the rarity
/// of the format and from the values of all other fields. The struct also holds the time of the id,
/// which [`TimeWeight`] weighs separately.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldBits {
    pub(super) bits: f64,
    /// The time of the id in ticks since the epoch, or `None` for a format without time.
    pub(super) ticks: Option<u128>,
}

/// For each layout of a format, how unlikely the values of the fields are. The time is not
/// included, because [`TimeWeight`] weighs it.
#[derive(Debug)]
pub(super) struct Weights {
    layouts: Vec<LayoutWeight>,
}

#[derive(Debug)]
struct LayoutWeight {
    packed: PackedLayout,
    /// The evidence, in bits, that counts against every id of this layout: from the rarity of the
    /// format, and from fields in which no value is known to be likelier than another.
    unknown: f64,
    numbered: Vec<NumberWeight>,
}

/// The probabilities of the values of a field in which some values are likelier than others, such
/// as the worker numbers of this service or the sequence number 0.
#[derive(Debug)]
struct NumberWeight {
    place: FieldPlace,
    own: Vec<RangeInclusive<u128>>,
    bits_of_own: f64,
    /// Field values below this bound are likelier than greater ones, such as a small sequence
    /// number. A bound of 1 has no effect.
    spread: u128,
    bits_of_spread: f64,
    bits_of_other: f64,
}

/// The way in which ids of a format store time, and the times that are plausible.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeRule {
    tick: Tick,
    epoch: UnixTime,
    plausible_from: UnixTime,
    plausible_ahead: Duration,
    /// The greatest tick that fits into the time field.
    most: u128,
    bits_of_implausible: f64,
}

/// How improbable the time of an id is, in bits: one number each for a recent, a past and an
/// implausible time. The numbers for recent and past times depend on the moment of decoding.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeWeight {
    /// The first tick that is plausible as the time of an id.
    pub(super) first: u128,
    /// The last tick that is plausible as the time of an id, or `None` if no tick is plausible at
    /// this moment.
    pub(super) last: Option<u128>,
    /// The first tick that counts as recent.
    pub(super) recent_from: u128,
    pub(super) bits_of_recent: f64,
    pub(super) bits_of_past: f64,
    pub(super) bits_of_implausible: f64,
}

impl Weights {
    pub(super) fn new(format: &Format, own: &OwnNumbers) -> Weights {
        let layout_weight = |layout: &Layout| {
            let (packed, unknown) = (PackedLayout::new(layout), f64::from(format.rarity));
            let mut weight = LayoutWeight {
                packed,
                unknown,
                numbered: Vec::new(),
            };
            for (at, field) in layout.fields().iter().enumerate() {
                match own_values(format, field, own) {
                    own if !own.is_empty() => {
                        let spread = match (field.kind, format.rule) {
                            (FieldKind::Sequence, Rule::DecodeOnly) => FIRST_OF_OTHERS,
                            (FieldKind::Sequence, _) => format.sequence_spread,
                            _ => 1,
                        };
                        let place = FieldPlace::of(layout, at);
                        weight
                            .numbered
                            .push(NumberWeight::new(place, field, own, spread.into()));
                    }
                    _ => weight.unknown += unknown_bits(field),
                }
            }
            weight
        };
        Weights {
            layouts: format.layouts().map(layout_weight).collect(),
        }
    }

    /// Returns the evidence, in bits, against `id` as an id of this format in the layout with the
    /// index `variant`. The evidence does not count the time, because [`TimeWeight`] weighs it.
    ///
    /// # Errors
    /// Returns the same [`Rejection`] as [`Layout::unpack`] if the number is not an id of the
    /// layout.
    pub(super) fn weigh(&self, variant: usize, id: u128) -> Result<FieldBits, Rejection> {
        let weight = &self.layouts[variant];
        weight.packed.check(id)?;
        let numbered = weight
            .numbered
            .iter()
            .map(|number| number.bits(number.place.value_in(id)));
        Ok(FieldBits {
            bits: weight.unknown + numbered.sum::<f64>(),
            ticks: weight.packed.ticks_in(id),
        })
    }

    /// Returns the bits that have the same value in every id of the format. Returns no bits for a
    /// format with several layouts.
    pub(super) fn constants(&self) -> Constants {
        match self.layouts.as_slice() {
            [weight] => weight.packed.constants(),
            _ => Constants::default(),
        }
    }

    /// Returns a lower bound, in bits, for the evidence against any id of this format. The bound
    /// assumes the likeliest value of each field, and leaves out the time.
    pub(super) fn least(&self) -> f64 {
        let least = |weight: &LayoutWeight| {
            let numbered = weight
                .numbered
                .iter()
                .map(|number| number.bits_of_own.min(number.bits_of_other));
            weight.unknown + numbered.sum::<f64>()
        };
        self.layouts.iter().map(least).fold(f64::INFINITY, f64::min)
    }
}

/// Returns the evidence against an id, in bits, that comes from a field for which this service
/// knows no likely values. The evidence is the same for every value of the field.
///
/// A constant gives 0 bits, because it has only one value. A field that holds a word of a suffix
/// code gives bits, because the word is one of several. A checksum field also gives bits, because
/// the data that it covers is not available here. (A checksum that the encoding adds is checked
/// when the text is read.)
fn unknown_bits(field: &Field) -> f64 {
    match field.kind {
        FieldKind::Time | FieldKind::Constant => 0.0,
        _ => log2_of_values(field.max),
    }
}

fn own_values(format: &Format, field: &Field, own: &OwnNumbers) -> Vec<RangeInclusive<u128>> {
    let one = |number: u128| number..=number;
    let workers =
        |range: &RangeInclusive<u32>| u128::from(*range.start())..=u128::from(*range.end());
    let mut ranges: Vec<_> = match field.kind {
        FieldKind::Worker => own
            .workers
            .get(&format.name)
            .map(workers)
            .into_iter()
            .collect(),
        FieldKind::Shard if format.rule == Rule::Sequenced => own
            .shard
            .map(|shard| one(shard.into()))
            .into_iter()
            .collect(),
        // Most generators start every tick at sequence 0, so 0 is the likeliest. With
        // `sequence_spread`, this service starts ticks at other numbers too, which the caller takes
        // into account.
        FieldKind::Sequence if begins_at_zero(format) => vec![one(0)],
        FieldKind::Object if format.rule == Rule::Sequenced => own
            .domains
            .iter()
            .map(|domain| one((*domain).into()))
            .collect(),
        _ => Vec::new(),
    };
    ranges.retain(|range| *range.end() <= field.max);
    ranges
}

/// `true` if the sequence of a format usually begins at 0 in each tick. This does not hold for
/// formats of more than 64 bits that other programs mint: their counters continue from tick to
/// tick, or begin at any value.
fn begins_at_zero(format: &Format) -> bool {
    match format.rule {
        Rule::Sequenced => true,
        Rule::DecodeOnly => format.greatest() <= u64::MAX.into(),
        _ => false,
    }
}

impl NumberWeight {
    /// Creates the probabilities of a field's values. The values in `own`, such as this service's
    /// worker numbers, share half of the probability. If `spread` exceeds 1, the values below
    /// `spread` share a quarter. All values of the field share the rest equally.
    fn new(
        place: FieldPlace,
        field: &Field,
        own: Vec<RangeInclusive<u128>>,
        spread: u128,
    ) -> NumberWeight {
        let all = (-log2_of_values(field.max)).exp2();
        let count: u128 = own
            .iter()
            .map(|range| range.end() - range.start() + 1)
            .sum();
        let (of_spread, of_other) = if spread > 1 {
            (0.25 / to_f64(spread), 0.25 * all)
        } else {
            (0.0, 0.5 * all)
        };
        NumberWeight {
            place,
            own,
            bits_of_own: -(0.5 / to_f64(count) + of_spread + of_other).log2(),
            spread,
            bits_of_spread: -(of_spread + of_other).log2(),
            bits_of_other: -of_other.log2(),
        }
    }

    fn bits(&self, value: u128) -> f64 {
        match value {
            _ if self.own.iter().any(|range| range.contains(&value)) => self.bits_of_own,
            _ if value < self.spread => self.bits_of_spread,
            _ => self.bits_of_other,
        }
    }
}

impl TimeRule {
    /// Returns the way in which a format stores time, or `None` if its ids have no time.
    pub(super) fn of(format: &Format) -> Option<TimeRule> {
        let most = format.variants[0].layout.greatest_of(FieldKind::Time)?;
        Some(TimeRule {
            tick: format.tick?,
            epoch: format.epoch,
            plausible_from: format.plausible_from,
            plausible_ahead: format.plausible_ahead,
            most,
            bits_of_implausible: log2_of_values(most) + IMPLAUSIBLE_BITS,
        })
    }

    /// Returns the evidence, in bits, that an implausible time adds against an id. Plausible times
    /// add less. The number does not depend on the moment of decoding.
    pub(super) fn most(self) -> f64 {
        self.bits_of_implausible
    }

    pub(super) fn at(self, now: UnixNanos) -> TimeWeight {
        let at =
            |instant: UnixNanos| u128::try_from(self.tick.count(self.epoch, instant.into())).ok();
        let first = u128::try_from(self.tick.count(self.epoch, self.plausible_from)).unwrap_or(0);
        let last = at(now.after(self.plausible_ahead))
            .map(|ticks| ticks.min(self.most))
            .filter(|last| first <= *last);
        let recent_from = at(now.before(RECENT)).unwrap_or(0).max(first);
        let past = last.map_or(0.0, |last| log2_of_values(last - first));
        let recent = last.map_or(0.0, |last| log2_of_values(last.saturating_sub(recent_from)));
        TimeWeight {
            first,
            last,
            recent_from,
            bits_of_recent: 1.0 - ((-recent).exp2() + (-past).exp2()).log2(),
            bits_of_past: 1.0 + past,
            bits_of_implausible: self.bits_of_implausible,
        }
    }
}

impl TimeWeight {
    pub(super) fn is_plausible(self, ticks: u128) -> bool {
        self.last
            .is_some_and(|last| self.first <= ticks && ticks <= last)
    }

    pub(super) fn bits(self, ticks: u128) -> f64 {
        match ticks {
            _ if !self.is_plausible(ticks) => self.bits_of_implausible,
            _ if ticks >= self.recent_from => self.bits_of_recent,
            _ => self.bits_of_past,
        }
    }

    /// Returns the evidence, in bits, that the likeliest time adds against an id.
    pub(super) fn least(self) -> f64 {
        let plausible = self
            .last
            .map(|_| self.bits_of_recent.min(self.bits_of_past));
        plausible.unwrap_or(self.bits_of_implausible)
    }
}

/// Returns the information in a random text of this length, in bits. Each letter is drawn from the
/// smallest usual alphabet that contains all letters of the text. If the text may be a word, each
/// letter counts for 3 bits.
pub(super) fn bits_of_text(text: &str, letters: LetterSet) -> f64 {
    let bits_of_a_letter = if is_like_a_word(text) {
        BITS_OF_A_LETTER
    } else {
        f64::from(letters.usual_count()).log2()
    };
    to_f64(text.len() as u128) * bits_of_a_letter
}

/// Returns the information in a prefix, in bits. A prefix from a list of n prefixes has log2(n + 1)
/// bits, such as 2 bits for n = 3. The prefix of a type that the format does not mint counts as a
/// word, with 3 bits for each letter.
pub(super) fn bits_of_prefix(prefix: &str, prefixes: &Prefixes) -> f64 {
    let of_one_of = |count: usize| to_f64(count as u128 + 1).log2();
    match prefixes {
        Prefixes::Listed(listed) => of_one_of(listed.len()),
        Prefixes::Types { minted }
            if minted
                .iter()
                .any(|name| prefixes.type_of(prefix) == Some(name)) =>
        {
            of_one_of(minted.len())
        }
        Prefixes::Types { .. } => to_f64(prefix.len() as u128) * BITS_OF_A_LETTER,
    }
}

/// `true` if a text of `len` bytes with these letters may be a word or an everyday number.
pub(super) fn is_everyday(len: usize, letters: LetterSet) -> bool {
    len <= EVERYDAY_LEN_MAX && !letters.has_letters_and_digits()
}

/// Returns the minimum evidence, in bits, with which a text of `len` characters counts as a likely
/// id. The minimum does not apply if the caller named the format or the encoding.
pub(super) fn bits_min(
    is_everyday: bool,
    len: usize,
    is_canonical: bool,
    encoding: &Encoding,
) -> f64 {
    match (is_everyday, is_canonical) {
        (false, true) => BITS_MIN,
        (false, false) => BITS_MIN - BITS_OF_OTHER_ENCODING,
        (true, false) => BITS_MIN_OF_OTHER_EVERYDAY,
        (true, true) if len >= USUAL_LEN_MIN || encoding.fixed_len().is_some() => {
            BITS_MIN_OF_EVERYDAY
        }
        (true, true) => BITS_MIN_OF_RARE,
    }
}

/// `true` if the text may be a word: a capital followed by any number of lower-case letters, such
/// as `Paris`, or at most 19 letters in one case.
fn is_like_a_word(text: &str) -> bool {
    let rest = text.get(1..).unwrap_or_default();
    let are_all = |is: fn(&u8) -> bool| rest.bytes().all(|byte| is(&byte));
    match text.bytes().next() {
        Some(b'A'..=b'Z') if are_all(u8::is_ascii_lowercase) => true,
        Some(b'A'..=b'Z') => text.len() <= EVERYDAY_LEN_MAX && are_all(u8::is_ascii_uppercase),
        Some(b'a'..=b'z') => text.len() <= EVERYDAY_LEN_MAX && are_all(u8::is_ascii_lowercase),
        _ => false,
    }
}

/// Returns the binary logarithm of `max + 1`, which is the number of values from 0 to `max`.
pub(in crate::id) fn log2_of_values(max: u128) -> f64 {
    (to_f64(max) + 1.0).log2()
}

#[allow(
    clippy::cast_precision_loss,
    reason = "bits of evidence are told to a tenth"
)]
pub(in crate::id) fn to_f64(number: u128) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::preset;

    fn bits(format: &str, id: u128, own: &OwnNumbers) -> f64 {
        let format = preset(format);
        Weights::new(&format, own)
            .weigh(format.variant_at(id), id)
            .expect("an id")
            .bits
    }

    #[test]
    fn the_bits_of_a_text_are_those_of_its_letters_or_of_a_word() {
        for (text, expected) in [
            ("", 0.0),
            ("0123456789", 33.2),
            ("01234567ab", 40.0),
            ("abcdef-abcd", 52.3),
            ("abcdefabcd", 30.0),
            ("Abcdefabcd", 30.0),
            ("ABCDEFABCD", 30.0),
            ("AbcdefabcD", 59.5),
            ("01234567AZ", 51.7),
            ("01234567aZ", 59.5),
            ("0123-5-7aZ", 59.8),
        ] {
            let bits = bits_of_text(text, LetterSet::of(text.as_bytes()));
            assert!((bits - expected).abs() < 0.05, "{text}: {bits}");
        }
    }

    #[test]
    fn the_numbers_that_are_minted_with_here_weigh_half_of_all() {
        let own = OwnNumbers {
            workers: BTreeMap::from([("twitter".to_owned(), 0..=3)]),
            ..OwnNumbers::default()
        };
        let unknown = OwnNumbers::default();
        let of_worker = |worker: u128, own| bits("twitter", worker << 12, own);
        assert!(
            (of_worker(3, &unknown) - 11.0).abs() < 0.02,
            "half of all ids are the first of their tick"
        );
        assert!(
            (of_worker(4, &own) - 12.0).abs() < 0.02,
            "one bit more for the others"
        );
        assert!(
            (of_worker(3, &own) - 4.0).abs() < 0.02,
            "half of all ids have one of four numbers"
        );
        assert!(
            (bits("twitter", 63, &unknown) - 18.0).abs() < 0.03,
            "a quarter is spread over 64 of a tick"
        );
        assert!(
            (bits("twitter", 64, &unknown) - 24.0).abs() < 0.01,
            "two bits more for the others of a tick"
        );
        assert!(
            (bits("payment", 1, &unknown) - bits("payment", 2, &unknown)).abs() < 1e-9,
            "nothing is spread"
        );
    }

    #[test]
    fn other_programs_count_from_zero_in_a_tick() {
        let of_sequence =
            |sequence: u128| bits("sonyflake", sequence << 16, &OwnNumbers::default()) - 16.0 - 5.0;
        assert!((of_sequence(0) - 1.0).abs() < 0.1, "half are the first");
        assert!((of_sequence(15) - 6.0).abs() < 0.1, "a quarter is below 16");
        assert!(
            (of_sequence(16) - 10.0).abs() < 0.1,
            "a quarter is anything"
        );
    }

    #[test]
    fn a_constant_carries_nothing_and_a_word_of_a_suffix_code_does() {
        assert!((bits("uuid4", 4 << 76 | 2 << 62, &OwnNumbers::default()) - 122.0).abs() < 1e-9);
        assert!((bits("siq", 0b1_111, &OwnNumbers::default()) - 57.0).abs() < 0.01);
        assert!((bits("siq", 0b1_00000, &OwnNumbers::default()) - 57.0).abs() < 0.01);
        assert!(
            (bits("payment", 1, &OwnNumbers::default()) - (1.0 + 3.0 * 36_f64.log2() + 5.0)).abs()
                < 0.01,
            "rare"
        );
    }

    #[test]
    fn a_time_weighs_less_if_it_is_recent_and_more_if_it_cannot_be_yet() {
        const DAY: u128 = 86_400_000;
        let epoch = UnixNanos::from_seconds(1_420_070_400);
        let days_after = |days: u64| {
            let now = epoch.after(Duration::from_secs(days * 86_400));
            TimeRule::of(&preset("snowflake"))
                .expect("has time")
                .at(now)
        };
        // A plausible time lies at most 365 days in the past or one day in the future. Of these
        // times, the last thirty days and the future day count as recent.
        let year = days_after(365);
        let [past, recent] = [366 * DAY, 31 * DAY].map(|ticks| to_f64(ticks).log2());
        assert!((year.bits(0) - (past + 1.0)).abs() < 1e-6);
        assert!((year.bits(335 * DAY - 1) - (past + 1.0)).abs() < 1e-6);
        assert!(
            (year.bits(335 * DAY) - (recent + 1.0)).abs() < 0.2,
            "{} {recent}",
            year.bits(335 * DAY)
        );
        assert!((year.bits(366 * DAY) - year.bits(335 * DAY)).abs() < 1e-9);
        assert!((year.bits(366 * DAY + 1) - 52.0).abs() < 0.01);
        // One day after the epoch, all plausible times count as recent, because they are less than
        // 30 days old. They are therefore equally likely.
        let [all, day] = [2 * DAY, 0].map(|ticks| days_after(1).bits(ticks));
        assert!((all - 27.36).abs() < 0.01 && (all - day).abs() < 1e-9);
        assert!(TimeRule::of(&preset("uuid4")).is_none());
        let before = TimeRule::of(&preset("snowflake"))
            .expect("has time")
            .at(UnixNanos::from_seconds(0));
        assert!((before.bits(0) - 52.0).abs() < 0.01);
    }
}
