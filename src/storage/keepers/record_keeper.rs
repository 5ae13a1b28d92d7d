//! The thread that makes records durable: it decides on what has been asked for meanwhile, writes all of it in one
//! transaction, and answers only then.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tracing::{error, info, warn};

use super::anchor_sweep::Sweep;
use super::key_index::KeyIndex;
use super::round;
use super::round::Decided;
use crate::conjunction::{Anchor, GroupRefusal, GroupRequest, Grouped};
use crate::ledger::{AppendRefusal, EventTime, LedgerRequest, Link};
use crate::minting::Durable;
use crate::storage::causes::WithCauses;
use crate::storage::embedded::{DatabaseError, DoneRequest, Records, WriteError};
use crate::storage::record_plan::RecordPlan;
use crate::storage::trouble::Trouble;
use crate::time::{Clock, UnixNanos};

/// Orders that may wait for the thread; a further one is refused.
const WAITING_MAX: usize = 1_024;

/// Events and reports that are decided on in one transaction, unless a single order has more.
const ROUND_LEN_MAX: usize = 50_000;

/// Reports that are looked up in the store at once, which takes about a millisecond.
const LOOKED_UP_AT_ONCE_MAX: usize = 1_000;

/// How long nobody asks for anything before the time is used otherwise.
const IDLE_MIN: Duration = Duration::from_millis(100);

/// How often a database that could not be written is tried again.
const REOPEN_EVERY: Duration = Duration::from_secs(1);

/// How long a caller waits for its answer before the outcome is called unknown.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// What became of an order of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// Whether the same request was done before, so nothing was appended now.
    pub is_replayed: bool,
    /// The events in their chain.
    pub links: Vec<Link>,
}

/// An order that was not done, as far as is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The events cannot be appended.
    #[error("the events cannot be appended")]
    Append(AppendRefusal),
    /// The key came with another request.
    #[error("the idempotency key was used for other events within the last 24 hours")]
    KeyConflict,
    /// A report cannot be grouped.
    #[error("a report cannot be grouped")]
    Group(GroupRefusal),
    /// Too many orders wait.
    #[error("{WAITING_MAX} orders wait to be written already")]
    Busy,
    /// The store cannot be read or written. Nothing was written.
    #[error("the store cannot be read or written; the log says how")]
    Unavailable,
    /// Whether it was written is not known.
    #[error("it is not known whether this was written: ask again with the same key")]
    Unknown,
}

/// Makes records durable, on a thread of its own.
#[derive(Debug)]
pub struct RecordKeeper {
    records: Records,
    /// `None` once it is being dropped.
    orders: Option<SyncSender<Job>>,
    /// Why nothing can be written any more.
    failed: watch::Receiver<Option<Trouble>>,
    thread: Option<JoinHandle<()>>,
}

/// What is to be done, and where to say what became of it.
#[derive(Debug)]
pub(in crate::storage) enum Job {
    Ledger(LedgerRequest, oneshot::Sender<Result<Appended, RecordError>>),
    Group(GroupRequest, oneshot::Sender<Result<Vec<Grouped>, RecordError>>),
}

impl Job {
    fn len(&self) -> usize {
        match self {
            Job::Ledger(order, _) => order.event_count(),
            Job::Group(order, _) => order.len(),
        }
    }
}

impl RecordKeeper {
    /// Begins to serve `records`.
    ///
    /// `retention`: how long after its time an anchor is kept; for ever if that is not said.
    pub fn start(records: Records, clock: Arc<Clock>, retention: Option<Duration>) -> RecordKeeper {
        let (orders, waiting) = mpsc::sync_channel(WAITING_MAX);
        let (report, failed) = watch::channel(None);
        let worker = Worker {
            records: records.clone(),
            clock,
            waiting,
            keys: KeyIndex::default(),
            knows_keys: false,
            reopen_at: UnixNanos::default(),
            sweep: retention.map(Sweep::new),
        };
        let run = move || {
            if let Err(error) = worker.run() {
                error!("records cannot be written any more, this process ends: {}", WithCauses(&error));
                report.send_replace(Some(error.trouble()));
            }
        };
        let thread = thread::Builder::new().name("records".to_owned()).spawn(run);
        let thread = Some(thread.expect("a program that just started can start a thread"));
        RecordKeeper { records, orders: Some(orders), failed, thread }
    }

    /// What is stored, to be read.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// Creates a ledger or appends to one, and returns when that is durable.
    ///
    /// Dropping the future gives up the wait, not the append.
    ///
    /// # Errors
    /// [`RecordError`].
    pub async fn append(&self, order: LedgerRequest) -> Result<Appended, RecordError> {
        self.order(|answer| Job::Ledger(order, answer)).await
    }

    /// Groups reports, and returns when the anchors of new conjunctions are durable.
    ///
    /// # Errors
    /// [`RecordError`].
    pub async fn group(&self, order: GroupRequest) -> Result<Vec<Grouped>, RecordError> {
        let (order, stored) = self.with_neighbours(order).await?;
        if let Some(known) = order.join_stored(&stored).map_err(RecordError::Group)? {
            return Ok(known);
        }
        self.order(|answer| Job::Group(order, answer)).await
    }

    /// What is stored around the reports. Many of them are looked up on a thread where nobody waits for it.
    async fn with_neighbours(&self, order: GroupRequest) -> Result<(GroupRequest, Vec<Vec<Anchor>>), RecordError> {
        let records = self.records.clone();
        let is_long = order.len() > LOOKED_UP_AT_ONCE_MAX;
        let look_up = move || {
            let stored = records.neighbours(order.format(), order.keys()).map_err(|error| unreadable(&error))?;
            Ok((order, stored))
        };
        if !is_long {
            return look_up();
        }
        tokio::task::spawn_blocking(look_up).await.expect("it does not panic, and nobody aborts it")
    }

    async fn order<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, RecordError>>) -> Job,
    ) -> Result<T, RecordError> {
        let (answer, answered) = oneshot::channel();
        let orders = self.orders.as_ref().expect("taken only by drop");
        orders.try_send(job(answer)).map_err(|error| match error {
            TrySendError::Full(_) => RecordError::Busy,
            TrySendError::Disconnected(_) => RecordError::Unavailable,
        })?;
        match tokio::time::timeout(ANSWER_MAX, answered).await {
            Ok(Ok(outcome)) => outcome,
            // The thread ended, or takes too long, after it may have begun to write.
            Ok(Err(_)) | Err(_) => Err(RecordError::Unknown),
        }
    }

    /// Returns what kind of trouble it is when nothing can be written any more, and never otherwise.
    pub async fn failed(&self) -> Trouble {
        let mut failed = self.failed.clone();
        let trouble = failed.wait_for(Option::is_some).await.ok().and_then(|trouble| *trouble);
        // Without one the thread has panicked, and said so.
        trouble.unwrap_or(Trouble::NotUsable)
    }
}

impl Drop for RecordKeeper {
    fn drop(&mut self) {
        // What waits is still done: the thread ends when there is nothing left and nobody can ask.
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Says in the log why the store cannot be read, and to the caller that it cannot.
pub fn unreadable(error: &DatabaseError) -> RecordError {
    error!("the records cannot be read: {}", WithCauses(error));
    RecordError::Unavailable
}

struct Worker {
    records: Records,
    clock: Arc<Clock>,
    waiting: Receiver<Job>,
    keys: KeyIndex,
    /// Whether `keys` holds what the database says.
    knows_keys: bool,
    /// When to try to open it again.
    reopen_at: UnixNanos,
    /// Forgets old anchors, where that is configured.
    sweep: Option<Sweep>,
}

impl Worker {
    /// Works until nobody can ask any more.
    ///
    /// # Errors
    /// Why the process should end.
    fn run(mut self) -> Result<(), DatabaseError> {
        self.open()?;
        while let Some(first) = self.next_job()? {
            self.serve(first)?;
        }
        Ok(())
    }

    /// Waits for a job, and uses the time for what nobody waits for; `None` when nobody can ask any more.
    fn next_job(&mut self) -> Result<Option<Job>, DatabaseError> {
        loop {
            match self.waiting.recv_timeout(IDLE_MIN) {
                Ok(job) => return Ok(Some(job)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                // A closed database answers no reader either, so it is not left until somebody appends.
                Err(RecvTimeoutError::Timeout) if !self.is_open() => {
                    self.can_reopen();
                }
                Err(RecvTimeoutError::Timeout) => self.sweep()?,
            }
        }
    }

    fn sweep(&mut self) -> Result<(), DatabaseError> {
        let Some(sweep) = &mut self.sweep else { return Ok(()) };
        let swept = sweep.step(&self.records, self.clock.now());
        swept.or_else(|error| self.could_not_write(error))
    }

    /// Does an order, and what waits behind it, in one transaction.
    fn serve(&mut self, first: Job) -> Result<(), DatabaseError> {
        let mut len = first.len();
        let mut jobs = vec![first];
        while let Some(job) = (len < ROUND_LEN_MAX).then(|| self.waiting.try_recv().ok()).flatten() {
            len += job.len();
            jobs.push(job);
        }
        if !self.is_open() && !self.can_reopen() {
            jobs.into_iter().for_each(|job| job.refuse(RecordError::Unavailable));
            return Ok(());
        }
        self.work(jobs)
    }

    /// Decides on the jobs, writes what they need, and answers.
    fn work(&mut self, jobs: Vec<Job>) -> Result<(), DatabaseError> {
        let now = self.now();
        self.keys.forget_old(now);
        let Decided { plans, answers } = round::decide(&self.records, &self.keys, now, jobs);
        match Durable::write(plans, |plans| self.write(plans)) {
            Ok(durable) => {
                durable.plan().iter().filter_map(DoneRequest::of).for_each(|done| self.keys.add(done));
                answers.into_iter().for_each(|answer| answer.say(&durable));
                Ok(())
            }
            Err(WriteError::Stale) => unreachable!("nobody but this thread writes records"),
            Err(WriteError::Database(error)) => {
                answers.into_iter().for_each(|answer| answer.say_unknown());
                self.could_not_write(error)
            }
        }
    }

    /// Closes the records until the disk takes more.
    ///
    /// # Errors
    /// The error again, if the process should end.
    fn could_not_write(&mut self, error: DatabaseError) -> Result<(), DatabaseError> {
        self.knows_keys = false;
        if !may_pass(&error) {
            return Err(error);
        }
        warn!("records cannot be written for now: {}", WithCauses(&error));
        Ok(())
    }

    fn write(&self, plans: &[RecordPlan]) -> Result<(), WriteError> {
        if plans.is_empty() { Ok(()) } else { self.records.write(plans) }
    }

    /// Reads the keys of the last day.
    fn open(&mut self) -> Result<(), DatabaseError> {
        let since = KeyIndex::since(self.now());
        self.keys = KeyIndex::build(|show| self.records.requests_since(since, show))?;
        self.knows_keys = true;
        Ok(())
    }

    /// Whether nothing has failed since the database was opened: after an error of the disk it refuses everything.
    fn is_open(&self) -> bool {
        self.knows_keys && self.records.is_usable()
    }

    /// Whether the database works again after an error of the disk.
    fn can_reopen(&mut self) -> bool {
        let now = self.clock.now();
        if now < self.reopen_at {
            return false;
        }
        self.reopen_at = now.after(REOPEN_EVERY);
        match self.records.reopen().and_then(|()| self.open()) {
            Ok(()) => {
                info!("the records are open again");
                true
            }
            Err(error) => {
                warn!("the records cannot be opened yet: {}", WithCauses(&error));
                false
            }
        }
    }

    fn now(&self) -> EventTime {
        EventTime::from_micros(self.clock.now().get() / 1_000).expect("64 bits of nanoseconds are fewer microseconds")
    }
}

/// Whether the disk may take more later, without losing what it took: it is full.
fn may_pass(error: &DatabaseError) -> bool {
    let DatabaseError::NotUsable { cause, .. } = error else { return false };
    matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
#[path = "record_keeper_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "power_loss_tests.rs"]
mod power_loss;
