//! The hash by which a SIQ names a domain.

use sha2::{Digest, Sha256};

use super::rejection::Rejection;

/// The domain field of a SIQ: the last four bytes of the SHA-256 of the domain, big-endian.
///
/// Source: the SUOU library's documentation of SIQ. The domains `` and `0` stand for development and give 0.
///
/// ```
/// use idmint::id::DomainHash;
/// assert_eq!(DomainHash::of("example.com", None)?.get(), 2_261_653_831);
/// assert_eq!(DomainHash::of("example.com", Some(1))?.get(), 30_284_103);
/// # Ok::<(), idmint::id::Rejection>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DomainHash(u32);

impl DomainHash {
    /// The hash of development: no domain.
    pub const DEVELOPMENT: DomainHash = DomainHash(0);

    /// Hashes the bytes of `domain` as they are; a `local_id` of 1 to 256 takes the place of the top byte, modulo 256.
    ///
    /// # Errors
    /// [`Rejection::BadDomain`] when the domain is not ASCII, [`Rejection::OutOfRange`] for another `local_id`.
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

    /// The hash as the number in the field.
    pub const fn get(self) -> u32 {
        self.0
    }
}
