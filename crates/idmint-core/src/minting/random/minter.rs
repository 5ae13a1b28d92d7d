//! Mints ids from time and random bits. Random formats have no worker number and no horizon. Their
//! ids are in order only if the format's `monotonic` setting asks for an order.
//!
//! In an ordered format, all ids of one response have the same timestamp, and their random numbers
//! ascend. The ids are drawn in chunks, when they are encoded. The range of random numbers is
//! divided into as many equal parts as the response has ids. A chunk with the ids `from` to `to`
//! draws its random numbers from the parts `from` to `to` together, and sorts them. Every random
//! number is thus equally likely, so a collision with ids of other responses is as unlikely as
//! without an order:
//!
//! ```text
//!   random numbers   0 |------ chunk 1 ------|------ chunk 2 ------|-- chunk 3 --| 2^80
//!   ids of 1 200           512, sorted           512, sorted          176, sorted
//! ```

use std::sync::Arc;

use super::space::RandomSpace;
use super::span::Span;
use super::tick_parts::{TickPart, TickParts};
use super::words::{Randomness, Words};
use crate::id::{Field, FieldKind, Format, Monotonic, Rejection};
use crate::time::{Clock, UnixTime};

/// The number of independently drawn ids after which the clock is read again.
const IDS_PER_CLOCK_READ: usize = 4096;

/// Mints the ids of one random format.
#[derive(Debug)]
pub(crate) struct RandomMinter {
    format: Arc<Format>,
    clock: Arc<Clock>,
    randomness: Randomness,
    /// The id in which the constant fields have their values and all other fields are 0.
    fixed: u128,
    time_stride: u128,
    /// A mask of the bits of an id that are copied from random bits. A random field is included if
    /// it fills whole bits of the id, such as 4 bits for the values 0 to 15.
    bits: u128,
    /// The random fields whose values do not fill a whole number of bits of an id, such as 0 to 9.
    /// Each item is the range of the values of a field, and its stride, which is the amount that
    /// one unit of the field adds to an id.
    ranges: Vec<(Span, u128)>,
    /// All random fields as one number, so that the ids of a response ascend. `None` if they need
    /// not ascend.
    space: Option<RandomSpace>,
    /// The parts of ticks that earlier responses have used. Each response gets a later part, so
    /// that its ids are greater. `None` if responses are not ordered.
    parts: Option<TickParts>,
}

/// The ids of one response that have not been drawn yet.
#[derive(Debug)]
pub(crate) struct RandomIds {
    minter: Arc<RandomMinter>,
    drawing: Drawing,
    left: u64,
}

/// The way in which the next ids of a response are drawn. `base` is the part of an id that is not
/// random: the constants and the time.
#[derive(Debug)]
enum Drawing {
    /// Ids are drawn independently. The clock is read again after `until_clock_read` more ids.
    Single { base: u128, until_clock_read: usize },
    /// Ids are generated in ascending order. `count` is the number of ids in the whole response.
    /// The random fields of an id form one number, which lies in `numbers`.
    Ascending {
        base: u128,
        numbers: Span,
        count: u64,
    },
}

impl RandomMinter {
    /// Creates the minter of a random format.
    pub(crate) fn new(
        format: Arc<Format>,
        clock: Arc<Clock>,
        randomness: Randomness,
    ) -> RandomMinter {
        let layout = format.layout();
        let fixed = layout.least();
        let time_stride = layout.field_of(FieldKind::Time);
        let time_stride = time_stride.map_or(0, |field| field.stride);
        let (of_bits, of_ranges): (Vec<&Field>, Vec<&Field>) = layout
            .fields_of(FieldKind::Random)
            .partition(|field| is_bits(field));
        let bits = of_bits.iter().map(|field| field.max * field.stride).sum();
        let ranges = of_ranges
            .iter()
            .map(|field| (Span::up_to(field.max), field.stride))
            .collect();
        let ascends = format.monotonic != Monotonic::Off;
        let space = ascends.then(|| RandomSpace::of(layout));
        let base_tick = format.ticks_at(UnixTime::EPOCH).unwrap_or(0);
        let parts = format
            .monotonic
            .has_parts()
            .then(|| TickParts::from(base_tick));
        RandomMinter {
            clock,
            randomness,
            fixed,
            time_stride,
            bits,
            ranges,
            space,
            parts,
            format,
        }
    }

    /// Reserves `count` ids for a response. They are drawn only when they are encoded.
    ///
    /// # Errors
    /// Returns [`Rejection::BeforeEpoch`] or [`Rejection::Overflow`] if the format cannot express
    /// the current time.
    ///
    /// # Panics
    /// Panics if ids must ascend and `count` is 2^40 or more, because the format may have fewer
    /// random numbers than that.
    pub(crate) fn ids(self: &Arc<RandomMinter>, count: u64) -> Result<RandomIds, Rejection> {
        Ok(RandomIds {
            minter: Arc::clone(self),
            drawing: self.drawing(count)?,
            left: count,
        })
    }

    fn drawing(&self, count: u64) -> Result<Drawing, Rejection> {
        let Some(space) = &self.space else {
            return Ok(Drawing::Single {
                base: self.base()?,
                until_clock_read: IDS_PER_CLOCK_READ,
            });
        };
        let numbers = Span::up_to(space.greatest());
        let Some(parts) = &self.parts else {
            return Ok(Drawing::Ascending {
                base: self.base()?,
                numbers,
                count,
            });
        };
        let TickPart { tick, part } = self.part(parts)?;
        let numbers = numbers.parts(part, part + 1, Monotonic::PARTS_OF_TICK);
        Ok(Drawing::Ascending {
            base: self.base_of(tick)?,
            numbers,
            count,
        })
    }

    /// Takes the part of a tick for the next response. With `monotonic = "clock"`, this is the part
    /// that contains the current time, or the part after the last taken one if that is later. With
    /// `"process"`, the first response of a tick gets a random part, and each later response gets
    /// the next part.
    fn part(&self, parts: &TickParts) -> Result<TickPart, Rejection> {
        let now = self.clock.now().into();
        let tick = self.format.ticks_at(now)?;
        if self.format.monotonic == Monotonic::Clock {
            let unit = self
                .format
                .tick
                .expect("a format with parts has ticks, checked when it was made");
            let part = unit.part_at(self.format.epoch, now, Monotonic::PARTS_OF_TICK);
            return Ok(parts.take(TickPart { tick, part }, 0));
        }
        let drawn = self
            .randomness
            .with_words(|words| words.next() % Monotonic::PARTS_OF_TICK);
        Ok(parts.take(TickPart { tick, part: 0 }, drawn))
    }

    fn base(&self) -> Result<u128, Rejection> {
        if self.time_stride == 0 {
            return Ok(self.fixed);
        }
        self.base_of(self.format.ticks_at(self.clock.now().into())?)
    }

    fn base_of(&self, tick: u128) -> Result<u128, Rejection> {
        if self.format.end_tick().is_some_and(|end| tick >= end) {
            return Err(Rejection::Overflow);
        }
        Ok(self.fixed + tick * self.time_stride)
    }

    fn draw_ascending(&self, base: u128, piece: Span, ids: &mut [u128], words: &mut Words) {
        let space = self
            .space
            .as_ref()
            .expect("what ascends is drawn as one number");
        piece.draw_ascending(ids, words);
        ids.iter_mut()
            .for_each(|id| *id = base + space.share_of(*id));
    }

    fn draw_singly(
        &self,
        base: &mut u128,
        until_clock_read: &mut usize,
        mut ids: &mut [u128],
        words: &mut Words,
    ) {
        while !ids.is_empty() {
            if *until_clock_read == 0 {
                // The whole batch was promised to the caller. If no id can have the current time,
                // because the format has ended, the remaining ids keep the previous time.
                *base = self.base().unwrap_or(*base);
                *until_clock_read = IDS_PER_CLOCK_READ;
            }
            let (of_one_read, later) = ids.split_at_mut((*until_clock_read).min(ids.len()));
            self.draw(*base, of_one_read, words);
            *until_clock_read -= of_one_read.len();
            ids = later;
        }
    }

    /// Fills `ids`. Each id is `base` plus newly drawn random fields.
    fn draw(&self, base: u128, ids: &mut [u128], words: &mut Words) {
        match u64::try_from(self.bits) {
            Ok(bits) if self.ranges.is_empty() => {
                let mut rest = ids;
                while !rest.is_empty() {
                    let words = words.take(rest.len());
                    let (drawn, later) = rest.split_at_mut(words.len());
                    for (id, word) in drawn.iter_mut().zip(words) {
                        *id = base + u128::from(word & bits);
                    }
                    rest = later;
                }
            }
            _ => {
                for id in ids {
                    let number = u128::from(words.next()) | u128::from(words.next()) << 64;
                    let ranges: u128 = self
                        .ranges
                        .iter()
                        .map(|(values, stride)| values.draw(words) * stride)
                        .sum();
                    *id = base + (number & self.bits) + ranges;
                }
            }
        }
    }
}

/// `true` if the values of the field fill a whole number of bits of the id, such as 0 to 15. Such a
/// value can be drawn by masking random bits.
fn is_bits(field: &Field) -> bool {
    field.stride.is_power_of_two()
        && field.max.count_ones() + field.max.leading_zeros() == u128::BITS
}

impl RandomIds {
    /// Returns the number of ids that have not been drawn yet.
    pub(crate) fn count(&self) -> u64 {
        self.left
    }

    /// Draws the next ids into `ids`, and returns their number.
    pub(crate) fn fill(&mut self, ids: &mut [u128]) -> usize {
        let RandomIds {
            minter,
            drawing,
            left,
        } = self;
        let count = usize::try_from(*left).unwrap_or(usize::MAX).min(ids.len());
        if count == 0 {
            return 0;
        }
        let ids = &mut ids[..count];
        let after = *left - u64::try_from(count).expect("a slice is shorter than 2^64");
        minter.randomness.with_words(|words| match drawing {
            Drawing::Single {
                base,
                until_clock_read,
            } => minter.draw_singly(base, until_clock_read, ids, words),
            Drawing::Ascending {
                base,
                numbers,
                count,
            } => {
                let piece = numbers.parts(*count - *left, *count - after, *count);
                minter.draw_ascending(*base, piece, ids, words);
            }
        });
        *left = after;
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{FormatDefinition, PRESETS};
    use crate::time::{ManualClock, UnixNanos};

    fn minter(name: &str, toml: &str) -> Arc<RandomMinter> {
        let format = FormatDefinition::from_toml(name, toml)
            .expect("a definition")
            .compile(name)
            .expect("a format");
        let clock = ManualClock::at(UnixNanos::from_seconds(1_795_232_161)).clock();
        Arc::new(RandomMinter::new(
            Arc::new(format),
            Arc::new(clock),
            Randomness::seeded(7),
        ))
    }

    /// Returns `count` ids that are drawn in chunks of `piece` ids.
    fn minted(minter: &Arc<RandomMinter>, count: usize, piece: usize) -> Vec<u128> {
        let mut ids = vec![0; count];
        let mut drawn = minter
            .ids(u64::try_from(count).expect("small"))
            .expect("the format has begun");
        ids.chunks_mut(piece)
            .for_each(|ids| assert_eq!(drawn.fill(ids), ids.len()));
        ids
    }

    #[test]
    fn every_random_bit_is_drawn_and_no_other() {
        for preset in PRESETS {
            let definition =
                FormatDefinition::from_toml(preset.name, preset.toml).expect("a definition");
            let format = definition.compile(preset.name).expect("a format");
            if format.rule != crate::id::Rule::Random {
                continue;
            }
            let minter = minter(preset.name, preset.toml);
            let ids = minted(&minter, 1_000, 64);
            let changes = ids.iter().fold(0, |changes, id| changes | (id ^ ids[0]));
            let fields = format.variants[0]
                .layout
                .fields()
                .iter()
                .filter(|field| field.kind == FieldKind::Random);
            // Ids of one response have the same timestamp. With `monotonic = "clock"`, the field
            // `random_a` is not random but the finer part of that timestamp. The test leaves this
            // field out, because it is the same in all ids of a response.
            let fields = fields
                .filter(|field| format.monotonic != Monotonic::Clock || field.name != "random_a");
            assert_eq!(
                changes,
                fields.map(|field| field.max * field.stride).sum::<u128>(),
                "{}",
                preset.name
            );
            let base = minter.base().expect("the format has begun");
            assert!(
                ids.iter().all(|id| id & !changes == base),
                "{}",
                preset.name
            );
        }
    }

    #[test]
    fn ids_are_the_same_in_pieces_of_any_length() {
        for name in ["flax", "uuid4"] {
            let preset = PRESETS
                .iter()
                .find(|preset| preset.name == name)
                .expect("a built-in format");
            let whole = minted(&minter(name, preset.toml), 10_000, 10_000);
            assert_eq!(minted(&minter(name, preset.toml), 10_000, 7), whole);
            let mut sorted = whole;
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), 10_000, "no word is used twice");
        }
    }

    #[test]
    fn a_range_has_each_of_its_values_about_as_often() {
        let digits = r#"
            summary = "A letter and a digit"
            reveals = "Nothing."
            rule = "random"
            fields = [
                { name = "letter", kind = "random", cardinality = 5 },
                { name = "digit", kind = "random", cardinality = 3 },
            ]
            encodings = ["decimal"]
        "#;
        let mut counts = [0; 15];
        for id in minted(&minter("digits", digits), 15_000, 64) {
            counts[usize::try_from(id).expect("below 15")] += 1;
        }
        assert!(
            counts.iter().all(|count| (800..1_200).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn the_clock_is_read_again_after_so_many_ids_and_all_is_counted_down() {
        let preset = PRESETS
            .iter()
            .find(|preset| preset.name == "flax")
            .expect("a built-in format");
        let definition =
            FormatDefinition::from_toml(preset.name, preset.toml).expect("a definition");
        let format = Arc::new(definition.compile(preset.name).expect("a format"));
        let start = UnixNanos::from_seconds(1_795_232_161);
        let hand = ManualClock::at(start);
        let minter = RandomMinter::new(
            Arc::clone(&format),
            Arc::new(hand.clock()),
            Randomness::seeded(7),
        );
        let mut drawn = Arc::new(minter).ids(10_000).expect("the format has begun");
        let mut ids = vec![0; 4096];
        for (left, second) in [(5904, 0), (1808, 1)] {
            assert_eq!(drawn.fill(&mut ids), 4096);
            assert_eq!(drawn.count(), left);
            let time = UnixNanos::from_seconds(1_795_232_161 + second).into();
            assert!(
                ids.iter()
                    .all(|id| format.split(*id).expect("an id").time == Some(time))
            );
            hand.advance(std::time::Duration::from_secs(1));
        }
        assert_eq!(
            (drawn.fill(&mut ids), drawn.count(), drawn.fill(&mut ids)),
            (1808, 0, 0)
        );
    }

    #[test]
    fn a_range_of_more_than_64_bits_has_all_of_them_drawn_and_no_value_above_it() {
        let cardinality = (1_u128 << 70) + 1;
        let wide = format!(
            r#"
            summary = "A wide range"
            reveals = "Nothing."
            rule = "random"
            fields = [ {{ name = "wide", kind = "random", cardinality = "{cardinality}" }} ]
            encodings = ["decimal"]
        "#
        );
        let ids = minted(&minter("wide", &wide), 1_000, 64);
        assert!(ids.iter().all(|id| *id < cardinality));
        let (ones, zeros) = ids
            .iter()
            .fold((0, u128::MAX), |(ones, zeros), id| (ones | id, zeros & id));
        assert_eq!(
            (ones, zeros),
            ((1 << 70) - 1, 0),
            "each of the 70 bits is one in some and zero in others"
        );
    }

    fn following(like: &str, mode: Monotonic, hand: &ManualClock) -> Arc<RandomMinter> {
        let preset = PRESETS
            .iter()
            .find(|preset| preset.name == like)
            .expect("a built-in format");
        let lines = preset
            .toml
            .lines()
            .filter(|line| !line.starts_with("monotonic"));
        let toml =
            lines.collect::<Vec<_>>().join("\n") + &format!("\nmonotonic = '{}'", mode.name());
        let format = FormatDefinition::from_toml(like, &toml)
            .expect("a definition")
            .compile(like)
            .expect("a format");
        Arc::new(RandomMinter::new(
            Arc::new(format),
            Arc::new(hand.clock()),
            Randomness::seeded(7),
        ))
    }

    #[test]
    fn ids_of_one_answer_ascend_in_pieces_of_any_length() {
        let hand = ManualClock::at(UnixNanos::from_seconds(1_795_232_161));
        for like in ["uuid7", "ulid", "firebase", "flax"] {
            for mode in [Monotonic::Clock, Monotonic::Batch, Monotonic::Process] {
                let minter = following(like, mode, &hand);
                for (count, piece) in [(1, 1), (2, 1), (1_000, 7), (1_000, 1_000), (10_000, 512)] {
                    let ids = minted(&minter, count, piece);
                    assert!(
                        ids.is_sorted_by(|one, next| one < next),
                        "{count} of {like} by {piece}, {}",
                        mode.name()
                    );
                    assert!(ids.iter().all(|id| minter.format.split(*id).is_ok()));
                }
            }
        }
    }

    #[test]
    fn a_large_answer_has_all_of_the_random_numbers_whatever_its_pieces_are() {
        let hand = ManualClock::at(UnixNanos::from_seconds(1_795_232_161));
        let minter = following("ulid", Monotonic::Batch, &hand);
        for piece in [512, 4_096, 16_000] {
            let ids = minted(&minter, 16_000, piece);
            let mut counts = [0; 16];
            ids.iter()
                .for_each(|id| counts[usize::try_from(id >> 76 & 15).expect("four bits")] += 1);
            assert!(
                counts.iter().all(|count| (800..1_200).contains(count)),
                "{counts:?} by {piece}"
            );
        }
    }

    #[test]
    fn answers_of_a_process_ascend_while_its_clock_stands_still_or_is_slow() {
        let start = UnixNanos::from_seconds(1_795_232_161);
        for like in ["uuid7", "ulid"] {
            for mode in [Monotonic::Clock, Monotonic::Process] {
                let hand = ManualClock::at(start);
                let minter = following(like, mode, &hand);
                let mut last = 0;
                for step in 0..20_000_u32 {
                    let ids = minted(&minter, if step % 100 == 0 { 1_000 } else { 1 }, 512);
                    assert!(last < ids[0], "{like} {}, step {step}", mode.name());
                    last = ids[ids.len() - 1];
                    hand.advance(std::time::Duration::from_nanos(u64::from(step % 5) * 100));
                }
                // A tick of 1 ms has 4 096 parts, one for each response, so the 20 000 responses
                // take nearly five ticks. The clock advances by 4 ms in the meantime, so the times
                // of ids must not be far ahead of it.
                let time = minter
                    .format
                    .split(last)
                    .expect("an id")
                    .time
                    .expect("a time");
                let ahead = time.nanos() - i128::from(hand.wall().get());
                assert!(ahead < 3_000_000, "{ahead} ns ahead of the clock");
            }
        }
    }

    #[test]
    fn a_clock_that_was_ahead_before_the_first_id_leaves_no_trace() {
        let start = UnixNanos::from_seconds(1_795_232_161);
        for mode in [Monotonic::Clock, Monotonic::Process] {
            let hand = ManualClock::at(start.after(std::time::Duration::from_hours(24 * 365)));
            let minter = following("uuid7", mode, &hand);
            hand.set_wall(start);
            minter.clock.anchor_to_wall();
            let id = minted(&minter, 1, 1)[0];
            let time = minter.format.split(id).expect("an id").time;
            assert_eq!(time, Some(start.into()), "{}", mode.name());
        }
    }

    #[test]
    fn a_uuid7_carries_the_time_below_its_millisecond_and_the_others_do_not() {
        let start = UnixNanos::from_seconds(1_795_232_161);
        let hand = ManualClock::at(start);
        let minters =
            [Monotonic::Clock, Monotonic::Batch].map(|mode| following("uuid7", mode, &hand));
        let mut agreeing = 0;
        for nanos in [
            0_u64, 244, 245, 500_000, 999_755, 999_756, 1_000_000, 1_500_000,
        ] {
            hand.advance(std::time::Duration::from_nanos(nanos) - hand.wall().since(start));
            let [id, drawn] = minters.each_ref().map(|minter| minted(minter, 1, 1)[0]);
            let parts = minters[0].format.split(id).expect("an id");
            // A tick has 4 096 parts of about 244 ns. At 244 and 245 ns, the current part is taken.
            let taken = nanos == 244 || nanos == 245;
            let nanos = u128::from(nanos);
            assert_eq!(parts.values[0], 1_795_232_161_000 + nanos / 1_000_000);
            assert_eq!(
                parts.values[2],
                nanos % 1_000_000 * 4_096 / 1_000_000 + u128::from(taken),
                "{nanos} ns"
            );
            agreeing += usize::from(drawn >> 64 & 0xfff == parts.values[2]);
        }
        assert!(agreeing < 3, "the others draw these bits");
    }
}
