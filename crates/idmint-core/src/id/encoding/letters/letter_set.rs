//! The set of letters in a text, or in the texts of an encoding.

/// A set of the bytes that a text contains. ASCII and non-ASCII bytes have separate bit masks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::id) struct LetterSet {
    /// One bit for each ASCII character.
    ascii: u128,
    /// Bit `n` is set if the set contains the non-ASCII byte `128 + n`.
    others: u128,
}

const DIGITS: u128 = range(b'0', b'9');
const LOWER: u128 = range(b'a', b'z');
const UPPER: u128 = range(b'A', b'Z');
const HEX_LETTERS: u128 = range(b'a', b'f') | range(b'A', b'F');

const fn range(first: u8, last: u8) -> u128 {
    (u128::MAX >> (127 - last + first)) << first
}

/// The bit masks of single letters: entry `n` has only bit `n` set. A table lookup is faster than a
/// 128-bit shift.
const BITS: [u128; 128] = {
    let (mut bits, mut place) = ([0; 128], 0);
    while place < 128 {
        bits[place] = 1 << place;
        place += 1;
    }
    bits
};

impl LetterSet {
    pub(in crate::id) fn of(text: &[u8]) -> LetterSet {
        let bits = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |bits, byte| bits | BITS[usize::from(byte & 0x7f)])
        };
        if text.is_ascii() {
            return LetterSet {
                ascii: bits(text),
                others: 0,
            };
        }
        let (ascii, others): (Vec<u8>, Vec<u8>) = text.iter().partition(|byte| byte.is_ascii());
        LetterSet {
            ascii: bits(&ascii),
            others: bits(&others),
        }
    }

    /// Returns the letters that are in this set or in `other`.
    pub(in crate::id) fn with(self, other: LetterSet) -> LetterSet {
        LetterSet {
            ascii: self.ascii | other.ascii,
            others: self.others | other.others,
        }
    }

    /// Returns `true` if every letter of this set is in `other`.
    pub(in crate::id) fn is_within(self, other: LetterSet) -> bool {
        self.ascii & !other.ascii == 0 && self.others & !other.others == 0
    }

    /// Returns two flags: whether the set has lower-case letters, and whether it has upper-case
    /// letters.
    pub(in crate::id) fn cases(self) -> (bool, bool) {
        (self.ascii & LOWER != 0, self.ascii & UPPER != 0)
    }

    /// Returns `true` if the set has digits and also letters from A to Z in either case.
    pub(in crate::id) fn has_letters_and_digits(self) -> bool {
        self.ascii & (LOWER | UPPER) != 0 && self.ascii & DIGITS != 0
    }

    /// Returns the size of the smallest usual alphabet that contains every letter of this set.
    ///
    /// Usual alphabets are digits (10), hexadecimal digits in one case (16), letters in one case
    /// without digits (26) or with digits (36), and letters in both cases with digits (62). Every
    /// other byte value adds one.
    pub(in crate::id) fn usual_count(self) -> u32 {
        let has = |letters| self.ascii & letters != 0;
        let letters = match self.cases() {
            (true, true) => 62,
            (false, false) => 10,
            _ if !has((LOWER | UPPER) & !HEX_LETTERS) && has(DIGITS) => 16,
            _ if has(DIGITS) => 36,
            _ => 26,
        };
        letters + ((self.ascii & !(DIGITS | LOWER | UPPER)) | self.others).count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_a_letter_of_its_own() {
        let sets: Vec<_> = (0..=u8::MAX).map(|byte| LetterSet::of(&[byte])).collect();
        for (at, set) in sets.iter().enumerate() {
            assert_eq!((set.ascii | set.others).count_ones(), 1);
            assert_eq!(set.ascii != 0, at < 128, "{at}");
            assert!(sets[..at].iter().all(|other| other != set), "{at}");
        }
        let (ascii, others) = (1 << b'a' | 1 << b'0', 1 << 0x43 | 1 << 0x29);
        assert_eq!(LetterSet::of("a0é".as_bytes()), LetterSet { ascii, others });
    }

    #[test]
    fn a_text_is_within_the_letters_of_an_encoding_or_it_is_not() {
        let set = |text: &str| LetterSet::of(text.as_bytes());
        assert!(set("").is_within(set("")) && set("ba").is_within(set("abc")));
        assert!(set("b-a").is_within(set("ab").with(set("-"))));
        for foreign in ["\0", "\u{7f}", "A", "-", "é", "\u{10ffff}"] {
            assert!(!set(foreign).is_within(set("abc")), "{foreign:?}");
        }
        assert!(
            !set("a").is_within(set("\u{2121}")),
            "no byte above ASCII is one of its letters"
        );
    }
}
