//! Fuzzes a running service, with bodies for its routes and raw bytes for its connections.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use idmint::server::config::Config;
use idmint::server::{RunOptions, open};
use idmint_core::time::Clock;
use tokio::runtime::Runtime;

use idmint_testing::http1::{Client, request};

/// The address of the only service of this process. The service stores nothing on disk, and ends
/// with the process.
static SERVICE: LazyLock<SocketAddr> = LazyLock::new(|| {
    let runtime = Box::leak(Box::new(Runtime::new().unwrap()));
    let settings =
        "http.listen = '127.0.0.1:0'\nstorage.engine = 'memory'\nmint.on_exhausted = 'refuse'";
    let config = Config::load(None, std::iter::empty(), settings.parse().unwrap()).unwrap();
    let config: &'static Config = Box::leak(Box::new(config));
    let running = runtime
        .block_on(open(
            config,
            RunOptions::default(),
            None,
            Arc::new(Clock::system()),
        ))
        .unwrap();
    let address = running.address();
    runtime.spawn(running.serve(config, std::future::pending()));
    while Client::connect(address)
        .exchange(request("GET /health/ready", "", ""))
        .status
        != 200
    {
        std::thread::sleep(Duration::from_millis(10));
    }
    let headers = "content-type: application/json\r\nidempotency-key: genesis\r\n";
    let genesis = r#"{"event":"Begun","entities":{},"timestamp":"2021-10-03T16:32:12.816530Z"}"#;
    assert_eq!(
        Client::connect(address)
            .exchange(request("POST /ledgers", headers, genesis))
            .status,
        201
    );
    address
});

const JSON: &str = "content-type: application/json\r\n";
const TEXT: &str = "content-type: text/plain\r\n";

/// The routes that read a body. The first byte of an input chooses the route.
const ROUTES: &[(&str, &str)] = &[
    ("POST /ids/snowflake", JSON),
    ("POST /ids/conjunction", JSON),
    ("POST /ids/conjunction?partial=true", JSON),
    ("POST /ids/conjunction?return=cdm", TEXT),
    ("POST /ids/conjunction", "content-type: application/xml\r\n"),
    ("POST /ids/evently", JSON),
    ("POST /ledgers", JSON),
    ("POST /decode", JSON),
    ("POST /decode?detail=full", TEXT),
    (
        "POST /ledgers/aa77f99c/verify",
        "content-type: application/x-ndjson\r\n",
    ),
    ("POST /inspect", TEXT),
];

/// Sends a body to a route. Every body must get a response, and its status must not be 500 or 504.
pub(super) fn answer_body(bytes: &[u8]) {
    thread_local!(static CLIENT: RefCell<Option<Client>> = const { RefCell::new(None) });
    let Some((route, body)) = bytes.split_first() else {
        return;
    };
    let (line, headers) = ROUTES[usize::from(*route) % ROUTES.len()];
    // Use a hash of the body as the idempotency key. The same body then repeats the same request,
    // and no other body uses the same key.
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    let head = format!(
        "{line} HTTP/1.1\r\nhost: localhost\r\n{headers}idempotency-key: {:x}\r\ncontent-length: {}\r\n\r\n",
        hasher.finish(),
        body.len()
    );
    CLIENT.with_borrow_mut(|client| {
        let whole = [head.as_bytes(), body].concat();
        let mut ask = || {
            client
                .get_or_insert_with(|| Client::connect(*SERVICE))
                .try_exchange(&whole)
        };
        // Retry once on a new connection, because the service may have closed the old one because
        // of its age.
        let answer = ask().or_else(|error| {
            eprintln!("asked again: {error:?}");
            *client = None;
            client
                .insert(Client::connect(*SERVICE))
                .try_exchange(&whole)
        });
        let answer = answer.unwrap();
        assert!(
            ![500, 504].contains(&answer.status),
            "{line}: {}",
            answer.text()
        );
        if answer.header("connection").is_some() {
            *client = None;
        }
    });
}

/// Sends raw bytes, and closes the sending direction. No response may have the status 500. The
/// service must then close the connection and keep running.
pub(super) fn answer_bytes(bytes: &[u8]) {
    let mut stream = TcpStream::connect(*SERVICE).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answers = Vec::new();
    // A connection that was reset counts as closed.
    if let Err(error) = stream.read_to_end(&mut answers) {
        let is_reset = matches!(
            error.kind(),
            std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe
        );
        assert!(is_reset, "the connection does not end: {error}");
    }
    assert!(
        !answers.windows(12).any(|some| some == b"HTTP/1.1 500"),
        "{}",
        String::from_utf8_lossy(&answers)
    );
}
