//! The digest of a token. The service stores only the digest, never the token.

use std::fmt;
use std::hint::black_box;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};

/// The SHA-256 of a token. The type has no `==`, because the duration of `==` depends on the first
/// byte that differs, and would help an attacker to guess a token.
#[derive(Clone)]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    /// Returns the digest of this token, as the bearer sends it.
    pub fn of(token: &[u8]) -> TokenDigest {
        TokenDigest(Sha256::digest(token).into())
    }

    /// `true` if both digests belong to the same token. All bytes are always compared.
    pub(super) fn is_of_the_same_token(&self, other: &TokenDigest) -> bool {
        let differing = self
            .0
            .iter()
            .zip(&other.0)
            .fold(0, |differing, (one, other)| {
                black_box(differing | (one ^ other))
            });
        differing == 0
    }
}

/// Formats the digest as 64 hexadecimal digits.
impl fmt::Display for TokenDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for TokenDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "TokenDigest({self})")
    }
}

impl Serialize for TokenDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TokenDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse(&text).ok_or_else(|| {
            // The error does not quote the text, because the text may be the token itself.
            let given = de::Unexpected::Other("another text");
            de::Error::invalid_value(given, &"the 64 lower-case hexadecimal digits of a SHA-256")
        })
    }
}

fn parse(text: &str) -> Option<TokenDigest> {
    let is_plain = text
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let mut digest = TokenDigest([0; 32]);
    if !is_plain || text.len() != 2 * digest.0.len() {
        return None;
    }
    for (at, byte) in digest.0.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_as_it_is_written_and_is_that_of_one_token() {
        // Source: FIPS 180-2, appendix B.1.
        let of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let digest = TokenDigest::of(b"abc");
        assert_eq!(digest.to_string(), of_abc);
        assert!(parse(of_abc).is_some_and(|read| read.is_of_the_same_token(&digest)));
        assert!(!TokenDigest::of(b"abd").is_of_the_same_token(&digest));
        for other in 0..32 {
            let mut differs = digest.clone();
            differs.0[other] ^= 0x80;
            assert!(!differs.is_of_the_same_token(&digest), "byte {other}");
        }
    }

    #[test]
    fn what_is_no_digest_is_refused() {
        let good = TokenDigest::of(b"abc").to_string();
        for text in [
            "",
            "ab",
            &good[1..],
            &format!("{good}0"),
            &good.to_uppercase(),
            &good.replace('b', "g"),
            &"é".repeat(32),
        ] {
            assert!(parse(text).is_none(), "{text:?}");
        }
    }
}
