//! Random 128-bit numbers that distinguish processes and requests.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A random 128-bit number that is practically unique. Its text form has 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nonce(u128);

impl Nonce {
    /// Creates a nonce from 128 bits.
    pub const fn new(bits: u128) -> Nonce {
        Nonce(bits)
    }
}

impl Nonce {
    /// Returns the 128 bits as a number.
    pub fn bits(self) -> u128 {
        self.0
    }

    /// Returns the lower 64 bits as a number.
    pub fn low_bits(self) -> u64 {
        u64::try_from(self.0 & u128::from(u64::MAX)).expect("64 bits")
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Serialize for Nonce {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Nonce {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Nonce, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_plain = text.len() == 32
            && text
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let bits = is_plain
            .then(|| u128::from_str_radix(&text, 16).ok())
            .flatten();
        bits.map(Nonce)
            .ok_or_else(|| D::Error::custom("must be 32 hexadecimal digits"))
    }
}

/// A source of random numbers. Outside of tests, each number comes from the operating system's
/// kernel, so a copy of the running process (such as a fork) gets different numbers.
pub struct Entropy(Box<dyn FnMut() -> u128 + Send>);

impl Entropy {
    /// Creates a source that calls `draw` for each number.
    pub fn new(draw: impl FnMut() -> u128 + Send + 'static) -> Entropy {
        Entropy(Box::new(draw))
    }

    /// Creates a source that gets its numbers from the operating system's kernel.
    ///
    /// The source panics if the kernel has no random numbers. With predictable numbers, two
    /// processes or two requests could get the same identifier.
    pub fn of_kernel() -> Entropy {
        Entropy::new(|| {
            let mut bytes = [0; 16];
            rand::TryRng::try_fill_bytes(&mut rand::rngs::SysRng, &mut bytes)
                .expect("the kernel has random numbers");
            u128::from_le_bytes(bytes)
        })
    }

    /// Returns a new nonce.
    pub fn nonce(&mut self) -> Nonce {
        Nonce((self.0)())
    }

    /// Returns a random number below `bound`. A `bound` of 0 counts as 1.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        u64::try_from((self.0)() % u128::from(bound.max(1))).expect("below 64 bits")
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy")
    }
}
