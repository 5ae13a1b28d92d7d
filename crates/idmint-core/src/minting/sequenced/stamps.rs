//! Stamps combine a tick and a sequence into one increasing number. Ids are computed from runs of
//! consecutive stamps.
//!
//! For one worker number of one format, `stamp = tick x cardinality(sequence) + sequence`. A stamp
//! corresponds to the instant `(tick + sequence / cardinality) x T`, where `T` is the length of a
//! tick. Stamps can therefore be compared with instants.

use std::time::Duration;

use crate::id::{FieldKind, Layout, Progression};
use crate::time::{Tick, UnixNanos, UnixTime};

/// Converts between instants and stamps of one format. Stamps are relative to the tick in which a
/// sequencer starts, because absolute stamps need more than 64 bits.
///
/// Units: stamps and ticks relative to the start, instants in nanoseconds since 1970.
///
/// Relative stamps suffice for at least ten years after the start, which is checked when the format
/// is compiled. A bound that does not fit into 64 bits, such as the end of the format, becomes the
/// greatest stamp, which is never minted. Instants end in the year 2554, like the time of the
/// clock.
#[derive(Debug, Clone)]
pub(crate) struct StampLine {
    /// The instant whose tick has the relative number 0, never before the epoch.
    base: UnixNanos,
    /// The time from the beginning of the tick that contains `base` to `base` itself, in units of
    /// `1 / parts` nanoseconds (see [`Tick::parts`]).
    phase: u64,
    /// The first tick of this converter, counted since the epoch. Its number may need more than 64
    /// bits if the epoch is long before 1970, but no id is minted in such a tick.
    base_tick: u128,
    tick: Tick,
    per_tick: u64,
}

impl StampLine {
    /// Creates a converter between instants and stamps. Stamp 0 is the first one of the tick of
    /// `start`, or of the tick at the epoch if that is later.
    ///
    /// `per_tick` is the number of values that the sequence has in a tick, 1 to 2^32.
    ///
    /// # Panics
    /// Panics if `per_tick` is zero.
    pub(crate) fn new(tick: Tick, epoch: UnixTime, per_tick: u64, start: UnixNanos) -> StampLine {
        assert!(per_tick > 0, "a sequence has a value");
        let epoch_nanos = epoch.nanos();
        let base = UnixTime::from(start).nanos().max(epoch_nanos);
        let scaled = u128::try_from((base - epoch_nanos) * i128::from(tick.parts()))
            .expect("not before the epoch");
        let base_tick = scaled / u128::from(tick.nanos());
        let phase = scaled % u128::from(tick.nanos());
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

    /// Returns the number of stamps in a tick.
    pub(crate) fn per_tick(&self) -> u64 {
        self.per_tick
    }

    /// Returns the instant at which this converter starts. No stamp before this instant is handed
    /// out.
    pub(crate) fn base(&self) -> UnixNanos {
        self.base
    }

    /// Splits a relative stamp into its tick (counted since the epoch) and its sequence.
    pub(crate) fn tick_and_sequence(&self, stamp: u64) -> (u64, u64) {
        let (tick, sequence) = (stamp / self.per_tick, stamp % self.per_tick);
        let tick = u64::try_from(self.base_tick + u128::from(tick));
        (
            tick.expect("a minted stamp lies below the format's end"),
            sequence,
        )
    }

    /// Returns the first stamp of `tick`, counted since the epoch. The stamp is relative to the
    /// converter's first tick, or zero if `tick` is earlier.
    pub(crate) fn stamp_of_tick(&self, tick: u128) -> u64 {
        bounded(
            tick.saturating_sub(self.base_tick)
                .saturating_mul(u128::from(self.per_tick)),
        )
    }

    /// Returns the first stamp of the first tick that begins at or after `instant`, or 0 if that
    /// tick is before the converter's first tick.
    pub(crate) fn first_whole_tick_at(&self, instant: UnixNanos) -> u64 {
        let before_base = u128::from(self.base.get().saturating_sub(instant.get()))
            * u128::from(self.tick.parts());
        let ticks = self
            .scaled(instant)
            .saturating_sub(before_base)
            .div_ceil(u128::from(self.tick.nanos()));
        bounded(ticks.saturating_mul(u128::from(self.per_tick)))
    }

    /// Returns the number of the tick that contains `instant`. The tick that contains `base` has
    /// the number 0.
    #[inline]
    pub(crate) fn tick_at(&self, instant: UnixNanos) -> u64 {
        let (tick, _) = divided(self.scaled(instant), self.tick.nanos());
        u64::try_from(tick)
            .expect("no tick is shorter than a nanosecond, and an instant has 64 bits of those")
    }

    /// Returns the first relative stamp whose instant is not before `instant`.
    ///
    /// If `instant` is a horizon, the result is both the exclusive end of the usable stamps and the
    /// first stamp after a restart. Both use the same rounding, so the stamps before and after the
    /// restart never overlap, whatever the length of a tick is.
    pub(crate) fn first_stamp_at(&self, instant: UnixNanos) -> u64 {
        // The product of nanoseconds (64 bits), parts of a nanosecond (20 bits) and sequence
        // numbers in a tick (32 bits) fits into 128 bits.
        bounded(
            (self.scaled(instant) * u128::from(self.per_tick))
                .div_ceil(u128::from(self.tick.nanos())),
        )
    }

    /// Returns the first whole nanosecond of `tick`, counted from this converter's first tick.
    /// Returns `base` for tick 0, which contains `base` and may begin earlier.
    pub(crate) fn tick_start(&self, tick: u64) -> UnixNanos {
        let scaled = u128::from(tick).saturating_mul(u128::from(self.tick.nanos()));
        self.unscaled(scaled.saturating_sub(u128::from(self.phase)))
    }

    /// Returns the earliest instant `h` with `first_stamp_at(h) >= end`. If time is reserved up to
    /// `h`, the stamps below `end` may be handed out.
    pub(crate) fn instant_covering(&self, end: u64) -> UnixNanos {
        let Some(last) = end.checked_sub(1) else {
            return self.base;
        };
        // Stamp `last` is before an instant if last x (length of a tick) < (time since the
        // beginning of the first tick) x (stamps in a tick). This comparison does not round.
        let scaled =
            (u128::from(last) * u128::from(self.tick.nanos())) / u128::from(self.per_tick) + 1;
        self.unscaled(scaled.saturating_sub(u128::from(self.phase)))
    }

    /// Returns the duration of `ticks` ticks, rounded down to nanoseconds.
    pub(crate) fn ticks_last(&self, ticks: u64) -> Duration {
        Duration::from_nanos_u128(
            u128::from(ticks) * u128::from(self.tick.nanos()) / u128::from(self.tick.parts()),
        )
    }

    /// Returns the time from the beginning of this converter's first tick to `instant`, in units of
    /// `1 / parts` nanoseconds (see [`Tick::parts`]).
    #[inline]
    fn scaled(&self, instant: UnixNanos) -> u128 {
        let since_base = instant.get().saturating_sub(self.base.get());
        u128::from(since_base) * u128::from(self.tick.parts()) + u128::from(self.phase)
    }

    /// Returns the instant that is `units` units after `base`, rounded up to a nanosecond. One unit
    /// is `1 / parts` nanoseconds (see [`Tick::parts`]). The result is at most the last possible
    /// instant.
    #[inline]
    fn unscaled(&self, units: u128) -> UnixNanos {
        let (nanos, part) = divided(units, self.tick.parts());
        let instant = nanos
            .saturating_add(u128::from(part > 0))
            .saturating_add(u128::from(self.base.get()));
        UnixNanos::new(bounded(instant))
    }
}

/// Converts a bound to 64 bits. A number that does not fit becomes `u64::MAX`, which no stamp ever
/// reaches.
#[inline]
fn bounded(number: u128) -> u64 {
    u64::try_from(number.min(u64::MAX.into())).expect("not above the greatest of 64 bits")
}

/// Divides `number` by `divisor`, and returns the quotient and the remainder. A 64-bit division
/// nearly always suffices, and takes a third of the time of a 128-bit division.
#[inline]
fn divided(number: u128, divisor: u64) -> (u128, u128) {
    match u64::try_from(number) {
        Ok(number) => ((number / divisor).into(), (number % divisor).into()),
        Err(_) => (number / u128::from(divisor), number % u128::from(divisor)),
    }
}

/// The amounts that one unit of each field adds to an id. With these amounts, two multiplications
/// turn a tick and a sequence number into an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::minting) struct Shape {
    /// The amount that all fields with a fixed value together add to every id. These are the
    /// constants, the type of the id (qualifier) and the shard (a number from the configuration).
    pub(in crate::minting) fixed: u128,
    pub(in crate::minting) worker_stride: u128,
    pub(in crate::minting) object_stride: u128,
    pub(in crate::minting) steps: Steps,
}

/// The amounts by which an id increases from one tick to the next, and from one sequence to the
/// next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::minting) struct Steps {
    pub(in crate::minting) time_stride: u128,
    pub(in crate::minting) sequence_stride: u128,
    /// The number of values that the sequence has in a tick.
    pub(in crate::minting) per_tick: u64,
}

impl Shape {
    /// Returns the amounts that one unit of each field adds to an id with this layout. The layout
    /// must have a sequence field. `shard` is the value of the shard field.
    pub(in crate::minting) fn of(layout: &Layout, shard: u64) -> Shape {
        let stride = |kind| layout.field_of(kind).map_or(0, |field| field.stride);
        let constants: u128 = layout
            .fields()
            .iter()
            .filter_map(|field| field.constant.map(|value| value * field.stride))
            .sum();
        let sequence = layout
            .field_of(FieldKind::Sequence)
            .expect("a sequenced layout has a sequence, checked when it was made");
        Shape {
            fixed: constants + u128::from(shard) * stride(FieldKind::Shard),
            worker_stride: stride(FieldKind::Worker),
            object_stride: stride(FieldKind::Object),
            steps: Steps {
                time_stride: stride(FieldKind::Time),
                sequence_stride: sequence.stride,
                per_tick: u64::try_from(sequence.max + 1)
                    .expect("at most 2^32, checked when the format was made"),
            },
        }
    }
}

/// A run: ids of one worker number with consecutive stamps. No other run contains any of these
/// stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(in crate::minting) steps: Steps,
    /// The amount that all fields except time and sequence together add to each id.
    pub(in crate::minting) base: u128,
    pub(in crate::minting) tick: u64,
    pub(in crate::minting) sequence: u64,
    pub(in crate::minting) count: u64,
}

impl Run {
    /// Returns the number of ids that are left in the run.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Removes and returns the next ids of the run, up to the end of the current tick. Returns at
    /// most `limit` ids, which must be at least one. Returns `None` if the run is empty.
    pub(crate) fn take_progression(&mut self, limit: u64) -> Option<Progression> {
        if self.count == 0 {
            return None;
        }
        let count = (self.steps.per_tick - self.sequence)
            .min(self.count)
            .min(limit.max(1));
        let first = self.base
            + u128::from(self.tick) * self.steps.time_stride
            + u128::from(self.sequence) * self.steps.sequence_stride;
        self.count -= count;
        self.sequence += count;
        if self.sequence == self.steps.per_tick {
            self.sequence = 0;
            self.tick += 1;
        }
        Some(Progression {
            first,
            step: self.steps.sequence_stride,
            count,
        })
    }

    /// Returns the total length in bytes of the texts of all these ids, or `None` if the length
    /// exceeds 64 bits.
    pub(in crate::minting) fn text_len(
        mut self,
        len: impl Fn(u128) -> usize + Copy,
    ) -> Option<u64> {
        let mut total = 0_u64;
        while let Some(progression) = self.take_progression(u64::MAX) {
            total = total.checked_add(progression.total_len(len))?;
        }
        Some(total)
    }
}

/// Runs of several worker numbers in one batch. Their ids are read tick by tick, and within a tick
/// in the order of the worker numbers.
///
/// The ids ascend if the layout has the time before the worker number, and the worker number before
/// the sequence. See [`Format::has_lanes_in_order`](crate::id::Format::has_lanes_in_order).
#[derive(Debug)]
pub(in crate::minting) struct LaneRuns {
    /// The runs, ordered by worker number and then by stamp.
    runs: Vec<Run>,
}

impl LaneRuns {
    /// Creates a reader of the ids in `runs`. The runs must be ordered by worker number and then by
    /// stamp.
    pub(in crate::minting) fn new(runs: Vec<Run>) -> LaneRuns {
        LaneRuns { runs }
    }

    /// Returns the ids not read yet, as runs of consecutive ids of one worker number.
    pub(in crate::minting) fn left(&self) -> impl Iterator<Item = Run> {
        self.runs.iter().copied()
    }

    /// Removes and returns the next ids that have the same tick and worker number. Returns at most
    /// `limit` ids, which must be at least one. Returns `None` if no ids are left.
    pub(in crate::minting) fn take_progression(&mut self, limit: u64) -> Option<Progression> {
        let left = self.runs.iter_mut().filter(|run| run.count > 0);
        // If several runs continue in the same tick, `min_by_key` returns the first one, which has
        // the lowest worker number.
        left.min_by_key(|run| run.tick)?.take_progression(limit)
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

    /// Converts a stamp that counts from the first tick of `line` to one that counts from the
    /// epoch, so that stamps of different lines can be compared.
    fn absolute(line: &StampLine, stamp: u64) -> u128 {
        let (tick, sequence) = line.tick_and_sequence(stamp);
        u128::from(tick) * u128::from(line.per_tick()) + u128::from(sequence)
    }

    #[test]
    fn half_a_second_is_half_of_the_stamps_of_a_second() {
        use std::time::Duration;
        // A tick is a second with 1296 sequence numbers, as in the format `payment`.
        let start = UnixNanos::from_seconds(1_800_000_000);
        let line = StampLine::new(
            "1s".parse().expect("a valid parameter"),
            UnixTime::EPOCH,
            1296,
            start,
        );
        assert_eq!(
            line.first_stamp_at(start.after(Duration::from_millis(500))),
            648
        );
        assert_eq!(line.tick_and_sequence(1297), (1_800_000_001, 1));
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
            // A stamp's time since the epoch is stamp x (length of a tick) / (stamps in a tick).
            // Check that this time is at or after `instant`, and that the previous stamp's time is
            // before it.
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

    #[test]
    fn a_run_goes_on_in_the_next_tick() {
        let steps = Steps {
            time_stride: 100,
            sequence_stride: 2,
            per_tick: 3,
        };
        let mut run = Run {
            steps,
            base: 50,
            tick: 7,
            sequence: 2,
            count: 5,
        };
        let mut ids = Vec::new();
        while let Some(progression) = run.take_progression(u64::MAX) {
            ids.extend(progression.values());
        }
        assert_eq!(ids, [754, 850, 852, 854, 950]);
    }

    #[test]
    fn ids_come_tick_by_tick_and_in_the_order_of_the_workers_within_a_tick() {
        let steps = Steps {
            time_stride: 1000,
            sequence_stride: 1,
            per_tick: 3,
        };
        let run = |worker: u128, tick, sequence, count| Run {
            steps,
            base: worker * 100,
            tick,
            sequence,
            count,
        };
        let mut runs = LaneRuns::new(vec![
            run(0, 7, 2, 4),
            run(1, 6, 1, 3),
            run(1, 8, 0, 2),
            run(2, 7, 0, 3),
        ]);
        let mut ids = Vec::new();
        while let Some(progression) = runs.take_progression(2) {
            ids.extend(progression.values());
        }
        assert_eq!(
            ids,
            [
                6101, 6102, 7002, 7100, 7200, 7201, 7202, 8000, 8001, 8002, 8100, 8101
            ]
        );
    }
}
