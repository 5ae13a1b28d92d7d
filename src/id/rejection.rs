//! Why a text, or a set of fields, is not an id.

use std::fmt;

use serde::Serialize;

/// Why a text or a set of fields is not an id of some format.
///
/// Shape: one variant per reason, in the order of the published list; callers see the `snake_case` code.
/// `Ord` is that order, for stable output. To ask which of two readings failed later, compare [`Rejection::nearness`].
///
/// ```
/// use idmint::id::Rejection;
///
/// assert_eq!(Rejection::WrongLength.code(), "wrong_length");
/// assert_eq!(Rejection::BadPrefix.to_string(), "bad_prefix");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Rejection {
    /// More or fewer characters than any id of the format has.
    WrongLength,
    /// A character the encoding never uses.
    BadAlphabet,
    /// It reads as a number whose text is another one.
    NonCanonical,
    /// A number above the greatest one its place holds.
    OutOfRange,
    /// A time before the format's epoch.
    BeforeEpoch,
    /// A time past the format's last tick.
    Overflow,
    /// The checksum belongs to another content.
    ChecksumMismatch,
    /// The check digits belong to another number: a letter is wrong, or two have changed places.
    WrongCheck,
    /// The fixed beginning is missing or another one.
    BadPrefix,
    /// The letters are there, the separators are not where they belong.
    BadGrouping,
    /// A well-formed text that carries several numbers.
    NotSingleNumber,
    /// A domain that is not ASCII.
    BadDomain,
    /// A qualifier code or name nobody has assigned.
    UnassignedQualifier,
    /// Another version or variant of the layout.
    BadVersion,
    /// Not JSON.
    InvalidJson,
    /// One JSON object names a key twice.
    DuplicateKey,
    /// A required field is missing.
    MissingField,
    /// A field nobody has defined.
    UnknownField,
    /// A field of another JSON type.
    WrongType,
    /// A timestamp in another shape than the format's.
    BadTimestamp,
    /// An integer that other JSON readers would change silently.
    NumberNotInteroperable,
    /// The id belongs to another ledger.
    LedgerMismatch,
    /// The id and the content disagree about the time.
    TimestampMismatch,
    /// The time does not lie above its predecessor's.
    NotMonotonic,
}

impl Rejection {
    /// The published code of the reason.
    pub fn code(self) -> &'static str {
        match self {
            Self::WrongLength => "wrong_length",
            Self::BadAlphabet => "bad_alphabet",
            Self::NonCanonical => "non_canonical",
            Self::OutOfRange => "out_of_range",
            Self::BeforeEpoch => "before_epoch",
            Self::Overflow => "overflow",
            Self::ChecksumMismatch => "checksum_mismatch",
            Self::WrongCheck => "wrong_check",
            Self::BadPrefix => "bad_prefix",
            Self::BadGrouping => "bad_grouping",
            Self::NotSingleNumber => "not_single_number",
            Self::BadDomain => "bad_domain",
            Self::UnassignedQualifier => "unassigned_qualifier",
            Self::BadVersion => "bad_version",
            Self::InvalidJson => "invalid_json",
            Self::DuplicateKey => "duplicate_key",
            Self::MissingField => "missing_field",
            Self::UnknownField => "unknown_field",
            Self::WrongType => "wrong_type",
            Self::BadTimestamp => "bad_timestamp",
            Self::NumberNotInteroperable => "number_not_interoperable",
            Self::LedgerMismatch => "ledger_mismatch",
            Self::TimestampMismatch => "timestamp_mismatch",
            Self::NotMonotonic => "not_monotonic",
        }
    }

    /// How near the text came to being an id: 0 (another kind of text) to 7 (one character off).
    ///
    /// Two readings of one text are compared by it, to report the reason that helps most.
    ///
    /// ```
    /// use idmint::id::Rejection;
    ///
    /// assert!(Rejection::ChecksumMismatch.nearness() > Rejection::WrongLength.nearness());
    /// ```
    pub fn nearness(self) -> u8 {
        match self {
            Self::BadPrefix | Self::InvalidJson => 0,
            Self::WrongLength | Self::WrongType => 1,
            Self::BadAlphabet | Self::DuplicateKey | Self::MissingField | Self::UnknownField => 2,
            Self::BadGrouping | Self::BadTimestamp | Self::NumberNotInteroperable => 3,
            Self::NotSingleNumber | Self::NonCanonical => 4,
            Self::OutOfRange | Self::BeforeEpoch | Self::Overflow | Self::BadDomain => 5,
            Self::BadVersion | Self::UnassignedQualifier | Self::LedgerMismatch => 6,
            Self::ChecksumMismatch
            | Self::WrongCheck
            | Self::TimestampMismatch
            | Self::NotMonotonic => 7,
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_what_json_and_display_show() {
        for rejection in [
            Rejection::NotSingleNumber,
            Rejection::NumberNotInteroperable,
            Rejection::BadVersion,
        ] {
            assert_eq!(rejection.to_string(), rejection.code());
            assert_eq!(serde_json::json!(rejection), rejection.code());
        }
    }

    #[test]
    fn a_later_failure_is_nearer() {
        let in_order = [
            Rejection::BadPrefix,
            Rejection::WrongLength,
            Rejection::BadAlphabet,
            Rejection::BadGrouping,
            Rejection::NonCanonical,
            Rejection::OutOfRange,
            Rejection::ChecksumMismatch,
        ];
        assert!(in_order.is_sorted_by(|far, near| far.nearness() < near.nearness()));
    }
}
