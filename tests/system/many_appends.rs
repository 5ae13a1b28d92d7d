//! Sends many appends, and reports many conjunctions. Memory must not grow with appends and their
//! idempotency keys. After a kill, the service must become ready again.

use std::fs;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Instant;

use serde_json::{Value, json};

use idmint_testing::http1::{Answer, Client, post_json};
use idmint_testing::service::{Home, Service, until};

/// The number of appends, each with its own idempotency key. The variable `APPENDS` sets another
/// number.
const APPENDS: usize = 120_000;
/// The number of conjunctions. The variable `ANCHORS` sets another number.
const ANCHORS: usize = 20_000;
const REPORTS_OF_A_REQUEST: usize = 1_000;
const THREADS: usize = 8;
const CONNECTIONS: usize = 8;
const GROWTH_MAX_KIB: u64 = 64 * 1024;

/// Returns the resident memory of the service in KiB (`VmRSS`).
pub(crate) fn resident_kib(service: &Service) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", service.pid())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("Linux says so");
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

pub(crate) fn begin(service: &Service, number: usize) -> String {
    let event = json!({ "event": "Begun", "entities": {}, "data": number }).to_string();
    let create = post_json(
        "/ledgers",
        &format!("idempotency-key: begin-{number}\r\n"),
        &event,
    );
    let answer = Client::connect(service.address()).exchange(create);
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["ledger"].as_str().unwrap().to_owned()
}

pub(crate) fn append(ledger: &str, key: &str) -> String {
    let body = format!(
        r#"{{"ledger":"{ledger}","events":[{{"event":"Ordered","entities":{{}},"data":"{key}"}}]}}"#
    );
    post_json(
        "/ids/evently",
        &format!("idempotency-key: {key}\r\n"),
        &body,
    )
}

/// Receives the response to a request that stores a record. The status must be in `stored`.
///
/// A service whose disk is busy may respond with 503, or with 504 if it may still store the record.
/// The request is then repeated with its idempotency key, and may get a 200 instead of a 201.
pub(crate) fn receive_stored(
    client: &mut Client,
    stored: &[u16],
    request: impl Fn() -> String,
) -> Answer {
    let answer = client.receive();
    if [503, 504].contains(&answer.status) {
        return until("a repeated request is answered", || {
            let answer = client.exchange(request());
            [200, 201].contains(&answer.status).then_some(answer)
        });
    }
    assert!(stored.contains(&answer.status), "{answer:?}");
    answer
}

/// Appends to a ledger with the idempotency keys `from` to `to`, on several connections at the same
/// time.
fn append_all(address: SocketAddr, ledger: &str, from: usize, to: usize) {
    let mut clients: Vec<_> = (0..CONNECTIONS).map(|_| Client::connect(address)).collect();
    let mut key = from;
    while key < to {
        let round = clients.len().min(to - key);
        let request = |at: usize| append(ledger, &format!("{ledger}-{}", key + at));
        for (at, client) in clients[..round].iter_mut().enumerate() {
            client.send(request(at));
        }
        for (at, client) in clients[..round].iter_mut().enumerate() {
            receive_stored(client, &[201], || request(at));
        }
        key += round;
    }
}

/// Reports one conjunction for each of `numbers`. Each conjunction has a different pair of objects.
/// Returns the details in the responses.
fn report_all(client: &mut Client, numbers: Range<usize>) -> Vec<Value> {
    let report = |number: usize| json!({ "tca": "2040-01-01T00:00:05Z", "primary": 2 * number + 1, "secondary": 2 * number + 2 });
    let body = Value::from_iter(numbers.map(report)).to_string();
    let answer = client.exchange(post_json("/ids/conjunction", "", &body));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["details"].as_array().unwrap().clone()
}

fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok().map(|text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is {text:?}"))
    })
}

#[test]
fn memory_does_not_grow_with_appends_and_a_start_after_a_kill_knows_every_key() {
    let (appends, anchors) = (
        number("APPENDS").unwrap_or(APPENDS),
        number("ANCHORS").unwrap_or(ANCHORS),
    );
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let ledgers: Vec<String> = (0..THREADS).map(|number| begin(&service, number)).collect();
    let of_each = appends / THREADS;
    let append_part = |from: usize, to: usize| {
        std::thread::scope(|scope| {
            for ledger in &ledgers {
                scope.spawn(|| append_all(service.address(), ledger, from, to));
            }
        });
    };
    let mut client = Client::connect(service.address());
    let first_reports = report_all(&mut client, 0..REPORTS_OF_A_REQUEST);
    for from in (REPORTS_OF_A_REQUEST..anchors).step_by(REPORTS_OF_A_REQUEST) {
        report_all(&mut client, from..anchors.min(from + REPORTS_OF_A_REQUEST));
    }
    let begun = Instant::now();
    append_part(0, of_each / 10);
    let resident_before = resident_kib(&service);
    append_part(of_each / 10, of_each);
    let (resident, time) = (resident_kib(&service), begun.elapsed());
    let growth = resident.saturating_sub(resident_before);
    println!(
        "{appends} appends in {time:?}; {resident_before} KiB after a tenth, {growth} KiB more at the end"
    );
    assert!(growth <= GROWTH_MAX_KIB, "{growth} KiB more");

    service.kill();
    let begun = Instant::now();
    let service = home.start();
    // Retry only until the service is ready. Unlike a mint, an append need not wait for the clock
    // after a start.
    until("a start appends again", || {
        let mut client = Client::try_connect(service.address()).ok()?;
        let answer = client.try_exchange(append(&ledgers[0], "the-first")).ok()?;
        [200, 201].contains(&answer.status).then_some(())
    });
    let (time, appended) = (begun.elapsed(), ledgers.len() * of_each);
    println!(
        "first append {time:?} after the start, behind {appended} appends and {anchors} anchors"
    );
    service.wait_until_ready();
    println!(
        "{}",
        service
            .log()
            .lines()
            .find(|line| line.contains("of the log to the database"))
            .unwrap_or_default()
    );
    let mut client = Client::connect(service.address());
    for (first, again) in first_reports
        .iter()
        .zip(report_all(&mut client, 0..REPORTS_OF_A_REQUEST))
    {
        assert_eq!(
            (
                &first["id"],
                first["created"].as_bool(),
                again["created"].as_bool()
            ),
            (&again["id"], Some(true), Some(false))
        );
    }
    for ledger in &ledgers {
        for key in [0, of_each / 2, of_each - 2, of_each - 1] {
            let again = client.exchange(append(ledger, &format!("{ledger}-{key}")));
            assert_eq!(
                (again.status, again.header("idempotency-replayed")),
                (200, Some("true")),
                "{key} of {ledger}"
            );
        }
        let known: Value = service.get(&format!("/ledgers/{ledger}")).json();
        let more = u64::from(*ledger == ledgers[0]);
        assert_eq!(known["events"], of_each as u64 + 1 + more, "{known}");
    }
}
