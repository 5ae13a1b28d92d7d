//! The letters that a codec uses, in the order of the digits that they represent.

use crate::id::encoding::parameter::ParameterError;
use crate::id::rejection::Rejection;

/// The letters of an alphabet, padded to 128 entries, so that an index of seven bits needs no
/// bounds check.
pub(in crate::id::encoding) type Letters = [u8; 128];

/// An alphabet of 2 to 94 different printable ASCII letters.
#[derive(Debug, Clone)]
pub(in crate::id::encoding) struct Alphabet {
    letters: Letters,
    len: usize,
    digits: Places,
}

impl Alphabet {
    /// Builds an alphabet from at least `least` letters. The letters must be unique, printable and
    /// not a space.
    pub(in crate::id::encoding) fn new(
        letters: &str,
        least: usize,
    ) -> Result<Self, ParameterError> {
        let refuse =
            |bound: String| ParameterError::refuse("alphabet", format!("{letters:?}"), bound);
        let mut alphabet = Self {
            letters: [0; 128],
            len: 0,
            digits: Places::of(&[]),
        };
        for letter in letters.chars() {
            let Some(byte) = u8::try_from(letter).ok().filter(u8::is_ascii_graphic) else {
                return refuse(format!("{letter:?} is not printable ASCII"));
            };
            if alphabet.digit(byte).is_some() {
                return refuse(format!("must not repeat {letter:?}"));
            }
            alphabet.digits.0[usize::from(byte)] =
                u8::try_from(alphabet.len).expect("at most 94 printable letters");
            alphabet.letters[alphabet.len] = byte;
            alphabet.len += 1;
        }
        if alphabet.len < least {
            return refuse(format!("must have at least {least} letters"));
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

    /// Returns the digit that a byte represents, or `None` if the byte is not a letter of the
    /// alphabet.
    pub(in crate::id::encoding) fn digit(&self, byte: u8) -> Option<u8> {
        self.digits.of_letter(byte)
    }

    /// Returns, for each letter of a text, the digit that the letter represents. All letters must
    /// be in the alphabet.
    pub(in crate::id::encoding) fn digits_of<'a>(
        &'a self,
        text: &'a [u8],
    ) -> impl ExactSizeIterator<Item = u8> + 'a {
        text.iter()
            .map(|byte| self.digits.0[usize::from(byte & 0x7f)])
    }

    /// Returns `true` if the letters are in ascending order, so that texts of the same length sort
    /// like their numbers.
    pub(in crate::id::encoding) fn is_ascending(&self) -> bool {
        self.letters().is_sorted()
    }

    /// Checks that every character of `text` is in the alphabet.
    ///
    /// # Errors
    /// Returns [`Rejection::BadAlphabet`] if a character is not in the alphabet.
    pub(in crate::id::encoding) fn check_letters(&self, text: &str) -> Result<(), Rejection> {
        // The loop has no early exit for a bad letter, because nearly every text that reaches it
        // passes the check.
        let digits = text.bytes().fold(0, |digits, byte| {
            digits | self.digits.0[usize::from(byte & 0x7f)] | byte & 0x80
        });
        if digits < 0x80 {
            Ok(())
        } else {
            Err(Rejection::BadAlphabet)
        }
    }

    /// Checks the letters like `check_letters`. If the text would pass with some letters in the
    /// other case, the error is [`Rejection::NonCanonical`] instead of [`Rejection::BadAlphabet`].
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

const NO_PLACE: u8 = u8::MAX;

/// A table of the position of each letter in an alphabet.
#[derive(Debug, Clone)]
pub(in crate::id::encoding) struct Places([u8; 128]);

impl Places {
    /// Creates a table of the positions of `letters`, which must be ASCII and unique.
    pub(in crate::id::encoding) fn of(letters: &[u8]) -> Places {
        let mut places = [NO_PLACE; 128];
        for (place, letter) in (0..).zip(letters) {
            places[usize::from(*letter)] = place;
        }
        Places(places)
    }

    /// Returns the position of a letter, or `None` if the alphabet lacks the letter.
    #[inline]
    pub(in crate::id::encoding) fn of_letter(&self, letter: u8) -> Option<u8> {
        self.0
            .get(usize::from(letter))
            .copied()
            .filter(|place| *place != NO_PLACE)
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
