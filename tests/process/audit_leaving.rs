//! Checks the audit trail while callers disconnect before their response. Everything durable must
//! be in the trail exactly once, or must be counted as dropped.

use std::collections::HashSet;
use std::fs;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::Request;
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::timeout;

use idmint_testing::http1::{Client, request};
use idmint_testing::service::{Home, LONG, Service, until};

const SEED: u64 = 20_261_124;
const CALLERS: usize = 32;
/// The number of requests that are sent on one connection before it is closed.
const STREAMS: usize = 16;

/// The maximum number of lines that `kill -9` may lose. These are the lines that wait to be
/// written, and the lines of requests in progress.
const LOST_BY_KILL_MAX: usize = 2 * 4_096;

/// The number of durable ids of each kind.
#[derive(Debug, Default, Clone, Copy)]
struct Durable {
    events: usize,
    ledgers: usize,
    conjunctions: usize,
}

impl Durable {
    fn sum(self) -> usize {
        self.events + self.ledgers + self.conjunctions
    }
}

fn start(home: &Home, trail: &Path) -> Service {
    let service = Service::start(home.serve_with(&format!("log.audit = '{}'", trail.display())));
    service.wait_until_ready();
    service
}

/// Creates the ledger to which all requests of a test append. Returns its id.
fn create_ledger(service: &Service) -> String {
    let headers =
        "content-type: application/json\r\nidempotency-key: first\r\nx-request-id: first\r\n";
    let genesis = r#"{"event":"Begun","entities":{}}"#;
    let answer =
        Client::connect(service.address()).exchange(request("POST /ledgers", headers, genesis));
    answer.json()["ledger"].as_str().unwrap().to_owned()
}

/// Returns a request that makes one id durable. In turn, the request appends an event, creates a
/// ledger, or sends a report.
fn request_of(number: usize, ledger: &str) -> Request<Body> {
    let event = json!({ "event": "Counted", "entities": {}, "data": number });
    let (path, body) = match number % 3 {
        0 => (
            "/ids/evently",
            json!({ "ledger": ledger, "events": [event] }),
        ),
        1 => ("/ledgers", event),
        _ => (
            "/ids/conjunction",
            json!({ "tca": "2035-02-01T00:00:00Z", "primary": 1 + number, "secondary": 500_000 }),
        ),
    };
    let request =
        Request::post(format!("http://localhost{path}")).header("content-type", "application/json");
    let name = format!("n-{number}");
    request
        .header("idempotency-key", &name)
        .header("x-request-id", &name)
        .body(Body::from(body.to_string()))
        .unwrap()
}

/// Sends all requests, and returns the number of responses that were received. Requests are
/// cancelled and connections are closed at random moments.
async fn ask_and_leave(
    address: SocketAddr,
    ledger: String,
    mut numbers: Range<usize>,
    mut rng: StdRng,
) -> usize {
    let mut heard = 0;
    while !numbers.is_empty() {
        // Draw the moment at which a caller gives up: 64 us, when few requests are sent, to 65 ms,
        // when most have a response. A third of the connections wait for all responses.
        let is_patient = rng.random_range(0..3) == 0;
        let mut moment = || {
            if is_patient {
                LONG
            } else {
                Duration::from_micros(1 << rng.random_range(6..17))
            }
        };
        let Ok(stream) = TcpStream::connect(address).await else {
            break;
        };
        let Ok((sender, connection)) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await
        else {
            break;
        };
        let connection = tokio::spawn(connection);
        let mut asked = JoinSet::new();
        for number in numbers.by_ref().take(STREAMS) {
            let (mut sender, request, patience) =
                (sender.clone(), request_of(number, &ledger), moment());
            asked.spawn(async move {
                timeout(patience, sender.send_request(request))
                    .await
                    .is_ok_and(|it| it.is_ok())
            });
        }
        let hear = async {
            while let Some(is_heard) = asked.join_next().await {
                heard += usize::from(is_heard.unwrap())
            }
        };
        let _ = timeout(4 * moment(), hear).await;
        connection.abort();
        let _ = connection.await;
    }
    heard
}

fn ask_and_leave_all(address: SocketAddr, ledger: &str, requests: usize) -> usize {
    Runtime::new().unwrap().block_on(async {
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            let numbers = caller * requests / CALLERS..(caller + 1) * requests / CALLERS;
            let rng = StdRng::seed_from_u64(SEED + caller as u64);
            callers.spawn(ask_and_leave(address, ledger.to_owned(), numbers, rng));
        }
        timeout(5 * LONG, callers.join_all())
            .await
            .unwrap()
            .into_iter()
            .sum()
    })
}

/// Returns the numbers of ids in the store, without the ledger that [`create_ledger`] creates.
fn stored(service: &Service, ledger: &str) -> Durable {
    let get = |path: &str| {
        let answer =
            Client::connect(service.address()).exchange(request(&format!("GET {path}"), "", ""));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    };
    let count_pages = |path: &str, member: &str| {
        let (mut count, mut after) = (0, String::new());
        loop {
            let page = get(&format!("{path}{after}"));
            count += page[member].as_array().unwrap().len();
            let Some(next) = page["next"].as_str() else {
                return count;
            };
            let mark = if path.contains('?') { '&' } else { '?' };
            after = format!("{mark}after={next}");
        }
    };
    let events = get(&format!("/ledgers/{ledger}"))["events"]
        .to_string()
        .parse::<usize>()
        .unwrap()
        - 1;
    let ledgers = count_pages("/ledgers", "ledgers") - 1;
    let conjunctions = count_pages("/conjunctions?limit=1000", "conjunctions");
    Durable {
        events,
        ledgers,
        conjunctions,
    }
}

/// The lines of an audit trail, counted by kind.
#[derive(Debug, Default)]
struct Told {
    durable: Durable,
    /// The number of durable ids whose response did not reach the caller.
    unheard: usize,
    /// The number of requests whose result is not in the trail. It can be found only by repeating
    /// the request or reading the store.
    unknown: usize,
    /// The number of lines that are not JSON, because they were written only partly.
    torn: usize,
}

/// Reads audit trails, and counts their lines. Asserts that each request has at most one line.
fn told(trails: &[&Path]) -> Told {
    let (mut told, mut seen) = (Told::default(), HashSet::new());
    let text: String = trails
        .iter()
        .map(|trail| fs::read_to_string(trail).unwrap())
        .collect();
    for line in text.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            told.torn += 1;
            continue;
        };
        let Some(name) = line["request"]
            .as_str()
            .filter(|name| name.starts_with("n-"))
        else {
            continue;
        };
        assert!(seen.insert(name.to_owned()), "{name} is told twice");
        assert!(
            line.get("replayed").is_none(),
            "no request was sent twice: {line}"
        );
        if line["status"] == 504 {
            told.unknown += 1;
        }
        if line["status"] != 200 && line["status"] != 201 {
            continue;
        }
        told.unheard += usize::from(line["answered"] == false);
        match line["path"].as_str().unwrap() {
            "/ledgers" => told.durable.ledgers += 1,
            "/ids/evently" => told.durable.events += 1,
            _ => told.durable.conjunctions += 1,
        }
    }
    told
}

/// Asserts that the trail has all durable ids except at most `missing_max`, and no ids that are not
/// in the store.
#[track_caller]
fn assert_told(told: &Told, stored: Durable, missing_max: usize) {
    let pairs = |durable: Durable| [durable.events, durable.ledgers, durable.conjunctions];
    for (told, stored) in pairs(told.durable).into_iter().zip(pairs(stored)) {
        assert!(
            told <= stored,
            "what is told is stored: {told:?}, {stored:?}"
        );
    }
    let missing = stored.sum() - told.durable.sum();
    assert!(
        missing <= missing_max,
        "{missing} of {stored:?} are not told, {missing_max} may be: {told:?}"
    );
}

#[test]
fn of_callers_that_leave_at_any_moment_every_durable_id_is_told_once() {
    const REQUESTS: usize = 10_000;
    let (home, begun) = (Home::new(), Instant::now());
    let (trail, moved) = (home.path("audit.ndjson"), home.path("audit.ndjson.1"));
    let service = start(&home, &trail);
    let ledger = create_ledger(&service);
    let heard = std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask_and_leave_all(service.address(), &ledger, REQUESTS));
        // Meanwhile, rotate the trail as documented: rename the file, then send SIGHUP so that the
        // service opens a new one.
        wait_for_lines(&trail, 100);
        fs::rename(&trail, &moved).unwrap();
        service.send(Signal::HUP);
        asking.join().unwrap()
    });
    let dropped = service.count("idmint_log_lines_dropped_total");
    service.send(Signal::TERM);
    service.wait().assert(0, &[]);

    let told = told(&[&moved, &trail]);
    let service = start(&home, &home.path("another.ndjson"));
    let stored = stored(&service, &ledger);
    println!(
        "seed {SEED}: {REQUESTS} requests, {heard} answers heard, {stored:?}; {told:?}, {dropped} lines dropped, {:?}",
        begun.elapsed()
    );
    assert!(
        told.unheard > REQUESTS / 100,
        "callers left while their work was done: {told:?}"
    );
    assert!(heard > REQUESTS / 10, "and others were heard");
    assert_eq!(told.torn, 0);
    assert_told(&told, stored, dropped + told.unknown);
}

fn wait_for_lines(trail: &Path, least: usize) {
    until("lines are told", || {
        (fs::read_to_string(trail).unwrap().lines().count() >= least).then_some(())
    });
}

#[test]
fn kill_9_loses_no_more_lines_than_may_wait_and_the_torn_one_is_closed() {
    const REQUESTS: usize = 10_000;
    let home = Home::new();
    let trail = home.path("audit.ndjson");
    let service = start(&home, &trail);
    let ledger = create_ledger(&service);
    let (address, of_callers) = (service.address(), ledger.clone());
    let asking = std::thread::spawn(move || ask_and_leave_all(address, &of_callers, REQUESTS));
    wait_for_lines(&trail, 500);
    service.kill();
    asking.join().unwrap();

    // Add the beginning of a line, as if the process or the machine had stopped while writing it.
    let mut text = fs::read(&trail).unwrap();
    text.extend_from_slice(br#"{"at":"2026-11-24T0"#);
    fs::write(&trail, text).unwrap();
    let service = start(&home, &trail);
    let stored = stored(&service, &ledger);
    let told = told(&[&trail]);
    let last = fs::read_to_string(&trail)
        .unwrap()
        .lines()
        .next_back()
        .unwrap()
        .to_owned();
    println!("killed: {stored:?}; {told:?}; then {last}");
    assert_eq!(told.torn, 1, "it stands alone");
    assert_eq!(
        serde_json::from_str::<Value>(&last).unwrap()["act"],
        "start"
    );
    assert_told(&told, stored, LOST_BY_KILL_MAX);
}
