//! Threads for long work, with a lower priority than the threads that serve requests.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// The niceness of the threads for long work. If all cores are busy, such a thread gets about a
/// third of the CPU time of a thread that serves requests. Long work therefore continues, but does
/// not delay short requests.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;

/// The time after which an idle thread ends: 100 years. No process runs for this long, so threads
/// never end because they are idle.
const KEEP_ALIVE: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Returns the CPU time that the current thread has used. The difference of two results measures
/// the work in between. Unlike a clock, CPU time does not advance while other threads use the core.
pub fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Threads that do long work while other threads serve requests.
///
/// When a request arrives, the kernel interrupts long work to run the thread that serves the
/// request, even if long work keeps every core busy. With equal priorities, the request could have
/// to wait until the time slice of the long work ends.
#[derive(Debug)]
pub struct LongWorkThreads(Option<Runtime>);

impl LongWorkThreads {
    /// Creates a pool of at most `threads` threads, and starts the first one. Other threads are
    /// started when they are first needed. No thread ends before the pool is dropped. This is
    /// acceptable because `threads` is the number of cores, and an idle thread only takes memory
    /// for its stack.
    ///
    /// # Panics
    /// Panics if no thread can be started.
    pub fn new(threads: usize) -> LongWorkThreads {
        Self::start(threads, || ())
    }

    /// Creates a pool, as [`new`](Self::new) does, whose first thread runs `first`.
    fn start(threads: usize, first: impl FnOnce() + Send + 'static) -> LongWorkThreads {
        let mut runtime = Builder::new_current_thread();
        runtime
            .thread_name("long-work")
            .max_blocking_threads(threads)
            .thread_keep_alive(KEEP_ALIVE);
        #[cfg(target_os = "linux")]
        runtime.on_thread_start(|| {
            // On Linux, niceness is a property of each thread, and any process may raise the
            // niceness of its threads. If the kernel refuses, the work runs with the usual
            // priority.
            let _ = rustix::process::nice(NICENESS);
        });
        let runtime = runtime
            .build()
            .expect("a runtime without drivers needs no resources");
        // Start one thread now. If the system can start no further thread, tokio leaves new work in
        // the queue for this thread. Without any thread, tokio would panic, and the work would stay
        // in the queue together with its place for a core.
        drop(runtime.spawn_blocking(first));
        LongWorkThreads(Some(runtime))
    }

    /// Runs `work` on a thread of this pool. If all threads are busy, `work` waits for one of them.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let runtime = self.0.as_ref().expect("only dropping takes the runtime");
        runtime.spawn_blocking(work)
    }
}

impl Drop for LongWorkThreads {
    fn drop(&mut self) {
        // Shut down in the background. Dropping a runtime would wait for its threads to end, and
        // async code must not block.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_thread_starts_before_any_work() {
        let (begun, has_begun) = std::sync::mpsc::channel();
        let first = move || begun.send(std::thread::current().id()).expect("it waits");
        let threads = LongWorkThreads::start(1, first);
        let first = has_begun.recv().expect("the thread has started");
        for _ in 0..3 {
            let of_work = threads.spawn(|| std::thread::current().id()).await;
            assert_eq!(of_work.expect("it does not panic"), first);
        }
    }

    #[tokio::test]
    async fn long_work_has_a_lower_priority_than_the_thread_that_waits_for_it() {
        let niceness = || rustix::process::getpriority_process(Some(rustix::thread::gettid()));
        let own = niceness().expect("every thread has one");
        let threads = LongWorkThreads::new(1);
        let of_work = threads.spawn(niceness).await.expect("it does not panic");
        assert_eq!(
            of_work.expect("every thread has one"),
            (own + NICENESS).min(19)
        );
        assert_eq!(niceness().expect("every thread has one"), own);
    }
}
