//! Fuzzes Conjunction Data Messages.

use idmint_records::conjunction::SentReport;
use idmint_records::conjunction::cdm::{CdmForm, Document, Message};

const ID: &str = "zwwqlzz-pjjmxmd-lkpvwq";

pub(super) fn read_kvn(bytes: &[u8]) {
    read(CdmForm::Kvn, bytes);
}

pub(super) fn read_xml(bytes: &[u8]) {
    read(CdmForm::Xml, bytes);
}

pub(super) fn read_space_track(bytes: &[u8]) {
    read(CdmForm::SpaceTrack, bytes);
}

pub(super) fn read_csv(bytes: &[u8]) {
    read(CdmForm::Csv, bytes);
}

/// Reads a document, and inserts ids into its messages. The annotated document must have the same
/// reports and contain the ids. Annotating it again must not change it.
fn read(form: CdmForm, bytes: &[u8]) {
    let Ok(document) = Document::read(form, bytes) else {
        return;
    };
    let ids = vec![ID; document.messages().len()];
    assert!(!ids.is_empty());
    let annotated = document.annotate(&sent_reports(&document), &ids);
    let again = Document::read(form, &annotated[..]).unwrap();
    assert_eq!(again.messages().len(), ids.len());
    for (message, before) in again.messages().iter().zip(document.messages()) {
        assert_eq!(message.report(), before.report());
        assert!(is_noted(message));
    }
    assert_eq!(again.annotate(&sent_reports(&again), &ids), annotated);
}

fn sent_reports<B: AsRef<[u8]>>(document: &Document<B>) -> Vec<SentReport> {
    let sent_report = |message: &Message| SentReport {
        report: *message.report(),
        noted: is_noted(message).then_some(0),
    };
    document.messages().iter().map(sent_report).collect()
}

/// Returns `true` if the message has an id of idmint, either in a comment or as the keyword
/// CONJUNCTION_ID. The keyword may also have an id of another originator.
fn is_noted(message: &Message) -> bool {
    message.existing_id().is_some()
        || message
            .conjunction_id()
            .is_some_and(|keyword| keyword.text == ID)
}
