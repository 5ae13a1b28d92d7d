//! The records of ids with memory: read at once, written by a thread that answers when that is durable.

use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tracing::error;

use super::clock_check::check_clock;
use super::job::{Appended, Caller, Job, Numbered};
use super::record_error::{RecordError, WAITING_MAX, log_unreadable};
use super::record_writer::RecordWriter;
use super::report_tallies::ReportTallies;
use crate::conjunction::{Anchor, ExternalId, GroupRequest, Grouped, Seen};
use crate::ledger::{GivenNumbers, LedgerRequest, NumberRequest, VoidRequest, VoidedNumber};
use crate::storage::failure::{FailureKind, StoreError, WithCauses};
use crate::storage::records::{AnchorKey, RecordStore, Records};
use crate::time::Clock;

/// Reports that are looked up in the store at once, which takes about a millisecond.
const LOOKED_UP_AT_ONCE_MAX: usize = 1_000;

/// How long a caller waits for its reply before the outcome is called unknown.
const REPLY_MAX: Duration = Duration::from_secs(10);

/// Makes records durable, on a thread of its own.
#[derive(Debug)]
pub struct RecordKeeper {
    records: Records,
    clock: Arc<Clock>,
    /// The reports that are counted and not stored yet.
    tallies: Arc<ReportTallies>,
    /// `None` once it is being dropped.
    jobs: Option<SyncSender<Job>>,
    /// Why nothing can be written any more.
    failed: watch::Receiver<Option<FailureKind>>,
    thread: Option<JoinHandle<()>>,
}

impl RecordKeeper {
    /// Begins to serve `records`.
    ///
    /// `retention`: how long after its time an anchor is kept; for ever if that is not said.
    pub fn start(records: Records, clock: Arc<Clock>, retention: Option<Duration>) -> RecordKeeper {
        let (jobs, waiting) = mpsc::sync_channel(WAITING_MAX);
        let (report, failed) = watch::channel(None);
        let tallies = Arc::new(ReportTallies::default());
        let of_writer = Arc::clone(&tallies);
        let writer = RecordWriter::new(
            Arc::clone(&records),
            Arc::clone(&clock),
            waiting,
            retention,
            of_writer,
        );
        let run = move || {
            if let Err(error) = writer.run() {
                error!(
                    "records cannot be written any more, this process ends: {}",
                    WithCauses(&error)
                );
                report.send_replace(Some(error.failure_kind()));
            }
        };
        let thread = thread::Builder::new().name("records".to_owned()).spawn(run);
        let thread = Some(thread.expect("a program that just started can start a thread"));
        RecordKeeper {
            records,
            clock,
            tallies,
            jobs: Some(jobs),
            failed,
            thread,
        }
    }

    /// What is stored, to be read.
    pub fn records(&self) -> &dyn RecordStore {
        &*self.records
    }

    /// Reads where that holds up nobody: here, or, where the records are on another machine, on a thread that serves no
    /// connections.
    pub async fn read_aside<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn RecordStore) -> T + Send + 'static,
    ) -> T {
        if !self.records.is_remote() {
            return read(&*self.records);
        }
        let records = Arc::clone(&self.records);
        tokio::task::spawn_blocking(move || read(&*records))
            .await
            .expect("it does not panic, and nobody aborts it")
    }

    /// Whether events would be appended now, as far as that can be told without trying.
    ///
    /// # Errors
    /// [`RecordError`]: why not. What was appended before is replayed and read all the same, unless the store is unusable.
    pub fn can_append(&self) -> Result<(), RecordError> {
        match self.records.obstacle() {
            None if self.records.lacks_room() => Err(RecordError::of_failure(FailureKind::Full)),
            None => check_clock(&self.clock).map_err(RecordError::Clock),
            Some(kind) => Err(RecordError::of_failure(kind)),
        }
    }

    /// Creates a ledger or appends to one, and returns when that is durable.
    ///
    /// Dropping the future gives up the wait, not the append.
    ///
    /// # Errors
    /// [`RecordError`].
    pub async fn append(&self, request: LedgerRequest) -> Result<Appended, RecordError> {
        self.send(|caller| Job::Ledger(request, caller)).await
    }

    /// Gives the next numbers of a series, and returns when they are durable. Dropping the future gives up the wait alone.
    ///
    /// # Errors
    /// [`RecordError`].
    pub async fn give(
        &self,
        request: NumberRequest,
    ) -> Result<Numbered<GivenNumbers>, RecordError> {
        self.send(|caller| Job::Number(request, caller)).await
    }

    /// Makes a number void, and returns when that is durable. Dropping the future gives up the wait alone.
    ///
    /// # Errors
    /// [`RecordError`].
    pub async fn make_void(
        &self,
        request: VoidRequest,
    ) -> Result<Numbered<VoidedNumber>, RecordError> {
        self.send(|caller| Job::Void(request, caller)).await
    }

    /// Groups reports, and returns when the anchors of new conjunctions are durable.
    ///
    /// # Errors
    /// [`RecordError`].
    pub async fn group(&self, request: GroupRequest) -> Result<Vec<Grouped>, RecordError> {
        let (request, stored) = self.with_neighbours(request).await?;
        let (format, reports) = (
            request.format().to_owned(),
            request.reports().collect::<Vec<_>>(),
        );
        let grouped = match request.join_stored(&stored).map_err(RecordError::Group)? {
            Some(known) => known,
            None => self.send(|caller| Job::Group(request, caller)).await?,
        };
        let at = self.clock.now();
        for ((pair, tca), grouped) in reports.into_iter().zip(&grouped) {
            self.tallies
                .count(&format, pair, grouped.anchor, Seen { at, tca });
        }
        Ok(grouped)
    }

    /// Keeps ids of other originators beside anchors that are stored, and returns when those that are new are durable.
    ///
    /// # Errors
    /// [`RecordError`]; the same may be asked for again.
    pub async fn add_externals(
        &self,
        externals: Vec<(AnchorKey, ExternalId)>,
    ) -> Result<(), RecordError> {
        let new = self
            .read_aside(move |records| new_externals(records, externals))
            .await;
        match new.map_err(|error| log_unreadable(&error))? {
            new if new.is_empty() => Ok(()),
            new => self.send(|caller| Job::Externals(new, caller)).await,
        }
    }

    /// The reports that are counted and not stored yet.
    pub fn tallies(&self) -> &ReportTallies {
        &self.tallies
    }

    /// What is stored around the reports. Many of them, and those on another machine, are looked up on a thread where nobody
    /// waits for it.
    async fn with_neighbours(
        &self,
        request: GroupRequest,
    ) -> Result<(GroupRequest, Vec<Vec<Anchor>>), RecordError> {
        let records = Arc::clone(&self.records);
        let takes_long = request.len() > LOOKED_UP_AT_ONCE_MAX || records.is_remote();
        let look_up = move || {
            let stored = records.neighbours(request.format(), &mut request.keys());
            let stored = stored.map_err(|error| log_unreadable(&error))?;
            Ok((request, stored))
        };
        if !takes_long {
            return look_up();
        }
        tokio::task::spawn_blocking(look_up)
            .await
            .expect("it does not panic, and nobody aborts it")
    }

    /// Sends a job to the thread, and waits for its reply.
    async fn send<T>(&self, job: impl FnOnce(Caller<T>) -> Job) -> Result<T, RecordError> {
        let (caller, reply) = oneshot::channel();
        let jobs = self.jobs.as_ref().expect("taken only by drop");
        jobs.try_send(job(caller)).map_err(|error| match error {
            TrySendError::Full(_) => RecordError::Busy,
            TrySendError::Disconnected(_) => RecordError::Unavailable,
        })?;
        match tokio::time::timeout(REPLY_MAX, reply).await {
            Ok(Ok(outcome)) => outcome,
            // The thread ended, or takes too long, after it may have begun to write.
            Ok(Err(_)) | Err(_) => Err(RecordError::Unknown),
        }
    }

    /// Returns the kind of the failure when nothing can be written any more, and never otherwise.
    pub async fn failed(&self) -> FailureKind {
        let mut failed = self.failed.clone();
        let kind = failed
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|kind| *kind);
        // Without one the thread has panicked, and said so.
        kind.unwrap_or(FailureKind::NotUsable)
    }
}

/// Those of ids beside anchors that there is room for and that are not there.
fn new_externals(
    records: &dyn RecordStore,
    externals: Vec<(AnchorKey, ExternalId)>,
) -> Result<Vec<(AnchorKey, ExternalId)>, StoreError> {
    let anchors: Vec<AnchorKey> = externals.iter().map(|(anchor, _)| anchor.clone()).collect();
    let there = records.externals(&anchors)?;
    let is_new = |(of_anchor, external): (Vec<ExternalId>, (AnchorKey, ExternalId))| {
        let is_new = of_anchor.len() < ExternalId::COUNT_MAX && !of_anchor.contains(&external.1);
        is_new.then_some(external)
    };
    Ok(there
        .into_iter()
        .zip(externals)
        .filter_map(is_new)
        .collect())
}

impl Drop for RecordKeeper {
    fn drop(&mut self) {
        // What waits is still done: the thread ends when there is nothing left and nobody can ask.
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
#[path = "record_keeper_tests.rs"]
mod tests;
