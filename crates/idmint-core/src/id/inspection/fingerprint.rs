//! Fingerprints of texts, which are used to find duplicate texts.

use sha2::{Digest, Sha256};

/// The first 128 bits of the SHA-256 of a text. Two texts with the same fingerprint are considered
/// equal.
///
/// ```
/// use idmint_core::id::Fingerprint;
///
/// assert_eq!(Fingerprint::of("1I9ZC1000"), Fingerprint::of("1I9ZC1000"));
/// assert_ne!(Fingerprint::of("1I9ZC1000"), Fingerprint::of("1I9ZC1001"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint([u8; Fingerprint::LEN]);

impl Fingerprint {
    /// The length of a fingerprint in bytes.
    pub const LEN: usize = 16;

    /// Returns the fingerprint of a text.
    pub fn of(text: &str) -> Fingerprint {
        let digest = Sha256::digest(text);
        let (first, _) = digest.split_first_chunk().expect("32 bytes");
        Fingerprint(*first)
    }

    /// Returns the bytes of the fingerprint, which can be stored in a file.
    pub fn to_bytes(self) -> [u8; Fingerprint::LEN] {
        self.0
    }

    /// Creates a fingerprint from its bytes.
    pub fn from_bytes(bytes: [u8; Fingerprint::LEN]) -> Fingerprint {
        Fingerprint(bytes)
    }

    /// Returns the number of fingerprints in `all` that are equal to an earlier fingerprint. As a
    /// side effect, `all` is sorted.
    pub fn count_repeated(all: &mut [Fingerprint]) -> u64 {
        all.sort_unstable();
        all.windows(2)
            .map(|pair| u64::from(pair[0] == pair[1]))
            .sum()
    }
}
