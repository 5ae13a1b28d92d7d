//! The id of a ledger.

use std::fmt;

use crate::id::Rejection;
use crate::ledger::hex::{read_hex, write_hex};

/// The id of a ledger: 30 bits of the checksum of its first event, and the version 00 in the two lowest bits.
///
/// Shape: eight lower-case hexadecimal digits.
///
/// ```
/// use idmint::ledger::LedgerId;
///
/// let ledger = LedgerId::from_text("aa77f99c")?;
/// assert_eq!(ledger.bits(), 0xaa77_f99c);
/// assert_eq!(ledger.to_string(), "aa77f99c");
/// # Ok::<(), idmint::id::Rejection>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LedgerId(u32);

impl LedgerId {
    /// The bits of the version. The only version is 00.
    const VERSION: u32 = 0b11;

    /// Reads eight lower-case hexadecimal digits.
    ///
    /// # Errors
    /// [`Rejection::WrongLength`], [`Rejection::BadAlphabet`], [`Rejection::NonCanonical`] for upper case,
    /// [`Rejection::BadVersion`].
    pub fn from_text(text: &str) -> Result<LedgerId, Rejection> {
        let bits = u32::try_from(read_hex(text, 8)?).expect("eight hexadecimal digits are 32 bits");
        LedgerId::from_bits(bits).ok_or(Rejection::BadVersion)
    }

    /// The ledger of these 32 bits; `None` unless the two lowest are 00.
    pub const fn from_bits(bits: u32) -> Option<LedgerId> {
        if bits & LedgerId::VERSION == 0 {
            Some(LedgerId(bits))
        } else {
            None
        }
    }

    /// The ledger named by the checksum of its first event: all bits of it but the two of the version.
    pub(super) const fn of_checksum(checksum: u32) -> LedgerId {
        LedgerId(checksum & !LedgerId::VERSION)
    }

    /// Its text, as the eight digits.
    pub fn digits(self) -> [u8; 8] {
        let mut digits = [0; 8];
        write_hex(self.0.into(), &mut digits);
        digits
    }

    /// All 32 bits.
    pub const fn bits(self) -> u32 {
        self.0
    }
}

impl fmt::Display for LedgerId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:08x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_canonical_text_is_read() {
        let refused = |text| LedgerId::from_text(text).expect_err(text);
        assert_eq!(refused("aa77f99"), Rejection::WrongLength);
        assert_eq!(refused("aa77f99g"), Rejection::BadAlphabet);
        assert_eq!(refused("AA77f99c"), Rejection::NonCanonical);
        assert_eq!(refused("aa77f99d"), Rejection::BadVersion);
        assert_eq!(LedgerId::from_text("00000000"), Ok(LedgerId(0)));
        assert_eq!(LedgerId::from_bits(0xaa77_f99e), None);
    }
}
