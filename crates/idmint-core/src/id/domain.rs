//! The hash of a domain name in a SIQ id.

use sha2::{Digest, Sha256};

use super::rejection::Rejection;

/// The hash of a domain name, which is the value of the domain field in a SIQ id. The hash is the
/// last four bytes of the SHA-256 of the name, read as a big-endian number.
///
/// Source: the SUOU library's documentation of SIQ. The empty domain and the domain `0` stand for
/// development, and their hash is 0.
///
/// ```
/// use idmint_core::id::DomainHash;
/// assert_eq!(DomainHash::of("example.com", None)?.get(), 2_261_653_831);
/// assert_eq!(DomainHash::of("example.com", Some(1))?.get(), 30_284_103);
/// # Ok::<(), idmint_core::id::Rejection>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DomainHash(u32);

impl DomainHash {
    /// The hash 0, which marks ids that were minted during development and not for a real domain.
    pub const DEVELOPMENT: DomainHash = DomainHash(0);

    /// Hashes the bytes of `domain` unchanged, so upper and lower case give different hashes. If
    /// `local_id` is given, it must be 1 to 256, and `local_id` modulo 256 replaces the top byte of
    /// the hash.
    ///
    /// # Errors
    /// Returns [`Rejection::BadDomain`] if the domain is not ASCII, or [`Rejection::OutOfRange`] if
    /// `local_id` is not 1 to 256.
    pub fn of(domain: &str, local_id: Option<u16>) -> Result<DomainHash, Rejection> {
        if !domain.is_ascii() {
            return Err(Rejection::BadDomain);
        }
        let local = match local_id {
            None => None,
            Some(id @ 1..=256) => Some(u8::try_from(id % 256).expect("a number below 256")),
            Some(_) => return Err(Rejection::OutOfRange),
        };
        if matches!(domain, "" | "0") {
            return Ok(DomainHash::DEVELOPMENT);
        }
        let digest: [u8; 32] = Sha256::digest(domain.as_bytes()).into();
        let [.., top, b, c, d] = digest;
        Ok(DomainHash(u32::from_be_bytes([
            local.unwrap_or(top),
            b,
            c,
            d,
        ])))
    }

    /// Returns the hash as a number, the value of the field `domain` in an id of the SIQ format.
    pub const fn get(self) -> u32 {
        self.0
    }
}
