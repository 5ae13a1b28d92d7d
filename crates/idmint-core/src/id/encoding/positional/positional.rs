//! A codec that writes numbers as digits of one radix: decimal, hex, base32, base36, base62, base64
//! and similar.

use super::block_copy::{Endings, write_block};
use super::digits::{Pairs, Radix};
use crate::id::encoding::letters::{Alphabet, LetterSet, escape, letter_class, repeat};
use crate::id::encoding::parameter::{ParameterError, TEXT_LEN_MAX};
use crate::id::id_block::IdBlock;
use crate::id::rejection::Rejection;

/// The way in which texts are padded with leading zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Padding {
    /// Texts are not padded. The text of 0 is one digit.
    None,
    /// Texts are not padded. The text of 0 is empty.
    Stripped,
    /// Texts are padded with leading zeros to this number of digits, at most [`TEXT_LEN_MAX`].
    Fixed(usize),
}

/// A codec that writes numbers as digits of a radix of 2 to 94, most significant first.
///
/// A codec of whole bytes ([`Positional::of_bytes`]) adds zero bits on the right if the bits of the
/// bytes do not fill the last digit, as RFC 4648 does.
#[derive(Debug, Clone)]
pub(crate) struct Positional {
    alphabet: Alphabet,
    pairs: Pairs,
    radix: Radix,
    padding: Padding,
    /// The number of zero bits added on the right to fill the last digit: 4 for a byte in base64.
    filler_bits: u32,
    /// All possible last two letters of a text if filler bits are added. The `filler_bits` lowest
    /// bits of the last digit are then 0. `None` if no filler bits are added.
    filled: Option<Box<[[u8; 2]]>>,
    len_max: usize,
}

impl Positional {
    /// Creates a codec for the numbers 0 to `max`. `letters` are the letters of the digits in
    /// ascending order.
    ///
    /// # Errors
    /// Returns [`ParameterError`] if a letter repeats or is not printable ASCII, or if `max` has
    /// more digits than the fixed length.
    pub(crate) fn new(letters: &str, padding: Padding, max: u128) -> Result<Self, ParameterError> {
        let alphabet = Alphabet::new(letters, 2)?;
        let radix = Radix::of_letters(alphabet.letters());
        let needed = radix.len(max);
        let len_max = match padding {
            Padding::Fixed(len) if !(needed..=TEXT_LEN_MAX).contains(&len) => {
                let bound = format!("must be {needed} to {TEXT_LEN_MAX}");
                return ParameterError::refuse("length", len, bound);
            }
            Padding::Fixed(len) => len,
            Padding::Stripped if max == 0 => 0,
            Padding::None | Padding::Stripped => needed,
        };
        let pairs = Pairs::of_letters(alphabet.letters());
        Ok(Self {
            alphabet,
            pairs,
            radix,
            padding,
            filler_bits: 0,
            filled: None,
            len_max,
        })
    }

    /// Creates a codec that pads all texts to the number of digits of `max`.
    ///
    /// # Errors
    /// Returns [`ParameterError`] if a letter repeats or is not printable ASCII.
    pub(crate) fn padded(letters: &str, max: u128) -> Result<Self, ParameterError> {
        let minimal = Self::new(letters, Padding::None, max)?;
        Ok(Self {
            padding: Padding::Fixed(minimal.len_max),
            ..minimal
        })
    }

    /// Creates a codec that writes a number as `bytes` big-endian bytes. The bits of the bytes are
    /// split into digits from the left.
    ///
    /// Source: RFC 4648, without padding characters. The alphabet has 2, 4, 8, 16, 32 or 64
    /// letters.
    ///
    /// # Errors
    /// Returns [`ParameterError`] if the alphabet has another size, if `bytes` exceeds 64, or if
    /// `max` needs more bytes.
    pub(crate) fn of_bytes(letters: &str, bytes: usize, max: u128) -> Result<Self, ParameterError> {
        let minimal = Self::new(letters, Padding::None, max)?;
        let Some(digit_bits) = minimal.radix.bits() else {
            let bound = "must have 2, 4, 8, 16, 32 or 64 letters";
            return ParameterError::refuse("alphabet", format!("{letters:?}"), bound);
        };
        let needed = bytes_of(max);
        if !(needed..=64).contains(&bytes) {
            let bound = format!("must be {needed} to 64");
            return ParameterError::refuse("bytes", bytes, bound);
        }
        let bits = 8 * u32::try_from(bytes).expect("at most 64");
        let digits = bits.div_ceil(digit_bits);
        let len = usize::try_from(digits).expect("at most 512 bits");
        if len > TEXT_LEN_MAX {
            let bound = format!("must result in at most {TEXT_LEN_MAX} digits");
            return ParameterError::refuse("bytes", bytes, bound);
        }
        let filler_bits = digits * digit_bits - bits;
        let filled = minimal
            .pairs
            .letters()
            .iter()
            .step_by(1 << filler_bits)
            .copied();
        let filled = (filler_bits > 0).then(|| filled.collect());
        Ok(Self {
            padding: Padding::Fixed(len),
            filler_bits,
            filled,
            len_max: len,
            ..minimal
        })
    }

    /// Creates a codec that writes a number as whole bytes and then removes all leading zeros. The
    /// text of 0 is empty.
    ///
    /// # Errors
    /// Returns [`ParameterError`] for the reasons of [`Positional::of_bytes`], or if `8 * bytes` is
    /// not a multiple of the bits of a digit.
    pub(crate) fn of_stripped_bytes(
        letters: &str,
        bytes: usize,
        max: u128,
    ) -> Result<Self, ParameterError> {
        let padded = Self::of_bytes(letters, bytes, max)?;
        if padded.filler_bits != 0 {
            let bound = "must fill a whole number of digits if strip is set";
            return ParameterError::refuse("bytes", bytes, bound);
        }
        Self::new(letters, Padding::Stripped, max)
    }

    /// Returns the length in bytes of the text for the number `value`. A greater number never has a
    /// shorter text.
    #[inline]
    pub(crate) fn len(&self, value: u128) -> usize {
        match self.padding {
            Padding::Fixed(len) => len,
            Padding::Stripped if value == 0 => 0,
            Padding::None | Padding::Stripped => self.radix.len(value),
        }
    }

    /// Writes the text for the number `value` to `out`, which must have exactly `len(value)` bytes.
    #[inline]
    pub(crate) fn write(&self, value: u128, out: &mut [u8]) {
        if self.filler_bits == 0 {
            return self.radix.write(value, &self.pairs, out);
        }
        if value.leading_zeros() >= self.filler_bits {
            return self
                .radix
                .write(value << self.filler_bits, &self.pairs, out);
        }
        // Write the last digit separately, because shifting the number left to make room for the
        // filler bits could exceed 128 bits.
        if let Some((last, front)) = out.split_last_mut() {
            let last_bits = self.last_digit_bits();
            let last_digit = (value & ((1 << last_bits) - 1)) << self.filler_bits;
            self.radix.write(value >> last_bits, &self.pairs, front);
            self.radix
                .write(last_digit, &self.pairs, std::slice::from_mut(last));
        }
    }

    /// Returns all possible last two letters of a text, or `None` if texts are shorter than two
    /// letters.
    pub(in crate::id::encoding) fn endings(&self) -> Option<Endings<'_>> {
        match self.padding {
            Padding::Fixed(len) if len < Endings::LEN => None,
            Padding::Fixed(_) => Some(Endings::of_fixed(
                self.filled.as_deref().unwrap_or(self.pairs.letters()),
            )),
            Padding::None | Padding::Stripped => Some(Endings::of_minimal(self.pairs.letters())),
        }
    }

    /// Writes the text of each id followed by the separator `seam`, and returns the number of bytes
    /// written.
    #[inline]
    pub(in crate::id::encoding) fn write_block<const SEAM: usize>(
        &self,
        block: IdBlock<'_>,
        seam: [u8; SEAM],
        out: &mut [u8],
    ) -> usize {
        let endings = self.endings();
        match self.padding {
            _ if self.filler_bits != 0 => write_block(
                block,
                |v| self.len(v),
                |v, text| self.write(v, text),
                endings,
                seam,
                out,
            ),
            Padding::Fixed(len) => {
                self.radix
                    .write_block(block, &self.pairs, |_| len, endings, seam, out)
            }
            Padding::None | Padding::Stripped => {
                self.radix
                    .write_block(block, &self.pairs, |v| self.len(v), endings, seam, out)
            }
        }
    }

    /// Parses a text as a number. The number may exceed the maximum of the codec.
    ///
    /// # Errors
    /// Returns the first error that applies, in this order: [`Rejection::WrongLength`] (counting
    /// characters), [`Rejection::BadAlphabet`], [`Rejection::NonCanonical`] (letters of the other
    /// case, leading zeros, nonzero filler bits), [`Rejection::OutOfRange`] above 128 bits.
    pub(crate) fn read(&self, text: &str) -> Result<u128, Rejection> {
        let is_of_length = match self.padding {
            // Count characters instead of bytes, so that a text with a non-ASCII letter is refused
            // for that letter and not for its length.
            Padding::Fixed(len) => {
                text.len() == len && text.is_ascii()
                    || text.len() > len && text.chars().count() == len
            }
            Padding::None => !text.is_empty(),
            Padding::Stripped => true,
        };
        if !is_of_length {
            return Err(Rejection::WrongLength);
        }
        self.alphabet.check_letters_and_case(text)?;
        if self.has_spare_zero(text) {
            return Err(Rejection::NonCanonical);
        }
        if self.filler_bits == 0 {
            return self.number(text.as_bytes());
        }
        let (last, front) = text
            .as_bytes()
            .split_last()
            .expect("a padded text has a digit");
        let last_digit = self.number(std::slice::from_ref(last))?;
        if last_digit.trailing_zeros() < self.filler_bits {
            return Err(Rejection::NonCanonical);
        }
        let front = self.number(front)?;
        if front.leading_zeros() < self.last_digit_bits() {
            return Err(Rejection::OutOfRange);
        }
        Ok(front << self.last_digit_bits() | last_digit >> self.filler_bits)
    }

    /// Returns `true` if sorting texts of this codec byte by byte also sorts their numbers.
    pub(crate) fn is_sortable(&self) -> bool {
        self.fixed_len().is_some() && self.alphabet.is_ascending()
    }

    /// Returns the length in bytes that all texts have, or `None` if texts differ in length.
    pub(crate) fn fixed_len(&self) -> Option<usize> {
        (self.len(0) == self.len_max).then_some(self.len_max)
    }

    /// Returns the alphabet, whose letters represent the digits.
    pub(in crate::id::encoding) fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }

    /// Returns the length of the longest text in bytes.
    pub(in crate::id::encoding) fn len_max(&self) -> usize {
        self.len_max
    }

    /// Returns the letters that texts of this codec can contain.
    pub(in crate::id::encoding) fn letters(&self) -> LetterSet {
        LetterSet::of(self.alphabet.letters())
    }

    /// Returns a regular expression that accepts every text of this codec, and refuses texts with
    /// other lengths or letters. The expression is anchored at both ends.
    pub(crate) fn pattern(&self) -> String {
        let letters = self.alphabet.letters();
        let any = letter_class(letters);
        if let Padding::Fixed(len) = self.padding {
            return format!("^{any}{{{len}}}$");
        }
        let leading = letter_class(&letters[1..]);
        let (zero, more) = match self.padding {
            Padding::Stripped => (String::new(), self.len_max.saturating_sub(1)),
            _ => (
                format!("{}|", escape(&char::from(letters[0]).to_string())),
                self.len_max - 1,
            ),
        };
        let number = format!("{leading}{any}{}", repeat(0, more));
        if zero.is_empty() {
            format!("^(?:{number})?$")
        } else {
            format!("^(?:{zero}{number})$")
        }
    }

    /// Returns the number of bits in the last digit of a text that belong to the number. The other
    /// bits are zeros that fill the digit.
    fn last_digit_bits(&self) -> u32 {
        self.radix.bits().map_or(0, |bits| bits - self.filler_bits)
    }

    fn has_spare_zero(&self, text: &str) -> bool {
        let spared = match self.padding {
            Padding::Fixed(_) => return false,
            Padding::None => 1,
            Padding::Stripped => 0,
        };
        text.len() > spared && text.as_bytes().first() == self.alphabet.letters().first()
    }

    fn number(&self, text: &[u8]) -> Result<u128, Rejection> {
        self.radix
            .number(self.alphabet.digits_of(text))
            .ok_or(Rejection::OutOfRange)
    }
}

/// Returns the number of bytes that the number `max` needs, which is at least 1.
pub(crate) fn bytes_of(max: u128) -> usize {
    let bits = u128::BITS - max.leading_zeros();
    usize::try_from(bits.div_ceil(8).max(1)).expect("at most 16")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::encoding::{Codec, vectors};

    const DECIMAL: &str = "0123456789";
    const HEX: &str = "0123456789abcdef";
    const BASE36: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const BASE64_URL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const BASE64_LEX: &str = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
    const BASE32: &str = "abcdefghijklmnopqrstuvwxyz234567";
    const BASE32_HEX: &str = "0123456789abcdefghijklmnopqrstuv";
    const CROCKFORD: &str = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

    fn greatest_of(bits: u32) -> u128 {
        u128::MAX >> (128 - bits)
    }

    fn codec(positional: Result<Positional, ParameterError>) -> Codec {
        Codec::Positional(positional.expect("the greatest number fits"))
    }

    fn of_padding(letters: &str, padding: Padding, bits: u32) -> Codec {
        codec(Positional::new(letters, padding, greatest_of(bits)))
    }

    /// Returns the codecs of SIQ's encodings that consist of digits.
    fn siq() -> Vec<(&'static str, Codec)> {
        let max = greatest_of(112);
        vec![
            ("decimal", of_padding(DECIMAL, Padding::None, 112)),
            ("hex", of_padding(HEX, Padding::None, 112)),
            ("hex_padded", of_padding(HEX, Padding::Fixed(28), 112)),
            ("bytes16_hex", codec(Positional::of_bytes(HEX, 16, max))),
            ("base64", codec(Positional::of_bytes(BASE64_URL, 15, max))),
            ("crockford", of_padding(CROCKFORD, Padding::None, 112)),
            ("b32l", codec(Positional::of_bytes(BASE32, 15, max))),
        ]
    }

    fn snowflake() -> Vec<(&'static str, Codec)> {
        let max = greatest_of(64);
        vec![
            ("decimal", of_padding(DECIMAL, Padding::None, 64)),
            ("hex", of_padding(HEX, Padding::None, 64)),
            ("hex_padded", of_padding(HEX, Padding::Fixed(16), 64)),
            ("bytes8_hex", codec(Positional::of_bytes(HEX, 8, max))),
            ("base64", codec(Positional::of_bytes(BASE64_URL, 9, max))),
            (
                "b32l",
                codec(Positional::of_stripped_bytes(BASE32, 10, max)),
            ),
            ("cb32", codec(Positional::of_bytes(CROCKFORD, 8, max))),
        ]
    }

    /// Checks that invalid texts are rejected for the reason in the test vectors. This function
    /// rejects numbers above `max`, the layout's greatest value, because the codec accepts them.
    fn check_invalid(
        codec: &Codec,
        file: &str,
        max: u128,
        chosen: impl Fn(&serde_json::Value) -> bool,
    ) -> usize {
        let rows = vectors::rows(file, "invalid");
        let texts = rows
            .iter()
            .filter(|row| chosen(row))
            .filter_map(|row| Some((row, row["input"].as_str()?)));
        texts
            .map(|(row, text)| {
                let bounded = codec.read(text).and_then(|value| {
                    if value <= max {
                        Ok(value)
                    } else {
                        Err(Rejection::OutOfRange)
                    }
                });
                let reason = bounded.map_err(Rejection::code);
                assert_eq!(
                    reason.err(),
                    row["reason"].as_str(),
                    "{}: {text:?}",
                    row["name"]
                );
            })
            .count()
    }

    #[test]
    fn digits_are_padded_as_asked_for() {
        let crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
        let text_of = |codec: Positional, value| {
            let mut text = vec![0; codec.len(value)];
            codec.write(value, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        };
        assert_eq!(
            text_of(
                Positional::new(crockford, Padding::None, u128::MAX).expect("a valid parameter"),
                32
            ),
            "10"
        );
        assert_eq!(
            text_of(
                Positional::new(crockford, Padding::Fixed(26), u128::MAX)
                    .expect("a valid parameter"),
                32
            ),
            "00000000000000000000000010"
        );
        assert_eq!(
            text_of(
                Positional::of_bytes(crockford, 8, u128::from(u64::MAX))
                    .expect("a valid parameter"),
                7
            ),
            "000000000000E"
        );
    }

    #[test]
    fn published_siq_ids_hold_both_ways() {
        for (name, codec) in siq() {
            assert_eq!(
                vectors::check_valid(&codec, "siq", name, |_| true),
                71,
                "{name}"
            );
        }
        let mut rejected = 0;
        for (name, codec) in siq() {
            rejected += check_invalid(&codec, "siq", greatest_of(112), |row| row["codec"] == name);
        }
        assert_eq!(rejected, 65);
    }

    #[test]
    fn published_snowflakes_hold_both_ways() {
        for (name, codec) in snowflake() {
            assert_eq!(
                vectors::check_valid(&codec, "snowflake", name, |_| true),
                53,
                "{name}"
            );
        }
        let mut rejected = 0;
        for (name, codec) in snowflake() {
            for (flavor, bits) in [("discord", 64), ("twitter", 63)] {
                let chosen =
                    |row: &serde_json::Value| row["codec"] == name && row["flavor"] == flavor;
                rejected += check_invalid(&codec, "snowflake", greatest_of(bits), chosen);
            }
        }
        assert_eq!(rejected, 31);
    }

    #[test]
    fn published_flax_ids_hold_both_ways() {
        let lex = codec(Positional::padded(BASE64_LEX, greatest_of(96)));
        assert_eq!(vectors::check_valid(&lex, "flax", "string", |_| true), 51);
        let hex = codec(Positional::padded(HEX, greatest_of(96)));
        assert_eq!(vectors::check_valid(&hex, "flax", "hex", |_| true), 51);
        assert_eq!(
            check_invalid(&lex, "flax", greatest_of(96), |row| row["operation"]
                == "decode"),
            20
        );
    }

    #[test]
    fn published_payments_hold_both_ways() {
        let base36 = codec(Positional::padded(BASE36, 36_u128.pow(9) - 1));
        let rows = vectors::rows("payment", "valid");
        for row in &rows {
            let field = |name: &str| u128::from(row["fields"][name].as_u64().expect("a number"));
            let value = (field("timestamp") * 36 + field("worker")) * 1296 + field("counter");
            vectors::check(
                &base36,
                value,
                row["encodings"]["string"].as_str().expect("a text"),
            );
        }
        assert_eq!(rows.len(), 48);
        assert_eq!(
            check_invalid(
                &base36,
                "payment",
                36_u128.pow(9) - 1,
                |row| row["operation"] == "decode"
            ),
            12
        );
    }

    #[test]
    fn published_conjunctions_hold_both_ways() {
        for (layout, bits, count) in [("v1", 64, 21), ("v2", 77, 28)] {
            let chosen = |row: &serde_json::Value| row["layout"] == layout;
            let hex = codec(Positional::padded(HEX, greatest_of(bits)));
            assert_eq!(
                vectors::check_valid(&hex, "conjunction", "hex_padded", chosen),
                count
            );
            let decimal = of_padding(DECIMAL, Padding::None, bits);
            assert_eq!(
                vectors::check_valid(&decimal, "conjunction", "decimal", chosen),
                count
            );
            let decoded = |row: &serde_json::Value| row["operation"] == "decode" && chosen(row);
            assert_eq!(
                check_invalid(&decimal, "conjunction", greatest_of(bits), decoded),
                5
            );
        }
    }

    #[test]
    fn published_texts_in_order_are_sortable() {
        for (file, name, codec) in [
            (
                "siq",
                "hex_padded",
                of_padding(HEX, Padding::Fixed(28), 112),
            ),
            (
                "siq",
                "bytes16_hex",
                codec(Positional::of_bytes(HEX, 16, greatest_of(112))),
            ),
            (
                "snowflake",
                "hex_padded",
                of_padding(HEX, Padding::Fixed(16), 64),
            ),
            (
                "flax",
                "string",
                codec(Positional::padded(BASE64_LEX, greatest_of(96))),
            ),
            (
                "payment",
                "string",
                codec(Positional::padded(BASE36, 36_u128.pow(9) - 1)),
            ),
        ] {
            assert!(codec.is_sortable());
            let row = vectors::rows(file, "ordering")
                .into_iter()
                .find(|row| row["codec"] == name)
                .expect("a list");
            let texts = row["ascending"]
                .as_array()
                .expect("texts")
                .iter()
                .map(|text| text.as_str().expect("a text"));
            let numbers: Vec<u128> = texts.map(|text| codec.read(text).expect("an id")).collect();
            assert!(numbers.is_sorted());
        }
    }

    #[test]
    fn filler_bits_must_be_zero_and_128_bits_fit_beside_them() {
        let xid = codec(Positional::of_bytes(BASE32_HEX, 12, greatest_of(96)));
        vectors::check(
            &xid,
            0x4d88_e15b_60f4_86e4_2841_2dc9,
            "9m4e2mr0ui3e8a215n4g",
        );
        assert_eq!(
            xid.read("9m4e2mr0ui3e8a215n4h"),
            Err(Rejection::NonCanonical)
        );
        let sixteen = codec(Positional::of_bytes(BASE64_URL, 16, u128::MAX));
        vectors::check(&sixteen, u128::MAX, "_____________________w");
        let seventeen = codec(Positional::of_bytes(BASE64_URL, 17, u128::MAX));
        assert_eq!(
            seventeen.read("______________________8"),
            Err(Rejection::OutOfRange)
        );
    }

    #[test]
    fn a_ulid_above_128_bits_is_out_of_range() {
        let ulid = of_padding(CROCKFORD, Padding::Fixed(26), 128);
        vectors::check(&ulid, u128::MAX, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
        assert_eq!(
            ulid.read("80000000000000000000000000"),
            Err(Rejection::OutOfRange)
        );
    }

    #[test]
    fn a_padding_that_holds_no_such_number_is_refused() {
        assert!(Positional::new(HEX, Padding::Fixed(15), greatest_of(64)).is_err());
        assert!(Positional::of_bytes(HEX, 7, greatest_of(64)).is_err());
        assert!(Positional::of_bytes(DECIMAL, 8, greatest_of(64)).is_err());
        assert!(Positional::of_bytes("01", 64, greatest_of(64)).is_err());
        assert!(Positional::of_stripped_bytes(BASE32, 8, greatest_of(64)).is_err());
    }

    proptest! {
        #![proptest_config(vectors::same_cases_every_time())]

        #[test]
        fn bytes_are_written_as_the_data_encoding_crate_does(value: u128, cut in 0_u32..128, more in 0_usize..4) {
            let value = value >> cut;
            let bytes = bytes_of(value);
            let padded = [vec![0; more], value.to_be_bytes()[16 - bytes..].to_vec()].concat();
            let ours = |letters| vectors::text_of(&codec(Positional::of_bytes(letters, bytes + more, value)), value);
            prop_assert_eq!(ours(BASE64_URL), data_encoding::BASE64URL_NOPAD.encode(&padded));
            prop_assert_eq!(ours(BASE32), data_encoding::BASE32_NOPAD.encode(&padded).to_lowercase());
            prop_assert_eq!(ours(BASE32_HEX), data_encoding::BASE32HEX_NOPAD.encode(&padded).to_lowercase());
            prop_assert_eq!(ours(HEX), data_encoding::HEXLOWER.encode(&padded));
        }
    }
}
