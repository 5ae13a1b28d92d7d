//! Annotates Conjunction Data Messages of another project. The package of that project must be able
//! to read them before and after.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::tools::{read_cdms, write_cdms};
use idmint_testing::http1::{Answer, Client, request};
use idmint_testing::service::{Home, Service, idmint, run};

/// The number of test messages in the package.
const DOCUMENTS: usize = 3;

/// Returns the paths of the package's test messages.
fn documents() -> Vec<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/ccsds-ndm/tests/data");
    let folders = ["kvn", "xml"]
        .map(|form| fs::read_dir(data.join(form)).expect("installed by .ci/install-ccsds-ndm"));
    let files = folders
        .into_iter()
        .flatten()
        .map(|entry| entry.expect("a file").path());
    let is_cdm = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("cdm"))
    };
    let mut found: Vec<PathBuf> = files.filter(is_cdm).collect();
    found.sort();
    found
}

/// Sends a message to the service, and returns the message with the id inserted.
fn annotate(service: &Service, sent: &str, is_kvn: bool) -> String {
    let media = if is_kvn {
        "text/plain"
    } else {
        "application/xml"
    };
    let head = request(
        "POST /ids/conjunction?return=cdm",
        &format!("content-type: {media}\r\n"),
        sent,
    );
    let answer = Client::connect(service.address()).exchange(head);
    assert_eq!(answer.status, 200, "{sent}: {answer:?}");
    answer.text()
}

/// Returns the message without the inserted id: without the line that contains `key`, or without
/// the element `name` around it.
fn without_note(message: &str, key: &str, name: &str, is_kvn: bool) -> String {
    let at = message.find(key).expect("an id");
    let (begin, end) = if is_kvn {
        (
            message[..at].rfind('\n').unwrap(),
            at + message[at..].find('\n').unwrap(),
        )
    } else {
        let (opening, closing) = (format!("<{name}>"), format!("</{name}>"));
        let opened = message[..at + key.len() + 1].rfind(&opening).unwrap();
        let closed = at + message[at..].find(&closing).unwrap() + closing.len();
        (message[..opened].trim_end().len(), closed)
    };
    format!("{}{}", &message[..begin], &message[end..])
}

/// Changes the version of the messages to 2.0. The package does not support this version, so it
/// does not read the results.
#[test]
fn messages_of_others_as_of_version_2_get_the_keyword_and_keep_every_other_byte() {
    let home = Home::new();
    let service = Service::start(home.serve());
    service.wait_until_ready();
    for document in &documents() {
        let is_kvn = document
            .extension()
            .is_some_and(|extension| extension == "kvn");
        let sent = fs::read_to_string(document).expect("text");
        let version = sent.find("CCSDS_CDM_VERS").expect("each message names it");
        let number = version
            + sent[version..]
                .find("1.0")
                .expect("each message is of version 1.0");
        let sent = format!("{}2.0{}", &sent[..number], &sent[number + 3..]);
        let back = annotate(&service, &sent, is_kvn);
        assert!(!back.contains("CONJUNCTION_EVENT_ID"), "{back}");
        let back_again = annotate(&service, &back, is_kvn);
        assert_eq!(back_again, back, "{}", document.display());
        assert_eq!(
            without_note(&back, "CONJUNCTION_ID", "CONJUNCTION_ID", is_kvn),
            sent,
            "{}",
            document.display()
        );
    }
}

#[test]
fn messages_of_others_go_through_and_read_alike_before_and_after() {
    let home = Home::new();
    let service = Service::start(home.serve());
    service.wait_until_ready();
    let documents = documents();
    assert_eq!(documents.len(), DOCUMENTS, "{documents:?}");
    let mut ids = Vec::new();
    for document in &documents {
        let sent = fs::read_to_string(document).expect("text");
        let is_kvn = document
            .extension()
            .is_some_and(|extension| extension == "kvn");
        let back = annotate(&service, &sent, is_kvn);

        // Check that the comment is the only change.
        assert_eq!(
            without_note(&back, "CONJUNCTION_EVENT_ID", "COMMENT", is_kvn),
            sent,
            "{}",
            document.display()
        );

        let after = home.path(document.file_name().unwrap().to_str().unwrap());
        fs::write(&after, &back).unwrap();
        let read = read_cdms(&[document.as_path(), after.as_path()]);
        let [before, after]: [Value; 2] = read.try_into().expect("a line for each file");
        assert_eq!(before["rest"], after["rest"], "{}", document.display());
        let comments = |read: &Value| -> Vec<String> {
            read["comments"]
                .as_array()
                .unwrap()
                .iter()
                .map(|text| text.as_str().unwrap().to_owned())
                .collect()
        };
        let (before, mut after) = (comments(&before), comments(&after));
        let noted = after
            .iter()
            .position(|text| text.starts_with("CONJUNCTION_EVENT_ID = "))
            .expect("the package has read it");
        ids.push(after.remove(noted));
        assert_eq!(before, after);
    }
    assert!(
        ids.windows(2).all(|pair| pair[0] == pair[1]),
        "one conjunction in each of them: {ids:?}"
    );
}

/// The kinds of written documents, each with its media type and the ending of its files.
const KINDS: [(&str, &str, &str); 5] = [
    ("kvn", "text/plain", "kvn"),
    ("xml", "application/xml", "xml"),
    ("csv", "text/csv", "csv"),
    ("socrates", "text/csv", "csv"),
    ("json", "application/json", "json"),
];

#[test]
fn two_hundred_documents_of_each_kind_say_the_right_reports_or_the_wrong_line() {
    let home = Home::new();
    let service = Service::start(home.serve_with("conjunction.mode = 'pure'"));
    service.wait_until_ready();
    let post = |media: &str, body: &str| -> Answer {
        let head = format!("content-type: {media}\r\n");
        let sent = request("POST /ids/conjunction", &head, body);
        Client::connect(service.address()).exchange(sent)
    };
    let template = documents()
        .into_iter()
        .find(|path| path.extension().is_some_and(|it| it == "kvn"));
    let written = write_cdms(&template.expect("a message as KVN"));
    for (kind, media, ending) in KINDS {
        let (mut files, mut expected, mut wrongs) = (Vec::new(), String::new(), 0);
        let of_kind = written.iter().filter(|document| document["kind"] == kind);
        for (at, document) in of_kind.enumerate() {
            let text = document["text"].as_str().unwrap();
            let (answer, wrong) = (post(media, text), &document["wrong"]);
            let path = home.path(&format!("{kind}-{at}.{ending}"));
            fs::write(&path, text).unwrap();
            let path = path.to_str().unwrap().to_owned();
            if wrong.is_null() {
                let reports = post("application/json", &document["reports"].to_string()).json();
                assert_eq!(answer.status, 200, "{text}: {answer:?}");
                assert_eq!(answer.json()["details"], reports["details"], "{text}");
                for id in reports["ids"].as_array().unwrap() {
                    expected += &format!("{path} {}\n", id.as_str().unwrap());
                }
                files.push(path);
                continue;
            }
            wrongs += 1;
            let problem = answer.json();
            let place = json!({ "line": problem["line"], "name": problem["keyword"] });
            assert_eq!((answer.status, &place), (422, wrong), "{text}: {problem}");
            let ended = run(idmint(&["cdm", &path]));
            let begins = format!(
                "{path}:{}: {}: ",
                wrong["line"],
                wrong["name"].as_str().unwrap()
            );
            ended.assert(65, &[&begins]);
        }
        assert_eq!((files.len(), wrongs), (180, 20), "{kind}");
        let mut args = vec!["cdm", "--ids"];
        args.extend(files.iter().map(String::as_str));
        let ended = run(idmint(&args));
        ended.assert(0, &[]);
        let without_line = |line: &str| {
            let columns: Vec<&str> = line.split('\t').collect();
            format!("{} {}\n", columns[0], columns[2])
        };
        let printed: String = ended.out.lines().map(without_line).collect();
        assert_eq!(printed, expected, "{kind}");
    }
}
