//! Conjunction Data Messages.

use idmint::conjunction::cdm::{CdmForm, Document};

pub(super) fn read_kvn(bytes: &[u8]) {
    read(CdmForm::Kvn, bytes);
}

pub(super) fn read_xml(bytes: &[u8]) {
    read(CdmForm::Xml, bytes);
}

pub(super) fn read_space_track(bytes: &[u8]) {
    read(CdmForm::SpaceTrack, bytes);
}

/// A document that is read is written back with ids, which are then found in it beside the same reports; given ids again,
/// it stays as it is.
fn read(form: CdmForm, bytes: &[u8]) {
    let Ok(document) = Document::read(form, bytes) else { return };
    let ids = vec!["zwwqlzz-pjjmxmd-lkpvwq"; document.messages().len()];
    assert!(!ids.is_empty());
    let annotated = document.annotate(&ids);
    let again = Document::read(form, &annotated[..]).unwrap();
    assert_eq!(again.messages().len(), ids.len());
    for (message, before) in again.messages().iter().zip(document.messages()) {
        assert_eq!(message.report(), before.report());
        assert!(message.existing_id().is_some());
    }
    assert_eq!(again.annotate(&ids), annotated);
}
