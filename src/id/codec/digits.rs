//! The arithmetic of numbers as digits of a radix.

use crate::id::codec::alphabet::Letters;
use crate::id::codec::row::write_row;

/// A radix of 2 to 94 with what its texts need: how many digits, which digits, and back.
#[derive(Debug, Clone)]
pub(super) struct Radix {
    radix: u64,
    method: Method,
    /// The most digits whose numbers all fit in 64 bits, and how many such numbers there are.
    part_len: usize,
    part: u64,
    /// At `n`: the greatest number of `n` digits.
    greatest: Vec<u128>,
    /// At `n`: how many digits the smallest number of `n` bits has.
    least_len: [u8; 129],
}

/// The quickest way to a radix's digits.
#[derive(Debug, Clone, Copy)]
enum Method {
    /// The radix is this power of two.
    Shifts(u32),
    /// Ten, with the letters `0` to `9`.
    Decimal,
    Division,
}

impl Radix {
    /// The radix with one digit for each of these letters.
    pub(super) fn of_letters(letters: &[u8]) -> Self {
        let radix = u64::try_from(letters.len()).expect("at most 94 letters");
        let mut greatest = vec![0];
        while let Some(value) = greatest.last().and_then(|last: &u128| last.checked_add(1)) {
            greatest.push(value.checked_mul(u128::from(radix)).map_or(u128::MAX, |next| next - 1));
        }
        let mut least_len = [1; 129];
        for (bits, len) in least_len.iter_mut().enumerate().skip(1) {
            let smallest = 1_u128 << (bits - 1);
            let digits = greatest.partition_point(|most| *most < smallest);
            *len = u8::try_from(digits).expect("128 bits have at most 128 digits");
        }
        let part_len = (1..).take_while(|len| radix.checked_pow(*len).is_some()).last().expect("one digit fits");
        let method = match letters {
            b"0123456789" => Method::Decimal,
            _ if radix.is_power_of_two() => Method::Shifts(radix.trailing_zeros()),
            _ => Method::Division,
        };
        let part = radix.pow(part_len);
        let part_len = usize::try_from(part_len).expect("at most 63 digits");
        Self { radix, method, part_len, part, greatest, least_len }
    }

    /// The bits of one digit, where the radix is a power of two.
    pub(super) fn bits(&self) -> Option<u32> {
        if let Method::Shifts(bits) = self.method { Some(bits) } else { None }
    }

    /// How many digits the number has; zero has one.
    #[inline]
    pub(super) fn len(&self, value: u128) -> usize {
        // Numbers of as many bits differ by at most one digit, so one comparison decides.
        let bits = usize::try_from(u128::BITS - value.leading_zeros()).expect("at most 128");
        let least = usize::from(self.least_len[bits]);
        least + usize::from(value > self.greatest[least])
    }

    /// Writes the digits over all of `out`, with zeros in front.
    #[inline]
    pub(super) fn write(&self, value: u128, letters: &Letters, out: &mut [u8]) {
        let len = out.len();
        self.write_row(&[value], letters, |_| len, [], out);
    }

    /// Writes the `len(value)` digits of each value and a seam after them, as [`write_row`] does.
    #[inline]
    pub(super) fn write_row<const SEAM: usize>(
        &self,
        values: &[u128],
        letters: &Letters,
        len: impl Fn(u128) -> usize,
        seam: [u8; SEAM],
        out: &mut [u8],
    ) -> usize {
        // The method is looked up once for all of the values.
        match self.method {
            Method::Decimal => write_row(values, len, write_decimal, seam, out),
            Method::Shifts(1) => write_row(values, len, |v, text| write_shifted::<1, 64>(v, letters, text), seam, out),
            Method::Shifts(2) => write_row(values, len, |v, text| write_shifted::<2, 32>(v, letters, text), seam, out),
            Method::Shifts(3) => write_row(values, len, |v, text| write_shifted::<3, 21>(v, letters, text), seam, out),
            Method::Shifts(4) => write_row(values, len, |v, text| write_shifted::<4, 16>(v, letters, text), seam, out),
            Method::Shifts(5) => write_row(values, len, |v, text| write_shifted::<5, 12>(v, letters, text), seam, out),
            Method::Shifts(_) => write_row(values, len, |v, text| write_shifted::<6, 10>(v, letters, text), seam, out),
            Method::Division => write_row(values, len, |v, text| self.write_divided(v, letters, text), seam, out),
        }
    }

    /// The number these digits make, if it fits. Each is less than the radix.
    pub(super) fn number(&self, mut digits: impl ExactSizeIterator<Item = u8>) -> Option<u128> {
        let mut number = 0_u128;
        // As many digits as 64 bits hold are put together before they are put to the others; none of these can overflow.
        while digits.len() > self.part_len {
            let low = self.part_of(digits.by_ref().take(self.part_len));
            number = number.checked_mul(self.part.into())?.checked_add(low.into())?;
        }
        let scale = self.radix.wrapping_pow(u32::try_from(digits.len()).expect("at most 63 digits"));
        let low = self.part_of(digits);
        if number == 0 {
            return Some(low.into());
        }
        number.checked_mul(scale.into())?.checked_add(low.into())
    }

    fn part_of(&self, digits: impl Iterator<Item = u8>) -> u64 {
        digits.fold(0, |low: u64, digit| low.wrapping_mul(self.radix).wrapping_add(digit.into()))
    }

    /// The number with one more digit at its end, if it still fits.
    pub(super) fn push(&self, value: u128, digit: u8) -> Option<u128> {
        value.checked_mul(u128::from(self.radix))?.checked_add(u128::from(digit))
    }

    fn write_divided(&self, value: u128, letters: &Letters, out: &mut [u8]) {
        let mut rest = value;
        for part in out.rchunks_mut(self.part_len) {
            let low;
            (rest, low) = split(rest, self.part);
            // A constant divisor becomes a multiplication, several times as fast.
            match self.radix {
                36 => write_part(low, 36, letters, part),
                62 => write_part(low, 62, letters, part),
                radix => write_part(low, radix, letters, part),
            }
        }
    }
}

/// Quotient and remainder, without a division where the number is short enough, and without one of 128 bits if it can be.
pub(super) fn split(value: u128, divisor: u64) -> (u128, u64) {
    if let Ok(short) = u64::try_from(value) {
        if short < divisor {
            return (0, short);
        }
        return (u128::from(short / divisor), short % divisor);
    }
    let divisor = u128::from(divisor);
    (value / divisor, lowest_64_bits(value % divisor))
}

#[inline(always)]
fn write_part(value: u64, radix: u64, letters: &Letters, out: &mut [u8]) {
    let mut rest = value;
    for letter in out.iter_mut().rev() {
        *letter = letters[lowest_7_bits(rest % radix)];
        rest /= radix;
    }
}

/// `BITS` a digit; `PART` of them fit in 64 bits, and within a part only short shifts are needed.
#[inline]
fn write_shifted<const BITS: u32, const PART: usize>(value: u128, letters: &Letters, out: &mut [u8]) {
    let mask = (1 << BITS) - 1;
    let mut rest = value;
    let (head, parts) = out.as_rchunks_mut::<PART>();
    for part in parts.iter_mut().rev() {
        let mut low = lowest_64_bits(rest);
        for letter in part.iter_mut().rev() {
            *letter = letters[lowest_7_bits(low & mask)];
            low >>= BITS;
        }
        for _ in 0..PART {
            rest >>= BITS;
        }
    }
    let mut low = lowest_64_bits(rest);
    for letter in head.iter_mut().rev() {
        *letter = letters[lowest_7_bits(low & mask)];
        low >>= BITS;
    }
}

/// The numbers from 0 to 99, two digits each.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [*b"00"; 100];
    let mut at = 0;
    while at < 100 {
        pairs[at] = [b"0123456789"[at / 10], b"0123456789"[at % 10]];
        at += 1;
    }
    pairs
};

/// Two digits are looked up at a time, which halves the multiplications, and each stands at once where it belongs.
#[inline]
fn write_decimal(value: u128, out: &mut [u8]) {
    let Ok(mut rest) = u64::try_from(value) else { return write_long_decimal(value, out) };
    let (head, parts) = out.as_rchunks_mut::<4>();
    for part in parts.iter_mut().rev() {
        let low = lowest_14_bits(rest % 10_000);
        rest /= 10_000;
        let ([a, b], [c, d]) = (PAIRS[low / 100], PAIRS[low % 100]);
        *part = [a, b, c, d];
    }
    for digit in head.iter_mut().rev() {
        *digit = PAIRS[lowest_7_bits(rest % 10)][1];
        rest /= 10;
    }
}

fn write_long_decimal(value: u128, out: &mut [u8]) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value);
    let (zeros, text) = out.split_at_mut(out.len() - digits.len());
    zeros.fill(b'0');
    text.copy_from_slice(digits.as_bytes());
}

#[expect(clippy::cast_possible_truncation, reason = "the higher bits are left for the next part")]
fn lowest_64_bits(value: u128) -> u64 {
    value as u64
}

/// An index into an alphabet's table; digits are below 128.
fn lowest_7_bits(digit: u64) -> usize {
    (digit & 0x7f) as usize
}

/// A number below 10 000.
fn lowest_14_bits(part: u64) -> usize {
    (part & 0x3fff) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::codec::alphabet::Alphabet;

    fn printable(count: usize) -> Alphabet {
        let letters: String = ('0'..='~').chain('!'..'0').take(count).collect();
        Alphabet::new(&letters, 2).expect("different printable letters")
    }

    fn by_long_division(mut value: u128, alphabet: &Alphabet) -> Vec<u8> {
        let radix = u128::try_from(alphabet.len()).expect("small");
        let mut text = Vec::new();
        while text.is_empty() || value > 0 {
            text.insert(0, alphabet.letters()[usize::try_from(value % radix).expect("a digit")]);
            value /= radix;
        }
        text
    }

    fn assert_digits(value: u128, radix_len: usize, zeros: usize) {
        let alphabet = printable(radix_len);
        let radix = Radix::of_letters(alphabet.letters());
        let expected = by_long_division(value, &alphabet);
        assert_eq!(radix.len(value), expected.len(), "digits of {value} in radix {radix_len}");
        let mut text = vec![0; expected.len() + zeros];
        radix.write(value, alphabet.table(), &mut text);
        assert_eq!(text[zeros..], expected);
        assert!(text[..zeros].iter().all(|letter| *letter == alphabet.letters()[0]));
        let digits = text.iter().map(|letter| alphabet.digit(*letter).expect("a letter"));
        assert_eq!(radix.number(digits), Some(value));
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
            let mut text = vec![0; Radix::of_letters(b"0123456789").len(value >> cut)];
            write_decimal(value >> cut, &mut text);
            prop_assert_eq!(String::from_utf8(text).expect("ASCII"), (value >> cut).to_string());
        }
    }
}
