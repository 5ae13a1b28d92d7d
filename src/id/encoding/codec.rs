//! Every way to write a number as text, as one type.

use super::did::Did;
use super::hashids::Hashids;
use super::letters::LetterSet;
use super::positional::{Checked, Endings, Positional, write_block};
use super::sqids::Sqids;
use super::uuid::Uuid;
use super::uuid8::Uuid8;
use crate::id::{IdBlock, Rejection};

/// A way to write numbers as text, up to the greatest value it was built for.
///
/// Texts are ASCII. Reading is strict: a text is accepted only if writing its value gives the same text.
///
/// ```
/// use idmint::id::encoding::{Codec, Padding, Positional};
///
/// let codec = Codec::Positional(Positional::new("0123456789", Padding::None, u128::from(u64::MAX))?);
/// let mut text = vec![0; codec.len(4711)];
/// codec.write(4711, &mut text);
/// assert_eq!(text, b"4711");
/// assert_eq!(codec.read("4711"), Ok(4711));
/// # Ok::<(), idmint::id::encoding::ParameterError>(())
/// ```
#[derive(Debug, Clone)]
pub enum Codec {
    /// Digits of one radix: decimal, hex, base32, base36, base62, base64 and their relatives.
    Positional(Positional),
    /// The same with two check digits.
    Checked(Checked),
    /// A decentralised identifier with a checksum.
    Did(Did),
    /// 128 bits in the form of RFC 9562.
    Uuid(Uuid),
    /// Up to 122 bits around version 8 and the variant of RFC 9562.
    Uuid8(Uuid8),
    /// The Hashids project's short texts.
    Hashids(Hashids),
    /// The Sqids project's short texts.
    Sqids(Sqids),
}

impl Codec {
    /// The length of the value's text in bytes; it never falls as the value grows.
    #[inline]
    pub fn len(&self, value: u128) -> usize {
        match self {
            Self::Positional(codec) => codec.len(value),
            Self::Checked(codec) => codec.len(value),
            Self::Did(codec) => codec.len(),
            Self::Uuid(_) | Self::Uuid8(_) => Uuid::LEN,
            Self::Hashids(codec) => codec.len(value),
            Self::Sqids(codec) => codec.len(value),
        }
    }

    /// Writes the value's text over all of `out`, which has `len(value)` bytes.
    ///
    /// The value is at most the one the codec was built for; a greater one would lose its first digits.
    #[inline]
    pub fn write(&self, value: u128, out: &mut [u8]) {
        debug_assert_eq!(
            out.len(),
            self.len(value),
            "out has room for exactly the text"
        );
        match self {
            Self::Positional(codec) => codec.write(value, out),
            Self::Checked(codec) => codec.write(value, out),
            Self::Did(codec) => codec.write(value, out),
            Self::Uuid(codec) => codec.write(value, out),
            Self::Uuid8(codec) => codec.write(value, out),
            Self::Hashids(codec) => codec.write(value, out),
            Self::Sqids(codec) => codec.write(value, out),
        }
    }

    /// Writes each id's text and a seam after it, as one [`write`](Self::write) for each, and says how much of `out`
    /// that took. `out` has room for all of them.
    #[inline]
    pub fn write_block<const SEAM: usize>(
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

    /// The last two letters of its texts, where only they change from most numbers to the next.
    pub(crate) fn endings(&self) -> Option<Endings<'_>> {
        match self {
            Self::Positional(codec) => codec.endings(),
            Self::Uuid(codec) => codec.endings(),
            // A checksum changes with the number, or filler bits stand last, or the letters are shuffled.
            Self::Checked(_)
            | Self::Did(_)
            | Self::Uuid8(_)
            | Self::Hashids(_)
            | Self::Sqids(_) => None,
        }
    }

    /// The number of a text, which may lie above the greatest value the codec was built for.
    ///
    /// # Errors
    /// The [`Rejection`] says what the text fails at first.
    pub fn read(&self, text: &str) -> Result<u128, Rejection> {
        match self {
            Self::Positional(codec) => codec.read(text),
            Self::Checked(codec) => codec.read(text),
            Self::Did(codec) => codec.read(text),
            Self::Uuid(codec) => codec.read(text),
            Self::Uuid8(codec) => codec.read(text),
            Self::Hashids(codec) => codec.read(text),
            Self::Sqids(codec) => codec.read(text),
        }
    }

    /// The number that [`read`](Self::read) finds, without the reason where there is none: that costs more than all else for
    /// texts of another codec. Of a number that is not wanted it may be `None`, too.
    pub fn value(&self, text: &str, is_wanted: impl FnOnce(u128) -> bool) -> Option<u128> {
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

    /// Whether texts in byte order are numbers in numeric order.
    pub fn is_sortable(&self) -> bool {
        match self {
            Self::Positional(codec) => codec.is_sortable(),
            Self::Checked(codec) => codec.is_sortable(),
            Self::Uuid(_) | Self::Uuid8(_) => true,
            // A checksum leads, or the letters are shuffled.
            Self::Did(_) | Self::Hashids(_) | Self::Sqids(_) => false,
        }
    }

    /// The length of every text, where all have the same.
    pub fn fixed_len(&self) -> Option<usize> {
        match self {
            Self::Positional(codec) => codec.fixed_len(),
            Self::Checked(codec) => codec.fixed_len(),
            Self::Did(codec) => Some(codec.len()),
            Self::Uuid(_) | Self::Uuid8(_) => Some(Uuid::LEN),
            Self::Hashids(codec) => codec.fixed_len(),
            Self::Sqids(codec) => codec.fixed_len(),
        }
    }

    /// How many letters stand between two hyphens; none where there are no hyphens.
    pub fn groups(&self) -> &[usize] {
        match self {
            Self::Uuid(_) | Self::Uuid8(_) => &Uuid::GROUPS,
            Self::Hashids(codec) => codec.groups(),
            Self::Positional(_) | Self::Checked(_) | Self::Did(_) | Self::Sqids(_) => &[],
        }
    }

    /// The letters that its texts can have.
    pub(in crate::id) fn letters(&self) -> LetterSet {
        match self {
            Self::Positional(codec) => codec.letters(),
            Self::Checked(codec) => codec.letters(),
            Self::Did(codec) => codec.letters(),
            Self::Uuid(codec) => codec.letters(),
            Self::Uuid8(codec) => codec.letters(),
            Self::Hashids(codec) => codec.letters(),
            Self::Sqids(codec) => codec.letters(),
        }
    }

    /// An anchored regular expression that accepts every text and refuses other lengths and letters.
    pub fn pattern(&self) -> String {
        match self {
            Self::Positional(codec) => codec.pattern(),
            Self::Checked(codec) => codec.pattern(),
            Self::Did(codec) => codec.pattern(),
            Self::Uuid(codec) => codec.pattern(),
            Self::Uuid8(codec) => codec.pattern(),
            Self::Hashids(codec) => codec.pattern(),
            Self::Sqids(codec) => codec.pattern(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::encoding::vectors;

    /// A codec that shuffles its letters: of any alphabet, padded or not.
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
            // A word of two letters blocks nothing.
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
