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
    /// How many there were.
    pub count: u64,
    /// The first one.
    pub first: Seen,
    /// The last one.
    pub last: Seen,
}

impl ReportTally {
    /// The tally of one report.
    pub fn of(seen: Seen) -> ReportTally {
        ReportTally { count: 1, first: seen, last: seen }
    }

    /// This tally, followed by a later one.
    #[must_use]
    pub fn followed_by(self, later: ReportTally) -> ReportTally {
        ReportTally { count: self.count.saturating_add(later.count), first: self.first, last: later.last }
    }
}
