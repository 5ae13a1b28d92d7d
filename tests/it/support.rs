//! A server in this process, and a caller that writes and reads bytes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Method};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use idmint::http::answer::{MediaType, media_type_of_body, negotiate};
use idmint::http::request::read_body;
use idmint::http::{Edge, HttpMetrics, Problem, complete, problem_page};
use idmint::net::{Drained, Limits, OpenConnections, serve};
use prometheus::{Registry, TextEncoder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

/// Far longer than anything here takes, on however slow a machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Limits that no test runs into unless it shortens one.
pub(crate) const WIDE: Limits = Limits { connections_max: 1_000, header_timeout: LONG, idle_timeout: LONG };

pub(crate) const BODY_LEN_MAX: usize = 16;
const BIG: usize = 64 << 20;

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) open: OpenConnections,
    /// Lets one request to `/slow` go on.
    pub(crate) release: Arc<Notify>,
    registry: Registry,
    drain: oneshot::Sender<()>,
    ended: JoinHandle<Drained>,
}

impl Running {
    pub(crate) async fn start(limits: Limits) -> Self {
        Self::start_on(TcpListener::bind("127.0.0.1:0").await.unwrap(), limits, LONG)
    }

    pub(crate) async fn start_to_drain_within(drain_max: Duration) -> Self {
        Self::start_on(TcpListener::bind("127.0.0.1:0").await.unwrap(), WIDE, drain_max)
    }

    fn start_on(listener: TcpListener, limits: Limits, drain_max: Duration) -> Self {
        let (address, open) = (listener.local_addr().unwrap(), OpenConnections::default());
        let (release, registry) = (Arc::new(Notify::new()), Registry::new());
        let (drain, drained) = oneshot::channel::<()>();
        let router = router(Arc::clone(&release), &registry);
        let serving = serve(listener, router, limits, open.clone(), async { _ = drained.await }, drain_max);
        Self { address, open, release, registry, drain, ended: tokio::spawn(serving) }
    }

    pub(crate) async fn connect(&self) -> Caller {
        Caller::on(TcpStream::connect(self.address).await.unwrap())
    }

    /// One request on a connection of its own.
    pub(crate) async fn ask(&self, request: &str) -> Answer {
        self.connect().await.ask(request).await
    }

    pub(crate) fn metrics(&self) -> String {
        TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap()
    }

    /// Begins to drain; the returned task ends with it.
    pub(crate) fn begin_draining(self) -> JoinHandle<Drained> {
        self.drain.send(()).unwrap();
        self.ended
    }

    pub(crate) async fn drain(self) -> Drained {
        within(LONG, self.begin_draining()).await.unwrap()
    }
}

fn router(release: Arc<Notify>, registry: &Registry) -> Edge<Router> {
    let routes = [(Method::GET, "/hello"), (Method::POST, "/echo"), (Method::GET, "/panic")];
    let slow = move || async move {
        release.notified().await;
        "at last"
    };
    let router = Router::new()
        .route("/hello", get(|| async { "hello" }))
        .route("/echo", post(echo))
        .route("/slow", get(slow))
        .route("/panic", get(panic))
        .route("/represented", get(represented))
        .route("/big", get(|| async { Body::from(vec![0; BIG]) }))
        .route("/problems/{slug}", get(problem_page));
    complete(router, Arc::new(HttpMetrics::register(registry, &routes).unwrap()))
}

async fn echo(request: Request) -> Result<Body, Problem> {
    let (parts, body) = request.into_parts();
    media_type_of_body(&parts.headers, &[MediaType::Json, MediaType::Text])?;
    Ok(Body::from(read_body(body, BODY_LEN_MAX, Duration::from_millis(300)).await?))
}

async fn represented(headers: HeaderMap) -> impl IntoResponse {
    negotiate(&headers, &[MediaType::Json, MediaType::Text]).map(MediaType::content_type)
}

async fn panic() {
    panic!("this handler always panics; the test wants it");
}

/// One connection, byte by byte.
pub(crate) struct Caller {
    pub(crate) stream: TcpStream,
    unread: Vec<u8>,
}

/// One answer as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: String,
    /// The body as text; bytes that are none are replaced.
    pub(crate) body: String,
    pub(crate) bytes: Vec<u8>,
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.find_map(|(given, value)| given.eq_ignore_ascii_case(name).then_some(value))
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

impl Caller {
    pub(crate) fn on(stream: TcpStream) -> Self {
        Self { stream, unread: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    pub(crate) async fn ask(&mut self, request: &str) -> Answer {
        self.send(request).await;
        self.answer().await
    }

    /// The next answer; it must have a Content-Length or be chunked.
    pub(crate) async fn answer(&mut self) -> Answer {
        let end = self.read_until("\r\n\r\n").await;
        let head = String::from_utf8(self.unread.drain(..end).collect()).unwrap();
        let mut answer = Answer { head, body: String::new(), bytes: Vec::new() };
        answer.bytes = match answer.header("content-length") {
            Some(len) => self.read_exactly(len.parse().unwrap()).await,
            None => {
                assert_eq!(answer.header("transfer-encoding"), Some("chunked"), "{}", answer.head);
                self.read_chunks().await
            }
        };
        answer.body = String::from_utf8_lossy(&answer.bytes).into_owned();
        answer
    }

    async fn read_exactly(&mut self, len: usize) -> Vec<u8> {
        while self.unread.len() < len {
            assert!(self.read_more().await, "the body is cut after {} of {len} bytes", self.unread.len());
        }
        self.unread.drain(..len).collect()
    }

    async fn read_chunks(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            let end = self.read_until("\r\n").await;
            let line = String::from_utf8(self.unread.drain(..end).collect()).unwrap();
            let len = usize::from_str_radix(line.trim_end(), 16).unwrap();
            bytes.extend(self.read_exactly(len).await);
            assert_eq!(self.read_exactly(2).await, b"\r\n");
            if len == 0 {
                return bytes;
            }
        }
    }

    /// Where what is unread has this mark, and behind it.
    async fn read_until(&mut self, mark: &str) -> usize {
        loop {
            if let Some(end) = self.unread.windows(mark.len()).position(|window| window == mark.as_bytes()) {
                return end + mark.len();
            }
            assert!(self.read_more().await, "closed before an answer: {:?}", String::from_utf8_lossy(&self.unread));
        }
    }

    /// False once the server has closed.
    async fn read_more(&mut self) -> bool {
        let mut buf = [0; 64 * 1024];
        let len = within(LONG, self.stream.read(&mut buf)).await.unwrap_or(0);
        self.unread.extend_from_slice(&buf[..len]);
        len > 0
    }

    /// Everything up to the close, which must come.
    pub(crate) async fn read_to_close(&mut self) -> String {
        while self.read_more().await {}
        String::from_utf8_lossy(&self.unread).into_owned()
    }
}

pub(crate) fn get_request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n")
}

pub(crate) fn post_request(path: &str, headers: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len())
}

pub(crate) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(limit, future).await.expect("this should have happened long ago")
}

/// Waits until this holds.
pub(crate) async fn until(mut claim: impl FnMut() -> bool) {
    within(LONG, async {
        while !claim() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
