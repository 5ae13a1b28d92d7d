//! The ticks that one sequencer leaves out.

use std::iter;
use std::ops::Range;
use std::sync::Arc;

use crate::minting::sequenced::stamps::StampLine;
use crate::minting::sequenced::sync::{Mutex, MutexGuard};
use crate::time::UnixNanos;

/// The ticks of one sequence that are left out, and how far the sequencer has come among them.
#[derive(Debug)]
pub(in crate::minting) struct Exclusion {
    /// Ticks since the epoch, in rows that ascend and do not touch each other.
    ticks: Arc<[Range<u64>]>,
    gate: Mutex<Gate>,
}

/// What the ceiling of the sequencer is the lower one of.
#[derive(Debug)]
pub(in crate::minting) struct Gate {
    /// The first stamp that no durable horizon covers.
    pub(in crate::minting) horizon: u64,
    /// The first stamp of the next excluded tick.
    pub(in crate::minting) barrier: u64,
}

/// Where a run can stand around excluded ticks.
pub(in crate::minting) struct Placed {
    pub(in crate::minting) first: u64,
    /// The excluded tick behind it begins here.
    pub(in crate::minting) free_to: u64,
    /// When its ids may leave.
    pub(in crate::minting) due: UnixNanos,
}

impl Exclusion {
    /// For a sequencer whose first stamp is `first`, and which has no horizon yet.
    pub(in crate::minting) fn new(
        ticks: Arc<[Range<u64>]>,
        line: &StampLine,
        first: u64,
    ) -> Exclusion {
        let exclusion = Exclusion {
            ticks,
            gate: Mutex::new(Gate {
                horizon: 0,
                barrier: first,
            }),
        };
        // Where the first stamp lies in an excluded tick, the barrier is that stamp, and nothing can be handed out before it is passed.
        let barrier = exclusion
            .free_from(line, first)
            .next()
            .filter(|free| free.start == first);
        exclusion.gate().barrier = barrier.map_or(first, |free| free.end);
        exclusion
    }

    pub(in crate::minting) fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().expect("no holder of this lock panics")
    }

    /// The stretches of stamps between excluded ticks from this stamp on, none of them empty; the last one has no end.
    pub(in crate::minting) fn free_from(
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
