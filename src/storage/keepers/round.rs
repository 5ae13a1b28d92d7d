//! What one transaction decides: jobs in the order of their arrival, each on top of those before it.

use std::collections::HashMap;

use super::job::{Appended, Job, Outcome, Reply};
use super::record_error::{RecordError, log_unreadable};
use crate::conjunction::{GroupRequest, Grouped, NewAnchors};
use crate::ledger::{AppendPlan, EventTime, Head, KeyHash, LedgerId, LedgerRequest, RequestMark};
use crate::minting::Refusal;
use crate::storage::records::{DoneRequest, RecordPlan, RecordStore};

/// The plans of a round, and the replies to be sent once they are durable.
pub(super) struct Decided {
    pub(super) plans: Vec<RecordPlan>,
    pub(super) replies: Vec<Reply>,
}

/// Decides on jobs, on top of what is stored.
///
/// `now`: why nothing can be appended, if the clock cannot be
/// right.
pub(super) fn decide(records: &dyn RecordStore, now: Result<EventTime, Refusal>, jobs: Vec<Job>) -> Decided {
    let mut round = Round {
        records,
        known: known_requests(records, &jobs),
        now,
        plans: Vec::new(),
        heads: HashMap::new(),
        done: HashMap::new(),
        anchors: NewAnchors::default(),
    };
    let replies = jobs.into_iter().map(|job| round.decide(job)).collect();
    Decided { plans: round.plans, replies }
}

/// The requests that were done before with the keys of these jobs. One that cannot be read is left to whoever asks for it.
fn known_requests(records: &dyn RecordStore, jobs: &[Job]) -> Option<HashMap<KeyHash, DoneRequest>> {
    let keys: Vec<KeyHash> = jobs.iter().filter_map(Job::key).collect();
    if keys.is_empty() {
        return Some(HashMap::new());
    }
    let known = records.requests(&keys).ok()?;
    Some(known.into_iter().flatten().map(|done| (done.key, done)).collect())
}

struct Round<'a> {
    records: &'a dyn RecordStore,
    /// Of each key of this round the request that was done before, if it was; `None` if they could not be read together.
    known: Option<HashMap<KeyHash, DoneRequest>>,
    now: Result<EventTime, Refusal>,
    plans: Vec<RecordPlan>,
    /// The heads of ledgers that were asked for, as they are after the plans.
    heads: HashMap<LedgerId, Option<Head>>,
    /// The appends planned in this round, by their keys.
    done: HashMap<KeyHash, AppendPlan>,
    /// The anchors planned in this round.
    anchors: NewAnchors,
}

impl Round<'_> {
    fn decide(&mut self, job: Job) -> Reply {
        let outcome = match job {
            Job::Ledger(request, caller) => {
                let outcome = self.append(&request);
                Outcome::Ledger(request, caller, outcome)
            }
            Job::Group(request, caller) => {
                let outcome = self.group(&request);
                Outcome::Group(request, caller, outcome)
            }
        };
        Reply::new(outcome, self.plans.len())
    }

    fn append(&mut self, request: &LedgerRequest) -> Result<Appended, RecordError> {
        if let Some(replayed) = request.mark().map(|mark| self.replay(mark)).transpose()?.flatten() {
            return Ok(replayed);
        }
        let (now, ledger) = self.time_and_ledger(request)?;
        let head = self.head(ledger)?;
        let plan = AppendPlan::make(request, head, now).map_err(RecordError::Append)?;
        let links = plan.links().collect();
        self.heads.insert(ledger, Some(plan.head()));
        if let Some(mark) = plan.mark {
            self.done.insert(mark.key, plan.clone());
        }
        self.plans.push(RecordPlan::Append(plan));
        Ok(Appended { is_replayed: false, links })
    }

    /// What the same request did before, if it was done before.
    fn replay(&self, mark: RequestMark) -> Result<Option<Appended>, RecordError> {
        let replayed = |done: Option<RequestMark>, links| match done == Some(mark) {
            true => Ok(Some(Appended { is_replayed: true, links })),
            false => Err(RecordError::KeyConflict),
        };
        if let Some(plan) = self.done.get(&mark.key) {
            return replayed(plan.mark, plan.links().collect());
        }
        let done = match &self.known {
            Some(known) => known.get(&mark.key).copied(),
            None => self.records.request(mark.key).map_err(|error| log_unreadable(&error))?,
        };
        let Some(done) = done else { return Ok(None) };
        match self.records.append(done.last).map_err(|error| log_unreadable(&error))? {
            Some((append, links)) => replayed(append.mark, links),
            None => Ok(None),
        }
    }

    /// When the request is done, and so which ledger it is about. A ledger that may begin at any time begins at one whose
    /// id is free.
    fn time_and_ledger(&mut self, request: &LedgerRequest) -> Result<(EventTime, LedgerId), RecordError> {
        let mut now = self.now.clone().map_err(RecordError::Clock)?;
        loop {
            let ledger = request.ledger_at(now);
            if !request.ledger_depends_on_time() || self.head(ledger)?.is_none() {
                return Ok((now, ledger));
            }
            now = now.next().expect("the clock is not at the end of time");
        }
    }

    fn head(&mut self, ledger: LedgerId) -> Result<Option<Head>, RecordError> {
        if let Some(head) = self.heads.get(&ledger) {
            return Ok(*head);
        }
        let head = self.records.head(ledger).map_err(|error| log_unreadable(&error))?;
        self.heads.insert(ledger, head);
        Ok(head)
    }

    fn group(&mut self, request: &GroupRequest) -> Result<Vec<Grouped>, RecordError> {
        let stored =
            self.records.neighbours(request.format(), &mut request.keys()).map_err(|error| log_unreadable(&error))?;
        let (grouped, plans) = request.decide(&stored, &mut self.anchors).map_err(RecordError::Group)?;
        self.plans.extend(plans.into_iter().map(RecordPlan::Anchor));
        Ok(grouped)
    }
}
