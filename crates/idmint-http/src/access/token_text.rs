//! The text of tokens, as their bearers send it.

use std::fmt::{self, Write};

use rand::TryRng;
use rand::rngs::{SysError, SysRng};

use super::token_digest::TokenDigest;

/// The prefix of every token. A search for this prefix finds tokens that have leaked.
const PREFIX: &str = "idmint_";

/// A new token: the prefix and 256 random bits in hexadecimal. Only [`TokenText::text`] reveals it.
pub struct TokenText(String);

impl TokenText {
    /// Returns a new random token.
    ///
    /// # Errors
    /// Returns an error if the operating system provides no randomness.
    pub fn random() -> Result<TokenText, SysError> {
        let mut random = [0; 32];
        SysRng.try_fill_bytes(&mut random)?;
        let mut text = PREFIX.to_owned();
        for byte in random {
            write!(text, "{byte:02x}").expect("a string takes everything");
        }
        Ok(TokenText(text))
    }

    /// Returns the text that the bearer sends.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Returns the digest that the service stores.
    pub fn digest(&self) -> TokenDigest {
        TokenDigest::of(self.0.as_bytes())
    }
}

/// Returns the text with all tokens in it redacted.
pub(super) fn without_tokens(text: &str) -> String {
    let mut parts = text.split(PREFIX);
    let mut clean = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric());
        clean.extend([PREFIX, if rest.len() < part.len() { "…" } else { "" }, rest]);
    }
    clean
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

    #[test]
    fn tokens_are_taken_out_of_a_text_and_nothing_else_is() {
        let token = TokenText::random().expect("the system has randomness");
        let text = format!("\"{0}\" and {0}, not idmint_ or idmint", token.text());
        assert_eq!(
            without_tokens(&text),
            "\"idmint_…\" and idmint_…, not idmint_ or idmint"
        );
    }
}
