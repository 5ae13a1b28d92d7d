//! Fair scheduling: each peer gets a share of the processor. A peer with a thousand connections
//! therefore does not delay a peer with one connection.
//!
//! Runnable tasks wait in the runtime's queue, in order of arrival. A round is one pass through
//! that queue. In each round a peer gets up to 4 turns, each of which polls one task. Its further
//! tasks wait in the peer's own queue:
//!
//! ```text
//! peer A  ● ● ● ● ● ● ● ● ● …  ──4 a round───┐
//! peer B  ●                    ──────────────┼──▶ the runtime's queue ──▶ polled
//! peer C  ● ●                  ──────────────┘
//! ```
//!
//! A task waits only if its peer has more than 4 tasks, and other peers have connections too.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use pin_project_lite::pin_project;
use tokio::sync::Notify;

use idmint_service::network_of;

/// The number of turns that one peer gets in each scheduling round. In each turn, one task is
/// polled once.
const TURNS: usize = 4;

/// The scheduler that shares the processor among all peers of one listener. Clones share its state.
#[derive(Debug, Clone, Default)]
pub(super) struct FairShare(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// The peers with connections. When the map is full, the entries of peers without connections
    /// are removed.
    peers: Mutex<HashMap<IpAddr, Weak<Peer>>>,
    /// The number of peers that have connections.
    /// Written by: `of`, `Peer::drop`. Read by: `Peer::has_turn`. Ordering: `Relaxed`, because the
    /// counter guards no other data.
    /// Tested by: `a_peer_that_is_alone_never_waits`.
    peer_count: Arc<AtomicUsize>,
    /// The peers that have tasks waiting for a turn.
    waiting: Mutex<Vec<Arc<Peer>>>,
    /// Notified when a peer is added to `waiting`, so that the next scheduling round begins.
    is_wanted: Notify,
}

/// The scheduling state of one peer. A peer is an IPv4 address or an IPv6 network.
#[derive(Debug)]
struct Peer {
    /// The number of tasks of this peer: its connections and HTTP/2 streams.
    /// Written by: `PeerShare::take`, `TurnTaker::drop`. Read by: `has_turn`. Ordering: `Relaxed`,
    /// because the counter guards no other data.
    /// Tested by: `few_tasks_never_wait`.
    tasks: AtomicUsize,
    /// The number of turns that the peer has left in this round. A turn lets one task be polled.
    /// The number is negative if tasks asked for more turns than the peer has.
    /// Written by: `has_turn`, `begin_round`. Ordering: `Relaxed`, because one turn more or less
    /// does no harm.
    /// Tested by: `many_tasks_have_a_few_turns_a_round_in_order`.
    turns_left: AtomicIsize,
    queue: Mutex<Queue>,
    peer_count: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct Queue {
    seats: VecDeque<Arc<Seat>>,
    /// `true` if the peer is in the list `Shared::waiting`.
    is_listed: bool,
}

/// The place of one task in the queue of its peer.
#[derive(Debug, Default)]
struct Seat(Mutex<Standing>);

#[derive(Debug, Default)]
enum Standing {
    #[default]
    NotWaiting,
    Waiting(Waker),
    /// The task has an unused turn, so it may be polled once.
    Granted,
}

impl FairShare {
    /// Returns this peer's share of the processor time. All connections of the peer use the same
    /// share.
    pub(super) fn of(&self, peer: IpAddr) -> PeerShare {
        let network = network_of(peer);
        let mut peers = lock(&self.0.peers);
        let peer = peers
            .get(&network)
            .and_then(Weak::upgrade)
            .unwrap_or_else(|| {
                if peers.len() == peers.capacity() {
                    peers.retain(|_, peer| peer.strong_count() > 0);
                }
                let peer = Arc::new(Peer::new(Arc::clone(&self.0.peer_count)));
                peers.insert(network, Arc::downgrade(&peer));
                peer
            });
        PeerShare {
            peer,
            turns: self.clone(),
        }
    }

    /// Starts one scheduling round after another while tasks wait for their turns. Never completes.
    pub(super) async fn begin_rounds(self) {
        loop {
            self.0.is_wanted.notified().await;
            loop {
                pass_through_queue().await;
                if !self.begin_round() {
                    break;
                }
            }
        }
    }

    /// Starts a scheduling round, in which every peer with waiting tasks gets new turns. Returns
    /// `true` if some tasks must wait for another round.
    fn begin_round(&self) -> bool {
        let peers = std::mem::take(&mut *lock(&self.0.waiting));
        let still_waiting: Vec<_> = peers
            .into_iter()
            .filter(|peer| peer.begin_round())
            .collect();
        let mut waiting = lock(&self.0.waiting);
        waiting.extend(still_waiting);
        !waiting.is_empty()
    }
}

impl Peer {
    fn new(peer_count: Arc<AtomicUsize>) -> Peer {
        peer_count.fetch_add(1, Ordering::Relaxed);
        let turns_left = AtomicIsize::new(TURNS.cast_signed());
        Peer {
            tasks: AtomicUsize::new(0),
            turns_left,
            queue: Mutex::default(),
            peer_count,
        }
    }

    /// `true` if a task of this peer may be polled in this round. Uses up one of the peer's turns
    /// in the round, unless the peer is the only one or has at most `TURNS` tasks.
    fn has_turn(&self) -> bool {
        self.tasks.load(Ordering::Relaxed) <= TURNS
            || self.peer_count.load(Ordering::Relaxed) <= 1
            || self.turns_left.fetch_sub(1, Ordering::Relaxed) > 0
    }

    /// Starts the next scheduling round for this peer, which gets `TURNS` new turns. Each turn lets
    /// one task be polled once. Waiting tasks get the turns first, in order, and tasks that come
    /// later in the round get the rest. Returns `true` if tasks still wait.
    fn begin_round(&self) -> bool {
        let mut queue = lock(&self.queue);
        let granted = queue.seats.len().min(TURNS);
        self.turns_left
            .store((TURNS - granted).cast_signed(), Ordering::Relaxed);
        queue.seats.drain(..granted).for_each(|seat| seat.grant());
        queue.is_listed = !queue.seats.is_empty();
        queue.is_listed
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.peer_count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Seat {
    fn grant(&self) {
        if let Standing::Waiting(waker) = std::mem::replace(&mut *lock(&self.0), Standing::Granted)
        {
            waker.wake();
        }
    }
}

/// Waits until every task that is now in this thread's queue has been polled.
///
/// A task that wakes itself goes to the end of that queue. `yield_now` would instead resume the
/// task after the runtime has polled its sockets, which may happen before the queued tasks are
/// polled.
async fn pass_through_queue() {
    let mut has_passed = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_passed, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// One peer's share of the processor time.
#[derive(Debug, Clone)]
pub(super) struct PeerShare {
    peer: Arc<Peer>,
    turns: FairShare,
}

impl PeerShare {
    /// Wraps a future as a task of this peer. The task is polled only when the fair scheduler lets
    /// the peer run it.
    pub(super) fn take<F: Future>(&self, future: F) -> InShare<F> {
        self.peer.tasks.fetch_add(1, Ordering::Relaxed);
        InShare {
            future,
            taker: TurnTaker {
                of: self.clone(),
                seat: None,
                is_waiting: false,
            },
        }
    }
}

/// The scheduling state of a task: its peer, and its place in the peer's queue if it has one.
#[derive(Debug)]
struct TurnTaker {
    of: PeerShare,
    /// The task's entry in its peer's queue of waiting tasks. `None` until the task first waits.
    seat: Option<Arc<Seat>>,
    is_waiting: bool,
}

impl TurnTaker {
    #[inline]
    fn poll_turn(&mut self, context: &Context<'_>) -> Poll<()> {
        if !self.is_waiting && self.of.peer.has_turn() {
            Poll::Ready(())
        } else {
            self.wait(context)
        }
    }

    #[cold]
    fn wait(&mut self, context: &Context<'_>) -> Poll<()> {
        let seat = self.seat.get_or_insert_default();
        let mut standing = lock(&seat.0);
        let is_granted = matches!(*standing, Standing::Granted);
        *standing = if is_granted {
            Standing::NotWaiting
        } else {
            Standing::Waiting(context.waker().clone())
        };
        drop(standing);
        if is_granted {
            self.is_waiting = false;
            return Poll::Ready(());
        }
        if !std::mem::replace(&mut self.is_waiting, true) {
            let mut queue = lock(&self.of.peer.queue);
            queue.seats.push_back(Arc::clone(seat));
            if !std::mem::replace(&mut queue.is_listed, true) {
                lock(&self.of.turns.0.waiting).push(Arc::clone(&self.of.peer));
                self.of.turns.0.is_wanted.notify_one();
            }
        }
        Poll::Pending
    }
}

impl Drop for TurnTaker {
    fn drop(&mut self) {
        self.of.peer.tasks.fetch_sub(1, Ordering::Relaxed);
    }
}

pin_project! {
    /// A future that is polled only when the fair scheduler lets its peer run it.
    #[derive(Debug)]
    pub(super) struct InShare<F> {
        #[pin]
        future: F,
        taker: TurnTaker,
    }
}

impl<F: Future> Future for InShare<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        match this.taker.poll_turn(context) {
            Poll::Ready(()) => this.future.poll(context),
            Poll::Pending => Poll::Pending,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use tokio::task::{LocalSet, yield_now};

    use super::*;

    /// Spawns `tasks` tasks for the peer `192.0.2.{host}`. Each task is polled `polls` times and
    /// records each poll in `told`.
    fn spawn(
        turns: &FairShare,
        host: u8,
        tasks: usize,
        polls: usize,
        told: &Rc<RefCell<Vec<(u8, usize)>>>,
    ) {
        let own = turns.of([192, 0, 2, host].into());
        for number in 0..tasks {
            let told = Rc::clone(told);
            tokio::task::spawn_local(own.take(async move {
                for _ in 0..polls {
                    told.borrow_mut().push((host, number));
                    pass_through_queue().await;
                }
            }));
        }
    }

    /// Runs the tasks that `spawn_all` spawns until all of them have ended. Returns an entry for
    /// each poll of a task, in order: the last byte of the peer's address, and the task's number.
    async fn told_by(
        spawn_all: impl FnOnce(&FairShare, &Rc<RefCell<Vec<(u8, usize)>>>),
    ) -> Vec<(u8, usize)> {
        let (turns, told) = (FairShare::default(), Rc::default());
        let local = LocalSet::new();
        local
            .run_until(async {
                let rounds = tokio::task::spawn_local(turns.clone().begin_rounds());
                spawn_all(&turns, &told);
                while turns.0.peer_count.load(Ordering::Relaxed) > 0 {
                    yield_now().await;
                }
                rounds.abort();
            })
            .await;
        told.take()
    }

    #[tokio::test]
    async fn a_peer_that_is_alone_never_waits() {
        let told = told_by(|turns, told| spawn(turns, 1, 100, 3, told)).await;
        let in_order: Vec<_> = (0..3)
            .flat_map(|_| (0..100).map(|number| (1, number)))
            .collect();
        assert_eq!(told, in_order);
    }

    #[tokio::test]
    async fn few_tasks_never_wait() {
        let told = told_by(|turns, told| {
            spawn(turns, 1, TURNS, 3, told);
            spawn(turns, 2, TURNS, 3, told);
        });
        let all = |host| (0..TURNS).map(move |number| (host, number));
        let in_order: Vec<_> = (0..3).flat_map(|_| all(1).chain(all(2))).collect();
        assert_eq!(told.await, in_order);
    }

    #[tokio::test]
    async fn many_tasks_have_a_few_turns_a_round_in_order() {
        const POLLS: usize = 50;
        let told = told_by(|turns, told| {
            spawn(turns, 3, 1, POLLS, told);
            spawn(turns, 1, 1_000, 1, told);
            spawn(turns, 2, 1_000, 1, told);
        });
        let told = told.await;
        for host in [1, 2] {
            let own: Vec<_> = told
                .iter()
                .filter(|(other, _)| *other == host)
                .map(|(_, number)| *number)
                .collect();
            assert_eq!(
                own,
                (0..1_000).collect::<Vec<_>>(),
                "each once, in the order in which they came"
            );
        }
        let mine: Vec<_> = (0..told.len()).filter(|at| told[*at].0 == 3).collect();
        assert_eq!(mine.len(), POLLS);
        let between = mine.windows(2).map(|pair| pair[1] - pair[0] - 1).max();
        assert!(
            between <= Some(2 * TURNS),
            "{between:?} turns of others between two of a peer with one task"
        );
    }

    #[tokio::test]
    async fn tasks_that_end_while_they_wait_are_no_hindrance() {
        let told = told_by(|turns, told| {
            spawn(turns, 2, 1, 1, told);
            let own = turns.of([192, 0, 2, 1].into());
            let waiting: Vec<_> = (0..100)
                .map(|_| {
                    let mut task = Box::pin(own.take(yield_now()));
                    let _ = task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                    task
                })
                .collect();
            drop(waiting);
            assert_eq!(own.peer.tasks.load(Ordering::Relaxed), 0);
            spawn(turns, 1, 100, 2, told);
        });
        assert_eq!(told.await.len(), 201);
    }
}
