//! Sources of random bits.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Mutex};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The source from which random ids take their random bits.
#[derive(Debug, Clone)]
pub enum Randomness {
    /// A ChaCha12 generator in each thread, whose seed comes from the kernel.
    Thread,
    /// One generator for all threads. Its seed is fixed, so every run produces the same ids. For
    /// tests.
    Seeded(Arc<Mutex<Words>>),
}

impl Randomness {
    /// Returns a source that produces the same bits whenever `seed` is the same. For tests.
    pub fn seeded(seed: u64) -> Randomness {
        let generator = Some(StdRng::seed_from_u64(seed));
        Randomness::Seeded(Arc::new(Mutex::new(Words {
            generator,
            ..Words::OF_THREAD
        })))
    }

    /// Calls `draw` with exclusive access to the random words of this source. The thread-local
    /// variable or the lock is accessed only once, even if `draw` takes many words.
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

/// Random 64-bit words that are generated in blocks. Each word is used only once.
pub struct Words {
    /// The generator with a fixed seed, or `None` to use the thread's own generator.
    generator: Option<StdRng>,
    block: [u64; Words::BLOCK],
    /// The number of words in `block` that are already used.
    used: usize,
}

impl Words {
    /// The number of words in a block. With this many words, the fixed cost of generating a block
    /// is negligible.
    const BLOCK: usize = 256;

    /// A new thread's words. The block counts as used up, so the first word needs a new block.
    const OF_THREAD: Words = Words {
        generator: None,
        block: [0; Words::BLOCK],
        used: Words::BLOCK,
    };

    /// Returns the next random word.
    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        self.take(1)[0]
    }

    /// Returns the next random words: at least one, and at most `count_max`. At the end of a block,
    /// fewer than `count_max` words are returned.
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
        // Future ids will contain the unused random words, so debug output must not show them.
        out.debug_struct("Words").finish_non_exhaustive()
    }
}
