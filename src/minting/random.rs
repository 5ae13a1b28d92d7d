//! Minting from the time and random bits: no worker number, no horizon, no order within a tick.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::id::{Field, FieldKind, Format, Rejection};
use crate::time::Clock;

/// The clock is read again after so many ids.
const IDS_PER_CLOCK_READ: usize = 4096;

/// Random words drawn at once.
const BLOCK: usize = 256;

/// Where random bits come from.
#[derive(Debug, Clone)]
pub enum Randomness {
    /// ChaCha12 in each thread, seeded and reseeded by the kernel.
    Thread,
    /// One generator for all threads, from a seed: the same ids every time. For tests.
    Seeded(Arc<Mutex<StdRng>>),
}

impl Randomness {
    /// The same bits every time, for tests.
    pub fn seeded(seed: u64) -> Randomness {
        Randomness::Seeded(Arc::new(Mutex::new(StdRng::seed_from_u64(seed))))
    }

    /// Runs `draw` with words that nobody else gets: looked for once, however many are drawn.
    fn with_words<T>(&self, draw: impl FnOnce(Words<'_>) -> T) -> T {
        match self {
            Randomness::Thread => DRAWN.with_borrow_mut(|drawn| draw(Words::Thread(drawn))),
            Randomness::Seeded(generator) => {
                draw(Words::Seeded(generator.lock().expect("no holder of this lock panics")))
            }
        }
    }
}

/// Random words, one after the other.
enum Words<'a> {
    /// Those that this thread has drawn and not used. Used words are taken off the end, so none is used twice.
    Thread(&'a mut Vec<u64>),
    Seeded(MutexGuard<'a, StdRng>),
}

impl Words<'_> {
    #[inline]
    fn next(&mut self) -> u64 {
        match self {
            Words::Thread(drawn) => drawn.pop().unwrap_or_else(|| {
                drawn.resize(BLOCK, 0);
                rand::rng().fill(drawn.as_mut_slice());
                drawn.pop().expect("filled above")
            }),
            Words::Seeded(generator) => {
                let mut word = [0];
                generator.fill(&mut word);
                word[0]
            }
        }
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
    random_fields: Vec<RandomField>,
}

#[derive(Debug, Clone, Copy)]
struct RandomField {
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

thread_local! {
    /// See [`Words::Thread`].
    static DRAWN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

impl RandomMinter {
    /// A minter of a format whose rule is random.
    pub fn new(format: Arc<Format>, clock: Arc<Clock>, randomness: Randomness) -> RandomMinter {
        let fields = format.variants[0].layout.fields();
        let fixed = fields.iter().filter_map(|field| field.constant.map(|value| value * field.stride)).sum();
        let time_stride = fields.iter().find(|field| field.kind == FieldKind::Time).map_or(0, |field| field.stride);
        let random = fields.iter().filter(|field| field.kind == FieldKind::Random);
        let mask = |max: u128| u128::MAX >> max.leading_zeros().min(127);
        let random_field = |field: &Field| RandomField { max: field.max, mask: mask(field.max), stride: field.stride };
        let random_fields = random.map(random_field).collect();
        RandomMinter { clock, randomness, fixed, time_stride, random_fields, format }
    }

    /// `count` ids, to be drawn when they are spelled.
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

    #[inline]
    fn draw(&self, words: &mut Words<'_>) -> u128 {
        self.random_fields.iter().map(|field| field.draw(words) * field.stride).sum()
    }
}

impl RandomField {
    /// A number from 0 to `max`, each as likely as the others: too large ones are drawn again.
    #[inline]
    fn draw(&self, words: &mut Words<'_>) -> u128 {
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
        self.minter.randomness.with_words(|mut words| {
            while !rest.is_empty() {
                if self.until_clock_read == 0 {
                    // A format that ends in the middle of a batch goes on with its last tick: the batch was promised.
                    self.base = self.minter.base().unwrap_or(self.base);
                    self.until_clock_read = IDS_PER_CLOCK_READ;
                }
                let (of_one_read, later) = rest.split_at_mut(self.until_clock_read.min(rest.len()));
                for id in &mut *of_one_read {
                    *id = self.base + self.minter.draw(&mut words);
                }
                self.until_clock_read -= of_one_read.len();
                rest = later;
            }
        });
        self.left -= u64::try_from(count).expect("a slice is shorter than 2^64");
        count
    }
}
