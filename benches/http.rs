//! Measures requests per second with all features of the service, compared with the least possible
//! work in axum: a constant response of the same size.
//!
//! Both servers run in this process, each on its own thread. The client is a third thread with
//! several kept-alive connections. It sends on all connections before it reads the responses. The
//! rounds alternate between the servers, so that a slow moment of the machine affects both. If
//! other work uses the same cores, the running time of a server's thread says more than requests
//! per second. Linux reports that time in `/proc`.

mod harness;

use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use axum::serve::ListenerExt;
use harness::busy::busy_nanos;
use harness::clients::{CONNECTIONS, Clients};
use harness::comparison::{Target, ratios, report};
use harness::server::{serve_in, single_thread_runtime};
use tokio::net::TcpListener;

const ROUNDS: usize = 21;
const ROUND_MIN: Duration = Duration::from_millis(250);

/// The names of the threads on which the servers run.
const BARE: &str = "bare-axum";
const IDMINT: &str = "idmint-serve";

const ONE_ID: &str = "POST /ids/snowflake";
const ONE_ID_BODY: &str =
    "{\"format\":\"snowflake\",\"count\":1,\"ids\":[\"1587974656345886720\"]}\n";

/// The mint requests for the ids in a large decode request. Each of them mints [`IDS_OF_EACH`] ids.
const MIXED: [&str; 5] = [
    "snowflake?",
    "payment?",
    "siq?type=message&",
    "flax?",
    "uuid7?",
];
const IDS_OF_EACH: usize = 2_000;

/// A request that a benchmark repeats, with its figures.
struct Subject {
    name: &'static str,
    server: &'static str,
    clients: Clients,
    requests_per_second: Vec<f64>,
    /// The running time of the server's thread for each request, in microseconds, in every round.
    busy_us: Vec<f64>,
}

fn main() {
    let directory = tempfile::tempdir().expect("a place for the horizon");
    let bare_runtime = single_thread_runtime(BARE);
    let bare = bare_runtime.block_on(bare_axum());
    let idmint_runtime = single_thread_runtime(IDMINT);
    let idmint = idmint_runtime.block_on(serve_in(directory.path()));
    // A new service mints only from the next whole second on. Wait until then.
    thread::sleep(Duration::from_secs(3));

    let minted = Clients::new(idmint, ONE_ID).exchange_once().text();
    let id = minted.split('"').nth_back(1).expect("an id between quotes");
    let mut subjects = [
        Subject::new("bare axum, a constant body", BARE, bare, ONE_ID),
        Subject::new("one id", IDMINT, idmint, ONE_ID),
        Subject::new(
            "decoding one id",
            IDMINT,
            idmint,
            &format!("GET /decode/{id}"),
        ),
        Subject::new(
            "decoding a Flax ID",
            IDMINT,
            idmint,
            "GET /decode/0RdKJcxqVBiAiQr0",
        ),
        Subject::of(
            "decoding 10 000 ids of five formats",
            IDMINT,
            mixed_ids(idmint),
        ),
        Subject::new(
            "1 000 ids as JSON",
            IDMINT,
            idmint,
            "POST /ids/snowflake?count=1000",
        ),
    ];
    for round in 0..=ROUNDS {
        for subject in &mut subjects {
            subject.measure(round > 0);
        }
    }

    println!("\nOver HTTP: median of {ROUNDS} rounds, and from the first tenth to the last");
    let [bare, one, decoded, decoded_flax, decoded_many, thousand] = &subjects;
    let rate = |subject: &Subject| subject.requests_per_second.clone();
    let busy = |subject: &Subject| subject.busy_us.clone();
    for subject in &subjects {
        report(
            &format!("{}: requests a second", subject.name),
            "/s",
            Target::None,
            &mut rate(subject),
        );
        report(
            &format!("{}: the server was busy", subject.name),
            "us",
            Target::None,
            &mut busy(subject),
        );
    }
    let least = Target::AtLeast(0.6);
    report(
        "one id / bare axum: requests a second",
        "x",
        least,
        &mut ratios(&rate(one), &rate(bare)),
    );
    report(
        "bare axum / one id: busy",
        "x",
        Target::None,
        &mut ratios(&busy(bare), &busy(one)),
    );
    // Report both kinds of ids, because a decimal number can be read as ids of ten formats, but a
    // Flax id only as one.
    report(
        "decoding / one id: requests a second",
        "x",
        Target::AtLeast(0.5),
        &mut ratios(&rate(decoded), &rate(one)),
    );
    let of_flax = &mut ratios(&rate(decoded_flax), &rate(one));
    report(
        "decoding a Flax ID / one id: requests a second",
        "x",
        Target::AtLeast(0.5),
        of_flax,
    );
    let ids = (MIXED.len() * IDS_OF_EACH) as f64;
    let mut ids_per_second: Vec<_> = rate(decoded_many)
        .iter()
        .map(|requests| requests * ids)
        .collect();
    report(
        "decoding 10 000 ids: ids a second",
        "/s",
        Target::AtLeast(300_000.0),
        &mut ids_per_second,
    );
    report(
        "1 000 ids / one id: requests a second",
        "x",
        Target::None,
        &mut ratios(&rate(thousand), &rate(one)),
    );
}

async fn bare_axum() -> SocketAddr {
    let constant = || async { ([(CONTENT_TYPE, "application/json")], ONE_ID_BODY) };
    let router = Router::new().route("/ids/snowflake", post(constant));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let address = listener
        .local_addr()
        .expect("a bound socket has an address");
    let listener = listener.tap_io(|stream| stream.set_nodelay(true).expect("a socket"));
    tokio::spawn(async { axum::serve(listener, router).await });
    address
}

/// Returns clients that send a text with many ids to decode, and request the response as NDJSON.
fn mixed_ids(idmint: SocketAddr) -> Clients {
    let mint = |order| {
        Clients::new(idmint, &format!("POST /ids/{order}count={IDS_OF_EACH}"))
            .exchange_once()
            .text()
    };
    let minted = MIXED.map(mint);
    let ids = minted.iter().flat_map(|answer| {
        let (_, ids) = answer.split_once("\"ids\":[\"").expect("an answer in JSON");
        ids.trim_end_matches("\"]}\n").split("\",\"")
    });
    let body = ids.collect::<Vec<_>>().join("\n");
    Clients::with_body(
        idmint,
        "POST /decode",
        "content-type: text/plain\r\naccept: application/x-ndjson\r\n",
        &body,
    )
}

impl Subject {
    fn new(name: &'static str, server: &'static str, address: SocketAddr, request: &str) -> Self {
        Self::of(name, server, Clients::new(address, request))
    }

    fn of(name: &'static str, server: &'static str, clients: Clients) -> Self {
        Self {
            name,
            server,
            clients,
            requests_per_second: Vec::new(),
            busy_us: Vec::new(),
        }
    }

    fn measure(&mut self, counts: bool) {
        let (began, busy_before) = (Instant::now(), busy_nanos(self.server));
        let mut requests = 0.0;
        while began.elapsed() < ROUND_MIN {
            self.clients.exchange_all();
            requests += CONNECTIONS as f64;
        }
        let (passed, busy) = (began.elapsed(), busy_nanos(self.server) - busy_before);
        if counts {
            self.requests_per_second
                .push(requests / passed.as_secs_f64());
            self.busy_us.push(busy / 1e3 / requests);
        }
    }
}
