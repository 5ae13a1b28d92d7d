//! Ranges of integers from which random numbers are drawn.

use super::words::Words;

/// The integers from `first` to `first + more`, inclusive. A span has 1 to 2^128 integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    first: u128,
    more: u128,
}

impl Span {
    /// Returns the integers from 0 to `greatest`, inclusive.
    pub(super) fn up_to(greatest: u128) -> Span {
        Span {
            first: 0,
            more: greatest,
        }
    }

    /// Divides the range into `of` parts of nearly equal size. Returns the parts with the indices
    /// `from` (inclusive) to `to` (exclusive) as one range. For example, `parts(1, 3, 4)` of the
    /// numbers 0 to 99 is the range 25 to 74. `from` must be less than `to`, and `to` at most `of`.
    ///
    /// # Panics
    /// Panics if the range has at most `of` numbers, because some parts could then be empty.
    pub(super) fn parts(self, from: u64, to: u64, of: u64) -> Span {
        assert!(
            self.more >= u128::from(of),
            "each of {of} parts has numbers"
        );
        debug_assert!(from < to && to <= of);
        let begins = self.begin_of(from, of);
        // If the range has all 2^128 numbers, its end wraps around to 0. The wrapping subtractions
        // still give the right `more`, the number of integers after the first.
        Span {
            first: self.first + begins,
            more: self.begin_of(to, of).wrapping_sub(begins).wrapping_sub(1),
        }
    }

    /// Returns the offset at which the part with index `part` begins. For example, if 10 numbers
    /// are divided into 4 parts, the parts begin at 0, 2, 5 and 7 (multiples of 2.5, rounded down).
    fn begin_of(self, part: u64, of: u64) -> u128 {
        let (part, of) = (u128::from(part), u128::from(of));
        let (each, left) = (self.more / of, self.more % of + 1);
        part.wrapping_mul(each).wrapping_add(part * left / of)
    }

    /// Draws a uniformly distributed number from the range. If the drawn bits give a number outside
    /// the range, draws again. On average, at most two draws are needed. For a range of one number,
    /// one bit is drawn until it is 0.
    #[inline]
    pub(super) fn draw(self, words: &mut Words) -> u128 {
        let mask = u128::MAX >> self.more.leading_zeros().min(127);
        loop {
            let low = u128::from(words.next());
            let number = if mask > u128::from(u64::MAX) {
                low | u128::from(words.next()) << 64
            } else {
                low
            };
            if number & mask <= self.more {
                return self.first + (number & mask);
            }
        }
    }

    /// Fills `numbers` with distinct numbers from the range, in ascending order. A duplicate is
    /// drawn again, so every possible set of numbers is equally likely.
    ///
    /// The range should contain many more numbers than are drawn. Otherwise duplicates make drawing
    /// slow.
    pub(super) fn draw_ascending(self, numbers: &mut [u128], words: &mut Words) {
        numbers
            .iter_mut()
            .for_each(|number| *number = self.draw(words));
        numbers.sort_unstable();
        while let Some(at) = numbers.array_windows().position(|[one, next]| one == next) {
            numbers[at] = self.draw(words);
            numbers.sort_unstable();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::minting::random::Randomness;

    fn with_words<T>(draw: impl FnOnce(&mut Words) -> T) -> T {
        Randomness::seeded(7).with_words(draw)
    }

    #[test]
    fn parts_meet_and_are_as_equal_as_can_be() {
        for greatest in [
            6,
            99,
            (1 << 62) - 1,
            (1 << 80) - 1,
            u128::MAX - 1,
            u128::MAX,
        ] {
            let whole = Span::up_to(greatest);
            for of in [1, 2, 3, 5] {
                let mut expected = 0;
                for part in 0..of {
                    let Span { first, more } = whole.parts(part, part + 1, of);
                    assert_eq!(first, expected, "part {part} of {of} up to {greatest}");
                    let equal = greatest / u128::from(of);
                    assert!((equal - 1..=equal).contains(&more), "{more} of {greatest}");
                    expected = first.wrapping_add(more).wrapping_add(1);
                }
                assert_eq!(expected, greatest.wrapping_add(1));
                assert_eq!(whole.parts(0, of, of), whole);
            }
        }
        let within = Span {
            first: 1000,
            more: 99,
        }
        .parts(3, 5, 10);
        assert_eq!(
            within,
            Span {
                first: 1030,
                more: 19
            }
        );
    }

    #[test]
    fn numbers_ascend_strictly_even_where_nearly_all_are_drawn() {
        with_words(|words| {
            for _ in 0..1_000 {
                let mut numbers = [0; 10];
                Span { first: 5, more: 10 }.draw_ascending(&mut numbers, words);
                assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
                assert!(
                    numbers.iter().all(|number| (5..=15).contains(number)),
                    "{numbers:?}"
                );
            }
        });
    }

    #[test]
    fn answers_in_pieces_collide_as_often_as_if_each_id_were_drawn_by_itself() {
        let all = Span::up_to((1 << 16) - 1);
        let answer = |count: u64, piece: u64, words: &mut Words| {
            let mut numbers = vec![0; usize::try_from(count).expect("small")];
            let mut from = 0;
            while from < count {
                let to = (from + piece).min(count);
                let [begins, ends] = [from, to].map(|at| usize::try_from(at).expect("small"));
                all.parts(from, to, count)
                    .draw_ascending(&mut numbers[begins..ends], words);
                from = to;
            }
            assert!(numbers.is_sorted_by(|one, next| one < next));
            numbers
        };
        with_words(|words| {
            for (count, piece) in [(100, 100), (100, 64), (65, 64), (100, 1)] {
                let mut equal = 0;
                for _ in 0..5_000 {
                    let [one, other] = [answer(count, piece, words), answer(60, 7, words)];
                    equal += one
                        .iter()
                        .filter(|number| other.binary_search(number).is_ok())
                        .count();
                }
                // The numbers of both responses are drawn from 65 536 values, so a number of one
                // response equals a number of the other with a probability of 1 in 65 536. There
                // are 5 000 pairs of responses, and the tolerance is 5 standard deviations.
                let expected =
                    f64::from(u32::try_from(5_000 * count * 60).expect("small")) / 65_536.0;
                let off = (f64::from(u32::try_from(equal).expect("small")) - expected).abs();
                assert!(
                    off < 5.0 * expected.sqrt(),
                    "{count} by {piece}: {equal}, expected {expected}"
                );
            }
        });
    }

    #[test]
    fn each_number_is_as_likely_as_the_others() {
        let count = |counts: &mut [u32; 15], number: u128| {
            counts[usize::try_from(number).expect("below 15")] += 1
        };
        let mut counts = [0; 15];
        with_words(|words| {
            (0..15_000).for_each(|_| count(&mut counts, Span::up_to(14).draw(words)))
        });
        assert!(
            counts.iter().all(|count| (800..1_200).contains(count)),
            "{counts:?}"
        );
        let mut counts = [0; 15];
        with_words(|words| {
            for _ in 0..3_000 {
                let mut numbers = [0; 5];
                Span::up_to(14).draw_ascending(&mut numbers, words);
                numbers
                    .iter()
                    .for_each(|number| count(&mut counts, *number));
            }
        });
        assert!(
            counts.iter().all(|count| (800..1_200).contains(count)),
            "{counts:?}"
        );
    }
}
