//! What stands for a text where only its repetition counts.

use sha2::{Digest, Sha256};

/// The first 128 bits of the SHA-256 of a text: two texts that agree in them are one, as far as anybody knows.
///
/// ```
/// use idmint::id::Fingerprint;
///
/// assert_eq!(Fingerprint::of("1I9ZC1000"), Fingerprint::of("1I9ZC1000"));
/// assert_ne!(Fingerprint::of("1I9ZC1000"), Fingerprint::of("1I9ZC1001"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint([u8; Fingerprint::LEN]);

impl Fingerprint {
    /// Its bytes.
    pub const LEN: usize = 16;

    /// That of a text.
    pub fn of(text: &str) -> Fingerprint {
        let digest = Sha256::digest(text);
        let (first, _) = digest.split_first_chunk().expect("32 bytes");
        Fingerprint(*first)
    }

    /// Its bytes, for a file.
    pub fn to_bytes(self) -> [u8; Fingerprint::LEN] {
        self.0
    }

    /// The one with these bytes.
    pub fn from_bytes(bytes: [u8; Fingerprint::LEN]) -> Fingerprint {
        Fingerprint(bytes)
    }

    /// How many of these stand for a text that was there before. Sorts them.
    pub fn count_repeated(all: &mut [Fingerprint]) -> u64 {
        all.sort_unstable();
        all.windows(2)
            .map(|pair| u64::from(pair[0] == pair[1]))
            .sum()
    }
}
