//! Tests of the sequencer, which hands out stamps. The tests cover its horizon, a start ahead of
//! the clock, the spread of sequence numbers and excluded ticks.

use super::*;
use crate::time::UnixTime;

const START: UnixNanos = UnixNanos::from_seconds(1_800_000_000);
const FAR: UnixNanos = UnixNanos::from_seconds(1_900_000_000);
const NO_WAIT: Duration = Duration::ZERO;

/// Returns a sequencer with ticks of one second and 1 296 sequence numbers per tick, like the
/// format `payment`.
fn payment(start: UnixNanos, now: UnixNanos) -> (Sequencer, CatchUp) {
    let line = StampLine::new("1s".parse().expect("a tick"), UnixTime::EPOCH, 1296, start);
    let sequencer = Sequencer::new(line, SessionStart::at(start), u128::MAX, 0);
    sequencer.raise(FAR, FAR);
    (sequencer, CatchUp::new(start, now))
}

#[test]
fn a_whole_tick_is_free_as_soon_as_it_has_begun_and_no_more() {
    let (sequencer, catch_up) = payment(START, START);
    let granted = sequencer
        .reserve(1296, &catch_up.at(START), NO_WAIT)
        .expect("a fresh second");
    assert_eq!((granted.first, granted.due), (0, START));
    let next_second = START.after(Duration::from_secs(1));
    assert_eq!(
        sequencer.reserve(1, &catch_up.at(START), NO_WAIT),
        Err(Shortage::Sequence { due: next_second })
    );
    let waited = sequencer
        .reserve(1, &catch_up.at(START), Duration::from_secs(1))
        .expect("within the wait");
    assert_eq!((waited.first, waited.due), (1296, next_second));
}

#[test]
fn a_start_ahead_of_the_clock_goes_on_at_half_speed() {
    let now = START.before(Duration::from_secs(2));
    let (sequencer, catch_up) = payment(START, now);
    let half_a_second_later = catch_up.at(now.after(Duration::from_millis(500)));
    // At half speed, half a second advances the sequencer by a quarter of a second. This is 324
    // stamps, because a second has 1 296.
    assert!(
        sequencer
            .reserve(325, &half_a_second_later, NO_WAIT)
            .is_err()
    );
    assert!(
        sequencer
            .reserve(324, &half_a_second_later, NO_WAIT)
            .is_ok()
    );
    let caught_up = now.after(Duration::from_nanos(500_000_000 + 2 * 771_605));
    let Err(Shortage::Sequence { due }) = sequencer.reserve(1, &half_a_second_later, NO_WAIT)
    else {
        panic!("it has not come past the next stamp")
    };
    assert_eq!(due.since(caught_up), Duration::ZERO);
    assert!(
        sequencer.reserve(1, &catch_up.at(due), NO_WAIT).is_ok(),
        "it is to be had when it was said to be"
    );
}

#[test]
fn nothing_is_handed_out_above_the_horizon_and_the_need_is_exact() {
    let line = StampLine::new("1ms".parse().expect("a tick"), UnixTime::EPOCH, 4096, START);
    let sequencer = Sequencer::new(line, SessionStart::at(START), u128::MAX, 5);
    let moment = CatchUp::new(START, START).at(START);
    let Err(Shortage::Horizon { needed }) = sequencer.reserve(4096, &moment, NO_WAIT) else {
        panic!("no horizon was raised yet")
    };
    sequencer.raise(needed, needed);
    assert_eq!(
        sequencer
            .reserve(4096, &moment, NO_WAIT)
            .expect("covered")
            .first,
        0
    );
    assert!(matches!(
        sequencer.reserve(1, &moment, NO_WAIT),
        Err(Shortage::Horizon { .. })
    ));
}

#[test]
fn a_format_ends_at_its_last_tick_and_never_wraps() {
    let line = StampLine::new("1ms".parse().expect("a tick"), UnixTime::EPOCH, 4096, START);
    let last_tick = 1_800_000_000_000;
    let sequencer = Sequencer::new(line, SessionStart::at(START), last_tick + 1, 5);
    sequencer.raise(FAR, FAR);
    let moment = CatchUp::new(START, START).at(START);
    assert_eq!(
        sequencer.reserve(4097, &moment, NO_WAIT),
        Err(Shortage::Ended)
    );
    assert!(sequencer.reserve(4096, &moment, NO_WAIT).is_ok());
    assert_eq!(sequencer.reserve(1, &moment, NO_WAIT), Err(Shortage::Ended));
    assert_eq!(
        sequencer.reserve(u64::MAX, &moment, NO_WAIT),
        Err(Shortage::Ended)
    );
}

#[test]
fn a_spread_moves_the_first_run_of_a_tick_by_its_number_alone() {
    let spread = Spread::over(64);
    assert_eq!(
        [0, 1, 2, 3, 4].map(|tick| spread.of_tick(tick)),
        [0, 39, 15, 54, 30]
    );
    assert_eq!(Spread::over(1).of_tick(1), 0);
}

#[test]
fn the_first_run_of_a_tick_that_begins_above_the_last_stamp_is_spread_and_no_other() {
    let line = StampLine::new("1ms".parse().expect("a tick"), UnixTime::EPOCH, 4096, START);
    let sequencer =
        Sequencer::new(line, SessionStart::at(START), u128::MAX, 1).with_spread(Spread::over(64));
    sequencer.raise(FAR, FAR);
    let catch_up = CatchUp::new(START, START);
    let first = |millis, count| {
        let moment = catch_up.at(START.after(Duration::from_millis(millis)));
        let grant = sequencer.reserve(count, &moment, Duration::from_millis(1));
        grant
            .map(|grant| (grant.first, grant.due.since(moment.now)))
            .expect("within the wait")
    };
    let at = |tick: u64, sequence| (tick * 4096 + sequence, NO_WAIT);
    assert_eq!(first(0, 1), at(0, 0), "the session begins there");
    assert_eq!(
        (first(1, 1), first(1, 2), first(1, 1)),
        (at(1, 39), at(1, 40), at(1, 42))
    );
    assert_eq!(
        (first(2, 4096), first(3, 1)),
        (at(2, 15), at(3, 15)),
        "a batch is spread, and goes on in the next tick"
    );
    assert_eq!(
        first(10, 8192),
        at(10, 0),
        "with what is skipped not all of it would be free at once"
    );
    assert_eq!(
        first(12, 1),
        at(12, 0),
        "a lane that is used up goes on where it stands"
    );
    assert_eq!(first(12, 8190), at(12, 1));
    assert_eq!(first(12, 3), (14 * 4096 - 1, Duration::from_millis(1)));
}

#[test]
fn a_spread_run_needs_a_horizon_that_covers_it_with_all_that_is_skipped() {
    let line = StampLine::new("1ms".parse().expect("a tick"), UnixTime::EPOCH, 4096, START);
    let sequencer =
        Sequencer::new(line, SessionStart::at(START), u128::MAX, 1).with_spread(Spread::over(64));
    let tick = START.after(Duration::from_millis(1));
    let moment = CatchUp::new(START, START).at(tick);
    // The spread makes the first ids of each tick begin at different sequence numbers, here at 39.
    // A horizon that covers only the first ten stamps of the tick is therefore not enough.
    let horizon = sequencer.line.instant_covering(4096 + 10);
    sequencer.raise(horizon, horizon);
    let Err(Shortage::Horizon { needed }) = sequencer.reserve(1, &moment, NO_WAIT) else {
        panic!("it is above the horizon")
    };
    assert_eq!(needed, sequencer.line.instant_covering(4096 + 39 + 1));
    sequencer.raise(needed, needed);
    assert_eq!(
        sequencer
            .reserve(1, &moment, NO_WAIT)
            .expect("covered")
            .first,
        4096 + 39
    );
}

#[test]
fn where_stamps_end_nothing_is_skipped_into_those_of_others() {
    // Checks that the sequencer reports its end instead of wrapping around to stamps that it has
    // already handed out. The end is the end of the 64-bit range, which no process reaches in
    // practice.
    let line = StampLine::new(
        "1ns".parse().expect("a tick"),
        UnixTime::EPOCH,
        1 << 32,
        START,
    );
    let sequencer =
        Sequencer::new(line, SessionStart::at(START), u128::MAX, 1).with_spread(Spread::over(64));
    sequencer.raise(FAR, FAR);
    let moment = CatchUp::new(START, START).at(START.after(Duration::from_secs(3600)));
    assert_eq!(sequencer.reserve(1, &moment, NO_WAIT), Err(Shortage::Ended));
}

#[test]
fn nothing_is_minted_before_the_epoch() {
    let epoch = UnixTime::from(FAR);
    let line = StampLine::new("1s".parse().expect("a tick"), epoch, 1296, START);
    let sequencer = Sequencer::new(line, SessionStart::at(START), 9, 0);
    sequencer.raise(UnixNanos::new(u64::MAX), FAR);
    let catch_up = CatchUp::new(START, START);
    assert_eq!(
        sequencer.reserve(1, &catch_up.at(START), NO_WAIT),
        Err(Shortage::NotBegun)
    );
    assert_eq!(
        sequencer.reached(),
        START,
        "nothing was handed out, so nothing above the start need be reserved"
    );
    assert!(sequencer.reserve(1, &catch_up.at(FAR), NO_WAIT).is_ok());
}

/// Returns the first stamp that each request gets, with four stamps per second. `left_out` are the
/// excluded seconds, counted from the start. Each item of `asked` is a request: the second of its
/// arrival, and its count.
fn first_around(left_out: &[Range<u64>], asked: &[(u64, u64)]) -> Vec<Result<u64, Shortage>> {
    let tick = |second: u64| START.get() / 1_000_000_000 + second;
    let ticks: Vec<_> = left_out
        .iter()
        .map(|row| tick(row.start)..tick(row.end))
        .collect();
    let line = StampLine::new("1s".parse().expect("a tick"), UnixTime::EPOCH, 4, START);
    let sequencer =
        Sequencer::new(line, SessionStart::at(START), u128::MAX, 0).around(ticks.into());
    sequencer.raise(FAR, FAR);
    let catch_up = CatchUp::new(START, START);
    let first = |(second, count): &(u64, u64)| {
        let moment = catch_up.at(START.after(Duration::from_secs(*second)));
        sequencer
            .reserve(*count, &moment, Duration::from_secs(2))
            .map(|grant| grant.first)
    };
    asked.iter().map(first).collect()
}

#[test]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "one row of ticks is left out"
)]
fn a_run_that_would_touch_an_excluded_tick_begins_behind_it_and_lower_stamps_stay_for_shorter_ones()
{
    let due = |second| {
        Err(Shortage::Sequence {
            due: START.after(Duration::from_secs(second)),
        })
    };
    // Seconds 1 and 3 are excluded. A second has four stamps, so five consecutive stamps fit only
    // from second 4 on. A request in second 2 is refused, because it would have to wait longer than
    // allowed.
    assert_eq!(
        first_around(
            &[1..2, 3..4],
            &[(0, 2), (0, 5), (0, 2), (0, 1), (2, 5), (2, 1)]
        ),
        [Ok(0), due(3), Ok(2), Ok(8), due(5), Ok(9)]
    );
    assert_eq!(
        first_around(&[0..2], &[(0, 1), (5, 4), (5, 1)]),
        [Ok(8), Ok(20), Ok(24)]
    );
    // In the second request, the current tick is excluded.
    assert_eq!(
        first_around(&[7..9], &[(0, 1), (7, 1), (20, 9)]),
        [Ok(0), Ok(36), Ok(80)]
    );
}

#[test]
#[should_panic(expected = "a horizon is never lowered")]
fn a_horizon_is_never_lowered() {
    let (sequencer, _) = payment(START, START);
    sequencer.raise(START, START);
}
