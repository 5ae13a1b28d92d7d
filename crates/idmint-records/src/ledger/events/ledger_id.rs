//! The id of a ledger.

use std::fmt;

use crate::ledger::hex::{read_hex, write_hex};
use idmint_core::id::Rejection;

/// The id of a ledger. It has 30 bits from the checksum of the ledger's first event, followed by
/// two bits for the version, which is 00.
///
/// As text, it is eight lower-case hexadecimal digits.
///
/// ```
/// use idmint_records::ledger::LedgerId;
///
/// let ledger = LedgerId::from_text("aa77f99c")?;
/// assert_eq!(ledger.bits(), 0xaa77_f99c);
/// assert_eq!(ledger.to_string(), "aa77f99c");
/// # Ok::<(), idmint_core::id::Rejection>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LedgerId(u32);

impl LedgerId {
    /// The rule for the text of an id, as the end of a sentence.
    pub const RULE: &str = "8 lower-case hexadecimal digits, the last one 0, 4, 8 or c";

    /// A mask of the two version bits.
    const VERSION: u32 = 0b11;

    /// Parses an id from eight lower-case hexadecimal digits.
    ///
    /// # Errors
    /// Returns [`Rejection::WrongLength`] or [`Rejection::BadAlphabet`] if the text is not eight
    /// hexadecimal digits, [`Rejection::NonCanonical`] if it has upper-case letters, and
    /// [`Rejection::BadVersion`] if the version is not 00.
    pub fn from_text(text: &str) -> Result<LedgerId, Rejection> {
        let bits = u32::try_from(read_hex(text, 8)?).expect("eight hexadecimal digits are 32 bits");
        LedgerId::from_bits(bits).ok_or(Rejection::BadVersion)
    }

    /// Returns the ledger with this id, or `None` if the version (the two lowest bits) is not 00.
    pub const fn from_bits(bits: u32) -> Option<LedgerId> {
        if bits & LedgerId::VERSION == 0 {
            Some(LedgerId(bits))
        } else {
            None
        }
    }

    /// Returns the id of the ledger whose first event has this checksum of its content and, if it
    /// has `entities`, its time. The two lowest bits of the id (its version) are set to 00.
    pub(super) const fn of_checksum(checksum: u32) -> LedgerId {
        LedgerId(checksum & !LedgerId::VERSION)
    }

    /// Returns the id as eight hexadecimal digits in ASCII.
    pub fn digits(self) -> [u8; 8] {
        let mut digits = [0; 8];
        write_hex(self.0.into(), &mut digits);
        digits
    }

    /// Returns all 32 bits of the id, including the version.
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
