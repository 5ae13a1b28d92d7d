//! Decentralised identifiers (DIDs): a method name, a checksum and the number.

use super::letters::{Alphabet, LetterSet, escape, letter_class};
use super::parameter::ParameterError;
use super::positional::{Pairs, Radix, bytes_of};
use crate::id::rejection::Rejection;

const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz234567";
const LETTER_BITS: usize = 5;
const CHECKSUM_BITS: usize = 32;

/// A codec for texts of the form `did:METHOD:LETTERS`. The letters are the base32 of two parts: the
/// CRC-32 checksum of the number's bytes, and then the bytes themselves.
///
/// The number is written in as many big-endian bytes as the greatest value needs. If the bits of
/// the checksum and the bytes do not fill whole letters, zero bits are added in front. Source: SIQ
/// (SUOU IDing docs), where 14 bytes give 29 letters. The checksum is CRC-32/IEEE, as in zlib.
#[derive(Debug, Clone)]
pub(super) struct Did {
    prefix: String,
    bytes: usize,
    alphabet: Alphabet,
    pairs: Pairs,
    radix: Radix,
    /// The number of leading letters after `did:METHOD:`, with the checksum and the highest bits.
    upper_len: usize,
    /// The number of trailing letters, which carry the lowest bits of the number and no checksum.
    lower_len: usize,
}

impl Did {
    /// Creates a codec for the numbers 0 to `max`. `method` is a name such as `siq` in `did:siq:`.
    ///
    /// # Errors
    /// Returns [`ParameterError`] if the method is not 1 to 64 lower-case letters and digits (W3C
    /// DID Core, section 3.1).
    pub(super) fn new(method: &str, max: u128) -> Result<Self, ParameterError> {
        let is_method_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if !(1..=64).contains(&method.len()) || !method.bytes().all(is_method_letter) {
            let bound = "must be 1 to 64 characters from a-z and 0-9";
            return ParameterError::refuse("method", format!("{method:?}"), bound);
        }
        let bytes = bytes_of(max);
        let lower_len = 8 * bytes / LETTER_BITS;
        let upper_len = (CHECKSUM_BITS + 8 * bytes).div_ceil(LETTER_BITS) - lower_len;
        let alphabet = Alphabet::new(LETTERS, LETTERS.len())?;
        let radix = Radix::of_letters(alphabet.letters());
        let pairs = Pairs::of_letters(alphabet.letters());
        Ok(Self {
            prefix: format!("did:{method}:"),
            bytes,
            alphabet,
            pairs,
            radix,
            upper_len,
            lower_len,
        })
    }

    /// Returns the length of every text in bytes.
    pub(super) fn len(&self) -> usize {
        self.prefix.len() + self.upper_len + self.lower_len
    }

    /// Writes the text for the number `value` to `out`, which must have exactly `len()` bytes.
    pub(super) fn write(&self, value: u128, out: &mut [u8]) {
        let (prefix, letters) = out.split_at_mut(self.prefix.len());
        let (upper, lower) = letters.split_at_mut(self.upper_len);
        prefix.copy_from_slice(self.prefix.as_bytes());
        let checksum = u128::from(self.checksum(value));
        let shared = checksum << self.shared_bits() | value >> self.lower_bits();
        self.radix.write(shared, &self.pairs, upper);
        self.radix
            .write(value & greatest_of(self.lower_bits()), &self.pairs, lower);
    }

    /// Parses a text as a number.
    ///
    /// # Errors
    /// Returns the first error that applies, in this order: [`Rejection::BadPrefix`],
    /// [`Rejection::WrongLength`], [`Rejection::BadAlphabet`] or [`Rejection::NonCanonical`] (upper
    /// case), [`Rejection::OutOfRange`] (a filler bit in front of the checksum is set),
    /// [`Rejection::ChecksumMismatch`].
    pub(super) fn read(&self, text: &str) -> Result<u128, Rejection> {
        let letters = text
            .strip_prefix(&self.prefix)
            .ok_or(Rejection::BadPrefix)?;
        if letters.chars().count() != self.upper_len + self.lower_len {
            return Err(Rejection::WrongLength);
        }
        self.alphabet.check_letters_and_case(letters)?;
        let (upper, lower) = letters.as_bytes().split_at(self.upper_len);
        let number = |letters| {
            self.radix
                .number(self.alphabet.digits_of(letters))
                .ok_or(Rejection::OutOfRange)
        };
        let (upper, lower) = (number(upper)?, number(lower)?);
        let checksum =
            u32::try_from(upper >> self.shared_bits()).map_err(|_| Rejection::OutOfRange)?;
        let value = (upper & greatest_of(self.shared_bits())) << self.lower_bits() | lower;
        if self.checksum(value) == checksum {
            Ok(value)
        } else {
            Err(Rejection::ChecksumMismatch)
        }
    }

    /// Returns the letters that texts of this codec can contain.
    pub(super) fn letters(&self) -> LetterSet {
        LetterSet::of(self.prefix.as_bytes()).with(LetterSet::of(self.alphabet.letters()))
    }

    /// Returns a regular expression that accepts every text of this codec, and refuses texts with
    /// other lengths or letters. The expression is anchored at both ends.
    pub(super) fn pattern(&self) -> String {
        let class = letter_class(LETTERS.as_bytes());
        format!(
            "^{}{class}{{{}}}$",
            escape(&self.prefix),
            self.upper_len + self.lower_len
        )
    }

    fn lower_bits(&self) -> usize {
        LETTER_BITS * self.lower_len
    }

    /// Returns how many of the number's highest bits are written in the leading letters, after the
    /// checksum.
    fn shared_bits(&self) -> usize {
        8 * self.bytes - self.lower_bits()
    }

    fn checksum(&self, value: u128) -> u32 {
        crc32fast::hash(&value.to_be_bytes()[16 - self.bytes..])
    }
}

/// Returns the greatest number that fits into `bits` bits, or `u128::MAX` if `bits` is 128 or more.
fn greatest_of(bits: usize) -> u128 {
    u32::try_from(bits)
        .ok()
        .and_then(|bits| 1_u128.checked_shl(bits))
        .map_or(u128::MAX, |next| next - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::encoding::codec::Codec;
    use crate::id::encoding::vectors;

    fn siq() -> Codec {
        Codec::Did(Did::new("siq", greatest_of(112)).expect("a method name"))
    }

    #[test]
    fn the_did_of_zero_is_as_published() {
        let did = Did::new("siq", (1 << 112) - 1).expect("a valid parameter");
        let mut text = vec![0; did.len()];
        did.write(0, &mut text);
        assert_eq!(text, b"did:siq:ndo3zy4aaaaaaaaaaaaaaaaaaaaaa");
    }

    #[test]
    fn published_ids_hold_both_ways() {
        assert_eq!(vectors::check_valid(&siq(), "siq", "did", |_| true), 71);
    }

    #[test]
    fn published_rejections_hold() {
        assert_eq!(
            vectors::check_invalid(&siq(), "siq", |row| row["codec"] == "did"),
            21
        );
    }

    #[test]
    fn a_method_of_other_letters_is_refused() {
        for method in ["", "Siq", "s-q", "é"] {
            assert!(Did::new(method, 1).is_err(), "{method}");
        }
    }

    proptest! {
        #[test]
        fn every_width_reads_what_it_writes(value: u128, cut in 0_u32..128) {
            let codec = Codec::Did(Did::new("web", value >> cut).expect("a method name"));
            let text = vectors::text_of(&codec, value >> cut);
            prop_assert_eq!(codec.read(&text), Ok(value >> cut));
        }
    }
}
