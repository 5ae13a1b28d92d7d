//! The requests that callers send to the record writer thread, and the outcomes that it sends back.

use std::fmt::Debug;

use tokio::sync::oneshot;

use super::record_error::RecordError;
use super::round::Round;
use crate::records::RecordPlan;
use idmint_core::minting::Durable;
use idmint_records::ledger::{KeyHash, SeriesName};

/// A request to the writer thread. The thread takes a batch of requests, which is called a round.
/// It decides for each request in turn which records to write, and then writes the records of the
/// round together.
pub(super) trait Request: Debug + Send + 'static {
    /// The type of the result that the caller receives if the request is not refused.
    type Outcome: Debug + Send;

    /// Returns the number of events, reports or ids in the request. The sum over the requests of
    /// one round, which are written together, is limited.
    fn item_count(&self) -> usize {
        1
    }

    /// Returns the idempotency key, if this is a ledger request with a key.
    fn ledger_key(&self) -> Option<KeyHash> {
        None
    }

    /// Returns the series and the idempotency key, if this is a request for numbers.
    fn number_key(&self) -> Option<(SeriesName, KeyHash)> {
        None
    }

    /// Decides on the request, as if the plans of the earlier requests in the round were already
    /// written. Adds the plans for this request to the round.
    ///
    /// # Errors
    /// Returns [`RecordError`] if the request is refused. In that case the round has no plan for
    /// the request.
    fn decide(&self, round: &mut Round<'_>) -> Result<Self::Outcome, RecordError>;
}

/// A request, the caller that waits for the outcome, and the outcome once the request is decided.
#[derive(Debug)]
struct Job<R: Request> {
    request: R,
    caller: Caller<R::Outcome>,
    outcome: Option<Result<R::Outcome, RecordError>>,
}

/// The channel on which a caller receives the outcome. If the caller has gone, the outcome is
/// dropped.
pub(super) type Caller<T> = oneshot::Sender<Result<T, RecordError>>;

/// A request of any type, with the caller that waits for its outcome.
pub(super) type AnyJob = Box<dyn Work>;

/// Boxes a request with its caller, so that requests of all types can wait in the same queue.
pub(super) fn job<R: Request>(request: R, caller: Caller<R::Outcome>) -> AnyJob {
    Box::new(Job {
        request,
        caller,
        outcome: None,
    })
}

/// The operations on a job: a request of any type, with the caller that waits for its outcome.
pub(super) trait Work: Debug + Send {
    /// Returns the [`Request::item_count`] of the job's request.
    fn item_count(&self) -> usize;

    /// Returns the [`Request::ledger_key`] of the job's request.
    fn ledger_key(&self) -> Option<KeyHash>;

    /// Returns the [`Request::number_key`] of the job's request.
    fn number_key(&self) -> Option<(SeriesName, KeyHash)>;

    /// Decides which records to write for this job's request, after the earlier decisions in
    /// `round`. Keeps the outcome in the job, in place of an earlier outcome.
    fn decide(&mut self, round: &mut Round<'_>);

    /// `true` if the last decision did not refuse the request.
    fn is_granted(&self) -> bool;

    /// Sends the outcome of the last decision on the request to the caller.
    ///
    /// # Panics
    /// Panics if the request was not decided.
    fn send(self: Box<Self>);

    /// Drops the outcome that was decided, if any, and sends `error` to the caller instead.
    fn refuse(self: Box<Self>, error: RecordError);
}

impl<R: Request> Work for Job<R> {
    fn item_count(&self) -> usize {
        self.request.item_count()
    }

    fn ledger_key(&self) -> Option<KeyHash> {
        self.request.ledger_key()
    }

    fn number_key(&self) -> Option<(SeriesName, KeyHash)> {
        self.request.number_key()
    }

    fn decide(&mut self, round: &mut Round<'_>) {
        self.outcome = Some(self.request.decide(round));
    }

    fn is_granted(&self) -> bool {
        matches!(self.outcome, Some(Ok(_)))
    }

    fn send(self: Box<Self>) {
        let outcome = self.outcome.expect("a reply is made of a decided job");
        drop(self.caller.send(outcome));
    }

    fn refuse(self: Box<Self>, error: RecordError) {
        drop(self.caller.send(Err(error)));
    }
}

/// A decided job with its outcome. The outcome is sent to the caller once all records on which it
/// depends are durable.
#[derive(Debug)]
pub(super) struct Reply {
    job: AnyJob,
    /// The number of plans in the round after this job was decided. The reply is sent once all of
    /// these plans are durable.
    rests_on: usize,
}

/// The plans of one round that are already durable. Plans become durable in order, in one or more
/// writes.
#[derive(Debug, Default)]
pub(super) struct DurablePlans(Vec<Durable<Vec<RecordPlan>>>);

impl DurablePlans {
    /// Adds the plans that have just become durable. They come directly after the plans that were
    /// added before.
    pub(super) fn add(&mut self, plans: Durable<Vec<RecordPlan>>) {
        self.0.push(plans);
    }

    fn count(&self) -> usize {
        self.0.iter().map(|plans| plans.plan().len()).sum()
    }
}

impl Reply {
    pub(super) fn new(job: AnyJob, rests_on: usize) -> Reply {
        Reply { job, rests_on }
    }

    /// `true` if all plans that the outcome may depend on are durable.
    pub(super) fn may_be_sent(&self, durable: &DurablePlans) -> bool {
        self.rests_on <= durable.count()
    }

    /// Sends the outcome to the caller that waits for it.
    ///
    /// # Panics
    /// Panics if the outcome depends on a write that is not durable yet.
    pub(super) fn send(self, durable: &DurablePlans) {
        assert!(
            self.may_be_sent(durable),
            "nobody is told of what may be lost"
        );
        self.job.send();
    }

    /// Returns the job without sending its outcome, so that the writer thread can decide on its
    /// request again. This is necessary if the job's records may be missing in the store.
    pub(super) fn into_job(self) -> AnyJob {
        self.job
    }
}
