//! Counts the reports of a conjunction, and keeps the times of the first and the last report.

use super::anchor::Tca;
use idmint_core::time::UnixNanos;

/// The arrival time of a report, and the time of closest approach in the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The time at which the report arrived.
    pub at: UnixNanos,
    /// The time of closest approach in the report.
    pub tca: Tca,
}

/// The number of reports of a conjunction, with the first and the last report. The number is
/// approximate, because a crash can lose the counts of the last seconds. Reports are also not
/// counted while too many other conjunctions have counts in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportCount {
    /// The number of reports that belong to the conjunction, or 0 if the conjunction was stored
    /// without a count of its reports.
    pub count: u64,
    /// The first report that was counted. If `count` is 0, `first.at` is instead the time at which
    /// idmint noticed that the count is missing.
    pub first: Seen,
    /// The last report that was counted. Its field `at` is the latest arrival time of all counted
    /// reports, even if a clock was set back. If `count` is 0, `at` is the same as in `first`.
    pub last: Seen,
}

impl ReportCount {
    /// Creates the count for a single report.
    pub fn of(seen: Seen) -> ReportCount {
        ReportCount {
            count: 1,
            first: seen,
            last: seen,
        }
    }

    /// Creates a count of 0 reports for a conjunction that was stored without a count. `seen` says
    /// when the missing count was noticed.
    pub fn found(seen: Seen) -> ReportCount {
        ReportCount {
            count: 0,
            ..ReportCount::of(seen)
        }
    }

    /// Adds the count of later reports of the same conjunction to this count.
    ///
    /// The arrival time of the last report never becomes earlier. Otherwise, a report that arrives
    /// while the clock is set back would make the conjunction look old enough to be removed.
    #[must_use]
    pub fn followed_by(self, later: ReportCount) -> ReportCount {
        let first = if self.count == 0 {
            later.first
        } else {
            self.first
        };
        ReportCount {
            count: self.count.saturating_add(later.count),
            first,
            last: Seen {
                at: self.last.at.max(later.last.at),
                tca: later.last.tca,
            },
        }
    }
}
