//! Texts of digits followed by two check digits, which detect a mistyped id.

use super::positional::Positional;
use crate::id::encoding::letters::{Alphabet, LetterSet, letter_class};
use crate::id::encoding::parameter::{ParameterError, TEXT_LEN_MAX};
use crate::id::rejection::Rejection;

const MODULUS: u128 = 97;

/// The number of check digits.
const LEN: usize = 2;

/// A codec for digits of one radix followed by two check digits, which use the same letters.
///
/// The whole text, read as a number of that radix, is 1 modulo 97.
///
/// The check value is `98 - (value x radix^2 mod 97)`, which is 2 to 98. It is written as two
/// digits. The radix is at least 10. In decimal this is ISO 7064 MOD 97-10. A single wrong letter
/// and two swapped neighbouring letters are always detected, because the prime 97 exceeds every
/// radix and every difference of two letters. Of all other changes, one in 97 goes undetected.
#[derive(Debug, Clone)]
pub(crate) struct Checked {
    digits: Positional,
}

impl Checked {
    /// Creates a codec that writes the digits of the codec `digits` followed by two check digits.
    ///
    /// # Errors
    /// Returns [`ParameterError`] if two digits of the radix cannot express 98, the greatest check
    /// value, or if texts would exceed [`TEXT_LEN_MAX`].
    pub(crate) fn new(digits: Positional) -> Result<Self, ParameterError> {
        let radix = digits.alphabet().len();
        if radix < 10 {
            let bound = format!("needs an alphabet of at least 10 letters, got {radix}");
            return ParameterError::refuse("check", "mod97", bound);
        }
        if digits.len_max() + LEN > TEXT_LEN_MAX {
            let bound = format!("must be at most {} with a check", TEXT_LEN_MAX - LEN);
            return ParameterError::refuse("length", digits.len_max(), bound);
        }
        Ok(Self { digits })
    }

    /// Returns the length in bytes of the text for the number `value`. A greater number never has a
    /// shorter text.
    #[inline]
    pub(crate) fn len(&self, value: u128) -> usize {
        self.digits.len(value) + LEN
    }

    /// Writes the text for the number `value` to `out`, which must have exactly `len(value)` bytes.
    pub(crate) fn write(&self, value: u128, out: &mut [u8]) {
        let (digits, check) = out.split_at_mut(out.len() - LEN);
        self.digits.write(value, digits);
        check.copy_from_slice(&self.check(value));
    }

    /// Parses a text as a number. The number may exceed the maximum of the codec.
    ///
    /// # Errors
    /// Returns the first error that applies: an error of [`Positional::read`] for the digits,
    /// [`Rejection::BadAlphabet`] or [`Rejection::NonCanonical`] (letters of the other case) for
    /// the check digits, [`Rejection::WrongCheck`] if the check digits do not match.
    pub(crate) fn read(&self, text: &str) -> Result<u128, Rejection> {
        let (check_at, _) = text
            .char_indices()
            .nth_back(LEN - 1)
            .ok_or(Rejection::WrongLength)?;
        let (digits, check) = text.split_at(check_at);
        let value = self.digits.read(digits)?;
        self.alphabet().check_letters_and_case(check)?;
        if check.as_bytes() == self.check(value) {
            Ok(value)
        } else {
            Err(Rejection::WrongCheck)
        }
    }

    /// Returns `true` if sorting texts of this codec byte by byte also sorts their numbers.
    pub(crate) fn is_sortable(&self) -> bool {
        self.digits.is_sortable()
    }

    /// Returns the length in bytes that all texts have, or `None` if texts differ in length.
    pub(crate) fn fixed_len(&self) -> Option<usize> {
        self.digits.fixed_len().map(|len| len + LEN)
    }

    /// Returns the letters that texts of this codec can contain.
    pub(in crate::id::encoding) fn letters(&self) -> LetterSet {
        self.digits.letters()
    }

    /// Returns a regular expression that accepts every text of this codec, and refuses texts with
    /// other lengths or letters. The expression is anchored at both ends.
    pub(crate) fn pattern(&self) -> String {
        let pattern = self.digits.pattern();
        let digits = pattern.strip_suffix('$').expect("patterns are anchored");
        format!(
            "{digits}{}{{{LEN}}}$",
            letter_class(self.alphabet().letters())
        )
    }

    fn alphabet(&self) -> &Alphabet {
        self.digits.alphabet()
    }

    fn check(&self, value: u128) -> [u8; LEN] {
        let letters = self.alphabet().letters();
        let radix = letters.len() as u128;
        let check = mod_97_check(value, radix);
        [check / radix, check % radix]
            .map(|digit| letters[usize::try_from(digit).expect("a digit")])
    }
}

/// Returns the check value of `number`, a number from 2 to 98 that detects errors. Appended to
/// `number` as two digits of `radix`, it gives a number that is 1 modulo 97.
///
/// Only `number % 97` matters, so the remainder may be passed instead of the number.
pub fn mod_97_check(number: u128, radix: u128) -> u128 {
    MODULUS + 1 - number % MODULUS * (radix * radix) % MODULUS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::encoding::Codec;
    use crate::id::encoding::{Padding, vectors};

    const ORDER: &str = "346789BCDFGHJKMPQRTW";

    fn checked(letters: &str, max: u128) -> Checked {
        Checked::new(Positional::padded(letters, max).expect("letters"))
            .expect("ten letters or more")
    }

    fn text_of(codec: &Checked, value: u128) -> String {
        vectors::text_of(&Codec::Checked(codec.clone()), value)
    }

    #[test]
    fn two_check_digits_refuse_swapped_digits() {
        let codec =
            Checked::new(Positional::padded("0123456789", 999_999).expect("a valid parameter"))
                .expect("a valid parameter");
        let mut text = vec![0; codec.len(794)];
        codec.write(794, &mut text);
        assert_eq!(text, b"00079444");
        assert_eq!(codec.read("00079444"), Ok(794));
        assert_eq!(codec.read("00097444"), Err(Rejection::WrongCheck));
    }

    #[test]
    fn in_decimal_the_check_is_that_of_the_standard() {
        // ISO 7064:2003 uses 794 as an example. The others are IBANs from the ISO 13616 registry,
        // rearranged for checking: country and check digits are at the end, and letters are written
        // as 10 to 35.
        let codec =
            Checked::new(Positional::new("0123456789", Padding::None, u128::MAX).expect("digits"))
                .expect("ten");
        for text in [
            "79444",
            "3214282912345698765432161182",
            "370400440532013000131489",
        ] {
            let value = codec.read(text);
            assert_eq!(
                value.map(|value| text_of(&codec, value)),
                Ok(text.to_owned()),
                "{text}"
            );
        }
        assert_eq!(codec.read("79445"), Err(Rejection::WrongCheck));
        assert_eq!(codec.read("794"), Err(Rejection::WrongCheck));
        assert_eq!(codec.read("44"), Err(Rejection::WrongLength));
        assert_eq!(codec.read("é4"), Err(Rejection::WrongLength));
        assert_eq!(codec.read("7944é"), Err(Rejection::BadAlphabet));
    }

    #[test]
    fn one_wrong_letter_and_two_neighbours_in_each_others_place_always_show() {
        let (mut wrong, mut swapped) = (0, 0);
        for letters in [
            "0123456789",
            ORDER,
            "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        ] {
            let codec = checked(letters, u128::from(u64::MAX));
            for value in [
                0,
                1,
                96,
                97,
                1_573_542_478_315_782_144,
                u128::from(u64::MAX),
            ] {
                let text = text_of(&codec, value);
                for at in 0..text.len() {
                    for letter in letters
                        .bytes()
                        .filter(|letter| *letter != text.as_bytes()[at])
                    {
                        let mut changed = text.clone().into_bytes();
                        changed[at] = letter;
                        let changed = String::from_utf8(changed).expect("ASCII");
                        assert_eq!(
                            codec.read(&changed),
                            Err(Rejection::WrongCheck),
                            "{text} {changed}"
                        );
                        wrong += 1;
                    }
                    let mut changed = text.clone().into_bytes();
                    if at > 0 && changed[at - 1] != changed[at] {
                        changed.swap(at - 1, at);
                        let changed = String::from_utf8(changed).expect("ASCII");
                        assert_eq!(
                            codec.read(&changed),
                            Err(Rejection::WrongCheck),
                            "{text} {changed}"
                        );
                        swapped += 1;
                    }
                }
            }
        }
        assert!(wrong > 5_000 && swapped > 100, "{wrong} {swapped}");
    }

    #[test]
    fn too_few_letters_or_too_long_texts_are_refused() {
        let of =
            |letters, padding| Checked::new(Positional::new(letters, padding, 1).expect("letters"));
        let error = of("012345678", Padding::None).expect_err("nine letters");
        assert_eq!(
            error.to_string(),
            "check is mod97, but needs an alphabet of at least 10 letters, got 9"
        );
        let error = of(ORDER, Padding::Fixed(254)).expect_err("256 letters");
        assert_eq!(
            error.to_string(),
            "length is 254, but must be at most 253 with a check"
        );
        assert!(of(ORDER, Padding::Fixed(253)).is_ok());
    }
}
