//! Checks which reports are read from Conjunction Data Messages, and that annotating a message
//! inserts nothing but the id.

use std::path::{Path, PathBuf};

use idmint_core::time::UnixTime;
use idmint_records::conjunction::{
    CONJUNCTION_ID_KEY, CdmError, CdmForm, Document, EVENT_ID_KEY, Message, NoteForm, NotedFault,
    ObjectRules, ReadRule,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::cdm_documents::{Made, annotate as annotate_read, noted as noted_text, random_document};

const FORMS: [CdmForm; 4] = [
    CdmForm::Kvn,
    CdmForm::Xml,
    CdmForm::SpaceTrack,
    CdmForm::Csv,
];

fn folder(name: &str) -> PathBuf {
    Path::new(idmint_testing::ROOT).join("tests/cdm").join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(folder(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the reports of a document, each as its time, primary object and secondary object.
fn reports<B: AsRef<[u8]>>(document: &Document<B>) -> Vec<(UnixTime, u64, u64)> {
    let reports = document.messages().iter().map(|message| message.report());
    reports
        .map(|report| (report.tca(), report.primary(), report.secondary()))
        .collect()
}

fn at(text: &str) -> UnixTime {
    UnixTime::from_utc_text(text).unwrap()
}

#[test]
fn every_form_says_what_comes_close_and_when() {
    let first = (at("2024-02-01T00:00:00.250Z"), 25_544, 48_274);
    let second = (at("2024-02-01T11:04:27.5Z"), 270_001, 339_999);
    for (name, expected) in [
        ("one.kvn", vec![first]),
        (
            "several-crlf.kvn",
            vec![first, second, (at("2017-01-01T00:00:00.5Z"), 5, 12)],
        ),
        ("noted.kvn", vec![first]),
        ("two.kvn", vec![first]),
        ("two-theirs.kvn", vec![first]),
        ("two-noted.kvn", vec![first]),
        ("one.xml", vec![first]),
        ("two.xml", vec![first]),
        ("two-theirs.xml", vec![first]),
        ("several.xml", vec![first, second]),
        ("cdm.json", vec![first]),
        ("cdm_public.json", vec![first, second]),
        ("envelope.json", vec![first]),
        ("leolabs.json", vec![first]),
        ("other-names.json", vec![first, second]),
        ("nested.json", vec![first]),
        ("cdm_public.csv", vec![first, second]),
        ("socrates.csv", vec![first, second]),
    ] {
        let document = bytes(name);
        let read = Document::read(CdmForm::of(&document), &document)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(reports(&read), expected, "{name}");
    }
}

/// Returns the part of `after` that was inserted into `before`, without the common beginning and
/// end.
fn insertion_between(before: &[u8], after: &[u8]) -> String {
    let begin = before
        .iter()
        .zip(after)
        .take_while(|(one, other)| one == other)
        .count();
    let end = before.len() - begin;
    assert_eq!(
        before[begin..],
        after[after.len() - end..],
        "something else has changed"
    );
    String::from_utf8(after[begin..after.len() - end].to_vec()).unwrap()
}

/// Annotates a document with the ids `a`, `b` and so on.
fn annotate(form: CdmForm, document: &[u8]) -> Vec<u8> {
    let read = Document::read(form, document).unwrap();
    let ids: Vec<_> = ('a'..)
        .take(read.messages().len())
        .map(String::from)
        .collect();
    annotate_read(&read, &ids)
}

#[test]
fn a_comment_follows_the_last_of_the_header() {
    let with = String::from_utf8(annotate(CdmForm::Kvn, &bytes("one.kvn"))).unwrap();
    let place = with
        .lines()
        .position(|line| line == "COMMENT CONJUNCTION_EVENT_ID = a");
    assert_eq!(place, Some(3), "{with}");
    assert_eq!(
        insertion_between(&bytes("one.kvn"), with.as_bytes()).len(),
        "COMMENT CONJUNCTION_EVENT_ID = a\n".len()
    );

    let with = String::from_utf8(annotate(CdmForm::Kvn, &bytes("several-crlf.kvn"))).unwrap();
    let lines: Vec<_> = with.split("\r\n").collect();
    for (begin, expected) in [
        (
            0,
            [
                "CCSDS_CDM_VERS = 1.0",
                "COMMENT CONJUNCTION_EVENT_ID = a",
                "CREATION_DATE = 2024-030T22:31:12.000",
            ],
        ),
        (
            16,
            [
                "COMMENT second  ",
                "COMMENT CONJUNCTION_EVENT_ID = b",
                "CREATION_DATE = 2024-030T22:31:12.000",
            ],
        ),
        (
            29,
            [
                "CCSDS_CDM_VERS = 1.0",
                "COMMENT CONJUNCTION_EVENT_ID = c",
                "CREATION_DATE = 2024-030T22:31:12.000",
            ],
        ),
    ] {
        assert_eq!(lines[begin..begin + 3], expected, "{lines:#?}");
    }
    assert!(!with.ends_with('\n') && !with.replace("\r\n", "").contains(['\r', '\n']));
}

#[test]
fn an_element_comes_first_in_the_header_spaced_and_named_as_its_neighbours() {
    let one = bytes("one.xml");
    let with = annotate(CdmForm::Xml, &one);
    let text = String::from_utf8(with.clone()).unwrap();
    let comment =
        "  <header>\n    <COMMENT>CONJUNCTION_EVENT_ID = a</COMMENT>\n    <COMMENT>Sample";
    assert!(text.contains(comment), "{text}");
    insertion_between(&one, &with);

    let text = String::from_utf8(annotate(CdmForm::Xml, &bytes("several.xml"))).unwrap();
    for comment in [
        "<header>\r\n\t    <COMMENT>CONJUNCTION_EVENT_ID = a</COMMENT>\r\n\t    <CREATION",
        "<header>\r\n      <COMMENT>CONJUNCTION_EVENT_ID = b</COMMENT>\r\n      <CREATION",
    ] {
        assert!(text.contains(comment), "{text}");
    }
    let prefixed = String::from_utf8(one)
        .unwrap()
        .replace("<header", "<n:header")
        .replace("</header", "</n:header");
    let text = String::from_utf8(annotate(CdmForm::Xml, prefixed.as_bytes())).unwrap();
    assert!(
        text.contains("<n:COMMENT>CONJUNCTION_EVENT_ID = a</n:COMMENT>"),
        "{text}"
    );
}

#[test]
fn from_version_2_on_a_keyword_stands_behind_the_comments_of_the_relative_metadata() {
    let with = String::from_utf8(annotate(CdmForm::Kvn, &bytes("two.kvn"))).unwrap();
    let keyword = "\nCOMMENT Relative Metadata/Data\nCONJUNCTION_ID = a\nTCA ";
    assert!(with.contains(keyword), "{with}");
    assert_eq!(
        insertion_between(&bytes("two.kvn"), with.as_bytes()),
        "CONJUNCTION_ID = a\n"
    );

    let with = String::from_utf8(annotate(CdmForm::Xml, &bytes("two.xml"))).unwrap();
    let keyword = "      <COMMENT/>\n      <CONJUNCTION_ID>a</CONJUNCTION_ID>\n      <TCA>";
    assert!(with.contains(keyword), "{with}");
    insertion_between(&bytes("two.xml"), with.as_bytes());
    let bare = String::from_utf8(bytes("two.xml"))
        .unwrap()
        .replace("relativeMetadataData", "n:relativeMetadataData");
    let bare = bare.replace(
        "      <COMMENT>Relative Metadata/Data</COMMENT>\n      <COMMENT/>\n",
        "",
    );
    let with = String::from_utf8(annotate(CdmForm::Xml, bare.as_bytes())).unwrap();
    let keyword =
        "<n:relativeMetadataData>\n      <n:CONJUNCTION_ID>a</n:CONJUNCTION_ID>\n      <TCA>";
    assert!(with.contains(keyword), "{with}");
}

#[test]
fn messages_above_the_maximum_are_counted_and_not_kept() {
    let objects = ObjectRules::default();
    let rule = |is_partial, count_max| ReadRule {
        objects: &objects,
        note: None,
        is_partial,
        count_max,
    };
    let row = |id| format!("2024-02-01T00:00:00,{id},48274\n");
    let good = row("25544");
    let bad = row("ISS");
    let read = |rows: &[&str], rule| {
        let csv = format!("TCA,SAT_1_ID,SAT_2_ID\n{}", rows.concat());
        let document = Document::read_by(rule, CdmForm::Csv, csv.into_bytes())?;
        let refused: Vec<_> = document.refused().iter().map(|(at, _)| *at).collect();
        Ok::<_, CdmError>((document.count(), document.messages().len(), refused))
    };
    let rows = [&good[..], &bad, &good, &bad, &good];
    assert_eq!(read(&rows, rule(true, 9)), Ok((5, 3, vec![1, 3])));
    assert_eq!(read(&rows, rule(true, 2)), Ok((5, 1, vec![1])));
    assert_eq!(read(&rows, rule(true, 3)), Ok((5, 2, vec![1])));
    assert_eq!(
        read(&[good.as_str(); 4], rule(false, 3)),
        Ok((4, 3, vec![]))
    );
    let error = read(&rows, rule(false, 9)).unwrap_err();
    assert_eq!((error.line, error.reason), (3, "wrong_type"));

    for name in ["several-crlf.kvn", "several.xml", "other-names.json"] {
        let document = bytes(name);
        let form = CdmForm::of(&document);
        let all = Document::read(form, &document).unwrap();
        let few = Document::read_by(rule(false, 1), form, &document).unwrap();
        assert_eq!(few.count(), all.count(), "{name}");
        assert_eq!(all.count(), all.messages().len(), "{name}");
        assert_eq!(few.messages().len(), 1, "{name}");
    }
}

#[test]
fn the_place_of_the_id_is_by_version_unless_it_is_told() {
    let objects = ObjectRules::default();
    for (name, note, has_keyword) in [
        ("one.kvn", None, false),
        ("one.kvn", Some(NoteForm::ConjunctionId), true),
        ("two.kvn", None, true),
        ("two.kvn", Some(NoteForm::Comment), false),
        ("one.xml", Some(NoteForm::ConjunctionId), true),
        ("two.xml", Some(NoteForm::Comment), false),
        ("two-theirs.kvn", None, false),
        ("two-theirs.kvn", Some(NoteForm::ConjunctionId), false),
        ("two-theirs.xml", Some(NoteForm::ConjunctionId), false),
    ] {
        let document = bytes(name);
        let rule = ReadRule {
            objects: &objects,
            note,
            is_partial: false,
            count_max: u32::MAX,
        };
        let read = Document::read_by(rule, CdmForm::of(&document), &document).unwrap();
        let with = annotate_read(&read, &["a"]);
        insertion_between(&document, &with);
        let again = Document::read(CdmForm::of(&document), &with).unwrap();
        let [comment, keyword] = [
            again.messages()[0].existing_id(),
            again.messages()[0].conjunction_id(),
        ]
        .map(|noted| noted.is_some_and(|noted| noted.text == "a"));
        assert_eq!(
            (comment, keyword),
            (!has_keyword, has_keyword),
            "{name} {note:?}"
        );
    }
}

#[test]
fn a_version_that_is_not_known_and_begins_with_2_is_read_with_a_warning() {
    for (name, from, to) in [
        ("two.kvn", "= 2.0", "= 2.7"),
        ("two.xml", "version=\"2.0\"", "version=\"2.7\""),
    ] {
        let text = String::from_utf8(bytes(name)).unwrap();
        let unknown = text.replacen(from, to, 1);
        let read = Document::read(CdmForm::of(text.as_bytes()), unknown.as_bytes()).unwrap();
        let warning = read.messages()[0].version().warning();
        assert_eq!(
            warning.as_deref(),
            Some("CCSDS_CDM_VERS 2.7 is not known; the message was read as 2.0")
        );
        let known = annotate(CdmForm::of(text.as_bytes()), text.as_bytes());
        let with = String::from_utf8(annotate_read(&read, &["a"])).unwrap();
        assert_eq!(
            with,
            String::from_utf8(known).unwrap().replacen(from, to, 1)
        );
    }
}

#[test]
fn a_member_comes_last_spaced_as_the_one_before() {
    let one = bytes("cdm.json");
    assert_eq!(
        insertion_between(&one, &annotate(CdmForm::SpaceTrack, &one)),
        r#","CONJUNCTION_EVENT_ID":"a""#
    );
    let text = String::from_utf8(annotate(CdmForm::SpaceTrack, &bytes("cdm_public.json"))).unwrap();
    assert!(
        text.contains(",\n    \"CONJUNCTION_EVENT_ID\": \"a\"\n  },"),
        "{text}"
    );
    assert!(
        text.contains(",\n    \"CONJUNCTION_EVENT_ID\": \"b\"\n  }\n]\n"),
        "{text}"
    );
}

#[test]
fn an_id_of_any_letters_is_read_back_from_each_form() {
    let id = r#"<&>"'\]]>--="#;
    for name in ["one.kvn", "one.xml", "cdm.json", "two.kvn", "two.xml"] {
        let document = bytes(name);
        let with = annotate_read(
            &Document::read(CdmForm::of(&document), &document).unwrap(),
            &[id],
        );
        let again = Document::read(CdmForm::of(&with), &with)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let message = &again.messages()[0];
        let noted = message.existing_id().or(message.conjunction_id()).unwrap();
        assert_eq!(noted.text, id, "{name}");
        assert_eq!(
            message.existing_id().is_none(),
            name.starts_with("two"),
            "{name}"
        );
    }
}

#[test]
fn an_id_that_is_there_already_is_told_with_its_line_and_stays() {
    let document = bytes("noted.kvn");
    let read = Document::read(CdmForm::Kvn, &document).unwrap();
    let noted = read.messages()[0].existing_id().unwrap();
    assert_eq!(
        (noted.line, noted.text.as_str()),
        (2, "zwwqlzz-pjjmxmd-lkpvwq")
    );
    assert_eq!(annotate_read(&read, &["another"]), document);
    let error = read.messages()[0].refuse_existing_id(&NotedFault::OtherId("another".to_owned()));
    assert_eq!(
        error.to_string(),
        "line 2: CONJUNCTION_EVENT_ID: \"zwwqlzz-pjjmxmd-lkpvwq\" is not the id of this conjunction, which gets \
         \"another\"; noted=keep keeps the id of the report"
    );
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_its_keyword() {
    let expected = String::from_utf8(bytes("malformed/expected.tsv")).unwrap();
    let cases: Vec<Vec<&str>> = expected
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split('\t').collect())
        .collect();
    for case in &cases {
        let [name, line, keyword, reason] = case[..] else {
            panic!("{case:?}")
        };
        let document = bytes(&format!("malformed/{name}"));
        let form = match Path::new(name).extension().unwrap().to_str().unwrap() {
            "kvn" => CdmForm::Kvn,
            "xml" => CdmForm::Xml,
            "csv" => CdmForm::Csv,
            _ => CdmForm::SpaceTrack,
        };
        let error = Document::read(form, &document).map(|_| ()).expect_err(name);
        let told = [
            error.line.to_string(),
            error.keyword.clone().unwrap_or("-".into()),
            error.reason.to_owned(),
        ];
        assert_eq!(told, [line, keyword, reason], "{name}: {error}");
        assert!(
            error.to_string().starts_with(&format!("line {line}: ")),
            "{name}: {error}"
        );
        assert!(error.to_string().len() < 300, "{name}: {error}");
    }
    let files = std::fs::read_dir(folder("malformed")).unwrap().count();
    assert_eq!(
        files,
        cases.len() + 1,
        "each file has its line in expected.tsv"
    );
}

#[test]
fn a_time_that_is_none_is_told_as_it_stands_there() {
    let error = Document::read(CdmForm::Kvn, bytes("malformed/no-such-month.kvn"))
        .map(|_| ())
        .unwrap_err();
    let what = "is not a time in UTC such as 2024-02-01T00:00:00.250 or 2024-032T00:00:00.250";
    assert_eq!(
        error.to_string(),
        format!("line 5: TCA: \"2024-13-01T00:00:00.250\" {what}")
    );
}

/// Removes the id from an annotated document. The id is found by its key and not by its position,
/// so the result shows whether anything else changed.
fn without(form: CdmForm, document: &[u8], id: &str) -> Vec<u8> {
    let text = str::from_utf8(document).unwrap();
    let (begin, end) = match form {
        CdmForm::Kvn => {
            let notes = [
                format!("COMMENT {EVENT_ID_KEY} = {id}"),
                format!("{CONJUNCTION_ID_KEY} = {id}"),
            ];
            let begin = notes.iter().find_map(|note| text.find(note)).unwrap();
            let end = text[begin..].find(['\r', '\n']).unwrap() + begin;
            let rest = &document[end..];
            let len = if matches!(rest, [b'\r', b'\n', ..] | [b'\n', b'\r', ..]) {
                2
            } else {
                1
            };
            (begin, end + len)
        }
        CdmForm::Xml => {
            let notes = [
                format!("COMMENT>{EVENT_ID_KEY} = {id}</"),
                format!("{CONJUNCTION_ID_KEY}>{id}</"),
            ];
            let key = notes.iter().find_map(|note| text.find(note)).unwrap();
            let begin = text[..key].rfind('<').unwrap();
            let end = key + text[key..].match_indices('>').nth(1).unwrap().0 + 1;
            (text[..begin].trim_ascii_end().len(), end)
        }
        CdmForm::SpaceTrack => {
            let value = text.find(&format!("\"{id}\"")).unwrap();
            let key = text[..value].rfind(&format!("\"{EVENT_ID_KEY}\"")).unwrap();
            let end = value + id.len() + 2;
            (text[..key].rfind(',').unwrap(), end)
        }
        CdmForm::Csv => return without_cell(text, id).into_bytes(),
    };
    [&document[..begin], &document[end..]].concat()
}

/// Removes an id from annotated CSV. If the ids are in a new last column, this function removes the
/// whole cell, and with the last id the name of the column.
fn without_cell(text: &str, id: &str) -> String {
    let heading_end = text.find(['\r', '\n']).unwrap();
    let heading = text[..heading_end].trim_end_matches('"');
    let cut = |text: &str, cell: &str, is_new: bool| {
        let (mut begin, mut end) = (
            text.find(cell).unwrap(),
            text.find(cell).unwrap() + cell.len(),
        );
        if is_new {
            let is_quoted = text[..begin].ends_with('"');
            begin -= usize::from(is_quoted) + 1;
            end += usize::from(is_quoted);
        }
        format!("{}{}", &text[..begin], &text[end..])
    };
    let is_new = heading.ends_with(EVENT_ID_KEY);
    let without = cut(text, id, is_new);
    match is_new && !without.contains("new-") {
        true => cut(&without, EVENT_ID_KEY, true),
        false => without,
    }
}

/// Returns `true` if a message has this id in a comment or as the keyword CONJUNCTION_ID.
fn has(message: &Message, id: &str) -> bool {
    [message.existing_id(), message.conjunction_id()]
        .into_iter()
        .flatten()
        .any(|noted| noted.text == id)
}

fn read(form: CdmForm, document: &[u8]) -> Result<Document<&[u8]>, CdmError> {
    Document::read(form, document)
}

#[test]
fn ten_thousand_documents_are_told_back_with_nothing_changed_but_the_ids() {
    let random = &mut StdRng::seed_from_u64(508);
    let mut messages = 0;
    for number in 0..10_000 {
        let form = FORMS[number % FORMS.len()];
        let Made {
            text,
            reports: expected,
            noted,
        } = random_document(form, random);
        let shown = || String::from_utf8_lossy(&text).into_owned();
        assert_eq!(CdmForm::of(&text), form, "{}", shown());
        let first = read(form, &text).unwrap_or_else(|error| panic!("{error}\n{}", shown()));
        assert_eq!(reports(&first), expected, "{}", shown());
        let found: Vec<_> = first
            .messages()
            .iter()
            .map(|message| noted_text(message).map(str::to_owned))
            .collect();
        assert_eq!(found, noted, "{}", shown());

        let ids: Vec<_> = (0..expected.len())
            .map(|at| noted[at].clone().unwrap_or(format!("new-{at}")))
            .collect();
        let annotated = annotate_read(&first, &ids);
        let mut back = annotated.clone();
        for (id, _) in ids.iter().zip(&noted).filter(|(_, noted)| noted.is_none()) {
            back = without(form, &back, id);
        }
        assert!(
            back == text,
            "{}\nbecame\n{}",
            shown(),
            String::from_utf8_lossy(&annotated)
        );

        let second = read(form, &annotated).unwrap_or_else(|error| panic!("{error}\n{}", shown()));
        assert_eq!(reports(&second), expected);
        assert!(
            second
                .messages()
                .iter()
                .zip(&ids)
                .all(|(message, id)| has(message, id))
        );
        assert!(
            annotate_read(&second, &ids) == annotated,
            "a second pass changes nothing"
        );
        messages += expected.len();
    }
    assert!(messages > 20_000, "{messages}");
}

#[test]
fn a_damaged_document_is_refused_or_means_something() {
    const PARTS: [&str; 14] = [
        "\n",
        "\r",
        "=",
        "COMMENT ",
        "<",
        ">",
        "</header>",
        "<header>",
        "\"",
        "{",
        "}",
        ",",
        "&lt;",
        "CCSDS_CDM_VERS = 1.0\n",
    ];
    let random = &mut StdRng::seed_from_u64(36);
    let mut refused = 0;
    for number in 0..30_000 {
        let form = FORMS[number % FORMS.len()];
        let mut text = random_document(form, random).text;
        for _ in 0..random.random_range(1..4) {
            let (one, other) = (
                random.random_range(0..=text.len()),
                random.random_range(0..=text.len()),
            );
            match random.random_range(0..5) {
                0 => text.truncate(one),
                1 => drop(text.drain(one.min(other)..one.max(other).min(one.min(other) + 20))),
                2 if one < text.len() => text[one] ^= 1 << random.random_range(0..8),
                3 => {
                    let part = text[one.min(other)..one.max(other)].to_vec();
                    drop(text.splice(one..one, part));
                }
                _ => {
                    drop(text.splice(one..one, PARTS[random.random_range(0..PARTS.len())].bytes()))
                }
            }
        }
        let shown = || String::from_utf8_lossy(&text).into_owned();
        let forms = [form, CdmForm::of(&text)];
        for form in forms {
            let Ok(document) = read(form, &text) else {
                refused += 1;
                continue;
            };
            let ids: Vec<_> = document
                .messages()
                .iter()
                .map(|message| noted_text(message).unwrap_or("new"))
                .collect();
            let annotated = annotate_read(&document, &ids);
            let again = read(form, &annotated).unwrap_or_else(|error| {
                panic!(
                    "{error}\n{}\nbecame\n{}",
                    shown(),
                    String::from_utf8_lossy(&annotated)
                )
            });
            assert_eq!(reports(&again), reports(&document), "{}", shown());
            assert!(
                again
                    .messages()
                    .iter()
                    .zip(&ids)
                    .all(|(message, id)| has(message, id)),
                "{}",
                shown()
            );
        }
    }
    assert!((10_000..57_000).contains(&refused), "{refused} of 60 000");
}

#[test]
fn a_document_of_the_greatest_length_is_read_in_time_that_grows_with_it() {
    const LEN: usize = 16 * 1024 * 1024;
    let object = |n: usize| format!("OBJECT = OBJECT{n}\nOBJECT_DESIGNATOR = {n}\n");
    let message = format!(
        "CCSDS_CDM_VERS = 1.0\nTCA = 2024-02-01T00:00:00\n{}{}",
        object(1),
        object(2)
    );
    let row = r#"{"TCA":"2024-02-01T00:00:00","SAT_1_ID":"1","SAT_2_ID":"2"}"#;
    let one = String::from_utf8(bytes("one.xml")).unwrap();
    let cdm = &one[one.find("<cdm").unwrap()..];
    // These texts are long enough that reading them would take hours if the reader went back to
    // earlier input for each line.
    for (form, text) in [
        (CdmForm::Kvn, message.repeat(LEN / message.len())),
        (CdmForm::Kvn, format!("{message}{}", "\r\n".repeat(LEN / 2))),
        (
            CdmForm::Kvn,
            format!("{message}{}", "COMMENT \n".repeat(LEN / 9)),
        ),
        (
            CdmForm::Xml,
            format!("<ndm>{}</ndm>", cdm.repeat(LEN / cdm.len())),
        ),
        (CdmForm::Xml, one.replace("Sample", &"&lt;".repeat(LEN / 4))),
        (
            CdmForm::Xml,
            one.replace("<cdm ", &format!("<ndm {}><cdm ", "a='1' ".repeat(LEN / 6))) + "</ndm>",
        ),
        (
            CdmForm::SpaceTrack,
            format!(
                "[{row}{}]",
                format!(",\n{row}").repeat(LEN / (row.len() + 2) - 1)
            ),
        ),
        (
            CdmForm::SpaceTrack,
            row.replace(
                '{',
                &(0..LEN / 16).fold("{".to_owned(), |text, at| {
                    text + &format!("\"A{at:07}\":[],")
                }),
            ),
        ),
        (
            CdmForm::SpaceTrack,
            row.replace(
                '{',
                &format!("{{\"A\":{}0{},", "[".repeat(LEN / 2), "]".repeat(LEN / 2)),
            ),
        ),
    ] {
        let document = Document::read(form, text.as_bytes())
            .map_err(|error| format!("{form:?}: {error}"))
            .unwrap();
        let ids = vec!["id"; document.messages().len()];
        assert!(annotate_read(&document, &ids).len() > text.len());
    }
    let line = "2024-02-01 00:00:00,1,2,\"a\"\n";
    let heading = "TCA,SAT_1_ID,SAT_2_ID,NAME\n";
    for text in [
        format!("{heading}{}", line.repeat(LEN / line.len())),
        format!("{heading}{line}{}", "\n".repeat(LEN)),
        format!("{heading}{}", line.replace('a', &"\"\"".repeat(LEN / 2))),
    ] {
        let document = Document::read(CdmForm::Csv, text.as_bytes()).unwrap();
        let ids = vec!["id"; document.messages().len()];
        assert!(annotate_read(&document, &ids).len() > text.len());
    }
    for text in [
        format!("{heading}{}", ",".repeat(LEN)),
        format!("{heading}\"{}", "a\n".repeat(LEN / 2)),
    ] {
        assert!(Document::read(CdmForm::Csv, text).is_err());
    }
    let deep = "<ndm>".to_owned() + &"<a>".repeat(LEN / 3);
    assert!(Document::read(CdmForm::Xml, deep).is_err());
}
