//! Where random bits come from.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Mutex};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

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
        Randomness::Seeded(Arc::new(Mutex::new(Words {
            generator,
            ..Words::OF_THREAD
        })))
    }

    /// Runs `draw` with words that nobody else gets: looked for once, however many are drawn.
    pub(super) fn with_words<T>(&self, draw: impl FnOnce(&mut Words) -> T) -> T {
        match self {
            Randomness::Thread => WORDS.with_borrow_mut(draw),
            Randomness::Seeded(words) => {
                draw(&mut words.lock().expect("no holder of this lock panics"))
            }
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
    const OF_THREAD: Words = Words {
        generator: None,
        block: [0; Words::BLOCK],
        used: Words::BLOCK,
    };

    /// The next word.
    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        self.take(1)[0]
    }

    /// The next words: `count_max` (at least one) if the block has as many, else what it has, at least one.
    #[inline]
    pub(super) fn take(&mut self, count_max: usize) -> &[u64] {
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
