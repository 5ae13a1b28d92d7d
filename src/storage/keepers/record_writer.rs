//! The thread that makes records durable: it decides on what has been asked for meanwhile, writes all of it in one
//! transaction, and replies only then.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use tracing::{info, warn};

use super::anchor_sweep::AnchorSweep;
use super::clock_check::{check_clock, may_forget};
use super::job::{DurablePlans, Job, Reply};
use super::record_error::RecordError;
use super::report_tallies::{ReportTallies, WriteTime};
use super::request_sweep::RequestSweep;
use super::round::{self, Decided};
use crate::ledger::EventTime;
use crate::minting::Durable;
use crate::storage::failure::{FailureKind, StoreError, WithCauses};
use crate::storage::records::{RecordPlan, Records, WriteError};
use crate::time::{Clock, UnixNanos};

/// Events and reports that are decided on in one transaction, unless a single request has more.
const ROUND_LEN_MAX: usize = 50_000;

/// How long nobody asks for anything before the time is used otherwise.
const IDLE_MIN: Duration = Duration::from_millis(100);

/// How often a store that could not be written is tried again.
pub(super) const REOPEN_EVERY: Duration = Duration::from_secs(1);

/// How often a round is decided on before its callers are refused, because other writers are always faster.
const DECISIONS_MAX: u32 = 16;

/// The longest pause before a round is decided on again. All pauses together are short beside the time that a caller
/// waits.
const PAUSE_MAX: Duration = Duration::from_millis(20);

pub(super) struct RecordWriter {
    records: Records,
    clock: Arc<Clock>,
    waiting: Receiver<Job>,
    /// When to try to open it again.
    reopen_at: UnixNanos,
    /// Forgets old keys of requests.
    request_sweep: RequestSweep,
    /// Forgets old anchors, where that is configured.
    anchor_sweep: Option<AnchorSweep>,
    /// The reports that are counted and not stored yet.
    tallies: Arc<ReportTallies>,
    tallies_due: WriteTime,
}

impl RecordWriter {
    /// Will do the jobs that come by `waiting`, once it [runs](Self::run).
    ///
    /// `retention`: how long after its time an anchor is kept; for ever if that is not said.
    pub(super) fn new(
        records: Records,
        clock: Arc<Clock>,
        waiting: Receiver<Job>,
        retention: Option<Duration>,
        tallies: Arc<ReportTallies>,
    ) -> RecordWriter {
        RecordWriter {
            records,
            clock,
            waiting,
            reopen_at: UnixNanos::default(),
            request_sweep: RequestSweep::default(),
            anchor_sweep: retention.map(AnchorSweep::new),
            tallies,
            tallies_due: WriteTime::default(),
        }
    }

    /// Works until nobody can ask any more.
    ///
    /// # Errors
    /// Why the process should end.
    pub(super) fn run(mut self) -> Result<(), StoreError> {
        while let Some(first) = self.next_job()? {
            self.serve(first)?;
            // Also where somebody always waits: what is forgotten must keep up with what is appended.
            self.forget_requests()?;
            self.write_tallies()?;
        }
        if self.is_open() {
            self.tallies.write(&*self.records)
        } else {
            Ok(())
        }
    }

    /// Waits for a job, and uses the time for what nobody waits for; `None` when nobody can ask any more.
    fn next_job(&mut self) -> Result<Option<Job>, StoreError> {
        loop {
            match self.waiting.recv_timeout(IDLE_MIN) {
                Ok(job) => return Ok(Some(job)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                // A closed database answers no reader either, so it is not left until somebody appends.
                Err(RecvTimeoutError::Timeout) if !self.is_open() => {
                    self.can_reopen();
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.write_tallies()?;
                    self.forget_requests()?;
                    self.forget_anchors()?;
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

    fn write_tallies(&mut self) -> Result<(), StoreError> {
        if !self.is_open() || !self.tallies_due.has_come(self.clock.now()) {
            return Ok(());
        }
        let written = self.tallies.write(&*self.records);
        written.or_else(|error| self.could_not_write(error))
    }

    fn forget_anchors(&mut self) -> Result<(), StoreError> {
        if !self.is_open() || !may_forget(&self.clock) {
            return Ok(());
        }
        let Some(sweep) = self
            .anchor_sweep
            .as_mut()
            .filter(|sweep| sweep.is_due(&self.clock))
        else {
            return Ok(());
        };
        // First, so that no anchor is taken for older than its last report.
        let written = self.tallies.write(&*self.records);
        let swept = written.and_then(|()| sweep.step(&*self.records, &self.clock));
        swept.or_else(|error| self.could_not_write(error))
    }

    /// Does a job, and what waits behind it, in one transaction.
    fn serve(&mut self, first: Job) -> Result<(), StoreError> {
        let mut len = first.len();
        let mut jobs = vec![first];
        while let Some(job) = (len < ROUND_LEN_MAX)
            .then(|| self.waiting.try_recv().ok())
            .flatten()
        {
            len += job.len();
            jobs.push(job);
        }
        if let Some(kind) = self.records.obstacle().filter(|_| !self.can_reopen()) {
            jobs.into_iter()
                .for_each(|job| job.refuse(RecordError::of_failure(kind)));
            return Ok(());
        }
        self.work(jobs)
    }

    /// Decides on the jobs, writes what they need, and replies. While another writer is faster, those without a reply are
    /// decided on again: nobody has been told anything that would now be false.
    fn work(&mut self, mut jobs: Vec<Job>) -> Result<(), StoreError> {
        let mut decisions = 0;
        loop {
            let now = self.now();
            let Decided { plans, replies } =
                round::decide(&*self.records, check_clock(&self.clock).map(|()| now), jobs);
            decisions += 1;
            let mut replies = VecDeque::from(replies);
            match self.write_and_reply(plans, &mut replies) {
                Ok(()) => {
                    return self
                        .records
                        .apply_pending()
                        .or_else(|error| self.could_not_write(error));
                }
                Err(WriteError::NotWritten(error)) => {
                    let told = RecordError::of_failure(error.failure_kind());
                    replies
                        .into_iter()
                        .for_each(|reply| reply.send_without_plans(told.clone()));
                    return self.could_not_write(error);
                }
                Err(WriteError::Store(error)) => {
                    replies
                        .into_iter()
                        .for_each(|reply| reply.send_without_plans(RecordError::Unknown));
                    return self.could_not_write(error);
                }
                Err(WriteError::Stale) => {
                    // The other writer's requests may be among ours, sent to both: their keys are looked up again.
                    if decisions < DECISIONS_MAX {
                        thread::sleep(pause_after(decisions));
                        jobs = replies.into_iter().map(Reply::into_job).collect();
                        continue;
                    }
                    warn!("requests are refused: somebody else wrote first, {decisions} times");
                    replies
                        .into_iter()
                        .for_each(|reply| reply.send_without_plans(RecordError::Unavailable));
                    return Ok(());
                }
            }
        }
    }

    /// Closes the records until the disk takes more.
    ///
    /// # Errors
    /// The error again, if the process should end.
    fn could_not_write(&mut self, error: StoreError) -> Result<(), StoreError> {
        match error.failure_kind() {
            // A full disk may take more later, and has not lost what it took; who does not answer may answer later.
            FailureKind::Full | FailureKind::Unreachable => {
                warn!("records cannot be written for now: {}", WithCauses(&error));
                Ok(())
            }
            FailureKind::Locked
            | FailureKind::NotUsable
            | FailureKind::Damaged
            | FailureKind::Disagrees => Err(error),
        }
    }

    /// Writes plans, as many at once as fit, and sends each reply when what it rests on is durable. Those that are left
    /// over rest on plans that are not.
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

    /// Whether nothing has failed since the database was opened: after an error of the disk it refuses everything.
    fn is_open(&self) -> bool {
        self.records.obstacle().is_none()
    }

    /// Whether the database works again after an error of the disk.
    fn can_reopen(&mut self) -> bool {
        let now = self.clock.now();
        // A clock that is waited for may be set back: the pause is never longer than it was meant to be.
        if now < self.reopen_at && self.reopen_at.since(now) <= REOPEN_EVERY {
            return false;
        }
        self.reopen_at = now.after(REOPEN_EVERY);
        match self.records.reopen() {
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
        EventTime::from_micros(self.clock.now().get() / 1_000)
            .expect("64 bits of nanoseconds are fewer microseconds")
    }
}

/// How long to wait before the next decision: at random, so that two writers do not meet again, and longer from one to
/// the next.
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
