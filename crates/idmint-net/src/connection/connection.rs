//! One connection, from its first byte to its close.

use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::handler::{Dispatch, Handler, TrackedHandler};
use super::http2_streams::StreamExecutor;
use super::observed_handler::{ConnectedCaller, ConnectionObserver, ObservedHandler};
use super::timeouts::Timeouts;
use crate::callers::Callers;
use crate::fair_share::PeerShare;
use crate::limits::Limits;
use crate::refusal::refusal;
use crate::stream::{
    Activity, CoalescingStream, FlushWhenPending, FrameAllowance, HeadPayment, LINGER_MAX, Outbox,
    Protocol, Socket, State, TrackedStream, Tracking, detect_protocol, idle_for,
};
use crate::tls::{Secured, Tls};
use idmint_service::Shed;

/// The time for which a graceful shutdown keeps a silent connection open for one last request.
/// Closing the connection at once might cut off a request in transit.
const LAST_REQUEST_WAIT: Duration = Duration::from_secs(1);

/// The maximum time for an orderly close of an idle connection. During this time the service sends
/// the remaining bytes and waits for the caller to close its side.
const GOODBYE_MAX: Duration = LINGER_MAX.saturating_mul(2);

/// The time after which an idle HTTP/1 connection releases its buffers. A connection with a request
/// at least once a second keeps its buffers.
const REST_AFTER: Duration = Duration::from_secs(1);

const HEADERS_MAX: usize = 64;
const HEAD_LEN_MAX: u32 = 16 * 1024;
/// The maximum size of the read buffer and of the write buffer, in bytes each.
const BUFFER_LEN_MAX: usize = 64 * 1024;
/// The maximum number of bytes of one stream's response that the library h2 buffers.
const SEND_BUFFER_LEN: usize = 16 * 1024;
const STREAMS_MAX: u32 = 100;
/// The maximum number of HTTP/2 streams that are reset before they are accepted, and the maximum
/// number that are reset because of an error. A connection that exceeds either limit is treated as
/// an attack.
const RESETS_MAX: usize = 100;
const WINDOW_LEN: u32 = 64 * 1024;
/// The memory of an HTTP/2 connection without its streams, in bytes: its flow-control window and
/// its write buffer.
const HTTP2_LEN: usize = 96 * 1024;
/// The memory that an HTTP/1 connection uses in addition to
/// [`CONNECTION_LEN`](crate::limits::CONNECTION_LEN) while it reads or answers requests, in bytes:
/// hyper's buffers, a short head and a short response.
///
/// Source: resident memory of 10 000 connections that have each had two responses of 900 ids, and
/// have each sent 2 000 bytes of the next head.
const BUFFERS_LEN: usize = 28 * 1024;
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PONG_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection that was just accepted.
pub(crate) struct Connection<H: Handler, S> {
    pub(crate) stream: S,
    pub(crate) handler: H,
    pub(crate) dispatch: Dispatch<H::Body>,
    pub(crate) context: Context,
}

/// The part of a connection that does not depend on the types of its stream and handler.
pub(crate) struct Context {
    pub(crate) peer: IpAddr,
    pub(crate) callers: Callers,
    pub(crate) limits: Limits,
    pub(crate) activity: Arc<Activity>,
    /// A token that is cancelled when the service drains, or when the connection is evicted to make
    /// room for another one.
    pub(crate) stop: CancellationToken,
    /// The peer's share of the processor, for this connection and the tasks that it spawns.
    pub(crate) turns: PeerShare,
}

impl<H: Handler> Connection<H, TcpStream> {
    /// Serves the connection until one side closes it, a timeout ends it, or the service shuts
    /// down.
    pub(crate) async fn run(self) {
        let head_deadline = self.begin();
        let detected = detect_protocol(self.stream);
        let Some(Ok(Some((protocol, stream, first)))) =
            self.context.before_request(head_deadline, detected).await
        else {
            return debug!("a connection ended before its first request");
        };
        let connection = Connection {
            stream,
            handler: self.handler,
            dispatch: self.dispatch,
            context: self.context,
        };
        connection.serve(protocol, first, head_deadline).await;
    }

    /// Serves the connection without TLS, with an observer of its requests.
    pub(crate) async fn run_observed(self, observer: ConnectionObserver<H::Body>) {
        let connection = Connection {
            stream: self.stream,
            handler: self.context.observe(self.handler, observer, Vec::new()),
            dispatch: self.dispatch,
            context: self.context,
        };
        connection.run().await;
    }

    /// Serves the connection over TLS, with an observer of its requests.
    pub(crate) async fn run_tls(self, tls: Arc<Tls>, observer: ConnectionObserver<H::Body>) {
        let head_deadline = self.begin();
        let handshake = tls.accept(self.stream);
        let secured = self.context.before_request(head_deadline, handshake).await;
        let Secured {
            stream,
            protocol,
            certificates,
        } = match secured {
            Some(Ok(secured)) => secured,
            None if self.context.stop.is_cancelled() => return,
            failed => {
                let shed = self.context.callers.load().counts.count(Shed::Handshake);
                let error = failed
                    .and_then(Result::err)
                    .map_or("it took too long".to_owned(), |e| e.to_string());
                return debug!("{shed}: {error}");
            }
        };
        let connection = Connection {
            stream,
            handler: self.context.observe(self.handler, observer, certificates),
            dispatch: self.dispatch,
            context: self.context,
        };
        connection
            .serve(protocol, Bytes::new(), head_deadline)
            .await;
    }

    /// Configures the socket, and returns the deadline for the head of the first request.
    fn begin(&self) -> Instant {
        // Disable Nagle's algorithm. Responses are written as a whole, so waiting for more data
        // would only delay them. If this call fails, the connection still works.
        let _ = self.stream.set_nodelay(true);
        Instant::now() + self.context.limits.header_timeout
    }
}

/// The reason why [`Context::run_http1_awake`] returned.
enum Http1Ending {
    Ended(Ending),
    /// The connection is idle and has released its buffers. The value is the part of the next
    /// request that was already read. It is empty if no byte of that request was read.
    Resting(Bytes),
}

impl Context {
    fn handler<H: Handler>(&self, handler: H, dispatch: Dispatch<H::Body>) -> TrackedHandler<H> {
        TrackedHandler {
            handler,
            dispatch,
            activity: Arc::clone(&self.activity),
            callers: self.callers.clone(),
            peer: self.peer,
        }
    }

    /// Serves HTTP/1 until the connection ends, or is idle and its buffers can be released.
    async fn run_http1_awake<H: Handler, S: Socket>(
        &self,
        handler: TrackedHandler<H>,
        outbox: Arc<Outbox<S>>,
        unread: Bytes,
        head_deadline: Instant,
        age_deadline: Option<Instant>,
    ) -> Http1Ending {
        let activity = &self.activity;
        let stream = TrackedStream::new(
            CoalescingStream(Arc::clone(&outbox)),
            unread,
            Tracking::Bytes(Arc::clone(activity), HeadPayment::default()),
        );
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            .max_headers(HEADERS_MAX)
            .max_header_size(HEAD_LEN_MAX as usize)
            .max_buf_size(BUFFER_LEN_MAX)
            // A caller that has sent all its requests may close its sending side and still wait for
            // the response.
            .half_close(true)
            .serve_connection(TokioIo::new(stream), handler);
        let mut http = FlushWhenPending { connection, outbox };
        let timeouts = Timeouts::new(self.limits, activity.snapshot(), head_deadline)
            .with_rest_after(REST_AFTER);
        match self.drive(&mut http, timeouts, age_deadline).await {
            Ending::Resting => {
                let unread = http.connection.into_parts().read_buf;
                // Ignore empty lines before a request, as RFC 9112 section 2.2 recommends. The
                // remaining bytes are copied, so that hyper's buffer can be released.
                let is_line_end = |byte: &u8| b"\r\n".contains(byte);
                let begin = unread.iter().position(|byte| !is_line_end(byte));
                let head = &unread[begin.unwrap_or(unread.len())..];
                Http1Ending::Resting(Bytes::copy_from_slice(head))
            }
            ending => Http1Ending::Ended(ending),
        }
    }

    /// Waits for `first`, which must be done before a request can be handled: a TLS handshake, the
    /// protocol detection, or the first bytes of a request. Returns `None` if `first` is not done
    /// by `head_deadline`, or if the connection must end.
    async fn before_request<T>(
        &self,
        head_deadline: Instant,
        first: impl Future<Output = T>,
    ) -> Option<T> {
        let quiet_while_draining = async {
            self.stop.cancelled().await;
            if !self.activity.is_given_up() {
                sleep(LAST_REQUEST_WAIT).await;
            }
        };
        tokio::select! {
            biased;
            done = timeout_at(head_deadline, first) => done.ok(),
            () = quiet_while_draining => None,
        }
    }

    /// Wraps the handler with an observer of its requests. The observer is created for this
    /// connection's peer and its certificates.
    fn observe<H: Handler>(
        &self,
        handler: H,
        observer: ConnectionObserver<H::Body>,
        certificates: Vec<CertificateDer<'static>>,
    ) -> ObservedHandler<H> {
        let caller = ConnectedCaller::new(self.callers.clone(), self.peer, certificates);
        ObservedHandler {
            handler,
            observer: observer(caller),
        }
    }
}

impl<H: Handler, S: Socket> Connection<H, S> {
    /// Serves the connection. `first` contains the bytes that were read to detect the protocol.
    // The HTTP/2 future is boxed here. `run_http1` boxes the future that serves requests, and drops
    // it while the connection is idle, so an idle HTTP/1 connection holds neither future's memory.
    async fn serve(self, protocol: Protocol, first: Bytes, head_deadline: Instant) {
        match protocol {
            Protocol::Http1 => self.run_http1(first, head_deadline).await,
            Protocol::Http2 => Box::pin(self.run_http2(first)).await,
        }
    }

    fn handler(&self) -> TrackedHandler<H> {
        self.context.handler(self.handler.clone(), self.dispatch)
    }

    /// Serves HTTP/1. If no memory is free for the buffers, sends a refusal and closes the
    /// connection. An idle connection has no buffers:
    ///
    /// ```text
    ///            first byte of a request
    ///      ┌───────────────────────────────┐
    ///      │                               ▼
    ///   resting                          awake   hyper, its buffers, the timeouts
    ///      ▲                               │
    ///      └───────────────────────────────┘
    ///        idle for REST_AFTER, or for a moment while memory is scarce
    /// ```
    async fn run_http1(self, first: Bytes, mut head_deadline: Instant) {
        let Connection {
            stream,
            handler,
            dispatch,
            context,
        } = self;
        let outbox = Outbox::new(stream, Arc::clone(&context.activity));
        let age_deadline = context
            .limits
            .connection_age_max
            .map(|age_max| Instant::now() + jittered(age_max));
        let (mut unread, mut buffers) = (first, None);
        loop {
            let (callers, activity) = (&context.callers, &context.activity);
            if buffers.is_none() {
                buffers = callers
                    .pay_for_connection(context.peer, &activity.owner, BUFFERS_LEN)
                    .ok();
            }
            if buffers.is_none() {
                return close(outbox, refusal(callers.is_test())).await;
            }
            activity.record_bytes_read(0);
            let handler = context.handler(handler.clone(), dispatch);
            let awake = context.run_http1_awake(
                handler,
                Arc::clone(&outbox),
                unread,
                head_deadline,
                age_deadline,
            );
            match Box::pin(awake).await {
                Http1Ending::Resting(rest) => unread = rest,
                Http1Ending::Ended(Ending::Refused) if outbox.has_nothing_to_do() => {
                    return close(outbox, refusal(callers.is_test())).await;
                }
                // After a failure hyper no longer serves the connection, but the outbox may still
                // hold earlier responses. Send them, then close.
                Http1Ending::Ended(Ending::Failed | Ending::Refused) => {
                    return close(outbox, b"").await;
                }
                Http1Ending::Ended(_) => return,
            }
            if !unread.is_empty() {
                // The first bytes of the next request head arrived together with the previous
                // request. The time limit of that head therefore starts now.
                head_deadline = Instant::now() + context.limits.header_timeout;
                continue;
            }
            buffers = None;
            let idle_left = context
                .limits
                .idle_timeout
                .saturating_sub(idle_for(context.activity.idle_since()));
            let more = context
                .before_request(Instant::now() + idle_left, outbox.read_some())
                .await;
            match more {
                Some(Ok(more)) if !more.is_empty() => {
                    unread = more.into();
                    head_deadline = Instant::now() + context.limits.header_timeout;
                }
                // Close in an orderly way, so that a caller that is about to send a request knows
                // that this request was not read.
                Some(Ok(_)) | None => return close(outbox, b"").await,
                Some(Err(error)) => return debug!("a connection ended: {error}"),
            }
        }
    }

    async fn run_http2(self, first: Bytes) {
        let Ok(_paid) = self.context.callers.pay_for_connection(
            self.context.peer,
            &self.context.activity.owner,
            HTTP2_LEN,
        ) else {
            return;
        };
        let handler = self.handler();
        let context = self.context;
        let allowance = FrameAllowance::new(Arc::clone(&context.callers.load().counts));
        let stream = TrackedStream::new(self.stream, first, Tracking::Frames(allowance));
        let mut http = http2::Builder::new(StreamExecutor {
            idle_timeout: context.limits.idle_timeout,
            turns: context.turns.clone(),
        })
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_pending_accept_reset_streams(RESETS_MAX)
        .max_local_error_reset_streams(RESETS_MAX)
        .max_header_list_size(HEAD_LEN_MAX)
        .initial_stream_window_size(WINDOW_LEN)
        .initial_connection_window_size(WINDOW_LEN)
        .max_send_buf_size(SEND_BUFFER_LEN)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PONG_TIMEOUT)
        .serve_connection(TokioIo::new(stream), handler);
        let timeouts = Timeouts::new(
            context.limits,
            context.activity.snapshot(),
            Instant::now() + context.limits.idle_timeout,
        );
        let age_max = context.limits.connection_age_max;
        let age_deadline = age_max.map(|age_max| Instant::now() + jittered(age_max));
        context.drive(&mut http, timeouts, age_deadline).await;
    }
}

/// Sends the bytes in the outbox and then `last_words`, and closes the connection.
async fn close<S: Socket>(outbox: Arc<Outbox<S>>, last_words: &'static [u8]) {
    let stream = CoalescingStream(outbox);
    let mut stream = TrackedStream::new(stream, Bytes::new(), Tracking::Nothing);
    let closing = async {
        stream.write_all(last_words).await?;
        stream.shutdown().await
    };
    // Ignore a timeout. A caller that does not read its last response within `GOODBYE_MAX` is cut
    // off.
    let _ = timeout(GOODBYE_MAX, closing).await;
}

/// An HTTP connection of either version.
trait HttpConnection: Future<Output = hyper::Result<()>> + Unpin {
    /// The time that a draining connection waits before `wind_down`, because a request may be in
    /// transit.
    const WIND_DOWN_WAIT: Duration;

    /// Finishes the requests in progress and accepts no new ones.
    fn wind_down(self: Pin<&mut Self>);

    /// `true` if the idle connection can release its buffers without losing a byte.
    fn can_rest(&self) -> bool;
}

type Stream<S> = TokioIo<TrackedStream<S>>;

impl<H: Handler, S: Socket> HttpConnection
    for FlushWhenPending<http1::Connection<Stream<CoalescingStream<S>>, TrackedHandler<H>>, S>
{
    const WIND_DOWN_WAIT: Duration = LAST_REQUEST_WAIT;

    fn wind_down(self: Pin<&mut Self>) {
        self.project().connection.graceful_shutdown();
    }

    fn can_rest(&self) -> bool {
        self.outbox.has_nothing_to_do()
    }
}

impl<H: Handler, S: Socket> HttpConnection
    for http2::Connection<Stream<S>, TrackedHandler<H>, StreamExecutor>
{
    // No wait is needed, because HTTP/2 tells the caller which request was accepted last. The
    // caller can safely repeat later requests.
    const WIND_DOWN_WAIT: Duration = Duration::ZERO;

    fn wind_down(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }

    fn can_rest(&self) -> bool {
        false
    }
}

/// The reason why polling a connection stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The connection ended normally, or the caller disconnected.
    Closed,
    /// An error on either side ended the connection.
    Failed,
    /// Too little memory was free for a request head, and no earlier request is in flight.
    Refused,
    /// A timeout ended the connection.
    CutOff,
    /// The connection is idle, and its buffers can be released.
    Resting,
}

/// Returns `time` with a random jitter of up to ±10 %, so that connections that were opened
/// together are not closed together.
fn jittered(time: Duration) -> Duration {
    time.mul_f64(rand::random_range(0.9..1.1))
}

/// A reason for [`drive`] to stop polling the connection and act.
enum Event {
    Ended(Ending),
    Drain,
    TimedOut(State),
}

impl Context {
    /// Polls a connection until it ends or times out, or until it is idle and can release its
    /// buffers. When the service drains, winds the connection down.
    async fn drive<C: HttpConnection>(
        &self,
        mut http: &mut C,
        mut timeouts: Timeouts,
        age_deadline: Option<Instant>,
    ) -> Ending {
        let (activity, stop) = (&*self.activity, &self.stop);
        if stop.is_cancelled() || age_deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            activity.close_after_next_answer();
        }
        let mut is_draining = false;
        let mut drain = pin!(async {
            match age_deadline {
                None => stop.cancelled().await,
                // Once an HTTP/1 connection has reached its maximum age, it stays open for one more
                // request. The response to that request closes the connection.
                Some(deadline) => {
                    if timeout_at(deadline, stop.cancelled()).await.is_err() {
                        activity.close_after_next_answer();
                        if C::WIND_DOWN_WAIT > Duration::ZERO {
                            stop.cancelled().await;
                        }
                    }
                }
            }
            activity.close_after_next_answer();
            if !activity.is_given_up() {
                sleep(C::WIND_DOWN_WAIT).await;
            }
        });
        loop {
            // Poll the connection before the signal to drain, so that a request that has arrived by
            // now is answered even while draining.
            let event = poll_fn(|context| {
                if let Poll::Ready(ended) = Pin::new(&mut http).poll(context) {
                    let Err(error) = ended else {
                        return Poll::Ready(Event::Ended(Ending::Closed));
                    };
                    debug!("a connection ended: {error}");
                    return Poll::Ready(Event::Ended(Ending::Failed));
                }
                if activity.is_head_refused() {
                    debug!("refusing a request: {}", Shed::Memory);
                    return Poll::Ready(Event::Ended(Ending::Refused));
                }
                if !is_draining && drain.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Event::Drain);
                }
                timeouts
                    .poll_expired(context, activity)
                    .map(Event::TimedOut)
            });
            match event.await {
                Event::Ended(ending) => return ending,
                Event::Drain => {
                    is_draining = true;
                    Pin::new(&mut *http).wind_down();
                }
                Event::TimedOut(State::Idle) if http.can_rest() => return Ending::Resting,
                Event::TimedOut(State::Idle) if timeouts.await_idle_timeout() => {}
                Event::TimedOut(State::Idle) => {
                    // Close gracefully. In HTTP/2, a final message names the last request that the
                    // service accepted, so a caller can safely repeat any later one.
                    Pin::new(&mut *http).wind_down();
                    let _ = timeout(GOODBYE_MAX, http).await;
                    return Ending::Closed;
                }
                Event::TimedOut(state) => {
                    debug!("closing a connection: {state:?} took longer than its timeout");
                    return Ending::CutOff;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::net::Ipv4Addr;

    use axum::body::Body;
    use axum::http::{Request, Response, StatusCode};
    use http_body::{Body as HttpBody, Frame};
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;
    use crate::fair_share::FairShare;
    use idmint_service::{Load, MemoryReservation, ReservedBody};

    /// An empty response body.
    #[derive(Default)]
    struct Empty;

    impl HttpBody for Empty {
        type Data = Bytes;
        type Error = axum::Error;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
            Poll::Ready(None)
        }

        fn is_end_stream(&self) -> bool {
            true
        }
    }

    impl ReservedBody for Empty {
        fn take_reservation(&mut self) -> Option<MemoryReservation> {
            None
        }

        fn piece_len_max(&self) -> usize {
            0
        }
    }

    fn with_status(status: StatusCode) -> Response<Empty> {
        let mut response = Response::new(Empty);
        *response.status_mut() = status;
        response
    }

    /// Sends these bytes while no memory is free for requests. Returns the bytes of the response.
    async fn send_without_memory(sent: String) -> String {
        let (peer, load) = (IpAddr::V4(Ipv4Addr::LOCALHOST), Load::default());
        let owner = load.memory.owner(peer);
        let _all: Vec<_> = std::iter::from_fn(|| owner.try_reserve(1_024)).collect();
        let handler = tower::service_fn(|request: Request<Body>| async move {
            let is_refused = request.extensions().get() == Some(&Shed::Memory);
            let is_without_body = request.body().is_end_stream();
            Ok::<_, Infallible>(with_status(match is_refused && is_without_body {
                true => StatusCode::SERVICE_UNAVAILABLE,
                false => StatusCode::OK,
            }))
        });
        let listener = TcpListener::bind((peer, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let mut client = TcpStream::connect(address).await.expect("it listens");
        let connection = Connection {
            stream: listener.accept().await.expect("a connection").0,
            handler,
            dispatch: Dispatch {
                refuse: |_, _| with_status(StatusCode::INTERNAL_SERVER_ERROR),
                is_probe: |_| false,
            },
            context: Context {
                peer,
                callers: Callers::new(load, []),
                limits: Limits::default(),
                activity: Activity::begin(owner),
                stop: CancellationToken::new(),
                turns: FairShare::default().of(peer),
            },
        };
        let exchange = async move {
            client.write_all(sent.as_bytes()).await.expect("connected");
            let mut received = String::new();
            client.read_to_string(&mut received).await.expect("a close");
            received
        };
        tokio::join!(connection.run(), exchange).1
    }

    #[tokio::test]
    async fn a_long_head_without_memory_is_refused_with_a_response() {
        let head = format!("GET / HTTP/1.1\r\nx-long: {}", "x".repeat(6_000));
        let received = send_without_memory(head).await;
        assert_eq!(Ok(received.as_str()), str::from_utf8(refusal(false)));
    }

    #[tokio::test]
    async fn a_long_body_without_memory_is_refused_by_the_handler() {
        let head = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5000\r\n\r\n".to_owned();
        let received = send_without_memory(head).await;
        assert!(received.starts_with("HTTP/1.1 503 "), "{received}");
        assert!(received.contains("connection: close"), "{received}");
    }
}
