//! Tokens as their bearers have them.

use std::fmt::{self, Write};

use rand::TryRng;
use rand::rngs::{SysError, SysRng};

use super::token_digest::TokenDigest;

/// What every token begins with, so that it is known as one wherever it turns up.
const PREFIX: &str = "idmint_";

/// A new token: the prefix and 256 random bits in hexadecimal. It shows itself only where it is asked for its text.
pub struct TokenText(String);

impl TokenText {
    /// A token that nobody has.
    ///
    /// # Errors
    /// When the operating system has no randomness.
    pub fn random() -> Result<TokenText, SysError> {
        let mut random = [0; 32];
        SysRng.try_fill_bytes(&mut random)?;
        let mut text = PREFIX.to_owned();
        for byte in random {
            write!(text, "{byte:02x}").expect("a string takes everything");
        }
        Ok(TokenText(text))
    }

    /// As its bearer sends it.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// What the service keeps of it.
    pub fn digest(&self) -> TokenDigest {
        TokenDigest::of(self.0.as_bytes())
    }
}

impl fmt::Debug for TokenText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TokenText(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_tokens_differ_and_neither_shows_itself() {
        let [one, other] = [0, 1].map(|_| TokenText::random().expect("the system has randomness"));
        assert_ne!(one.text(), other.text());
        assert_eq!(one.text().len(), PREFIX.len() + 64);
        assert_eq!(format!("{one:?}"), "TokenText(…)");
    }
}
