//! Minting from the time and random bits: no worker number, no horizon, no order within a tick.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Mutex};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::id::{Field, FieldKind, Format, Rejection};
use crate::time::Clock;

/// The clock is read again after so many ids.
const IDS_PER_CLOCK_READ: usize = 4096;

/// Where random bits come from.
#[derive(Debug, Clone)]
pub enum Randomness {
    /// ChaCha12 in each thread, seeded and reseeded by the kernel.
    Thread,
    /// One generator for all threads, from a seed: the same ids every time. For tests.
    Seeded(Arc<Mutex<Words>>),
}

impl Randomness {
    /// The same bits every time, for tests.
    pub fn seeded(seed: u64) -> Randomness {
        let generator = Some(StdRng::seed_from_u64(seed));
        Randomness::Seeded(Arc::new(Mutex::new(Words { generator, ..Words::OF_THREAD })))
    }

    /// Runs `draw` with words that nobody else gets: looked for once, however many are drawn.
    fn with_words<T>(&self, draw: impl FnOnce(&mut Words) -> T) -> T {
        match self {
            Randomness::Thread => WORDS.with_borrow_mut(draw),
            Randomness::Seeded(words) => draw(&mut words.lock().expect("no holder of this lock panics")),
        }
    }
}

thread_local! {
    static WORDS: RefCell<Words> = const { RefCell::new(Words::OF_THREAD) };
}

/// Random words, drawn in blocks and handed out one after the other, each once.
pub struct Words {
    /// `None`: that of the thread.
    generator: Option<StdRng>,
    block: [u64; Words::BLOCK],
    /// How many words of the block are used.
    used: usize,
}

impl Words {
    /// Enough words to forget what drawing them costs beside their number.
    const BLOCK: usize = 256;

    /// The words of a thread, none of them drawn yet.
    const OF_THREAD: Words = Words { generator: None, block: [0; Words::BLOCK], used: Words::BLOCK };

    #[inline]
    fn next(&mut self) -> u64 {
        self.take(1)[0]
    }

    /// The next words: `count_max` (at least one) if the block has as many, else what it has, at least one.
    #[inline]
    fn take(&mut self, count_max: usize) -> &[u64] {
        if self.used == Words::BLOCK {
            self.draw();
        }
        let words = &self.block[self.used..];
        let words = &words[..count_max.min(words.len())];
        self.used += words.len();
        words
    }

    #[cold]
    fn draw(&mut self) {
        match &mut self.generator {
            None => rand::rng().fill(&mut self.block),
            Some(generator) => generator.fill(&mut self.block),
        }
        self.used = 0;
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ids will be made of the words: they are shown to nobody.
        out.debug_struct("Words").finish_non_exhaustive()
    }
}

/// Mints one random format.
#[derive(Debug)]
pub struct RandomMinter {
    format: Arc<Format>,
    clock: Arc<Clock>,
    randomness: Randomness,
    /// The share of the constants.
    fixed: u128,
    time_stride: u128,
    /// The places of all bits that are random whatever the others are.
    bits: u128,
    /// The random fields that are no bits of their own.
    ranges: Vec<Range>,
}

/// A random field with another number of values than a power of two, or at another place.
#[derive(Debug, Clone, Copy)]
struct Range {
    max: u128,
    /// The bits that numbers up to `max` have.
    mask: u128,
    stride: u128,
}

/// Ids of a random format that are not drawn yet.
#[derive(Debug)]
pub struct RandomIds {
    minter: Arc<RandomMinter>,
    /// What is the same until the clock is read again: constants and time.
    base: u128,
    until_clock_read: usize,
    left: u64,
}

impl RandomMinter {
    /// A minter of a format whose rule is random.
    pub fn new(format: Arc<Format>, clock: Arc<Clock>, randomness: Randomness) -> RandomMinter {
        let fields = format.variants[0].layout.fields();
        let fixed = fields.iter().filter_map(|field| field.constant.map(|value| value * field.stride)).sum();
        let time_stride = fields.iter().find(|field| field.kind == FieldKind::Time).map_or(0, |field| field.stride);
        let random = fields.iter().filter(|field| field.kind == FieldKind::Random);
        let (of_bits, of_ranges): (Vec<&Field>, Vec<&Field>) = random.partition(|field| is_bits(field));
        let bits = of_bits.iter().map(|field| field.max * field.stride).sum();
        let ranges = of_ranges.iter().map(|field| Range::of(field)).collect();
        RandomMinter { clock, randomness, fixed, time_stride, bits, ranges, format }
    }

    /// `count` ids, to be drawn when they are encoded.
    ///
    /// # Errors
    /// [`Rejection::BeforeEpoch`] or [`Rejection::Overflow`] when the format cannot express the present.
    pub fn ids(self: &Arc<RandomMinter>, count: u64) -> Result<RandomIds, Rejection> {
        let base = self.base()?;
        Ok(RandomIds { minter: Arc::clone(self), base, until_clock_read: IDS_PER_CLOCK_READ, left: count })
    }

    /// The format that it mints.
    pub fn format(&self) -> &Arc<Format> {
        &self.format
    }

    fn base(&self) -> Result<u128, Rejection> {
        if self.time_stride == 0 {
            return Ok(self.fixed);
        }
        let ticks = self.format.ticks_at(self.clock.now().into())?;
        if self.format.end_tick().is_some_and(|end| ticks >= end) {
            return Err(Rejection::Overflow);
        }
        Ok(self.fixed + ticks * self.time_stride)
    }

    /// Adds random fields to `base`, anew for each id.
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
                    let ranges: u128 = self.ranges.iter().map(|range| range.draw(words) * range.stride).sum();
                    *id = base + (number & self.bits) + ranges;
                }
            }
        }
    }
}

/// Whether a field takes whole bits of the id, so that random bits of a number are its value at its place.
fn is_bits(field: &Field) -> bool {
    field.stride.is_power_of_two() && field.max.count_ones() + field.max.leading_zeros() == u128::BITS
}

impl Range {
    fn of(field: &Field) -> Range {
        Range { max: field.max, mask: u128::MAX >> field.max.leading_zeros().min(127), stride: field.stride }
    }

    /// A number from 0 to `max`, each as likely as the others: too large ones are drawn again.
    fn draw(&self, words: &mut Words) -> u128 {
        loop {
            let low = u128::from(words.next());
            let number = if self.mask > u128::from(u64::MAX) { low | u128::from(words.next()) << 64 } else { low };
            if number & self.mask <= self.max {
                return number & self.mask;
            }
        }
    }
}

impl RandomIds {
    /// How many are left.
    pub fn count(&self) -> u64 {
        self.left
    }

    /// Draws ids into `ids` and says how many.
    pub fn fill(&mut self, ids: &mut [u128]) -> usize {
        let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(ids.len());
        let mut rest = &mut ids[..count];
        self.minter.randomness.with_words(|words| {
            while !rest.is_empty() {
                if self.until_clock_read == 0 {
                    // A format that ends in the middle of a batch goes on with its last tick: the batch was promised.
                    self.base = self.minter.base().unwrap_or(self.base);
                    self.until_clock_read = IDS_PER_CLOCK_READ;
                }
                let (of_one_read, later) = rest.split_at_mut(self.until_clock_read.min(rest.len()));
                self.minter.draw(self.base, of_one_read, words);
                self.until_clock_read -= of_one_read.len();
                rest = later;
            }
        });
        self.left -= u64::try_from(count).expect("a slice is shorter than 2^64");
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{FormatDefinition, PRESETS};
    use crate::time::{ManualClock, UnixNanos};

    fn minter(name: &str, toml: &str) -> Arc<RandomMinter> {
        let format = FormatDefinition::from_toml(name, toml).expect("a definition").compile(name).expect("a format");
        let clock = ManualClock::at(UnixNanos::from_seconds(1_795_232_161)).clock();
        Arc::new(RandomMinter::new(Arc::new(format), Arc::new(clock), Randomness::seeded(7)))
    }

    /// So many ids, taken off in pieces of `piece`.
    fn minted(minter: &Arc<RandomMinter>, count: usize, piece: usize) -> Vec<u128> {
        let mut ids = vec![0; count];
        let mut drawn = minter.ids(u64::try_from(count).expect("small")).expect("the format has begun");
        ids.chunks_mut(piece).for_each(|ids| assert_eq!(drawn.fill(ids), ids.len()));
        ids
    }

    #[test]
    fn every_random_bit_is_drawn_and_no_other() {
        for preset in PRESETS {
            let definition = FormatDefinition::from_toml(preset.name, preset.toml).expect("a definition");
            let format = definition.compile(preset.name).expect("a format");
            if format.rule != crate::id::Rule::Random {
                continue;
            }
            let minter = minter(preset.name, preset.toml);
            let ids = minted(&minter, 1_000, 64);
            let changes = ids.iter().fold(0, |changes, id| changes | (id ^ ids[0]));
            let fields = format.variants[0].layout.fields().iter().filter(|field| field.kind == FieldKind::Random);
            assert_eq!(changes, fields.map(|field| field.max * field.stride).sum::<u128>(), "{}", preset.name);
            let base = minter.base().expect("the format has begun");
            assert!(ids.iter().all(|id| id & !changes == base), "{}", preset.name);
        }
    }

    #[test]
    fn ids_are_the_same_in_pieces_of_any_length() {
        for name in ["flax", "uuid4"] {
            let preset = PRESETS.iter().find(|preset| preset.name == name).expect("a built-in format");
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
        assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
    }

    #[test]
    fn the_clock_is_read_again_after_so_many_ids_and_all_is_counted_down() {
        let preset = PRESETS.iter().find(|preset| preset.name == "flax").expect("a built-in format");
        let definition = FormatDefinition::from_toml(preset.name, preset.toml).expect("a definition");
        let format = Arc::new(definition.compile(preset.name).expect("a format"));
        let start = UnixNanos::from_seconds(1_795_232_161);
        let hand = ManualClock::at(start);
        let minter = RandomMinter::new(Arc::clone(&format), Arc::new(hand.clock()), Randomness::seeded(7));
        let mut drawn = Arc::new(minter).ids(10_000).expect("the format has begun");
        let mut ids = vec![0; 4096];
        for (left, second) in [(5904, 0), (1808, 1)] {
            assert_eq!(drawn.fill(&mut ids), 4096);
            assert_eq!(drawn.count(), left);
            let time = UnixNanos::from_seconds(1_795_232_161 + second).into();
            assert!(ids.iter().all(|id| format.split(*id).expect("an id").time == Some(time)));
            hand.advance(std::time::Duration::from_secs(1));
        }
        assert_eq!((drawn.fill(&mut ids), drawn.count(), drawn.fill(&mut ids)), (1808, 0, 0));
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
        let (ones, zeros) = ids.iter().fold((0, u128::MAX), |(ones, zeros), id| (ones | id, zeros & id));
        assert_eq!((ones, zeros), ((1 << 70) - 1, 0), "each of the 70 bits is one in some and zero in others");
    }
}
