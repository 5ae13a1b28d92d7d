//! The writer thread that raises the horizon, the time up to which ids may be minted. The thread
//! raises the horizon before the reserved time runs out, so that callers seldom wait for the disk.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

use tokio::sync::watch;
use tracing::error;

use crate::failure::WithCauses;
use crate::reserver::{Reserver, ReserverCounts, Waiting};
use crate::start::Store;
use idmint_core::minting::Session;
use idmint_core::time::{Clock, UnixNanos};

/// A handle to the writer thread of one minting session. The thread raises the horizon when callers
/// request it. Dropping the handle ends the thread, and blocks until the thread has closed the
/// store.
#[derive(Debug)]
pub struct HorizonWriterHandle {
    wanted: Arc<Wanted>,
    state: watch::Receiver<WriterState>,
    counts: Arc<ExtensionCounts>,
    thread: Option<JoinHandle<()>>,
}

/// The progress of the thread that raises the horizon, the time up to which ids may be minted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriterState {
    /// The horizon at this instant is durable.
    Durable(UnixNanos),
    /// The disk failed during a write. The thread does not try again, because a retry could report
    /// success although no data was written.
    Failed,
}

/// The numbers of successful and failed attempts to raise the horizon.
#[derive(Debug, Default)]
struct ExtensionCounts {
    extended: AtomicU64,
    failed: AtomicU64,
}

/// The pending request to the writer thread to extend the horizon, the time up to which ids may be
/// minted. Requests of several callers are merged into one.
#[derive(Debug, Default)]
struct Wanted {
    next: Mutex<Option<Extension>>,
    asked: Condvar,
}

/// A requested extension of the horizon that has not begun yet.
#[derive(Debug, Clone, Copy)]
enum Extension {
    /// Extend the horizon at least to this instant. The start of 1970 means that any extension
    /// suffices.
    To(UnixNanos),
    Stop,
}

impl HorizonWriterHandle {
    /// Starts the writer thread for a minting session. The session's first horizon must already be
    /// durable in `store`.
    pub fn start(session: Arc<Session>, clock: Arc<Clock>, store: Store) -> HorizonWriterHandle {
        let wanted = Arc::new(Wanted::default());
        let counts = Arc::new(ExtensionCounts::default());
        let (report, state) = watch::channel(WriterState::Durable(session.horizon()));
        let worker = Worker {
            session,
            clock,
            store,
            wanted: Arc::clone(&wanted),
            counts: Arc::clone(&counts),
            report,
        };
        let thread = thread::Builder::new()
            .name("horizon".to_owned())
            .spawn(move || worker.run())
            .expect("a program that just started can start a thread");
        HorizonWriterHandle {
            wanted,
            state,
            counts,
            thread: Some(thread),
        }
    }

    /// Waits until the writer thread has failed to write to the disk. As long as the disk works,
    /// this method does not return.
    pub async fn failed(&self) {
        let mut state = self.state.clone();
        if state
            .wait_for(|state| *state == WriterState::Failed)
            .await
            .is_err()
        {
            std::future::pending().await
        }
    }
}

impl Reserver for HorizonWriterHandle {
    fn refill(&self) {
        self.wanted.ask(UnixNanos::default());
    }

    /// Dropping the returned future only ends the caller's wait. The thread still raises the
    /// horizon.
    fn raise_to(&self, needed: UnixNanos) -> Waiting<'_, bool> {
        self.wanted.ask(needed);
        let mut state = self.state.clone();
        Box::pin(async move {
            let reached = |state: &WriterState| match state {
                WriterState::Durable(horizon) => *horizon >= needed,
                WriterState::Failed => true,
            };
            let state = state.wait_for(reached).await;
            state.is_ok_and(|state| *state != WriterState::Failed)
        })
    }

    /// Does nothing, because the slot of this node is configured and no other node can use it.
    fn release(&self) -> Waiting<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn leased_slot(&self) -> Option<u32> {
        None
    }

    fn counts(&self) -> ReserverCounts {
        ReserverCounts {
            extended: self.counts.extended.load(Ordering::Relaxed),
            failed: self.counts.failed.load(Ordering::Relaxed),
            ..ReserverCounts::default()
        }
    }
}

impl Drop for HorizonWriterHandle {
    fn drop(&mut self) {
        *self
            .wanted
            .next
            .lock()
            .expect("no holder of this lock panics") = Some(Extension::Stop);
        self.wanted.asked.notify_one();
        // After the join, the store is closed and its lock is released. A panic of the thread is
        // ignored here, because it was already reported.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Wanted {
    fn ask(&self, needed: UnixNanos) {
        let mut next = self.next.lock().expect("no holder of this lock panics");
        *next = match *next {
            Some(Extension::Stop) => Some(Extension::Stop),
            Some(Extension::To(other)) => Some(Extension::To(other.max(needed))),
            None => Some(Extension::To(needed)),
        };
        drop(next);
        self.asked.notify_one();
    }

    fn wait(&self) -> Extension {
        let next = self.next.lock().expect("no holder of this lock panics");
        let mut next = self
            .asked
            .wait_while(next, |next| next.is_none())
            .expect("no holder of this lock panics");
        next.take().expect("waited for")
    }
}

struct Worker {
    session: Arc<Session>,
    clock: Arc<Clock>,
    store: Store,
    wanted: Arc<Wanted>,
    counts: Arc<ExtensionCounts>,
    report: watch::Sender<WriterState>,
}

impl Worker {
    fn run(mut self) {
        while let Extension::To(needed) = self.wanted.wait() {
            if needed <= self.session.horizon() && !self.session.is_running_low() {
                // An earlier extension has already fulfilled this request. This is common, because
                // every mint makes a request once less than half of the reserved time is left.
                continue;
            }
            let plan = self.session.plan_extension(self.clock.now(), needed);
            match self.store.raise_horizon(plan) {
                Ok(durable) => {
                    self.session.raise(&durable, self.clock.now());
                    self.counts.extended.fetch_add(1, Ordering::Relaxed);
                    self.report
                        .send_replace(WriterState::Durable(plan.horizon()));
                }
                Err(problem) => {
                    error!(
                        "the horizon can no longer be raised, so this process ends: {}",
                        WithCauses(&problem)
                    );
                    self.counts.failed.fetch_add(1, Ordering::Relaxed);
                    self.report.send_replace(WriterState::Failed);
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::engine::OwnEngine;
    use crate::samples::ready;
    use idmint_core::id::preset;
    use idmint_core::minting::{LaneCount, LaneRule, Lanes, Mint, MintSettings, SessionStart};
    use idmint_core::time::ManualClock;

    const NOON: UnixNanos = UnixNanos::from_seconds(1_900_000_000);

    fn store() -> Store {
        ready(
            OwnEngine::Memory.open(0, None).expect("memory suffices"),
            NOON,
            &[],
        )
    }

    fn session(clock: &Arc<Clock>) -> Arc<Session> {
        let format = Arc::new(preset("snowflake"));
        let rule = LaneRule {
            slot: 0,
            slots: 1,
            lanes: LaneCount::UpTo(8),
            shard: 0,
        };
        let lanes = Lanes::of(&format, &rule).expect("fits");
        let window = Duration::from_secs(3);
        let settings = MintSettings {
            wait_max: window,
            lead_max: Duration::ZERO,
            window,
            shard: 0,
        };
        let mut mint = Mint::new(Arc::clone(clock), settings);
        mint.add_sequenced(format, lanes);
        mint.prepare(SessionStart::at(NOON))
    }

    #[tokio::test]
    async fn what_is_asked_for_is_durable_when_the_wait_ends() {
        let clock = Arc::new(ManualClock::at(NOON).clock());
        let session = session(&clock);
        let store = store();
        let writer = HorizonWriterHandle::start(Arc::clone(&session), clock, store);
        let needed = NOON.after(Duration::from_secs(60));
        assert!(writer.raise_to(needed).await);
        assert!(session.horizon() >= needed);
        assert_eq!((writer.counts().extended, writer.counts().failed), (1, 0));
    }

    #[tokio::test]
    async fn idle_the_horizon_stays_where_it_is() {
        let hand = ManualClock::at(NOON);
        let clock = Arc::new(hand.clock());
        let session = session(&clock);
        let store = store();
        let writer = HorizonWriterHandle::start(Arc::clone(&session), clock, store);
        hand.advance(Duration::from_secs(3600));
        writer.refill();
        drop(writer);
        assert_eq!(
            session.horizon(),
            NOON,
            "nobody has minted, so nothing is low"
        );
    }

    #[tokio::test]
    async fn a_disk_that_refuses_is_told_and_the_folder_is_free_once_the_writer_is_gone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let engine = OwnEngine::Embedded {
            data_dir: folder.path().to_owned(),
        };
        let clock = Arc::new(ManualClock::at(NOON).clock());
        let store = ready(engine.open(0, None).expect("the folder is free"), NOON, &[]);
        let writer = HorizonWriterHandle::start(session(&clock), clock, store);
        tokio::select! {
            biased;
            () = writer.failed() => panic!("nothing has failed"),
            () = std::future::ready(()) => {}
        }
        let (horizon, aside) = (folder.path().join("horizon"), folder.path().join("aside"));
        std::fs::rename(&horizon, &aside).expect("the folder is writable");
        assert!(!writer.raise_to(NOON.after(Duration::from_secs(60))).await);
        writer.failed().await;
        assert_eq!((writer.counts().extended, writer.counts().failed), (0, 1));

        std::fs::rename(&aside, &horizon).expect("the folder is writable");
        drop(writer);
        engine.open(0, None).expect("the folder is free again");
    }

    #[tokio::test]
    async fn an_idle_writer_gives_the_folder_back() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let engine = OwnEngine::Embedded {
            data_dir: folder.path().to_owned(),
        };
        let clock = Arc::new(ManualClock::at(NOON).clock());
        let store = ready(engine.open(0, None).expect("the folder is free"), NOON, &[]);
        drop(HorizonWriterHandle::start(session(&clock), clock, store));
        engine.open(0, None).expect("the folder is free again");
    }
}
