//! The runs of one batch on several lanes, as one increasing sequence.

use super::run::Run;
use crate::id::Progression;

/// Runs of several worker numbers, taken tick by tick, and in the order of the worker numbers within a tick.
///
/// Of a format whose time stands above its worker number, and that above its sequence, the ids then increase from the first
/// to the last: see [`Format::has_lanes_in_order`](crate::id::Format::has_lanes_in_order).
#[derive(Debug)]
pub(in crate::minting) struct LaneRuns {
    /// Lower worker numbers first; of one worker number the earlier stamps first.
    runs: Vec<Run>,
}

impl LaneRuns {
    /// Takes runs in the order of their worker numbers and, of one worker number, of their stamps.
    pub(in crate::minting) fn new(runs: Vec<Run>) -> LaneRuns {
        LaneRuns { runs }
    }

    /// What is left of each run.
    pub(in crate::minting) fn left(&self) -> impl Iterator<Item = Run> {
        self.runs.iter().copied()
    }

    /// Takes the next ids of one tick and one worker number, `limit` (at least one) at most; `None` when all are taken.
    pub(in crate::minting) fn take_progression(&mut self, limit: u64) -> Option<Progression> {
        let left = self.runs.iter_mut().filter(|run| run.count > 0);
        // Of several runs in one tick this is the first one, which has the lowest worker number.
        left.min_by_key(|run| run.tick)?.take_progression(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::minting::sequenced::runs::Steps;

    #[test]
    fn ids_come_tick_by_tick_and_in_the_order_of_the_workers_within_a_tick() {
        let steps = Steps {
            time_stride: 1000,
            sequence_stride: 1,
            per_tick: 3,
        };
        let run = |worker: u128, tick, sequence, count| Run {
            steps,
            base: worker * 100,
            tick,
            sequence,
            count,
        };
        let mut runs = LaneRuns::new(vec![
            run(0, 7, 2, 4),
            run(1, 6, 1, 3),
            run(1, 8, 0, 2),
            run(2, 7, 0, 3),
        ]);
        let mut ids = Vec::new();
        while let Some(progression) = runs.take_progression(2) {
            ids.extend(progression.values());
        }
        assert_eq!(
            ids,
            [
                6101, 6102, 7002, 7100, 7200, 7201, 7202, 8000, 8001, 8002, 8100, 8101
            ]
        );
    }
}
