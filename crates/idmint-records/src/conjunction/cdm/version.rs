//! The versions of Conjunction Data Messages, and where the conjunction id belongs in each of them.

use serde::Deserialize;

use super::error::quote;

/// The maximum length, in bytes, of a version number that is accepted.
const LEN_MAX: usize = 8;

/// The version of a CCSDS 508.0 message.
///
/// Source: version 1.0 is CCSDS 508.0-B-1. For version 2.0, only the draft CCSDS 508.0-P-1.1 was
/// available.
///
/// ```
/// use idmint_records::conjunction::cdm::CdmVersion;
///
/// assert_eq!(CdmVersion::of("2.0"), Some(CdmVersion::V2));
/// assert_eq!(CdmVersion::of("2.1"), Some(CdmVersion::Unknown2("2.1".to_owned())));
/// assert_eq!(CdmVersion::of("3.0"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CdmVersion {
    /// Version 1.0.
    V1,
    /// Version 2.0.
    V2,
    /// An unknown version of the message format, whose number begins with `2.`. Its messages are
    /// read as if they had version 2.0. The value is the version number.
    Unknown2(String),
}

impl CdmVersion {
    /// Parses a version number. Returns `None` if messages of this version are not supported.
    pub fn of(text: &str) -> Option<CdmVersion> {
        match text {
            "1.0" => Some(CdmVersion::V1),
            "2.0" => Some(CdmVersion::V2),
            _ => {
                let minor = text.strip_prefix("2.")?;
                let is_version = !minor.is_empty()
                    && text.len() <= LEN_MAX
                    && minor.bytes().all(|byte| byte.is_ascii_digit());
                is_version.then(|| CdmVersion::Unknown2(text.to_owned()))
            }
        }
    }

    /// Returns the default way to write a conjunction's id into a message of this version.
    pub fn note(&self) -> NoteForm {
        match self {
            CdmVersion::V1 => NoteForm::Comment,
            CdmVersion::V2 | CdmVersion::Unknown2(_) => NoteForm::ConjunctionId,
        }
    }

    /// Returns `true` if this message version is known, `false` if it is only read like 2.0.
    pub fn is_known(&self) -> bool {
        !matches!(self, CdmVersion::Unknown2(_))
    }

    /// Returns a warning for the sender of a message with this version, or `None` if the version is
    /// known. The warning has fewer than 100 bytes, and only visible ASCII characters and spaces.
    pub fn warning(&self) -> Option<String> {
        match self {
            CdmVersion::V1 | CdmVersion::V2 => None,
            CdmVersion::Unknown2(version) => Some(format!(
                "CCSDS_CDM_VERS {version} is not known; the message was read as 2.0"
            )),
        }
    }
}

/// Returns the error message for a version that is not supported.
pub(super) fn unknown_version(text: &str) -> String {
    format!("{} is not a known version; use 1.0 or 2.0", quote(text))
}

/// The way in which the id of a conjunction is written into a CCSDS 508.0 message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteForm {
    /// The id is written as a comment in the header of the message, which is possible in every
    /// version.
    Comment,
    /// The id is written as the keyword CONJUNCTION_ID, which exists since version 2.0. The keyword
    /// is in the relative metadata, the section after the header.
    ConjunctionId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_known_or_begins_with_two_or_is_not_read() {
        for text in [
            "2.",
            "2",
            "2.x",
            "2.0.1",
            "2.0000000",
            " 2.0",
            "1",
            "1.1",
            "3.0",
            "20",
            "",
        ] {
            assert_eq!(CdmVersion::of(text), None, "{text}");
        }
        for text in ["2.1", "2.00", "2.999999"] {
            let version = CdmVersion::of(text).expect("begins with 2");
            assert_eq!(
                (version.note(), version.clone()),
                (NoteForm::ConjunctionId, CdmVersion::Unknown2(text.into()))
            );
            let warning = version.warning().expect("it is not known");
            assert!(
                warning.len() < 100
                    && warning
                        .bytes()
                        .all(|byte| byte == b' ' || byte.is_ascii_graphic())
            );
        }
        assert_eq!(
            (CdmVersion::V1.note(), CdmVersion::V1.warning()),
            (NoteForm::Comment, None)
        );
        assert_eq!(
            (CdmVersion::V2.note(), CdmVersion::V2.warning()),
            (NoteForm::ConjunctionId, None)
        );
    }
}
