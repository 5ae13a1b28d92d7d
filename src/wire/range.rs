//! `GET /formats/{format}/range`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{Format, IdRange};

/// The smallest and the greatest id of a time span.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeAnswer {
    /// The format.
    pub format: String,
    /// Where the span begins: as asked for, or where the format begins.
    pub from: String,
    /// Where it ends, exclusive: as asked for, or where the format ends.
    pub to: String,
    /// The smallest id.
    pub least: SortedSpellings,
    /// The greatest id.
    pub greatest: SortedSpellings,
}

/// An id in everything that sorts like the ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SortedSpellings {
    /// The number, in decimal digits, which sort as a number and not as text.
    pub value: String,
    /// Every spelling whose texts sort.
    pub encodings: BTreeMap<String, String>,
}

impl RangeAnswer {
    /// What is answered for this range of a format.
    ///
    /// Bounds: instants that RFC 3339 can write.
    pub fn new(format: &Format, range: &IdRange) -> RangeAnswer {
        RangeAnswer {
            format: format.name.clone(),
            from: range.from.to_exact_text().unwrap_or_default(),
            to: range.to.to_exact_text().unwrap_or_default(),
            least: SortedSpellings::new(format, range.least),
            greatest: SortedSpellings::new(format, range.greatest),
        }
    }
}

impl SortedSpellings {
    fn new(format: &Format, id: u128) -> SortedSpellings {
        let sortable = format.encodings.iter().filter(|encoding| encoding.is_sortable());
        SortedSpellings {
            value: id.to_string(),
            encodings: sortable.map(|encoding| (encoding.name().to_owned(), encoding.to_text(id))).collect(),
        }
    }
}
