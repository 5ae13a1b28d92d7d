//! The response of `GET /formats/{format}/range`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use idmint_core::id::{Format, IdRange};

/// The smallest and the greatest id of a format that belong to a time span.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeAnswer {
    /// The format.
    pub format: String,
    /// The start of the span, inclusive. It is the requested instant or the first instant of the
    /// format, whichever is later.
    pub from: String,
    /// The end of the span, exclusive. It is the requested instant or the end of the times that ids
    /// of the format can have, whichever is earlier.
    pub to: String,
    /// The smallest id of the span.
    pub least: SortedEncodings,
    /// The greatest id of the span.
    pub greatest: SortedEncodings,
}

/// An id as a number, and as text in each sortable encoding. The texts of such an encoding sort in
/// the same order as the ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SortedEncodings {
    /// The id as a number in decimal digits. Compare it as a number: as text, `10` sorts before
    /// `9`.
    pub value: String,
    /// The id in every sortable encoding.
    pub encodings: BTreeMap<String, String>,
}

impl RangeAnswer {
    /// Creates the response for a range of ids of a format.
    ///
    /// The instants of the range must be in the years 0 to 9999, which RFC 3339 can represent.
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
