//! A codec that writes all 128 bits of a number as a UUID.

use super::letters::{LetterSet, ungroup};
use super::parameter::ParameterError;
use super::positional::{Endings, Padding, Positional};
use crate::id::rejection::Rejection;

/// A codec for 8-4-4-4-12 lower-case hexadecimal digits, separated by hyphens.
///
/// The number covers all 128 bits, including the version and the variant of the UUID. Source: RFC
/// 9562, section 4.
#[derive(Debug, Clone)]
pub(super) struct Uuid {
    digits: Positional,
}

impl Uuid {
    /// The length of every text in bytes.
    pub(super) const LEN: usize = 36;

    /// The number of digits in each hyphenated group.
    pub(super) const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];

    /// Creates the codec, which has no settings.
    pub(super) fn new() -> Self {
        let digits: Result<_, ParameterError> =
            Positional::new("0123456789abcdef", Padding::Fixed(32), u128::MAX);
        Self {
            digits: digits.expect("32 digits of 4 bits hold 128 bits"),
        }
    }

    /// Returns all possible last two letters of a text, which are all pairs of hexadecimal digits.
    pub(super) fn endings(&self) -> Option<Endings<'_>> {
        self.digits.endings()
    }

    /// Writes the text for the number `value` to `out`, which must have exactly 36 bytes.
    pub(super) fn write(&self, value: u128, out: &mut [u8]) {
        let mut digits = [0; 32];
        self.digits.write(value, &mut digits);
        // Because the length of `out` is constant, the compiler copies each group of digits with
        // one or two instructions.
        let out: &mut [u8; Self::LEN] = out.try_into().expect("out has room for exactly the text");
        *out = [b'-'; Self::LEN];
        out[..8].copy_from_slice(&digits[..8]);
        out[9..13].copy_from_slice(&digits[8..12]);
        out[14..18].copy_from_slice(&digits[12..16]);
        out[19..23].copy_from_slice(&digits[16..20]);
        out[24..].copy_from_slice(&digits[20..]);
    }

    /// Parses a text as a number.
    ///
    /// # Errors
    /// Returns the first error that applies, in this order: [`Rejection::WrongLength`] (not 32
    /// characters apart from the hyphens), [`Rejection::BadAlphabet`], [`Rejection::BadGrouping`],
    /// [`Rejection::NonCanonical`] (upper case).
    pub(super) fn read(&self, text: &str) -> Result<u128, Rejection> {
        if let Some(value) = well_formed(text.as_bytes()) {
            return Ok(value);
        }
        // The text is not a valid UUID. This slower path only finds the reason for the rejection.
        let digits = ungroup(&Self::GROUPS, text, |digits| {
            self.digits.read(digits).map(|_| ())
        })?;
        self.digits.read(&digits)
    }

    /// Returns the letters that texts of this codec can contain.
    pub(super) fn letters(&self) -> LetterSet {
        LetterSet::of(b"0123456789abcdef-")
    }

    /// Returns a regular expression that accepts every text of this codec, and refuses texts with
    /// other lengths or letters. The expression is anchored at both ends.
    pub(super) fn pattern(&self) -> String {
        "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$".to_owned()
    }
}

/// The value of each hexadecimal digit, indexed by the digit's ASCII code. All other bytes have the
/// value [`NO_DIGIT`].
const DIGITS: [u8; 256] = {
    let (letters, mut digits, mut digit) = (b"0123456789abcdef", [NO_DIGIT; 256], 0);
    while digit < 16 {
        digits[letters[digit as usize] as usize] = digit;
        digit += 1;
    }
    digits
};

const NO_DIGIT: u8 = 0xf0;

/// Returns the 128 bits of a valid lower-case UUID as a number, or `None` for any other text.
fn well_formed(text: &[u8]) -> Option<u128> {
    let text: &[u8; Uuid::LEN] = text.try_into().ok()?;
    if [8, 13, 18, 23].iter().any(|at| text[*at] != b'-') {
        return None;
    }
    // Use 64-bit arithmetic, because 128-bit shifts are several times slower. The loop has no
    // branch that depends on a letter.
    let number_of = |parts: [&[u8]; 3]| {
        parts
            .into_iter()
            .flatten()
            .fold((0, 0), |(number, seen): (u64, u8), letter| {
                let digit = DIGITS[usize::from(*letter)];
                (number << 4 | u64::from(digit & 0xf), seen | digit)
            })
    };
    let (high, seen_high) = number_of([&text[..8], &text[9..13], &text[14..18]]);
    let (low, seen_low) = number_of([&text[19..23], &text[24..], &[]]);
    (seen_high | seen_low < 16).then_some(u128::from(high) << 64 | u128::from(low))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::encoding::codec::Codec;
    use crate::id::encoding::vectors;

    #[test]
    fn a_uuid_is_the_number_of_its_128_bits() {
        assert_eq!(
            Uuid::new().read("00000000-0000-0000-0000-0000000000ff"),
            Ok(255)
        );
    }

    #[test]
    fn other_forms_of_a_uuid_are_rejected() {
        let read = |text| Uuid::new().read(text);
        assert_eq!(
            read("01234567-89ab-cdef-0123-456789abcdef"),
            Ok(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef)
        );
        assert_eq!(
            read("01234567-89AB-cdef-0123-456789abcdef"),
            Err(Rejection::NonCanonical)
        );
        assert_eq!(
            read("0123456789abcdef0123456789abcdef"),
            Err(Rejection::BadGrouping)
        );
        assert_eq!(
            read("0123456789ab-cdef-0123-4567-89abcdef"),
            Err(Rejection::BadGrouping)
        );
        assert_eq!(
            read("{01234567-89ab-cdef-0123-456789abcdef}"),
            Err(Rejection::WrongLength)
        );
        assert_eq!(
            read("g1234567-89ab-cdef-0123-456789abcdef"),
            Err(Rejection::BadAlphabet)
        );
        assert_eq!(
            read("01234567-89ab-cdef-0123-456789abcde\u{ff10}"),
            Err(Rejection::BadAlphabet)
        );
        assert_eq!(read(""), Err(Rejection::WrongLength));
    }

    proptest! {
        #![proptest_config(vectors::same_cases_every_time())]

        #[test]
        fn texts_are_those_of_the_uuid_crate(value: u128) {
            let text = vectors::text_of(&Codec::Uuid(Uuid::new()), value);
            prop_assert_eq!(&text, &::uuid::Uuid::from_u128(value).to_string());
            prop_assert_eq!(Uuid::new().read(&text), Ok(value));
        }
    }
}
