//! Remembers where the texts of ids are in a response, so that a text that occurs again is copied
//! instead of being encoded again.

use std::ops::Range;

use super::json_text::{JsonText, is_plain};
use idmint_core::id::Encoding;

/// The id that was written last in each group of encodings. Encodings in one group write each id as
/// the same text, even if their formats differ.
///
/// [`Match::encoding_at`](idmint_core::id::Match::encoding_at) returns the index of the group.
#[derive(Debug, Default)]
pub(super) struct WrittenIds(Vec<Option<WrittenId>>);

/// The id that was last written by a group of encodings, which write each id as the same text, and
/// the position of that text in the response, including the quotes around it.
#[derive(Debug, Clone)]
struct WrittenId {
    id: u128,
    text: Range<usize>,
}

impl WrittenIds {
    /// Writes the text of an id in quotes. Encodings that write each id as the same text form a
    /// group, with the index `number`. If this group wrote the same id last, its text is copied.
    /// [`Match::encoding_at`](idmint_core::id::Match::encoding_at) returns `number` and `encoding`.
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
