//! The forms in which a message is written.

use super::lines::without_bom;
use super::space_track;

/// The form of a Conjunction Data Message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CdmForm {
    /// A line for each keyword: CCSDS 508.0-B-1, section 3.
    Kvn,
    /// The same as XML: CCSDS 508.0-B-1, section 4.
    Xml,
    /// The JSON of space-track.org, with the names of its class `cdm` or of its class `cdm_public`.
    SpaceTrack,
}

impl CdmForm {
    /// The form of a document by its first character: XML begins with `<`, JSON with a bracket, and the rest is KVN.
    ///
    /// ```
    /// use idmint::conjunction::cdm::CdmForm;
    ///
    /// assert_eq!(CdmForm::of(b"CCSDS_CDM_VERS = 1.0\n"), CdmForm::Kvn);
    /// assert_eq!(CdmForm::of(b"\n<cdm version=\"1.0\">"), CdmForm::Xml);
    /// assert_eq!(CdmForm::of(b"[{\"TCA\":\"2024-02-01T00:00:00\"}]"), CdmForm::SpaceTrack);
    /// ```
    pub fn of(document: &[u8]) -> CdmForm {
        // The byte order marks of UTF-16, which only XML may have.
        if document.starts_with(&[0xff, 0xfe]) || document.starts_with(&[0xfe, 0xff]) {
            return CdmForm::Xml;
        }
        match without_bom(document).trim_ascii_start().first() {
            Some(b'<') => CdmForm::Xml,
            Some(b'{' | b'[') => CdmForm::SpaceTrack,
            _ => CdmForm::Kvn,
        }
    }

    /// Whether a JSON text holds messages of space-track.org: whether its object, or the first of its list, has a member
    /// with a name of theirs. False for other JSON, and for what is no JSON.
    pub fn is_space_track(json: &[u8]) -> bool {
        space_track::has_their_names(json)
    }
}
