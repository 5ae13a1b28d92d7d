//! Blocks of numbers: reserved in the store, given from memory.
//!
//! A reservation is a request for numbers as any other, under a key of its own, so no two processes ever reserve the same. What is
//! left of it when the process ends, or when its session does, is a gap.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::cluster::Entropy;
use crate::ledger::{NumberBounds, NumberRefusal, NumberRequest, SeriesName};
use crate::minting::Session;
use crate::storage::{RecordError, RecordKeeper};

/// Of so many series what is left is remembered. Beyond them what is left of one is a gap, too.
const SERIES_MAX: usize = 10_000;

/// What this process has reserved and not given yet.
#[derive(Debug, Default)]
pub(in crate::service) struct Blocks(Mutex<HashMap<SeriesName, SharedReserve>>);

/// Locked while more is reserved, so that one reservation serves all who wait for it.
type SharedReserve = Arc<tokio::sync::Mutex<Reserve>>;

/// What is left of one series.
#[derive(Debug, Default)]
struct Reserve {
    rest: Range<u64>,
    /// The session in which it was reserved; in another one it is not given any more, since in between this process may have been
    /// out of the fleet.
    session: Option<Arc<Session>>,
}

impl Blocks {
    /// Takes so many numbers, one after the other, and returns the first; reserves more where fewer are left.
    ///
    /// # Errors
    /// [`RecordError`]: nothing was taken.
    pub(in crate::service) async fn take(
        &self,
        reservation: Reservation<'_>,
        session: Arc<Session>,
    ) -> Result<u64, RecordError> {
        let shared = self.of(reservation.series);
        let mut reserve = shared.lock().await;
        if !reserve
            .session
            .as_ref()
            .is_some_and(|of| Arc::ptr_eq(of, &session))
        {
            *reserve = Reserve {
                rest: 0..0,
                session: Some(session),
            };
        }
        if let Some(first) = reserve.take(reservation.count) {
            return Ok(first);
        }
        reserve.rest = reservation.more_than(reserve.rest.clone()).await?;
        Ok(reserve
            .take(reservation.count)
            .expect("so many were reserved"))
    }

    fn of(&self, series: &SeriesName) -> SharedReserve {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reserve) = all.get(series) {
            return Arc::clone(reserve);
        }
        if all.len() >= SERIES_MAX {
            let given_up = all.keys().next().cloned();
            given_up.and_then(|series| all.remove(&series));
        }
        Arc::clone(all.entry(series.clone()).or_default())
    }
}

impl Reserve {
    /// The first of `count` numbers, one after the other, if that many are left.
    fn take(&mut self, count: NonZeroU32) -> Option<u64> {
        let count = u64::from(count.get());
        let first = self.rest.start;
        (len(&self.rest) >= count).then(|| {
            self.rest.start += count;
            first
        })
    }
}

/// What is asked for, and where more is reserved for it.
pub(in crate::service) struct Reservation<'a> {
    /// Makes reservations durable.
    pub(in crate::service) keeper: &'a RecordKeeper,
    /// The series.
    pub(in crate::service) series: &'a SeriesName,
    /// Where it begins and ends.
    pub(in crate::service) bounds: NumberBounds,
    /// How many numbers are asked for.
    pub(in crate::service) count: NonZeroU32,
    /// How many are reserved at the most.
    pub(in crate::service) reserve: NonZeroU32,
}

impl Reservation<'_> {
    /// At least so many numbers as are asked for, with the `rest` in front where nobody else has reserved in between.
    async fn more_than(&self, rest: Range<u64>) -> Result<Range<u64>, RecordError> {
        let (count, size) = (
            u64::from(self.count.get()),
            u64::from(self.reserve.max(self.count).get()),
        );
        let more = self.reserve(size - len(&rest), len(&rest)).await?;
        match more {
            more if more.start == rest.end => Ok(rest.start..more.end),
            more if len(&more) >= count => Ok(more),
            _ => self.reserve(size, 0).await,
        }
    }

    /// Reserves `size` numbers, or as many as the series still has, if those suffice together with the `rest`.
    async fn reserve(&self, size: u64, rest: u64) -> Result<Range<u64>, RecordError> {
        let left = match self.ask(size).await {
            Err(RecordError::Number(NumberRefusal::SeriesEnded { left, .. })) => left,
            asked => return asked,
        };
        let (series, max, count) = (self.series.clone(), self.bounds.max, self.count.get());
        match left {
            1.. if rest + left >= u64::from(count) => self.ask(left).await,
            _ => Err(RecordError::Number(NumberRefusal::SeriesEnded {
                series,
                max,
                left: rest + left,
                count,
            })),
        }
    }

    async fn ask(&self, count: u64) -> Result<Range<u64>, RecordError> {
        let count = u32::try_from(count)
            .ok()
            .and_then(NonZeroU32::new)
            .expect("some, and no more than are reserved");
        let key = Entropy::of_kernel().nonce().to_string();
        let request = NumberRequest::new(self.series.clone(), count, self.bounds, &key, None);
        let given = self.keeper.give(request).await?;
        assert!(
            !given.is_replayed,
            "a key of this reservation alone was given numbers before"
        );
        Ok(given.stored.first..given.stored.last + 1)
    }
}

fn len(numbers: &Range<u64>) -> u64 {
    numbers.end - numbers.start
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::minting::{Mint, MintSettings, SessionStart};
    use crate::storage::OwnEngine;
    use crate::storage::samples::{ready, series};
    use crate::time::{ManualClock, UnixNanos};

    const NOON: UnixNanos = UnixNanos::from_seconds(1_900_000_000);

    /// Two processes that share a store.
    struct Bench {
        keeper: RecordKeeper,
        mint: Mint,
        blocks: [Blocks; 2],
    }

    impl Bench {
        fn new() -> Bench {
            let store = ready(
                OwnEngine::Memory.open(0, None).expect("memory suffices"),
                NOON,
                &[],
            );
            let clock = Arc::new(ManualClock::at(NOON).clock());
            let keeper =
                RecordKeeper::start(store.records().expect("it reads"), Arc::clone(&clock), None);
            let wait_max = Duration::from_secs(3);
            let settings = MintSettings {
                wait_max,
                lead_max: Duration::ZERO,
                window: wait_max,
                shard: 0,
            };
            Bench {
                keeper,
                mint: Mint::new(clock, settings),
                blocks: Default::default(),
            }
        }

        fn session(&self) -> Arc<Session> {
            self.mint.prepare(SessionStart::at(NOON))
        }

        async fn take(&self, process: usize, session: &Arc<Session>, count: u32) -> Range<u64> {
            let series = series("rows");
            let number = |number| NonZeroU32::new(number).expect("some");
            let reservation = Reservation {
                keeper: &self.keeper,
                series: &series,
                bounds: NumberBounds::default(),
                count: number(count),
                reserve: number(10),
            };
            let first = self.blocks[process]
                .take(reservation, Arc::clone(session))
                .await
                .expect("there is room");
            first..first + u64::from(count)
        }
    }

    #[tokio::test]
    async fn two_processes_have_blocks_of_their_own_and_lose_little_where_they_meet() {
        let (bench, mut taken, mut last) = (Bench::new(), std::collections::BTreeSet::new(), 0);
        let session = bench.session();
        for at in 0..600_u32 {
            let process = usize::from(at * 7919 % 13 < 6);
            for number in bench.take(process, &session, 1 + at * 31 % 9).await {
                assert!(taken.insert(number), "{number} was given before");
                last = last.max(number);
            }
        }
        let given = u64::try_from(taken.len()).expect("fits");
        println!("{given} numbers up to {last}");
        assert!(
            given > 2_000 && last > given,
            "both came between each other"
        );
        assert!(last < 3 * given, "{given} of {last}");
    }

    #[tokio::test]
    async fn what_was_reserved_in_another_session_is_a_gap() {
        let bench = Bench::new();
        let (one, other) = (bench.session(), bench.session());
        assert_eq!(bench.take(0, &one, 4).await, 1..5);
        assert_eq!(bench.take(0, &other, 1).await, 11..12);
        assert_eq!(bench.take(0, &other, 9).await, 12..21);
        assert_eq!(bench.take(1, &other, 1).await, 21..22);
        assert_eq!(bench.take(0, &other, 1).await, 31..32);
    }

    #[tokio::test]
    async fn of_too_many_series_what_is_left_of_one_is_given_up() {
        let blocks = Blocks::default();
        for at in 0..SERIES_MAX + 3 {
            let reserve = blocks.of(&series(&format!("rows-{at}")));
            assert_eq!(len(&reserve.lock().await.rest), 0);
        }
        assert_eq!(blocks.0.lock().expect("nobody panicked").len(), SERIES_MAX);
    }
}
