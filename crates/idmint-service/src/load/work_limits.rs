//! Limits the number of requests in flight, and the amount of long work, such as minting large
//! batches.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::fair_queue::{FairQueue, Place};
use super::pending::Sender;
use super::shed::{Shed, ShedCounts};
use idmint_storage::LongWorkThreads;

/// Work with at most this estimated duration runs immediately, on the thread that serves the
/// request. Longer work runs on a separate thread. Otherwise a tiny request would wait for the long
/// work of all requests that arrived before it.
const AT_ONCE_MAX: Duration = Duration::from_micros(50);

/// The longest estimated duration of work that counts as short. Short work is never refused as long
/// work, even under high load.
const SHORT_MAX: Duration = Duration::from_micros(500);

/// A node is idle while it has fewer long requests in progress per core than this. An idle node
/// admits a long request of any duration. Paused requests do not count.
const BULK_PER_CORE: usize = 1;

/// A node that is not idle counts as busy if its admitted long work takes at least this estimated
/// time per core. A busy node accepts more long work only from a peer whose own work takes less
/// than its fair share of this time.
const BACKLOG_MAX: Duration = Duration::from_millis(20);

/// The requests in flight and the long work of one process.
#[derive(Debug)]
pub struct WorkLimits {
    in_flight_max: usize,
    cores: usize,
    /// The number of mints that are only waiting: for memory, for a permit, or until their ids may
    /// be sent. Such mints are in flight, but do not use the CPU.
    /// Written by: `hold`, `HeldMint`. Read by: `has_room`.
    held: AtomicUsize,
    bulk: Mutex<Bulk>,
    /// The queue for CPU cores. It has one place for each core that long work may keep busy.
    cores_free: Arc<FairQueue>,
    /// The threads that do long work, one for each core.
    threads: LongWorkThreads,
    /// The queue for the requests with the largest bodies, whose parsed content may need many times
    /// the memory of the body. The queue has one place, so only one such request is processed at a
    /// time.
    largest: Arc<FairQueue>,
    /// The number of detached requests. A request is detached if it continues after its caller has
    /// disconnected. Detached requests count as in flight.
    /// Written by: `work_detached`, `DetachedWork`. Read by: `has_room`, `wait_for_detached`.
    detached: AtomicUsize,
    /// Notified when no detached request is left.
    all_ended: Notify,
    counts: Arc<ShedCounts>,
}
// All atomics of `WorkLimits` use the ordering `Relaxed`, because the counts only limit how much
// work runs and guard no other memory.

/// The admitted long work of all peers.
#[derive(Debug, Default)]
struct Bulk {
    /// The number of long requests that are admitted and whose responses have not ended. It is at
    /// most half of `in_flight_max`, rounded up.
    admitted: usize,
    all: Backlog,
    /// The long work of each peer that has any.
    by_peer: HashMap<Sender, Backlog>,
}

/// Admitted long work that is neither finished nor paused.
#[derive(Debug, Default, Clone, Copy)]
struct Backlog {
    requests: usize,
    /// The estimated time of the work, in nanoseconds.
    nanos: u64,
}

impl Bulk {
    fn begin(&mut self, peer: &Sender, nanos: u64) {
        let own = self.by_peer.entry(peer.clone()).or_default();
        for backlog in [own, &mut self.all] {
            backlog.requests += 1;
            backlog.nanos += nanos;
        }
    }

    fn end(&mut self, peer: &Sender, nanos: u64) {
        let own = self.by_peer.entry(peer.clone()).or_default();
        for backlog in [&mut *own, &mut self.all] {
            backlog.requests -= 1;
            backlog.nanos -= nanos;
        }
        if own.requests == 0 {
            self.by_peer.remove(peer);
        }
    }

    /// `true` if this node can soon start another long request of this peer. This is the case if
    /// the node is idle, or if all work in progress takes less than [`BACKLOG_MAX`] per core. It is
    /// also the case if other peers have work and this peer's work takes less than its equal share
    /// of that time.
    fn is_soon(&self, peer: &Sender, cores: usize) -> bool {
        let backlog_max = nanos_of(BACKLOG_MAX) * cores as u64;
        let own = self.by_peer.get(peer).copied().unwrap_or_default();
        let others = self.by_peer.len() - usize::from(own.requests > 0);
        let is_idle = self.all.requests < BULK_PER_CORE * cores;
        is_idle
            || self.all.nanos < backlog_max
            || others > 0 && own.nanos < backlog_max / (others as u64 + 1)
    }
}

impl WorkLimits {
    /// Creates a limit of `in_flight_max` requests at once. At most half of them, rounded up, may
    /// take more than an estimated 500 µs. The limits on such work depend on the number of cores.
    pub fn new(in_flight_max: usize, counts: Arc<ShedCounts>) -> Arc<WorkLimits> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Arc::new(WorkLimits {
            in_flight_max,
            cores,
            held: AtomicUsize::new(0),
            bulk: Mutex::default(),
            cores_free: FairQueue::new(cores),
            threads: LongWorkThreads::new(cores),
            largest: FairQueue::new(1),
            detached: AtomicUsize::new(0),
            all_ended: Notify::new(),
            counts,
        })
    }

    /// Returns a handle to the long work of one peer.
    pub fn bulk_of(self: &Arc<Self>, peer: Sender) -> PeerBulk {
        PeerBulk {
            requests: Arc::clone(self),
            peer,
        }
    }

    fn bulk(&self) -> MutexGuard<'_, Bulk> {
        self.bulk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `true` if the number of requests in flight is within the limit. `in_flight` includes the new
    /// request, but not detached requests, whose callers have disconnected. Mints that only
    /// [wait](WorkLimits::hold), for example until their ids may be sent, do not count.
    #[inline]
    pub fn has_room(&self, in_flight: usize) -> bool {
        let in_flight = in_flight + self.detached.load(Ordering::Relaxed);
        in_flight.saturating_sub(self.held.load(Ordering::Relaxed)) <= self.in_flight_max
    }

    /// Returns the limit on requests in flight.
    pub fn in_flight_max(&self) -> usize {
        self.in_flight_max
    }

    /// Counts a request that is refused because too many requests are in flight. Returns
    /// [`Shed::InFlight`], the reason for the refusal.
    pub fn turn_away(&self) -> Shed {
        self.counts.count(Shed::InFlight)
    }

    /// Counts a mint request that only waits and does not use the CPU, for example until its ids
    /// may be sent. The request counts as waiting until the returned guard is dropped.
    pub fn hold(self: &Arc<Self>) -> HeldMint {
        self.held.fetch_add(1, Ordering::Relaxed);
        HeldMint(Arc::clone(self))
    }

    /// Finishes a request in the background after its caller has disconnected. Until `work` ends,
    /// it counts as a request in flight.
    pub fn work_detached(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        // If no runtime exists, the process is shutting down. The work is then abandoned.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        self.detached.fetch_add(1, Ordering::Relaxed);
        let detached = DetachedWork(Arc::clone(self));
        runtime.spawn(async move {
            work.await;
            drop(detached);
        });
    }

    /// Waits until all detached requests have ended, but at most for `wait_max`. Detached requests
    /// are those whose callers have disconnected. Returns the number of detached requests that
    /// still run.
    pub async fn wait_for_detached(&self, wait_max: Duration) -> usize {
        let all_end = async {
            // Register for the notification before the check. Otherwise a request that ends between
            // the check and the wait would be missed.
            let mut ended = self.all_ended.notified();
            while self.detached.load(Ordering::Relaxed) > 0 {
                ended.await;
                ended = self.all_ended.notified();
            }
        };
        // The number returned below shows whether the wait timed out.
        let _ = tokio::time::timeout(wait_max, all_end).await;
        self.detached.load(Ordering::Relaxed)
    }
}

/// Counts one detached request, until dropped.
struct DetachedWork(Arc<WorkLimits>);

impl Drop for DetachedWork {
    fn drop(&mut self) {
        if self.0.detached.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.all_ended.notify_waiters();
        }
    }
}

/// Converts an estimated duration to nanoseconds. The result is capped, so that the sum of a
/// million such estimates does not overflow.
fn nanos_of(estimate: Duration) -> u64 {
    u64::try_from(estimate.as_nanos())
        .unwrap_or(u64::MAX)
        .min(u64::MAX / 1_000_000)
}

/// Counts one mint that only waits, until dropped.
#[derive(Debug)]
pub struct HeldMint(Arc<WorkLimits>);

impl Drop for HeldMint {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The long work of one peer, which shares the node with the long work of other peers:
///
/// - Admission: At most half of the allowed requests in flight, rounded up, may be long. Within
///   this limit, a node that is idle or has less than an estimated 20 ms of admitted work per core
///   accepts work of every peer. A busier node accepts more only from a peer whose work takes less
///   than its share of this time. All peers with work have equal shares. Paused work does not
///   count.
/// - Order: Each part of the work waits for a core, in a queue in which the peers take turns.
#[derive(Debug, Clone)]
pub struct PeerBulk {
    requests: Arc<WorkLimits>,
    peer: Sender,
}

impl PeerBulk {
    /// Admits long work, for which one core would need about the time `estimate`.
    ///
    /// # Errors
    /// Returns [`Shed::Bulk`] if this node cannot do the work soon because of other long work, or
    /// if long requests already take half of the allowed requests in flight.
    pub fn enter(&self, estimate: Duration) -> Result<BulkPass, Shed> {
        let (requests, nanos) = (&self.requests, nanos_of(estimate));
        let mut bulk = requests.bulk();
        if bulk.admitted >= requests.in_flight_max.div_ceil(2)
            || !bulk.is_soon(&self.peer, requests.cores)
        {
            return Err(requests.counts.count(Shed::Bulk));
        }
        bulk.admitted += 1;
        bulk.begin(&self.peer, nanos);
        Ok(BulkPass {
            is_working: true,
            nanos: Some(nanos),
            of: self.clone(),
        })
    }

    /// Admits work after its request body has arrived, with a better estimate of its duration. If
    /// `pass` is a permit for long work, the work continues with the new estimate. Otherwise, work
    /// of more than 50 µs needs a new permit. A permit for at most 500 µs of work is never refused.
    /// Work of at most 50 µs needs no permit, so the result is `None`.
    ///
    /// # Errors
    /// Returns the errors of [`PeerBulk::enter`].
    pub fn go_on(
        &self,
        pass: Option<BulkPass>,
        estimate: Duration,
    ) -> Result<Option<BulkPass>, Shed> {
        match pass.filter(|pass| !pass.is_short()) {
            None if estimate <= AT_ONCE_MAX => Ok(None),
            None if estimate <= SHORT_MAX => Ok(Some(BulkPass {
                is_working: false,
                nanos: None,
                of: self.clone(),
            })),
            None => self.enter(estimate).map(Some),
            Some(mut pass) => {
                pass.pause();
                pass.nanos = Some(nanos_of(estimate));
                pass.resume();
                Ok(Some(pass))
            }
        }
    }

    /// Waits until this request may process a very large body. Only one request at a time may do
    /// so. Dropping the returned place lets the next request begin.
    pub async fn turn_of_largest(&self) -> Place {
        self.requests.largest.enter(&self.peer).await
    }

    /// Runs a part of long work on a low-priority thread once it is this peer's turn for a core.
    pub async fn work_aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let core = self.requests.cores_free.enter(&self.peer).await;
        let working = self.requests.threads.spawn(move || {
            let done = work();
            drop(core);
            done
        });
        working
            .await
            .expect("it does not panic, and nobody aborts it")
    }
}

/// The permit for a request that takes more than an estimated 50 µs. A request of more than an
/// estimated 500 µs counts as a long request until its permit is dropped. Shorter requests are not
/// counted.
#[derive(Debug)]
pub struct BulkPass {
    is_working: bool,
    /// The last estimate of the duration of the work, in nanoseconds, or `None` for short work,
    /// which counts towards no limit.
    nanos: Option<u64>,
    of: PeerBulk,
}

impl BulkPass {
    /// Pauses the work. Paused work does not make this node too busy for other work, because the
    /// caller may decide how long the pause takes. The request still counts as admitted.
    pub fn pause(&mut self) {
        if let Some(nanos) = self.nanos
            && std::mem::take(&mut self.is_working)
        {
            self.of.requests.bulk().end(&self.of.peer, nanos);
        }
    }

    /// Resumes work that was paused.
    pub fn resume(&mut self) {
        if let Some(nanos) = self.nanos
            && !std::mem::replace(&mut self.is_working, true)
        {
            self.of.requests.bulk().begin(&self.of.peer, nanos);
        }
    }

    /// `true` if the work was estimated as short, at most 500 µs.
    pub fn is_short(&self) -> bool {
        self.nanos.is_none()
    }

    /// Returns the handle to the peer's long work.
    pub fn peer(&self) -> &PeerBulk {
        &self.of
    }

    /// Returns a handle with which the work can run on a thread for long work. Returns `None` if
    /// the node has no more long requests than cores. The work can then stay on the threads that
    /// serve requests.
    pub fn aside(&self) -> Option<&PeerBulk> {
        let requests = &self.of.requests;
        (requests.bulk().admitted > requests.cores).then_some(&self.of)
    }
}

impl Drop for BulkPass {
    fn drop(&mut self) {
        self.pause();
        if !self.is_short() {
            self.of.requests.bulk().admitted -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(host: u8) -> Sender {
        Sender::Peer([10, 0, 0, host].into())
    }

    fn requests(in_flight_max: usize) -> (Arc<WorkLimits>, Arc<ShedCounts>) {
        let counts = Arc::new(ShedCounts::default());
        (WorkLimits::new(in_flight_max, Arc::clone(&counts)), counts)
    }

    #[test]
    fn held_mints_do_not_count() {
        let (requests, _) = requests(2);
        assert!(requests.has_room(2) && !requests.has_room(3));
        let held = requests.hold();
        assert!(requests.has_room(3) && !requests.has_room(4));
        drop(held);
        assert!(!requests.has_room(3));
    }

    #[tokio::test]
    async fn requests_whose_callers_have_gone_are_in_flight_until_they_end() {
        let (requests, _) = requests(2);
        let (end, ended) = tokio::sync::oneshot::channel();
        requests.work_detached(async { ended.await.expect("it ends") });
        assert!(requests.has_room(1) && !requests.has_room(2));
        assert_eq!(requests.wait_for_detached(Duration::ZERO).await, 1);
        end.send(()).expect("it is waited for");
        assert_eq!(requests.wait_for_detached(Duration::from_secs(60)).await, 0);
        assert!(requests.has_room(2));
    }

    #[test]
    fn long_requests_are_at_most_half_of_all() {
        let (requests, counts) = requests(5);
        let bulk = requests.bulk_of(peer(1));
        let passes: Vec<_> = (0..3).map(|_| bulk.enter(Duration::ZERO)).collect();
        assert!(passes.iter().all(Result::is_ok));
        assert_eq!(bulk.enter(Duration::ZERO).err(), Some(Shed::Bulk));
        drop(passes);
        assert!(bulk.enter(Duration::ZERO).is_ok());
        assert_eq!(counts.of(Shed::Bulk), 1);
    }

    #[test]
    fn work_is_judged_by_what_it_takes_and_short_work_is_never_refused() {
        let (requests, counts) = requests(100_000);
        let bulk = requests.bulk_of(peer(1));
        let few = BULK_PER_CORE * requests.cores;
        let mut long = Vec::new();
        for _ in 0..few {
            long.push(bulk.go_on(None, Duration::from_secs(1)));
        }
        let is_long = |pass: &Result<Option<BulkPass>, Shed>| matches!(pass, Ok(Some(pass)) if !pass.is_short());
        assert!(long.iter().all(is_long));
        assert!(matches!(bulk.go_on(None, AT_ONCE_MAX), Ok(None)));
        let nano = Duration::from_nanos(1);
        for estimate in [AT_ONCE_MAX + nano, SHORT_MAX] {
            let pass = bulk.go_on(None, estimate);
            assert!(
                matches!(pass, Ok(Some(pass)) if pass.is_short()),
                "{estimate:?}"
            );
        }
        assert_eq!(bulk.go_on(None, SHORT_MAX + nano).err(), Some(Shed::Bulk));
        assert_eq!(counts.of(Shed::Bulk), 1);
    }

    #[test]
    fn short_work_leaves_the_node_free_for_long_work() {
        let (requests, _) = requests(2);
        let [bulk, other] = [1, 2].map(|host| requests.bulk_of(peer(host)));
        let short = |bulk: &PeerBulk| bulk.go_on(None, SHORT_MAX).expect("never refused");
        let mut passes: Vec<_> = (0..1_000)
            .flat_map(|_| [short(&bulk), short(&other)])
            .collect();
        passes.iter_mut().flatten().for_each(BulkPass::resume);
        {
            let counted = requests.bulk();
            assert_eq!((counted.admitted, counted.all.requests), (0, 0));
            assert!(counted.by_peer.is_empty());
        }
        let long = bulk.go_on(passes.pop().flatten(), Duration::from_secs(1));
        assert!(matches!(long, Ok(Some(pass)) if !pass.is_short()));
        drop(passes);
        assert_eq!(requests.bulk().admitted, 0);
    }

    #[test]
    fn an_idle_node_takes_on_anything_and_a_busy_one_what_it_can_do_soon() {
        let (requests, _) = requests(100_000);
        let bulk = requests.bulk_of(peer(1));
        let few = BULK_PER_CORE * requests.cores;
        let mut long: Vec<_> = (0..few)
            .map(|_| bulk.enter(Duration::from_secs(1)))
            .collect();
        assert!(long.iter().all(Result::is_ok));
        assert_eq!(bulk.enter(Duration::from_nanos(1)).err(), Some(Shed::Bulk));
        long.iter_mut().flatten().for_each(BulkPass::pause);
        // Short requests are admitted until their total estimated time reaches the limit.
        let short: Vec<_> = (0..10_000)
            .map_while(|_| bulk.enter(Duration::from_micros(100)).ok())
            .collect();
        let soon = (BACKLOG_MAX.as_micros() / 100) as usize * requests.cores;
        assert_eq!(short.len(), soon.max(few));
        drop((long, short));
        assert_eq!(requests.bulk().all.nanos, 0);
    }

    #[test]
    fn a_peer_with_less_than_its_part_is_admitted_whatever_others_have() {
        let (requests, _) = requests(100_000);
        let [many, few] = [1, 2].map(|host| requests.bulk_of(peer(host)));
        let hour = Duration::from_secs(3_600);
        let all: Vec<_> = (0..1_000).map_while(|_| many.enter(hour).ok()).collect();
        assert_eq!(all.len(), BULK_PER_CORE * requests.cores);
        // The long work of the peer `many` keeps all cores busy. The peer `few` may still add its
        // equal part, which is half of `BACKLOG_MAX` for each core. More work of `many` is refused.
        let short = Duration::from_millis(1);
        let own: Vec<_> = (0..1_000).map_while(|_| few.enter(short).ok()).collect();
        let half = BACKLOG_MAX.as_millis() as usize * requests.cores / 2;
        assert_eq!(own.len(), half);
        assert_eq!(many.enter(short).err(), Some(Shed::Bulk));
        drop((all, own));
        assert!(requests.bulk().by_peer.is_empty());
    }
}
