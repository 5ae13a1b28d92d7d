//! Where the first run of a tick begins, so that lone ids do not all have the same last bits.
//!
//! A caller who mints one id now and then is always the first of its tick. With sequence 0 each time, all of its ids would be
//! divisible by a power of two, and `id % n` would send them to few of n places.

/// How far behind its beginning the first run of a tick starts: at one of the first `N` sequences, told by the tick alone.
///
/// Shape: `N` is a power of two, 1 to 2^30. Neighbouring ticks, and ticks at equal distances, are far apart in it.
/// Source: multiplicative hashing with the golden ratio, D. Knuth, The Art of Computer Programming, volume 3, section 6.4.
///
/// ```
/// use idmint::minting::Spread;
///
/// let spread = Spread::over(64);
/// assert_eq!([0, 1, 2, 3, 4].map(|tick| spread.of_tick(tick)), [0, 39, 15, 54, 30]);
/// assert_eq!(Spread::over(1).of_tick(1), 0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    /// Zero where nothing is spread.
    factor: u64,
    /// Leaves of the product as many high bits as sequences have.
    shift: u32,
}

impl Spread {
    /// Every tick begins with its sequence 0.
    pub(super) const NONE: Spread = Spread {
        factor: 0,
        shift: 0,
    };

    /// 2^64 divided by the golden ratio, made odd.
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

    /// Over the first `sequences`, a power of two.
    ///
    /// # Panics
    /// When it is none.
    pub fn over(sequences: u32) -> Spread {
        assert!(
            sequences.is_power_of_two(),
            "{sequences} is a power of two, checked when the format was made"
        );
        match sequences {
            1 => Spread::NONE,
            _ => Spread {
                factor: Spread::GOLDEN,
                shift: u64::BITS - sequences.ilog2(),
            },
        }
    }

    /// The sequence at which the first run of that tick begins.
    #[inline]
    pub fn of_tick(self, tick: u64) -> u64 {
        tick.wrapping_mul(self.factor).wrapping_shr(self.shift)
    }
}
