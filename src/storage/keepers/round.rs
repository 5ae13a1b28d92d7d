//! What one transaction decides: jobs in the order of their arrival, each on top of those before it.

use std::collections::HashMap;

use super::job::{Appended, Job, Numbered, Outcome, Reply};
use super::record_error::{RecordError, log_unreadable, log_unwritten};
use crate::conjunction::{GroupRequest, Grouped, NewAnchors};
use crate::ledger::{
    AppendPlan, EventTime, GivenNumbers, Head, KeyHash, LedgerId, LedgerRequest, NumberPlan,
    NumberRequest, RequestMark, SeriesHead, SeriesName, VoidPlan, VoidRequest, VoidedNumber,
};
use crate::minting::Refusal;
use crate::storage::failure::StoreError;
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
pub(super) fn decide(
    records: &dyn RecordStore,
    now: Result<EventTime, Refusal>,
    jobs: Vec<Job>,
) -> Decided {
    let mut round = Round {
        records,
        known: known_requests(records, &jobs),
        now,
        plans: Vec::new(),
        heads: HashMap::new(),
        done: HashMap::new(),
        anchors: NewAnchors::default(),
        known_given: known_numbers(records, &jobs),
        given: HashMap::new(),
        series: HashMap::new(),
        voids: HashMap::new(),
    };
    let replies = jobs.into_iter().map(|job| round.decide(job)).collect();
    Decided {
        plans: round.plans,
        replies,
    }
}

/// The requests that were done before with the keys of these jobs. One that cannot be read is left to the job that asks for it.
fn known_requests(
    records: &dyn RecordStore,
    jobs: &[Job],
) -> Option<HashMap<KeyHash, DoneRequest>> {
    let keys: Vec<KeyHash> = jobs.iter().filter_map(Job::key).collect();
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

/// What was given before to the keys of these jobs; `None` if that cannot be read together.
fn known_numbers(
    records: &dyn RecordStore,
    jobs: &[Job],
) -> Option<HashMap<KeyHash, GivenNumbers>> {
    let of_job = |job: &Job| match job {
        Job::Number(request, _) => Some((request.series.clone(), request.mark.key)),
        Job::Ledger(..) | Job::Group(..) | Job::Externals(..) | Job::Void(..) => None,
    };
    let keys: Vec<(SeriesName, KeyHash)> = jobs.iter().filter_map(of_job).collect();
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
    /// What the keys of this round were given before; `None` if that could not be read together.
    known_given: Option<HashMap<KeyHash, GivenNumbers>>,
    /// What the plans give, by the keys of their requests.
    given: HashMap<KeyHash, GivenNumbers>,
    /// The heads of series after the plans.
    series: HashMap<SeriesName, SeriesHead>,
    /// The numbers that the plans make void.
    voids: HashMap<(SeriesName, u64), VoidedNumber>,
}

impl<'a> Round<'a> {
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
            Job::Externals(externals, caller) => {
                // They change nothing that is decided on, so they are written at once.
                let outcome = self
                    .records
                    .add_externals(&externals)
                    .map_err(|error| log_unwritten(&error));
                Outcome::Externals(externals, caller, outcome)
            }
            Job::Number(request, caller) => {
                let outcome = self.give(&request);
                Outcome::Number(request, caller, outcome)
            }
            Job::Void(request, caller) => {
                let outcome = self.make_void(&request);
                Outcome::Void(request, caller, outcome)
            }
        };
        Reply::new(outcome, self.plans.len())
    }

    fn append(&mut self, request: &LedgerRequest) -> Result<Appended, RecordError> {
        if let Some(replayed) = request
            .mark()
            .map(|mark| self.replay(mark))
            .transpose()?
            .flatten()
        {
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
        Ok(Appended {
            is_replayed: false,
            links,
        })
    }

    /// What the same request did before, if it was done before.
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
            None => self
                .records
                .request(mark.key)
                .map_err(|error| log_unreadable(&error))?,
        };
        let Some(done) = done else { return Ok(None) };
        match self
            .records
            .append(done.last)
            .map_err(|error| log_unreadable(&error))?
        {
            Some((append, links)) => replayed(append.mark, links),
            None => Ok(None),
        }
    }

    /// When the request is done, and so which ledger it is about. A ledger that may begin at any time begins at one whose
    /// id is free.
    fn time_and_ledger(
        &mut self,
        request: &LedgerRequest,
    ) -> Result<(EventTime, LedgerId), RecordError> {
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
        let head = self
            .records
            .head(ledger)
            .map_err(|error| log_unreadable(&error))?;
        self.heads.insert(ledger, head);
        Ok(head)
    }

    fn group(&mut self, request: &GroupRequest) -> Result<Vec<Grouped>, RecordError> {
        let stored = self
            .records
            .neighbours(request.format(), &mut request.keys())
            .map_err(|error| log_unreadable(&error))?;
        let (grouped, plans) = request
            .decide(&stored, &mut self.anchors)
            .map_err(RecordError::Group)?;
        self.plans.extend(plans.into_iter().map(RecordPlan::Anchor));
        Ok(grouped)
    }

    fn give(&mut self, request: &NumberRequest) -> Result<Numbered<GivenNumbers>, RecordError> {
        let (records, key) = (self.records, request.mark.key);
        let before = match (self.given.get(&key), &self.known_given) {
            (Some(planned), _) => Some(planned.clone()),
            (None, Some(known)) => known.get(&key).cloned(),
            (None, None) => read(records.given_to(&[(request.series.clone(), key)]))?
                .pop()
                .flatten(),
        };
        if let Some(before) = before {
            let stored = request.replay(before).map_err(RecordError::Number)?;
            return Ok(Numbered {
                is_replayed: true,
                stored,
            });
        }
        let now = self.now.clone().map_err(RecordError::Clock)?;
        let head = match self.series.get(&request.series) {
            Some(head) => Some(*head),
            None => read(records.series_head(&request.series))?,
        };
        let plan = NumberPlan::make(request, head, now).map_err(RecordError::Number)?;
        let stored = plan.given.clone();
        self.series.insert(stored.series.clone(), stored.head());
        self.given.insert(key, stored.clone());
        self.plans.push(RecordPlan::Number(plan));
        Ok(Numbered {
            is_replayed: false,
            stored,
        })
    }

    /// A number of this round is not known to anybody yet, and cannot be made void in it.
    fn make_void(&mut self, request: &VoidRequest) -> Result<Numbered<VoidedNumber>, RecordError> {
        let VoidRequest { series, number, .. } = request;
        let found = read(self.records.number(series, *number))?;
        let place = (series.clone(), *number);
        let before = self
            .voids
            .get(&place)
            .or(found.as_ref().and_then(|found| found.void.as_ref()));
        if let Some(before) = before {
            let stored = request.replay(before.clone()).map_err(RecordError::Void)?;
            return Ok(Numbered {
                is_replayed: true,
                stored,
            });
        }
        let now = self.now.clone().map_err(RecordError::Clock)?;
        let given = found.as_ref().map(|found| &found.given);
        let plan = VoidPlan::make(request, given, now).map_err(RecordError::Void)?;
        let stored = plan.void.clone();
        self.voids.insert(place, stored.clone());
        self.plans.push(RecordPlan::Void(plan));
        Ok(Numbered {
            is_replayed: false,
            stored,
        })
    }
}

/// What was read; that it cannot be is logged.
fn read<T>(found: Result<T, StoreError>) -> Result<T, RecordError> {
    found.map_err(|error| log_unreadable(&error))
}
