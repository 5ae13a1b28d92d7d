//! How many requests are worked on at once, and how much long work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::shed::{Shed, ShedCounts};

/// Work that takes no longer is short: it is done at once, whatever else goes on.
const SHORT_MAX: Duration = Duration::from_micros(500);

/// Long work that is admitted whatever it takes, for each core: an idle node takes on anything.
const BULK_PER_CORE: usize = 1;

/// Beyond that, how long all long work admitted so far may take.
const BACKLOG_MAX: Duration = Duration::from_millis(20);

/// The requests of one process.
#[derive(Debug)]
pub struct Requests {
    in_flight_max: usize,
    cores: usize,
    /// Mints that wait until their ids are due; they are in flight and cost nothing.
    /// Written by: `HeldMint`. Read by: `has_room`.
    held: AtomicUsize,
    /// Long requests, from their admission to the end of their answers.
    /// Written by: `BulkPass`. Read by: `enter_bulk`. Invariant: at most half of `in_flight_max`.
    bulk: AtomicUsize,
    /// How long the long work that is admitted and not done will take, in nanoseconds, and how many have any.
    /// Written by: `Work`. Read by: `enter_bulk`.
    backlog: AtomicU64,
    working: AtomicUsize,
    /// One permit for each core that long work may keep busy.
    cores_free: Semaphore,
    /// For the one request whose parts may take many times its body.
    largest: Arc<Semaphore>,
    /// How many are worked on whose callers have gone; they are in flight as others are.
    /// Written by: `work_unheard`, `Unheard`. Read by: `has_room`, `wait_for_unheard`.
    unheard: AtomicUsize,
    /// Told when there is none any more.
    all_ended: Notify,
    counts: Arc<ShedCounts>,
}
// Ordering of all atomics: `Relaxed`. They bound how much goes on, and guard no other memory: each is raised before it is
// compared, so that two who come at once cannot both have the last place.

impl Requests {
    /// At most `in_flight_max` at once, half of them long, on this machine's cores.
    pub fn new(in_flight_max: usize, counts: Arc<ShedCounts>) -> Arc<Requests> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Arc::new(Requests {
            in_flight_max,
            cores,
            held: AtomicUsize::new(0),
            bulk: AtomicUsize::new(0),
            backlog: AtomicU64::new(0),
            working: AtomicUsize::new(0),
            cores_free: Semaphore::new(cores),
            largest: Arc::new(Semaphore::new(1)),
            unheard: AtomicUsize::new(0),
            all_ended: Notify::new(),
            counts,
        })
    }

    /// Whether a request may be worked on while `in_flight`, itself counted, are.
    #[inline]
    pub fn has_room(&self, in_flight: usize) -> bool {
        let in_flight = in_flight + self.unheard.load(Ordering::Relaxed);
        in_flight.saturating_sub(self.held.load(Ordering::Relaxed)) <= self.in_flight_max
    }

    /// A request was turned away because there is no room.
    pub fn turn_away(&self) -> Shed {
        self.counts.count(Shed::InFlight)
    }

    /// A mint that waits until its ids are due, until the guard is dropped.
    pub fn hold(self: &Arc<Self>) -> HeldMint {
        self.held.fetch_add(1, Ordering::Relaxed);
        HeldMint(Arc::clone(self))
    }

    /// Admits long work that will take about so long on one core.
    ///
    /// # Errors
    /// [`Shed::Bulk`]: there is more of it than this node can do soon, or half of all requests are long already.
    pub fn enter_bulk(self: &Arc<Self>, estimate: Duration) -> Result<BulkPass, Shed> {
        let nanos = nanos_of(estimate);
        let pass = BulkPass {
            work: Some(Work::begin(self, nanos)),
            nanos,
            requests: Arc::clone(self),
        };
        let bulk = self.bulk.fetch_add(1, Ordering::Relaxed) + 1;
        let others_working = self.working.load(Ordering::Relaxed) - 1;
        let others_backlog = self.backlog.load(Ordering::Relaxed).saturating_sub(nanos);
        let is_soon = others_working < BULK_PER_CORE * self.cores
            || Duration::from_nanos(others_backlog)
                < BACKLOG_MAX * u32::try_from(self.cores).unwrap_or(1);
        if bulk <= self.in_flight_max.div_ceil(2) && is_soon {
            return Ok(pass);
        }
        drop(pass);
        Err(self.counts.count(Shed::Bulk))
    }

    /// Goes on with work whose input has come: with the pass it was admitted by, or, where nobody knew before how much it
    /// would be, admitted only now. `None` if it is short.
    ///
    /// # Errors
    /// As [`Requests::enter_bulk`].
    pub fn go_on(
        self: &Arc<Self>,
        pass: Option<BulkPass>,
        estimate: Duration,
    ) -> Result<Option<BulkPass>, Shed> {
        match pass {
            None if estimate <= SHORT_MAX => Ok(None),
            None => self.enter_bulk(estimate).map(Some),
            Some(mut pass) => {
                pass.nanos = nanos_of(estimate);
                pass.resume();
                Ok(Some(pass))
            }
        }
    }

    /// The turn of one of the largest requests, which is worked on alone among its kind until this is dropped.
    pub async fn turn_of_largest(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.largest)
            .acquire_owned()
            .await
            .expect("nobody closes it")
    }

    /// Does a part of long work on a thread where nobody waits for it, when a core is free for that.
    pub async fn work_aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let _core = self.cores_free.acquire().await.expect("nobody closes it");
        tokio::task::spawn_blocking(work)
            .await
            .expect("it does not panic, and nobody aborts it")
    }

    /// Goes on with work whose caller has gone.
    pub fn work_unheard(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        // Without a runtime the process ends, and so does the work.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        self.unheard.fetch_add(1, Ordering::Relaxed);
        let unheard = Unheard(Arc::clone(self));
        runtime.spawn(async move {
            work.await;
            drop(unheard);
        });
    }

    /// Waits until there is no work whose caller has gone, for so long at most; how many there are then.
    pub async fn wait_for_unheard(&self, wait_max: Duration) -> usize {
        let all_end = async {
            // Asked before the look, so that no end falls in between.
            let mut ended = self.all_ended.notified();
            while self.unheard.load(Ordering::Relaxed) > 0 {
                ended.await;
                ended = self.all_ended.notified();
            }
        };
        // Whether all have ended or not, the number says.
        let _ = tokio::time::timeout(wait_max, all_end).await;
        self.unheard.load(Ordering::Relaxed)
    }
}

/// Work whose caller has gone, until dropped.
struct Unheard(Arc<Requests>);

impl Drop for Unheard {
    fn drop(&mut self) {
        if self.0.unheard.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.all_ended.notify_waiters();
        }
    }
}

/// No estimate is so long that a thousand of them overflow.
fn nanos_of(estimate: Duration) -> u64 {
    u64::try_from(estimate.as_nanos())
        .unwrap_or(u64::MAX)
        .min(u64::MAX / 1_000_000)
}

/// A mint that is held.
#[derive(Debug)]
pub struct HeldMint(Arc<Requests>);

impl Drop for HeldMint {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A long request, in flight until dropped.
#[derive(Debug)]
pub struct BulkPass {
    work: Option<Work>,
    /// How long the work takes, by the last estimate.
    nanos: u64,
    requests: Arc<Requests>,
}

impl BulkPass {
    /// Until it is resumed it depends on its caller how long that takes, and others need not wait for it.
    pub fn pause(&mut self) {
        self.work = None;
    }

    /// Goes on with work that was admitted, now that it can.
    pub fn resume(&mut self) {
        self.work = Some(Work::begin(&self.requests, self.nanos));
    }

    /// Where to work, if there is more long work than cores: then it must not be done on threads that serve others.
    pub fn aside(&self) -> Option<&Arc<Requests>> {
        (self.requests.bulk.load(Ordering::Relaxed) > self.requests.cores).then_some(&self.requests)
    }
}

impl Drop for BulkPass {
    fn drop(&mut self) {
        self.requests.bulk.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Long work that is not done.
#[derive(Debug)]
struct Work {
    nanos: u64,
    requests: Arc<Requests>,
}

impl Work {
    fn begin(requests: &Arc<Requests>, nanos: u64) -> Work {
        requests.backlog.fetch_add(nanos, Ordering::Relaxed);
        requests.working.fetch_add(1, Ordering::Relaxed);
        Work {
            nanos,
            requests: Arc::clone(requests),
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.requests
            .backlog
            .fetch_sub(self.nanos, Ordering::Relaxed);
        self.requests.working.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(in_flight_max: usize) -> (Arc<Requests>, Arc<ShedCounts>) {
        let counts = Arc::new(ShedCounts::default());
        (Requests::new(in_flight_max, Arc::clone(&counts)), counts)
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
        requests.work_unheard(async { ended.await.expect("it ends") });
        assert!(requests.has_room(1) && !requests.has_room(2));
        assert_eq!(requests.wait_for_unheard(Duration::ZERO).await, 1);
        end.send(()).expect("it is waited for");
        assert_eq!(requests.wait_for_unheard(Duration::from_secs(60)).await, 0);
        assert!(requests.has_room(2));
    }

    #[test]
    fn long_requests_are_at_most_half_of_all() {
        let (requests, counts) = requests(5);
        let passes: Vec<_> = (0..3)
            .map(|_| requests.enter_bulk(Duration::ZERO))
            .collect();
        assert!(passes.iter().all(Result::is_ok));
        assert_eq!(requests.enter_bulk(Duration::ZERO).err(), Some(Shed::Bulk));
        drop(passes);
        assert!(requests.enter_bulk(Duration::ZERO).is_ok());
        assert_eq!(counts.of(Shed::Bulk), 1);
    }

    #[test]
    fn work_is_judged_by_what_it_takes_and_short_work_needs_no_leave() {
        let (requests, counts) = requests(100_000);
        let few = BULK_PER_CORE * requests.cores;
        let long: Vec<_> = (0..few)
            .map(|_| requests.go_on(None, Duration::from_secs(1)))
            .collect();
        assert!(long.iter().all(|pass| matches!(pass, Ok(Some(_)))));
        assert!(matches!(requests.go_on(None, SHORT_MAX), Ok(None)));
        assert_eq!(
            requests
                .go_on(None, SHORT_MAX + Duration::from_nanos(1))
                .err(),
            Some(Shed::Bulk)
        );
        assert_eq!(counts.of(Shed::Bulk), 1);
    }

    #[test]
    fn an_idle_node_takes_on_anything_and_a_busy_one_what_it_can_do_soon() {
        let (requests, _) = requests(100_000);
        let few = BULK_PER_CORE * requests.cores;
        let mut long: Vec<_> = (0..few)
            .map(|_| requests.enter_bulk(Duration::from_secs(1)))
            .collect();
        assert!(long.iter().all(Result::is_ok));
        assert_eq!(
            requests.enter_bulk(Duration::from_nanos(1)).err(),
            Some(Shed::Bulk)
        );
        long.iter_mut().flatten().for_each(BulkPass::pause);
        // Short ones are many until they are long together.
        let short: Vec<_> = (0..10_000)
            .map_while(|_| requests.enter_bulk(Duration::from_micros(100)).ok())
            .collect();
        let soon = (BACKLOG_MAX.as_micros() / 100) as usize * requests.cores;
        assert_eq!(short.len(), soon.max(few));
        drop((long, short));
        assert_eq!(requests.backlog.load(Ordering::Relaxed), 0);
    }
}
