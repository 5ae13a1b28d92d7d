//! Tick and sequence as one number that only grows: the stamp.
//!
//! For one worker number of one format `stamp = tick x cardinality(sequence) + sequence`. It stands for the instant
//! `(tick + sequence / cardinality) x T`, so a point in time and a point in the sequence are compared in one line.

use std::time::Duration;

use crate::time::{Tick, UnixNanos, UnixTime};

/// The stamps of one format, counted from the tick that a sequencer starts in: absolute ones need more than 64 bits.
///
/// Units: stamps and ticks relative to the start, instants in nanoseconds since 1970.
/// Bounds: relative stamps last for ten years at least, checked when the format was made; a bound further away is the
/// greatest stamp, which is never minted. Instants end in 2554, with the clock.
///
/// ```
/// use std::time::Duration;
/// use idmint::minting::StampLine;
/// use idmint::time::{UnixNanos, UnixTime};
///
/// // Ticks of a second with 1296 stamps each, as a payment id has them.
/// let start = UnixNanos::from_seconds(1_800_000_000);
/// let line = StampLine::new("1s".parse()?, UnixTime::EPOCH, 1296, start);
/// assert_eq!(line.first_stamp_at(start.after(Duration::from_millis(500))), 648);
/// assert_eq!(line.tick_and_sequence(1297), (1_800_000_001, 1));
/// # Ok::<(), idmint::time::TickError>(())
/// ```
#[derive(Debug, Clone)]
pub struct StampLine {
    /// The instant that relative ticks are counted from, never before the epoch.
    base: UnixNanos,
    /// How far `base` is into its tick, in units of `1 / parts` nanoseconds.
    phase: u64,
    /// The tick of `base`, since the epoch. It may be beyond every tick that can be minted, which have 64 bits.
    base_tick: u128,
    tick: Tick,
    per_tick: u64,
}

impl StampLine {
    /// The stamps from the tick of `start` on, or from the epoch if that comes later.
    ///
    /// `per_tick`: how many values the sequence has, 1 to 2^32.
    ///
    /// # Panics
    /// When `per_tick` is zero.
    pub fn new(tick: Tick, epoch: UnixTime, per_tick: u64, start: UnixNanos) -> StampLine {
        assert!(per_tick > 0, "a sequence has a value");
        let epoch_nanos = epoch.nanos();
        let base = UnixTime::from(start).nanos().max(epoch_nanos);
        let scaled = u128::try_from((base - epoch_nanos) * i128::from(tick.parts()))
            .expect("not before the epoch");
        let (base_tick, phase) = (
            scaled / u128::from(tick.nanos()),
            scaled % u128::from(tick.nanos()),
        );
        StampLine {
            base: UnixNanos::new(
                u64::try_from(base)
                    .expect("epochs are before 2554, checked when the format was made"),
            ),
            phase: u64::try_from(phase).expect("a remainder is less than its divisor"),
            base_tick,
            tick,
            per_tick,
        }
    }

    /// How many stamps a tick has.
    pub fn per_tick(&self) -> u64 {
        self.per_tick
    }

    /// The instant before which nothing can be minted, since the line begins at the epoch or later.
    pub fn base(&self) -> UnixNanos {
        self.base
    }

    /// The tick since the epoch and the sequence of a relative stamp.
    pub fn tick_and_sequence(&self, stamp: u64) -> (u64, u64) {
        let (tick, sequence) = (stamp / self.per_tick, stamp % self.per_tick);
        let tick = u64::try_from(self.base_tick + u128::from(tick));
        (
            tick.expect("a minted stamp lies below the format's end"),
            sequence,
        )
    }

    /// The relative stamp at which tick `tick` since the epoch begins; zero if that is before the start.
    pub fn stamp_of_tick(&self, tick: u128) -> u64 {
        bounded(
            tick.saturating_sub(self.base_tick)
                .saturating_mul(u128::from(self.per_tick)),
        )
    }

    /// The first relative stamp of the first tick that begins at `instant` or later; zero if that is before the start.
    pub fn first_whole_tick_at(&self, instant: UnixNanos) -> u64 {
        let before_base = u128::from(self.base.get().saturating_sub(instant.get()))
            * u128::from(self.tick.parts());
        let ticks = self
            .scaled(instant)
            .saturating_sub(before_base)
            .div_ceil(u128::from(self.tick.nanos()));
        bounded(ticks.saturating_mul(u128::from(self.per_tick)))
    }

    /// The relative tick that an instant falls in.
    #[inline]
    pub fn tick_at(&self, instant: UnixNanos) -> u64 {
        let (tick, _) = divided(self.scaled(instant), self.tick.nanos());
        u64::try_from(tick)
            .expect("no tick is shorter than a nanosecond, and an instant has 64 bits of those")
    }

    /// The first relative stamp whose instant is not before `instant`.
    ///
    /// This one function gives both the exclusive end of what may be minted under a horizon and the first stamp after a
    /// restart from that horizon. Rounded up in both, they meet and never overlap, whatever the tick.
    pub fn first_stamp_at(&self, instant: UnixNanos) -> u64 {
        // 64 bits of nanoseconds, 20 of parts and 32 of stamps are fewer than 128.
        bounded(
            (self.scaled(instant) * u128::from(self.per_tick))
                .div_ceil(u128::from(self.tick.nanos())),
        )
    }

    /// The first instant at which relative tick `tick` has begun.
    pub fn tick_start(&self, tick: u64) -> UnixNanos {
        let scaled = u128::from(tick).saturating_mul(u128::from(self.tick.nanos()));
        self.unscaled(scaled.saturating_sub(u128::from(self.phase)))
    }

    /// The least instant `h` with `first_stamp_at(h) >= end`: a horizon that covers every stamp below `end`.
    pub fn instant_covering(&self, end: u64) -> UnixNanos {
        let Some(last) = end.checked_sub(1) else {
            return self.base;
        };
        // stamp `last` is below the horizon when last x nanos < scaled(h) x per_tick, all exact.
        let scaled =
            (u128::from(last) * u128::from(self.tick.nanos())) / u128::from(self.per_tick) + 1;
        self.unscaled(scaled.saturating_sub(u128::from(self.phase)))
    }

    /// How long `ticks` ticks last, rounded down to nanoseconds.
    pub fn ticks_last(&self, ticks: u64) -> Duration {
        Duration::from_nanos_u128(
            u128::from(ticks) * u128::from(self.tick.nanos()) / u128::from(self.tick.parts()),
        )
    }

    /// Units of `1 / parts` nanoseconds since the beginning of the tick of `base`.
    #[inline]
    fn scaled(&self, instant: UnixNanos) -> u128 {
        let since_base = instant.get().saturating_sub(self.base.get());
        u128::from(since_base) * u128::from(self.tick.parts()) + u128::from(self.phase)
    }

    /// The first nanosecond that is not before so many units of `1 / parts` nanoseconds after `base`; the last that there is
    /// if that is later.
    #[inline]
    fn unscaled(&self, units: u128) -> UnixNanos {
        let (nanos, part) = divided(units, self.tick.parts());
        let instant = nanos
            .saturating_add(u128::from(part > 0))
            .saturating_add(u128::from(self.base.get()));
        UnixNanos::new(bounded(instant))
    }
}

/// The number, or the greatest of 64 bits if it is above that: a bound, of stamps or of instants, that is never reached.
#[inline]
fn bounded(number: u128) -> u64 {
    u64::try_from(number.min(u64::MAX.into())).expect("not above the greatest of 64 bits")
}

/// Quotient and remainder. A division of 64 bits, which nearly always suffices, costs a third of one of 128.
#[inline]
fn divided(number: u128, divisor: u64) -> (u128, u128) {
    match u64::try_from(number) {
        Ok(number) => ((number / divisor).into(), (number % divisor).into()),
        Err(_) => (number / u128::from(divisor), number % u128::from(divisor)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ticks() -> impl Strategy<Value = Tick> {
        prop::sample::select(vec![
            "1s", "10ms", "1ms", "7ms", "100ns", "1us", "1s/65536", "1s/3", "3s/1024", "3600s",
        ])
        .prop_map(|text| text.parse().expect("a tick"))
    }

    fn instants() -> impl Strategy<Value = UnixNanos> {
        (1_600_000_000_000_000_000_u64..2_500_000_000_000_000_000).prop_map(UnixNanos::new)
    }

    /// The absolute stamp of a relative one, in numbers wide enough to compare two lines.
    fn absolute(line: &StampLine, stamp: u64) -> u128 {
        let (tick, sequence) = line.tick_and_sequence(stamp);
        u128::from(tick) * u128::from(line.per_tick()) + u128::from(sequence)
    }

    #[test]
    fn ticks_last_as_long_as_they_say_rounded_down() {
        let lasting = |tick: &str, ticks| {
            StampLine::new(
                tick.parse().expect("a tick"),
                UnixTime::EPOCH,
                1,
                UnixNanos::new(0),
            )
            .ticks_last(ticks)
        };
        assert_eq!(lasting("7ms", 5), Duration::from_millis(35));
        assert_eq!(lasting("1s/3", 2), Duration::from_nanos(666_666_666));
    }

    #[test]
    fn numbers_of_more_than_64_bits_are_divided_like_others() {
        for number in [
            0,
            1,
            65_535,
            u128::from(u64::MAX),
            u128::from(u64::MAX) + 1,
            1 << 90,
        ] {
            for divisor in [1, 3, 65_536] {
                let (quotient, rest) = divided(number, divisor);
                assert_eq!(
                    (quotient * u128::from(divisor) + rest, rest < divisor.into()),
                    (number, true)
                );
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn runs_below_a_horizon_and_from_it_on_never_meet(
            tick in ticks(), per_tick in 1_u64..=8192, start in instants(), ahead_ns in 0_u64..10_000_000_000
        ) {
            let epoch = UnixTime::from_nanos(1_420_070_400_000_000_000);
            let horizon = UnixNanos::new(start.get() + ahead_ns);
            let before = StampLine::new(tick, epoch, per_tick, start);
            let after = StampLine::new(tick, epoch, per_tick, horizon);
            let end = before.first_stamp_at(horizon);
            let begin = after.first_stamp_at(horizon);
            prop_assert_eq!(absolute(&before, end), absolute(&after, begin), "no overlap and no hole");
        }

        #[test]
        fn the_first_stamp_at_an_instant_is_not_before_it(
            tick in ticks(), per_tick in 1_u64..=8192, start in instants(), later_ns in 0_u64..10_000_000_000
        ) {
            let epoch = UnixTime::from_nanos(1_420_070_400_000_000_000);
            let line = StampLine::new(tick, epoch, per_tick, start);
            let instant = UnixNanos::new(start.get() + later_ns);
            let stamp = absolute(&line, line.first_stamp_at(instant));
            // stamp / per_tick x T >= instant, and one stamp less is before it.
            let since_epoch = u128::from(instant.get()) - 1_420_070_400_000_000_000;
            let right = since_epoch * u128::from(tick.parts()) * u128::from(per_tick);
            prop_assert!(stamp * u128::from(tick.nanos()) >= right);
            prop_assert!(stamp == 0 || (stamp - 1) * u128::from(tick.nanos()) < right);
        }

        #[test]
        fn a_covering_horizon_covers_and_one_nanosecond_less_does_not(
            tick in ticks(), per_tick in 1_u64..=8192, start in instants(), end in 1_u64..10_000_000
        ) {
            let line = StampLine::new(tick, UnixTime::EPOCH, per_tick, start);
            let horizon = line.instant_covering(end);
            prop_assume!(horizon.get() < u64::MAX, "beyond 2554");
            prop_assert!(line.first_stamp_at(horizon) >= end);
            if horizon > line.base() {
                prop_assert!(line.first_stamp_at(UnixNanos::new(horizon.get() - 1)) < end);
            }
        }

        #[test]
        fn the_first_whole_tick_at_an_instant_is_the_first_that_begins_there_or_later(
            tick in ticks(), start in instants(), off_ns in -10_000_000_000_i64..10_000_000_000
        ) {
            let line = StampLine::new(tick, UnixTime::EPOCH, 3, start);
            let instant = UnixNanos::new(start.get().saturating_add_signed(off_ns));
            let begins_before = |tick: u128| tick * u128::from(line.tick.nanos()) < u128::from(instant.get()) * u128::from(line.tick.parts());
            let stamp = line.first_whole_tick_at(instant);
            prop_assert_eq!(stamp % 3, 0, "a tick begins there");
            let first = line.base_tick + u128::from(stamp / 3);
            prop_assert!(!begins_before(first), "not before the instant");
            prop_assert!(stamp == 0 || begins_before(first - 1), "the one before begins too early");
        }

        #[test]
        fn a_tick_begins_where_it_begins(tick in ticks(), start in instants(), ahead in 1_u64..1_000_000) {
            let line = StampLine::new(tick, UnixTime::EPOCH, 1, start);
            let begins = line.tick_start(ahead);
            prop_assert_eq!(line.tick_at(begins), ahead);
            prop_assert_eq!(line.tick_at(UnixNanos::new(begins.get() - 1)), ahead - 1);
            prop_assert_eq!(u128::from(line.tick_at(start)) + line.base_tick, u128::try_from(tick.count(UnixTime::EPOCH, start.into())).expect("after 1970"));
        }
    }
}
