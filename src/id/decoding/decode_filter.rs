//! Which formats and encodings a text is tried as, and how strictly.

use std::collections::BTreeSet;

use crate::id::encoding::Encoding;
use crate::id::format::Format;

/// Which formats and encodings to try: all, those of one format, those of one name, or one encoding of one format; and
/// whether liberties of writing are read.
///
/// ```
/// use idmint::id::DecodeFilter;
///
/// let only_decimal = DecodeFilter { encoding: Some("decimal"), ..DecodeFilter::default() };
/// assert_ne!(only_decimal, DecodeFilter::default());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DecodeFilter<'a> {
    /// Only the format of this name.
    pub format: Option<&'a str>,
    /// Only encodings of this name.
    pub encoding: Option<&'a str>,
    /// Only formats of these names.
    pub among: Option<&'a BTreeSet<String>>,
    /// Whether a text that is hardly an id as it is counts as the one that somebody meant: see
    /// [`DecoderAt::lenient_text`](crate::id::DecoderAt::lenient_text).
    pub lenient: bool,
}

impl DecodeFilter<'_> {
    /// Whether the caller has said what the text is, so that any reading of it will do.
    pub fn is_pinned(&self) -> bool {
        self.format.is_some() || self.encoding.is_some()
    }

    /// Whether every encoding of every format is to be tried.
    pub(super) fn accepts_all(&self) -> bool {
        !self.is_pinned() && self.among.is_none()
    }

    /// Whether this encoding of this format is to be tried.
    pub(super) fn accepts(&self, format: &Format, encoding: &Encoding) -> bool {
        self.format.is_none_or(|name| name == format.name)
            && self.encoding.is_none_or(|name| name == encoding.name())
            && self.among.is_none_or(|names| names.contains(&format.name))
    }
}
