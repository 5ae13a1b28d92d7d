//! One connection, from its first byte to its close.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::debug;

use super::handler::{Handler, TrackedHandler};
use super::timeouts::Timeouts;
use crate::net::limits::Limits;
use crate::net::stream::{
    Activity, CoalescingStream, FlushWhenPending, LINGER_MAX, Outbox, Protocol, State, TrackedStream, Tracking,
    detect_protocol,
};

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
pub(in crate::net) struct Connection<H> {
    pub(in crate::net) stream: TcpStream,
    pub(in crate::net) handler: H,
    pub(in crate::net) limits: Limits,
    pub(in crate::net) draining: watch::Receiver<bool>,
}

impl<H: Handler> Connection<H> {
    /// Serves it until one side closes it, it takes too long, or it is drained.
    pub(in crate::net) async fn run(mut self) {
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
        let outbox = Outbox::new(self.stream, Arc::clone(&activity));
        let stream = CoalescingStream(Arc::clone(&outbox));
        let stream = TrackedStream::new(stream, Tracking::Moves(Arc::clone(&activity)));
        let handler = TrackedHandler { handler: self.handler, activity: Arc::clone(&activity) };
        let http = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            .max_headers(HEADERS_MAX)
            .max_header_size(HEAD_LEN_MAX as usize)
            .max_buf_size(BUFFER_LEN_MAX)
            // A caller that has sent all it wants to may close its half and wait for the answer.
            .half_close(true)
            .serve_connection(TokioIo::new(stream), handler);
        let http = FlushWhenPending { connection: http, outbox: Arc::clone(&outbox) };
        let timeouts = Timeouts::new(self.limits, activity.snapshot(), head_deadline);
        let ending = drive(pin!(http), &activity, timeouts, self.draining).await;
        if ending == Ending::Failed {
            // hyper is gone, and what it had answered before may still be in the outbox.
            let mut stream = TrackedStream::new(CoalescingStream(outbox), Tracking::Nothing);
            let _ = timeout(GOODBYE_MAX, stream.shutdown()).await;
        }
    }

    async fn run_http2(self) {
        let activity = Arc::new(Activity::default());
        let stream = TrackedStream::new(self.stream, Tracking::Sent(Arc::clone(&activity)));
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
            .serve_connection(TokioIo::new(stream), handler);
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

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// By agreement, or because the caller has gone.
    Closed,
    /// By an error of either side.
    Failed,
    /// It took too long.
    CutOff,
}

/// What ends a turn of [`drive`].
enum Event {
    Ended(Ending),
    Drain,
    TimedOut(State),
}

/// Polls a connection until it ends, is drained, or takes too long.
async fn drive<C: HttpConnection>(
    mut http: Pin<&mut C>,
    activity: &Activity,
    mut timeouts: Timeouts,
    mut draining: watch::Receiver<bool>,
) -> Ending {
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
                let Err(error) = ended else { return Poll::Ready(Event::Ended(Ending::Closed)) };
                debug!("a connection ended: {error}");
                return Poll::Ready(Event::Ended(Ending::Failed));
            }
            if !is_draining && drain.as_mut().poll(context).is_ready() {
                return Poll::Ready(Event::Drain);
            }
            timeouts.poll_expired(context, || activity.snapshot()).map(Event::TimedOut)
        });
        match event.await {
            Event::Ended(ending) => return ending,
            Event::Drain => {
                is_draining = true;
                http.as_mut().wind_down();
            }
            Event::TimedOut(State::Idle) => {
                // Say goodbye, so that a caller about to send knows that nothing of it was read.
                http.as_mut().wind_down();
                let _ = timeout(GOODBYE_MAX, http).await;
                return Ending::Closed;
            }
            Event::TimedOut(state @ (State::ReadingHead | State::Answering)) => {
                debug!("a connection is cut off: {state:?} took too long");
                return Ending::CutOff;
            }
        }
    }
}
