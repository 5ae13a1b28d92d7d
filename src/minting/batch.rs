//! The ids of one answer, before they are spelled.

use std::vec;

use super::random::RandomIds;
use super::run::Run;
use crate::id::Encoding;

/// Ids that belong to one caller: reserved or promised, not computed yet.
#[derive(Debug)]
pub struct Batch {
    count: u64,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Runs(Runs),
    Random(RandomIds),
    Known(vec::IntoIter<u128>),
}

/// One run after the other. Nearly every batch has only one, which is reserved without an allocation.
#[derive(Debug)]
struct Runs {
    current: Run,
    later: vec::IntoIter<Run>,
}

impl Batch {
    #[inline]
    pub(super) fn of_run(run: Run) -> Batch {
        Batch { count: run.count(), source: Source::Runs(Runs { current: run, later: Vec::new().into_iter() }) }
    }

    pub(super) fn of_runs(runs: Vec<Run>) -> Batch {
        let count = runs.iter().map(Run::count).sum();
        let mut later = runs.into_iter();
        let current = later.next().expect("an order has a part");
        Batch { count, source: Source::Runs(Runs { current, later }) }
    }

    pub(super) fn of_random(ids: RandomIds) -> Batch {
        Batch { count: ids.count(), source: Source::Random(ids) }
    }

    /// Ids that are computed already.
    pub fn of_ids(ids: Vec<u128>) -> Batch {
        Batch {
            count: u64::try_from(ids.len()).expect("a list is shorter than 2^64"),
            source: Source::Known(ids.into_iter()),
        }
    }

    /// How many ids are left.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Computes the next ids into `ids` and says how many; zero when all are taken.
    pub fn fill(&mut self, ids: &mut [u128]) -> usize {
        let filled = match &mut self.source {
            Source::Random(random) => random.fill(ids),
            Source::Runs(runs) => runs.fill(ids),
            Source::Known(known) => ids.iter_mut().zip(known).map(|(id, known)| *id = known).count(),
        };
        self.count -= u64::try_from(filled).expect("a slice is shorter than 2^64");
        filled
    }

    /// The sum of the lengths of all ids left in an encoding; `None` when that is not known before they are drawn.
    pub fn text_len(&self, encoding: &Encoding) -> Option<u64> {
        if let Some(len) = encoding.fixed_len() {
            return u64::try_from(len).expect("a spelling is short").checked_mul(self.count);
        }
        let mut total = 0_u64;
        match &self.source {
            Source::Random(_) => return None,
            Source::Known(known) => {
                for id in known.as_slice() {
                    total = total.checked_add(u64::try_from(encoding.len(*id)).expect("a spelling is short"))?;
                }
            }
            Source::Runs(runs) => {
                for mut run in runs.left() {
                    while let Some(segment) = run.take_segment(u64::MAX) {
                        total = total.checked_add(segment.total_len(|id| encoding.len(id)))?;
                    }
                }
            }
        }
        Some(total)
    }
}

impl Runs {
    fn left(&self) -> impl Iterator<Item = Run> {
        [self.current].into_iter().chain(self.later.as_slice().iter().copied())
    }

    fn fill(&mut self, ids: &mut [u128]) -> usize {
        let mut filled = 0;
        while filled < ids.len() {
            let room = u64::try_from(ids.len() - filled).expect("a slice is shorter than 2^64");
            let Some(segment) = self.current.take_segment(room) else {
                let Some(next) = self.later.next() else { break };
                self.current = next;
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
}
