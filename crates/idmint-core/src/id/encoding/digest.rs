//! A digest of an encoding. Equal digests show that two encodings write the same text for every
//! number, without revealing the secret salts of the encodings.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::encoding::Encoding;

/// The digest covers the text of every number below this bound. Each letter of an alphabet, which
/// has up to 94 (kind `radix`), occurs in at least one of these texts.
const SMALL: u128 = 256;

/// The length in bytes to which the hash is truncated. With 16 bytes, different encodings do not
/// get the same digest by accident.
const LEN: usize = 16;

impl Encoding {
    /// Returns a digest of how this encoding writes numbers, in lower-case hexadecimal.
    ///
    /// The digest covers the texts of the first 256 numbers, of the numbers next to every power of
    /// two, and of the greatest number. It also covers the blocklist.
    ///
    /// Two encodings of one layout have the same digest if they write the same text for every
    /// number, even if their definitions differ. The salt cannot be read from the digest. As with
    /// ids, the salt can be found only by trying possible salts.
    ///
    /// ```
    /// use idmint_core::id::{Encoding, EncodingDefinition, EncodingKind};
    ///
    /// let digest = |definition: EncodingDefinition| Encoding::new(&definition, 1 << 60).map(|encoding| encoding.digest());
    /// let base36 = EncodingDefinition::from(EncodingKind::Base36);
    /// let hashids = EncodingDefinition::from(EncodingKind::Hashids);
    /// let salted = EncodingDefinition { salt: Some("pepper".into()), ..hashids.clone() };
    /// assert_eq!(digest(base36.clone())?, digest(EncodingDefinition { length: Some(12), ..base36 })?);
    /// assert_ne!(digest(salted)?, digest(hashids)?);
    /// # Ok::<(), idmint_core::id::EncodingError>(())
    /// ```
    pub fn digest(&self) -> String {
        let powers = (0..u128::BITS).map(|bit| 1 << bit);
        let numbers = (0..SMALL).chain(powers.flat_map(|power: u128| [power - 1, power]));
        let mut hash = Sha256::new();
        for number in numbers
            .filter(|number| *number < self.max())
            .chain([self.max()])
        {
            hash.update(self.to_text(number));
            hash.update("\n");
        }
        let blocked = self.definition().blocklist.as_ref();
        let blocked: Option<BTreeSet<_>> =
            blocked.map(|words| words.iter().map(|word| word.to_lowercase()).collect());
        hash.update(format!("{blocked:?}"));
        hash.finalize()[..LEN]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{EncodingDefinition, EncodingKind};

    const MAX: u128 = (1 << 63) - 1;

    fn digest(toml: &str) -> String {
        #[derive(serde::Deserialize)]
        struct Row {
            encoding: EncodingDefinition,
        }
        let row: Row = toml::from_str(&format!("encoding = {toml}")).expect("TOML");
        Encoding::new(&row.encoding, MAX)
            .expect("it is sound")
            .digest()
    }

    #[test]
    fn whatever_changes_a_text_changes_the_digest() {
        let like = [
            r#"{ kind = "hashids" }"#,
            r#"{ kind = "hashids", salt = "pepper" }"#,
            r#"{ kind = "hashids", salt = "Pepper" }"#,
            r#"{ kind = "hashids", salt = "pepper", min_length = 24 }"#,
            r#"{ kind = "hashids", salt = "pepper", min_length = 24, groups = [6, 6, 12] }"#,
            r#"{ kind = "sqids" }"#,
            r#"{ kind = "sqids", blocklist = [] }"#,
            r#"{ kind = "sqids", blocklist = ["word"] }"#,
            r#"{ kind = "sqids", alphabet = "abcdefghijklmnopqrstuvwxyz0123456789" }"#,
            r#"{ kind = "sqids", alphabet = "bacdefghijklmnopqrstuvwxyz0123456789" }"#,
            r#"{ kind = "radix", radix = 36, case = "upper" }"#,
            r#"{ kind = "radix", radix = 36, case = "lower" }"#,
            r#"{ kind = "radix", radix = 36, case = "upper", length = 14 }"#,
            r#"{ kind = "radix", radix = 36, case = "upper", prefix = "inv_" }"#,
            r#"{ kind = "radix", radix = 36, case = "upper", prefix = "inv-" }"#,
            r#"{ kind = "radix", radix = 36, case = "upper", check = "mod97" }"#,
            r#"{ kind = "radix", alphabet = "0123456789ABCDEFGHIJLKMNOPQRSTUVWXYZ" }"#,
            r#"{ kind = "base62" }"#,
            r#"{ kind = "decimal" }"#,
            r#"{ kind = "decimal", length = 19 }"#,
            r#"{ kind = "hex" }"#,
            r#"{ kind = "hex", case = "upper" }"#,
            r#"{ kind = "b32l" }"#,
            r#"{ kind = "b32l", bytes = 10 }"#,
            r#"{ kind = "b32l", bytes = 10, strip = true }"#,
            r#"{ kind = "uuid8" }"#,
        ];
        let digests: BTreeSet<String> = like.iter().map(|toml| digest(toml)).collect();
        assert_eq!(digests.len(), like.len());
        assert!(
            digests.iter().all(|digest| digest.len() == 2 * LEN),
            "{digests:?}"
        );
    }

    #[test]
    fn definitions_that_write_alike_have_one_digest() {
        for (one, other) in [
            (
                r#"{ kind = "base36" }"#,
                r#"{ kind = "base36", name = "short", length = 13 }"#,
            ),
            (
                r#"{ kind = "base36" }"#,
                r#"{ kind = "radix", radix = 36, case = "upper" }"#,
            ),
            (
                r#"{ kind = "hashids" }"#,
                r#"{ kind = "hashids", salt = "", min_length = 0 }"#,
            ),
            (
                r#"{ kind = "sqids", blocklist = ["one", "two"] }"#,
                r#"{ kind = "sqids", blocklist = ["two", "One"] }"#,
            ),
        ] {
            assert_eq!(digest(one), digest(other), "{one} {other}");
        }
    }

    #[test]
    fn a_digest_is_the_same_on_every_machine_and_in_every_version() {
        let decimal = Encoding::new(&EncodingKind::Decimal.into(), 9).expect("it is sound");
        let texts = (0..9)
            .chain([0, 1, 1, 2, 3, 4, 7, 8, 9])
            .fold(String::new(), |texts, number| {
                texts + &format!("{number}\n")
            });
        let expected = Sha256::digest(texts + "None");
        assert_eq!(
            decimal.digest(),
            expected[..LEN]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        );
    }
}
