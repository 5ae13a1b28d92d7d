//! Measures the figures of `docs/READINESS.md`: the disk space of a record, the memory of a
//! connection, and the duration of a backup and of a restore.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::many_appends::{append, begin, receive_stored, resident_kib};
use idmint_records::ledger::EventTime;
use idmint_testing::http1::{Client, post_json, request};
use idmint_testing::service::{Home, Service, idmint, run, serve_from, until};

/// The default number of records of each kind. `SIZING` sets another number, and the documented
/// figures were measured with 100 000.
const RECORDS: usize = 10_000;
/// The number of requests that are sent together, so that they share one sync.
const CONNECTIONS: usize = 256;
const IDLE_CONNECTIONS: usize = 2_000;

/// The maximum disk space of a record. With few records, unused pages have a larger share.
const RECORD_MAX_BYTES: u64 = 1_000;
const CONNECTION_MAX_KIB: u64 = 64;

fn records() -> usize {
    std::env::var("SIZING").map_or(RECORDS, |text| text.parse().expect("a number of records"))
}

/// Returns the number of bytes that the database occupies on disk. The file is sparse, so it
/// occupies less than its length.
fn database_len(home: &Home) -> u64 {
    let file = fs::metadata(home.data_dir().join("idmint.redb")).unwrap();
    file.blocks() * 512
}

/// Sends a request for each number below `count`, each of which must store a record.
fn store(service: &Service, count: usize, request_of: impl Fn(usize) -> String) {
    let connect = |_| Client::connect(service.address());
    let mut clients: Vec<_> = (0..CONNECTIONS).map(connect).collect();
    for first in (0..count).step_by(CONNECTIONS) {
        let round = CONNECTIONS.min(count - first);
        for (at, client) in clients[..round].iter_mut().enumerate() {
            client.send(request_of(first + at));
        }
        for (at, client) in clients[..round].iter_mut().enumerate() {
            receive_stored(client, &[200, 201], || request_of(first + at));
        }
    }
}

fn stop(service: Service) {
    service.send(Signal::TERM);
    service.wait().assert(0, &[]);
}

/// Starts a service, stores the records, and stops the service. Prints and checks the disk space of
/// a record, and returns the data directory.
fn filled(kind: &str, request_of: impl Fn(&str, usize) -> String) -> Home {
    let (home, count) = (Home::new(), records());
    let service = home.start();
    service.wait_until_ready();
    let ledger = begin(&service, 0);
    stop(service);
    let before = database_len(&home);
    // On a busy machine, a connection may wait for its first request while the others are opened.
    let service = Service::start(home.serve_with("http.header_timeout = '60s'"));
    service.wait_until_ready();
    store(&service, count, |number| request_of(&ledger, number));
    stop(service);
    let bytes = (database_len(&home) - before) / u64::try_from(count).unwrap();
    println!("{kind}: {bytes} bytes each, {count} in one request each");
    assert!(bytes <= RECORD_MAX_BYTES, "{kind}: {bytes} bytes");
    home
}

/// The kinds of records, each with the request that stores one.
type Kind = (&'static str, fn(&str, usize) -> String);
const KINDS: [Kind; 3] = [
    ("append", next_append),
    ("number", next_number),
    ("conjunction", next_report),
];

fn next_append(ledger: &str, number: usize) -> String {
    append(ledger, &format!("order-{number}"))
}

fn next_number(_: &str, number: usize) -> String {
    let key = format!("idempotency-key: order-{number}\r\n");
    request("POST /numbers/invoice-2026", &key, "")
}

fn next_report(_: &str, number: usize) -> String {
    let (primary, secondary) = (2 * number + 1, 2 * number + 2);
    let report =
        json!({ "tca": "2040-01-01T00:00:05Z", "primary": primary, "secondary": secondary });
    post_json("/conjunctions", "", &report.to_string())
}

#[test]
fn a_number_and_a_conjunction_take_the_documented_space() {
    for (kind, request_of) in &KINDS[1..] {
        filled(kind, request_of);
    }
}

#[test]
fn an_append_takes_the_documented_space_and_a_copy_starts_again() {
    let (kind, request_of) = KINDS[0];
    let home = filled(kind, request_of);
    let service = home.start();
    service.wait_until_ready();
    let (copy, begun) = (home.path("copy"), Instant::now());
    let data_dir = home.data_dir();
    let [to, from] = [&copy, &data_dir].map(|path| path.to_str().unwrap());
    run(idmint(&["backup", to, "--data-dir", from])).assert(0, &[]);
    println!("backup: {:?}", begun.elapsed());
    let len = fs::metadata(copy.join("idmint.redb")).unwrap().len();
    service.kill();

    let begun = Instant::now();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let floor = now.unwrap() + Duration::from_secs(10);
    let floor = EventTime::from_micros(floor.as_micros().try_into().unwrap()).unwrap();
    let mut command = serve_from(&copy);
    command.args(["--floor", &floor.to_string()]);
    let restored = Service::start(command);
    until("the ledgers can be read", || {
        (restored.get("/ledgers").status == 200).then_some(())
    });
    println!("restore: reads {:?} after the start", begun.elapsed());
    restored.wait_until_ready();
    println!(
        "restore: mints {:?} after the start, with a floor 10 s ahead; the copy has {len} bytes",
        begun.elapsed()
    );
}

#[test]
fn an_idle_connection_takes_the_documented_memory() {
    let service = Home::new();
    let service = service.start();
    service.wait_until_ready();
    let connect = |_| {
        let mut client = Client::connect(service.address());
        let answer = client.exchange(request("POST /ids/snowflake", "", ""));
        assert_eq!(answer.status, 200);
        client
    };
    let first: Vec<_> = (0..CONNECTIONS).map(connect).collect();
    let before = resident_kib(&service);
    let others: Vec<_> = (0..IDLE_CONNECTIONS).map(connect).collect();
    let more = resident_kib(&service).saturating_sub(before);
    let each = more / u64::try_from(others.len()).unwrap();
    println!(
        "{before} KiB with {} connections, {more} KiB more with {} others: {each} KiB each",
        first.len(),
        others.len()
    );
    assert!(each <= CONNECTION_MAX_KIB, "{each} KiB");
}
