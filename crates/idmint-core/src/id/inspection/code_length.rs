//! Computes the code length of numbers and texts, which is the number of bits that it takes to
//! write them down. If several ways to write them are possible, the shortest one counts.
//!
//! Values that take fewer bits than random values have a pattern. The number of bits that they save
//! is the evidence for the pattern.

use std::collections::BTreeMap;

use crate::id::decoding::{log2_of_values, to_f64};

/// The cost, in bits, of stating which of several ways to write the numbers was used.
const BITS_OF_A_CHOICE: f64 = 2.0;

pub(super) fn len_of<T>(all: &[T]) -> f64 {
    to_f64(all.len() as u128)
}

/// Returns the code length in bits of a number from 0 to `most`, in a code in which small numbers
/// take few bits. The code length is the binary logarithm of the number, plus a few bits that state
/// the number's size.
pub(super) fn bits_of_any_size(number: u128, most: u128) -> f64 {
    log2_of_values(number) + (1.0 + to_f64(most).ln_1p()).log2()
}

/// Returns the bits that it takes to write down a sequence whose distinct items are known. `counts`
/// says how often each item occurs, such as 3 and 1 for the sequence `AABA`.
pub(super) fn bits_of_shares(counts: impl Iterator<Item = usize> + Clone) -> f64 {
    let all = to_f64(counts.clone().sum::<usize>() as u128);
    let things = to_f64(counts.clone().count() as u128);
    let shares = counts
        .map(|count| to_f64(count as u128))
        .map(|count| count * (all / count).log2())
        .sum::<f64>();
    shares + 0.5 * (things - 1.0).max(0.0) * all.max(1.0).log2()
}

/// Counts how often each distinct item occurs in `all`.
pub(super) fn count_each<T: Ord>(all: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    all.for_each(|one| *counts.entry(one).or_insert(0) += 1);
    counts
}

/// Returns the code length in bits of a list of numbers, given the code length `bits_of_greatest`
/// of the greatest number. The shortest of three descriptions counts: the numbers are anywhere
/// between the least and the greatest, most numbers are near the greatest, or a few distinct
/// numbers repeat.
pub(super) fn bits_of_span(numbers: &[u128], bits_of_greatest: f64) -> f64 {
    let counts = count_each(numbers.iter().copied());
    let different: Vec<u128> = counts.keys().copied().collect();
    let of_different = bits_below_greatest(&different) + bits_of_shares(counts.values().copied());
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    bits_of_greatest + BITS_OF_A_CHOICE + bits_below_greatest(&sorted).min(of_different)
}

/// Returns the number of bits that it takes to write down all numbers in `sorted` except the
/// greatest one. The caller adds the bits of the greatest.
fn bits_below_greatest(sorted: &[u128]) -> f64 {
    let (Some(least), Some(greatest)) = (sorted.first(), sorted.last()) else {
        return 0.0;
    };
    if sorted.len() == 1 {
        return 0.0;
    }
    let span = greatest - least;
    let anywhere =
        bits_of_any_size(span, u128::MAX) + (len_of(sorted) - 2.0) * log2_of_values(span);
    let below = sorted[..sorted.len() - 1].iter();
    anywhere.min(bits_of_sizes(below.map(|number| greatest - number)))
}

/// Returns the code length in bits of numbers that are each written as a length and bits. For
/// example, 5 (binary 101) is written as the length 3 and the bits 01, because the first bit is
/// always 1. Small numbers take few bits in this way.
fn bits_of_sizes(numbers: impl Iterator<Item = u128>) -> f64 {
    let sizes = count_each(numbers.map(|number| u128::BITS - number.leading_zeros()));
    let below_size =
        |(size, count): (&u32, &usize)| to_f64(*count as u128) * f64::from(size.saturating_sub(1));
    7.0 + bits_of_shares(sizes.values().copied()) + sizes.iter().map(below_size).sum::<f64>()
}

/// Returns the code length in bits of numbers up to `max`. The shortest of several descriptions
/// counts: the numbers are unrelated, a few distinct numbers repeat, all numbers are close
/// together, all are small, most are small, or the numbers with the same key are close together.
/// Each item of `keys` is a list with one key for each number, such as the tick of each id.
pub(super) fn bits_of_field(values: &[u128], max: u128, keys: &[&[u128]]) -> f64 {
    let (width, count) = (log2_of_values(max), len_of(values));
    let of_few = |values: &[u128]| {
        let counts = count_each(values.iter().copied());
        to_f64(counts.len() as u128) * width + bits_of_shares(counts.values().copied())
    };
    let of_close = |values: &[u128]| match (values.iter().min(), values.iter().max()) {
        (Some(least), Some(most)) if values.len() > 1 => {
            // The least and the greatest value take `width` bits each, plus `log2(len)` bits each
            // for the position. Others are distances from the least, of at most `most - least`.
            2.0 * (width + len_of(values).log2())
                + (len_of(values) - 2.0) * log2_of_values(most - least)
        }
        _ => len_of(values) * width,
    };
    let from_zero = |values: &[u128]| {
        let most = values.iter().max().copied().unwrap_or(0);
        bits_of_any_size(most, max) + len_of(values) * log2_of_values(most)
    };
    let for_keys = |keys: &&[u128]| {
        let mut of_keys: BTreeMap<u128, Vec<u128>> = BTreeMap::new();
        keys.iter()
            .zip(values)
            .for_each(|(key, value)| of_keys.entry(*key).or_default().push(*value));
        of_keys.values().map(|values| of_close(values)).sum::<f64>()
    };
    let ways = [
        count * width,
        of_few(values),
        of_close(values),
        from_zero(values),
        // This description fits counters, because most of their values are small.
        bits_of_sizes(values.iter().copied()),
    ]
    .into_iter();
    BITS_OF_A_CHOICE.min(count * width)
        + ways
            .chain(keys.iter().map(for_keys))
            .fold(f64::INFINITY, f64::min)
}

/// Returns the code length in bits of numbers up to `most`, if each bit position is described by
/// itself. A position at which all numbers have the same bit takes 1 bit. Any other position takes
/// at most one bit for each number, and less if ones are rare or frequent.
pub(super) fn bits_of_bits(numbers: &[u128], most: u128) -> f64 {
    let width = u128::BITS - most.leading_zeros();
    let ones = (0..width).map(|bit| {
        numbers
            .iter()
            .filter(|number| *number >> bit & 1 == 1)
            .count()
    });
    let cost = |ones: usize| match ones {
        0 => (true, 1.0),
        all if all == numbers.len() => (true, 1.0),
        some => (
            false,
            bits_of_shares([some, numbers.len() - some].into_iter()).min(len_of(numbers)),
        ),
    };
    bits_of_places(ones.map(cost))
}

/// Returns the code length in bits of texts, if each position in the text is described by itself.
/// If all texts have the same letter at a position, the bits of that letter count once. A position
/// with few different letters takes fewer bits than a position with unrelated letters. `letters` is
/// the number of possible letters.
pub(super) fn bits_of_texts(texts: &[&str], letters: u32) -> f64 {
    let (mut of_len, bits_of_letter): (BTreeMap<usize, Vec<&[u8]>>, f64) =
        (BTreeMap::new(), f64::from(letters).log2());
    texts
        .iter()
        .for_each(|text| of_len.entry(text.len()).or_default().push(text.as_bytes()));
    let bits_of_lens =
        5.0 * to_f64(of_len.len() as u128) + bits_of_shares(of_len.values().map(Vec::len));
    let of_texts = |(len, texts): (&usize, &Vec<&[u8]>)| {
        let cost = |place: usize| {
            let counts = count_each(texts.iter().map(|text| text[place]));
            let (different, count) = (to_f64(counts.len() as u128), len_of(texts));
            if counts.len() == 1 {
                return (true, bits_of_letter);
            }
            let which = (different * bits_of_letter).min(f64::from(letters));
            (
                false,
                (count * bits_of_letter).min(which + bits_of_shares(counts.values().copied())),
            )
        };
        bits_of_places((0..*len).map(cost))
    };
    bits_of_lens + of_len.iter().map(of_texts).sum::<f64>()
}

/// Returns the code length in bits of all positions of a text or number. Each item of `places` has
/// a flag that is `true` if the position is constant, and the bits for its content. The result
/// includes the bits that list the constant positions, as a set or as runs, whichever is shorter.
fn bits_of_places(places: impl Iterator<Item = (bool, f64)>) -> f64 {
    let places: Vec<_> = places.collect();
    let len = places.len();
    let constant = places
        .iter()
        .filter(|(is_constant, _)| *is_constant)
        .count();
    let of_set: f64 = (1..=constant)
        .map(|at| (len_of(&places) + 1.0 - to_f64(at as u128)).log2() - to_f64(at as u128).log2())
        .sum();
    let changes = places
        .windows(2)
        .filter(|pair| pair[0].0 != pair[1].0)
        .count();
    let of_runs = to_f64(changes as u128 + 1) * to_f64(len as u128 + 1).log2();
    of_set.min(of_runs) + places.iter().map(|(_, bits)| bits).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_pattern_takes_fewer_bits_than_what_has_none() {
        let scattered: Vec<u128> = (0..256)
            .map(|at: u128| at.wrapping_mul(0x9e37_79b9) & 0xffff)
            .collect();
        let plain = 256.0 * 16.0;
        let of = |values: &[u128]| bits_of_field(values, 0xffff, &[]);
        assert!((of(&scattered) - plain).abs() < 300.0, "{}", of(&scattered));
        assert!(of(&[7; 256]) < 30.0, "one value");
        assert!(
            of(&(0..256).collect::<Vec<_>>()) < 256.0 * 8.0 + 40.0,
            "close together"
        );
        let keys: Vec<u128> = (0..256).map(|at| at / 64).collect();
        let of_keys: Vec<u128> = (0..256).map(|at| (at / 64) * 10_000 + at % 64).collect();
        assert!(
            bits_of_field(&of_keys, 0xffff, &[&keys]) < of(&of_keys) - 256.0,
            "close together for one key"
        );
    }

    #[test]
    fn constant_places_cost_what_says_that_they_are() {
        let texts: Vec<String> = (0..100)
            .map(|at| format!("AB-{:02}", at * 37 % 100))
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let bits = bits_of_texts(&texts, 37);
        assert!(
            bits > 2.0 * 100.0 * 10_f64.log2() && bits < 2.0 * 100.0 * 10_f64.log2() + 200.0,
            "{bits}"
        );
        let numbers: Vec<u128> = (0..256).map(|at| 0xabc0_0000 | at).collect();
        let bits = bits_of_bits(&numbers, 0xffff_ffff);
        assert!(bits > 8.0 * 256.0 && bits < 8.0 * 256.0 + 60.0, "{bits}");
    }

    #[test]
    fn one_that_is_far_from_all_others_costs_only_itself() {
        let near: Vec<u128> = (0..1000).map(|at| 1_000_000_000_000 + at * 977).collect();
        let mut with_one = near.clone();
        with_one[0] = 5;
        assert!(bits_of_span(&with_one, 0.0) < bits_of_span(&near, 0.0) + 200.0);
    }
}
