//! Ids that other originators have given to conjunctions: kept beside the anchor, so that a conjunction is found by them.

use std::fmt;

/// An id of another originator, as its messages say it in `CONJUNCTION_ID`.
///
/// Shape: 1 to [`ExternalId::LEN_MAX`] characters. Nothing is read from it: it is compared whole.
///
/// ```
/// use idmint::conjunction::ExternalId;
///
/// assert_eq!(ExternalId::new("2012-018D-1997-030E").expect("an id").as_str(), "2012-018D-1997-030E");
/// assert_eq!((ExternalId::new(""), ExternalId::new(&"0".repeat(255))), (None, None));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExternalId(String);

impl ExternalId {
    /// The most characters: as many as a line of a message has (CCSDS 508.0-B-1, 6.3.1.2).
    pub const LEN_MAX: usize = 254;

    /// How many are kept beside one anchor, the first that came.
    pub const COUNT_MAX: usize = 16;

    /// A text as an id; `None` where it is empty or too long.
    pub fn new(text: &str) -> Option<ExternalId> {
        (1..=ExternalId::LEN_MAX)
            .contains(&text.chars().count())
            .then(|| ExternalId(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ExternalId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}
