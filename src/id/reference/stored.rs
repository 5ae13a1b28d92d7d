//! What of an id a column of a database holds.

use crate::id::encoding::Encoding;

/// What a column of a database holds of an id: its number, a UUID, its bytes, or its text.
#[derive(Debug, Clone, Copy)]
pub enum Stored<'a> {
    /// The number, in 64 bits with a sign.
    Number,
    /// A UUID in a type of its own, bound in this encoding.
    Uuid(&'a Encoding),
    /// The number in big-endian bytes, this many.
    Bytes(usize),
    /// The text in this encoding.
    Text(&'a Encoding),
}

impl Stored<'_> {
    /// Its name in answers.
    pub const fn name(self) -> &'static str {
        match self {
            Stored::Number => "number",
            Stored::Uuid(_) => "uuid",
            Stored::Bytes(_) => "bytes",
            Stored::Text(_) => "text",
        }
    }

    /// Whether the column sorts like the ids.
    pub fn is_sorted(self) -> bool {
        match self {
            Stored::Number | Stored::Uuid(_) | Stored::Bytes(_) => true,
            Stored::Text(encoding) => encoding.is_sortable(),
        }
    }
}
