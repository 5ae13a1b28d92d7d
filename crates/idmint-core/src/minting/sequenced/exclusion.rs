//! The ticks that a sequencer must skip, because another generator has used them.

use std::iter;
use std::ops::Range;
use std::sync::Arc;

use super::stamps::StampLine;
use crate::sync::{Mutex, MutexGuard};
use crate::time::UnixNanos;

/// The ticks that one sequencer must skip, and the point at which it must stop next. That point is
/// the end of the reserved time or the next tick to skip, whichever is earlier.
#[derive(Debug)]
pub(super) struct Exclusion {
    /// The ranges of excluded ticks, counted since the epoch. The ranges ascend, and no two are
    /// adjacent.
    ticks: Arc<[Range<u64>]>,
    gate: Mutex<Gate>,
}

/// The two limits of a sequencer: the end of the reserved time, and the next tick to skip. The
/// sequencer must stop at the lower limit, its ceiling.
#[derive(Debug)]
pub(super) struct Gate {
    /// The first stamp at or after the horizon, which is the time up to which ids may be minted.
    pub(super) horizon: u64,
    /// The first stamp of the next tick that must be skipped. The sequencer must stop before this
    /// stamp.
    pub(super) barrier: u64,
}

/// A run of consecutive stamps, none of which is in a tick to skip.
pub(super) struct Placed {
    pub(super) first: u64,
    /// The first stamp of the next excluded tick after this run.
    pub(super) free_to: u64,
    /// The clock time from which ids with these stamps may be sent.
    pub(super) due: UnixNanos,
}

impl Exclusion {
    /// Creates the record of the ticks to skip, for a sequencer without reserved time. `first` is
    /// the first stamp that the sequencer may hand out.
    pub(super) fn new(ticks: Arc<[Range<u64>]>, line: &StampLine, first: u64) -> Exclusion {
        let exclusion = Exclusion {
            ticks,
            gate: Mutex::new(Gate {
                horizon: 0,
                barrier: first,
            }),
        };
        // If the first stamp is in a tick to skip, make that stamp the barrier, so that `reserve`
        // cannot hand it out. `reserve_around` then continues after the tick.
        let barrier = exclusion
            .free_from(line, first)
            .next()
            .filter(|free| free.start == first);
        exclusion.gate().barrier = barrier.map_or(first, |free| free.end);
        exclusion
    }

    pub(super) fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().expect("no holder of this lock panics")
    }

    /// Returns the ranges of stamps, at or after `stamp`, that are in no tick to skip. Each range
    /// has at least one stamp, and the last range is unbounded.
    pub(super) fn free_from(
        &self,
        line: &StampLine,
        stamp: u64,
    ) -> impl Iterator<Item = Range<u64>> {
        let begins = |tick: u64| line.stamp_of_tick(tick.into());
        let passed = self.ticks.partition_point(|row| begins(row.end) <= stamp);
        let mut rows = self.ticks[passed..].iter();
        let mut free_from = Some(stamp);
        iter::from_fn(move || {
            loop {
                let start = free_from?;
                let Some(row) = rows.next() else {
                    free_from = None;
                    return Some(start..u64::MAX);
                };
                free_from = Some(begins(row.end).max(start));
                if begins(row.start) > start {
                    return Some(start..begins(row.start));
                }
            }
        })
    }
}

#[cfg(all(test, not(idmint_loom)))]
mod tests {
    use super::*;
    use crate::time::UnixTime;

    #[test]
    #[expect(
        clippy::single_range_in_vec_init,
        reason = "one row of ticks is left out, or free"
    )]
    fn what_is_free_is_what_no_row_has() {
        let line = StampLine::new(
            "1s".parse().expect("a tick"),
            UnixTime::EPOCH,
            10,
            UnixNanos::from_seconds(100),
        );
        let exclusion = Exclusion::new([90..95, 103..105, 107..108].into(), &line, 0);
        let free = |stamp| exclusion.free_from(&line, stamp).collect::<Vec<_>>();
        assert_eq!(free(0), [0..30, 50..70, 80..u64::MAX]);
        assert_eq!(free(29), [29..30, 50..70, 80..u64::MAX]);
        for inside in [30, 49, 50] {
            assert_eq!(free(inside), [50..70, 80..u64::MAX], "from {inside}");
        }
        assert_eq!(free(81), [81..u64::MAX]);
        let barrier = |first| {
            Exclusion::new([103..105].into(), &line, first)
                .gate()
                .barrier
        };
        assert_eq!([0, 29, 30, 42, 50].map(barrier), [30, 30, 30, 42, u64::MAX]);
    }
}
