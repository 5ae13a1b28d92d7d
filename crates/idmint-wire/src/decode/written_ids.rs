//! Remembers where the texts of ids are in a response, so that a repeated text is copied instead of
//! encoded again.

use std::ops::Range;

use super::json_text::{JsonText, is_plain};
use idmint_core::id::Encoding;

/// The last id that each group of encodings has written. All encodings in a group write an id as
/// the same text, even if they belong to different formats.
///
/// [`Match::encoding_at`](idmint_core::id::Match::encoding_at) returns the index of a group.
#[derive(Debug, Default)]
pub(super) struct WrittenIds(Vec<Option<WrittenId>>);

/// The last id that a group of encodings has written, and the position of its text in the response,
/// including the quotes.
#[derive(Debug, Clone)]
struct WrittenId {
    id: u128,
    text: Range<usize>,
}

impl WrittenIds {
    /// Writes the text of an id in quotes. `number` is the index of the encoding's group, whose
    /// encodings all write an id as the same text. If this group wrote the same id last, its text
    /// is copied. [`Match::encoding_at`](idmint_core::id::Match::encoding_at) returns `number` and
    /// `encoding`.
    pub(super) fn write(
        &mut self,
        number: usize,
        encoding: &Encoding,
        id: u128,
        JsonText(out): &mut JsonText<'_>,
    ) {
        if self.0.len() <= number {
            self.0.resize(number + 1, None);
        }
        if let Some(written) = self.0[number].as_ref().filter(|written| written.id == id) {
            return out.extend_from_within(written.text.clone());
        }
        let start = out.len();
        out.push(b'"');
        out.resize(start + 1 + encoding.len(id), b'"');
        encoding.write(id, &mut out[start + 1..]);
        if is_plain(&out[start + 1..]) {
            out.push(b'"');
        } else {
            let text = String::from_utf8(out.split_off(start + 1)).expect("encodings are ASCII");
            out.truncate(start);
            JsonText(out).string(&text);
        }
        self.0[number] = Some(WrittenId {
            id,
            text: start..out.len(),
        });
    }
}
