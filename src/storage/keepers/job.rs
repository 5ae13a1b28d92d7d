//! A request on its way to the thread that writes records, and the reply on its way back.

use tokio::sync::oneshot;

use super::record_error::RecordError;
use crate::conjunction::{ExternalId, GroupRequest, Grouped};
use crate::ledger::{
    GivenNumbers, KeyHash, LedgerRequest, Link, NumberRequest, VoidRequest, VoidedNumber,
};
use crate::minting::Durable;
use crate::storage::records::{AnchorKey, RecordPlan};

/// Events that were appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// Whether the same request was done before, so nothing was appended now.
    pub is_replayed: bool,
    /// The events in their chain.
    pub links: Vec<Link>,
}

/// What a request about numbers did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbered<T> {
    /// Whether the same request was done before, so nothing was written now.
    pub is_replayed: bool,
    /// The numbers that were given, or the one that is void.
    pub stored: T,
}

/// What is to be done, and who waits for it.
#[derive(Debug)]
pub(super) enum Job {
    Ledger(LedgerRequest, Caller<Appended>),
    Group(GroupRequest, Caller<Vec<Grouped>>),
    Externals(Externals, Caller<()>),
    Number(NumberRequest, Caller<Numbered<GivenNumbers>>),
    Void(VoidRequest, Caller<Numbered<VoidedNumber>>),
}

/// Ids of other originators, and the anchors to keep them beside.
pub(super) type Externals = Vec<(AnchorKey, ExternalId)>;

pub(super) type Caller<T> = oneshot::Sender<Result<T, RecordError>>;

impl Job {
    /// How many events, reports or numbers it has.
    pub(super) fn len(&self) -> usize {
        match self {
            Job::Ledger(request, _) => request.event_count(),
            Job::Group(request, _) => request.len(),
            Job::Externals(externals, _) => externals.len(),
            Job::Number(..) | Job::Void(..) => 1,
        }
    }

    /// The key of its request, if that is forgotten after a while.
    pub(super) fn key(&self) -> Option<KeyHash> {
        match self {
            Job::Ledger(request, _) => request.mark().map(|mark| mark.key),
            Job::Group(..) | Job::Externals(..) | Job::Number(..) | Job::Void(..) => None,
        }
    }

    /// Tells the caller that nothing was done.
    pub(super) fn refuse(self, error: RecordError) {
        match self {
            Job::Ledger(_, caller) => send(caller, Err(error)),
            Job::Group(_, caller) => send(caller, Err(error)),
            Job::Externals(_, caller) => send(caller, Err(error)),
            Job::Number(_, caller) => send(caller, Err(error)),
            Job::Void(_, caller) => send(caller, Err(error)),
        }
    }
}

/// A job that was decided on, and what its caller is told once the plans of its round are durable.
#[derive(Debug)]
pub(super) struct Reply {
    outcome: Outcome,
    /// How many plans of its round, from the first on, it may rest on: it must not be sent before they are durable.
    rests_on: usize,
}

/// The plans of a round that are durable: the first so many of them.
#[derive(Debug, Default)]
pub(super) struct DurablePlans(Vec<Durable<Vec<RecordPlan>>>);

impl DurablePlans {
    /// The next ones are durable, too.
    pub(super) fn add(&mut self, plans: Durable<Vec<RecordPlan>>) {
        self.0.push(plans);
    }

    fn count(&self) -> usize {
        self.0.iter().map(|plans| plans.plan().len()).sum()
    }
}

#[derive(Debug)]
pub(super) enum Outcome {
    Ledger(
        LedgerRequest,
        Caller<Appended>,
        Result<Appended, RecordError>,
    ),
    Group(
        GroupRequest,
        Caller<Vec<Grouped>>,
        Result<Vec<Grouped>, RecordError>,
    ),
    Externals(Externals, Caller<()>, Result<(), RecordError>),
    Number(
        NumberRequest,
        Caller<Numbered<GivenNumbers>>,
        Result<Numbered<GivenNumbers>, RecordError>,
    ),
    Void(
        VoidRequest,
        Caller<Numbered<VoidedNumber>>,
        Result<Numbered<VoidedNumber>, RecordError>,
    ),
}

impl Reply {
    pub(super) fn new(outcome: Outcome, rests_on: usize) -> Reply {
        Reply { outcome, rests_on }
    }

    /// Whether all that it may rest on is durable, once so many plans of its round are.
    pub(super) fn may_be_sent(&self, durable: &DurablePlans) -> bool {
        self.rests_on <= durable.count()
    }

    /// Sends it: everything that it may rest on is durable.
    ///
    /// # Panics
    /// When it is not.
    pub(super) fn send(self, durable: &DurablePlans) {
        assert!(
            self.may_be_sent(durable),
            "nobody is told of what may be lost"
        );
        self.outcome.send();
    }

    /// Sends it if it rests on no plan; else sends `error`, because the plans are not durable as far as is known.
    pub(super) fn send_without_plans(self, error: RecordError) {
        match self {
            Reply {
                outcome,
                rests_on: 0,
            } => outcome.send(),
            Reply { outcome, .. } => outcome.into_job().refuse(error),
        }
    }

    /// The job again, to be decided on anew: what was decided holds no longer.
    pub(super) fn into_job(self) -> Job {
        self.outcome.into_job()
    }
}

impl Outcome {
    fn send(self) {
        match self {
            Outcome::Ledger(_, caller, outcome) => send(caller, outcome),
            Outcome::Group(_, caller, outcome) => send(caller, outcome),
            Outcome::Externals(_, caller, outcome) => send(caller, outcome),
            Outcome::Number(_, caller, outcome) => send(caller, outcome),
            Outcome::Void(_, caller, outcome) => send(caller, outcome),
        }
    }

    fn into_job(self) -> Job {
        match self {
            Outcome::Ledger(request, caller, _) => Job::Ledger(request, caller),
            Outcome::Group(request, caller, _) => Job::Group(request, caller),
            Outcome::Externals(externals, caller, _) => Job::Externals(externals, caller),
            Outcome::Number(request, caller, _) => Job::Number(request, caller),
            Outcome::Void(request, caller, _) => Job::Void(request, caller),
        }
    }
}

/// A caller that has gone receives nothing, which changes nothing.
fn send<T>(caller: Caller<T>, outcome: Result<T, RecordError>) {
    drop(caller.send(outcome));
}
