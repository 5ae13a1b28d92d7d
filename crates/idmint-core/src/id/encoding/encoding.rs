//! One encoding of a format: a codec, which converts numbers to texts, with a name, a prefix and a
//! greatest number.

use std::fmt;
use std::ops::RangeInclusive;

use super::codec::Codec;
use super::definition::{CheckMethod, EncodingDefinition, EncodingKind, LetterCase, Salt};
use super::did::Did;
use super::hashids::Hashids;
use super::letters::{LetterSet, escape};
use super::parameter::ParameterError;
use super::positional::{CHUNK_MAX, Checked, Padding, Positional, bytes_of, write_block};
use super::sqids::Sqids;
use super::uuid::Uuid;
use super::uuid8::Uuid8;
use crate::id::id_block::IdBlock;
use crate::id::rejection::Rejection;

const DECIMAL: &str = "0123456789";
const BASE36_UPPER: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const BASE36_LOWER: &str = "0123456789abcdefghijklmnopqrstuvwxyz";
const BASE62: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE64_URL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BASE64_LEX: &str = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
const CROCKFORD: &str = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const CROCKFORD_LOWER: &str = "0123456789abcdefghjkmnpqrstvwxyz";
const BASE32_LOWER: &str = "abcdefghijklmnopqrstuvwxyz234567";

/// One way to write the ids of a format as text. An encoding has a name, a prefix, a codec that
/// converts numbers to texts, and a greatest number.
///
/// ```
/// use idmint_core::id::{Encoding, EncodingDefinition, EncodingKind, Rejection};
///
/// let mut definition = EncodingDefinition::from(EncodingKind::Base36);
/// definition.prefix = Some("inv_".to_owned());
/// let encoding = Encoding::new(&definition, 36_u128.pow(9) - 1)?;
/// assert_eq!(encoding.to_text(35), "inv_00000000Z");
/// assert_eq!(encoding.read("inv_00000000Z"), Ok(35));
/// assert_eq!(encoding.read("inv_Z"), Err(Rejection::WrongLength));
/// assert_eq!(encoding.pattern(), "^inv_[0-9A-Z]{9}$");
/// # Ok::<(), idmint_core::id::EncodingError>(())
/// ```
#[derive(Clone)]
pub struct Encoding {
    name: String,
    prefix: String,
    codec: Codec,
    max: u128,
    len_max: usize,
    definition: EncodingDefinition,
}

/// The reason why a definition is not a valid encoding for the ids of a layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodingError {
    /// The setting belongs to another kind of encoding. Remove the setting or change the kind.
    #[error(
        "encoding {name}: the kind {kind} has no setting {key}; its settings are name, prefix{}", list(.keys)
    )]
    KeyOfAnotherKind {
        /// The name of the encoding.
        name: String,
        /// The kind of the encoding.
        kind: &'static str,
        /// The setting that this kind does not accept.
        key: &'static str,
        /// The settings that this kind accepts.
        keys: &'static [&'static str],
    },
    /// An encoding has a setting out of bounds, or cannot write the layout's greatest number.
    #[error("encoding {name}: {parameter}")]
    Parameter {
        /// The name of the encoding.
        name: String,
        /// The setting that is out of bounds, together with its value and the violated bound.
        parameter: ParameterError,
    },
}

impl EncodingError {
    /// Returns the key of the wrong setting.
    pub(in crate::id) fn key(&self) -> &'static str {
        match self {
            EncodingError::KeyOfAnotherKind { key, .. } => key,
            EncodingError::Parameter { parameter, .. } => parameter.key,
        }
    }
}

impl Encoding {
    /// Builds an encoding for the numbers 0 to `max`, which is the greatest number that the layout
    /// of the format can hold.
    ///
    /// # Errors
    /// Returns [`EncodingError`] with the setting, its value and the bound if a setting is invalid.
    pub fn new(definition: &EncodingDefinition, max: u128) -> Result<Self, EncodingError> {
        let name = definition.name();
        let kind = definition.kind;
        let is_taken = |key: &&str| matches!(*key, "name" | "prefix") || kind.keys().contains(key);
        if let Some(key) = definition.keys().find(|key| !is_taken(key)) {
            return Err(EncodingError::KeyOfAnotherKind {
                name,
                kind: kind.name(),
                key,
                keys: kind.keys(),
            });
        }
        let prefix = definition.prefix.clone().unwrap_or_default();
        let codec = check_name(&name)
            .and_then(|()| check_prefix(&prefix))
            .and_then(|()| codec_of(definition, max));
        match codec {
            Ok(codec) => {
                let len_max = prefix.len() + codec.len(max);
                Ok(Self {
                    name,
                    prefix,
                    codec,
                    max,
                    len_max,
                    definition: definition.clone(),
                })
            }
            Err(parameter) => Err(EncodingError::Parameter { name, parameter }),
        }
    }

    /// Returns the name by which callers select this encoding.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the prefix of every text. The prefix is empty if the encoding has none.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the definition that this encoding was built from.
    pub fn definition(&self) -> &EncodingDefinition {
        &self.definition
    }

    /// Returns the length in bytes of the text for the number `value`. A greater number never has a
    /// shorter text.
    #[inline]
    pub fn len(&self, value: u128) -> usize {
        self.prefix.len() + self.codec.len(value)
    }

    /// Returns the length of the longest text in bytes, which is the text of the greatest number.
    pub fn len_max(&self) -> usize {
        self.len_max
    }

    /// Returns the length in bytes that all texts have, or `None` if texts differ in length.
    pub fn fixed_len(&self) -> Option<usize> {
        self.codec.fixed_len().map(|len| self.prefix.len() + len)
    }

    /// Writes the text for the number `value` to `out`, which must have exactly `len(value)` bytes.
    ///
    /// The value must not exceed the layout's greatest value, or its leading digits would be lost.
    #[inline]
    pub fn write(&self, value: u128, out: &mut [u8]) {
        if self.prefix.is_empty() {
            return self.codec.write(value, out);
        }
        let (prefix, text) = out.split_at_mut(self.prefix.len());
        prefix.copy_from_slice(self.prefix.as_bytes());
        self.codec.write(value, text);
    }

    /// Appends the text of each id to `out`, each followed by the separator `seam`. `out` is
    /// resized once for all ids.
    ///
    /// If consecutive ids differ by the same small step, most texts are written by copying the
    /// previous text and replacing its last letters, which is fast.
    #[inline]
    pub fn write_block<const SEAM: usize>(
        &self,
        block: IdBlock<'_>,
        seam: [u8; SEAM],
        out: &mut Vec<u8>,
    ) {
        if !self.prefix.is_empty() {
            return self.write_block_behind("", block, seam, out);
        }
        let start = out.len();
        out.resize(start + self.block_len_max(block.len(), SEAM), 0);
        let written = self.codec.write_block(block, seam, &mut out[start..]);
        out.truncate(start + written);
    }

    /// Appends `front` (such as the prefix `user_`), the text and a separator for each id to `out`,
    /// like [`write_block`](Encoding::write_block).
    pub fn write_block_behind<const SEAM: usize>(
        &self,
        front: &str,
        block: IdBlock<'_>,
        seam: [u8; SEAM],
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        out.resize(
            start + self.block_len_max(block.len(), front.len() + SEAM),
            0,
        );
        let write_one = |value, text: &mut [u8]| {
            let (before, text) = text.split_at_mut(front.len());
            before.copy_from_slice(front.as_bytes());
            self.write(value, text);
        };
        let len = |value| front.len() + self.len(value);
        let written = write_block(
            block,
            len,
            write_one,
            self.codec.endings(),
            seam,
            &mut out[start..],
        );
        out.truncate(start + written);
    }

    /// Returns the maximum number of bytes by which [`Encoding::write_block`] extends `out` while
    /// it writes `count` texts, each followed by a separator of `seam_len` bytes.
    ///
    /// The maximum is slightly more than the texts need, because each text may be copied with a few
    /// bytes after its end.
    pub fn block_len_max(&self, count: usize, seam_len: usize) -> usize {
        count
            .saturating_mul(self.len_max + seam_len)
            .saturating_add(CHUNK_MAX)
    }

    /// Returns the text of a number, including the prefix.
    pub fn to_text(&self, value: u128) -> String {
        let mut text = vec![0; self.len(value)];
        self.write(value, &mut text);
        String::from_utf8(text).expect("alphabets and prefixes are ASCII")
    }

    /// Parses a text as a number. The text is accepted only if writing that number gives the same
    /// text.
    ///
    /// # Errors
    /// Returns [`Rejection::BadPrefix`] if the prefix is missing, or else the codec's rejection of
    /// the rest of the text. Returns [`Rejection::OutOfRange`] if the number exceeds the greatest
    /// number of the encoding.
    pub fn read(&self, text: &str) -> Result<u128, Rejection> {
        let value = self.read_unbounded(text)?;
        self.check(value)?;
        Ok(value)
    }

    /// Parses a text as a number. Unlike in `read`, the number may exceed the greatest number of
    /// the encoding.
    pub(in crate::id) fn read_unbounded(&self, text: &str) -> Result<u128, Rejection> {
        if self.prefix.is_empty() {
            return self.codec.read(text);
        }
        self.codec.read(
            text.strip_prefix(&self.prefix)
                .ok_or(Rejection::BadPrefix)?,
        )
    }

    /// Parses a text as a number, or returns `None` instead of the reason for a failure.
    ///
    /// The number may exceed the greatest number of the encoding. The result may also be `None` if
    /// `is_wanted` refuses the number, which saves further checks.
    pub(in crate::id) fn value_unbounded(
        &self,
        text: &str,
        is_wanted: impl FnOnce(u128) -> bool,
    ) -> Option<u128> {
        // Most encodings have no prefix, and calling `strip_prefix` for an empty prefix takes time.
        let rest = if self.prefix.is_empty() {
            Some(text)
        } else {
            text.strip_prefix(&self.prefix)
        };
        self.codec.value(rest?, is_wanted)
    }

    /// Checks that a number from [`Encoding::read_unbounded`] does not exceed the greatest number
    /// of the encoding.
    ///
    /// # Errors
    /// Returns [`Rejection::OutOfRange`] if the number exceeds the greatest value.
    pub(in crate::id) fn check(&self, value: u128) -> Result<(), Rejection> {
        if value <= self.max {
            Ok(())
        } else {
            Err(Rejection::OutOfRange)
        }
    }

    /// Returns the greatest number that this encoding can write.
    pub(in crate::id) fn max(&self) -> u128 {
        self.max
    }

    /// Returns the range of numbers whose texts are `len` bytes long, or `None` if no text has that
    /// length.
    pub(in crate::id) fn numbers_of_len(&self, len: usize) -> Option<RangeInclusive<u128>> {
        if !(self.len(0)..=self.len_max).contains(&len) {
            return None;
        }
        let least = if len == self.len(0) {
            0
        } else {
            self.greatest_of_len(len - 1) + 1
        };
        let greatest = self.greatest_of_len(len);
        (least <= greatest).then_some(least..=greatest)
    }

    /// Returns the greatest number whose text has at most `len` bytes. `len` must be at least the
    /// length of the text of 0.
    fn greatest_of_len(&self, len: usize) -> u128 {
        if len >= self.len_max {
            return self.max;
        }
        // Greater numbers never have shorter texts, so the greatest number with at most `len` bytes
        // of text can be built bit by bit, starting with the highest bit.
        (0..u128::BITS - self.max.leading_zeros())
            .rev()
            .map(|bit| 1 << bit)
            .fold(0, |greatest, bit| {
                let is_more = greatest | bit <= self.max && self.len(greatest | bit) <= len;
                if is_more { greatest | bit } else { greatest }
            })
    }

    /// Returns `true` if both encodings always read the same number from a text. One of them may
    /// still have a lower limit for the numbers that it accepts.
    pub(in crate::id) fn reads_like(&self, other: &Encoding) -> bool {
        let depends_on_max = self.definition.kind == EncodingKind::Uuid8;
        self.definition == other.definition
            && self.fixed_len() == other.fixed_len()
            && (self.max == other.max || !depends_on_max)
    }

    /// Returns the letters that texts of this encoding can contain, including the letters of the
    /// prefix.
    pub(in crate::id) fn letters(&self) -> LetterSet {
        LetterSet::of(self.prefix.as_bytes()).with(self.codec.letters())
    }

    /// Returns the case of the letters after the prefix. Returns `None` if texts have letters of
    /// both cases, or no letters.
    pub(in crate::id) fn letter_case(&self) -> Option<LetterCase> {
        match self.codec.letters().cases() {
            (true, false) => Some(LetterCase::Lower),
            (false, true) => Some(LetterCase::Upper),
            _ => None,
        }
    }

    /// Returns the letters that stand for the digits 0, 1, 2 and so on. Returns `None` if texts of
    /// this encoding are not plain numbers in a radix, as in Sqids and base64.
    pub(in crate::id) fn digit_letters(&self) -> Option<&str> {
        let Codec::Positional(positional) = &self.codec else {
            return None;
        };
        let of_bytes = [
            EncodingKind::Base64,
            EncodingKind::B32l,
            EncodingKind::Cb32,
            EncodingKind::Base32hex,
        ];
        str::from_utf8(positional.alphabet().letters())
            .ok()
            .filter(|_| !of_bytes.contains(&self.definition.kind))
    }

    /// Returns the number of letters in each group of a hyphenated text, such as 8, 4, 4, 4 and 12
    /// for a UUID. The slice is empty if texts have no hyphens.
    pub(in crate::id) fn groups(&self) -> &[usize] {
        self.codec.groups()
    }

    /// Returns `true` if sorting texts of this encoding byte by byte also sorts their numbers.
    pub fn is_sortable(&self) -> bool {
        self.codec.is_sortable()
    }

    /// Returns a regular expression that accepts every text of this encoding, and refuses texts
    /// with other lengths or letters. The expression is anchored at both ends.
    pub fn pattern(&self) -> String {
        let pattern = self.codec.pattern();
        let body = pattern
            .strip_prefix('^')
            .expect("codecs anchor their patterns");
        format!("^{}{body}", escape(&self.prefix))
    }
}

impl fmt::Debug for Encoding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Print only the definition and the greatest number, which determine all other fields. The
        // tables of a codec would fill pages.
        out.debug_struct("Encoding")
            .field("definition", &self.definition)
            .field("max", &self.max)
            .finish()
    }
}

fn codec_of(definition: &EncodingDefinition, max: u128) -> Result<Codec, ParameterError> {
    let length = definition.length.map(Padding::Fixed);
    let minimal = |letters: &str| Positional::new(letters, length.unwrap_or(Padding::None), max);
    let padded = |letters: &str| match length {
        Some(padding) => Positional::new(letters, padding, max),
        None => Positional::padded(letters, max),
    };
    let of_bytes = |letters: &str| {
        let bytes = definition.bytes.unwrap_or_else(|| bytes_of(max));
        match definition.strip {
            Some(true) => Positional::of_stripped_bytes(letters, bytes, max),
            _ => Positional::of_bytes(letters, bytes, max),
        }
    };
    let lower_or = |case| match definition.case.unwrap_or(case) {
        LetterCase::Upper => BASE36_UPPER,
        LetterCase::Lower => BASE36_LOWER,
    };
    let min_length = definition.min_length.unwrap_or(0);
    let digits = match definition.kind {
        EncodingKind::Decimal => minimal(DECIMAL),
        EncodingKind::Hex => minimal(&lower_or(LetterCase::Lower)[..16]),
        EncodingKind::HexPadded => padded(&lower_or(LetterCase::Lower)[..16]),
        EncodingKind::Bytes16Hex => Positional::of_bytes(&BASE36_LOWER[..16], 16, max),
        EncodingKind::Radix => padded(&radix_letters(definition)?),
        EncodingKind::Base36 => padded(lower_or(LetterCase::Upper)),
        EncodingKind::Base62 => padded(BASE62),
        EncodingKind::Base64 => of_bytes(BASE64_URL),
        EncodingKind::Base64Lex => padded(BASE64_LEX),
        EncodingKind::Crockford => minimal(match definition.case {
            Some(LetterCase::Lower) => CROCKFORD_LOWER,
            _ => CROCKFORD,
        }),
        EncodingKind::B32l => of_bytes(BASE32_LOWER),
        EncodingKind::Cb32 => of_bytes(CROCKFORD),
        EncodingKind::Base32hex => of_bytes(&lower_or(LetterCase::Lower)[..32]),
        EncodingKind::Hashids => {
            let alphabet = definition.alphabet.as_deref().unwrap_or(Hashids::ALPHABET);
            if let Some(path) = &definition.salt_file {
                let bound = "must be read before the encoding is created";
                return ParameterError::refuse("salt_file", path.display(), bound);
            }
            let salt = definition.salt.as_ref().map_or("", Salt::as_str);
            let groups = definition.groups.as_deref().unwrap_or_default();
            return Hashids::new(alphabet, salt, min_length, groups, max).map(Codec::Hashids);
        }
        EncodingKind::Sqids => {
            let alphabet = definition.alphabet.as_deref().unwrap_or(Sqids::ALPHABET);
            let blocklist = definition.blocklist.as_deref();
            return Sqids::new(alphabet, min_length, blocklist, max).map(Codec::Sqids);
        }
        EncodingKind::Uuid => return Ok(Codec::Uuid(Uuid::new())),
        EncodingKind::Uuid8 => return Uuid8::new(max).map(Codec::Uuid8),
        EncodingKind::Did => {
            let method = definition.method.as_deref().unwrap_or("siq");
            return Did::new(method, max).map(Codec::Did);
        }
    };
    match definition.check {
        Some(CheckMethod::Mod97) => Checked::new(digits?).map(Codec::Checked),
        None => digits.map(Codec::Positional),
    }
}

/// Returns the letters of a `radix` encoding in the order of the digits. They are the alphabet of
/// the definition if it has one, or else the first digits and letters in ASCII order.
fn radix_letters(definition: &EncodingDefinition) -> Result<String, ParameterError> {
    let refuse = |key, value: String, bound: &str| ParameterError::refuse(key, value, bound);
    match (&definition.alphabet, definition.radix, definition.case) {
        (Some(_), _, Some(case)) => refuse(
            "case",
            format!("{case:?}"),
            "must be left out if an alphabet is set",
        ),
        (Some(letters), Some(radix), None) if radix != letters.chars().count() => refuse(
            "radix",
            radix.to_string(),
            "must be the number of letters in the alphabet",
        ),
        (Some(letters), _, None) => Ok(letters.clone()),
        (None, None, _) => refuse(
            "radix",
            "missing".to_owned(),
            "must be 2 to 62, unless an alphabet is set",
        ),
        (None, Some(37..=62), Some(case)) => refuse(
            "case",
            format!("{case:?}"),
            "must be left out above radix 36",
        ),
        (None, Some(radix @ 2..=36), Some(LetterCase::Upper)) => {
            Ok(BASE36_UPPER[..radix].to_owned())
        }
        (None, Some(radix @ 2..=36), _) => Ok(BASE36_LOWER[..radix].to_owned()),
        (None, Some(radix @ 37..=62), None) => Ok(BASE62[..radix].to_owned()),
        (None, Some(radix), _) => refuse("radix", radix.to_string(), "must be 2 to 62"),
    }
}

/// Checks an encoding's name, which appears in URLs and metric labels.
fn check_name(name: &str) -> Result<(), ParameterError> {
    let is_name_letter = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-')
    };
    if (1..=64).contains(&name.len()) && name.bytes().all(is_name_letter) {
        return Ok(());
    }
    let bound = "must be 1 to 64 characters from a-z, 0-9, _ and -";
    ParameterError::refuse("name", format!("{name:?}"), bound)
}

fn check_prefix(prefix: &str) -> Result<(), ParameterError> {
    if prefix.len() <= 64 && prefix.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    let bound = "must be at most 64 printable ASCII characters";
    ParameterError::refuse("prefix", format!("{prefix:?}"), bound)
}

fn list(keys: &[&str]) -> String {
    keys.iter().map(|key| format!(", {key}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct One {
        encoding: EncodingDefinition,
    }

    fn encoding(definition: &str, max: u128) -> Result<Encoding, EncodingError> {
        let one: One = toml::from_str(&format!("encoding = {definition}")).expect("a definition");
        Encoding::new(&one.encoding, max)
    }

    fn error_of(definition: &str, max: u128) -> String {
        encoding(definition, max).expect_err(definition).to_string()
    }

    #[test]
    fn errors_name_the_setting_its_value_and_the_bound() {
        let radix =
            r#"{ kind = "radix", name = "base36", radix = 36, case = "upper", length = 5 }"#;
        assert_eq!(
            error_of(radix, 36_u128.pow(9) - 1),
            "encoding base36: length is 5, but must be 9 to 255"
        );
        assert_eq!(
            error_of(r#""uuid8""#, u128::MAX),
            "encoding uuid8: bits is 128, but must be at most 122, the number of free bits in a \
             UUID of version 8"
        );
        assert_eq!(
            error_of(r#"{ kind = "decimal", salt = "s" }"#, 1),
            "encoding decimal: the kind decimal has no setting salt; its settings are name, prefix, \
             length, check"
        );
        assert_eq!(
            error_of(r#"{ kind = "radix", alphabet = "aab" }"#, 1),
            "encoding radix: alphabet is \"aab\", but must not repeat 'a'"
        );
        assert_eq!(
            error_of(r#"{ kind = "base64", bytes = 7 }"#, u128::from(u64::MAX)),
            "encoding base64: bytes is 7, but must be 8 to 64"
        );
        assert_eq!(
            error_of(
                r#"{ kind = "hashids", min_length = 12, groups = [4, 4] }"#,
                1
            ),
            "encoding hashids: groups is [4, 4], but must add up to 12 letters"
        );
        assert!(
            error_of(r#"{ kind = "radix", radix = 63 }"#, 1)
                .contains("radix is 63, but must be 2 to 62")
        );
        assert!(error_of(r#""radix""#, 1).contains("radix is missing"));
        assert!(
            error_of(r#"{ kind = "radix", radix = 62, case = "upper" }"#, 1)
                .contains("above radix 36")
        );
        assert!(error_of(r#"{ kind = "decimal", prefix = "a b" }"#, 1).contains("prefix"));
        assert!(error_of(r#"{ kind = "decimal", name = "A" }"#, 1).contains("name"));
    }

    #[test]
    fn a_value_above_the_layouts_greatest_is_out_of_range() {
        let decimal = encoding(r#""decimal""#, 1000).expect("decimal");
        assert_eq!(decimal.read("1000"), Ok(1000));
        assert_eq!(decimal.read("1001"), Err(Rejection::OutOfRange));
    }

    #[test]
    fn the_pattern_escapes_the_prefix() {
        let encoding = encoding(r#"{ kind = "hex", prefix = "a.b(" }"#, 255).expect("hex");
        let pattern = regex_lite::Regex::new(&encoding.pattern()).expect("a regular expression");
        assert!(pattern.is_match("a.b(ff"));
        assert!(
            !pattern.is_match("axb(ff")
                && !pattern.is_match("a.b(fff")
                && !pattern.is_match("a.b(0f")
        );
    }

    #[test]
    fn default_lengths_come_from_the_greatest_value() {
        let len = |definition: &str, bits: u32| {
            let encoding = encoding(definition, (1_u128 << bits) - 1).expect("an encoding");
            encoding.fixed_len()
        };
        assert_eq!(len(r#""hex_padded""#, 77), Some(20));
        assert_eq!(len(r#""hex_padded""#, 127), Some(32));
        assert_eq!(len(r#""base64_lex""#, 96), Some(16));
        assert_eq!(len(r#""base64_lex""#, 120), Some(20));
        assert_eq!(len(r#""base64""#, 64), Some(11));
        assert_eq!(len(r#""cb32""#, 64), Some(13));
        assert_eq!(len(r#""base32hex""#, 96), Some(20));
        assert_eq!(len(r#""hex""#, 64), None);
        assert_eq!(len(r#"{ kind = "crockford", length = 26 }"#, 127), Some(26));
        assert_eq!(
            len(r#"{ kind = "hashids", min_length = 20 }"#, 64),
            Some(20)
        );
        assert_eq!(len(r#""sqids""#, 64), None);
    }

    #[test]
    fn the_numbers_of_each_length_follow_one_another_to_the_greatest() {
        let check = |definition: &str, max: u128, lens: &[usize]| {
            let encoding = encoding(definition, max).expect("an encoding");
            let ranges: Vec<_> = (0..300)
                .filter_map(|len| Some((len, encoding.numbers_of_len(len)?)))
                .collect();
            assert_eq!(
                ranges.iter().map(|(len, _)| *len).collect::<Vec<_>>(),
                lens,
                "{definition}"
            );
            let mut next = Some(0);
            for (len, numbers) in &ranges {
                assert_eq!(Some(*numbers.start()), next, "{definition}");
                assert_eq!(
                    [*numbers.start(), *numbers.end()].map(|number| encoding.len(number)),
                    [*len; 2]
                );
                next = numbers.end().checked_add(1);
            }
            assert_eq!(
                ranges.last().map(|(_, numbers)| *numbers.end()),
                Some(max),
                "{definition}"
            );
        };
        check(r#""decimal""#, 1_234, &[1, 2, 3, 4]);
        check(r#"{ kind = "decimal", prefix = "inv_" }"#, 99, &[5, 6]);
        check(r#""hex_padded""#, u128::from(u64::MAX), &[16]);
        check(r#""uuid""#, u128::MAX, &[36]);
        check(
            r#"{ kind = "b32l", bytes = 5, strip = true }"#,
            1_023,
            &[0, 1, 2],
        );
        check(r#""hashids""#, 1 << 40, &[2, 3, 4, 5, 6, 7, 8, 9]);
        check(r#"{ kind = "sqids", min_length = 6 }"#, 1 << 40, &[6, 7, 8]);
    }

    #[test]
    fn only_encodings_that_keep_order_are_sortable() {
        let is_sortable = |definition: &str| {
            encoding(definition, (1 << 64) - 1)
                .expect("an encoding")
                .is_sortable()
        };
        for sortable in [
            "hex_padded",
            "base36",
            "base62",
            "base64_lex",
            "cb32",
            "base32hex",
            "uuid",
            "uuid8",
            "bytes16_hex",
        ] {
            assert!(is_sortable(&format!("{sortable:?}")), "{sortable}");
        }
        for other in [
            "decimal",
            "hex",
            "base64",
            "b32l",
            "crockford",
            "hashids",
            "sqids",
            "did",
        ] {
            assert!(!is_sortable(&format!("{other:?}")), "{other}");
        }
    }
}
