//! The forms in which a Conjunction Data Message can be written, such as KVN and XML.

use super::lines::without_bom;
use super::transcoded::first_line_of_utf16;
use super::{csv, space_track};

/// The form in which a Conjunction Data Message is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CdmForm {
    /// KVN (keyword = value notation), with one line for each keyword. It is defined in CCSDS
    /// 508.0-B-1, section 3.
    Kvn,
    /// XML with the same values as keyword = value notation (CCSDS 508.0-B-1, section 4).
    Xml,
    /// JSON with the member names of space-track.org's record type `cdm` or `cdm_public`, or with
    /// the keywords of CCSDS 508.0.
    SpaceTrack,
    /// CSV with the column names of space-track.org or SOCRATES in its first line.
    Csv,
}

impl CdmForm {
    /// Determines the form of a document by its beginning. XML begins with `<`, and JSON with a
    /// bracket or brace. The first line of CSV has a separator and no `=`. Any other document
    /// counts as KVN.
    ///
    /// ```
    /// use idmint_records::conjunction::cdm::CdmForm;
    ///
    /// assert_eq!(CdmForm::of(b"CCSDS_CDM_VERS = 1.0\n"), CdmForm::Kvn);
    /// assert_eq!(CdmForm::of(b"\n<cdm version=\"1.0\">"), CdmForm::Xml);
    /// assert_eq!(CdmForm::of(b"TCA,SAT_1_ID,SAT_2_ID\n"), CdmForm::Csv);
    /// assert_eq!(CdmForm::of(b"[{\"TCA\":\"2024-02-01T00:00:00\"}]"), CdmForm::SpaceTrack);
    /// ```
    pub fn of(document: &[u8]) -> CdmForm {
        let of_utf16 = first_line_of_utf16(document);
        let text = match &of_utf16 {
            Some(first_line) => first_line.as_bytes(),
            None => without_bom(document).trim_ascii_start(),
        };
        match text.first() {
            Some(b'<') => CdmForm::Xml,
            Some(b'{' | b'[') => CdmForm::SpaceTrack,
            _ if csv::has_heading(text) => CdmForm::Csv,
            _ => CdmForm::Kvn,
        }
    }

    /// Returns `true` if a JSON text contains messages of space-track.org. This is assumed if the
    /// object, or the first object of the list, has a member name in upper case other than
    /// `CONJUNCTION_EVENT_ID`, a list `data`, or an object `relative_metadata`.
    ///
    /// Returns `false` for other JSON, and for a text that is not JSON.
    pub fn is_space_track(json: &[u8]) -> bool {
        space_track::has_their_names(json)
    }
}
