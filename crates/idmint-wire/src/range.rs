//! The response of `GET /formats/{format}/range`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use idmint_core::id::{Format, IdRange};

/// The smallest and the greatest id of a format within a time span.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeAnswer {
    /// The format.
    pub format: String,
    /// The start of the span, inclusive. It is the later one of the requested start and the first
    /// instant of the format.
    pub from: String,
    /// The end of the span, exclusive. It is the earlier one of the requested end and the end of
    /// the times that ids of the format can have.
    pub to: String,
    /// The smallest id of the span.
    pub least: SortedEncodings,
    /// The greatest id of the span.
    pub greatest: SortedEncodings,
}

/// An id as a number, and as text in each sortable encoding. In such an encoding, texts sort in the
/// same order as the ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SortedEncodings {
    /// The id in decimal digits. Do not sort it as text, because the text `10` sorts before `9`.
    pub value: String,
    /// The id in every sortable encoding.
    pub encodings: BTreeMap<String, String>,
}

impl RangeAnswer {
    /// Creates the response for a range of ids of a format.
    ///
    /// The range must lie in the years 0 to 9999, which RFC 3339 can represent.
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
