//! How many bits it takes to write down some numbers or texts, by several ways of writing them of which the shortest counts.
//!
//! What is written in fewer bits than by chance has a pattern, and the number of bits that are saved is the evidence for it.

use std::collections::BTreeMap;

/// Bits that say which of the ways of writing was taken.
const BITS_OF_A_CHOICE: f64 = 2.0;

/// The binary logarithm of how many numbers there are up to this one.
pub(super) fn log2_of_values(max: u128) -> f64 {
    (to_f64(max) + 1.0).log2()
}

#[allow(clippy::cast_precision_loss, reason = "bits are compared in tens")]
pub(super) fn to_f64(number: u128) -> f64 {
    number as f64
}

pub(super) fn len_of<T>(all: &[T]) -> f64 {
    to_f64(all.len() as u128)
}

/// A number of unknown size: its logarithm, and that of all sizes up to `most`.
pub(super) fn bits_of_any_size(number: u128, most: u128) -> f64 {
    log2_of_values(number) + (1.0 + to_f64(most).ln_1p()).log2()
}

/// Which of some things each of many is, by how often each of them is there.
pub(super) fn bits_of_shares(counts: impl Iterator<Item = usize> + Clone) -> f64 {
    let all = to_f64(counts.clone().sum::<usize>() as u128);
    let things = to_f64(counts.clone().count() as u128);
    let shares = counts
        .map(|count| to_f64(count as u128))
        .map(|count| count * (all / count).log2())
        .sum::<f64>();
    shares + 0.5 * (things - 1.0).max(0.0) * all.max(1.0).log2()
}

/// How often each is there.
pub(super) fn count_each<T: Ord>(all: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    all.for_each(|one| *counts.entry(one).or_insert(0) += 1);
    counts
}

/// Numbers, of which the greatest takes `bits_of_greatest`: anywhere in their span, or mostly near to the greatest, or few different
/// ones.
pub(super) fn bits_of_span(numbers: &[u128], bits_of_greatest: f64) -> f64 {
    let counts = count_each(numbers.iter().copied());
    let different: Vec<u128> = counts.keys().copied().collect();
    let of_different = bits_below_greatest(&different) + bits_of_shares(counts.values().copied());
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    bits_of_greatest + BITS_OF_A_CHOICE + bits_below_greatest(&sorted).min(of_different)
}

/// All but the greatest of these sorted numbers.
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
    let distances = sorted[..sorted.len() - 1]
        .iter()
        .map(|number| greatest - number);
    let sizes = count_each(distances.map(|distance| u128::BITS - distance.leading_zeros()));
    let below_size =
        |(size, count): (&u32, &usize)| to_f64(*count as u128) * f64::from(size.saturating_sub(1));
    let by_size =
        7.0 + bits_of_shares(sizes.values().copied()) + sizes.iter().map(below_size).sum::<f64>();
    anywhere.min(by_size)
}

/// Numbers up to `max` that have nothing to do with each other, or are few, or close together, or that for one key.
pub(super) fn bits_of_field(values: &[u128], max: u128, keys: &[&[u128]]) -> f64 {
    let (width, count) = (log2_of_values(max), len_of(values));
    let of_few = |values: &[u128]| {
        let counts = count_each(values.iter().copied());
        to_f64(counts.len() as u128) * width + bits_of_shares(counts.values().copied())
    };
    let of_close = |values: &[u128]| match (values.iter().min(), values.iter().max()) {
        (Some(least), Some(most)) if values.len() > 1 => {
            // Both ends, which of the values they are, and the others between.
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
    ]
    .into_iter();
    BITS_OF_A_CHOICE.min(count * width)
        + ways
            .chain(keys.iter().map(for_keys))
            .fold(f64::INFINITY, f64::min)
}

/// Numbers below 2^128 as bits, each of which is constant or has a share of ones; nothing is known of them but that.
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

/// Texts, place by place, each of which is constant or has a share of each of the `letters` that there may be.
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

/// Places that are constant or not: which are, as a set or as runs of them, and what stands there.
fn bits_of_places(places: impl Iterator<Item = (bool, f64)>) -> f64 {
    let places: Vec<_> = places.collect();
    let (len, constant) = (
        places.len(),
        places
            .iter()
            .filter(|(is_constant, _)| *is_constant)
            .count(),
    );
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
