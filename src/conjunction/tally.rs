//! How often a conjunction was reported, and when.

use super::anchor::Tca;
use crate::time::UnixNanos;

/// One report, when it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// When it came.
    pub at: UnixNanos,
    /// Its time of closest approach.
    pub tca: Tca,
}

/// The reports of a conjunction: a hint, which a crash can set back by some seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportTally {
    /// How many there were; none where the anchor was found without a tally.
    pub count: u64,
    /// The first one; where there was none, when the anchor was found.
    pub first: Seen,
    /// The last one, as the first.
    pub last: Seen,
}

impl ReportTally {
    /// The tally of one report.
    pub fn of(seen: Seen) -> ReportTally {
        ReportTally {
            count: 1,
            first: seen,
            last: seen,
        }
    }

    /// The tally of an anchor that was found without one: from now on it is known to have been there.
    pub fn found(seen: Seen) -> ReportTally {
        ReportTally {
            count: 0,
            ..ReportTally::of(seen)
        }
    }

    /// This tally, followed by a later one.
    #[must_use]
    pub fn followed_by(self, later: ReportTally) -> ReportTally {
        let first = if self.count == 0 {
            later.first
        } else {
            self.first
        };
        ReportTally {
            count: self.count.saturating_add(later.count),
            first,
            last: later.last,
        }
    }
}
