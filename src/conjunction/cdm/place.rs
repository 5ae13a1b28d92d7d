//! Where the id of a conjunction goes in a message, and how it is written there.

use std::ops::Range;

use crate::conjunction::cdm::EVENT_ID_KEY;

/// A place for one insertion. What goes in before or behind the id is taken from its neighbours, as ranges of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// A line of its own, which ends as the line before it does.
    Line { at: usize, line_end: Range<usize> },
    /// An element, behind as much white space as its neighbour has, and with the prefix of its parent.
    Element { at: usize, gap: Range<usize>, prefix: Range<usize> },
    /// A member, behind as much white space as the one before it has, and with the same colon.
    Member { at: usize, gap: Range<usize>, colon: Range<usize> },
}

impl Place {
    /// Before which byte it goes in.
    pub(super) fn at(&self) -> usize {
        match self {
            Place::Line { at, .. } | Place::Element { at, .. } | Place::Member { at, .. } => *at,
        }
    }

    /// Appends what goes in, the id escaped where the form has characters of its own.
    pub(super) fn write(&self, source: &[u8], id: &str, out: &mut Vec<u8>) {
        let part = |range: &Range<usize>| &source[range.clone()];
        let key = EVENT_ID_KEY.as_bytes();
        match self {
            Place::Line { line_end, .. } => {
                append(out, &[b"COMMENT ", key, b" = ", id.as_bytes(), part(line_end)]);
            }
            Place::Element { gap, prefix, .. } => {
                let (gap, prefix, id) = (part(gap), part(prefix), quick_xml::escape::escape(id));
                append(out, &[gap, b"<", prefix, b"COMMENT>", key, b" = ", id.as_bytes()]);
                append(out, &[b"</", prefix, b"COMMENT>"]);
            }
            Place::Member { gap, colon, .. } => {
                append(out, &[b",", part(gap), b"\"", key, b"\"", part(colon)]);
                serde_json::to_writer(out, id).expect("a text always serializes");
            }
        }
    }
}

fn append(out: &mut Vec<u8>, parts: &[&[u8]]) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
}
