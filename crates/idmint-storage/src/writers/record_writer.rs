//! The thread that writes records durably. The thread decides which records to write for the queued
//! requests, and writes them in as few transactions as possible. Each reply is sent only once its
//! records are durable.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use tracing::{debug, info, warn};

use super::anchor_sweep::AnchorSweep;
use super::clock_check::{check_append_clock, check_clock, may_forget};
use super::job::{AnyJob, DurablePlans, Reply};
use super::record_error::{RecordError, log_unwritten};
use super::report_counts::{ReportTallies, WriteTime};
use super::request_sweep::RequestSweep;
use super::round::{self, RoundTimes};
use crate::failure::{FailureKind, Obstacle, StoreError, WithCauses};
use crate::records::{RecordPlan, Records, WriteError, WrittenDay};
use idmint_core::minting::Durable;
use idmint_core::time::{Clock, UnixNanos};
use idmint_records::ledger::EventTime;

/// The maximum number of events and reports in one round of requests that are written together. A
/// single request may have more.
const ROUND_LEN_MAX: usize = 50_000;

/// If no request has arrived for this long, the thread does background work.
const IDLE_MIN: Duration = Duration::from_millis(100);

/// The interval at which the thread tries to write again after a failed write.
pub(super) const REOPEN_EVERY: Duration = Duration::from_secs(1);

/// The maximum number of attempts to decide on the same requests and to write their records. An
/// attempt fails if another writer changes the records first. After the last attempt, the requests
/// are refused.
const DECISIONS_MAX: u32 = 16;

/// The error text for requests that are refused after [`DECISIONS_MAX`] decisions.
const OVERTAKEN: Obstacle = Obstacle::new(
    FailureKind::Locked,
    "nothing was written, because other nodes kept changing the same records; retry",
);

/// The maximum pause before requests are processed again, after another writer changed the same
/// records. All pauses for a request take at most 0.3 s in total, and its caller waits for 10 s.
const PAUSE_MAX: Duration = Duration::from_millis(20);

pub(super) struct RecordWriter {
    records: Records,
    clock: Arc<Clock>,
    waiting: Receiver<AnyJob>,
    /// The earliest time at which the thread may try again to reopen the store after a failed
    /// write.
    reopen_at: UnixNanos,
    /// The days on which request keys had been recorded before the first append of this process. If
    /// the clock shows an earlier day than the last of these days, the clock is probably behind.
    earlier_days: OnceCell<Vec<WrittenDay>>,
    /// The sweep that removes old request keys.
    request_sweep: RequestSweep,
    /// The sweep that removes old anchors, if a retention is configured.
    anchor_sweep: Option<AnchorSweep>,
    /// The report counts that are not stored yet.
    report_counts: Arc<ReportTallies>,
    tallies_due: WriteTime,
}

impl RecordWriter {
    /// Creates a writer, which takes its jobs from the queue `waiting` once it [runs](Self::run).
    ///
    /// The anchor of a conjunction is kept for at least `retention` after its time of closest
    /// approach and after its last report. If `retention` is `None`, the anchor is kept forever.
    pub(super) fn new(
        records: Records,
        clock: Arc<Clock>,
        waiting: Receiver<AnyJob>,
        retention: Option<Duration>,
        report_counts: Arc<ReportTallies>,
    ) -> RecordWriter {
        RecordWriter {
            records,
            clock,
            waiting,
            reopen_at: UnixNanos::default(),
            earlier_days: OnceCell::new(),
            request_sweep: RequestSweep::default(),
            anchor_sweep: retention.map(AnchorSweep::new),
            report_counts,
            tallies_due: WriteTime::default(),
        }
    }

    /// Writes the records of queued jobs until the queue is closed and empty.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the process has to end because the store has failed.
    pub(super) fn run(mut self) -> Result<(), StoreError> {
        while let Some(first) = self.next_job()? {
            self.serve(first)?;
            // Remove old request keys here as well, so that removal keeps up with new requests even
            // if the thread is never idle. Old conjunctions are fewer, so their removal waits until
            // the thread is idle, or for about a day.
            self.forget_requests()?;
            self.forget_anchors(AnchorSweep::is_overdue)?;
            self.write_tallies()?;
            self.look_at_hold();
        }
        if self.is_open() {
            self.store_report_counts()
        } else {
            Ok(())
        }
    }

    /// Waits for the next job, and does background work in the meantime. Returns `None` once the
    /// queue is closed and empty.
    fn next_job(&mut self) -> Result<Option<AnyJob>, StoreError> {
        loop {
            match self.waiting.recv_timeout(IDLE_MIN) {
                Ok(job) => return Ok(Some(job)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                // Try to reopen the store without waiting for a request, because a load balancer
                // may send none before this node is ready.
                Err(RecvTimeoutError::Timeout) if !self.is_open() => {
                    self.can_reopen();
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.write_tallies()?;
                    self.forget_requests()?;
                    self.forget_anchors(AnchorSweep::is_due)?;
                    self.look_at_hold();
                }
            }
        }
    }

    fn forget_requests(&mut self) -> Result<(), StoreError> {
        if !self.is_open() || !may_forget(&self.clock) {
            return Ok(());
        }
        let forgotten = self.request_sweep.step(&*self.records, &self.clock);
        forgotten.or_else(|error| self.could_not_write(error))
    }

    fn look_at_hold(&self) {
        if let Err(error) = self.records.look_at_hold() {
            debug!(
                "cannot read whether series wait to be resumed (the hold on numbers): {}",
                WithCauses(&error)
            );
        }
    }

    fn write_tallies(&mut self) -> Result<(), StoreError> {
        if !self.is_open() || !self.tallies_due.has_come(self.clock.now()) {
            return Ok(());
        }
        let written = self.store_report_counts();
        written.or_else(|error| self.could_not_write(error))
    }

    fn store_report_counts(&self) -> Result<(), StoreError> {
        self.report_counts
            .write(|report_counts| self.records.add_reports(report_counts))
    }

    /// Runs the next step of the sweep that removes old anchors, if the step is due according to
    /// `is_due`.
    fn forget_anchors(
        &mut self,
        is_due: impl Fn(&AnchorSweep, &Clock) -> bool,
    ) -> Result<(), StoreError> {
        if !self.is_open() || !may_forget(&self.clock) {
            return Ok(());
        }
        let Some(sweep) = self
            .anchor_sweep
            .as_mut()
            .filter(|sweep| is_due(sweep, &self.clock))
        else {
            return Ok(());
        };
        // Write the report counts that are still in memory first. The removal of old conjunctions
        // must know the latest report of each conjunction.
        let records = &*self.records;
        let written = self
            .report_counts
            .write(|counts| records.add_reports(counts));
        let swept = written.and_then(|()| sweep.step(records, &self.clock));
        swept.or_else(|error| self.could_not_write(error))
    }

    /// Processes a job together with the jobs that are queued after it, and writes their records
    /// together.
    fn serve(&mut self, first: AnyJob) -> Result<(), StoreError> {
        let mut len = first.item_count();
        let mut jobs = vec![first];
        while let Some(job) = (len < ROUND_LEN_MAX)
            .then(|| self.waiting.try_recv().ok())
            .flatten()
        {
            len += job.item_count();
            jobs.push(job);
        }
        if let Some(obstacle) = self.records.obstacle().filter(|_| !self.can_reopen()) {
            self.answer_without_writing(jobs, &obstacle.into());
            return Ok(());
        }
        self.work(jobs)
    }

    /// Refuses the jobs that need a write, and replies to the others. If `refusal` is
    /// [`RecordError::Unknown`], a job gets its own outcome only if it is a success. If the store
    /// has an obstacle other than a full disk, refuses all jobs without reading the store.
    fn answer_without_writing(&self, jobs: Vec<AnyJob>, refusal: &RecordError) {
        let obstacle = self.records.obstacle();
        if obstacle.is_some_and(|obstacle| obstacle.failure_kind() != FailureKind::Full) {
            jobs.into_iter().for_each(|job| job.refuse(refusal.clone()));
            return;
        }
        round::answer_without_writing(&*self.records, self.times(), jobs, refusal);
    }

    /// Decides on the jobs, writes the planned records, and sends the replies.
    ///
    /// If another writer changed the records first, the jobs that got no reply yet are decided
    /// again. The outcomes that callers have already received stay valid.
    fn work(&mut self, mut jobs: Vec<AnyJob>) -> Result<(), StoreError> {
        let mut decisions = 0;
        loop {
            let decided = round::decide(&*self.records, self.times(), jobs);
            decisions += 1;
            let mut replies = VecDeque::from(decided.replies);
            match self.write_and_reply(decided.plans, &mut replies) {
                Ok(()) => {
                    let applied = self.records.apply_pending();
                    return applied
                        .and(decided.failed.map_or(Ok(()), Err))
                        .or_else(|error| self.could_not_write(error));
                }
                Err(WriteError::NotWritten(error)) => {
                    let refusal = error.obstacle().into();
                    return self.give_up(replies, &refusal, error);
                }
                Err(WriteError::TooLong(error)) => {
                    // The replies are in the order of the plans, so the plan belongs to the first
                    // job. Refuse only this job, and decide on the others again.
                    jobs = replies.into_iter().map(Reply::into_job).collect();
                    let others = jobs.split_off(1);
                    self.answer_without_writing(jobs, &log_unwritten(&error));
                    jobs = others;
                }
                Err(WriteError::Store(error)) => {
                    return self.give_up(replies, &RecordError::Unknown, error);
                }
                Err(WriteError::Stale) => {
                    // Look up each idempotency key again. A caller may have sent its request to the
                    // other writer as well, and that writer may already have done it.
                    jobs = replies.into_iter().map(Reply::into_job).collect();
                    if decisions < DECISIONS_MAX {
                        thread::sleep(pause_after(decisions));
                        continue;
                    }
                    warn!(
                        "requests were refused with 503, because another writer changed the same records \
                         before each of {decisions} attempts"
                    );
                    self.answer_without_writing(jobs, &OVERTAKEN.into());
                    return Ok(());
                }
            }
        }
    }

    /// Refuses the jobs whose records could not be written. Jobs that need no write still get their
    /// outcome.
    ///
    /// # Errors
    /// Returns `error` if the process has to end because of it.
    fn give_up(
        &self,
        replies: VecDeque<Reply>,
        refusal: &RecordError,
        error: StoreError,
    ) -> Result<(), StoreError> {
        let jobs = replies.into_iter().map(Reply::into_job).collect();
        self.answer_without_writing(jobs, refusal);
        self.could_not_write(error)
    }

    /// Returns `Ok`, so that the process keeps running, if the failed write may succeed later
    /// because the disk is full or the store does not respond.
    ///
    /// # Errors
    /// Returns `error` if the process has to end because of it.
    fn could_not_write(&self, error: StoreError) -> Result<(), StoreError> {
        match error.failure_kind() {
            // Keep the process running. A full disk has lost no data and may have space later, and
            // a store that does not respond may respond later.
            FailureKind::Full | FailureKind::Unreachable => {
                warn!(
                    "records cannot be written, so requests that need a write get 503 until that is \
                     possible again: {}",
                    WithCauses(&error)
                );
                Ok(())
            }
            FailureKind::Locked
            | FailureKind::NotUsable
            | FailureKind::Damaged
            | FailureKind::Disagrees => Err(error),
        }
    }

    /// Writes the plans, in as few writes as possible. Sends each reply once the plans on which it
    /// depends are durable. After an error, `replies` contains the replies that were not sent.
    fn write_and_reply(
        &self,
        mut plans: Vec<RecordPlan>,
        replies: &mut VecDeque<Reply>,
    ) -> Result<(), WriteError> {
        let mut durable = DurablePlans::default();
        loop {
            while let Some(reply) = replies.pop_front_if(|reply| reply.may_be_sent(&durable)) {
                reply.send(&durable);
            }
            if plans.is_empty() {
                return Ok(());
            }
            let later = plans.split_off(self.records.fitting(&plans));
            durable.add(Durable::write(plans, |plans| self.records.write(plans))?);
            plans = later;
        }
    }

    /// `true` if records can be written, as far as is known. Does not try to write.
    fn is_open(&self) -> bool {
        self.records.obstacle().is_none()
    }

    /// Tries to reopen the store, at most once per [`REOPEN_EVERY`]. Returns `true` if records can
    /// be written again.
    fn can_reopen(&mut self) -> bool {
        let now = self.clock.now();
        // If the clock was set back, `now < self.reopen_at` alone could stay true for a long time.
        // The second condition limits the wait to the intended pause.
        if now < self.reopen_at && self.reopen_at.since(now) <= REOPEN_EVERY {
            return false;
        }
        self.reopen_at = now.after(REOPEN_EVERY);
        match self.records.reopen() {
            Ok(()) => {
                info!("records can be written again");
                true
            }
            Err(error) => {
                warn!("records still cannot be written: {}", WithCauses(&error));
                false
            }
        }
    }

    fn times(&self) -> RoundTimes<'_> {
        let now = EventTime::from_micros(self.clock.now().get() / 1_000)
            .expect("64 bits of nanoseconds are fewer microseconds");
        RoundTimes {
            event: check_append_clock(&self.clock).map(|()| now),
            number: check_clock(&self.clock).map(|()| now),
            earlier_days: &self.earlier_days,
        }
    }
}

/// Returns a random pause before requests are processed again, so that two writers do not collide a
/// second time. The maximum doubles with each failed attempt, up to [`PAUSE_MAX`].
fn pause_after(decisions: u32) -> Duration {
    let pause_max = Duration::from_millis(1 << decisions).min(PAUSE_MAX);
    rand::random_range(Duration::ZERO..=pause_max)
}

#[cfg(test)]
#[path = "stale_plans_tests.rs"]
mod stale_plans;

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod sweeps;

#[cfg(test)]
#[path = "power_loss_tests.rs"]
mod power_loss;
