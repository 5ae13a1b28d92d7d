//! The forms in which a message can be written.

use super::lines::without_bom;
use super::space_track;

/// The form in which a Conjunction Data Message is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CdmForm {
    /// KVN, with one line for each keyword: CCSDS 508.0-B-1, section 3.
    Kvn,
    /// XML, with the same content as KVN: CCSDS 508.0-B-1, section 4.
    Xml,
    /// The JSON of space-track.org, with the member names of its class `cdm` or `cdm_public`.
    SpaceTrack,
}

impl CdmForm {
    /// Determines the form of a document by its first character. XML begins with `<`, and JSON with
    /// a bracket or brace. Any other document counts as KVN.
    ///
    /// ```
    /// use idmint_records::conjunction::cdm::CdmForm;
    ///
    /// assert_eq!(CdmForm::of(b"CCSDS_CDM_VERS = 1.0\n"), CdmForm::Kvn);
    /// assert_eq!(CdmForm::of(b"\n<cdm version=\"1.0\">"), CdmForm::Xml);
    /// assert_eq!(CdmForm::of(b"[{\"TCA\":\"2024-02-01T00:00:00\"}]"), CdmForm::SpaceTrack);
    /// ```
    pub fn of(document: &[u8]) -> CdmForm {
        // This is a byte order mark of UTF-16. Only XML documents can be in UTF-16.
        if document.starts_with(&[0xff, 0xfe]) || document.starts_with(&[0xfe, 0xff]) {
            return CdmForm::Xml;
        }
        match without_bom(document).trim_ascii_start().first() {
            Some(b'<') => CdmForm::Xml,
            Some(b'{' | b'[') => CdmForm::SpaceTrack,
            _ => CdmForm::Kvn,
        }
    }

    /// Returns `true` if a JSON text contains messages of space-track.org. This is the case if the
    /// object, or the first object of the list, has a member name of space-track.org.
    ///
    /// Returns `false` for other JSON, and for a text that is not JSON.
    pub fn is_space_track(json: &[u8]) -> bool {
        space_track::has_their_names(json)
    }
}
