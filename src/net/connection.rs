//! One connection, from its first byte to its close.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::debug;

use super::activity::{Activity, State};
use super::handler::{Handler, TrackedHandler};
use super::limits::Limits;
use super::outbox::{CoalescingStream, FlushWhenPending};
use super::protocol::{Protocol, detect_protocol};
use super::stream::{LINGER_MAX, TrackedStream};
use super::timeouts::Timeouts;

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

/// A connection just accepted.
pub(super) struct Connection<H> {
    pub(super) stream: TcpStream,
    pub(super) handler: H,
    pub(super) limits: Limits,
    pub(super) draining: watch::Receiver<bool>,
}

impl<H: Handler> Connection<H> {
    /// Serves it until one side closes it, it takes too long, or it is drained.
    pub(super) async fn run(mut self) {
        let head_deadline = Instant::now() + self.limits.header_timeout;
        // Answers are written whole; waiting for more to send would only delay them. A refusal does no harm.
        let _ = self.stream.set_nodelay(true);
        match self.detect_protocol(head_deadline).await {
            Some(Protocol::Http1) => self.run_http1(head_deadline).await,
            Some(Protocol::Http2) => self.run_http2().await,
            None => debug!("a connection ended before its first request"),
        }
    }

    async fn detect_protocol(&mut self, head_deadline: Instant) -> Option<Protocol> {
        let Self { stream, draining, .. } = self;
        let quiet_while_draining = async {
            wait_for_drain(draining).await;
            sleep(LAST_REQUEST_WAIT).await;
        };
        tokio::select! {
            biased;
            protocol = timeout_at(head_deadline, detect_protocol(stream)) => protocol.ok()?.ok()?,
            () = quiet_while_draining => None,
        }
    }

    async fn run_http1(self, head_deadline: Instant) {
        let activity = Arc::new(Activity::default());
        activity.record_bytes_read();
        let (stream, outbox) = CoalescingStream::new(self.stream);
        let stream = TrackedStream::new(stream, Some(Arc::clone(&activity)));
        let handler = TrackedHandler { handler: self.handler, activity: Arc::clone(&activity) };
        let http = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            .max_headers(HEADERS_MAX)
            .max_header_size(HEAD_LEN_MAX as usize)
            .max_buf_size(BUFFER_LEN_MAX)
            .serve_connection(TokioIo::new(stream), handler);
        let http = FlushWhenPending { connection: http, outbox };
        let timeouts = Timeouts::new(self.limits, activity.snapshot(), head_deadline);
        drive(pin!(http), &activity, timeouts, self.draining).await;
    }

    async fn run_http2(self) {
        let activity = Arc::new(Activity::default());
        let handler = TrackedHandler { handler: self.handler, activity: Arc::clone(&activity) };
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
            .serve_connection(TokioIo::new(TrackedStream::new(self.stream, None)), handler);
        let timeouts = Timeouts::new(self.limits, activity.snapshot(), Instant::now() + self.limits.idle_timeout);
        drive(pin!(http), &activity, timeouts, self.draining).await;
    }
}

async fn wait_for_drain(draining: &mut watch::Receiver<bool>) {
    // The sender lives as long as the listener, which ends after all connections: gone means drained.
    let _ = draining.wait_for(|draining| *draining).await;
}

/// A connection of either protocol.
trait HttpConnection: Future<Output = hyper::Result<()>> {
    /// How long `wind_down` waits for a request that is on its way.
    const WIND_DOWN_WAIT: Duration;

    /// Finish what is begun, begin nothing new.
    fn wind_down(self: Pin<&mut Self>);
}

type Stream<S> = TokioIo<TrackedStream<S>>;

impl<H: Handler> HttpConnection for FlushWhenPending<http1::Connection<Stream<CoalescingStream>, TrackedHandler<H>>> {
    const WIND_DOWN_WAIT: Duration = LAST_REQUEST_WAIT;

    fn wind_down(self: Pin<&mut Self>) {
        self.project().connection.graceful_shutdown();
    }
}

impl<H: Handler> HttpConnection for http2::Connection<Stream<TcpStream>, TrackedHandler<H>, TokioExecutor> {
    // Here both sides agree on the last request.
    const WIND_DOWN_WAIT: Duration = Duration::ZERO;

    fn wind_down(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// What ends a turn of [`drive`].
enum Event {
    Ended,
    Drain,
    TimedOut(State),
}

/// Polls a connection until it ends, is drained, or takes too long.
async fn drive<C: HttpConnection>(
    mut http: Pin<&mut C>,
    activity: &Activity,
    mut timeouts: Timeouts,
    mut draining: watch::Receiver<bool>,
) {
    let mut is_draining = false;
    let mut drain = pin!(async {
        wait_for_drain(&mut draining).await;
        activity.close_after_next_answer();
        sleep(C::WIND_DOWN_WAIT).await;
    });
    loop {
        // The connection first: a request that has arrived by now is answered even while draining.
        let event = poll_fn(|context| {
            if let Poll::Ready(ended) = http.as_mut().poll(context) {
                if let Err(error) = ended {
                    debug!("a connection ended: {error}");
                }
                return Poll::Ready(Event::Ended);
            }
            if !is_draining && drain.as_mut().poll(context).is_ready() {
                return Poll::Ready(Event::Drain);
            }
            timeouts.poll_expired(context, || activity.snapshot()).map(Event::TimedOut)
        });
        match event.await {
            Event::Ended => return,
            Event::Drain => {
                is_draining = true;
                http.as_mut().wind_down();
            }
            Event::TimedOut(State::Idle) => {
                // Say goodbye, so that a caller about to send knows that nothing of it was read.
                http.as_mut().wind_down();
                let _ = timeout(GOODBYE_MAX, http).await;
                return;
            }
            Event::TimedOut(state @ (State::ReadingHead | State::Answering)) => {
                debug!("a connection is cut off: {state:?} took too long");
                return;
            }
        }
    }
}
