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
    pub least: SortedEncodings,
    /// The greatest id.
    pub greatest: SortedEncodings,
}

/// An id as a number, and in every encoding whose texts sort like the ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SortedEncodings {
    /// The number, in decimal digits, which sort as a number and not as text.
    pub value: String,
    /// Every encoding whose texts sort like the ids.
    pub encodings: BTreeMap<String, String>,
}

impl RangeAnswer {
    /// The answer for this range of a format.
    ///
    /// Bounds: instants that RFC 3339 can write.
    pub fn new(format: &Format, range: &IdRange) -> RangeAnswer {
        RangeAnswer {
            format: format.name.clone(),
            from: range.from.to_exact_text().unwrap_or_default(),
            to: range.to.to_exact_text().unwrap_or_default(),
            least: SortedEncodings::new(format, range.least),
            greatest: SortedEncodings::new(format, range.greatest),
        }
    }
}

impl SortedEncodings {
    fn new(format: &Format, id: u128) -> SortedEncodings {
        let sortable = format
            .encodings
            .iter()
            .filter(|encoding| encoding.is_sortable());
        SortedEncodings {
            value: id.to_string(),
            encodings: sortable
                .map(|encoding| (encoding.name().to_owned(), encoding.to_text(id)))
                .collect(),
        }
    }
}
