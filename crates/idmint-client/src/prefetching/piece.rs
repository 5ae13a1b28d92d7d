//! Pieces of a stock of prefetched ids. A piece holds the ids of one response, or a part of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use idmint_core::id::Progression;

/// Ids from one response: numbers at equal distances, or a list of texts.
#[derive(Debug)]
pub(super) struct Piece {
    /// The number of attempts to take an id, including those after the last id was taken.
    ///
    /// Written by: `place`, by addition. Read by: only the addition itself.
    /// Invariant: only grows, so no id is taken twice.
    /// Ordering: `Relaxed`, because the other fields of a piece never change after it is shared.
    /// Tested by: `by_many_threads_each_place_is_taken_once`.
    taken: AtomicU64,
    pub(super) ids: PieceIds,
    count: u64,
    /// The time from which the ids are too old.
    expires: Instant,
    /// The id of the process that owns the piece.
    process: u32,
    /// `true` if the first use of this piece triggers a refill.
    pub(super) is_second_half: bool,
}

/// The ids of a piece.
#[derive(Debug, Clone)]
pub(super) enum PieceIds {
    Numbers(Progression),
    Texts(Vec<String>),
}

impl PieceIds {
    pub(super) fn count(&self) -> u64 {
        match self {
            PieceIds::Numbers(row) => row.count,
            PieceIds::Texts(texts) => texts.len() as u64,
        }
    }

    /// Keeps the first `kept` ids in `self` and returns the other ids.
    fn split_off(&mut self, kept: u64) -> PieceIds {
        match self {
            PieceIds::Numbers(row) => {
                let rest = Progression {
                    first: row.first + u128::from(kept) * row.step,
                    step: row.step,
                    count: row.count - kept,
                };
                row.count = kept;
                PieceIds::Numbers(rest)
            }
            PieceIds::Texts(texts) => PieceIds::Texts(
                texts.split_off(usize::try_from(kept).expect("fewer texts than there are")),
            ),
        }
    }
}

impl Piece {
    pub(super) fn new(
        ids: PieceIds,
        expires: Instant,
        process: u32,
        is_second_half: bool,
    ) -> Piece {
        Piece {
            taken: AtomicU64::new(0),
            count: ids.count(),
            ids,
            expires,
            process,
            is_second_half,
        }
    }

    /// Creates a piece without ids.
    pub(super) fn empty(process: u32) -> Piece {
        Piece::new(PieceIds::Texts(Vec::new()), Instant::now(), process, false)
    }

    /// Takes the next id of this piece, and returns the position of the id in the piece. Returns
    /// `None` if all ids of the piece are taken or too old.
    #[inline]
    pub(super) fn place(&self) -> Option<u64> {
        let place = self.taken.fetch_add(1, Ordering::Relaxed);
        (place < self.count && self.is_fresh()).then_some(place)
    }

    #[inline]
    pub(super) fn is_fresh(&self) -> bool {
        Instant::now() < self.expires
    }

    #[inline]
    pub(super) fn is_of(&self, process: u32) -> bool {
        self.process == process
    }

    /// Turns the parts of a response into pieces that expire at `expires`. The part that contains
    /// the middle id of the response is split before that id. The piece from the middle id on is
    /// marked as the second half, whose first use triggers a refill.
    pub(super) fn halve(parts: Vec<PieceIds>, expires: Instant, process: u32) -> Vec<Piece> {
        let half = parts.iter().map(PieceIds::count).sum::<u64>() / 2;
        let mut before = 0;
        let mut halved = Vec::with_capacity(parts.len() + 1);
        for mut part in parts {
            let count = part.count();
            if before <= half && half < before + count {
                let rest = part.split_off(half - before);
                halved.push(Piece::new(part, expires, process, false));
                halved.push(Piece::new(rest, expires, process, true));
            } else {
                halved.push(Piece::new(part, expires, process, false));
            }
            before += count;
        }
        halved.retain(|piece| piece.count > 0);
        halved
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn row(first: u128, count: u64) -> PieceIds {
        PieceIds::Numbers(Progression {
            first,
            step: 2,
            count,
        })
    }

    #[test]
    fn one_piece_begins_in_the_middle_and_none_is_lost() {
        for parts in [
            vec![row(0, 7)],
            vec![row(0, 3), row(100, 4)],
            vec![row(0, 1)],
            vec![row(0, 2), row(10, 1), row(20, 9)],
        ] {
            let all: u64 = parts.iter().map(PieceIds::count).sum();
            let pieces = Piece::halve(parts, Instant::now(), 1);
            assert_eq!(pieces.iter().map(|piece| piece.count).sum::<u64>(), all);
            let before: u64 = pieces
                .iter()
                .take_while(|piece| !piece.is_second_half)
                .map(|piece| piece.count)
                .sum();
            assert_eq!(before, all / 2);
            assert_eq!(
                pieces.iter().filter(|piece| piece.is_second_half).count(),
                1
            );
        }
    }

    #[test]
    fn by_many_threads_each_place_is_taken_once() {
        let piece = Piece::new(
            row(0, 10_000),
            Instant::now() + Duration::from_secs(600),
            1,
            false,
        );
        let take = || std::iter::from_fn(|| piece.place()).collect::<Vec<_>>();
        let mut places: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().expect("no panic"))
                .collect()
        });
        places.sort_unstable();
        assert_eq!(places, (0..10_000).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_too_old_has_no_place() {
        assert_eq!(
            Piece::new(row(0, 9), Instant::now(), 1, false).place(),
            None
        );
    }
}
