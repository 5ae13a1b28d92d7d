//! A text to decode, and the properties of the text that do not depend on any format.

use super::decode_filter::DecodeFilter;
use super::evidence::{bits_of_prefix, bits_of_text, is_everyday};
use crate::id::encoding::{Encoding, LetterSet};
use crate::id::format::Format;
use crate::id::rejection::Rejection;

/// A text to decode, with the properties that all formats need.
#[derive(Debug, Clone, Copy)]
pub(super) struct GivenText<'a> {
    pub(super) text: &'a str,
    pub(super) letters: LetterSet,
    /// The information in a random text of this length and alphabet, in bits (33 for ten digits).
    pub(super) bits: f64,
    pub(super) is_everyday: bool,
    /// `true` if the caller named the format.
    pub(super) is_of_format: bool,
    /// `true` if the caller named the format or the encoding.
    pub(super) is_pinned: bool,
    /// The length in bytes of the prefix at the start of `text`, such as 4 for `inv_`, or 0 if
    /// `text` is read without a prefix.
    pub(super) prefix_len: usize,
    /// The information in the prefix, in bits.
    pub(super) prefix_bits: f64,
}

impl<'a> GivenText<'a> {
    pub(super) fn new(text: &'a str, filter: DecodeFilter<'_>) -> GivenText<'a> {
        let letters = LetterSet::of(text.as_bytes());
        let bits = bits_of_text(text, letters);
        let is_everyday = is_everyday(text.len(), letters);
        GivenText {
            text,
            letters,
            bits,
            is_everyday,
            is_of_format: filter.format.is_some(),
            is_pinned: filter.is_pinned(),
            prefix_len: 0,
            prefix_bits: 0.0,
        }
    }

    /// Reads the text as a number in this encoding. An empty text is refused even if the encoding
    /// writes 0 as the empty text, because an empty text is usually a line without an id.
    pub(super) fn read_as(&self, encoding: &Encoding) -> Result<u128, Rejection> {
        match encoding.read_unbounded(self.text) {
            Ok(_) if self.text.is_empty() => Err(Rejection::WrongLength),
            read => read,
        }
    }

    /// Reads the text as a number, or returns `None` if the text is not a number in this encoding.
    /// The result may also be `None` if `is_wanted` refuses the number, which saves further checks.
    pub(super) fn value_as(
        &self,
        encoding: &Encoding,
        is_wanted: impl FnOnce(u128) -> bool,
    ) -> Option<u128> {
        if self.text.is_empty() {
            None
        } else {
            encoding.value_unbounded(self.text, is_wanted)
        }
    }

    /// Reads the text as one of the format's prefixes followed by a number. Returns the number, and
    /// a copy of `self` that contains the length of the prefix and its information in bits. Returns
    /// `None` if the text has none of the prefixes.
    pub(super) fn read_behind_prefix(
        self,
        format: &Format,
    ) -> Option<Result<(u128, Self), Rejection>> {
        let read = format.prefixes.read(self.text, format.canonical())?;
        Some(read.map(|(prefix, id)| {
            (
                id,
                GivenText {
                    prefix_len: prefix.len(),
                    prefix_bits: bits_of_prefix(prefix, &format.prefixes),
                    ..self
                },
            )
        }))
    }
}
