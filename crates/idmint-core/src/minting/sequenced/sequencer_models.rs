//! Model checks of the sequencer. They explore every interleaving of a few threads, and every order
//! in which a thread may see the writes of other threads.
//!
//! [`explore`] asserts that each model reaches the situation that it tests, and counts how often.

use std::ops::Range;

use loom::sync::Arc;
use loom::thread;

use super::*;
use crate::time::UnixTime;
use crate::time::models::explore;

const START: UnixNanos = UnixNanos::from_seconds(1_800_000_000);
const TICK: Duration = Duration::from_millis(1);

/// Returns a sequencer with two ids in each tick, so that few ids fill a tick.
fn sequencer() -> Sequencer {
    let line = StampLine::new("1ms".parse().expect("a tick"), UnixTime::EPOCH, 2, START);
    Sequencer::new(line, SessionStart::at(START), u128::MAX, 1)
}

fn stamps(grant: Result<Grant, Shortage>, count: u64) -> Range<u64> {
    grant.map_or(0..0, |grant| grant.first..grant.first + count)
}

fn assert_disjoint(a: &Range<u64>, b: &Range<u64>) {
    assert!(
        a.is_empty() || b.is_empty() || a.end <= b.start || b.end <= a.start,
        "{a:?} and {b:?} overlap"
    );
}

#[test]
fn loom_two_reservations_never_overlap() {
    explore("both threads got stamps", |tally| {
        let sequencer = Arc::new(sequencer());
        sequencer.raise(START.after(TICK * 10), START);
        let other = {
            let sequencer = Arc::clone(&sequencer);
            thread::spawn(move || {
                // The clock of this thread is one tick ahead. The two threads therefore reserve ids
                // before and after the end of a tick at the same time.
                let moment = CatchUp::new(START, START).at(START.after(TICK));
                [
                    stamps(sequencer.reserve(3, &moment, TICK), 3),
                    stamps(sequencer.reserve(1, &moment, TICK), 1),
                ]
            })
        };
        let moment = CatchUp::new(START, START).at(START);
        let mine = [
            stamps(sequencer.reserve(2, &moment, TICK), 2),
            stamps(sequencer.reserve(1, &moment, TICK), 1),
        ];
        let theirs = other.join().expect("the model does not panic");
        assert!(
            mine[0].start <= mine[1].start && theirs[0].start <= theirs[1].start,
            "each only grows"
        );
        for (a, b) in mine.iter().flat_map(|a| theirs.iter().map(move |b| (a, b))) {
            assert_disjoint(a, b);
        }
        tally.count(usize::from(!mine[0].is_empty() && !theirs[0].is_empty()));
    });
}

#[test]
fn loom_first_runs_of_a_tick_that_are_spread_never_overlap() {
    explore(
        "both threads got stamps of a tick of which one is skipped",
        |tally| {
            let line = StampLine::new("1ms".parse().expect("a tick"), UnixTime::EPOCH, 8, START);
            let sequencer = Sequencer::new(line, SessionStart::at(START), u128::MAX, 1)
                .with_spread(Spread::over(2));
            let sequencer = Arc::new(sequencer);
            sequencer.raise(START.after(TICK * 10), START);
            let moment = CatchUp::new(START, START).at(START.after(TICK));
            let other = {
                let sequencer = Arc::clone(&sequencer);
                thread::spawn(move || {
                    [2, 1].map(|count| stamps(sequencer.reserve(count, &moment, TICK), count))
                })
            };
            let mine = [1, 3].map(|count| stamps(sequencer.reserve(count, &moment, TICK), count));
            let theirs = other.join().expect("the model does not panic");
            assert!(
                mine[0].end <= mine[1].start && theirs[0].end <= theirs[1].start,
                "each only grows"
            );
            for (a, b) in mine.iter().flat_map(|a| theirs.iter().map(move |b| (a, b))) {
                assert_disjoint(a, b);
            }
            let skipped = mine.iter().chain(&theirs).all(|run| run.start > 8);
            tally.count(usize::from(
                skipped && mine.iter().chain(&theirs).all(|run| !run.is_empty()),
            ));
        },
    );
}

#[test]
fn loom_a_share_of_a_batch_never_overlaps_a_reservation() {
    explore("both threads got stamps", |tally| {
        let sequencer = Arc::new(sequencer());
        sequencer.raise(START.after(TICK * 10), START);
        let moment = CatchUp::new(START, START).at(START);
        let other = {
            let sequencer = Arc::clone(&sequencer);
            thread::spawn(move || sequencer.take_until(4, &moment).unwrap_or(0..0))
        };
        let mine = [
            stamps(sequencer.reserve(1, &moment, TICK), 1),
            stamps(sequencer.reserve(1, &moment, TICK), 1),
        ];
        let theirs = other.join().expect("the model does not panic");
        mine.iter().for_each(|mine| assert_disjoint(mine, &theirs));
        assert_disjoint(&mine[0], &mine[1]);
        tally.count(usize::from(!mine[0].is_empty() && !theirs.is_empty()));
    });
}

#[test]
fn loom_no_stamp_is_above_a_horizon_that_is_being_raised() {
    explore(
        "a stamp below a horizon raised by the other thread",
        |tally| {
            let sequencer = Arc::new(sequencer());
            // Stands for the horizon on disk. The writer stores it here before it raises the
            // sequencer's horizon, so a thread that gets ids must see it.
            let durable = Arc::new(AtomicU64::new(START.get()));
            let writer = {
                let (sequencer, durable) = (Arc::clone(&sequencer), Arc::clone(&durable));
                thread::spawn(move || {
                    for ticks in [1, 3] {
                        let horizon = START.after(TICK * ticks);
                        durable.store(horizon.get(), Ordering::Relaxed);
                        sequencer.raise(horizon, horizon);
                    }
                })
            };
            let moment = CatchUp::new(START, START).at(START);
            for _ in 0..2 {
                if let Ok(grant) = sequencer.reserve(2, &moment, TICK) {
                    let horizon = UnixNanos::new(durable.load(Ordering::Relaxed));
                    let ceiling = sequencer.line().first_stamp_at(horizon);
                    assert!(grant.first + 2 <= ceiling, "minted above what is durable");
                    tally.count(1);
                }
                thread::yield_now();
            }
            writer.join().expect("the model does not panic");
        },
    );
}

#[test]
fn loom_a_share_that_was_checked_is_below_what_is_durable() {
    explore(
        "a share below a horizon raised by the other thread",
        |tally| {
            let sequencer = Arc::new(sequencer());
            let durable = Arc::new(AtomicU64::new(START.get()));
            let writer = {
                let (sequencer, durable) = (Arc::clone(&sequencer), Arc::clone(&durable));
                thread::spawn(move || {
                    let horizon = START.after(TICK);
                    durable.store(horizon.get(), Ordering::Relaxed);
                    sequencer.raise(horizon, horizon);
                })
            };
            let moment = CatchUp::new(START, START).at(START);
            if sequencer.check(2).is_ok()
                && let Some(taken) = sequencer.take_until(2, &moment)
            {
                let horizon = UnixNanos::new(durable.load(Ordering::Relaxed));
                assert!(
                    taken.end <= sequencer.line().first_stamp_at(horizon),
                    "minted above what is durable"
                );
                tally.count(1);
            }
            writer.join().expect("the model does not panic");
        },
    );
}

#[test]
fn loom_reservations_at_the_ceiling_fill_it_and_never_pass_it() {
    explore("the ceiling was filled by both threads", |tally| {
        let sequencer = Arc::new(sequencer());
        sequencer.raise(START.after(TICK), START);
        let moment = CatchUp::new(START, START).at(START);
        let other = {
            let sequencer = Arc::clone(&sequencer);
            thread::spawn(move || stamps(sequencer.reserve(1, &moment, TICK), 1))
        };
        let mine = [
            stamps(sequencer.reserve(1, &moment, TICK), 1),
            stamps(sequencer.reserve(1, &moment, TICK), 1),
        ];
        let theirs = other.join().expect("the model does not panic");
        let all: Vec<_> = mine
            .iter()
            .chain([&theirs])
            .filter(|run| !run.is_empty())
            .collect();
        assert_eq!(all.len(), 2, "a tick of two stamps serves two of three");
        assert_disjoint(all[0], all[1]);
        assert!(all.iter().all(|run| run.end <= 2));
        tally.count(usize::from(!theirs.is_empty()));
    });
}

/// The tick that contains `START`.
const FIRST_TICK: u64 = 1_800_000_000_000;

#[test]
fn loom_no_run_touches_an_excluded_tick() {
    explore(
        "both threads got stamps, one of them behind the excluded tick",
        |tally| {
            // Each tick has two ids. The second tick, with ids 2 and 3, is skipped. Requests that
            // may wait for one tick can get ids 0, 1, 4 and 5.
            let sequencer = Arc::new(sequencer().around([FIRST_TICK + 1..FIRST_TICK + 2].into()));
            sequencer.raise(START.after(TICK * 10), START);
            let moment = CatchUp::new(START, START).at(START);
            let other = {
                let sequencer = Arc::clone(&sequencer);
                thread::spawn(move || stamps(sequencer.reserve(2, &moment, TICK), 2))
            };
            // This thread reserves one id and then two, the other thread two. If only id 1 is left
            // before the tick to skip, a request for two ids must get ids after that tick.
            let mine = [
                stamps(sequencer.reserve(1, &moment, TICK), 1),
                stamps(sequencer.reserve(2, &moment, TICK), 2),
            ];
            let theirs = other.join().expect("the model does not panic");
            mine.iter().for_each(|mine| assert_disjoint(mine, &theirs));
            assert_disjoint(&mine[0], &mine[1]);
            let all = [&mine[0], &mine[1], &theirs];
            all.iter().for_each(|run| assert_disjoint(run, &(2..4)));
            let are_there = !theirs.is_empty() && all.iter().any(|run| run.start >= 4);
            tally.count(usize::from(are_there));
        },
    );
}

#[test]
fn loom_behind_an_excluded_tick_no_stamp_is_above_a_horizon_that_is_being_raised() {
    explore(
        "a stamp behind the excluded tick below a horizon raised by the other thread",
        |tally| {
            let sequencer = Arc::new(sequencer().around([FIRST_TICK..FIRST_TICK + 1].into()));
            let durable = Arc::new(AtomicU64::new(START.get()));
            let writer = {
                let (sequencer, durable) = (Arc::clone(&sequencer), Arc::clone(&durable));
                thread::spawn(move || {
                    let horizon = START.after(TICK * 2);
                    durable.store(horizon.get(), Ordering::Relaxed);
                    sequencer.raise(horizon, horizon);
                })
            };
            let moment = CatchUp::new(START, START).at(START);
            for _ in 0..2 {
                if let Ok(grant) = sequencer.reserve(1, &moment, TICK) {
                    let horizon = UnixNanos::new(durable.load(Ordering::Relaxed));
                    assert!(grant.first >= 2, "the first tick is left out");
                    assert!(
                        grant.first < sequencer.line().first_stamp_at(horizon),
                        "minted above what is durable"
                    );
                    tally.count(1);
                }
                thread::yield_now();
            }
            writer.join().expect("the model does not panic");
        },
    );
}
