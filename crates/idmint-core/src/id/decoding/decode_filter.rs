//! A filter for decoding: the formats and encodings to try for a text, and the permitted
//! differences from the exact text of an id, such as another letter case.

use std::collections::BTreeSet;

use crate::id::encoding::Encoding;
use crate::id::format::{Format, FormatAlias};

/// A filter that says which formats and encodings to try when a text is decoded, and how far the
/// text may differ from the text that an encoding writes.
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
    /// The name of the only encoding to try in each format, or `None` to try every encoding.
    /// Several formats may have an encoding of this name.
    pub encoding: Option<&'a str>,
    /// The names of the formats to try, or `None` to try every format. If `format` is also set,
    /// only that format is tried, and only if `among` contains its name.
    pub among: Option<&'a BTreeSet<String>>,
    /// How far a given text may differ from the exact text that the encoding writes for the id,
    /// such as in letter case.
    pub liberty: Liberty,
}

/// The differences that decoding permits between a given text and the exact text that an encoding
/// writes for an id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Liberty {
    /// No difference. Only the canonical text of an encoding counts.
    #[default]
    Canonical,
    /// Only the case of letters may differ from the exact text, and only where the specification of
    /// the ids permits it: in UUIDs, in canonical texts in Crockford's base 32 except TypeIDs, and in
    /// canonical hexadecimal texts of formats that are only decoded, such as `objectid`.
    Specified,
    /// The permitted differences are those that
    /// [`DecoderAt::lenient_text`](crate::id::DecoderAt::lenient_text) lists, such as quotes around
    /// the id or missing hyphens.
    Lenient,
}

impl DecodeFilter<'_> {
    /// Replaces a former name of a format, such as `conjunction-v1-label`, by the current names of
    /// the format and of its encoding. Other names stay unchanged.
    pub fn with_current_names(mut self) -> Self {
        if let Some(alias) = self.format.and_then(FormatAlias::named) {
            self.format = Some(alias.format);
            self.encoding = self.encoding.map(|name| alias.current_encoding(name));
        }
        self
    }

    /// `true` if the caller named the format or the encoding. A text then counts as an id even if
    /// it is more likely a word or an everyday number.
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
