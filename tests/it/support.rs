//! Runs a server in this process, with routes that exist only for tests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Method};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use idmint_http::{
    AnswerBody, Edge, HttpMetrics, MediaType, Problem, RouteTable, Row, complete, is_probe,
    media_type_of_body, negotiate, problem_page, read_body, turn_away,
};
use idmint_net::{Callers, Dispatch, Drained, Limits, OpenConnections, Security, Terms, serve};
use idmint_service::BudgetOwner;
use prometheus::{Registry, TextEncoder};
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use idmint_testing::http1::{Answer, AsyncClient, request};

/// A timeout far longer than any step of a test takes, even on a slow machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Limits so high that a test reaches one only if it lowers that limit.
pub(crate) const WIDE: Limits = Limits {
    connections_max: 1_000,
    connections_per_peer: 1_000,
    connection_age_max: None,
    header_timeout: LONG,
    idle_timeout: LONG,
};

pub(crate) const BODY_LEN_MAX: usize = 16;
/// A number of bytes that exceeds the kernel's buffers for a caller that does not read.
const BIG: usize = 16 << 20;

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) open: OpenConnections,
    /// Each notification lets one request to `/slow` finish.
    pub(crate) release: Arc<Notify>,
    registry: Registry,
    drain: oneshot::Sender<()>,
    ended: JoinHandle<Drained>,
}

impl Running {
    pub(crate) async fn start(limits: Limits) -> Self {
        Self::start_on(
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
            limits,
            LONG,
        )
    }

    pub(crate) async fn start_to_drain_within(drain_max: Duration) -> Self {
        Self::start_on(
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
            WIDE,
            drain_max,
        )
    }

    fn start_on(listener: TcpListener, limits: Limits, drain_max: Duration) -> Self {
        let (address, open) = (listener.local_addr().unwrap(), OpenConnections::default());
        let (release, registry) = (Arc::new(Notify::new()), Registry::new());
        let (drain, drained) = oneshot::channel::<()>();
        let router = routes(Arc::clone(&release), &registry);
        let serving = serve(
            listener,
            router,
            terms(limits, open.clone()),
            async { _ = drained.await },
            drain_max,
        );
        Self {
            address,
            open,
            release,
            registry,
            drain,
            ended: tokio::spawn(serving),
        }
    }

    pub(crate) async fn connect(&self) -> AsyncClient {
        AsyncClient::connect(self.address).await
    }

    /// Sends one request on a new connection, and returns the response.
    pub(crate) async fn exchange(&self, request: &str) -> Answer {
        self.connect().await.exchange(request).await
    }

    pub(crate) fn metrics(&self) -> String {
        TextEncoder::new()
            .encode_to_string(&self.registry.gather())
            .unwrap()
    }

    /// Begins to drain the server. The returned task ends when the server is drained.
    pub(crate) fn begin_draining(self) -> JoinHandle<Drained> {
        self.drain.send(()).unwrap();
        self.ended
    }

    pub(crate) async fn drain(self) -> Drained {
        within(LONG, self.begin_draining()).await.unwrap()
    }
}

/// Returns the terms of a server with these limits and no other restrictions.
pub(crate) fn terms(limits: Limits, open: OpenConnections) -> Terms<AnswerBody> {
    let (callers, obstacle) = (Callers::default(), Box::new(|| None));
    Terms {
        limits,
        callers,
        open,
        obstacle,
        dispatch: Dispatch {
            refuse: turn_away,
            is_probe,
        },
        security: Security::Plain,
    }
}

fn routes(release: Arc<Notify>, registry: &Registry) -> Edge<RouteTable> {
    let slow = move || async move {
        release.notified().await;
        "at last"
    };
    let rows: Vec<Row> = vec![
        Row::open("hello", Method::GET, "/hello", get(|| async { "hello" })),
        Row::open("echo", Method::POST, "/echo", post(echo)),
        Row::open("panic", Method::GET, "/panic", get(panic)),
        Row::open("slow", Method::GET, "/slow", get(slow)),
        Row::open("represented", Method::GET, "/represented", get(represented)),
        Row::open(
            "big",
            Method::GET,
            "/big",
            get(|| async { Body::from(vec![0; BIG]) }),
        ),
        Row::open("paid", Method::GET, "/paid", get(paid)),
        Row::open(
            "problem",
            Method::GET,
            "/problems/{slug}",
            get(problem_page),
        ),
    ];
    let paths: Vec<_> = rows.iter().map(Row::operation).collect();
    complete(
        RouteTable::new(rows, &()),
        Arc::new(HttpMetrics::register(registry, &paths).unwrap()),
    )
}

async fn echo(request: Request) -> Result<Body, Problem> {
    let (parts, body) = request.into_parts();
    media_type_of_body(&parts.headers, false, &[MediaType::Json, MediaType::Text])?;
    Ok(Body::from(
        read_body(body, BODY_LEN_MAX, Duration::from_millis(300)).await?,
    ))
}

/// Returns a long response, for which all memory that the peer may use is reserved.
async fn paid(Extension(owner): Extension<BudgetOwner>) -> impl IntoResponse {
    let all = owner.reserve(usize::MAX).await.unwrap();
    (Extension(Arc::new(all)), vec![0_u8; 100_000])
}

async fn represented(headers: HeaderMap) -> impl IntoResponse {
    negotiate(&headers, &[MediaType::Json, MediaType::Text]).map(MediaType::content_type)
}

async fn panic() {
    panic!("this handler always panics; the test wants it");
}

pub(crate) fn get_request(path: &str) -> String {
    request(&format!("GET {path}"), "", "")
}

/// Returns the text of a POST request. `headers` consists of complete lines.
pub(crate) fn post_request(path: &str, headers: &str, body: &str) -> String {
    request(&format!("POST {path}"), headers, body)
}

pub(crate) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(limit, future)
        .await
        .expect("this should have happened long ago")
}

/// Waits until `claim` returns `true`.
pub(crate) async fn until(mut claim: impl FnMut() -> bool) {
    within(LONG, async {
        while !claim() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
