//! Serving connections: how many at once, for how long, and how it ends.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinError, JoinSet};
use tracing::{debug, error, info, warn};

use super::acceptor::{Acceptor, Arrival};
use super::connection::Connection;
use super::handler::Handler;
use super::limits::Limits;
use super::open_connections::OpenConnections;
use super::refusal::{REFUSAL, REFUSAL_MAX, refuse};

/// How serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Connections that had not finished in time; requests on them may have lost their answers.
    pub connections_closed_by_force: usize,
}

/// How many refused connections may linger so that the refusal is read; beyond that they are closed at once.
const LINGERING_REFUSALS_MAX: usize = 256;

/// Serves connections from this listener until `drain` completes and every request accepted has its answer.
///
/// Once `drain` completes, nothing new is accepted, each connection is closed after its next answer, an idle one after
/// a second; what is still open after `drain_max` is cut off. Each connection speaks HTTP/1.1, or HTTP/2 with prior knowledge.
/// A panic ends at most its own connection.
///
/// `obstacle`: asked about every new connection; while it has an answer, as the bytes of HTTP/1.1, the connection gets that
/// and is closed.
pub async fn serve(
    listener: TcpListener,
    handler: impl Handler,
    obstacle: impl Fn() -> Option<Bytes>,
    limits: Limits,
    open: OpenConnections,
    drain: impl Future<Output = ()>,
    drain_max: Duration,
) -> Drained {
    let (draining, _) = watch::channel(false);
    let mut tasks = JoinSet::new();
    let refusals = Arc::new(Semaphore::new(LINGERING_REFUSALS_MAX));
    let admit = |tasks: &mut JoinSet<()>, stream| {
        if let Some(answer) = obstacle() {
            return turn_away(stream, answer, &refusals);
        }
        let Some(entry) = open.enter(limits.connections_max) else {
            debug!("turning a connection away: http.connections_max are open");
            return turn_away(stream, Bytes::from_static(REFUSAL), &refusals);
        };
        let connection = Connection { stream, handler: handler.clone(), limits, draining: draining.subscribe() };
        tasks.spawn(async move {
            let _entry = entry;
            connection.run().await;
        });
    };

    let mut acceptor = Acceptor::new(listener);
    let mut drain = pin!(drain);
    loop {
        tokio::select! {
            biased;
            () = &mut drain => break,
            Some(ended) = tasks.join_next() => log_panic(ended),
            arrival = acceptor.next() => match arrival {
                Arrival::Connection(stream) => admit(&mut tasks, stream),
                Arrival::Refused(stream) => drop(stream),
            },
        }
    }

    // Whoever is in the backlog was accepted by the kernel on our behalf, and may have sent a request.
    for stream in acceptor.accept_backlog().await {
        admit(&mut tasks, stream);
    }
    drop(acceptor);
    draining.send_replace(true);
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
