//! The ids of one answer, before they are spelled.

use std::sync::Arc;

use super::random::RandomIds;
use super::run::Run;
use crate::id::{Encoding, Format};

/// Ids that belong to one caller: reserved or promised, not computed yet.
#[derive(Debug)]
pub struct Batch {
    format: Arc<Format>,
    count: u64,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// In reverse, so that the run in use is the last.
    Runs(Vec<Run>),
    Random(RandomIds),
}

impl Batch {
    pub(super) fn of_runs(format: Arc<Format>, mut runs: Vec<Run>) -> Batch {
        runs.reverse();
        Batch { format, count: runs.iter().map(Run::count).sum(), source: Source::Runs(runs) }
    }

    pub(super) fn of_random(ids: RandomIds, format: Arc<Format>) -> Batch {
        Batch { format, count: ids.count(), source: Source::Random(ids) }
    }

    /// The format of the ids.
    pub fn format(&self) -> &Arc<Format> {
        &self.format
    }

    /// How many ids are left.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Computes the next ids into `ids` and says how many; zero when all are taken.
    pub fn fill(&mut self, ids: &mut [u128]) -> usize {
        let filled = match &mut self.source {
            Source::Random(random) => random.fill(ids),
            Source::Runs(runs) => fill_from(runs, ids),
        };
        self.count -= u64::try_from(filled).expect("a slice is shorter than 2^64");
        filled
    }

    /// The sum of the lengths of all ids left in an encoding; `None` when that is not known before they are drawn.
    pub fn text_len(&self, encoding: &Encoding) -> Option<u64> {
        if let Some(len) = encoding.fixed_len() {
            return u64::try_from(len).expect("a spelling is short").checked_mul(self.count);
        }
        let Source::Runs(runs) = &self.source else { return None };
        let mut total = 0_u64;
        for mut run in runs.iter().copied() {
            while let Some(segment) = run.take_segment(u64::MAX) {
                total = total.checked_add(segment.total_len(|id| encoding.len(id)))?;
            }
        }
        Some(total)
    }
}

fn fill_from(runs: &mut Vec<Run>, ids: &mut [u128]) -> usize {
    let mut filled = 0;
    while let Some(run) = runs.last_mut().filter(|_| filled < ids.len()) {
        let room = u64::try_from(ids.len() - filled).expect("a slice is shorter than 2^64");
        let Some(segment) = run.take_segment(room) else {
            runs.pop();
            continue;
        };
        let mut next = segment.first;
        let count = usize::try_from(segment.count).expect("no more than the room");
        for id in &mut ids[filled..filled + count] {
            *id = next;
            next += segment.step;
        }
        filled += count;
    }
    filled
}
