//! Decides on the requests of one round, which are written together. The requests are decided in
//! the order in which they arrived, and each decision takes the earlier decisions into account.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::job::{AnyJob, Reply, Request};
use super::record_error::{RecordError, log_unreadable, log_unwritten};
use super::report_counts::ReportTallies;
use crate::failure::{FailureKind, StoreError};
use crate::records::{
    AnchorKey, DoneRequest, RecordPlan, RecordStore, SeriesState, WrittenDay, recorded_min,
};
use idmint_core::minting::Refusal;
use idmint_records::conjunction::{ExternalId, GroupRequest, Grouped, NewAnchors};
use idmint_records::ledger::{
    AppendPlan, ClosePlan, CloseRequest, ClosedSeries, EventTime, GivenNumbers, Head, KeyHash,
    LedgerId, LedgerRequest, Link, NumberForm, NumberPlan, NumberRefusal, NumberRequest,
    RequestMark, ResumeRequest, SeriesHead, SeriesName, VoidPlan, VoidRequest, VoidedNumber,
};

/// The events that a ledger request has appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// `true` if the same request was done before. In that case, no event was appended this time.
    pub is_replayed: bool,
    /// The events, each with the id of the event before it in the ledger.
    pub links: Vec<Link>,
}

/// The outcome of a request about numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbered<T> {
    /// `true` if the same request was done before. In that case, no record was written this time.
    pub is_replayed: bool,
    /// The stored result: the issued numbers, the number marked as unused, or the closed series.
    pub stored: T,
    /// The text form that was stored with the numbers. `None` if an earlier version issued them, or
    /// if they have no text.
    pub form: Option<NumberForm>,
}

/// External ids, each with the key of its conjunction.
type Externals = Vec<(AnchorKey, ExternalId)>;

/// The plans for requests that are written together, and the replies to send once these plans are
/// durable.
pub(super) struct Decided {
    pub(super) plans: Vec<RecordPlan>,
    pub(super) replies: Vec<Reply>,
    /// The error of the store, if an immediate write failed while the requests were decided. The
    /// process must end because of this error.
    pub(super) failed: Option<StoreError>,
}

/// The current time, to be recorded in new records. If the clock must not be used for a kind of
/// record, the field for this kind has the reason instead, and no such record is written.
#[derive(Debug)]
pub(super) struct RoundTimes<'a> {
    /// The time to record in new events of ledgers.
    pub(super) event: Result<EventTime, Refusal>,
    /// The time to record in changes of number series, or `Err` if the clock is certainly wrong.
    pub(super) number: Result<EventTime, Refusal>,
    /// The days on which request keys had been recorded before this process's first append, which
    /// reads them. If the clock shows an earlier day than the last of these days, the clock is
    /// probably behind.
    pub(super) earlier_days: &'a OnceCell<Vec<WrittenDay>>,
}

/// Decides which records to write for the jobs, based on the stored records.
pub(super) fn decide(
    records: &dyn RecordStore,
    times: RoundTimes<'_>,
    jobs: Vec<AnyJob>,
) -> Decided {
    let mut round = Round::new(records, times, &jobs);
    let mut replies = Vec::with_capacity(jobs.len());
    for mut job in jobs {
        job.decide(&mut round);
        replies.push(Reply::new(job, round.plans.len()));
    }
    Decided {
        plans: round.plans,
        replies,
        failed: round.failed,
    }
}

/// Replies to jobs while the store cannot be written. A job that needs a write is refused. All
/// others get their outcome, for example the response to an earlier request with the same key.
///
/// If the refusal is [`RecordError::Unknown`], the records of these jobs may already be stored. A
/// new decision may then refuse a job because of its own stored records. So only granted jobs get
/// their outcome, and all others get `Unknown`.
pub(super) fn answer_without_writing(
    records: &dyn RecordStore,
    times: RoundTimes<'_>,
    jobs: Vec<AnyJob>,
    refusal: &RecordError,
) {
    let mut round = Round::new(records, times, &jobs);
    round.refusal = Some(refusal.clone());
    for mut job in jobs {
        job.decide(&mut round);
        let is_certain = job.is_granted() || *refusal != RecordError::Unknown;
        if round.plans.is_empty() && is_certain {
            job.send();
        } else {
            job.refuse(refusal.clone());
            round.forget_plans();
        }
    }
}

/// Looks up, in a single read, the earlier requests with the same idempotency keys as these jobs.
/// Returns `None` if that read fails. Each job then looks up its own key, and reports the error if
/// the lookup fails.
fn known_requests(
    records: &dyn RecordStore,
    jobs: &[AnyJob],
) -> Option<HashMap<KeyHash, DoneRequest>> {
    let keys: Vec<KeyHash> = jobs.iter().filter_map(|job| job.ledger_key()).collect();
    if keys.is_empty() {
        return Some(HashMap::new());
    }
    let known = records.requests(&keys).ok()?;
    Some(
        known
            .into_iter()
            .flatten()
            .map(|done| (done.key, done))
            .collect(),
    )
}

/// Looks up the numbers issued earlier to the idempotency keys of these jobs in a single read.
/// Returns `None` if the read fails. Each job then looks up its own key.
fn known_numbers(
    records: &dyn RecordStore,
    jobs: &[AnyJob],
) -> Option<HashMap<KeyHash, GivenNumbers>> {
    let keys: Vec<(SeriesName, KeyHash)> = jobs.iter().filter_map(|job| job.number_key()).collect();
    if keys.is_empty() {
        return Some(HashMap::new());
    }
    let known = records.given_to(&keys).ok()?;
    Some(
        known
            .into_iter()
            .flatten()
            .map(|given| (given.mark.key, given))
            .collect(),
    )
}

/// The decisions made so far on the requests of one round, which are written together.
pub(super) struct Round<'a> {
    records: &'a dyn RecordStore,
    /// The earlier requests with the same idempotency keys as the current requests. `None` if the
    /// combined look-up failed. Each request then looks up its own key.
    known: Option<HashMap<KeyHash, DoneRequest>>,
    times: RoundTimes<'a>,
    plans: Vec<RecordPlan>,
    /// The last event of each ledger that was looked up so far. It may be an event that is planned
    /// but not written yet.
    heads: HashMap<LedgerId, Option<Head>>,
    /// The appends that are planned in this round, by request key.
    done: HashMap<KeyHash, AppendPlan>,
    /// The anchors of new conjunctions that are planned in this round.
    anchors: NewAnchors,
    /// The numbers that were issued earlier to the idempotency keys of the current requests. `None`
    /// if the combined look-up failed. Each request then looks up its own key.
    known_given: Option<HashMap<KeyHash, GivenNumbers>>,
    /// The numbers to issue, with their text form, by idempotency key.
    given: HashMap<KeyHash, (GivenNumbers, Option<NumberForm>)>,
    /// The last number of each series in which the plans of this round issue or skip numbers.
    series: HashMap<SeriesName, SeriesHead>,
    /// The series that the plans of this round close.
    closed: HashMap<SeriesName, ClosedSeries>,
    /// The numbers that the plans of this round void.
    voids: HashMap<(SeriesName, u64), VoidedNumber>,
    /// The error for requests that need a write, or `None` while the store can be written. A
    /// repeated request needs no write.
    refusal: Option<RecordError>,
    /// The error of the first immediate write in which the store failed. The process must end
    /// because of this error.
    failed: Option<StoreError>,
}

impl<'a> Round<'a> {
    fn new(records: &'a dyn RecordStore, times: RoundTimes<'a>, jobs: &[AnyJob]) -> Round<'a> {
        Round {
            records,
            known: known_requests(records, jobs),
            times,
            plans: Vec::new(),
            heads: HashMap::new(),
            done: HashMap::new(),
            anchors: NewAnchors::default(),
            known_given: known_numbers(records, jobs),
            given: HashMap::new(),
            series: HashMap::new(),
            closed: HashMap::new(),
            voids: HashMap::new(),
            refusal: None,
            failed: None,
        }
    }

    /// Drops all decisions of this round, so that they do not affect the next request.
    fn forget_plans(&mut self) {
        self.plans.clear();
        self.heads.clear();
        self.done.clear();
        self.anchors = NewAnchors::default();
        self.given.clear();
        self.series.clear();
        self.closed.clear();
        self.voids.clear();
    }
}

impl Request for LedgerRequest {
    type Outcome = Appended;

    fn item_count(&self) -> usize {
        self.event_count()
    }

    fn ledger_key(&self) -> Option<KeyHash> {
        self.mark().map(|mark| mark.key)
    }

    fn decide(&self, round: &mut Round<'_>) -> Result<Appended, RecordError> {
        let replayed = self.mark().map(|mark| round.replay(mark)).transpose()?;
        if let Some(replayed) = replayed.flatten() {
            return Ok(replayed);
        }
        let (now, ledger) = round.time_and_ledger(self)?;
        let head = round.head(ledger)?;
        let mut plan = AppendPlan::make(self, head, now).map_err(RecordError::Append)?;
        plan.recorded = plan.recorded.max(round.recorded_min(now)?);
        let links = plan.links().collect();
        round.heads.insert(ledger, Some(plan.head()));
        if let Some(mark) = plan.mark {
            round.done.insert(mark.key, plan.clone());
        }
        round.plans.push(RecordPlan::Append(plan));
        Ok(Appended {
            is_replayed: false,
            links,
        })
    }
}

impl Round<'_> {
    /// Returns the events that the same request has appended earlier, or `None` if the request was
    /// not done before.
    fn replay(&self, mark: RequestMark) -> Result<Option<Appended>, RecordError> {
        let replayed = |done: Option<RequestMark>, links| match done == Some(mark) {
            true => Ok(Some(Appended {
                is_replayed: true,
                links,
            })),
            false => Err(RecordError::KeyConflict),
        };
        if let Some(plan) = self.done.get(&mark.key) {
            return replayed(plan.mark, plan.links().collect());
        }
        let done = match &self.known {
            Some(known) => known.get(&mark.key).copied(),
            None => read(self.records.request(mark.key))?,
        };
        let Some(done) = done else { return Ok(None) };
        match read(self.records.append(done.last))? {
            Some((append, links)) => replayed(append.mark, links),
            None => Ok(None),
        }
    }

    /// Returns the time to record for the request, and the ledger of the request. The id of a new
    /// ledger may depend on the time. If a ledger with that id exists already, a slightly later
    /// time is used.
    fn time_and_ledger(
        &mut self,
        request: &LedgerRequest,
    ) -> Result<(EventTime, LedgerId), RecordError> {
        let mut now = self.times.event.clone().map_err(RecordError::Clock)?;
        loop {
            let ledger = request.ledger_at(now);
            if !request.ledger_depends_on_time() || self.head(ledger)?.is_none() {
                return Ok((now, ledger));
            }
            now = now.next().expect("the clock is not at the end of time");
        }
    }

    /// Returns the earliest time at which to record an append if the clock shows `now`. The result
    /// is later than `now` if the days of earlier request keys show that the clock is behind.
    fn recorded_min(&self, now: EventTime) -> Result<EventTime, RecordError> {
        let days = match self.times.earlier_days.get() {
            Some(days) => days,
            None => {
                let days = read(self.records.request_days())?;
                self.times.earlier_days.get_or_init(|| days)
            }
        };
        Ok(recorded_min(days, now))
    }

    /// Writes immediately, and keeps the error if the store has failed.
    fn write_now(
        &mut self,
        write: impl FnOnce(&dyn RecordStore) -> Result<(), StoreError>,
    ) -> Result<(), RecordError> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        write(self.records).map_err(|error| {
            let refusal = log_unwritten(&error);
            if error.failure_kind() == FailureKind::NotUsable {
                self.failed.get_or_insert(error);
            }
            refusal
        })
    }

    fn head(&mut self, ledger: LedgerId) -> Result<Option<Head>, RecordError> {
        if let Some(head) = self.heads.get(&ledger) {
            return Ok(*head);
        }
        let head = read(self.records.head(ledger))?;
        self.heads.insert(ledger, head);
        Ok(head)
    }
}

impl Request for Arc<GroupRequest> {
    type Outcome = Vec<Grouped>;

    fn item_count(&self) -> usize {
        self.len()
    }

    fn decide(&self, round: &mut Round<'_>) -> Result<Vec<Grouped>, RecordError> {
        let stored = read(round.records.neighbours(self.format(), &mut self.keys()))?;
        let (grouped, plans) =
            GroupRequest::decide(self, &stored, &mut round.anchors).map_err(RecordError::Group)?;
        round
            .plans
            .extend(plans.into_iter().map(RecordPlan::Anchor));
        Ok(grouped)
    }
}

impl Request for Externals {
    type Outcome = ();

    fn item_count(&self) -> usize {
        self.len()
    }

    /// Writes the external ids immediately. They need not wait for the records of the other
    /// requests in the round, because no decision depends on external ids.
    fn decide(&self, round: &mut Round<'_>) -> Result<(), RecordError> {
        round.write_now(|records| records.add_externals(self))
    }
}

/// A request to write the report counts that are not stored yet.
impl Request for Arc<ReportTallies> {
    type Outcome = ();

    /// Writes the report counts immediately. They need not wait for the records of the other
    /// requests in the round, because no decision depends on report counts.
    fn decide(&self, round: &mut Round<'_>) -> Result<(), RecordError> {
        round.write_now(|records| self.write(|counts| records.add_reports(counts)))
    }
}

/// A request to end the hold on one series, or on all series if the value is `None`. A hold stops
/// series from issuing numbers after a restore.
#[derive(Debug)]
pub(super) struct HoldEnd(pub(super) Option<SeriesName>);

impl Request for HoldEnd {
    type Outcome = ();

    fn decide(&self, round: &mut Round<'_>) -> Result<(), RecordError> {
        round.write_now(|records| records.end_hold(self.0.as_ref()))
    }
}

impl Request for NumberRequest {
    type Outcome = Numbered<GivenNumbers>;

    fn number_key(&self) -> Option<(SeriesName, KeyHash)> {
        Some((self.series.clone(), self.mark.key))
    }

    fn decide(&self, round: &mut Round<'_>) -> Result<Numbered<GivenNumbers>, RecordError> {
        let (records, key) = (round.records, self.mark.key);
        if let Some((planned, form)) = round.given.get(&key) {
            let stored = self.replay(planned.clone()).map_err(RecordError::Number)?;
            return Ok(Numbered {
                is_replayed: true,
                stored,
                form: form.clone(),
            });
        }
        let before = match &round.known_given {
            Some(known) => known.get(&key).cloned(),
            None => read(records.given_to(&[(self.series.clone(), key)]))?
                .pop()
                .flatten(),
        };
        if let Some(before) = before {
            let stored = self.replay(before).map_err(RecordError::Number)?;
            return Ok(Numbered {
                is_replayed: true,
                form: read(records.form_at(&stored.series, stored.first))?,
                stored,
            });
        }
        // Report a closed series even during a hold, because resuming the series would not help.
        let head = round.open_series(&self.series)?;
        if read(records.is_held(&self.series))? {
            return Err(RecordError::Number(NumberRefusal::Held {
                series: self.series.clone(),
            }));
        }
        let now = round.times.number.clone().map_err(RecordError::Clock)?;
        let plan = match (self.instead_of, head) {
            (Some(wrong), Some(head)) => {
                let found = round.not_void(&self.series, wrong)?;
                NumberPlan::correct(self, wrong, head, found, now)
            }
            _ => NumberPlan::make(self, head, now),
        };
        let plan = plan.map_err(RecordError::Number)?;
        let (stored, form) = (plan.given.clone(), plan.form.clone());
        round.series.insert(stored.series.clone(), stored.head());
        round.given.insert(key, (stored.clone(), form.clone()));
        round.plans.push(RecordPlan::Number(plan));
        Ok(Numbered {
            is_replayed: false,
            stored,
            form,
        })
    }
}

impl Round<'_> {
    /// Returns the last number of a series. For a closed series, also returns when and by whom it
    /// was closed. Changes that are planned but not written yet count as written.
    fn series_state(&self, series: &SeriesName) -> Result<SeriesState, RecordError> {
        let planned = (self.series.get(series), self.closed.get(series));
        if let (Some(head), None) = planned {
            let (head, closed) = (Some(*head), None);
            return Ok(SeriesState { head, closed });
        }
        let stored = read(self.records.series_state(series))?;
        Ok(SeriesState {
            head: planned.0.copied().or(stored.head),
            closed: planned.1.cloned().or(stored.closed),
        })
    }

    /// Returns the last number of a series that must be open. Changes that are planned but not
    /// written yet count as written.
    ///
    /// # Errors
    /// Returns [`NumberRefusal::Closed`] if the series is closed.
    fn open_series(&self, series: &SeriesName) -> Result<Option<SeriesHead>, RecordError> {
        let SeriesState { head, closed } = self.series_state(series)?;
        match closed {
            Some(closed) => Err(RecordError::Number(NumberRefusal::Closed(closed))),
            None => Ok(head),
        }
    }

    /// Returns all numbers of the request that received this number. Returns `None` if the number
    /// is void or is not stored.
    fn not_void(
        &self,
        series: &SeriesName,
        number: u64,
    ) -> Result<Option<GivenNumbers>, RecordError> {
        let found = read(self.records.number(series, number))?;
        let is_void = self.voids.contains_key(&(series.clone(), number));
        Ok(found
            .filter(|found| found.void.is_none() && !is_void)
            .map(|found| found.given))
    }

    /// `true` if a planned write replaces this number. Only the wrong first number of a series can
    /// be replaced.
    fn is_removed(&self, series: &SeriesName, number: u64) -> bool {
        let mut removed = self.plans.iter().filter_map(RecordPlan::replaces);
        removed.any(|wrong| wrong.series == *series && wrong.last == number)
    }
}

impl Request for ResumeRequest {
    /// The numbers that the resumed series skips, or `None` if it skips no number.
    type Outcome = Option<GivenNumbers>;

    /// Plans to skip the numbers below `self.from`, where the series continues after a restore.
    /// Once the plan is durable, the sender of the request lets the series issue numbers again.
    fn decide(&self, round: &mut Round<'_>) -> Result<Option<GivenNumbers>, RecordError> {
        let now = round.times.number.clone().map_err(RecordError::Clock)?;
        let SeriesState { head, closed } = round.series_state(&self.series)?;
        let next = head.map_or(self.bounds.start, |head| head.last.saturating_add(1));
        if let Some(closed) = closed.filter(|_| self.from > next) {
            return Err(RecordError::Number(NumberRefusal::Closed(closed)));
        }
        if next != self.from && !read(round.records.is_held(&self.series))? {
            return Err(RecordError::Number(NumberRefusal::NotHeld {
                series: self.series.clone(),
                from: self.from,
                next,
            }));
        }
        let Some(plan) = self.plan(head, now).map_err(RecordError::Number)? else {
            return Ok(None);
        };
        let skipped = plan.given.clone();
        round.series.insert(skipped.series.clone(), skipped.head());
        round.plans.push(RecordPlan::Number(plan));
        Ok(Some(skipped))
    }
}

impl Request for VoidRequest {
    type Outcome = Numbered<VoidedNumber>;

    /// Looks up the number only among the stored numbers. The request cannot mean a number that is
    /// planned but not stored yet, because no caller has received such a number.
    fn decide(&self, round: &mut Round<'_>) -> Result<Numbered<VoidedNumber>, RecordError> {
        let found = read(round.records.number(&self.series, self.number))?;
        let found = found.filter(|_| !round.is_removed(&self.series, self.number));
        let place = (self.series.clone(), self.number);
        let before = round
            .voids
            .get(&place)
            .or(found.as_ref().and_then(|found| found.void.as_ref()));
        if let Some(before) = before {
            let stored = self.replay(before.clone()).map_err(RecordError::Void)?;
            return Ok(Numbered {
                is_replayed: true,
                form: read(round.records.form_at(&self.series, self.number))?,
                stored,
            });
        }
        let now = round.times.number.clone().map_err(RecordError::Clock)?;
        let form = read(round.records.form_at(&self.series, self.number))?;
        let given = found.as_ref().map(|found| &found.given);
        let plan = VoidPlan::make(self, given, now).map_err(RecordError::Void)?;
        let stored = plan.void.clone();
        round.voids.insert(place, stored.clone());
        round.plans.push(RecordPlan::Void(plan));
        Ok(Numbered {
            is_replayed: false,
            stored,
            form,
        })
    }
}

impl Request for CloseRequest {
    type Outcome = Numbered<ClosedSeries>;

    fn decide(&self, round: &mut Round<'_>) -> Result<Numbered<ClosedSeries>, RecordError> {
        let SeriesState { head, closed } = round.series_state(&self.series)?;
        if let Some(stored) = closed {
            return Ok(Numbered {
                is_replayed: true,
                stored,
                form: None,
            });
        }
        // Refuse to close a series that is on hold after a restore. Closing records the last number
        // of the series, but the store may have lost the latest numbers.
        if read(round.records.is_held(&self.series))? {
            return Err(RecordError::Number(NumberRefusal::Held {
                series: self.series.clone(),
            }));
        }
        let now = round.times.number.clone().map_err(RecordError::Clock)?;
        let plan = ClosePlan::make(self, head, now);
        let stored = plan.closed.clone();
        round.closed.insert(stored.series.clone(), stored.clone());
        round.plans.push(RecordPlan::Close(plan));
        Ok(Numbered {
            is_replayed: false,
            stored,
            form: None,
        })
    }
}

/// Logs the error if reading the store has failed, and converts it to the error for the caller.
fn read<T>(found: Result<T, StoreError>) -> Result<T, RecordError> {
    found.map_err(|error| log_unreadable(&error))
}
