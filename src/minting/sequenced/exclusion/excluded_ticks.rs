//! The ticks in which another generator has issued ids.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::time::UnixNanos;

/// A worker number, and the position of a layout among the variants of its format: what has a sequence of its own.
pub(super) type Lane = (u32, usize);

/// The ticks in which another generator has issued ids of a format, by worker number: nothing is minted in them.
///
/// Unit: ticks since the epoch. Bounds: only ticks from an instant on are held, at which every session begins or later; each
/// row of neighbouring ticks takes 16 bytes. Made by [`ExcludedIds`](super::ExcludedIds), where an example is.
#[derive(Debug, Clone)]
pub struct ExcludedTicks {
    pub(super) from: UnixNanos,
    /// Rows that ascend, and do not touch each other.
    pub(super) lanes: BTreeMap<Lane, Arc<[Range<u64>]>>,
    pub(super) ids: u64,
}

impl ExcludedTicks {
    /// How many ids were read.
    pub fn ids(&self) -> u64 {
        self.ids
    }

    /// How many ticks are left out, of all worker numbers together.
    pub fn ticks(&self) -> u64 {
        self.lanes
            .values()
            .flat_map(|rows| rows.iter())
            .map(|row| row.end - row.start)
            .sum()
    }

    /// The ticks that one sequence leaves out, if there are any.
    ///
    /// # Panics
    /// When the session begins before what is held.
    pub(in crate::minting) fn of_lane(
        &self,
        worker: u32,
        variant: usize,
        start: UnixNanos,
    ) -> Option<Arc<[Range<u64>]>> {
        assert!(
            start >= self.from,
            "a session at {start} begins before {}, from where excluded ids are held",
            self.from
        );
        self.lanes.get(&(worker, variant)).map(Arc::clone)
    }
}

/// Rows of ticks while they are read.
#[derive(Debug, Default, Clone)]
pub(super) struct TickRows(Vec<Range<u64>>);

impl TickRows {
    /// Adds a tick, in any order; it is cheap in that of the ticks.
    pub(super) fn add(&mut self, tick: u64) {
        match self.0.last_mut() {
            Some(last) if last.contains(&tick) => {}
            Some(last) if last.end == tick => last.end = tick + 1,
            _ => self.0.push(tick..tick + 1),
        }
    }

    pub(super) fn append(&mut self, other: TickRows) {
        self.0.extend(other.0);
    }

    /// Rows that ascend, and do not touch each other.
    pub(super) fn in_order(mut self) -> Arc<[Range<u64>]> {
        if !self.0.is_sorted_by(|row, next| row.end < next.start) {
            self.0.sort_unstable_by_key(|row| row.start);
            self.0.dedup_by(|next, row| {
                let touches = next.start <= row.end;
                if touches {
                    row.end = row.end.max(next.end);
                }
                touches
            });
        }
        self.0.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_in_any_order_make_rows_that_ascend() {
        for ticks in [[3, 4, 5, 9, 9], [9, 3, 5, 4, 9], [5, 9, 4, 3, 3]] {
            let mut rows = TickRows::default();
            ticks.into_iter().for_each(|tick| rows.add(tick));
            assert_eq!(*rows.in_order(), [3..6, 9..10], "{ticks:?}");
        }
    }
}
