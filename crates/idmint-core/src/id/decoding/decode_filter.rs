//! A filter for decoding: the formats and encodings to try for a text, and whether to read
//! leniently.

use std::collections::BTreeSet;

use crate::id::encoding::Encoding;
use crate::id::format::{Format, FormatAlias};

/// A filter that says which formats and encodings to try, and whether to read leniently.
///
/// The filter can accept every encoding, the encodings of one format, the encodings with one name,
/// or a single encoding of one format.
///
/// ```
/// use idmint_core::id::DecodeFilter;
///
/// let only_decimal = DecodeFilter { encoding: Some("decimal"), ..DecodeFilter::default() };
/// assert_ne!(only_decimal, DecodeFilter::default());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DecodeFilter<'a> {
    /// The name of the only format to try, or `None` to try every format.
    pub format: Option<&'a str>,
    /// The name of the encodings to try, in any format, or `None` to try every encoding.
    pub encoding: Option<&'a str>,
    /// The names of the formats to try, or `None` to try every format. If `format` is set, too, only
    /// that format is tried, and only if this set contains it.
    pub among: Option<&'a BTreeSet<String>>,
    /// The permitted differences between a text and the canonical text of its id.
    pub liberty: Liberty,
}

/// The differences between a text and the canonical text of its id that decoding permits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Liberty {
    /// No difference. Only the canonical text of an encoding counts.
    #[default]
    Canonical,
    /// The canonical text, or another text that the format's specification permits: UUIDs,
    /// Crockford's base 32 and canonical hexadecimal ids may be in any letter case.
    Specified,
    /// The canonical text, or a text that differs from it only in the ways that
    /// [`DecoderAt::lenient_text`](crate::id::DecoderAt::lenient_text) lists.
    Lenient,
}

impl DecodeFilter<'_> {
    /// Returns the filter with the current name of its format, and of its encoding, if the caller
    /// gave a former name of the format such as `conjunction-v1-label`.
    pub fn with_current_names(mut self) -> Self {
        if let Some(alias) = self.format.and_then(FormatAlias::named) {
            self.format = Some(alias.format);
            self.encoding = self.encoding.map(|name| alias.current_encoding(name));
        }
        self
    }

    /// `true` if the caller named the format or the encoding. The decoder then accepts even an
    /// unlikely reading.
    pub fn is_pinned(&self) -> bool {
        self.format.is_some() || self.encoding.is_some()
    }

    /// `true` if the filter accepts every encoding of every format.
    pub(super) fn accepts_all(&self) -> bool {
        !self.is_pinned() && self.among.is_none()
    }

    /// `true` if the filter accepts this encoding of this format.
    pub(super) fn accepts(&self, format: &Format, encoding: &Encoding) -> bool {
        self.format.is_none_or(|name| name == format.name)
            && self.encoding.is_none_or(|name| name == encoding.name())
            && self.among.is_none_or(|names| names.contains(&format.name))
    }
}
