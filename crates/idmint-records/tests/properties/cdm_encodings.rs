//! Checks XML documents in encodings other than UTF-8. Each is read in the encoding that it
//! declares, and annotating changes no byte except for the inserted id.

use idmint_records::conjunction::{CdmForm, Document};

use crate::cdm_documents::annotate;

const ID: &str = "zwwqlzz-pjjmxmd-lkpvwq";

/// Returns a document with two messages in this encoding. The document contains letters whose
/// length in bytes depends on the encoding, before, between and after the headers.
fn document(encoding: &str) -> String {
    let message = |name: &str| {
        format!(
            "<cdm id=\"CCSDS_CDM_VERS\" version=\"1.0\"><!-- {name} --><header>\r\n  <ORIGINATOR>Größe é {name}</ORIGINATOR>\
             </header><body><relativeMetadataData><TCA>2024-02-01T00:00:00</TCA></relativeMetadataData>\
             <segment><metadata><OBJECT>OBJECT1</OBJECT><OBJECT_DESIGNATOR>25544</OBJECT_DESIGNATOR></metadata></segment>\
             <segment><metadata><OBJECT>OBJECT2</OBJECT><OBJECT_DESIGNATOR>48274</OBJECT_DESIGNATOR></metadata></segment>\
             </body></cdm>"
        )
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"{encoding}\"?>\r\n<ndm>ü{}\r\n{}</ndm>\r\n",
        message("Élan"),
        message("ñ")
    )
}

fn latin1(text: &str) -> Vec<u8> {
    text.chars()
        .map(|letter| u8::try_from(letter).expect("a letter of ISO-8859-1"))
        .collect()
}

fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    format!("\u{feff}{text}")
        .encode_utf16()
        .flat_map(to_bytes)
        .collect()
}

/// A function that encodes a text, such as in UTF-16.
type Encode = fn(&str) -> Vec<u8>;

const ENCODINGS: [(&str, Encode); 5] = [
    ("UTF-8", |text| text.as_bytes().to_vec()),
    ("ISO-8859-1", latin1),
    ("iso-8859-1", latin1),
    ("UTF-16", |text| utf16(text, u16::to_le_bytes)),
    ("utf-16", |text| utf16(text, u16::to_be_bytes)),
];

#[test]
fn a_document_in_each_encoding_gets_its_ids_and_keeps_every_other_byte() {
    for (name, encode) in ENCODINGS {
        let sent = encode(&document(name));
        assert_eq!(CdmForm::of(&sent), CdmForm::Xml, "{name}");
        let read =
            Document::read(CdmForm::Xml, &sent).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(
            read.messages()
                .iter()
                .map(|message| message.line())
                .collect::<Vec<_>>(),
            [2, 4],
            "{name}"
        );
        assert_eq!(read.messages()[1].report().secondary(), 48_274);
        let back = annotate(&read, &[ID, "another"]);
        let comment = |id| format!("<header>\r\n  <COMMENT>CONJUNCTION_EVENT_ID = {id}</COMMENT>");
        let mut parts = document(name);
        for id in [ID, "another"] {
            parts = parts.replacen("<header>\r\n  <O", &format!("{}\r\n  <O", comment(id)), 1);
        }
        assert!(
            back == encode(&parts),
            "{name}: {}",
            String::from_utf8_lossy(&back)
        );
        let again =
            Document::read(CdmForm::Xml, &back).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(
            again.messages()[0]
                .existing_id()
                .map(|noted| noted.text.as_str()),
            Some(ID),
            "{name}"
        );
        assert!(annotate(&again, &["x", "y"]) == back, "{name}");
    }
}

#[test]
fn letters_beyond_the_basic_plane_keep_their_places_in_utf16() {
    let text = document("UTF-16").replace('ü', "𝄞");
    let sent = utf16(&text, u16::to_le_bytes);
    let back = annotate(
        &Document::read(CdmForm::Xml, &sent).expect("UTF-16"),
        &[ID, ID],
    );
    let comment = format!("<header>\r\n  <COMMENT>CONJUNCTION_EVENT_ID = {ID}</COMMENT>\r\n  <O");
    assert!(
        back == utf16(
            &text.replace("<header>\r\n  <O", &comment),
            u16::to_le_bytes
        )
    );
}

#[test]
fn what_is_not_in_the_encoding_that_it_claims_is_refused() {
    let utf8 = document("UTF-8");
    let cases: [(Vec<u8>, &str, &str); 7] = [
        (latin1(&utf8), "not_utf8", "not UTF-8"),
        (
            document("UTF-16").into_bytes(),
            "report_form",
            "\"UTF-16\", but must be UTF-8",
        ),
        (
            document("Shift_JIS").into_bytes(),
            "report_form",
            "\"Shift_JIS\", but must be UTF-8",
        ),
        (utf16(&utf8, u16::to_le_bytes), "report_form", "\"UTF-8\""),
        (
            [&utf16("<?xml", u16::to_le_bytes)[..], &[0, 0xd8, b'x', 0]].concat(),
            "not_utf8",
            "not UTF-16",
        ),
        (
            [&utf16("<cdm/>", u16::to_be_bytes)[..], b"x"].concat(),
            "not_utf8",
            "inside a UTF-16 character",
        ),
        (
            latin1(&document("ISO-8859-1").replace('ü', &"ü".repeat(4 << 20))),
            "report_form",
            "may have 4194304",
        ),
    ];
    for (sent, reason, named) in cases {
        let error = Document::read(CdmForm::Xml, &sent)
            .map(|_| ())
            .expect_err(named);
        assert_eq!(error.reason, reason, "{error}");
        assert!(error.to_string().contains(named), "{error}");
    }
    let ascii = document("ISO-8859-1").replace(|letter: char| !letter.is_ascii(), "");
    assert!(
        Document::read(CdmForm::Xml, ascii.as_bytes()).is_ok(),
        "declared, and of ASCII alone"
    );
}

#[test]
fn the_form_of_a_document_in_utf16_is_that_of_its_text() {
    for (text, form) in [
        ("\n <cdm/>", CdmForm::Xml),
        ("TCA,SAT_1_ID,SAT_2_ID\r\n", CdmForm::Csv),
        ("\r\n  TCA\tSAT_1_ID\na = b", CdmForm::Csv),
        ("CCSDS_CDM_VERS = 1.0\nA,B", CdmForm::Kvn),
        (" [{}]", CdmForm::SpaceTrack),
        ("", CdmForm::Kvn),
    ] {
        for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            assert_eq!(CdmForm::of(&utf16(text, to_bytes)), form, "{text:?}");
        }
        assert_eq!(CdmForm::of(text.as_bytes()), form, "{text:?}");
    }
}

#[test]
fn csv_in_utf16_gets_its_ids_in_utf16() {
    let text = "TCA;SAT_1_ID;SAT_2_ID;NAME\r\n2024-02-01 00:00:00;25544;48274;\"é;\"\r\n";
    for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
        let sent = utf16(text, to_bytes);
        let document = Document::read(CdmForm::of(&sent), &sent).expect("CSV");
        let with_ids = text
            .replace("NAME", "NAME;CONJUNCTION_EVENT_ID")
            .replace("é;\"", &format!("é;\";\"{ID}\""));
        assert!(annotate(&document, &[ID]) == utf16(&with_ids, to_bytes));
    }
}

#[test]
fn an_error_in_utf16_names_its_line_whatever_ends_a_line() {
    for end in ["\n", "\r\n", "\r", "\n\r"] {
        let begin = utf16(&format!("A = 1{end}B = 2{end}C"), u16::to_le_bytes);
        for bad in [&[b'x'][..], &[0, 0xd8, b'x', 0]] {
            let error = Document::read(CdmForm::Kvn, [&begin[..], bad].concat())
                .map(|_| ())
                .expect_err("not UTF-16");
            assert_eq!((error.line, error.reason), (3, "not_utf8"), "{end:?}");
        }
    }
}

#[test]
fn utf16_without_its_byte_order_mark_is_refused_as_such() {
    let kvn = "CCSDS_CDM_VERS = 1.0\n";
    let csv = "TCA,SAT_1_ID,SAT_2_ID\n";
    for (form, text) in [
        (CdmForm::Kvn, kvn),
        (CdmForm::Csv, csv),
        (CdmForm::Xml, "<cdm/>"),
        (CdmForm::SpaceTrack, "[{}]"),
    ] {
        for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            let sent = utf16(text, to_bytes);
            let error = Document::read(form, &sent[2..])
                .map(|_| ())
                .expect_err(text);
            assert_eq!((error.line, error.reason), (1, "not_utf8"), "{text}");
            assert!(error.to_string().contains("byte order mark"), "{error}");
        }
    }
}
