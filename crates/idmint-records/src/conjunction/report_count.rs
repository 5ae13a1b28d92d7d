//! Counts the reports of a conjunction, and keeps the times of the first and the last one.

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
/// approximate. A crash can lose the counts of the last seconds, and reports are not counted while
/// too many other conjunctions have counts in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportCount {
    /// The number of reports, or 0 if the conjunction was stored without a count.
    pub count: u64,
    /// The first report. If `count` is 0, `at` is the time at which idmint noticed the missing
    /// count.
    pub first: Seen,
    /// The last report. If `count` is 0, `at` is the time at which idmint noticed the missing
    /// count.
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

    /// Creates the count for a stored conjunction that has none. The count is 0, and `seen` records
    /// when that was noticed.
    pub fn found(seen: Seen) -> ReportCount {
        ReportCount {
            count: 0,
            ..ReportCount::of(seen)
        }
    }

    /// Adds the count of later reports to this count.
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
            last: later.last,
        }
    }
}
