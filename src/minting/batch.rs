//! The ids of one answer, before they are encoded.

use std::vec;

use crate::id::{Encoding, IdBlock, Progression};
use crate::minting::random::RandomIds;
use crate::minting::sequenced::Run;

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
        let mut filled = 0;
        while filled < ids.len() {
            let room = &mut ids[filled..];
            let count = match self.next_block(room) {
                IdBlock::Progression(row) => {
                    room.iter_mut().zip(row.values()).for_each(|(id, value)| *id = value);
                    IdBlock::Progression(row).len()
                }
                IdBlock::List(drawn) => drawn.len(),
            };
            if count == 0 {
                break;
            }
            filled += count;
        }
        filled
    }

    /// The next ids, no more than there is `room` for; none when all are taken. Those that are not at equal distances are
    /// computed into `room`.
    pub fn next_block<'a>(&mut self, room: &'a mut [u128]) -> IdBlock<'a> {
        let row = match &mut self.source {
            Source::Random(random) => IdBlock::List(filled(room, |room| random.fill(room))),
            Source::Known(known) => {
                IdBlock::List(filled(room, |room| room.iter_mut().zip(known).map(|(id, known)| *id = known).count()))
            }
            Source::Runs(runs) => runs.next_progression(room.len()).map_or(IdBlock::List(&[]), IdBlock::Progression),
        };
        self.count -= u64::try_from(row.len()).expect("a row is shorter than 2^64");
        row
    }

    /// The sum of the lengths of all ids left in an encoding; `None` when that is not known before they are drawn.
    pub fn text_len(&self, encoding: &Encoding) -> Option<u64> {
        if let Some(len) = encoding.fixed_len() {
            return u64::try_from(len).expect("a text is short").checked_mul(self.count);
        }
        let mut total = 0_u64;
        match &self.source {
            Source::Random(_) => return None,
            Source::Known(known) => {
                for id in known.as_slice() {
                    total = total.checked_add(u64::try_from(encoding.len(*id)).expect("a text is short"))?;
                }
            }
            Source::Runs(runs) => {
                for mut run in runs.left() {
                    while let Some(progression) = run.take_progression(u64::MAX) {
                        total = total.checked_add(progression.total_len(|id| encoding.len(id)))?;
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

    fn next_progression(&mut self, count_max: usize) -> Option<Progression> {
        let count_max = u64::try_from(count_max).expect("a slice is shorter than 2^64");
        loop {
            if let Some(progression) = self.current.take_progression(count_max) {
                return Some(progression);
            }
            self.current = self.later.next()?;
        }
    }
}

/// What `fill` filled of the room.
fn filled(room: &mut [u128], fill: impl FnOnce(&mut [u128]) -> usize) -> &[u128] {
    let count = fill(room);
    &room[..count]
}
