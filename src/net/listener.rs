//! Serving connections: how many at once, for how long, and how it ends.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinError, JoinSet};
use tracing::{debug, error, info, warn};

use super::accepting::{Accepting, Arrival};
use super::connection::{Connection, Handler};
use super::stream::{LINGER_MAX, refuse};

/// What one connection, and all together, may take.
///
/// Source of the defaults: they end a stalled head, and an idle connection, sooner than a caller would notice, and
/// leave a slow but honest one alone.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections open at once; one more is answered 503 and closed. Keep it well below the file descriptor limit.
    pub connections_max: usize,
    /// From the first byte of a request to the end of its head, and from accepting to the end of the first head.
    pub header_timeout: Duration,
    /// How long nothing may move on a connection: between requests, or in the middle of an answer nobody reads.
    pub idle_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections_max: 10_000, header_timeout: Duration::from_secs(5), idle_timeout: Duration::from_secs(60) }
    }
}

/// How serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Connections that had not finished in time; requests on them may have lost their answers.
    pub connections_closed_by_force: usize,
}

/// How many connections are open. Clones count together.
#[derive(Clone, Default)]
pub struct OpenConnections {
    /// Written by: `enter`, and `OpenConnection` when dropped. Read by: `enter` and metrics.
    /// Invariant: at most the limit given to `enter`, and the number of `OpenConnection`s alive.
    /// Ordering: `Relaxed`, it guards no other memory. Tested by: `one_connection_too_many_is_told_so`.
    count: Arc<AtomicUsize>,
}

impl OpenConnections {
    /// The number open now.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn enter(&self, connections_max: usize) -> Option<OpenConnection> {
        let add = |count| (count < connections_max).then_some(count + 1);
        self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(OpenConnection { connections: self.clone() })
    }
}

impl fmt::Debug for OpenConnections {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OpenConnections({})", self.count())
    }
}

/// One connection, counted until dropped.
struct OpenConnection {
    connections: OpenConnections,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many refused connections may linger so that the refusal is read; beyond that they are closed at once.
const LINGERING_REFUSALS_MAX: usize = 256;

/// Serves connections from this listener until `drain` completes and every request accepted has its answer.
///
/// Once `drain` completes, nothing new is accepted, each connection is closed after its next answer, an idle one after
/// a second; what is still open after `drain_max` is cut off. Each connection speaks HTTP/1.1, or HTTP/2 with prior knowledge.
/// A panic ends at most its own connection.
pub async fn serve(
    listener: TcpListener,
    handler: impl Handler,
    limits: Limits,
    open: OpenConnections,
    drain: impl Future<Output = ()>,
    drain_max: Duration,
) -> Drained {
    let (draining, _) = watch::channel(false);
    let mut tasks = JoinSet::new();
    let refusals = Arc::new(Semaphore::new(LINGERING_REFUSALS_MAX));
    let admit = |tasks: &mut JoinSet<()>, stream| match open.enter(limits.connections_max) {
        Some(entry) => {
            let connection = Connection { stream, handler: handler.clone(), limits, draining: draining.subscribe() };
            tasks.spawn(async move {
                let _entry = entry;
                connection.run().await;
            });
        }
        None => turn_away(stream, &refusals),
    };

    let mut accepting = Accepting::new(listener);
    let mut drain = pin!(drain);
    loop {
        tokio::select! {
            biased;
            () = &mut drain => break,
            Some(ended) = tasks.join_next() => note(ended),
            arrival = accepting.next() => match arrival {
                Arrival::Connection(stream) => admit(&mut tasks, stream),
                Arrival::Surplus(stream) => drop(stream),
            },
        }
    }

    // Whoever is in the backlog was accepted by the kernel on our behalf, and may have sent a request.
    for stream in accepting.backlog().await {
        admit(&mut tasks, stream);
    }
    drop(accepting);
    draining.send_replace(true);
    info!(connections = tasks.len(), "draining: {} connections are open", tasks.len());
    let all_ended = async {
        while let Some(ended) = tasks.join_next().await {
            note(ended);
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

fn turn_away(stream: TcpStream, refusals: &Arc<Semaphore>) {
    debug!("turning a connection away: http.connections_max are open");
    if let Ok(permit) = Arc::clone(refusals).try_acquire_owned() {
        tokio::spawn(async move {
            // Twice: once to write, once to let the caller read.
            let _ = tokio::time::timeout(2 * LINGER_MAX, refuse(stream)).await;
            drop(permit);
        });
    }
}

fn note(ended: Result<(), JoinError>) {
    if ended.is_err_and(|error| error.is_panic()) {
        error!("a connection ended in a panic; its caller got no answer");
    }
}
