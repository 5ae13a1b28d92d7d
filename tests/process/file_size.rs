//! Checks the size of the records file after large and small rows were written.

use std::fs;
use std::os::unix::fs::MetadataExt;

use idmint_testing::http1::{Client, request};
use idmint_testing::service::Home;

/// The maximum number of events in a request.
const EVENTS: usize = 10_000;
const LARGE: usize = 24;
const SMALL: usize = 400;
const LEDGERS: usize = 4;

/// The length in bytes of a row without its events: its head and its checksum.
const ROW_LEN: usize = 66 + 4;
const EVENT_LEN: usize = 48;

/// The length in bytes of everything except rows: the log, the headers, and the space that the
/// engine keeps free for writing.
const FIXED_LEN: usize = 24 << 20;

#[test]
fn after_large_rows_the_file_is_little_larger_than_they_are() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let mut client = Client::connect(service.address());
    let mut post = |target: &str, key: &str, body: &str| {
        let headers = format!("content-type: application/json\r\nidempotency-key: {key}\r\n");
        let answer = client.exchange(request(&format!("POST {target}"), &headers, body));
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()
    };
    let event = r#"{"event":"Counted","entities":{}}"#;
    let ledgers: Vec<String> = (0..LEDGERS)
        .map(|number| {
            let genesis = format!(r#"{{"event":"Begun","entities":{{}},"data":{number}}}"#);
            post("/ledgers", &format!("begin-{number}"), &genesis)["ledger"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    let large = vec![event; EVENTS].join(",");
    for number in 0..LARGE {
        let body = format!(
            r#"{{"ledger":"{}","events":[{large}]}}"#,
            ledgers[number % LEDGERS]
        );
        post("/ids/evently", &format!("large-{number}"), &body);
    }
    // Write small rows next to the large ones. The engine must not leave old copies of the large
    // rows in the file.
    for number in 0..SMALL {
        let body = format!(
            r#"{{"ledger":"{}","events":[{event}]}}"#,
            ledgers[number % LEDGERS]
        );
        post("/ids/evently", &format!("small-{number}"), &body);
    }
    service.kill();
    let service = home.start();
    service.wait_until_ready();
    drop(service);

    let rows = LARGE * (ROW_LEN + EVENTS * EVENT_LEN) + SMALL * (ROW_LEN + EVENT_LEN);
    let file = fs::metadata(home.data_dir().join("idmint.redb")).unwrap();
    let on_disk = usize::try_from(file.blocks() * 512).unwrap();
    println!(
        "{rows} bytes of rows, a file of {} that takes {on_disk}",
        file.len()
    );
    assert!(
        on_disk <= rows * 3 / 2 + FIXED_LEN,
        "{on_disk} bytes for {rows} of rows"
    );
}
