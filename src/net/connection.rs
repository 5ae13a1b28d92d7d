//! One connection, from its first byte to its close.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::{HeaderValue, Request, Response, StatusCode, Version, header};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use pin_project_lite::pin_project;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::debug;

use super::activity::{Activity, Answer, Doing, Watched};
use super::listener::Limits;
use super::outbox::{Gathered, GatheringStream};
use super::stream::{LINGER_MAX, WatchedStream};
use super::timeouts::Patience;

/// What an HTTP/2 connection begins with (RFC 9113 section 3.4).
const HTTP2_PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How long to wait for more when what came might be the beginning of the preface.
const PREFACE_PAUSE: Duration = Duration::from_millis(10);

/// While draining, how long a silent connection has for one last request. Closed at once, it might cut off a request
/// that is on its way.
const LAST_REQUEST_WAIT: Duration = Duration::from_secs(1);

/// How long a caller may take to hear that its idle connection is closed.
const GOODBYE_MAX: Duration = LINGER_MAX.saturating_mul(2);

const HEADERS_MAX: usize = 64;
const HEAD_LEN_MAX: u32 = 16 * 1024;
/// Read and written through buffers of at most this size.
const BUFFER_LEN_MAX: usize = 64 * 1024;
const STREAMS_MAX: u32 = 100;
/// Streams reset before they were looked at, and streams reset for an error: more of either, and it is an attack.
const RESETS_MAX: usize = 100;
const WINDOW_LEN: u32 = 256 * 1024;
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PONG_TIMEOUT: Duration = Duration::from_secs(10);

/// What answers requests, of any connection.
pub trait Handler:
    tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send> + Clone + Send + 'static
{
}

impl<H> Handler for H where
    H: tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + 'static
{
}

/// A connection just accepted.
pub(super) struct Connection<H> {
    pub(super) stream: TcpStream,
    pub(super) handler: H,
    pub(super) limits: Limits,
    pub(super) draining: watch::Receiver<bool>,
}

enum Protocol {
    Http1,
    Http2,
}

impl<H: Handler> Connection<H> {
    /// Serves it until one side closes it, it takes too long, or it is drained.
    pub(super) async fn run(mut self) {
        let head_deadline = Instant::now() + self.limits.header_timeout;
        // Answers are written whole; waiting for more to send would only delay them. A refusal does no harm.
        let _ = self.stream.set_nodelay(true);
        match self.protocol(head_deadline).await {
            Some(Protocol::Http1) => self.run_http1(head_deadline).await,
            Some(Protocol::Http2) => self.run_http2().await,
            None => debug!("a connection ended before its first request"),
        }
    }

    async fn protocol(&mut self, head_deadline: Instant) -> Option<Protocol> {
        let Self { stream, draining, .. } = self;
        let quiet_while_draining = async {
            drained(draining).await;
            sleep(LAST_REQUEST_WAIT).await;
        };
        tokio::select! {
            biased;
            protocol = timeout_at(head_deadline, protocol_of(stream)) => protocol.ok()?.ok()?,
            () = quiet_while_draining => None,
        }
    }

    async fn run_http1(self, head_deadline: Instant) {
        let activity = Arc::new(Activity::default());
        activity.bytes_came();
        let (stream, outbox) = GatheringStream::new(self.stream);
        let stream = WatchedStream::new(stream, Some(Arc::clone(&activity)));
        let service = WatchedService { handler: self.handler, activity: Arc::clone(&activity) };
        let http = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            .max_headers(HEADERS_MAX)
            .max_header_size(HEAD_LEN_MAX as usize)
            .max_buf_size(BUFFER_LEN_MAX)
            .serve_connection(TokioIo::new(stream), service);
        let http = Gathered { connection: http, outbox };
        let patience = Patience::new(self.limits, activity.look(), head_deadline);
        drive(pin!(http), &activity, patience, self.draining).await;
    }

    async fn run_http2(self) {
        let activity = Arc::new(Activity::default());
        let service = WatchedService { handler: self.handler, activity: Arc::clone(&activity) };
        let http = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS_MAX)
            .max_pending_accept_reset_streams(RESETS_MAX)
            .max_local_error_reset_streams(RESETS_MAX)
            .max_header_list_size(HEAD_LEN_MAX)
            .initial_stream_window_size(WINDOW_LEN)
            .initial_connection_window_size(WINDOW_LEN)
            .max_send_buf_size(BUFFER_LEN_MAX)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PONG_TIMEOUT)
            .serve_connection(TokioIo::new(WatchedStream::new(self.stream, None)), service);
        let patience = Patience::new(self.limits, activity.look(), Instant::now() + self.limits.idle_timeout);
        drive(pin!(http), &activity, patience, self.draining).await;
    }
}

/// Reads the protocol off the first bytes and leaves them unread; `None` if the caller closes first.
async fn protocol_of(stream: &TcpStream) -> io::Result<Option<Protocol>> {
    let mut first = [0; HTTP2_PREFACE.len()];
    loop {
        let len = stream.peek(&mut first).await?;
        if len == 0 {
            return Ok(None);
        }
        if !HTTP2_PREFACE.starts_with(&first[..len]) {
            return Ok(Some(Protocol::Http1));
        }
        if len == HTTP2_PREFACE.len() {
            return Ok(Some(Protocol::Http2));
        }
        // The kernel says "readable" for as long as anything is unread, so it cannot be asked to wait for more. This
        // happens only when the preface, or a POST, comes in pieces.
        sleep(PREFACE_PAUSE).await;
    }
}

async fn drained(draining: &mut watch::Receiver<bool>) {
    // The sender lives as long as the listener, which ends after all connections: gone means drained.
    let _ = draining.wait_for(|draining| *draining).await;
}

/// A connection of either protocol.
trait Http: Future<Output = hyper::Result<()>> {
    /// How long `wind_down` waits for a request that is on its way.
    const WIND_DOWN_WAIT: Duration;

    /// Finish what is begun, begin nothing new.
    fn wind_down(self: Pin<&mut Self>);
}

type Stream<S> = TokioIo<WatchedStream<S>>;

impl<H: Handler> Http for Gathered<http1::Connection<Stream<GatheringStream>, WatchedService<H>>> {
    const WIND_DOWN_WAIT: Duration = LAST_REQUEST_WAIT;

    fn wind_down(self: Pin<&mut Self>) {
        self.project().connection.graceful_shutdown();
    }
}

impl<H: Handler> Http for http2::Connection<Stream<TcpStream>, WatchedService<H>, TokioExecutor> {
    // Here both sides agree on the last request.
    const WIND_DOWN_WAIT: Duration = Duration::ZERO;

    fn wind_down(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

enum Turn {
    Ended,
    Drain,
    OutOfPatience(Doing),
}

async fn drive<C: Http>(
    mut http: Pin<&mut C>,
    activity: &Activity,
    mut patience: Patience,
    mut draining: watch::Receiver<bool>,
) {
    let mut is_draining = false;
    let mut drain = pin!(async {
        drained(&mut draining).await;
        activity.make_next_answer_the_last();
        sleep(C::WIND_DOWN_WAIT).await;
    });
    loop {
        // The connection first: a request that has arrived by now is answered even while draining.
        let turn = poll_fn(|context| {
            if let Poll::Ready(ended) = http.as_mut().poll(context) {
                if let Err(error) = ended {
                    debug!("a connection ended: {error}");
                }
                return Poll::Ready(Turn::Ended);
            }
            if !is_draining && drain.as_mut().poll(context).is_ready() {
                return Poll::Ready(Turn::Drain);
            }
            patience.poll(context, || activity.look()).map(Turn::OutOfPatience)
        });
        match turn.await {
            Turn::Ended => return,
            Turn::Drain => {
                is_draining = true;
                http.as_mut().wind_down();
            }
            Turn::OutOfPatience(Doing::Waiting) => {
                // Say goodbye, so that a caller about to send knows that nothing of it was read.
                http.as_mut().wind_down();
                let _ = timeout(GOODBYE_MAX, http).await;
                return;
            }
            Turn::OutOfPatience(doing @ (Doing::ReadingHead | Doing::Answering)) => {
                debug!("a connection is cut off: {doing:?} took too long");
                return;
            }
        }
    }
}

/// The handler, with every request and answer seen by the connection.
struct WatchedService<H> {
    handler: H,
    activity: Arc<Activity>,
}

impl<H: Handler> Service<Request<Incoming>> for WatchedService<H> {
    type Response = Response<Watched<Body, Answer>>;
    type Error = Infallible;
    type Future = Answering<H::Future>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let answer = self.activity.answer();
        let is_http1 = request.version() < Version::HTTP_2;
        let request = request.map(|body| match body.is_end_stream() {
            true => Body::empty(),
            false => Body::new(Watched { body, activity: Arc::clone(&self.activity) }),
        });
        let answering = self.handler.clone().call(request);
        Answering { answering, is_http1, answer: Some(answer) }
    }
}

pin_project! {
    /// One request on its way to the head of its answer.
    struct Answering<F> {
        #[pin]
        answering: F,
        is_http1: bool,
        // None once its head is made.
        answer: Option<Answer>,
    }
}

impl<F: Future<Output = Result<Response<Body>, Infallible>>> Future for Answering<F> {
    type Output = Result<Response<Watched<Body, Answer>>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Ok(mut response) = ready!(this.answering.poll(context));
        let answer = this.answer.take().expect("a future that is ready is not polled again");
        if *this.is_http1 && (answer.is_next_answer_the_last() || leaves_the_body_unread(response.status())) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Poll::Ready(Ok(response.map(|body| Watched { body, activity: answer })))
    }
}

// The connection is closed after these anyway; saying so keeps callers from sending more on it.
fn leaves_the_body_unread(status: StatusCode) -> bool {
    status == StatusCode::PAYLOAD_TOO_LARGE || status == StatusCode::REQUEST_TIMEOUT
}
