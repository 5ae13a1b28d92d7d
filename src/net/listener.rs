//! Serving connections: how many at once, for how long, and how it ends.

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
use super::table::OpenConnections;
use super::tls::{self, TLS_LEN, Tls};
use super::turns::Turns;
use crate::service::Shed;

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
    let Terms { limits, callers, open, obstacle, tls, names_callers } = terms;
    let (connection_len, refusal) = match &tls {
        Some(_) => (CONNECTION_LEN + TLS_LEN, tls::REFUSAL),
        None if callers.is_test() => (CONNECTION_LEN, REFUSAL_OF_TEST),
        None => (CONNECTION_LEN, REFUSAL),
    };
    let draining = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let refusals = Arc::new(Semaphore::new(LINGERING_REFUSALS_MAX));
    let turns = Turns::default();
    // Ends with this function.
    let mut rounds = JoinSet::new();
    rounds.spawn(turns.clone().begin_rounds());
    let enter = |peer, stop: &CancellationToken| {
        let activity = Activity::begin(callers.load().memory.payer(peer));
        let charge = callers.pay_for_connection(peer, &activity.payer, connection_len)?;
        let entry = open.enter(peer, callers.is_exempt(peer), &limits, &activity, stop);
        let entry = entry.map_err(|shed| callers.load().counts.count(shed))?;
        Ok::<_, Shed>((activity, (entry, charge)))
    };
    let admit = |tasks: &mut JoinSet<()>, (stream, peer)| {
        if let Some(answer) = obstacle() {
            let answer = if tls.is_some() { Bytes::from_static(refusal) } else { answer };
            return turn_away(stream, answer, &refusals);
        }
        let stop = draining.child_token();
        match enter(peer, &stop) {
            Ok((activity, held)) => {
                let (handler, callers) = (handler.clone(), callers.clone());
                let own = turns.of(peer);
                let connection =
                    Connection { stream, peer, handler, callers, limits, activity, stop, turns: own.clone() };
                // A task of its own kind for each: a plain connection pays nothing for what the others can do.
                match &tls {
                    Some(tls) => tasks.spawn(own.take(while_held(held, connection.run_tls(Arc::clone(tls))))),
                    None if names_callers => tasks.spawn(own.take(while_held(held, connection.run_named()))),
                    None => tasks.spawn(own.take(while_held(held, connection.run()))),
                };
            }
            Err(shed) => {
                debug!("turning a connection away: {shed}");
                turn_away(stream, Bytes::from_static(refusal), &refusals);
            }
        }
    };

    let mut acceptor = Acceptor::new(listener, refusal);
    let mut drain = pin!(drain);
    loop {
        tokio::select! {
            biased;
            () = &mut drain => break,
            Some(ended) = tasks.join_next() => log_panic(ended),
            arrival = acceptor.next() => match arrival {
                Arrival::Connection(stream, peer) => admit(&mut tasks, (stream, peer)),
                Arrival::Refused(stream) => {
                    drop(stream);
                    open.give_up_idle_longest();
                }
            },
        }
    }

    // Whoever is in the backlog was accepted by the kernel on our behalf, and may have sent a request.
    for arrived in acceptor.accept_backlog().await {
        admit(&mut tasks, arrived);
    }
    drop(acceptor);
    draining.cancel();
    info!(connections = tasks.len(), "draining: {} connections are open", tasks.len());
    let all_ended = async {
        while let Some(ended) = tasks.join_next().await {
            log_panic(ended);
        }
    };
    let in_time = tokio::time::timeout(drain_max, all_ended).await.is_ok();
    let connections_closed_by_force = if in_time { 0 } else { tasks.len() };
    if connections_closed_by_force > 0 {
        warn!(connections_closed_by_force, "cutting off {connections_closed_by_force} connections after {drain_max:?}");
    }
    tasks.shutdown().await;
    Drained { connections_closed_by_force }
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
