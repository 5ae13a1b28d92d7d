//! One connection, from its first byte to its close.

use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::handler::{Handler, TrackedHandler};
use super::http2_streams::StreamExecutor;
use super::named_caller::NamedCaller;
use super::timeouts::Timeouts;
use crate::net::callers::Callers;
use crate::net::limits::Limits;
use crate::net::stream::{
    Activity, CoalescingStream, FlushWhenPending, FrameAllowance, HeadPayment, LINGER_MAX, Outbox,
    Protocol, Socket, State, TrackedStream, Tracking, detect_protocol,
};
use crate::net::tls::{Secured, Tls};
use crate::net::turns::PeerTurns;
use crate::service::Shed;

/// While draining, how long a silent connection has for one last request. Closed at once, it might cut off a request
/// that is on its way.
const LAST_REQUEST_WAIT: Duration = Duration::from_secs(1);

/// How long a caller may take to hear that its idle connection is closed.
const GOODBYE_MAX: Duration = LINGER_MAX.saturating_mul(2);

const HEADERS_MAX: usize = 64;
const HEAD_LEN_MAX: u32 = 16 * 1024;
/// Read and written through buffers of at most this size.
const BUFFER_LEN_MAX: usize = 64 * 1024;
/// What h2 keeps of one stream's answer.
const SEND_BUFFER_LEN: usize = 16 * 1024;
const STREAMS_MAX: u32 = 100;
/// Streams reset before they were looked at, and streams reset for an error: more of either, and it is an attack.
const RESETS_MAX: usize = 100;
const WINDOW_LEN: u32 = 64 * 1024;
/// What a connection of HTTP/2 holds beside its streams, in bytes: its window, and what is written.
const HTTP2_LEN: usize = 96 * 1024;
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PONG_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection just accepted.
pub(in crate::net) struct Connection<H, S> {
    pub(in crate::net) stream: S,
    pub(in crate::net) peer: IpAddr,
    pub(in crate::net) handler: H,
    pub(in crate::net) callers: Callers,
    pub(in crate::net) limits: Limits,
    pub(in crate::net) activity: Arc<Activity>,
    /// Cancelled when everything ends, or when its place is needed.
    pub(in crate::net) stop: CancellationToken,
    /// For the tasks that it starts.
    pub(in crate::net) turns: PeerTurns,
}

impl<H: Handler> Connection<H, TcpStream> {
    /// Serves it until one side closes it, it takes too long, or it is drained.
    pub(in crate::net) async fn run(self) {
        let head_deadline = self.begin();
        let Self {
            stream,
            peer,
            handler,
            callers,
            limits,
            activity,
            stop,
            turns,
        } = self;
        let detected =
            before_request(head_deadline, &stop, &activity, detect_protocol(stream)).await;
        let Some(Ok(Some((protocol, stream)))) = detected else {
            return debug!("a connection ended before its first request");
        };
        let connection = Connection {
            stream,
            peer,
            handler,
            callers,
            limits,
            activity,
            stop,
            turns,
        };
        connection.serve(protocol, head_deadline).await;
    }

    /// The same; each request carries who calls.
    pub(in crate::net) async fn run_named(self) {
        let Self {
            stream,
            peer,
            handler,
            callers,
            limits,
            activity,
            stop,
            turns,
        } = self;
        let handler = NamedCaller::new(handler, callers.clone(), peer, None);
        Connection {
            stream,
            peer,
            handler,
            callers,
            limits,
            activity,
            stop,
            turns,
        }
        .run()
        .await;
    }

    /// The same with TLS.
    pub(in crate::net) async fn run_tls(self, tls: Arc<Tls>) {
        let head_deadline = self.begin();
        let Self {
            stream,
            peer,
            handler,
            callers,
            limits,
            activity,
            stop,
            turns,
        } = self;
        let Secured {
            stream,
            protocol,
            certificate,
        } = match before_request(head_deadline, &stop, &activity, tls.accept(stream)).await {
            Some(Ok(secured)) => secured,
            None if stop.is_cancelled() => return,
            failed => {
                let shed = callers.load().counts.count(Shed::Handshake);
                let error = failed
                    .and_then(Result::err)
                    .map_or("it took too long".to_owned(), |e| e.to_string());
                return debug!("{shed}: {error}");
            }
        };
        let handler = NamedCaller::new(handler, callers.clone(), peer, certificate);
        let connection = Connection {
            stream,
            peer,
            handler,
            callers,
            limits,
            activity,
            stop,
            turns,
        };
        connection.serve(protocol, head_deadline).await;
    }

    /// Until when the first head must be there.
    fn begin(&self) -> Instant {
        // Answers are written whole; waiting for more to send would only delay them. A refusal does no harm.
        let _ = self.stream.set_nodelay(true);
        Instant::now() + self.limits.header_timeout
    }
}

/// What `first` comes to, which no request can come before; `None` if it takes too long, or must end.
async fn before_request<T>(
    head_deadline: Instant,
    stop: &CancellationToken,
    activity: &Activity,
    first: impl Future<Output = T>,
) -> Option<T> {
    let quiet_while_draining = async {
        stop.cancelled().await;
        if !activity.is_given_up() {
            sleep(LAST_REQUEST_WAIT).await;
        }
    };
    tokio::select! {
        biased;
        done = timeout_at(head_deadline, first) => done.ok(),
        () = quiet_while_draining => None,
    }
}

impl<H: Handler, S: Socket> Connection<H, S> {
    async fn serve(self, protocol: Protocol, head_deadline: Instant) {
        match protocol {
            Protocol::Http1 => self.run_http1(head_deadline).await,
            Protocol::Http2 => self.run_http2().await,
        }
    }

    fn handler(&self) -> TrackedHandler<H> {
        let (handler, activity) = (self.handler.clone(), Arc::clone(&self.activity));
        TrackedHandler {
            handler,
            activity,
            callers: self.callers.clone(),
            peer: self.peer,
        }
    }

    async fn run_http1(self, head_deadline: Instant) {
        let handler = self.handler();
        let activity = self.activity;
        activity.record_bytes_read(0);
        let outbox = Outbox::new(self.stream, Arc::clone(&activity));
        let stream = CoalescingStream(Arc::clone(&outbox));
        let stream = TrackedStream::new(
            stream,
            Tracking::Bytes(Arc::clone(&activity), HeadPayment::default()),
        );
        let http = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            .max_headers(HEADERS_MAX)
            .max_header_size(HEAD_LEN_MAX as usize)
            .max_buf_size(BUFFER_LEN_MAX)
            // A caller that has sent all it wants to may close its half and wait for the answer.
            .half_close(true)
            .serve_connection(TokioIo::new(stream), handler);
        let http = FlushWhenPending {
            connection: http,
            outbox: Arc::clone(&outbox),
        };
        let timeouts = Timeouts::new(self.limits, activity.snapshot(), head_deadline);
        let ending = drive(pin!(http), &activity, timeouts, self.stop, self.limits).await;
        if ending == Ending::Failed {
            // hyper is gone, and what it had answered before may still be in the outbox.
            let mut stream = TrackedStream::new(CoalescingStream(outbox), Tracking::Nothing);
            let _ = timeout(GOODBYE_MAX, stream.shutdown()).await;
        }
    }

    async fn run_http2(self) {
        let Ok(_paid) = self
            .callers
            .pay_for_connection(self.peer, &self.activity.payer, HTTP2_LEN)
        else {
            return;
        };
        let handler = self.handler();
        let allowance = FrameAllowance::new(Arc::clone(&self.callers.load().counts));
        let activity = self.activity;
        let stream = TrackedStream::new(self.stream, Tracking::Frames(allowance));
        let http = http2::Builder::new(StreamExecutor {
            idle_timeout: self.limits.idle_timeout,
            turns: self.turns,
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
            self.limits,
            activity.snapshot(),
            Instant::now() + self.limits.idle_timeout,
        );
        drive(pin!(http), &activity, timeouts, self.stop, self.limits).await;
    }
}

/// A connection of either protocol.
trait HttpConnection: Future<Output = hyper::Result<()>> {
    /// How long `wind_down` waits for a request that is on its way.
    const WIND_DOWN_WAIT: Duration;

    /// Finish what is begun, begin nothing new.
    fn wind_down(self: Pin<&mut Self>);
}

type Stream<S> = TokioIo<TrackedStream<S>>;

impl<H: Handler, S: Socket> HttpConnection
    for FlushWhenPending<http1::Connection<Stream<CoalescingStream<S>>, TrackedHandler<H>>, S>
{
    const WIND_DOWN_WAIT: Duration = LAST_REQUEST_WAIT;

    fn wind_down(self: Pin<&mut Self>) {
        self.project().connection.graceful_shutdown();
    }
}

impl<H: Handler, S: Socket> HttpConnection
    for http2::Connection<Stream<S>, TrackedHandler<H>, StreamExecutor>
{
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

/// The time, give or take a tenth: connections that were opened together are not closed together.
fn jittered(time: Duration) -> Duration {
    time.mul_f64(rand::random_range(0.9..1.1))
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
    stop: CancellationToken,
    limits: Limits,
) -> Ending {
    let mut is_draining = false;
    let mut drain = pin!(async {
        match limits.connection_age_max {
            None => stop.cancelled().await,
            // In HTTP/1 it goes on until somebody asks once more.
            Some(age_max) => {
                if timeout(jittered(age_max), stop.cancelled()).await.is_err() {
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
        // The connection first: a request that has arrived by now is answered even while draining.
        let event = poll_fn(|context| {
            if let Poll::Ready(ended) = http.as_mut().poll(context) {
                let Err(error) = ended else {
                    return Poll::Ready(Event::Ended(Ending::Closed));
                };
                debug!("a connection ended: {error}");
                return Poll::Ready(Event::Ended(Ending::Failed));
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
