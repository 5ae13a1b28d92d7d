//! Requests a second with everything on, against the least that axum can do: a constant body of the same size.
//!
//! Both servers run in this process, each on one thread. One more thread is the caller, with several kept-alive
//! connections: it asks on all of them before it reads the answers. Rounds alternate, so that a slow moment of the
//! machine slows both. Where other work takes turns on the cores, the time for which a server's thread was really
//! running says more than requests a second do; Linux tells it for each thread, in `/proc`.

mod harness;

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use axum::serve::ListenerExt;
use harness::comparison::{Target, report};
use idmint::server::config::Config;
use idmint::server::{RunOptions, open};
use idmint::time::Clock;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

const CONNECTIONS: usize = 16;
const ROUNDS: usize = 21;
const ROUND_MIN: Duration = Duration::from_millis(250);

/// What the servers' threads are called.
const BARE: &str = "bare-axum";
const IDMINT: &str = "idmint-serve";

const ONE_ID: &str = "POST /ids/snowflake";
const ONE_ID_BODY: &str = r#"{"format":"snowflake","count":1,"ids":["1587974656345886720"]}"#;

/// What the ids of a large request to decode are minted by, [`IDS_OF_EACH`] each.
const MIXED: [&str; 5] = ["snowflake?", "payment?", "siq?type=message&", "flax?", "uuid7?"];
const IDS_OF_EACH: usize = 2_000;

/// One request, asked over and over.
struct Subject {
    name: &'static str,
    server: &'static str,
    callers: Callers,
    requests_per_second: Vec<f64>,
    /// How long the server's thread was running for each request.
    busy_us: Vec<f64>,
}

fn main() {
    let directory = tempfile::tempdir().expect("a place for the horizon");
    let bare_runtime = one_thread(BARE);
    let bare = bare_runtime.block_on(bare_axum());
    let idmint_runtime = one_thread(IDMINT);
    let idmint = idmint_runtime.block_on(everything_on(directory.path()));
    // A start begins at the next whole second, and is ahead of its clock until that has come.
    thread::sleep(Duration::from_secs(3));

    let minted = Callers::to(idmint, ONE_ID).ask_once();
    let id = minted.split('"').nth_back(1).expect("an id between quotes");
    let mut subjects = [
        Subject::new("bare axum, a constant body", BARE, bare, ONE_ID),
        Subject::new("one id", IDMINT, idmint, ONE_ID),
        Subject::new("decoding one id", IDMINT, idmint, &format!("GET /decode/{id}")),
        Subject::new("decoding a Flax ID", IDMINT, idmint, "GET /decode/0RdKJcxqVBiAiQr0"),
        Subject::of("decoding 10 000 ids of five formats", IDMINT, mixed_ids(idmint)),
        Subject::new("1 000 ids as JSON", IDMINT, idmint, "POST /ids/snowflake?count=1000"),
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
        report(&format!("{}: requests a second", subject.name), "/s", Target::None, &mut rate(subject));
        report(&format!("{}: the server was busy", subject.name), "us", Target::None, &mut busy(subject));
    }
    let least = Target::AtLeast(0.6);
    report("one id / bare axum: requests a second", "x", least, &mut ratios(&rate(one), &rate(bare)));
    report("bare axum / one id: busy", "x", Target::None, &mut ratios(&busy(bare), &busy(one)));
    // A decimal number has ten readings, a Flax ID has one.
    report("decoding / one id: requests a second", "x", Target::AtLeast(0.5), &mut ratios(&rate(decoded), &rate(one)));
    let of_flax = &mut ratios(&rate(decoded_flax), &rate(one));
    report("decoding a Flax ID / one id: requests a second", "x", Target::AtLeast(0.5), of_flax);
    let ids = (MIXED.len() * IDS_OF_EACH) as f64;
    let mut ids_per_second: Vec<_> = rate(decoded_many).iter().map(|requests| requests * ids).collect();
    report("decoding 10 000 ids: ids a second", "/s", Target::AtLeast(300_000.0), &mut ids_per_second);
    report("1 000 ids / one id: requests a second", "x", Target::None, &mut ratios(&rate(thousand), &rate(one)));
}

/// Round by round, since two figures of one round met the same machine.
fn ratios(figures: &[f64], of: &[f64]) -> Vec<f64> {
    figures.iter().zip(of).map(|(figure, of)| figure / of).collect()
}

fn one_thread(name: &str) -> Runtime {
    Builder::new_multi_thread().worker_threads(1).thread_name(name).enable_all().build().expect("a thread")
}

async fn bare_axum() -> SocketAddr {
    let constant = || async { ([(CONTENT_TYPE, "application/json")], ONE_ID_BODY) };
    let router = Router::new().route("/ids/snowflake", post(constant));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("a bound socket has an address");
    let listener = listener.tap_io(|stream| stream.set_nodelay(true).expect("a socket"));
    tokio::spawn(async { axum::serve(listener, router).await });
    address
}

/// Callers that have a text of many ids decoded, answered as NDJSON.
fn mixed_ids(idmint: SocketAddr) -> Callers {
    let mint = |order| Callers::to(idmint, &format!("POST /ids/{order}count={IDS_OF_EACH}")).ask_once();
    let minted = MIXED.map(mint);
    let ids = minted.iter().flat_map(|answer| {
        let (_, ids) = answer.split_once("\"ids\":[\"").expect("an answer in JSON");
        ids.trim_end_matches("\"]}").split("\",\"")
    });
    let body = ids.collect::<Vec<_>>().join("\n");
    let headers =
        format!("content-type: text/plain\r\naccept: application/x-ndjson\r\ncontent-length: {}\r\n", body.len());
    Callers::sending(idmint, "POST /decode", &headers, &body)
}

/// As `idmint serve` does it, with its default configuration and its files.
async fn everything_on(directory: &Path) -> SocketAddr {
    let mut config = Config::default();
    config.http.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    config.storage.data_dir = directory.to_owned();
    let clock = Arc::new(Clock::system());
    let running = open(&config, RunOptions::default(), clock).await.expect("an empty directory");
    let address = running.address();
    tokio::spawn(async move { running.serve(&config, std::future::pending()).await });
    address
}

impl Subject {
    fn new(name: &'static str, server: &'static str, address: SocketAddr, request: &str) -> Self {
        Self::of(name, server, Callers::to(address, request))
    }

    fn of(name: &'static str, server: &'static str, callers: Callers) -> Self {
        Self { name, server, callers, requests_per_second: Vec::new(), busy_us: Vec::new() }
    }

    fn measure(&mut self, counts: bool) {
        let (began, busy_before) = (Instant::now(), busy_nanos(self.server));
        let mut requests = 0.0;
        while began.elapsed() < ROUND_MIN {
            self.callers.ask_all();
            requests += CONNECTIONS as f64;
        }
        let (passed, busy) = (began.elapsed(), busy_nanos(self.server) - busy_before);
        if counts {
            self.requests_per_second.push(requests / passed.as_secs_f64());
            self.busy_us.push(busy / 1e3 / requests);
        }
    }
}

/// For how long the threads of that name have been running.
fn busy_nanos(name: &str) -> f64 {
    let tasks =
        fs::read_dir("/proc/self/task").expect("Linux lists threads").map(|task| task.expect("a thread").path());
    let named = tasks.filter(|task| fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim_end() == name));
    let running = |task: &Path| -> Option<f64> {
        fs::read_to_string(task.join("schedstat")).ok()?.split(' ').next()?.parse().ok()
    };
    named.filter_map(|task| running(&task)).sum()
}

/// Connections that ask the same.
struct Callers {
    streams: Vec<TcpStream>,
    request: String,
    answer: Vec<u8>,
}

impl Callers {
    fn to(address: SocketAddr, request: &str) -> Self {
        Self::sending(address, request, "accept: */*\r\n", "")
    }

    fn sending(address: SocketAddr, request: &str, headers: &str, body: &str) -> Self {
        let connect = |_| {
            let stream = TcpStream::connect(address).expect("it listens");
            stream.set_nodelay(true).expect("a socket");
            stream
        };
        let request = format!("{request} HTTP/1.1\r\nhost: bench\r\n{headers}\r\n{body}");
        Self { streams: (0..CONNECTIONS).map(connect).collect(), request, answer: vec![0; 256 * 1024] }
    }

    fn ask_once(mut self) -> String {
        self.streams.truncate(1);
        let len = self.ask_all();
        String::from_utf8_lossy(&self.answer[..len]).into_owned()
    }

    /// Asks on every connection, then reads the answers; the length of the last one is returned.
    fn ask_all(&mut self) -> usize {
        for stream in &mut self.streams {
            stream.write_all(self.request.as_bytes()).expect("kept alive");
        }
        let mut len = 0;
        for stream in &mut self.streams {
            len = read_answer(stream, &mut self.answer);
        }
        len
    }
}

/// What ends a body of chunks.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

/// Reads one answer, which must be 200, and says how much of it was kept: all, head and body, unless it came in chunks.
fn read_answer(stream: &mut TcpStream, answer: &mut [u8]) -> usize {
    let mut len = 0;
    let mut whole = None;
    while whole.is_none_or(|whole| len < whole) {
        let more = stream.read(&mut answer[len..]).expect("kept alive");
        assert!(more > 0, "closed in the middle of an answer");
        len += more;
        if whole.is_none()
            && let Some(head_len) = head_len(&answer[..len])
        {
            match whole_len(&answer[..head_len]) {
                Some(len) => whole = Some(len),
                None => return read_chunks(stream, answer, len),
            }
        }
    }
    len
}

/// Reads to the last chunk over what is there, of which only the end is kept.
fn read_chunks(stream: &mut TcpStream, answer: &mut [u8], mut len: usize) -> usize {
    while !answer[..len].ends_with(LAST_CHUNK) {
        let kept = len.min(LAST_CHUNK.len());
        answer.copy_within(len - kept..len, 0);
        let more = stream.read(&mut answer[kept..]).expect("kept alive");
        assert!(more > 0, "closed in the middle of an answer");
        len = kept + more;
    }
    len
}

/// The length of the head, once it is there.
fn head_len(answer: &[u8]) -> Option<usize> {
    Some(answer.windows(4).position(|window| window == b"\r\n\r\n")? + 4)
}

/// The length of head and body, if the head says it.
fn whole_len(head: &[u8]) -> Option<usize> {
    let text = str::from_utf8(head).expect("heads are ASCII");
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    Some(head.len() + length.parse::<usize>().expect("a number"))
}
