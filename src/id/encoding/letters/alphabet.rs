//! The letters of a codec, in the order of the digits they stand for.

use crate::id::encoding::parameter::ParameterError;
use crate::id::rejection::Rejection;

/// Room for any alphabet of printable ASCII, so that seven bits index it without a check.
pub(in crate::id::encoding) type Letters = [u8; 128];

const NO_DIGIT: u8 = u8::MAX;

/// 2 to 94 different printable ASCII letters.
#[derive(Debug, Clone)]
pub(in crate::id::encoding) struct Alphabet {
    letters: Letters,
    len: usize,
    digits: [u8; 128],
}

impl Alphabet {
    /// At least `least` letters, each once, no space and no control character.
    pub(in crate::id::encoding) fn new(
        letters: &str,
        least: usize,
    ) -> Result<Self, ParameterError> {
        let refuse =
            |value: String, bound: &str| Err(ParameterError::new("alphabet", value, bound));
        let mut alphabet = Self {
            letters: [0; 128],
            len: 0,
            digits: [NO_DIGIT; 128],
        };
        for letter in letters.chars() {
            let Some(byte) = u8::try_from(letter).ok().filter(u8::is_ascii_graphic) else {
                return refuse(format!("{letter:?}"), "must be printable ASCII letters");
            };
            if alphabet.digit(byte).is_some() {
                return refuse(format!("{letter:?}"), "must have each letter once");
            }
            alphabet.digits[usize::from(byte)] =
                u8::try_from(alphabet.len).expect("at most 94 printable letters");
            alphabet.letters[alphabet.len] = byte;
            alphabet.len += 1;
        }
        if alphabet.len < least {
            return refuse(
                format!("{letters:?}"),
                &format!("must have {least} letters or more"),
            );
        }
        Ok(alphabet)
    }

    pub(in crate::id::encoding) fn len(&self) -> usize {
        self.len
    }

    pub(in crate::id::encoding) fn letters(&self) -> &[u8] {
        &self.letters[..self.len]
    }

    pub(in crate::id::encoding) fn table(&self) -> &Letters {
        &self.letters
    }

    /// The digit a byte stands for.
    pub(in crate::id::encoding) fn digit(&self, byte: u8) -> Option<u8> {
        self.digits
            .get(usize::from(byte))
            .copied()
            .filter(|digit| *digit != NO_DIGIT)
    }

    /// The digits of a text, all of whose letters are in the alphabet.
    pub(in crate::id::encoding) fn digits_of<'a>(
        &'a self,
        text: &'a [u8],
    ) -> impl ExactSizeIterator<Item = u8> + 'a {
        text.iter()
            .map(|byte| self.digits[usize::from(byte & 0x7f)])
    }

    /// Whether the letters ascend, so that texts of one length sort like their numbers.
    pub(in crate::id::encoding) fn is_ascending(&self) -> bool {
        self.letters().is_sorted()
    }

    /// Checks that every character is one of the letters.
    ///
    /// # Errors
    /// [`Rejection::BadAlphabet`].
    pub(in crate::id::encoding) fn check_letters(&self, text: &str) -> Result<(), Rejection> {
        // Without a branch in the loop: nearly every text that comes so far has only these letters.
        let digits = text.bytes().fold(0, |digits, byte| {
            digits | self.digits[usize::from(byte & 0x7f)] | byte & 0x80
        });
        if digits < 0x80 {
            Ok(())
        } else {
            Err(Rejection::BadAlphabet)
        }
    }

    /// The same, but a text that only has letters in the other case is [`Rejection::NonCanonical`].
    pub(in crate::id::encoding) fn check_letters_and_case(
        &self,
        text: &str,
    ) -> Result<(), Rejection> {
        if self.check_letters(text).is_ok() {
            return Ok(());
        }
        let mut in_other_case = false;
        for byte in text.bytes().filter(|byte| self.digit(*byte).is_none()) {
            let swapped = if byte.is_ascii_lowercase() {
                byte.to_ascii_uppercase()
            } else {
                byte.to_ascii_lowercase()
            };
            if self.digit(swapped).is_none() {
                return Err(Rejection::BadAlphabet);
            }
            in_other_case = true;
        }
        if in_other_case {
            Err(Rejection::NonCanonical)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_twice_or_outside_printable_ascii_is_refused() {
        for letters in ["abca", "ab c", "abé", "a"] {
            assert!(Alphabet::new(letters, 2).is_err(), "{letters:?}");
        }
    }

    #[test]
    fn the_other_case_is_told_from_a_foreign_letter() {
        let hex = Alphabet::new("0123456789abcdef", 2).expect("sixteen letters");
        assert_eq!(hex.check_letters_and_case("0a"), Ok(()));
        assert_eq!(
            hex.check_letters_and_case("0A"),
            Err(Rejection::NonCanonical)
        );
        assert_eq!(
            hex.check_letters_and_case("0Ax"),
            Err(Rejection::BadAlphabet)
        );
        assert_eq!(hex.check_letters("0A"), Err(Rejection::BadAlphabet));
    }
}
