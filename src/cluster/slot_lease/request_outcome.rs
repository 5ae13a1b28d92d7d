//! What became of a request to the coordinator, as it is counted.

use super::exchange::Reply;
use crate::storage::{CoordinatorError, Outcome};

/// What became of a request to the coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestOutcome {
    /// It was done.
    Done,
    /// Something else had been written meanwhile, so it was not done.
    Outdated,
    /// No answer came in time.
    NoAnswer,
    /// It could not be sent.
    NotSent,
    /// There was no space left.
    Full,
    /// It was refused, for whom it came from or for what it is.
    Refused,
}

impl RequestOutcome {
    /// Each of them.
    pub const ALL: [RequestOutcome; 6] = [
        RequestOutcome::Done,
        RequestOutcome::Outdated,
        RequestOutcome::NoAnswer,
        RequestOutcome::NotSent,
        RequestOutcome::Full,
        RequestOutcome::Refused,
    ];

    /// Its name in metrics.
    pub fn label(self) -> &'static str {
        match self {
            RequestOutcome::Done => "done",
            RequestOutcome::Outdated => "outdated",
            RequestOutcome::NoAnswer => "no_answer",
            RequestOutcome::NotSent => "not_sent",
            RequestOutcome::Full => "full",
            RequestOutcome::Refused => "refused",
        }
    }

    pub(in crate::cluster) fn of(reply: &Reply) -> RequestOutcome {
        match reply {
            Reply::Granted(_)
            | Reply::KeptAlive(_)
            | Reply::Read(_)
            | Reply::Outcome(Outcome::Committed(_)) => RequestOutcome::Done,
            Reply::Outcome(Outcome::Refused(_)) => RequestOutcome::Outdated,
            Reply::Failed(CoordinatorError::NoAnswer(_)) => RequestOutcome::NoAnswer,
            Reply::Failed(CoordinatorError::NotSent(_)) => RequestOutcome::NotSent,
            Reply::Failed(CoordinatorError::Full(_)) => RequestOutcome::Full,
            Reply::Failed(CoordinatorError::Refused(_)) => RequestOutcome::Refused,
        }
    }
}
