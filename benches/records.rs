//! Measures requests over HTTP that read or write records. Appends of events to a ledger are
//! compared with the rate of the disk. Reports of a conjunction that the service already knows are
//! compared with mints of new ids.
//!
//! The service runs on a thread of this process, with its files in the build folder. The rate of
//! the disk is measured with blocks of 4 KiB. Each block overwrites an existing one and is then
//! synced.

mod harness;

use std::borrow::Cow;
use std::cell::Cell;
use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use harness::clients::Clients;
use harness::comparison::{Target, ratios, report};
use harness::server::{serve_in, single_thread_runtime};
use idmint_testing::http1::request;

const ROUNDS: usize = 9;
const ROUND_MIN: Duration = Duration::from_millis(300);
const CLIENTS: usize = 64;
const EVENTS_OF_A_GROUP: usize = 100;

const LEDGER: &str = "aa77f99c";
const GENESIS: &str = r#"{"event":"Ledger Created","entities":{"ledger":"testing⑆preview"},"timestamp":"2021-10-03T16:32:12.816530Z","meta":{"actor":"matt"},"data":{"name":"My Ledger","description":"This ledger is for my example events."}}"#;
const EVENT: &str = r#"{"event":"Item Ordered","entities":{"patron":["Harold_Cho"]},"data":{"menuItem":"Bean Burrito","toppings":["chiles","salsa verde"],"spicy":true,"peppers":5},"meta":{"actor":"register-2"}}"#;
const REPORT: &str = r#"{"tca":"2024-02-01T00:00:00.250Z","primary":25544,"secondary":48274}"#;

fn main() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .expect("a place on the disk of the build");
    let runtime = single_thread_runtime("idmint-serve");
    let idmint = runtime.block_on(serve_in(directory.path()));
    // A new service mints only from the next whole second on. Wait until then.
    thread::sleep(Duration::from_secs(3));
    let post = |path, body: &str| Clients::with_body(idmint, path, JSON, body);
    post("POST /ledgers", GENESIS).exchange_once();
    post("POST /ids/conjunction", REPORT).exchange_once();

    let disk = Disk::at(&directory.path().join("blocks"));
    let mut one = Appenders::new(idmint, 1, 1);
    let mut many = Appenders::new(idmint, CLIENTS, 1);
    let mut groups = Appenders::new(idmint, CLIENTS, EVENTS_OF_A_GROUP);
    let mut reports = post("POST /ids/conjunction", REPORT);
    let mut mints = post("POST /ids/snowflake", "");
    let mut rates: [Vec<f64>; 6] = Default::default();
    for round in 0..=ROUNDS {
        let measured = [
            rate(|| disk.sync()),
            rate(|| one.append()),
            rate(|| many.append()),
            rate(|| groups.append()),
            rate(|| exchange_all(&mut reports)),
            rate(|| exchange_all(&mut mints)),
        ];
        for (rates, measured) in rates.iter_mut().zip(measured).filter(|_| round > 0) {
            rates.push(measured);
        }
    }

    println!("\nIds with memory: median of {ROUNDS} rounds, and from the first tenth to the last");
    let [disk, one, many, groups, reports, mints] = &mut rates;
    let (mut one_to_disk, mut many_to_disk) = (ratios(one, disk), ratios(many, disk));
    let (mut groups_to_disk, mut reports_to_mints) = (ratios(groups, disk), ratios(reports, mints));
    report("the disk: synced blocks", "/s", Target::None, disk);
    report(
        "one client, one event at a time: events",
        "/s",
        Target::None,
        one,
    );
    report(
        &format!("{CLIENTS} clients, one event at a time: events"),
        "/s",
        Target::None,
        many,
    );
    report(
        &format!("{CLIENTS} clients, {EVENTS_OF_A_GROUP} events at a time: events"),
        "/s",
        Target::None,
        groups,
    );
    report(
        "one client / the disk",
        "x",
        Target::AtLeast(0.35),
        &mut one_to_disk,
    );
    report(
        &format!("{CLIENTS} clients / the disk"),
        "x",
        Target::AtLeast(4.0),
        &mut many_to_disk,
    );
    report(
        &format!("{CLIENTS} clients in groups / the disk"),
        "x",
        Target::AtLeast(40.0),
        &mut groups_to_disk,
    );
    report(
        "a report of a known conjunction: requests",
        "/s",
        Target::None,
        reports,
    );
    report("one id: requests", "/s", Target::None, mints);
    report(
        "a known report / one id",
        "x",
        Target::AtLeast(0.5),
        &mut reports_to_mints,
    );
}

/// Returns the number of operations per second. `work` returns how many operations it has done.
fn rate(mut work: impl FnMut() -> usize) -> f64 {
    let began = Instant::now();
    let mut done = 0;
    while began.elapsed() < ROUND_MIN {
        done += work();
    }
    done as f64 / began.elapsed().as_secs_f64()
}

fn exchange_all(clients: &mut Clients) -> usize {
    clients.exchange_all();
    harness::clients::CONNECTIONS
}

const JSON: &str = "content-type: application/json\r\n";

/// A file whose blocks already exist, so that a sync does not change its length.
struct Disk {
    file: File,
    next: Cell<u64>,
}

const BLOCKS: u64 = 256;

impl Disk {
    fn at(path: &Path) -> Disk {
        let file = File::create_new(path).expect("a new file");
        file.write_all_at(&vec![0; 4096 * 256], 0)
            .expect("room for 1 MiB");
        file.sync_all().expect("a disk");
        Disk {
            file,
            next: Cell::new(0),
        }
    }

    fn sync(&self) -> usize {
        let at = self.next.replace((self.next.get() + 1) % BLOCKS);
        self.file
            .write_all_at(&[7; 4096], at * 4096)
            .expect("a disk");
        self.file.sync_data().expect("a disk");
        1
    }
}

/// Clients that append to one ledger. Each request has a new idempotency key.
struct Appenders {
    clients: Clients,
    count: usize,
    events: usize,
    body: String,
    requests: usize,
}

impl Appenders {
    fn new(idmint: SocketAddr, count: usize, events: usize) -> Appenders {
        let body = format!(
            r#"{{"ledger":"{LEDGER}","events":[{}]}}"#,
            vec![EVENT; events].join(",")
        );
        Appenders {
            clients: Clients::connect(idmint, count),
            count,
            events,
            body,
            requests: 0,
        }
    }

    fn append(&mut self) -> usize {
        let Appenders {
            clients,
            count,
            events,
            body,
            requests,
        } = self;
        let round = *requests;
        let append = |client| -> Cow<'static, [u8]> {
            let headers = format!("{JSON}idempotency-key: {count}-{events}-{client}-{round}\r\n");
            request("POST /ids/evently", &headers, body)
                .into_bytes()
                .into()
        };
        clients.exchange_each(append);
        *requests += 1;
        *count * *events
    }
}
