//! Converts numbers to the digits of a radix, and digits to numbers.
//!
//! Digits are written four at a time, starting with the last digits of the number. One division
//! splits off four digits. Each half of these four digits is looked up in a table of letter pairs.
//! If the radix is a power of two, shifts replace the divisions.
//!
//! ```text
//! 1573542478  ──÷ 10 000──►  157354 | 2478  ──÷ 100──►  24 | 78  ──►  pairs[24], pairs[78]  ──►  "2478"
//!                            next step                                two letters each
//! ```

use super::block_copy::{Endings, lowest_64_bits, split, write_block};
use crate::id::encoding::letters::Letters;
use crate::id::id_block::IdBlock;
use crate::id::rejection::Rejection;

/// Runs `$then`, in which `$write` is the fastest function that writes digits of this radix.
///
/// Each usual radix has its own match arm, in which shifts and divisors are constants. The compiler
/// can therefore merge `$then` and `$write` into one loop. The radix is matched only once, no
/// matter how many numbers `$then` writes:
///
/// ```text
/// with_fastest!(self, pairs, write => write_block(block, len, write, endings, seam, out))
///
/// match self.radix {
///     16 => { let write = shifting::<4, 16>(pairs.two_of::<256>());     write_block(.., write, ..) }
///     10 => { let write = self.dividing::<10>(pairs.two_of::<100>());   write_block(.., write, ..) }
///     _  => { let write = self.dividing::<0>(pairs.two());              write_block(.., write, ..) }
/// }
/// shifting::<4, 16>: digits of 4 bits, 16 of them in 64 bits
/// dividing::<0>: a radix that is not known at compile time
/// ```
macro_rules! with_fastest {
    ($self:ident, $pairs:ident, $write:ident => $then:expr) => {
        with_fastest!(@ $self, $write => $then,
            2 => shifting::<1, 64>($pairs.two_of::<4>()),
            4 => shifting::<2, 32>($pairs.two_of::<16>()),
            8 => shifting::<3, 20>($pairs.two_of::<64>()),
            16 => shifting::<4, 16>($pairs.two_of::<256>()),
            32 => shifting::<5, 12>($pairs.two_of::<1024>()),
            64 => shifting::<6, 8>($pairs.two_of::<4096>()),
            10 => $self.dividing::<10>($pairs.two_of::<100>()),
            36 => $self.dividing::<36>($pairs.two_of::<1296>()),
            62 => $self.dividing::<62>($pairs.two_of::<3844>()),
            _ => $self.dividing::<0>($pairs.two())
        )
    };
    (@ $self:ident, $write:ident => $then:expr, $($radix:pat => $fastest:expr),*) => {
        match $self.radix {
            $($radix => {
                let $write = $fastest;
                $then
            })*
        }
    };
}

/// The radix in which numbers are written, 2 to 94, with tables for computing how many digits a
/// number has.
#[derive(Debug, Clone)]
pub(in crate::id::encoding) struct Radix {
    radix: u64,
    /// The greatest number `n` for which `radix` to the power of `n` fits into 64 bits, such as 19
    /// for decimal. All numbers of `n` digits then fit as well.
    part_len: usize,
    /// `radix` to the power of `part_len`, such as 10^19 for decimal.
    part: u64,
    /// Entry `n` is the greatest number that has `n` digits.
    greatest: Vec<u128>,
    /// Entry `n` is the number of digits of the smallest number that has `n` bits.
    least_len: [u8; 129],
}

impl Radix {
    /// Creates a radix that has one digit for each of `letters`.
    pub(in crate::id::encoding) fn of_letters(letters: &[u8]) -> Self {
        let radix = u64::try_from(letters.len()).expect("at most 94 letters");
        let mut greatest = vec![0];
        while let Some(value) = greatest.last().and_then(|last: &u128| last.checked_add(1)) {
            greatest.push(
                value
                    .checked_mul(u128::from(radix))
                    .map_or(u128::MAX, |next| next - 1),
            );
        }
        let mut least_len = [1; 129];
        for (bits, len) in least_len.iter_mut().enumerate().skip(1) {
            let smallest = 1_u128 << (bits - 1);
            let digits = greatest.partition_point(|most| *most < smallest);
            *len = u8::try_from(digits).expect("128 bits have at most 128 digits");
        }
        let part_len = (1..)
            .take_while(|len| radix.checked_pow(*len).is_some())
            .last()
            .expect("one digit fits");
        let part = radix.pow(part_len);
        let part_len = usize::try_from(part_len).expect("at most 63 digits");
        Self {
            radix,
            part_len,
            part,
            greatest,
            least_len,
        }
    }

    /// Returns the number of bits in a digit, or `None` if the radix is not a power of two.
    pub(in crate::id::encoding) fn bits(&self) -> Option<u32> {
        self.radix
            .is_power_of_two()
            .then(|| self.radix.trailing_zeros())
    }

    /// Returns the number of digits of a value, without leading zeros. The value 0 has one digit.
    #[inline]
    pub(in crate::id::encoding) fn len(&self, value: u128) -> usize {
        // The lengths of numbers with the same number of bits differ by at most one digit, so one
        // comparison determines the length.
        let bits = usize::try_from(u128::BITS - value.leading_zeros()).expect("at most 128");
        let least = usize::from(self.least_len[bits]);
        least + usize::from(value > self.greatest[least])
    }

    /// Returns the number of letters in the text of a list of numbers: the digits of all numbers,
    /// and one more letter (such as a separator) before each number.
    pub(in crate::id::encoding) fn list_len(&self, numbers: &[u128]) -> usize {
        numbers.iter().map(|number| self.len(*number) + 1).sum()
    }

    /// Fills `out` with the digits of `value`, padded with leading zeros.
    #[inline]
    pub(in crate::id::encoding) fn write(&self, value: u128, pairs: &Pairs, out: &mut [u8]) {
        with_fastest!(self, pairs, write => write(value, out))
    }

    /// Fills `out` with the digits of `value`, padded with leading zeros, in an alphabet that is
    /// shuffled differently for each number. If `out` is too short, the leading digits are left
    /// out.
    ///
    /// No table of letter pairs is used, because building it for one number would take longer than
    /// writing the digits.
    #[inline]
    pub(in crate::id::encoding) fn write_shuffled(
        &self,
        value: u128,
        letters: &Letters,
        out: &mut [u8],
    ) {
        let radix = self.radix;
        let two = |number: u64| {
            [
                letters[lowest_7_bits(number / radix)],
                letters[lowest_7_bits(number % radix)],
            ]
        };
        self.dividing::<0>(two)(value, out);
    }

    /// Writes the digits of each id followed by the separator `seam`, by calling [`write_block`]
    /// with the fastest function for this radix.
    #[inline]
    pub(in crate::id::encoding) fn write_block<const SEAM: usize>(
        &self,
        block: IdBlock<'_>,
        pairs: &Pairs,
        len: impl Fn(u128) -> usize,
        endings: Option<Endings<'_>>,
        seam: [u8; SEAM],
        out: &mut [u8],
    ) -> usize {
        with_fastest!(self, pairs, write => write_block(block, len, write, endings, seam, out))
    }

    /// Combines digits into a number. Each digit must be less than the radix. Returns `None` if the
    /// number is 2^128 or more.
    pub(in crate::id::encoding) fn number(
        &self,
        mut digits: impl ExactSizeIterator<Item = u8>,
    ) -> Option<u128> {
        let mut number = 0_u128;
        // Combine as many digits as fit into 64 bits, which needs no overflow checks, and then
        // append these digits to the number.
        while digits.len() > self.part_len {
            let low = self.part_of(digits.by_ref().take(self.part_len));
            number = number
                .checked_mul(self.part.into())?
                .checked_add(low.into())?;
        }
        let count = u32::try_from(digits.len()).expect("at most 63 digits");
        let low = self.part_of(digits);
        if number == 0 {
            return Some(low.into());
        }
        let scale = self.radix.wrapping_pow(count);
        number.checked_mul(scale.into())?.checked_add(low.into())
    }

    /// Reads the letters of `text` as the digits of a number.
    ///
    /// `digit_of` maps each letter to a digit less than the radix. Returns `None` if `digit_of`
    /// returns `None`, or if the number is 2^128 or more.
    pub(in crate::id::encoding) fn number_of_letters(
        &self,
        text: &[u8],
        digit_of: impl Fn(u8) -> Option<u8>,
    ) -> Option<u128> {
        let mut number = 0_u128;
        for part in text.chunks(self.part_len) {
            let push =
                |low: u64, letter: &u8| Some(low * self.radix + u64::from(digit_of(*letter)?));
            let low = part.iter().try_fold(0, push)?;
            let count = u32::try_from(part.len()).expect("at most 63 digits");
            number = match number {
                0 => low.into(),
                _ => number
                    .checked_mul(self.radix.pow(count).into())?
                    .checked_add(low.into())?,
            };
        }
        Some(number)
    }

    fn part_of(&self, digits: impl Iterator<Item = u8>) -> u64 {
        digits.fold(0, |low: u64, digit| {
            low.wrapping_mul(self.radix).wrapping_add(digit.into())
        })
    }

    /// Returns `value` with one digit appended on the right. Returns `None` if the result is 2^128
    /// or more.
    pub(in crate::id::encoding) fn push(&self, value: u128, digit: u8) -> Option<u128> {
        value
            .checked_mul(u128::from(self.radix))?
            .checked_add(u128::from(digit))
    }

    /// Returns the number that the letters in `digits` represent. `letters` are the letters of all
    /// digits of the radix, in ascending order.
    ///
    /// # Errors
    /// Returns `unknown` if one of `digits` is not in `letters`, and [`Rejection::OutOfRange`] if
    /// the number is 2^128 or more.
    pub(in crate::id::encoding) fn number_in(
        &self,
        letters: &[u8],
        digits: &[u8],
        unknown: Rejection,
    ) -> Result<u128, Rejection> {
        digits.iter().try_fold(0, |number, digit| {
            let digit = letters.iter().position(|letter| letter == digit);
            let digit = u8::try_from(digit.ok_or(unknown)?).expect("at most 94 letters");
            self.push(number, digit).ok_or(Rejection::OutOfRange)
        })
    }

    /// Returns a function that writes digits by division. `RADIX` is the radix of the digits if it
    /// is known at compile time, or 0 otherwise.
    #[inline(always)]
    fn dividing<const RADIX: u64>(
        &self,
        two: impl Fn(u64) -> [u8; 2] + Copy,
    ) -> impl Fn(u128, &mut [u8]) {
        move |value, out| match u64::try_from(value) {
            Ok(short) => write_divided(short, self.known::<RADIX>(), two, out),
            Err(_) => self.write_long::<RADIX>(value, two, out),
        }
    }

    /// Writes the digits of numbers that need more than 64 bits. This function is not inlined, so
    /// that the more frequent code for numbers of up to 64 bits can be inlined.
    #[inline(never)]
    fn write_long<const RADIX: u64>(
        &self,
        value: u128,
        two: impl Fn(u64) -> [u8; 2] + Copy,
        out: &mut [u8],
    ) {
        let mut rest = value;
        for part in out.rchunks_mut(self.part_len) {
            let low;
            (rest, low) = split(rest, self.part);
            write_divided(low, self.known::<RADIX>(), two, part);
        }
    }

    #[inline(always)]
    fn known<const RADIX: u64>(&self) -> u64 {
        if RADIX == 0 { self.radix } else { RADIX }
    }
}

/// Writes the digits of `value` from right to left. Each division splits off four digits, which are
/// written as two pairs. The first one to three digits may be written singly.
#[inline(always)]
fn write_divided(value: u64, radix: u64, two: impl Fn(u64) -> [u8; 2], out: &mut [u8]) {
    let pairs = radix * radix;
    let fours = pairs * pairs;
    let mut rest = value;
    let (head, parts) = out.as_rchunks_mut::<4>();
    for part in parts.iter_mut().rev() {
        let low = rest % fours;
        rest /= fours;
        let ([a, b], [c, d]) = (two(low / pairs), two(low % pairs));
        *part = [a, b, c, d];
    }
    for letter in head.iter_mut().rev() {
        *letter = two(rest % radix)[1];
        rest /= radix;
    }
}

/// Returns a function that writes digits of `BITS` bits each, using shifts.
///
/// The digits are written in parts of `PART` digits, which must fit into 64 bits, because 128-bit
/// shifts are slower. `PART` must be a multiple of four, as digits are written four at a time.
#[inline(always)]
fn shifting<const BITS: u32, const PART: usize>(
    two: impl Fn(u64) -> [u8; 2] + Copy,
) -> impl Fn(u128, &mut [u8]) {
    move |value, out| {
        let mut rest = value;
        let (head, parts) = out.as_rchunks_mut::<PART>();
        for part in parts.iter_mut().rev() {
            write_shifted::<BITS>(lowest_64_bits(rest), two, part);
            for _ in 0..PART {
                rest >>= BITS;
            }
        }
        write_shifted::<BITS>(lowest_64_bits(rest), two, head);
    }
}

#[inline(always)]
fn write_shifted<const BITS: u32>(value: u64, two: impl Fn(u64) -> [u8; 2], out: &mut [u8]) {
    let pair_mask = (1 << (2 * BITS)) - 1;
    let mut rest = value;
    let (head, parts) = out.as_rchunks_mut::<4>();
    for part in parts.iter_mut().rev() {
        let ([a, b], [c, d]) = (two((rest >> (2 * BITS)) & pair_mask), two(rest & pair_mask));
        rest >>= 4 * BITS;
        *part = [a, b, c, d];
    }
    for letter in head.iter_mut().rev() {
        *letter = two(rest & ((1 << BITS) - 1))[1];
        rest >>= BITS;
    }
}

/// Converts a digit to an index into an alphabet, which is an array of 128 entries. The index is
/// always within the array.
fn lowest_7_bits(digit: u64) -> usize {
    (digit & 0x7f) as usize
}

/// The texts of all two-digit numbers in ascending order: `"00"`, `"01"`, … for decimal.
#[derive(Debug, Clone)]
pub(in crate::id::encoding) struct Pairs {
    letters: Box<[[u8; 2]]>,
}

impl Pairs {
    /// Builds the table of all pairs of two letters from an alphabet of 2 to 94 letters.
    pub(in crate::id::encoding) fn of_letters(letters: &[u8]) -> Self {
        Self {
            letters: letters
                .iter()
                .flat_map(|upper| letters.iter().map(|lower| [*upper, *lower]))
                .collect(),
        }
    }

    /// Returns the letter pairs of all two-digit numbers in ascending order.
    pub(in crate::id::encoding) fn letters(&self) -> &[[u8; 2]] {
        &self.letters
    }

    /// Returns a function that maps a number to the two letters of its two digits.
    #[inline(always)]
    pub(in crate::id::encoding) fn two(&self) -> impl Fn(u64) -> [u8; 2] + Copy {
        |number| self.letters[lowest_14_bits(number)]
    }

    /// Returns a function from a number to the letters of its two digits, like [`two`](Self::two).
    /// The table must have exactly `COUNT` pairs, so the compiler can omit the bounds check.
    #[inline(always)]
    pub(in crate::id::encoding) fn two_of<const COUNT: usize>(
        &self,
    ) -> impl Fn(u64) -> [u8; 2] + Copy {
        let letters: &[[u8; 2]; COUNT] = (&*self.letters)
            .try_into()
            .expect("the square of the radix");
        move |number| letters[lowest_14_bits(number)]
    }
}

/// Converts a number of two digits to its index in the table of letter pairs. The mask does not
/// change the number, because the largest table has 94^2 entries, fewer than 2^14.
fn lowest_14_bits(number: u64) -> usize {
    (number & 0x3fff) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::encoding::letters::Alphabet;

    /// Returns the last `count` printable letters in descending order. No digit then has its usual
    /// letter, such as `0` for the digit 0.
    fn printable(count: usize) -> Alphabet {
        let letters: String = ('!'..='~').rev().take(count).collect();
        Alphabet::new(&letters, 2).expect("different printable letters")
    }

    fn by_long_division(mut value: u128, alphabet: &Alphabet) -> Vec<u8> {
        let radix = u128::try_from(alphabet.len()).expect("small");
        let mut text = Vec::new();
        while text.is_empty() || value > 0 {
            text.insert(
                0,
                alphabet.letters()[usize::try_from(value % radix).expect("a digit")],
            );
            value /= radix;
        }
        text
    }

    fn assert_digits(value: u128, radix_len: usize, zeros: usize) {
        let alphabet = printable(radix_len);
        let radix = Radix::of_letters(alphabet.letters());
        let expected = by_long_division(value, &alphabet);
        assert_eq!(
            radix.len(value),
            expected.len(),
            "digits of {value} in radix {radix_len}"
        );
        let mut text = vec![0; expected.len() + zeros];
        radix.write_shuffled(value, alphabet.table(), &mut text);
        let shuffled = text.clone();
        radix.write(value, &Pairs::of_letters(alphabet.letters()), &mut text);
        assert_eq!(text, shuffled);
        assert_eq!(text[zeros..], expected);
        assert!(
            text[..zeros]
                .iter()
                .all(|letter| *letter == alphabet.letters()[0])
        );
        let digits = text
            .iter()
            .map(|letter| alphabet.digit(*letter).expect("a letter"));
        assert_eq!(radix.number(digits), Some(value));
        assert_eq!(
            radix.number_of_letters(&text, |letter| alphabet.digit(letter)),
            Some(value)
        );
    }

    #[test]
    fn the_edges_of_every_radix() {
        for radix_len in 2..=94 {
            let radix = u128::try_from(radix_len).expect("small");
            for power in (0..).map_while(|exponent| radix.checked_pow(exponent)) {
                assert_digits(power, radix_len, 1);
                assert_digits(power - 1, radix_len, 0);
            }
            assert_digits(u128::MAX, radix_len, 0);
            assert_digits(u128::from(u64::MAX), radix_len, 20);
        }
    }

    #[test]
    fn one_digit_too_many_for_128_bits_is_none() {
        let ten = Radix::of_letters(b"0123456789");
        assert_eq!(ten.push(u128::MAX / 10, 5), Some(u128::MAX));
        assert_eq!(ten.push(u128::MAX / 10, 6), None);
        let digit = |letter: u8| letter.checked_sub(b'0').filter(|digit| *digit < 10);
        let of_text = |text: &str| ten.number_of_letters(text.as_bytes(), digit);
        assert_eq!(of_text(&u128::MAX.to_string()), Some(u128::MAX));
        for none in [
            "340282366920938463463374607431768211456",
            &"9".repeat(60),
            "1 2",
            "12a",
        ] {
            assert_eq!(of_text(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn digits_are_those_of_long_division(
            value: u128, cut in 0_u32..128, radix_len in 2_usize..=94, zeros in 0_usize..40,
        ) {
            assert_digits(value >> cut, radix_len, zeros);
        }

        #[test]
        fn decimal_is_what_the_standard_library_prints(value: u128, cut in 0_u32..128) {
            let (radix, pairs) = (Radix::of_letters(b"0123456789"), Pairs::of_letters(b"0123456789"));
            let mut text = vec![0; radix.len(value >> cut)];
            radix.write(value >> cut, &pairs, &mut text);
            prop_assert_eq!(String::from_utf8(text).expect("ASCII"), (value >> cut).to_string());
        }
    }
}
