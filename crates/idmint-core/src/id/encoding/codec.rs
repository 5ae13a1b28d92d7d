//! An enum of all codecs. Each codec writes numbers as text in its own way.

use super::did::Did;
use super::hashids::Hashids;
use super::letters::LetterSet;
use super::positional::{Checked, Endings, Positional, write_block};
use super::sqids::Sqids;
use super::uuid::Uuid;
use super::uuid8::Uuid8;
use crate::id::{IdBlock, Rejection};

/// A way to write numbers as text, for all numbers up to a given maximum.
///
/// Texts are ASCII. Reading is strict: a text is accepted only if writing its value gives the same
/// text.
#[derive(Debug, Clone)]
pub(super) enum Codec {
    /// Digits of one radix: decimal, hex, base32, base36, base62, base64 and similar.
    Positional(Positional),
    /// Digits of one radix followed by two check digits.
    Checked(Checked),
    /// A decentralised identifier (DID) with a checksum.
    Did(Did),
    /// All 128 bits of the number in the 8-4-4-4-12 notation of RFC 9562.
    Uuid(Uuid),
    /// A number of up to 122 bits in a UUID of version 8. The number fills the bits that RFC 9562
    /// does not use for the version and the variant.
    Uuid8(Uuid8),
    /// The short shuffled texts of the Hashids project.
    Hashids(Hashids),
    /// The short shuffled texts of the Sqids project.
    Sqids(Sqids),
}

/// Evaluates `$result` with `$codec` bound to the codec that `$self` holds, whatever its kind.
macro_rules! each {
    ($self:ident, $codec:ident => $result:expr) => {
        match $self {
            Codec::Positional($codec) => $result,
            Codec::Checked($codec) => $result,
            Codec::Did($codec) => $result,
            Codec::Uuid($codec) => $result,
            Codec::Uuid8($codec) => $result,
            Codec::Hashids($codec) => $result,
            Codec::Sqids($codec) => $result,
        }
    };
}

impl Codec {
    /// Returns the length in bytes of the text for the number `value`. A greater number never has a
    /// shorter text.
    #[inline]
    pub(super) fn len(&self, value: u128) -> usize {
        match self {
            Self::Positional(codec) => codec.len(value),
            Self::Checked(codec) => codec.len(value),
            Self::Did(codec) => codec.len(),
            Self::Uuid(_) | Self::Uuid8(_) => Uuid::LEN,
            Self::Hashids(codec) => codec.len(value),
            Self::Sqids(codec) => codec.len(value),
        }
    }

    /// Writes the text for the number `value` to `out`, which must have exactly `len(value)` bytes.
    ///
    /// The value must not exceed the maximum of the codec, or its leading digits would be lost.
    #[inline]
    pub(super) fn write(&self, value: u128, out: &mut [u8]) {
        debug_assert_eq!(
            out.len(),
            self.len(value),
            "out has room for exactly the text"
        );
        each!(self, codec => codec.write(value, out))
    }

    /// Writes the text of each id followed by the separator `seam`, and returns the number of bytes
    /// written.
    ///
    /// The output is the same as if [`write`](Self::write) were called for each id. `out` must have
    /// room for all texts.
    #[inline]
    pub(super) fn write_block<const SEAM: usize>(
        &self,
        block: IdBlock<'_>,
        seam: [u8; SEAM],
        out: &mut [u8],
    ) -> usize {
        match self {
            Self::Positional(codec) => codec.write_block(block, seam, out),
            other => write_block(
                block,
                |v| other.len(v),
                |v, text| other.write(v, text),
                other.endings(),
                seam,
                out,
            ),
        }
    }

    /// Returns all possible last two letters of a text, such as `00` to `99`. If only these letters
    /// change from one id to the next, a block of ids is written fast. Returns `None` for codecs in
    /// which the texts of consecutive numbers mostly differ in more letters.
    pub(crate) fn endings(&self) -> Option<Endings<'_>> {
        match self {
            Self::Positional(codec) => codec.endings(),
            Self::Uuid(codec) => codec.endings(),
            // In these codecs, the texts of consecutive numbers differ in more than their last two
            // letters. The texts contain a checksum, end in filler bits, or have shuffled letters.
            Self::Checked(_)
            | Self::Did(_)
            | Self::Uuid8(_)
            | Self::Hashids(_)
            | Self::Sqids(_) => None,
        }
    }

    /// Parses a text as a number. The number may exceed the maximum of the codec.
    ///
    /// # Errors
    /// Returns the first [`Rejection`] that applies to the text.
    pub(super) fn read(&self, text: &str) -> Result<u128, Rejection> {
        each!(self, codec => codec.read(text))
    }

    /// Parses a text like [`read`](Self::read), but returns `None` instead of the reason for a
    /// failure.
    ///
    /// For a text of another codec, finding the reason would be the most expensive step. The result
    /// may also be `None` if `is_wanted` refuses the number, which saves the remaining checks.
    pub(super) fn value(&self, text: &str, is_wanted: impl FnOnce(u128) -> bool) -> Option<u128> {
        match self {
            Self::Hashids(codec) => codec.value(text),
            Self::Sqids(codec) => codec.value(text, is_wanted),
            Self::Positional(_)
            | Self::Checked(_)
            | Self::Did(_)
            | Self::Uuid(_)
            | Self::Uuid8(_) => self.read(text).ok(),
        }
    }

    /// Returns `true` if sorting texts of this codec byte by byte also sorts their numbers.
    pub(super) fn is_sortable(&self) -> bool {
        match self {
            Self::Positional(codec) => codec.is_sortable(),
            Self::Checked(codec) => codec.is_sortable(),
            Self::Uuid(_) | Self::Uuid8(_) => true,
            // The texts of these codecs do not sort like numbers, because they start with a
            // checksum, or their letters are shuffled.
            Self::Did(_) | Self::Hashids(_) | Self::Sqids(_) => false,
        }
    }

    /// Returns the length in bytes that all texts have, or `None` if texts differ in length.
    pub(super) fn fixed_len(&self) -> Option<usize> {
        match self {
            Self::Positional(codec) => codec.fixed_len(),
            Self::Checked(codec) => codec.fixed_len(),
            Self::Did(codec) => Some(codec.len()),
            Self::Uuid(_) | Self::Uuid8(_) => Some(Uuid::LEN),
            Self::Hashids(codec) => codec.fixed_len(),
            Self::Sqids(codec) => codec.fixed_len(),
        }
    }

    /// Returns the number of letters in each group of a hyphenated text, such as 8, 4, 4, 4 and 12
    /// for a UUID. The slice is empty if texts have no hyphens.
    pub(super) fn groups(&self) -> &[usize] {
        match self {
            Self::Uuid(_) | Self::Uuid8(_) => &Uuid::GROUPS,
            Self::Hashids(codec) => codec.groups(),
            Self::Positional(_) | Self::Checked(_) | Self::Did(_) | Self::Sqids(_) => &[],
        }
    }

    /// Returns the letters that texts of this codec can contain.
    pub(in crate::id) fn letters(&self) -> LetterSet {
        each!(self, codec => codec.letters())
    }

    /// Returns a regular expression that accepts every text of this codec, and refuses texts with
    /// other lengths or letters. The expression is anchored at both ends.
    pub(super) fn pattern(&self) -> String {
        each!(self, codec => codec.pattern())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::encoding::vectors;

    /// Generates codecs for Hashids and Sqids with random alphabets, with and without padding.
    fn shuffling() -> impl Strategy<Value = Codec> {
        let hashids = (
            vectors::some_letters(Hashids::ALPHABET, 16),
            "[ -~]{0,8}",
            0_usize..12,
        )
            .prop_map(|(alphabet, salt, len)| {
                Codec::Hashids(
                    Hashids::new(&alphabet, &salt, len, &[], u64::MAX.into()).expect("valid"),
                )
            });
        let sqids =
            (vectors::some_letters(Sqids::ALPHABET, 3), 0_usize..12).prop_map(|(alphabet, len)| {
                Codec::Sqids(Sqids::new(&alphabet, len, None, u64::MAX.into()).expect("valid"))
            });
        prop_oneof![hashids, sqids]
    }

    proptest! {
        #![proptest_config(vectors::same_cases_every_time())]

        #[test]
        fn the_value_of_a_text_is_what_reading_it_finds(
            codec in shuffling(), value: u64, cut in 0_u32..64, letter in "[0-9A-Za-z]", at in 0_usize..12,
        ) {
            let text = vectors::text_of(&codec, (value >> cut).into());
            prop_assert_eq!(codec.value(&text, |_| true), Some(u128::from(value >> cut)));
            let at = at % text.len();
            for near in [text[..at].to_owned(), format!("{}{letter}{}", &text[..at], &text[at + 1..]), text + &letter] {
                prop_assert_eq!(codec.value(&near, |_| true), codec.read(&near).ok(), "{:?}", near);
            }
        }
    }

    #[test]
    fn the_value_of_a_text_that_begins_elsewhere_since_a_word_is_blocked_is_found() {
        let free = Sqids::new(Sqids::ALPHABET, 0, Some(&[]), u64::MAX.into()).expect("valid");
        for number in [7, 4_711, 1 << 40] {
            let text = vectors::text_of(&Codec::Sqids(free.clone()), number);
            let blocking = Sqids::new(
                Sqids::ALPHABET,
                0,
                Some(std::slice::from_ref(&text)),
                u64::MAX.into(),
            );
            let blocking = Codec::Sqids(blocking.expect("valid"));
            let other = vectors::text_of(&blocking, number);
            // Blocking a word of fewer than three letters has no effect, so the text stays the
            // same.
            assert_eq!(other == text, text.len() < 3, "{text}");
            assert_eq!(blocking.value(&other, |_| true), Some(number), "{other}");
            assert_eq!(
                blocking.value(&text, |_| true),
                blocking.read(&text).ok(),
                "{text}"
            );
        }
    }
}
