//! How well a reading explains a text: what ranks the readings of one text.
//!
//! A text of some length and letters could be any of so many texts; an id of a format is one of so many ids. The less ids
//! there are for so many texts, the more it says that the text reads as one of them. Counted in bits:
//!
//! ```text
//! evidence = log2(texts of this length over these letters) - log2(ids that the format would have here and now)
//! ```
//!
//! That is the logarithm of how much likelier the text is as an id of this format than as a random text. The first term is
//! the same for all readings of one text, so their difference is how much likelier one is than the other. It is below zero
//! where a random text explains more, such as three digits read as a number of 64 bits. Letters alone, in one case or with
//! a capital first, may be a word: a letter of a word is one of eight, as guessing games show, not one of 26.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::time::Duration;

use super::packed_layout::{Constants, FieldPlace, PackedLayout};
use crate::id::encoding::{Encoding, LetterSet};
use crate::id::format::{Format, Prefixes, Rule};
use crate::id::layout::{Field, FieldKind, Layout};
use crate::id::rejection::Rejection;
use crate::time::{Tick, UnixNanos, UnixTime};

/// A canonical reading of letters or of digits alone, fewer than twenty, that has less evidence than this is none, unless the
/// caller has said what the text is: words and everyday numbers are the likelier explanation.
///
/// Of the decimal ids of a 64-bit format, those of its first hours have less: they are numbers of 14 digits.
const BITS_MIN_OF_EVERYDAY: f64 = -16.0;

/// The same for a reading in another encoding, in which few ids are written, and for one of fewer than 15 letters where texts
/// have any length, which few ids have.
const BITS_MIN_OF_RARE_EVERYDAY: f64 = -4.0;

/// A decimal id of 64 bits has so many digits from its first day on.
const USUAL_LEN_MIN: usize = 15;

/// The same for any other text. An id has that little only where its letters by chance are all of a smaller alphabet.
const BITS_MIN: f64 = -24.0;

/// Longer texts are neither words nor everyday numbers.
const EVERYDAY_LEN_MAX: usize = 19;

/// What a letter of a word carries.
const BITS_OF_A_LETTER: f64 = 3.0;

/// An id of a time that cannot be yet is one in 2^10 at most: clocks run ahead, and so do made-up ids.
const IMPLAUSIBLE_BITS: f64 = 10.0;

/// Ids are mostly looked at soon after they were minted: those of the last thirty days are as likely as all others of
/// their format together.
const RECENT: Duration = Duration::from_secs(30 * 86_400);

/// What is minted with here: ids with these numbers are as likely as all others of their format together.
///
/// ```
/// use std::collections::{BTreeMap, BTreeSet};
/// use idmint::id::OwnNumbers;
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
    /// The worker numbers, by format.
    pub workers: BTreeMap<String, RangeInclusive<u32>>,
    /// The number in fields of kind shard.
    pub shard: Option<u64>,
    /// The hashes of the domains.
    pub domains: BTreeSet<u32>,
}

/// What the fields of an id weigh, but for the time, and the ticks of that.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldBits {
    pub(super) bits: f64,
    /// `None` for a format without time.
    pub(super) ticks: Option<u128>,
}

/// How many bits the fields of a format carry, the time left out. One for each layout of the format.
#[derive(Debug)]
pub(super) struct Weights {
    layouts: Vec<LayoutWeight>,
}

#[derive(Debug)]
struct LayoutWeight {
    packed: PackedLayout,
    /// Of the fields about whose values nothing is known, and of the rarity of the format.
    unknown: f64,
    numbered: Vec<NumberWeight>,
}

/// A field of which some values are minted with here.
#[derive(Debug)]
struct NumberWeight {
    place: FieldPlace,
    own: Vec<RangeInclusive<u128>>,
    bits_of_own: f64,
    /// Values below this are those of first ids of a tick that are spread; 1 where none are.
    spread: u128,
    bits_of_spread: f64,
    bits_of_other: f64,
}

/// How the ids of a format carry time.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeRule {
    tick: Tick,
    epoch: UnixTime,
    plausible_ahead: Duration,
    /// The last tick that fits.
    most: u128,
    bits_of_implausible: f64,
}

/// How many bits a time carries at some moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeWeight {
    /// The last plausible tick; `None` before the epoch.
    pub(super) last: Option<u128>,
    /// The first recent tick.
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
                        let spread = if field.kind == FieldKind::Sequence {
                            format.sequence_spread
                        } else {
                            1
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
            layouts: format
                .variants
                .iter()
                .map(|variant| layout_weight(&variant.layout))
                .collect(),
        }
    }

    /// What a number weighs as an id of the layout at that position among the format's.
    ///
    /// # Errors
    /// As [`Layout::unpack`].
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

    /// The bits that every id of the format has alike.
    pub(super) fn constants(&self) -> Constants {
        match self.layouts.as_slice() {
            [weight] => weight.packed.constants(),
            _ => Constants::default(),
        }
    }

    /// The fewest bits that an id has.
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

/// A constant is what it has to be. A word of a suffix code is one of several, so it counts, and so does a checksum: here
/// nobody has what it was computed from. (A checksum that the encoding adds is checked when the text is read.)
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
        // The first of a tick, wherever they were minted; here those may be spread.
        FieldKind::Sequence if format.rule == Rule::Sequenced => vec![one(0)],
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

impl NumberWeight {
    /// Half of all ids have one of their own numbers; of the other half, half again one of those that are spread.
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
    /// `None` for a format without time.
    pub(super) fn of(format: &Format) -> Option<TimeRule> {
        let most = format.variants[0].layout.greatest_of(FieldKind::Time)?;
        Some(TimeRule {
            tick: format.tick?,
            epoch: format.epoch,
            plausible_ahead: format.plausible_ahead,
            most,
            bits_of_implausible: log2_of_values(most) + IMPLAUSIBLE_BITS,
        })
    }

    /// The most bits that a time has at any moment.
    pub(super) fn most(self) -> f64 {
        self.bits_of_implausible
    }

    pub(super) fn at(self, now: UnixNanos) -> TimeWeight {
        let at =
            |instant: UnixNanos| u128::try_from(self.tick.count(self.epoch, instant.into())).ok();
        let last = at(now.after(self.plausible_ahead)).map(|ticks| ticks.min(self.most));
        let recent_from = at(now.before(RECENT)).unwrap_or(0);
        let past = last.map_or(0.0, log2_of_values);
        let recent = last.map_or(0.0, |last| log2_of_values(last.saturating_sub(recent_from)));
        TimeWeight {
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
        self.last.is_some_and(|last| ticks <= last)
    }

    pub(super) fn bits(self, ticks: u128) -> f64 {
        match ticks {
            _ if !self.is_plausible(ticks) => self.bits_of_implausible,
            _ if ticks >= self.recent_from => self.bits_of_recent,
            _ => self.bits_of_past,
        }
    }

    /// The fewest bits that a time has.
    pub(super) fn least(self) -> f64 {
        let plausible = self
            .last
            .map(|_| self.bits_of_recent.min(self.bits_of_past));
        plausible.unwrap_or(self.bits_of_implausible)
    }
}

/// The bits of a random text of this length over the smallest usual set of letters that has all of these, or of a word if
/// it may be one.
pub(super) fn bits_of_text(text: &str, letters: LetterSet) -> f64 {
    let bits_of_a_letter = if is_like_a_word(text) {
        BITS_OF_A_LETTER
    } else {
        f64::from(letters.usual_count()).log2()
    };
    to_f64(text.len() as u128) * bits_of_a_letter
}

/// The bits of a prefix among all that ids of its format may have: one of a few, or a word.
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

/// Whether the text may be a word or an everyday number.
pub(super) fn is_everyday(len: usize, letters: LetterSet) -> bool {
    len <= EVERYDAY_LEN_MAX && !letters.has_letters_and_digits()
}

/// The least evidence that a reading of `len` letters must have, unless the caller has said what the text is.
pub(super) fn bits_min(
    is_everyday: bool,
    len: usize,
    is_canonical: bool,
    encoding: &Encoding,
) -> f64 {
    let is_usual = || is_canonical && (len >= USUAL_LEN_MIN || encoding.fixed_len().is_some());
    match is_everyday {
        false => BITS_MIN,
        true if is_usual() => BITS_MIN_OF_EVERYDAY,
        true => BITS_MIN_OF_RARE_EVERYDAY,
    }
}

/// Whether this is letters in one case and not too many, or small ones after a capital, as no encoding writes them.
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

fn log2_of_values(max: u128) -> f64 {
    (to_f64(max) + 1.0).log2()
}

#[allow(
    clippy::cast_precision_loss,
    reason = "bits of evidence are told to a tenth"
)]
fn to_f64(number: u128) -> f64 {
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
        // 365 days of the past, of them thirty recent, and one of the future.
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
        // All of it is recent.
        let [all, day] = [2 * DAY, 0].map(|ticks| days_after(1).bits(ticks));
        assert!((all - 27.36).abs() < 0.01 && (all - day).abs() < 1e-9);
        assert!(TimeRule::of(&preset("uuid4")).is_none());
        let before = TimeRule::of(&preset("snowflake"))
            .expect("has time")
            .at(UnixNanos::from_seconds(0));
        assert!((before.bits(0) - 52.0).abs() < 0.01);
    }
}
