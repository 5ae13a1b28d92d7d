//! Measures what token checks and TLS cost for a request that mints one id on a kept-alive
//! connection.
//!
//! Three services run in this process, each on its own thread. One is open, one requires a token,
//! and one uses TLS 1.3. A client has one connection to each service and sends one request at a
//! time. The rounds alternate between the services.
//!
//! The important figure is the running time of the service's thread for each request. The number of
//! requests per second is printed next to it.

mod harness;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use harness::busy::busy_nanos;
use harness::comparison::{Target, ratios, report};
use harness::server::{serve, single_thread_runtime};
use idmint::server::config::Config;
use idmint_http::{Scope, TokenEntry, TokenText};
use idmint_testing::http1::{AnswerParser, request};
use rcgen::CertifiedKey;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio::runtime::Runtime;

const ROUNDS: usize = 41;
const ROUND_MIN: Duration = Duration::from_millis(120);

/// A service on its own thread, together with the only connection to it.
struct Subject {
    thread: &'static str,
    connection: Box<dyn Connection>,
    request: Vec<u8>,
    busy_us: Vec<f64>,
    requests_per_second: Vec<f64>,
    _runtime: Runtime,
}

trait Connection: Read + Write {}
impl<C: Read + Write> Connection for C {}

fn main() {
    let folder = tempfile::tempdir().expect("a place for tokens and certificates");
    let token = TokenText::random().expect("randomness");
    let bearer = format!("authorization: Bearer {}\r\n", token.text());
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let write = |name: &str, text: String| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("the folder is writable");
        path
    };
    let entry = TokenEntry {
        name: "bench".to_owned(),
        sha256: token.digest(),
        scopes: vec![Scope::Mint],
        formats: None,
        ledgers: None,
        series: None,
        expires: None,
    };
    let tokens = write("tokens.toml", entry.to_toml());
    let (certificate, key) = (
        write("cert.pem", cert.pem()),
        write("key.pem", signing_key.serialize_pem()),
    );

    let plain = |address| Box::new(connect(address)) as Box<dyn Connection>;
    let in_tls = |address| Box::new(secured(address, cert.der().clone())) as Box<dyn Connection>;
    let mut subjects = [
        Subject::new("idmint-open", folder.path(), |_| {}, "", plain),
        Subject::new(
            "idmint-token",
            folder.path(),
            |config| config.http.tokens = Some(tokens.clone()),
            &bearer,
            plain,
        ),
        Subject::new(
            "idmint-tls",
            folder.path(),
            |config| {
                config.http.tls.certificate = Some(certificate.clone());
                config.http.tls.key = Some(key.clone());
            },
            "",
            in_tls,
        ),
    ];
    // A new service mints only from the next whole second on. Wait until then.
    thread::sleep(Duration::from_secs(3));
    for round in 0..=ROUNDS {
        subjects
            .iter_mut()
            .for_each(|subject| subject.measure(round > 0));
    }

    println!(
        "\nOne id on a kept connection: median of {ROUNDS} rounds, and from the first tenth to the last"
    );
    for Subject {
        thread,
        busy_us,
        requests_per_second,
        ..
    } in &subjects
    {
        report(
            &format!("{thread}: busy for a request"),
            "us",
            Target::None,
            &mut busy_us.clone(),
        );
        report(
            &format!("{thread}: requests a second"),
            "/s",
            Target::None,
            &mut requests_per_second.clone(),
        );
    }
    let [open, token, tls] = &subjects;
    report(
        "with a token / without: busy",
        "x",
        Target::Under(1.05),
        &mut ratios(&token.busy_us, &open.busy_us),
    );
    report(
        "in TLS / without: busy",
        "x",
        Target::Under(1.30),
        &mut ratios(&tls.busy_us, &open.busy_us),
    );
    let rates = |subject: &Subject| ratios(&subject.requests_per_second, &open.requests_per_second);
    report(
        "with a token / without: requests a second",
        "x",
        Target::AtLeast(0.95),
        &mut rates(token),
    );
    report(
        "in TLS / without: requests a second",
        "x",
        Target::AtLeast(0.70),
        &mut rates(tls),
    );
}

impl Subject {
    fn new(
        thread: &'static str,
        folder: &Path,
        set: impl FnOnce(&mut Config),
        headers: &str,
        connect: impl FnOnce(SocketAddr) -> Box<dyn Connection>,
    ) -> Subject {
        let mut config = Config::default();
        set(&mut config);
        let runtime = single_thread_runtime(thread);
        let address = runtime.block_on(serve(config, &folder.join(thread)));
        let request = request("POST /ids/snowflake", headers, "").into_bytes();
        let (busy_us, requests_per_second) = (Vec::new(), Vec::new());
        Subject {
            thread,
            connection: connect(address),
            request,
            busy_us,
            requests_per_second,
            _runtime: runtime,
        }
    }

    fn measure(&mut self, counts: bool) {
        let (began, busy_before) = (Instant::now(), busy_nanos(self.thread));
        let mut requests = 0.0;
        while began.elapsed() < ROUND_MIN {
            self.exchange();
            requests += 1.0;
        }
        let (passed, busy) = (began.elapsed(), busy_nanos(self.thread) - busy_before);
        if counts {
            self.busy_us.push(busy / 1e3 / requests);
            self.requests_per_second
                .push(requests / passed.as_secs_f64());
        }
    }

    fn exchange(&mut self) {
        self.connection
            .write_all(&self.request)
            .expect("it is open");
        let (mut parser, mut unread, mut buffer) = (AnswerParser::new(), Vec::new(), [0; 4096]);
        loop {
            let (used, end) = parser
                .parse(&unread, |_| {})
                .expect("an answer of HTTP/1.1");
            unread.drain(..used);
            if let Some(end) = end {
                return assert_eq!(end.status, 200);
            }
            let len = self.connection.read(&mut buffer).expect("it is open");
            assert!(len > 0, "the connection has ended");
            unread.extend_from_slice(&buffer[..len]);
        }
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_nodelay(true).expect("a socket");
    stream
}

fn secured(
    address: SocketAddr,
    trusted: CertificateDer<'static>,
) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted).expect("a certificate");
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder
        .with_safe_default_protocol_versions()
        .expect("ring has them");
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    StreamOwned::new(
        ClientConnection::new(Arc::new(config), name).expect("a configuration"),
        connect(address),
    )
}
