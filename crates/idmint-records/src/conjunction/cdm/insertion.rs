//! The places at which conjunction ids are inserted into messages, and the text that is inserted
//! there.

use std::ops::Range;

use super::version::NoteForm;
use crate::conjunction::sent_report::{CONJUNCTION_ID_KEY, EVENT_ID_KEY};

/// A place in a Conjunction Data Message, and how to insert the conjunction id there. White space,
/// line ends and prefixes are copied from other parts of the message, given as ranges of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Insertion {
    /// The id is inserted as a separate line, with the same line end as the line next to it.
    Line {
        note: NoteForm,
        at: usize,
        line_end: Range<usize>,
    },
    /// The id is inserted as an XML element, with the same white space as the element next to it
    /// and the same prefix as its parent.
    Element {
        note: NoteForm,
        at: usize,
        gap: Range<usize>,
        prefix: Range<usize>,
    },
    /// The id is inserted as a JSON member, with the same white space and colon as the member
    /// before it.
    Member {
        at: usize,
        gap: Range<usize>,
        colon: Range<usize>,
    },
    /// The id is inserted into a row of CSV. It becomes a new cell after `separator`, or the
    /// content of an existing empty cell if `separator` is `None`.
    Cell {
        at: usize,
        separator: Option<u8>,
        is_quoted: bool,
        is_inside_quotes: bool,
    },
}

impl Insertion {
    /// Returns the byte offset at which the text is inserted.
    pub(super) fn at(&self) -> usize {
        match self {
            Insertion::Line { at, .. }
            | Insertion::Element { at, .. }
            | Insertion::Member { at, .. }
            | Insertion::Cell { at, .. } => *at,
        }
    }

    /// Appends the line, XML element, JSON member or CSV cell with the conjunction id `id` to
    /// `out`. The id is escaped as XML, JSON or CSV requires.
    pub(super) fn write(&self, source: &[u8], id: &str, out: &mut Vec<u8>) {
        let part = |range: &Range<usize>| &source[range.clone()];
        let key = EVENT_ID_KEY.as_bytes();
        match self {
            Insertion::Line { note, line_end, .. } => {
                let keyword = match note {
                    NoteForm::Comment => &[b"COMMENT ", key][..],
                    NoteForm::ConjunctionId => &[CONJUNCTION_ID_KEY.as_bytes()],
                };
                append(out, keyword);
                append(out, &[b" = ", id.as_bytes(), part(line_end)]);
            }
            Insertion::Element {
                note, gap, prefix, ..
            } => {
                let (gap, prefix, id) = (part(gap), part(prefix), quick_xml::escape::escape(id));
                let (name, content) = match note {
                    NoteForm::Comment => ("COMMENT", &[key, b" = ", id.as_bytes()][..]),
                    NoteForm::ConjunctionId => (CONJUNCTION_ID_KEY, &[id.as_bytes()][..]),
                };
                append(out, &[gap, b"<", prefix, name.as_bytes(), b">"]);
                append(out, content);
                append(out, &[b"</", prefix, name.as_bytes(), b">"]);
            }
            Insertion::Member { gap, colon, .. } => {
                append(out, &[b",", part(gap), b"\"", key, b"\"", part(colon)]);
                serde_json::to_writer(out, id).expect("a text always serializes");
            }
            Insertion::Cell {
                separator,
                is_quoted,
                is_inside_quotes,
                ..
            } => {
                let is_special = id.contains([',', ';', '\t', '|', '"', '\r', '\n']);
                let quote: &[u8] = match (*is_quoted || is_special) && !is_inside_quotes {
                    true => b"\"",
                    false => b"",
                };
                let id = id.replace('"', "\"\"");
                out.extend(separator);
                append(out, &[quote, id.as_bytes(), quote]);
            }
        }
    }
}

fn append(out: &mut Vec<u8>, parts: &[&[u8]]) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
}
