//! Access to the records. Reads go directly to the store. Writes go to a thread, which replies once
//! the new records are durable.

use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tracing::error;

use super::clock_check::{check_append_clock, check_clock};
use super::job::{AnyJob, Request, job};
use super::record_error::{RecordError, WAITING_MAX, log_unreadable};
use super::record_writer::RecordWriter;
use super::report_counts::ReportTallies;
use super::round::{Appended, HoldEnd, Numbered};
use crate::failure::{FailureKind, Obstacle, StoreError, WithCauses};
use crate::long_work_threads::LongWorkThreads;
use crate::records::{AnchorKey, LedgerSummary, RecordStore, Records};
use idmint_core::time::{Clock, UnixNanos, UnixTime};
use idmint_records::conjunction::{ExternalId, GroupRequest, Grouped, Seen, Tca};
use idmint_records::ledger::{
    CloseRequest, ClosedSeries, GivenNumbers, LedgerId, LedgerRequest, NumberRequest,
    ResumeRequest, SeriesName, VoidRequest, VoidedNumber,
};

/// The maximum number of reports in a request that are looked up and counted on the caller's
/// thread. This takes less than a tenth of a millisecond.
const LOOKED_UP_AT_ONCE_MAX: usize = 50;

/// The maximum time for which a caller waits for the reply of the writer thread. After this time,
/// the outcome is reported as unknown.
const REPLY_MAX: Duration = Duration::from_secs(10);

/// The assumed maximum time by which this node's clock is behind the time that another node uses
/// when it removes old conjunctions.
const CLOCKS_APART_MAX: Duration = Duration::from_hours(24);

/// A handle to the writer thread that writes records durably.
#[derive(Debug)]
pub struct RecordWriterHandle {
    records: Records,
    clock: Arc<Clock>,
    /// The minimum time for which the first reports of close approaches are kept, or `None` if they
    /// are kept forever.
    retention: Option<Duration>,
    /// The report counts that are not stored yet.
    report_counts: Arc<ReportTallies>,
    /// The queue of jobs for the writer thread, or `None` once this handle is being dropped.
    jobs: Option<SyncSender<AnyJob>>,
    /// The kind of the failure that ended the writer thread, or `None` if there was no such
    /// failure.
    failed: watch::Receiver<Option<FailureKind>>,
    thread: Option<JoinHandle<()>>,
    /// The threads that look up and count the reports of large requests.
    long_work: LongWorkThreads,
}

impl RecordWriterHandle {
    /// Starts the writer thread for `records`.
    ///
    /// The first report of a conjunction is kept for at least `retention` after its time of closest
    /// approach and after the last report of the conjunction. If `retention` is `None`, the first
    /// report is kept forever.
    pub fn start(
        records: Records,
        clock: Arc<Clock>,
        retention: Option<Duration>,
    ) -> RecordWriterHandle {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let (jobs, waiting) = mpsc::sync_channel(WAITING_MAX);
        let (report, failed) = watch::channel(None);
        let report_counts = Arc::new(ReportTallies::default());
        let of_writer = Arc::clone(&report_counts);
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
                    "records can no longer be written, so this process ends: {}",
                    WithCauses(&error)
                );
                report.send_replace(Some(error.failure_kind()));
            }
        };
        let thread = thread::Builder::new().name("records".to_owned()).spawn(run);
        let thread = Some(thread.expect("a program that just started can start a thread"));
        RecordWriterHandle {
            records,
            clock,
            retention,
            report_counts,
            jobs: Some(jobs),
            failed,
            thread,
            long_work: LongWorkThreads::new(cores),
        }
    }

    /// Returns the stored records, for reading.
    pub fn records(&self) -> &dyn RecordStore {
        &*self.records
    }

    /// Runs `read`, which looks up `count` rows, without blocking other callers. If the records are
    /// on another machine, runs `read` on a thread for blocking work. Otherwise runs it on a thread
    /// for long work if the rows are many, and else on this thread.
    pub async fn read_aside<T: Send + 'static>(
        &self,
        count: usize,
        read: impl FnOnce(&dyn RecordStore) -> T + Send + 'static,
    ) -> T {
        let records = Arc::clone(&self.records);
        if !records.is_remote() {
            return self.work_aside(count, move || read(&*records)).await;
        }
        tokio::task::spawn_blocking(move || read(&*records))
            .await
            .expect("it does not panic, and nobody aborts it")
    }

    /// Runs `work` on `count` reports: on a thread for long work if they are many, and otherwise on
    /// this thread.
    async fn work_aside<T: Send + 'static>(
        &self,
        count: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        if count <= LOOKED_UP_AT_ONCE_MAX {
            return work();
        }
        let working = self.long_work.spawn(work);
        working
            .await
            .expect("it does not panic, and nobody aborts it")
    }

    /// Checks whether events could be appended now. Does not try to append, so only known obstacles
    /// are reported.
    ///
    /// # Errors
    /// Returns the [`RecordError`] that explains why no events can be appended. Unless the store is
    /// unusable, records can still be read, and a repeated request still gets its earlier outcome.
    pub fn can_append(&self) -> Result<(), RecordError> {
        self.can_issue_numbers()?;
        check_append_clock(&self.clock).map_err(RecordError::Clock)
    }

    /// Checks whether numbers could be issued now, like [`RecordWriterHandle::can_append`].
    ///
    /// # Errors
    /// Returns the [`RecordError`] that explains why no numbers can be issued.
    pub fn can_issue_numbers(&self) -> Result<(), RecordError> {
        let obstacle = self.records.obstacle();
        match obstacle.or_else(|| self.records.write_obstacle()) {
            None => check_clock(&self.clock).map_err(RecordError::Clock),
            Some(obstacle) => Err(obstacle.into()),
        }
    }

    /// Creates a ledger, or appends events to an existing one. The events are durable when this
    /// method returns.
    ///
    /// Dropping the future does not cancel the append once the writer thread has the request.
    ///
    /// # Errors
    /// Returns [`RecordError`] if the events were not appended, or if the outcome is unknown.
    pub async fn append(&self, request: LedgerRequest) -> Result<Appended, RecordError> {
        self.send(request).await
    }

    /// Returns a summary of the ledger to which this caller has just appended.
    ///
    /// # Errors
    /// Returns [`RecordError::Unknown`] if the ledger cannot be read. The other errors mean that no
    /// record was written, which would be wrong here, because the events are already durable.
    pub async fn read_appended(
        &self,
        ledger: LedgerId,
    ) -> Result<Option<LedgerSummary>, RecordError> {
        let read = move |records: &dyn RecordStore| records.ledger(ledger);
        self.read_aside(1, read).await.map_err(|error| {
            log_unreadable(&error);
            RecordError::Unknown
        })
    }

    /// Issues the next numbers of a series. The numbers are durable when this method returns.
    /// Dropping the future does not cancel the request once the writer thread has it.
    ///
    /// # Errors
    /// Returns [`RecordError`] if no numbers were issued, or if the outcome is unknown.
    pub async fn give(
        &self,
        request: NumberRequest,
    ) -> Result<Numbered<GivenNumbers>, RecordError> {
        self.send(request).await
    }

    /// Resumes a series that is on hold since a restore. The series continues with the number in
    /// the request. Returns the numbers that were skipped, or `None` if no number was skipped. The
    /// change is durable when this method returns. Repeating the request has no further effect, but
    /// fails once the series has issued more numbers.
    ///
    /// # Errors
    /// Returns [`RecordError`] if the series may still be on hold. The error is
    /// [`RecordError::Unknown`] if the skipped numbers may already be stored.
    pub async fn resume(
        &self,
        request: ResumeRequest,
    ) -> Result<Option<GivenNumbers>, RecordError> {
        let series = request.series.clone();
        let skipped = self.send(request).await?;
        let ended = self.end_hold(Some(series)).await;
        // The numbers that the series skipped are already durable, so an error that means "no
        // record was written" would be wrong.
        ended.map_err(|_| RecordError::Unknown)?;
        Ok(skipped)
    }

    /// Lets one series, or all series if `series` is `None`, issue numbers again after a restore.
    /// Each series continues after its last stored number.
    ///
    /// # Errors
    /// Returns [`RecordError`] if the hold may still be in force. The call may be repeated.
    pub async fn end_hold(&self, series: Option<SeriesName>) -> Result<(), RecordError> {
        self.send(HoldEnd(series)).await
    }

    /// Voids a number of a series. The change is durable when this method returns. Dropping the
    /// future does not cancel the request once the writer thread has it.
    ///
    /// # Errors
    /// Returns [`RecordError`] if the number was not voided, or if the outcome is unknown.
    pub async fn make_void(
        &self,
        request: VoidRequest,
    ) -> Result<Numbered<VoidedNumber>, RecordError> {
        self.send(request).await
    }

    /// Closes a series. The change is durable when this method returns, and from then on no request
    /// gets a number of the series. Repeating the request has no further effect.
    ///
    /// # Errors
    /// Returns [`RecordError`] if the series was not closed, or if the outcome is unknown.
    pub async fn close(
        &self,
        request: CloseRequest,
    ) -> Result<Numbered<ClosedSeries>, RecordError> {
        self.send(request).await
    }

    /// Groups reports into conjunctions. The anchors of new conjunctions are durable when this
    /// method returns.
    ///
    /// Reports that join a conjunction near the end of its retention are counted in the store
    /// before this method returns. Otherwise, this node or another one could remove the conjunction
    /// as old before it sees the report.
    ///
    /// # Errors
    /// Returns [`RecordError`] if the reports were not grouped, or if the outcome is unknown. Also
    /// returns an error if memory holds too many report counts and they cannot be written to the
    /// store. The call may be repeated.
    pub async fn group(&self, request: GroupRequest) -> Result<Vec<Grouped>, RecordError> {
        let request = Arc::new(request);
        let grouped = match self.join(&request).await? {
            Some(known) => known,
            None => self.send(Arc::clone(&request)).await?,
        };
        let (grouped, may_be_removed) = self.count(&request, grouped, Vec::new()).await?;
        if !may_be_removed {
            return Ok(grouped);
        }
        // A conjunction may have been removed after it was looked up, and before its report was
        // counted. Its reports then get the id of a new conjunction.
        let again = match self.join(&request).await? {
            Some(again) => again,
            None => self.send(Arc::clone(&request)).await?,
        };
        Ok(self.count(&request, again, grouped).await?.0)
    }

    /// Returns the ids of the reports, or `None` if some of them begin a new conjunction.
    async fn join(&self, request: &Arc<GroupRequest>) -> Result<Option<Vec<Grouped>>, RecordError> {
        let (count, request) = (request.len(), Arc::clone(request));
        let look_up = move |records: &dyn RecordStore| {
            let stored = records.neighbours(request.format(), &mut request.keys());
            let stored = stored.map_err(|error| log_unreadable(&error))?;
            request.join_stored(&stored).map_err(RecordError::Group)
        };
        self.read_aside(count, look_up).await
    }

    /// Counts the reports of a request. `before` has the results of an earlier call for this
    /// request. A report that still has the same anchor keeps that result, and is not counted
    /// again.
    ///
    /// Returns the results, and `true` if some conjunction is so old that it may have been removed
    /// before its report was counted. The counts are then written to the store.
    async fn count(
        &self,
        request: &Arc<GroupRequest>,
        mut grouped: Vec<Grouped>,
        before: Vec<Grouped>,
    ) -> Result<(Vec<Grouped>, bool), RecordError> {
        let (at, report_counts) = (self.clock.now(), Arc::clone(&self.report_counts));
        let (may_be_swept, of_request) = (self.may_be_swept(at), Arc::clone(request));
        let count_all = move || {
            let (mut are_counts_due, mut uncounted) = (false, Vec::new());
            for (index, (pair, tca)) in of_request.reports().enumerate() {
                let anchor = grouped[index].anchor;
                let is_same =
                    |one: &&Grouped| one.anchor == anchor && grouped[index].created != Some(true);
                if let Some(before) = before.get(index).filter(is_same) {
                    grouped[index] = *before;
                    continue;
                }
                let seen = Seen { at, tca };
                let is_counted = report_counts.count(of_request.format(), pair, anchor, seen);
                if grouped[index].created == Some(false) && may_be_swept(anchor) {
                    are_counts_due = true;
                    uncounted.extend((!is_counted).then_some((pair, anchor, seen)));
                }
            }
            (grouped, are_counts_due, uncounted)
        };
        let (grouped, are_counts_due, uncounted) = self.work_aside(request.len(), count_all).await;
        for (pair, anchor, seen) in uncounted {
            let count = || {
                self.report_counts
                    .count(request.format(), pair, anchor, seen)
            };
            if !count() {
                self.send(Arc::clone(&self.report_counts)).await?;
                count();
            }
        }
        if are_counts_due {
            // If the write fails, the counts stay in memory. This node writes them before it
            // removes old conjunctions the next time.
            let _ = self.send(Arc::clone(&self.report_counts)).await;
        }
        Ok((grouped, are_counts_due))
    }

    /// Returns a predicate on the time of a conjunction's anchor. It is `true` if the conjunction
    /// is so old that it may soon be removed. Counting a new report delays the removal.
    fn may_be_swept(&self, now: UnixNanos) -> impl Fn(Tca) -> bool + Send + 'static {
        let (retention, soon) = (self.retention, UnixTime::from(now.after(CLOCKS_APART_MAX)));
        move |anchor| {
            retention.is_some_and(|retention| UnixTime::from(anchor).after(retention) < soon)
        }
    }

    /// Attaches external ids to stored anchors. The attached ids are durable when this method
    /// returns.
    ///
    /// # Errors
    /// Returns [`RecordError`] if some ids may be missing in the store. The call may be repeated.
    pub async fn add_externals(
        &self,
        externals: Vec<(AnchorKey, ExternalId)>,
    ) -> Result<(), RecordError> {
        let new = self
            .read_aside(externals.len(), move |records| {
                new_externals(records, externals)
            })
            .await;
        match new.map_err(|error| log_unreadable(&error))? {
            new if new.is_empty() => Ok(()),
            new => self.send(new).await,
        }
    }

    /// Returns the report counts that are not stored yet.
    pub fn report_counts(&self) -> &ReportTallies {
        &self.report_counts
    }

    /// Sends a request to the writer thread, and waits for its outcome.
    async fn send<R: Request>(&self, request: R) -> Result<R::Outcome, RecordError> {
        let (caller, reply) = oneshot::channel();
        let jobs = self.jobs.as_ref().expect("taken only by drop");
        jobs.try_send(job(request, caller))
            .map_err(|error| match error {
                TrySendError::Full(_) => RecordError::Busy,
                TrySendError::Disconnected(_) => Obstacle::of_kind(FailureKind::NotUsable).into(),
            })?;
        match tokio::time::timeout(REPLY_MAX, reply).await {
            Ok(Ok(outcome)) => outcome,
            // The writer thread has ended or is too slow. It is unknown whether the thread has
            // written the records.
            Ok(Err(_)) | Err(_) => Err(RecordError::Unknown),
        }
    }

    /// Waits until records can no longer be written, and returns the kind of failure. Never returns
    /// while records can be written.
    pub async fn failed(&self) -> FailureKind {
        let mut failed = self.failed.clone();
        let kind = failed
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|kind| *kind);
        // If the writer thread has ended without sending a kind of failure, it has panicked, and
        // the panic was already reported.
        kind.unwrap_or(FailureKind::NotUsable)
    }
}

/// Returns the external ids that can be attached to their conjunctions. Leaves out an id if the
/// conjunction already has it, or the maximum number of ids.
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

impl Drop for RecordWriterHandle {
    fn drop(&mut self) {
        // Close the queue. The writer thread first processes the queued jobs, because it ends only
        // when the queue is closed and empty, or when the store fails.
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
#[path = "record_writer_handle_tests.rs"]
mod tests;
