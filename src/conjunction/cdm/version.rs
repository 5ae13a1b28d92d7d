//! Versions of Conjunction Data Messages, and how a message of each says which conjunction it is about.

use serde::Deserialize;

use super::error::quote;

/// The longest version of which a message is read, in bytes.
const LEN_MAX: usize = 8;

/// The version of a message of CCSDS 508.0.
///
/// Source: 1.0 is CCSDS 508.0-B-1; 2.0 was read in its draft alone, CCSDS 508.0-P-1.1.
///
/// ```
/// use idmint::conjunction::cdm::CdmVersion;
///
/// assert_eq!(CdmVersion::of("2.0"), Some(CdmVersion::V2));
/// assert_eq!(CdmVersion::of("2.1"), Some(CdmVersion::Unknown2("2.1".to_owned())));
/// assert_eq!(CdmVersion::of("3.0"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CdmVersion {
    /// 1.0.
    V1,
    /// 2.0.
    V2,
    /// Another one that begins with `2.`, which is read as 2.0.
    Unknown2(String),
}

impl CdmVersion {
    /// The version of that text; `None` if no message of it is read.
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

    /// Where a message of this version has the id of its conjunction, unless the configuration says another place.
    pub fn note(&self) -> NoteForm {
        match self {
            CdmVersion::V1 => NoteForm::Comment,
            CdmVersion::V2 | CdmVersion::Unknown2(_) => NoteForm::ConjunctionId,
        }
    }

    /// Whether it is read as it was written down, and not as another one.
    pub fn is_known(&self) -> bool {
        !matches!(self, CdmVersion::Unknown2(_))
    }

    /// What the sender of the message should know of its version, in less than 100 bytes of visible ASCII and spaces.
    pub fn warning(&self) -> Option<String> {
        match self {
            CdmVersion::V1 | CdmVersion::V2 => None,
            CdmVersion::Unknown2(version) => Some(format!(
                "CCSDS_CDM_VERS {version} is not known; the message was read as 2.0"
            )),
        }
    }
}

/// What is said of a version that is not read.
pub(super) fn unknown_version(text: &str) -> String {
    format!(
        "{} is a version that is not known, 1.0 and 2.0 are",
        quote(text)
    )
}

/// How the id of a conjunction is noted in a message of CCSDS 508.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteForm {
    /// In a comment of the header, which every version may have.
    Comment,
    /// As the keyword CONJUNCTION_ID of the relative metadata, which 2.0 has.
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
