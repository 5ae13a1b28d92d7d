//! The letters that a text has, or that the texts of an encoding can have.

/// A set of bytes, those above ASCII only as so many different ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::id) struct LetterSet {
    /// A bit for each character of ASCII.
    ascii: u128,
    /// A bit for each other byte, by its lowest seven bits.
    others: u128,
}

const DIGITS: u128 = range(b'0', b'9');
const LOWER: u128 = range(b'a', b'z');
const UPPER: u128 = range(b'A', b'Z');
const HEX_LETTERS: u128 = range(b'a', b'f') | range(b'A', b'F');

const fn range(first: u8, last: u8) -> u128 {
    (u128::MAX >> (127 - last + first)) << first
}

impl LetterSet {
    pub(in crate::id) fn of(text: &[u8]) -> LetterSet {
        text.iter().fold(LetterSet::default(), |set, byte| match byte {
            0..0x80 => LetterSet { ascii: set.ascii | 1 << byte, ..set },
            _ => LetterSet { others: set.others | 1 << (byte & 0x7f), ..set },
        })
    }

    /// The letters of either.
    pub(in crate::id) fn with(self, other: LetterSet) -> LetterSet {
        LetterSet { ascii: self.ascii | other.ascii, others: self.others | other.others }
    }

    /// Whether the other has all of these.
    pub(in crate::id) fn is_within(self, other: LetterSet) -> bool {
        self.ascii & !other.ascii == 0 && self.others & !other.others == 0
    }

    /// How many letters the smallest usual set has that has all of these: digits, hexadecimal ones, letters of one case
    /// or of both; whatever stands in none of those is counted by itself.
    pub(in crate::id) fn usual_count(self) -> u32 {
        let has = |letters| self.ascii & letters != 0;
        let letters = match (has(LOWER), has(UPPER)) {
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
    fn a_text_is_within_the_letters_of_an_encoding_or_it_is_not() {
        let set = |text: &str| LetterSet::of(text.as_bytes());
        assert!(set("").is_within(set("")) && set("ba").is_within(set("abc")));
        assert!(set("b-a").is_within(set("ab").with(set("-"))));
        for foreign in ["\0", "\u{7f}", "A", "-", "é", "\u{10ffff}"] {
            assert!(!set(foreign).is_within(set("abc")), "{foreign:?}");
        }
        assert!(!set("a").is_within(set("\u{2121}")), "no byte above ASCII is one of its letters");
    }
}
