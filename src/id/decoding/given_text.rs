//! A text that is to be read, with what is known of it whatever it is read as.

use super::evidence::{bits_of_prefix, bits_of_text, is_everyday};
use crate::id::encoding::{Encoding, LetterSet};
use crate::id::format::Format;
use crate::id::rejection::Rejection;

/// A text, with its letters and the bits of a random text like it.
#[derive(Debug, Clone, Copy)]
pub(super) struct GivenText<'a> {
    pub(super) text: &'a str,
    pub(super) letters: LetterSet,
    pub(super) bits: f64,
    pub(super) is_everyday: bool,
    /// Whether a format was asked for.
    pub(super) is_of_format: bool,
    /// How long the prefix is that it is read behind, and the bits that this prefix has among others.
    pub(super) prefix_len: usize,
    pub(super) prefix_bits: f64,
}

impl<'a> GivenText<'a> {
    pub(super) fn new(text: &'a str, is_of_format: bool) -> GivenText<'a> {
        let letters = LetterSet::of(text.as_bytes());
        let (bits, is_everyday) = (
            bits_of_text(text, letters),
            is_everyday(text.len(), letters),
        );
        GivenText {
            text,
            letters,
            bits,
            is_everyday,
            is_of_format,
            prefix_len: 0,
            prefix_bits: 0.0,
        }
    }

    /// The number that it is in this encoding. The empty text is no id, even where zero is written so: it is what is left of
    /// a line that has none.
    pub(super) fn read_as(&self, encoding: &Encoding) -> Result<u128, Rejection> {
        match encoding.read_unbounded(self.text) {
            Ok(_) if self.text.is_empty() => Err(Rejection::WrongLength),
            read => read,
        }
    }

    /// The same, without the reason where there is none; of a number that is not wanted it may be `None`, too.
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

    /// The number behind one of the prefixes of this format, and the text as it is read then; `None` if it begins with none.
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
