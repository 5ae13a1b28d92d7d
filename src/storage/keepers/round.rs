//! What one transaction decides: orders in the order of their arrival, each on top of those before it.

use std::collections::HashMap;

use tokio::sync::oneshot;

use super::key_index::KeyIndex;
use super::record_keeper::{Appended, Job, RecordError, unreadable};
use crate::conjunction::{GroupRequest, Grouped, NewAnchors};
use crate::ledger::{AppendPlan, EventTime, Head, KeyHash, LedgerId, LedgerRequest, RequestMark};
use crate::minting::Durable;
use crate::storage::embedded::Records;
use crate::storage::record_plan::RecordPlan;

/// The plans of a round, and what is said to each caller once they are durable.
pub(in crate::storage) struct Decided {
    pub(in crate::storage) plans: Vec<RecordPlan>,
    pub(in crate::storage) answers: Vec<Answer>,
}

/// What is said to one caller.
pub(in crate::storage) struct Answer {
    say: Say,
    /// Whether it may rest on a plan, and so must not be said before that is durable.
    rests_on_plans: bool,
}

enum Say {
    Ledger(Result<Appended, RecordError>, oneshot::Sender<Result<Appended, RecordError>>),
    Group(Result<Vec<Grouped>, RecordError>, oneshot::Sender<Result<Vec<Grouped>, RecordError>>),
}

impl Answer {
    /// Says it. A caller that has gone hears nothing, which changes nothing.
    pub(in crate::storage) fn say(self, _: &Durable<Vec<RecordPlan>>) {
        self.say.say();
    }

    /// The plans may be durable or not: says so to everyone whose answer rests on them.
    pub(in crate::storage) fn say_unknown(self) {
        if !self.rests_on_plans {
            return self.say.say();
        }
        match self.say {
            Say::Ledger(_, caller) => Say::Ledger(Err(RecordError::Unknown), caller).say(),
            Say::Group(_, caller) => Say::Group(Err(RecordError::Unknown), caller).say(),
        }
    }
}

impl Say {
    fn say(self) {
        match self {
            Say::Ledger(outcome, caller) => drop(caller.send(outcome)),
            Say::Group(outcome, caller) => drop(caller.send(outcome)),
        }
    }
}

impl Job {
    /// Nothing is done.
    pub(in crate::storage) fn refuse(self, error: RecordError) {
        match self {
            Job::Ledger(_, caller) => Say::Ledger(Err(error), caller).say(),
            Job::Group(_, caller) => Say::Group(Err(error), caller).say(),
        }
    }
}

/// Decides on jobs, on top of what is stored.
pub(in crate::storage) fn decide(records: &Records, keys: &KeyIndex, now: EventTime, jobs: Vec<Job>) -> Decided {
    let mut round = Round {
        records,
        keys,
        now,
        plans: Vec::new(),
        heads: HashMap::new(),
        done: HashMap::new(),
        anchors: NewAnchors::default(),
    };
    let answers = jobs.into_iter().map(|job| round.take(job)).collect();
    Decided { plans: round.plans, answers }
}

struct Round<'a> {
    records: &'a Records,
    keys: &'a KeyIndex,
    now: EventTime,
    plans: Vec<RecordPlan>,
    /// The heads of ledgers that were asked for, as they are after the plans.
    heads: HashMap<LedgerId, Option<Head>>,
    /// The appends planned in this round, by their keys.
    done: HashMap<KeyHash, AppendPlan>,
    /// The anchors planned in this round.
    anchors: NewAnchors,
}

impl Round<'_> {
    fn take(&mut self, job: Job) -> Answer {
        let say = match job {
            Job::Ledger(order, caller) => Say::Ledger(self.append(&order), caller),
            Job::Group(order, caller) => Say::Group(self.group(&order), caller),
        };
        Answer { say, rests_on_plans: !self.plans.is_empty() }
    }

    fn append(&mut self, order: &LedgerRequest) -> Result<Appended, RecordError> {
        if let Some(replayed) = order.mark().map(|mark| self.replay(mark)).transpose()?.flatten() {
            return Ok(replayed);
        }
        let (now, ledger) = self.time_and_ledger(order)?;
        let head = self.head(ledger)?;
        let plan = AppendPlan::make(order, head, now).map_err(RecordError::Append)?;
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
        let Some(last) = self.keys.get(mark.key) else { return Ok(None) };
        match self.records.append(last).map_err(|error| unreadable(&error))? {
            Some((row, links)) => replayed(row.mark, links),
            None => Ok(None),
        }
    }

    /// When the order is done, and so which ledger it is about. A ledger that may begin at any time begins at one whose
    /// id is free.
    fn time_and_ledger(&mut self, order: &LedgerRequest) -> Result<(EventTime, LedgerId), RecordError> {
        let mut now = self.now;
        loop {
            let ledger = order.ledger_at(now);
            if !order.ledger_depends_on_time() || self.head(ledger)?.is_none() {
                return Ok((now, ledger));
            }
            now = now.next().expect("the clock is not at the end of time");
        }
    }

    fn head(&mut self, ledger: LedgerId) -> Result<Option<Head>, RecordError> {
        if let Some(head) = self.heads.get(&ledger) {
            return Ok(*head);
        }
        let head = self.records.head(ledger).map_err(|error| unreadable(&error))?;
        self.heads.insert(ledger, head);
        Ok(head)
    }

    fn group(&mut self, order: &GroupRequest) -> Result<Vec<Grouped>, RecordError> {
        let stored = self.records.neighbours(order.format(), order.keys()).map_err(|error| unreadable(&error))?;
        let (grouped, plans) = order.decide(&stored, &mut self.anchors).map_err(RecordError::Group)?;
        self.plans.extend(plans.into_iter().map(RecordPlan::Anchor));
        Ok(grouped)
    }
}
