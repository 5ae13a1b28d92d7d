//! Serving connections: how many at once, for how long, and how it ends.

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
use super::connection::{Connection, Handler};
use super::limits::Limits;
use super::refusal::{REFUSAL, REFUSAL_MAX, REFUSAL_OF_TEST, refuse};
use super::stream::Activity;
use super::table::{OpenConnection, OpenConnections};
use super::tls::{self, TLS_LEN, Tls};
use super::turns::Turns;
use crate::service::{Charge, Shed};

/// How serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Connections that had not finished in time; requests on them may have lost their answers.
    pub connections_closed_by_force: usize,
}

/// What connections are served under.
pub struct Terms {
    /// What connections may take.
    pub limits: Limits,
    /// Who calls, and what they may take.
    pub callers: Callers,
    /// The connections that are open.
    pub open: OpenConnections,
    /// Asked about every new connection; while it has an answer, as the bytes of HTTP/1.1, the connection gets that and is
    /// closed.
    pub obstacle: Box<dyn Fn() -> Option<Bytes> + Send + Sync>,
    /// TLS, if that is spoken here. Who is turned away then gets an alert, and no answer.
    pub tls: Option<Arc<Tls>>,
    /// Whether requests carry their [`Caller`](crate::http::Caller) without TLS, too.
    pub names_callers: bool,
}

/// How many refused connections may linger so that the refusal is read; beyond that they are closed at once.
const LINGERING_REFUSALS_MAX: usize = 256;

/// What an open connection holds while nothing goes on, or only short requests and answers, in bytes.
///
/// Source: resident memory of 10 000 idle connections that have each had an answer.
const CONNECTION_LEN: usize = 8 * 1024;

/// Serves connections from this listener until `drain` completes and every request accepted has its answer.
///
/// Once `drain` completes, nothing new is accepted, each connection is closed after its next answer, an idle one after
/// a second; what is still open after `drain_max` is cut off. Each connection speaks HTTP/1.1, or HTTP/2 with prior knowledge;
/// with TLS the handshake chooses.
/// A panic ends at most its own connection.
pub async fn serve(
    listener: TcpListener,
    handler: impl Handler,
    terms: Terms,
    drain: impl Future<Output = ()>,
    drain_max: Duration,
) -> Drained {
    let mut door = Door::new(handler, terms);
    let mut acceptor = Acceptor::new(listener, door.refusal);
    door.admit_until(drain, &mut acceptor).await;
    // Whoever is in the backlog was accepted by the kernel on our behalf, and may have sent a request.
    for (stream, peer) in acceptor.accept_backlog().await {
        door.admit(stream, peer);
    }
    drop(acceptor);
    door.drain(drain_max).await
}

/// What lets connections in or turns them away, and the tasks of those that are in.
struct Door<H> {
    handler: H,
    terms: Terms,
    /// What a connection holds as long as it is open, in bytes.
    connection_len: usize,
    /// What is answered to one that is turned away.
    refusal: &'static [u8],
    lingering: Arc<Semaphore>,
    turns: Turns,
    draining: CancellationToken,
    tasks: JoinSet<()>,
    /// Begins the rounds of turns; ends with the value.
    _rounds: JoinSet<()>,
}

impl<H: Handler> Door<H> {
    fn new(handler: H, terms: Terms) -> Door<H> {
        let (connection_len, refusal) = match &terms.tls {
            Some(_) => (CONNECTION_LEN + TLS_LEN, tls::REFUSAL),
            None if terms.callers.is_test() => (CONNECTION_LEN, REFUSAL_OF_TEST),
            None => (CONNECTION_LEN, REFUSAL),
        };
        let (turns, mut rounds) = (Turns::default(), JoinSet::new());
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

    /// Lets connections in until `drain` completes.
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

    /// Lets a connection in, or turns it away.
    fn admit(&mut self, stream: TcpStream, peer: IpAddr) {
        let Terms {
            limits,
            callers,
            obstacle,
            tls,
            names_callers,
            ..
        } = &self.terms;
        if let Some(answer) = obstacle() {
            let answer = if tls.is_some() {
                Bytes::from_static(self.refusal)
            } else {
                answer
            };
            return turn_away(stream, answer, &self.lingering);
        }
        let stop = self.draining.child_token();
        match self.enter(peer, &stop) {
            Ok((activity, held)) => {
                let (handler, callers, limits) = (self.handler.clone(), callers.clone(), *limits);
                let own = self.turns.of(peer);
                let connection = Connection {
                    stream,
                    peer,
                    handler,
                    callers,
                    limits,
                    activity,
                    stop,
                    turns: own.clone(),
                };
                // A task of its own kind for each: a plain connection pays nothing for what the others can do.
                match tls {
                    Some(tls) => self
                        .tasks
                        .spawn(own.take(while_held(held, connection.run_tls(Arc::clone(tls))))),
                    None if *names_callers => self
                        .tasks
                        .spawn(own.take(while_held(held, connection.run_named()))),
                    None => self
                        .tasks
                        .spawn(own.take(while_held(held, connection.run()))),
                };
            }
            Err(shed) => {
                debug!("turning a connection away: {shed}");
                turn_away(stream, Bytes::from_static(self.refusal), &self.lingering);
            }
        }
    }

    /// What a connection of this peer needs to be open, and holds meanwhile.
    fn enter(
        &self,
        peer: IpAddr,
        stop: &CancellationToken,
    ) -> Result<(Arc<Activity>, (OpenConnection, Charge)), Shed> {
        let Terms {
            limits,
            callers,
            open,
            ..
        } = &self.terms;
        let activity = Activity::begin(callers.load().memory.payer(peer));
        let charge = callers.pay_for_connection(peer, &activity.payer, self.connection_len)?;
        let entry = open.enter(peer, callers.is_exempt(peer), limits, &activity, stop);
        let entry = entry.map_err(|shed| callers.load().counts.count(shed))?;
        Ok((activity, (entry, charge)))
    }

    /// Waits until all connections have ended, and cuts off those that take longer.
    async fn drain(mut self, drain_max: Duration) -> Drained {
        self.draining.cancel();
        let tasks = &mut self.tasks;
        info!(
            connections = tasks.len(),
            "draining: {} connections are open",
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
                "cutting off {connections_closed_by_force} connections after {drain_max:?}"
            );
        }
        tasks.shutdown().await;
        Drained {
            connections_closed_by_force,
        }
    }
}

/// Serves a connection, and then gives back what it held.
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
    }
}

fn log_panic(ended: Result<(), JoinError>) {
    if ended.is_err_and(|error| error.is_panic()) {
        error!("a connection ended in a panic; its caller got no answer");
    }
}
