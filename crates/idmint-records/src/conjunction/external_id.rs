//! The ids that other organizations give to conjunctions. They are stored with the conjunction, so
//! that the conjunction can be found by each of these ids.

use std::fmt;

/// The id that another originator has given to a conjunction. It is the value of `CONJUNCTION_ID`
/// in a message of that originator.
///
/// The id has 1 to [`ExternalId::LEN_MAX`] characters. idmint does not interpret it, and only
/// compares it as a whole.
///
/// ```
/// use idmint_records::conjunction::ExternalId;
///
/// assert_eq!(ExternalId::new("2012-018D-1997-030E").expect("an id").as_str(), "2012-018D-1997-030E");
/// assert_eq!((ExternalId::new(""), ExternalId::new(&"0".repeat(255))), (None, None));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExternalId(String);

impl ExternalId {
    /// The maximum number of characters of an external id. It is also the maximum length of a line
    /// in a Conjunction Data Message (CCSDS 508.0-B-1, 6.3.1.2).
    pub const LEN_MAX: usize = 254;

    /// The maximum number of external ids that are stored for a conjunction. Further ids are not
    /// stored.
    pub const COUNT_MAX: usize = 16;

    /// Creates an external id. Returns `None` if the text is empty or has more than
    /// [`ExternalId::LEN_MAX`] characters.
    pub fn new(text: &str) -> Option<ExternalId> {
        (1..=ExternalId::LEN_MAX)
            .contains(&text.chars().count())
            .then(|| ExternalId(text.to_owned()))
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ExternalId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}
