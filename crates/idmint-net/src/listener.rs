//! Serves connections: admits them, limits them and drains them.

use std::io::Write;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use super::acceptor::{Acceptor, Arrival};
use super::callers::Callers;
use super::connection::{Connection, ConnectionObserver, Context, Dispatch, Handler};
use super::fair_share::FairShare;
use super::limits::{CONNECTION_LEN, Limits};
use super::refusal::{REFUSAL_MAX, refusal, refuse};
use super::stream::Activity;
use super::table::{OpenConnection, OpenConnections};
use super::tls::{self, TLS_LEN, Tls};
use idmint_service::{MemoryReservation, Shed};

/// The result of [`serve`], which returns once all connections are closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// The number of connections that were still open when the time for draining ended, and were
    /// cut off. Requests on them may have lost their responses.
    pub connections_closed_by_force: usize,
}

/// The settings with which connections are served: limits, security and callbacks.
pub struct Terms<B> {
    /// The limits on connections.
    pub limits: Limits,
    /// The resource limits of callers, and the trusted proxies.
    pub callers: Callers,
    /// The table of open connections.
    pub open: OpenConnections,
    /// A function called for each new connection. `Some` refuses the connection. The bytes are then
    /// sent as an HTTP/1.1 response, and the connection ends. With TLS, an alert is sent instead.
    pub obstacle: Box<dyn Fn() -> Option<Bytes> + Send + Sync>,
    /// The functions that refuse requests and recognize probes.
    pub dispatch: Dispatch<B>,
    /// The security of connections, and the observer of their requests.
    pub security: Security<B>,
}

/// Plain text or TLS, with or without an observer of requests.
pub enum Security<B> {
    /// Plain text.
    Plain,
    /// Plain text, with an observer of requests.
    Observed(ConnectionObserver<B>),
    /// TLS, with an observer of requests. A refused connection gets a TLS alert instead of a
    /// response.
    Tls(Arc<Tls>, ConnectionObserver<B>),
}

/// The maximum number of refused connections that stay open so that their callers can read the
/// refusal. Further refused connections are closed at once.
const LINGERING_REFUSALS_MAX: usize = 256;

/// The maximum number of unsent bytes that the kernel holds for a caller. It is set by the socket
/// option `TCP_NOTSENT_LOWAT`. Without this limit, the kernel would accept megabytes for a caller
/// that does not read, and copying them would delay other callers.
#[cfg(target_os = "linux")]
const UNSENT_LEN_MAX: u32 = 128 * 1024;

/// Serves connections from this listener until `drain` completes and every accepted request has its
/// response.
///
/// Once `drain` completes, no connection is accepted. Each connection is closed after its next
/// response, or after a second if it is idle. Connections still open after `drain_max` are cut off.
///
/// A connection speaks HTTP/1.1, or HTTP/2 with prior knowledge. With TLS the handshake chooses the
/// protocol. A panic ends at most its own connection.
pub async fn serve<H: Handler>(
    listener: TcpListener,
    handler: H,
    terms: Terms<H::Body>,
    drain: impl Future<Output = ()>,
    drain_max: Duration,
) -> Drained {
    let mut door = Door::new(handler, terms);
    let mut acceptor = Acceptor::new(listener, door.refusal);
    door.admit_until(drain, &mut acceptor).await;
    // Serve the connections that the kernel has accepted but that are still in the backlog. Their
    // callers may already have sent requests.
    for (stream, peer) in acceptor.accept_backlog().await {
        door.admit(stream, peer);
    }
    drop(acceptor);
    door.drain(drain_max).await
}

/// Admits or refuses connections, and owns the tasks of the admitted connections.
struct Door<H: Handler> {
    handler: H,
    terms: Terms<H::Body>,
    /// The memory to reserve for an open connection, in bytes.
    connection_len: usize,
    /// The response to a refused connection.
    refusal: &'static [u8],
    lingering: Arc<Semaphore>,
    turns: FairShare,
    draining: CancellationToken,
    tasks: JoinSet<()>,
    /// The task that starts the rounds of the fair scheduler. It ends when the `Door` is dropped.
    _rounds: JoinSet<()>,
}

impl<H: Handler> Door<H> {
    fn new(handler: H, terms: Terms<H::Body>) -> Door<H> {
        let (connection_len, refusal) = match &terms.security {
            Security::Tls(..) => (CONNECTION_LEN + TLS_LEN, tls::REFUSAL),
            Security::Plain | Security::Observed(_) => {
                (CONNECTION_LEN, refusal(terms.callers.is_test()))
            }
        };
        let (turns, mut rounds) = (FairShare::default(), JoinSet::new());
        rounds.spawn(turns.clone().begin_rounds());
        Door {
            handler,
            terms,
            connection_len,
            refusal,
            lingering: Arc::new(Semaphore::new(LINGERING_REFUSALS_MAX)),
            turns,
            draining: CancellationToken::new(),
            tasks: JoinSet::new(),
            _rounds: rounds,
        }
    }

    /// Admits connections until `drain` completes.
    async fn admit_until(&mut self, drain: impl Future<Output = ()>, acceptor: &mut Acceptor) {
        let mut drain = pin!(drain);
        loop {
            tokio::select! {
                biased;
                () = &mut drain => break,
                Some(ended) = self.tasks.join_next() => log_panic(ended),
                arrival = acceptor.next() => match arrival {
                    Arrival::Connection(stream, peer) => self.admit(stream, peer),
                    Arrival::Refused(stream) => {
                        drop(stream);
                        self.terms.open.give_up_idle_longest();
                    }
                },
            }
        }
    }

    /// Admits a connection or refuses it.
    fn admit(&mut self, stream: TcpStream, peer: IpAddr) {
        let terms = &self.terms;
        if let Some(answer) = (terms.obstacle)() {
            let answer = if matches!(terms.security, Security::Tls(..)) {
                Bytes::from_static(self.refusal)
            } else {
                answer
            };
            return turn_away(stream, answer, &self.lingering);
        }
        // The limit only saves work, so the connection is served without it if the kernel refuses.
        #[cfg(target_os = "linux")]
        let _ = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_LEN_MAX);
        let stop = self.draining.child_token();
        match self.enter(peer, &stop) {
            Ok((activity, held)) => {
                let own = self.turns.of(peer);
                let context = Context {
                    peer,
                    callers: terms.callers.clone(),
                    limits: terms.limits,
                    activity,
                    stop,
                    turns: own.clone(),
                };
                let connection = Connection {
                    stream,
                    handler: self.handler.clone(),
                    dispatch: terms.dispatch,
                    context,
                };
                // Each kind of connection has its own future type. So a plain connection does not
                // bear the cost of TLS or of an observer.
                match &terms.security {
                    Security::Tls(tls, observer) => {
                        let serving = connection.run_tls(Arc::clone(tls), Arc::clone(observer));
                        self.tasks.spawn(own.take(while_held(held, serving)))
                    }
                    Security::Observed(observer) => {
                        let serving = connection.run_observed(Arc::clone(observer));
                        self.tasks.spawn(own.take(while_held(held, serving)))
                    }
                    Security::Plain => self
                        .tasks
                        .spawn(own.take(while_held(held, connection.run()))),
                };
            }
            Err(shed) => {
                debug!("rejecting a connection: {shed}");
                turn_away(stream, Bytes::from_static(self.refusal), &self.lingering);
            }
        }
    }

    /// Adds a connection from this peer to the table and reserves memory for it. The connection
    /// keeps its table entry and its memory while it is open.
    fn enter(
        &self,
        peer: IpAddr,
        stop: &CancellationToken,
    ) -> Result<(Arc<Activity>, (OpenConnection, MemoryReservation)), Shed> {
        let (terms, callers) = (&self.terms, &self.terms.callers);
        let activity = Activity::begin(callers.load().memory.owner(peer));
        let reservation = callers.pay_for_connection(peer, &activity.owner, self.connection_len)?;
        let is_exempt = callers.is_exempt(peer);
        let entry = terms
            .open
            .enter(peer, is_exempt, &terms.limits, &activity, stop);
        let entry = entry.map_err(|shed| callers.load().counts.count(shed))?;
        Ok((activity, (entry, reservation)))
    }

    /// Waits until all connections have ended. After `drain_max`, cuts off the connections that are
    /// still open.
    async fn drain(mut self, drain_max: Duration) -> Drained {
        self.draining.cancel();
        let tasks = &mut self.tasks;
        info!(
            connections = tasks.len(),
            "shutting down: {} connections are open",
            tasks.len()
        );
        let all_ended = async {
            while let Some(ended) = tasks.join_next().await {
                log_panic(ended);
            }
        };
        let in_time = tokio::time::timeout(drain_max, all_ended).await.is_ok();
        let connections_closed_by_force = if in_time { 0 } else { tasks.len() };
        if connections_closed_by_force > 0 {
            warn!(
                connections_closed_by_force,
                "closing {connections_closed_by_force} connections that did not end within {drain_max:?}"
            );
        }
        tasks.shutdown().await;
        Drained {
            connections_closed_by_force,
        }
    }
}

/// Serves a connection, then releases its table entry and its memory.
async fn while_held(held: impl Sized, serving: impl Future<Output = ()>) {
    serving.await;
    drop(held);
}

fn turn_away(stream: TcpStream, answer: Bytes, refusals: &Arc<Semaphore>) {
    if let Ok(permit) = Arc::clone(refusals).try_acquire_owned() {
        tokio::spawn(async move {
            let _ = tokio::time::timeout(REFUSAL_MAX, refuse(stream, answer)).await;
            drop(permit);
        });
    } else if let Ok(mut stream) = stream.into_std() {
        // The socket stays non-blocking, and the refusal fits into its empty send buffer.
        let _ = stream.write(&answer);
    }
}

fn log_panic(ended: Result<(), JoinError>) {
    if ended.is_err_and(|error| error.is_panic()) {
        error!("the task of a connection panicked, so its client got no response; this is a bug");
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn a_connection_beyond_those_that_may_linger_gets_its_refusal() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let mut client = TcpStream::connect(address).await.expect("it listens");
        let (stream, _) = listener.accept().await.expect("a connection");
        let answer = Bytes::from_static(refusal(false));
        turn_away(stream, answer.clone(), &Arc::new(Semaphore::new(0)));
        let mut received = Vec::new();
        client.read_to_end(&mut received).await.expect("a close");
        assert_eq!(received, answer);
    }
}
