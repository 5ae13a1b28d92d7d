//! The ids of one answer, before they are encoded.

use std::{iter, vec};

use crate::id::{Encoding, IdBlock, Progression};
use crate::minting::random::RandomIds;
use crate::minting::sequenced::{LaneRuns, Run};

/// Ids that belong to one caller: reserved or promised, not computed yet.
#[derive(Debug)]
pub struct Batch {
    count: u64,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Run(Run),
    Lanes(LaneRuns),
    Random(RandomIds),
    Known(vec::IntoIter<u128>),
}

impl Batch {
    #[inline]
    pub(super) fn of_run(run: Run) -> Batch {
        Batch {
            count: run.count(),
            source: Source::Run(run),
        }
    }

    /// The runs of several lanes, in the order of their worker numbers.
    pub(super) fn of_lanes(runs: Vec<Run>) -> Batch {
        Batch {
            count: runs.iter().map(Run::count).sum(),
            source: Source::Lanes(LaneRuns::new(runs)),
        }
    }

    pub(super) fn of_random(ids: RandomIds) -> Batch {
        Batch {
            count: ids.count(),
            source: Source::Random(ids),
        }
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
                    room.iter_mut()
                        .zip(row.values())
                        .for_each(|(id, value)| *id = value);
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
            Source::Known(known) => IdBlock::List(filled(room, |room| {
                room.iter_mut()
                    .zip(known)
                    .map(|(id, known)| *id = known)
                    .count()
            })),
            Source::Run(run) => progression(run.take_progression(count_of(room))),
            Source::Lanes(runs) => progression(runs.take_progression(count_of(room))),
        };
        self.count -= u64::try_from(row.len()).expect("a slice is shorter than 2^64");
        row
    }

    /// The next ids at equal distances, all of one tick and one worker number; `None` when all are taken. Ids that nothing
    /// is known of come one by one.
    pub fn next_row(&mut self) -> Option<Progression> {
        let row = match &mut self.source {
            Source::Run(run) => run.take_progression(u64::MAX),
            Source::Lanes(runs) => runs.take_progression(u64::MAX),
            Source::Random(_) | Source::Known(_) => {
                let mut id = [0];
                return (self.fill(&mut id) == 1).then_some(Progression {
                    first: id[0],
                    step: 1,
                    count: 1,
                });
            }
        };
        self.count -= row.map_or(0, |row| row.count);
        row
    }

    /// The sum of `len` over all rows left; `None` for ids that nothing is known of.
    pub fn rows_len(&self, len: impl Fn(&Progression) -> usize) -> Option<u64> {
        let sum = |mut run: Run| {
            let rows = iter::from_fn(move || run.take_progression(u64::MAX));
            rows.map(|row| u64::try_from(len(&row)).expect("a row is short"))
                .sum::<u64>()
        };
        match &self.source {
            Source::Run(run) => Some(sum(*run)),
            Source::Lanes(runs) => Some(runs.left().map(sum).sum()),
            Source::Random(_) | Source::Known(_) => None,
        }
    }

    /// The sum of the lengths of all ids left in an encoding; `None` when that is not known before they are drawn.
    pub fn text_len(&self, encoding: &Encoding) -> Option<u64> {
        if let Some(len) = encoding.fixed_len() {
            return u64::try_from(len)
                .expect("a text is short")
                .checked_mul(self.count);
        }
        let mut total = 0_u64;
        match &self.source {
            Source::Random(_) => return None,
            Source::Known(known) => {
                for id in known.as_slice() {
                    total = total
                        .checked_add(u64::try_from(encoding.len(*id)).expect("a text is short"))?;
                }
            }
            Source::Run(run) => total = total.checked_add(run.text_len(|id| encoding.len(id))?)?,
            Source::Lanes(runs) => {
                for run in runs.left() {
                    total = total.checked_add(run.text_len(|id| encoding.len(id))?)?;
                }
            }
        }
        Some(total)
    }
}

fn progression(row: Option<Progression>) -> IdBlock<'static> {
    row.map_or(IdBlock::List(&[]), IdBlock::Progression)
}

fn count_of(room: &[u128]) -> u64 {
    u64::try_from(room.len()).expect("a slice is shorter than 2^64")
}

/// What `fill` filled of the room.
fn filled(room: &mut [u128], fill: impl FnOnce(&mut [u128]) -> usize) -> &[u128] {
    let count = fill(room);
    &room[..count]
}
