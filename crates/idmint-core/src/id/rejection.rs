//! The reasons why a text or a set of field values is not an id.

use std::fmt;

use serde::Serialize;

use crate::named;

named! {
    fn code;
    /// The reason why a text or a set of field values is not an id of a format.
    ///
    /// The variants are in the order in which the documentation lists them, and responses contain
    /// their `snake_case` codes. `Ord` follows the same order, so that output is stable. To find
    /// out which of two rejected texts is closer to an id, compare their [`Rejection::nearness`].
    ///
    /// ```
    /// use idmint_core::id::Rejection;
    ///
    /// assert_eq!(Rejection::WrongLength.code(), "wrong_length");
    /// assert_eq!(Rejection::BadPrefix.to_string(), "bad_prefix");
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, thiserror::Error)]
    #[serde(rename_all = "snake_case")]
    pub enum Rejection {
        /// The text has more or fewer characters than any text of the encoding. Hyphens between
        /// groups of characters are not counted.
        WrongLength = "wrong_length",
        /// The text has a character that the encoding never uses.
        BadAlphabet = "bad_alphabet",
        /// The text can be read as a number, but the encoding writes that number as a different
        /// text.
        NonCanonical = "non_canonical",
        /// The id, or the value of one of its fields, is outside the range that the format permits.
        OutOfRange = "out_of_range",
        /// The time of the id would be before the format's epoch.
        BeforeEpoch = "before_epoch",
        /// The time of the id would be after the last tick that the format can express.
        Overflow = "overflow",
        /// The checksum in the id does not match the data that the checksum protects.
        ChecksumMismatch = "checksum_mismatch",
        /// The two check digits at the end of the text do not match the number. Probably a letter
        /// is wrong, or two letters are swapped.
        WrongCheck = "wrong_check",
        /// The fixed prefix of the encoding is missing or wrong.
        BadPrefix = "bad_prefix",
        /// The letters are valid, but the separators between groups are missing or in the wrong
        /// positions.
        BadGrouping = "bad_grouping",
        /// The text is well formed, but contains several numbers instead of one. Hashids and Sqids
        /// permit this.
        NotSingleNumber = "not_single_number",
        /// The domain name is not ASCII.
        BadDomain = "bad_domain",
        /// No type of id in the format has the requested name or alias.
        UnassignedQualifier = "unassigned_qualifier",
        /// The UUID version, the UUID variant or another constant field of the id has a wrong
        /// value.
        BadVersion = "bad_version",
        /// The content of an event is not JSON.
        InvalidJson = "invalid_json",
        /// A JSON object has the same key twice.
        DuplicateKey = "duplicate_key",
        /// A JSON object lacks a required field.
        MissingField = "missing_field",
        /// A JSON object has a field that is not defined.
        UnknownField = "unknown_field",
        /// A field of a JSON object has the wrong JSON type.
        WrongType = "wrong_type",
        /// A timestamp in the JSON of an event does not have the notation that the format requires.
        BadTimestamp = "bad_timestamp",
        /// An integer in the JSON of an event is so large that other JSON parsers would silently
        /// round it.
        NumberNotInteroperable = "number_not_interoperable",
        /// The id belongs to another ledger than the event.
        LedgerMismatch = "ledger_mismatch",
        /// The time in the id differs from the time in the content of the event.
        TimestampMismatch = "timestamp_mismatch",
        /// The time of the event is not later than the time of the previous event in the same
        /// ledger.
        NotMonotonic = "not_monotonic",
    }
}

impl Rejection {
    /// Returns how close a text with this rejection is to an id, from 0 (another kind of text) to 7
    /// (one wrong character).
    ///
    /// If several encodings refuse a text, the decoder reports the reason with the greatest
    /// nearness, because that reason is the most helpful one.
    ///
    /// ```
    /// use idmint_core::id::Rejection;
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
