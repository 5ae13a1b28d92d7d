//! The thread that makes horizons durable, so that no caller waits for the disk while there is reservation left.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

use tokio::sync::watch;
use tracing::error;

use crate::minting::Session;
use crate::storage::failure::WithCauses;
use crate::storage::start::Store;
use crate::time::{Clock, UnixNanos};

/// Extends the horizon of one session when asked, on a thread of its own.
#[derive(Debug)]
pub struct HorizonKeeper {
    wanted: Arc<Wanted>,
    state: watch::Receiver<KeeperState>,
    counts: Arc<ExtensionCounts>,
    thread: Option<JoinHandle<()>>,
}

/// What the keeper has achieved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeeperState {
    /// This horizon is durable.
    Durable(UnixNanos),
    /// The disk failed. Nothing more will be made durable: a second try may lie.
    Failed,
}

/// How many extensions there were.
#[derive(Debug, Default)]
pub struct ExtensionCounts {
    extended: AtomicU64,
    failed: AtomicU64,
}

impl ExtensionCounts {
    /// Extensions that became durable.
    pub fn extended(&self) -> u64 {
        self.extended.load(Ordering::Relaxed)
    }

    /// Extensions that the disk refused; the process ends after one.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}

/// What callers ask the thread for.
#[derive(Debug, Default)]
struct Wanted {
    next: Mutex<Option<Extension>>,
    asked: Condvar,
}

/// An extension that was asked for and not begun.
#[derive(Debug, Clone, Copy)]
enum Extension {
    /// At least to this instant; 1970 if any will do.
    To(UnixNanos),
    Stop,
}

impl HorizonKeeper {
    /// Begins to serve a session whose first horizon is durable in `store`.
    pub fn start(session: Arc<Session>, clock: Arc<Clock>, store: Store) -> HorizonKeeper {
        let wanted = Arc::new(Wanted::default());
        let counts = Arc::new(ExtensionCounts::default());
        let (report, state) = watch::channel(KeeperState::Durable(session.horizon()));
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
        HorizonKeeper {
            wanted,
            state,
            counts,
            thread: Some(thread),
        }
    }

    /// Asks for an extension soon; waits for nothing.
    pub fn refill(&self) {
        self.wanted.ask(UnixNanos::default());
    }

    /// Asks for a horizon of at least `needed`, and waits until it is durable.
    ///
    /// Returns whether it is; if not, the disk failed. Dropping the future gives up the wait, not the extension.
    pub async fn raise_to(&self, needed: UnixNanos) -> bool {
        self.wanted.ask(needed);
        let mut state = self.state.clone();
        let reached = |state: &KeeperState| match state {
            KeeperState::Durable(horizon) => *horizon >= needed,
            KeeperState::Failed => true,
        };
        let state = state.wait_for(reached).await;
        state.is_ok_and(|state| *state != KeeperState::Failed)
    }

    /// Returns when the disk has failed, and never otherwise.
    pub async fn failed(&self) {
        let mut state = self.state.clone();
        if state
            .wait_for(|state| *state == KeeperState::Failed)
            .await
            .is_err()
        {
            std::future::pending().await
        }
    }

    /// How many extensions there were.
    pub fn counts(&self) -> &ExtensionCounts {
        &self.counts
    }
}

impl Drop for HorizonKeeper {
    fn drop(&mut self) {
        *self
            .wanted
            .next
            .lock()
            .expect("no holder of this lock panics") = Some(Extension::Stop);
        self.wanted.asked.notify_one();
        // The store is closed, and its lock given back, when this returns. A thread that panicked has said so.
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
    report: watch::Sender<KeeperState>,
}

impl Worker {
    fn run(mut self) {
        while let Extension::To(needed) = self.wanted.wait() {
            if needed <= self.session.horizon() && !self.session.is_running_low() {
                continue;
            }
            let plan = self.session.plan_extension(self.clock.now(), needed);
            match self.store.raise_horizon(plan) {
                Ok(durable) => {
                    self.session.raise(&durable, self.clock.now());
                    self.counts.extended.fetch_add(1, Ordering::Relaxed);
                    self.report
                        .send_replace(KeeperState::Durable(plan.horizon()));
                }
                Err(problem) => {
                    error!(
                        "the horizon cannot be raised any more, this process ends: {}",
                        WithCauses(&problem)
                    );
                    self.counts.failed.fetch_add(1, Ordering::Relaxed);
                    self.report.send_replace(KeeperState::Failed);
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
    use crate::id::preset;
    use crate::minting::{LaneCount, LaneRule, Lanes, Mint, MintSettings, SessionStart};
    use crate::storage::engine::OwnEngine;
    use crate::storage::samples::ready;
    use crate::time::ManualClock;

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
        let keeper = HorizonKeeper::start(Arc::clone(&session), clock, store);
        let needed = NOON.after(Duration::from_secs(60));
        assert!(keeper.raise_to(needed).await);
        assert!(session.horizon() >= needed);
        assert_eq!(
            (keeper.counts().extended(), keeper.counts().failed()),
            (1, 0)
        );
    }

    #[tokio::test]
    async fn idle_the_horizon_stays_where_it_is() {
        let hand = ManualClock::at(NOON);
        let clock = Arc::new(hand.clock());
        let session = session(&clock);
        let store = store();
        let keeper = HorizonKeeper::start(Arc::clone(&session), clock, store);
        hand.advance(Duration::from_secs(3600));
        keeper.refill();
        drop(keeper);
        assert_eq!(
            session.horizon(),
            NOON,
            "nobody has minted, so nothing is low"
        );
    }

    #[tokio::test]
    async fn a_disk_that_refuses_is_told_and_the_folder_is_free_once_the_keeper_is_gone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let engine = OwnEngine::Embedded {
            data_dir: folder.path().to_owned(),
        };
        let clock = Arc::new(ManualClock::at(NOON).clock());
        let store = ready(engine.open(0, None).expect("the folder is free"), NOON, &[]);
        let keeper = HorizonKeeper::start(session(&clock), clock, store);
        tokio::select! {
            biased;
            () = keeper.failed() => panic!("nothing has failed"),
            () = std::future::ready(()) => {}
        }
        let (horizon, aside) = (folder.path().join("horizon"), folder.path().join("aside"));
        std::fs::rename(&horizon, &aside).expect("the folder is writable");
        assert!(!keeper.raise_to(NOON.after(Duration::from_secs(60))).await);
        keeper.failed().await;
        assert_eq!(
            (keeper.counts().extended(), keeper.counts().failed()),
            (0, 1)
        );

        std::fs::rename(&aside, &horizon).expect("the folder is writable");
        drop(keeper);
        engine.open(0, None).expect("the folder is free again");
    }

    #[tokio::test]
    async fn an_idle_keeper_gives_the_folder_back() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let engine = OwnEngine::Embedded {
            data_dir: folder.path().to_owned(),
        };
        let clock = Arc::new(ManualClock::at(NOON).clock());
        let store = ready(engine.open(0, None).expect("the folder is free"), NOON, &[]);
        drop(HorizonKeeper::start(session(&clock), clock, store));
        engine.open(0, None).expect("the folder is free again");
    }
}
