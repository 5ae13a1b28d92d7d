//! The one clock of the program: an estimate of the true time that never goes back.
//!
//! The estimate starts at the wall clock, runs on the time since boot, and is drawn towards the wall clock by at most
//! a tenth of the time that passes. A wall clock set back while the program runs is therefore never seen in an id; one
//! set far ahead is not followed. Both are reported.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::clock_line::ClockLine;
use super::source::{ManualTime, Source};
use super::unix_nanos::UnixNanos;
use super::unix_time::UnixTime;

/// A wall clock that differs by less than this from what the time since boot says was not set, only read late.
const STEP_MIN: Duration = Duration::from_millis(20);

/// How far apart the readings of the two clocks may be that are taken for one moment, and so how far an estimate that has just
/// been made may be ahead of the wall clock.
pub(crate) const READ_APART_MAX: Duration = Duration::from_millis(1);

/// The one clock of a program: an estimate of the true time that never goes back, whatever the wall clock does.
///
/// Unit: whole nanoseconds since 1970. Reading it is lock-free and costs one read of the time since boot.
///
/// ```
/// use std::time::Duration;
/// use idmint::time::{ManualClock, UnixNanos};
///
/// let hand = ManualClock::at(UnixNanos::from_seconds(1_800_000_000));
/// let clock = hand.clock();
/// hand.set_wall(UnixNanos::from_seconds(0)); // Somebody sets the wall clock back to 1970.
/// assert_eq!(clock.now(), UnixNanos::from_seconds(1_800_000_000));
///
/// clock.observe(Duration::from_secs(5)); // From now on the estimate runs a tenth slower.
/// hand.advance(Duration::from_secs(10));
/// assert_eq!(clock.now(), UnixNanos::from_seconds(1_800_000_009));
/// ```
#[derive(Debug)]
pub struct Clock {
    source: Source,
    /// The time since boot when it was made.
    made_at_nanos: u64,
    line: ClockLine,
    watched: Mutex<Watched>,
    /// Whether it stands, and goes on only where it is let: [`Clock::let_pass_to`].
    stands: bool,
    /// How far the clocks of a fleet say that the estimate is ahead of them, in nanoseconds; 0 if they do not.
    /// Written by: `refute`, by the thread that looks at them. Read by: the thread that would keep the estimate for ever.
    /// Ordering: Relaxed. It stands for itself, and is a few seconds old anyway.
    /// Tested by: `what_a_fleet_says_of_the_estimate_is_told_until_it_says_otherwise`.
    refuted_nanos: AtomicU64,
}

/// What one look at the wall clock found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// The wall clock less the estimate, in nanoseconds.
    pub skew_nanos: i64,
    /// The wall clock was set since the last look.
    pub step: Option<WallStep>,
    /// The wall clock is further ahead than may be followed, so the estimate stays where it is.
    pub too_far_ahead: bool,
}

/// A wall clock that was set while the program ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WallStep {
    /// It was set back by this much.
    Back(Duration),
    /// It was set ahead by this much.
    Ahead(Duration),
}

#[derive(Debug)]
struct Watched {
    boot_nanos: u64,
    wall_nanos: u64,
}

impl Clock {
    /// The operating system's clock, anchored to what the wall clock shows now.
    pub fn system() -> Clock {
        Clock::on(Source::System)
    }

    /// A clock that stands at this instant and goes on only as far as it is let, for a service that callers test against: a time
    /// before this program was built is as good to it as any.
    ///
    /// ```
    /// use idmint::time::{Clock, UnixNanos};
    ///
    /// let clock = Clock::standing_at(UnixNanos::from_seconds(1_000));
    /// assert!(clock.let_pass_to(UnixNanos::from_seconds(1_001)));
    /// assert_eq!(clock.now(), UnixNanos::from_seconds(1_001));
    /// assert!(!Clock::system().let_pass_to(UnixNanos::from_seconds(1_001)), "that one goes by itself");
    /// ```
    pub fn standing_at(instant: UnixNanos) -> Clock {
        let time = Arc::new(ManualTime::new(0, instant.get()));
        Clock {
            stands: true,
            ..Clock::on(Source::Manual(time))
        }
    }

    /// Lets a clock that stands go on to this instant, if it has not passed it; false where the clock goes by itself.
    pub fn let_pass_to(&self, instant: UnixNanos) -> bool {
        if let (true, Source::Manual(time)) = (self.stands, &self.source) {
            let _one_at_a_time = self.watched.lock().expect("no holder of this lock panics");
            let left = instant.since(self.now());
            time.advance(u64::try_from(left.as_nanos()).expect("between two instants of 64 bits"));
        }
        self.stands
    }

    /// Whether it stands: [`Clock::standing_at`].
    pub fn is_standing(&self) -> bool {
        self.stands
    }

    pub(super) fn on(source: Source) -> Clock {
        let (boot_nanos, wall_nanos) = read_together(&source);
        let line = ClockLine::starting(boot_nanos, wall_nanos);
        let watched = Mutex::new(Watched {
            boot_nanos,
            wall_nanos,
        });
        Clock {
            source,
            made_at_nanos: boot_nanos,
            line,
            watched,
            stands: false,
            refuted_nanos: AtomicU64::new(0),
        }
    }

    /// The estimate of the true time, from 1970 to 2554. Never less than any value returned before it.
    #[inline]
    pub fn now(&self) -> UnixNanos {
        UnixNanos::new(self.line.at(|| self.source.boot_nanos()))
    }

    /// How long there has been this clock, which nobody can set.
    pub fn runs_for(&self) -> Duration {
        Duration::from_nanos(self.source.boot_nanos().saturating_sub(self.made_at_nanos))
    }

    /// Begins anew at the wall clock, whatever was estimated before. Only for a program that has not minted yet.
    pub fn anchor_to_wall(&self) {
        let mut watched = self.watched.lock().expect("no holder of this lock panics");
        let (boot_nanos, wall_nanos) = read_together(&self.source);
        *watched = Watched {
            boot_nanos,
            wall_nanos,
        };
        self.line.redraw(|| (boot_nanos, wall_nanos, 0));
    }

    /// What the wall clock shows.
    pub fn wall(&self) -> UnixNanos {
        UnixNanos::new(self.source.wall_nanos())
    }

    /// Goes on from the wall clock if that is ahead of the estimate, however far. Only for who knows that it is right.
    pub fn step_ahead_to_wall(&self) {
        let mut watched = self.watched.lock().expect("no holder of this lock panics");
        let (boot_nanos, wall_nanos) = read_together(&self.source);
        *watched = Watched {
            boot_nanos,
            wall_nanos,
        };
        let wall_at = |boot_at: u64| wall_nanos.saturating_add(boot_at.saturating_sub(boot_nanos));
        self.line.lift(wall_at, || self.source.boot_nanos());
    }

    /// From now on the clocks of a fleet say that the estimate is ahead of them by so much, or nothing if that is zero.
    pub fn refute(&self, ahead: Duration) {
        self.refuted_nanos.store(
            u64::try_from(ahead.as_nanos()).unwrap_or(u64::MAX),
            Ordering::Relaxed,
        );
    }

    /// How far the estimate is ahead of the clocks of a fleet, if they say that it is too far.
    pub fn ahead_of_fleet(&self) -> Option<Duration> {
        let ahead = Duration::from_nanos(self.refuted_nanos.load(Ordering::Relaxed));
        (!ahead.is_zero()).then_some(ahead)
    }

    /// Looks at the wall clock: draws the estimate towards it, and tells whether it was set since the last look.
    ///
    /// `ahead_max`: how far ahead the wall clock may be and still be followed. Behind, it is followed from any distance,
    /// since the estimate then only runs slower.
    pub fn observe(&self, ahead_max: Duration) -> Observation {
        let mut watched = self.watched.lock().expect("no holder of this lock panics");
        let (boot_nanos, wall_nanos) = read_together(&self.source);
        let passed = boot_nanos.saturating_sub(watched.boot_nanos);
        let step = wall_step(watched.wall_nanos.saturating_add(passed), wall_nanos);
        *watched = Watched {
            boot_nanos,
            wall_nanos,
        };

        let mut skew_nanos = 0;
        let mut too_far_ahead = false;
        self.line.redraw_from(
            |estimate, boot_at| {
                let wall_now = wall_nanos.saturating_add(boot_at.saturating_sub(boot_nanos));
                skew_nanos = difference(wall_now, estimate);
                too_far_ahead =
                    skew_nanos > 0 && Duration::from_nanos(skew_nanos.unsigned_abs()) > ahead_max;
                if too_far_ahead { 0 } else { skew_nanos }
            },
            || self.source.boot_nanos(),
        );
        Observation {
            skew_nanos,
            step,
            too_far_ahead,
        }
    }

    /// What the wall clock shows, if that is a time before 1970.
    pub fn shown_before_1970(&self) -> Option<UnixTime> {
        let before = self.source.wall_before_1970()?.as_nanos();
        i128::try_from(before)
            .ok()
            .map(|nanos| UnixTime::from_nanos(-nanos))
    }

    /// Whether the estimate is a time before this program was built, and so follows a wall clock that was never set.
    pub fn estimates_before_build(&self) -> bool {
        !self.stands && self.now() < built_at()
    }

    /// Whether the wall clock shows a time before this program was built, and so was never set.
    pub fn is_before_build(&self) -> bool {
        !self.stands && self.source.wall_nanos() < built_at().get()
    }
}

/// The day before this program was built: no true clock shows an earlier time.
pub(crate) fn built_at() -> UnixNanos {
    let seconds = env!("BUILT_AT_UNIX_SECONDS")
        .parse()
        .expect("the build script writes a number");
    UnixNanos::from_seconds(seconds)
}

/// Reads both clocks as one moment: again, if something came between the two readings.
fn read_together(source: &Source) -> (u64, u64) {
    const TRIES: usize = 8;
    for _ in 1..TRIES {
        let boot_nanos = source.boot_nanos();
        let wall_nanos = source.wall_nanos();
        if Duration::from_nanos(source.boot_nanos() - boot_nanos) <= READ_APART_MAX {
            return (boot_nanos, wall_nanos);
        }
    }
    (source.boot_nanos(), source.wall_nanos())
}

fn wall_step(expected: u64, found: u64) -> Option<WallStep> {
    let apart = Duration::from_nanos(expected.abs_diff(found));
    match (apart >= STEP_MIN, found < expected) {
        (false, _) => None,
        (true, true) => Some(WallStep::Back(apart)),
        (true, false) => Some(WallStep::Ahead(apart)),
    }
}

fn difference(a: u64, b: u64) -> i64 {
    i64::try_from(i128::from(a) - i128::from(b)).unwrap_or(if a > b { i64::MAX } else { i64::MIN })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::time::manual_clock::ManualClock;

    const START: UnixNanos = UnixNanos::from_seconds(1_800_000_000);
    const AHEAD_MAX: Duration = Duration::from_secs(5);

    #[test]
    fn a_wall_clock_set_back_slows_the_estimate_and_is_reported() {
        let hand = ManualClock::at(START);
        let clock = hand.clock();
        hand.set_wall(START.before(Duration::from_secs(3600)));
        let seen = clock.observe(AHEAD_MAX);
        assert_eq!(seen.step, Some(WallStep::Back(Duration::from_secs(3600))));
        assert_eq!(clock.now(), START);
        hand.advance(Duration::from_secs(10));
        assert_eq!(clock.now(), START.after(Duration::from_secs(9)));
        assert_eq!(clock.observe(AHEAD_MAX).step, None);
    }

    #[test]
    fn a_wall_clock_a_little_ahead_is_caught_up_with_and_not_overtaken() {
        let hand = ManualClock::at(START);
        let clock = hand.clock();
        hand.set_wall(START.after(Duration::from_secs(1)));
        assert_eq!(
            clock.observe(AHEAD_MAX).step,
            Some(WallStep::Ahead(Duration::from_secs(1)))
        );
        hand.advance(Duration::from_secs(5));
        assert_eq!(clock.now(), START.after(Duration::from_millis(5_500)));
        hand.advance(Duration::from_secs(3600));
        assert_eq!(clock.now(), hand.wall());
    }

    #[test]
    fn a_wall_clock_far_ahead_is_not_followed() {
        let hand = ManualClock::at(START);
        let clock = hand.clock();
        hand.set_wall(START.after(Duration::from_secs(3600)));
        let seen = clock.observe(AHEAD_MAX);
        assert!(seen.too_far_ahead);
        hand.advance(Duration::from_secs(100));
        assert_eq!(clock.now(), START.after(Duration::from_secs(100)));
    }

    #[test]
    fn a_step_ahead_goes_to_a_wall_clock_that_is_ahead_and_never_back() {
        let hand = ManualClock::at(START);
        let clock = hand.clock();
        let hour = Duration::from_secs(3600);
        hand.set_wall(START.after(hour));
        clock.observe(AHEAD_MAX);
        assert_eq!((clock.now(), clock.wall()), (START, START.after(hour)));
        clock.step_ahead_to_wall();
        assert_eq!(clock.now(), START.after(hour));
        assert_eq!(
            clock.observe(AHEAD_MAX),
            Observation {
                skew_nanos: 0,
                step: None,
                too_far_ahead: false
            }
        );
        hand.set_wall(START);
        clock.step_ahead_to_wall();
        assert_eq!(clock.now(), START.after(hour));
    }

    #[test]
    fn what_a_fleet_says_of_the_estimate_is_told_until_it_says_otherwise() {
        let clock = ManualClock::at(START).clock();
        assert_eq!(clock.ahead_of_fleet(), None);
        clock.refute(AHEAD_MAX);
        assert_eq!(
            (clock.ahead_of_fleet(), clock.now()),
            (Some(AHEAD_MAX), START)
        );
        clock.refute(Duration::ZERO);
        assert_eq!(clock.ahead_of_fleet(), None);
    }

    #[test]
    fn how_long_a_clock_runs_depends_on_no_wall_clock() {
        let hand = ManualClock::at(START);
        hand.advance(Duration::from_secs(100));
        let clock = hand.clock();
        hand.set_wall(START.after(Duration::from_hours(24)));
        clock.anchor_to_wall();
        assert_eq!(clock.runs_for(), Duration::ZERO);
        hand.advance(Duration::from_secs(7));
        assert_eq!(clock.runs_for(), Duration::from_secs(7));
    }

    #[test]
    fn anchoring_takes_the_wall_clock_as_it_is() {
        let hand = ManualClock::at(START);
        let clock = hand.clock();
        hand.set_wall(START.after(Duration::from_secs(86_400)));
        clock.anchor_to_wall();
        assert_eq!(clock.now(), hand.wall());
    }

    #[test]
    fn a_clock_that_was_never_set_stands_before_the_build() {
        assert!(
            ManualClock::at(UnixNanos::from_seconds(0))
                .clock()
                .is_before_build()
        );
        assert!(!Clock::system().is_before_build());
    }

    #[test]
    fn the_estimate_never_goes_back_while_it_is_redrawn() {
        let clock = Clock::system();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut last = clock.now();
                    while !done.load(Ordering::Relaxed) {
                        let now = clock.now();
                        assert!(now >= last, "{now} came after {last}");
                        last = now;
                    }
                });
            }
            for round in 0..20_000_i64 {
                let correction = if round % 2 == 0 {
                    1_000_000_000
                } else {
                    -1_000_000_000
                };
                clock
                    .line
                    .redraw_from(|_, _| correction, || clock.source.boot_nanos());
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
