//! The clock of the process. It estimates the true time, and never goes back.
//!
//! The estimate starts at the wall clock and advances with the time since boot. It is slewed
//! towards the wall clock by at most a tenth of the elapsed time. If the wall clock is set back
//! while the process runs, the estimate only runs slower. If the wall clock is set far ahead, the
//! estimate does not follow. [`Clock::observe`] reports steps in both directions.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::clock_line::ClockLine;
use super::source::{ManualTime, Source};
use super::unix_nanos::UnixNanos;
use super::unix_time::UnixTime;

/// The minimum size of a step of the wall clock. The wall clock has made a step if, since the last
/// observation, it advanced by at least 20 ms more or less than the time since boot. Smaller
/// differences come from delayed readings.
const STEP_MIN: Duration = Duration::from_millis(20);

/// The maximum time between the two clock readings that [`Watched::read`] combines. A new estimate
/// may be ahead of the wall clock by this much.
pub(crate) const READ_APART_MAX: Duration = Duration::from_millis(1);

/// The clock of a process. It estimates the true time, and never goes back even if the wall clock
/// does.
///
/// Unit: whole nanoseconds since 1970. Reading the clock takes no lock, and reads the time since
/// boot only once.
///
/// ```
/// use std::time::Duration;
/// use idmint_core::time::{ManualClock, UnixNanos};
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
    /// The time since boot when this clock was created.
    made_at_nanos: u64,
    line: ClockLine,
    watched: Mutex<Watched>,
    /// `true` if the clock stands still until [`Clock::let_pass_to`] advances it.
    stands: bool,
    /// The time in nanoseconds by which the estimate is ahead of the other clocks in the fleet,
    /// negative if it is behind them. 0 if the fleet does not contradict the estimate.
    /// Written by: `refute` and `refute_as_behind`, by the thread that compares the clocks.
    /// Read by: the threads that would store the estimate permanently.
    /// Ordering: Relaxed, because no other memory depends on the value, which is a few seconds old
    /// anyway.
    /// Tested by: `what_a_fleet_says_of_the_estimate_is_told_until_it_says_otherwise`.
    refuted_nanos: AtomicI64,
}

/// The result of comparing the wall clock with the estimate once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// The wall clock minus the estimate, in nanoseconds.
    pub skew_nanos: i64,
    /// The step that the wall clock made since the last observation, or `None` if it made no step.
    pub step: Option<WallStep>,
    /// `true` if the wall clock is so far ahead that the estimate does not follow it.
    pub too_far_ahead: bool,
}

/// A step of the wall clock while the process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WallStep {
    /// The wall clock was set back by this duration.
    Back(Duration),
    /// The wall clock was set ahead by this duration.
    Ahead(Duration),
}

/// The time since boot and the wall clock at nearly the same moment.
#[derive(Debug)]
struct Watched {
    boot_nanos: u64,
    wall_nanos: u64,
}

impl Watched {
    /// Reads both clocks, up to eight times if too much time passes between the two readings.
    fn read(source: &Source) -> Watched {
        const TRIES: usize = 8;
        for _ in 1..TRIES {
            let boot_nanos = source.boot_nanos();
            let wall_nanos = source.wall_nanos();
            if Duration::from_nanos(source.boot_nanos() - boot_nanos) <= READ_APART_MAX {
                return Watched {
                    boot_nanos,
                    wall_nanos,
                };
            }
        }
        Watched {
            boot_nanos: source.boot_nanos(),
            wall_nanos: source.wall_nanos(),
        }
    }

    /// Returns the time that the wall clock shows when `boot_at` nanoseconds have passed since
    /// boot, unless somebody sets the wall clock before then.
    fn wall_at(&self, boot_at: u64) -> u64 {
        let passed = boot_at.saturating_sub(self.boot_nanos);
        self.wall_nanos.saturating_add(passed)
    }
}

impl Clock {
    /// Returns a clock that reads the operating system's clocks. Its estimate of the true time
    /// starts at the current time of the wall clock.
    pub fn system() -> Clock {
        Clock::on(Source::System)
    }

    /// Returns a clock that stands still at `instant`. Only [`Clock::let_pass_to`] advances it.
    ///
    /// Such a clock is for test instances of the service. Unlike other clocks, it may therefore
    /// show a time before this program was built.
    ///
    /// ```
    /// use idmint_core::time::{Clock, UnixNanos};
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

    /// Advances a standing clock to `instant`, or leaves the clock unchanged if it already shows a
    /// later time. Returns `false` if the clock runs by itself.
    pub fn let_pass_to(&self, instant: UnixNanos) -> bool {
        if let (true, Source::Manual(time)) = (self.stands, &self.source) {
            let _one_at_a_time = self.watched.lock().expect("no holder of this lock panics");
            let left = instant.since(self.now());
            time.advance(u64::try_from(left.as_nanos()).expect("between two instants of 64 bits"));
        }
        self.stands
    }

    /// `true` if the clock was created by [`Clock::standing_at`].
    pub fn is_standing(&self) -> bool {
        self.stands
    }

    pub(super) fn on(source: Source) -> Clock {
        let watched = Watched::read(&source);
        Clock {
            source,
            made_at_nanos: watched.boot_nanos,
            line: ClockLine::starting(watched.boot_nanos, watched.wall_nanos),
            watched: Mutex::new(watched),
            stands: false,
            refuted_nanos: AtomicI64::new(0),
        }
    }

    /// Returns the estimate of the true time, from 1970 to 2554. The estimate is never earlier than
    /// a previous one.
    #[inline]
    pub fn now(&self) -> UnixNanos {
        UnixNanos::new(self.line.at(|| self.source.boot_nanos()))
    }

    /// Returns the time since this clock was created. Changes of the wall clock do not affect the
    /// result.
    pub fn runs_for(&self) -> Duration {
        Duration::from_nanos(self.source.boot_nanos().saturating_sub(self.made_at_nanos))
    }

    /// Sets the clock's estimate of the true time to the wall clock, even if the wall clock is
    /// earlier. Only a process that has not minted yet may call this function.
    pub fn anchor_to_wall(&self) {
        let mut watched = self.watched.lock().expect("no holder of this lock panics");
        *watched = Watched::read(&self.source);
        self.line
            .redraw(|| (watched.boot_nanos, watched.wall_nanos, 0));
    }

    /// Returns the time that the wall clock shows, which may go back.
    pub fn wall(&self) -> UnixNanos {
        UnixNanos::new(self.source.wall_nanos())
    }

    /// If the wall clock is later than the estimate, sets the estimate to the wall clock, no matter
    /// how large the difference is. The caller must know that the wall clock is right.
    pub fn step_ahead_to_wall(&self) {
        let mut watched = self.watched.lock().expect("no holder of this lock panics");
        *watched = Watched::read(&self.source);
        self.line.lift(
            |boot_at| watched.wall_at(boot_at),
            || self.source.boot_nanos(),
        );
    }

    /// Records the time by which the estimate is ahead of the other clocks in the fleet. Zero means
    /// that the fleet does not contradict the estimate.
    pub fn refute(&self, ahead: Duration) {
        self.refuted_nanos
            .store(saturating_nanos(ahead), Ordering::Relaxed);
    }

    /// Records that this clock's estimate of the true time is behind the other clocks in the fleet
    /// by the time `behind`. Replaces the result of the last comparison.
    pub fn refute_as_behind(&self, behind: Duration) {
        self.refuted_nanos
            .store(-saturating_nanos(behind), Ordering::Relaxed);
    }

    /// Returns the time by which this clock is ahead of the other clocks in the fleet, or `None` if
    /// the last comparison with them did not show that it is ahead.
    pub fn ahead_of_fleet(&self) -> Option<Duration> {
        let ahead = u64::try_from(self.refuted_nanos.load(Ordering::Relaxed)).ok()?;
        (ahead > 0).then(|| Duration::from_nanos(ahead))
    }

    /// Returns the time by which this clock is behind the other clocks in the fleet, or `None` if
    /// the last comparison with them did not show that it is behind.
    pub fn behind_fleet(&self) -> Option<Duration> {
        let ahead = self.refuted_nanos.load(Ordering::Relaxed);
        (ahead < 0).then(|| Duration::from_nanos(ahead.unsigned_abs()))
    }

    /// Reads the wall clock, starts slewing the estimate towards it, and reports whether the wall
    /// clock has made a step since the last observation.
    ///
    /// If the wall clock is ahead, the estimate follows only if the difference is at most
    /// `ahead_max`. If the wall clock is behind, the estimate follows for any difference, because
    /// it then only runs slower.
    pub fn observe(&self, ahead_max: Duration) -> Observation {
        let mut watched = self.watched.lock().expect("no holder of this lock panics");
        let found = Watched::read(&self.source);
        let step = wall_step(watched.wall_at(found.boot_nanos), found.wall_nanos);
        *watched = found;

        let mut skew_nanos = 0;
        let mut too_far_ahead = false;
        self.line.redraw_from(
            |estimate, boot_at| {
                skew_nanos = difference(watched.wall_at(boot_at), estimate);
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

    /// Returns the time of the wall clock if it is before 1970, or `None` otherwise.
    pub fn shown_before_1970(&self) -> Option<UnixTime> {
        let before = self.source.wall_before_1970()?.as_nanos();
        i128::try_from(before)
            .ok()
            .map(|nanos| UnixTime::from_nanos(-nanos))
    }

    /// `true` if the clock's estimate of the true time is earlier than the build of this program.
    /// This means that the estimate started from a wall clock that was never set.
    pub fn estimates_before_build(&self) -> bool {
        !self.stands && self.now() < built_at()
    }

    /// `true` if the wall clock shows a time before the build of this program, so it was never set.
    pub fn is_before_build(&self) -> bool {
        !self.stands && self.source.wall_nanos() < built_at().get()
    }
}

/// Returns midnight of the day before this program was built. No correct clock shows an earlier
/// time.
pub fn built_at() -> UnixNanos {
    let seconds = env!("BUILT_AT_UNIX_SECONDS")
        .parse()
        .expect("the build script writes a number");
    UnixNanos::from_seconds(seconds)
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

fn saturating_nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
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
        clock.refute_as_behind(AHEAD_MAX);
        assert_eq!(
            (clock.ahead_of_fleet(), clock.behind_fleet()),
            (None, Some(AHEAD_MAX))
        );
        clock.refute(Duration::ZERO);
        assert_eq!((clock.ahead_of_fleet(), clock.behind_fleet()), (None, None));
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
