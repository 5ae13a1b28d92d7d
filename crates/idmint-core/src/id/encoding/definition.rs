//! The definition of an encoding in the configuration.

use std::fmt;
use std::path::PathBuf;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::named;

/// An encoding as written in TOML: either its kind alone (`"decimal"`), or a table with its kind
/// and settings.
///
/// [`EncodingKind::keys`] lists the settings of each kind. Deserialization refuses keys that no
/// kind has. [`Encoding::new`](crate::id::Encoding::new) refuses keys that only other kinds have,
/// and values out of bounds.
///
/// ```
/// use idmint_core::id::{EncodingDefinition, EncodingKind};
///
/// #[derive(serde::Deserialize)]
/// struct Format {
///     encodings: Vec<EncodingDefinition>,
/// }
/// let format: Format = toml::from_str(
///     r#"encodings = ["decimal", { kind = "radix", name = "base36", radix = 36, case = "upper", length = 10 }]"#,
/// )?;
/// assert_eq!(format.encodings[0], EncodingKind::Decimal.into());
/// assert_eq!(format.encodings[1].length, Some(10));
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct EncodingDefinition {
    /// The kind of encoding, which determines how numbers become texts.
    pub kind: EncodingKind,
    /// The name by which callers select the encoding. The default is the kind's name, except that a
    /// `radix` encoding is named `base` and the radix, such as `base36`.
    pub name: Option<String>,
    /// The text in front of every id, such as `inv_`, in printable ASCII.
    pub prefix: Option<String>,
    /// The radix, which is the number of different digits: 2 to 62.
    pub radix: Option<usize>,
    /// The letters that represent the digits, starting with the letter for 0.
    pub alphabet: Option<String>,
    /// The case of the letters in every text.
    pub case: Option<LetterCase>,
    /// The number of digits in every text, including leading zeros, at most 255.
    pub length: Option<usize>,
    /// The method for the check digits, which detect mistyped ids.
    pub check: Option<CheckMethod>,
    /// The number of bytes that every text encodes, at most 64.
    pub bytes: Option<usize>,
    /// `true` if the encoding removes all leading zeros of a text. The text of the number 0 is then
    /// empty.
    pub strip: Option<bool>,
    /// The salt that shuffles the alphabet, in ASCII.
    pub salt: Option<Salt>,
    /// A file that contains the salt as its only line.
    /// [`FormatDefinition::read_salts`](crate::id::FormatDefinition::read_salts) reads the file and
    /// fills in `salt`.
    pub salt_file: Option<PathBuf>,
    /// The minimum length of a text in letters, at most 255.
    pub min_length: Option<usize>,
    /// The number of letters in each hyphenated group.
    pub groups: Option<Vec<usize>>,
    /// Words that no text of a Sqids encoding may contain. They replace the blocklist that the
    /// Sqids project publishes.
    pub blocklist: Option<Vec<String>>,
    /// The method name of a decentralised identifier (DID), as in `did:METHOD:`.
    pub method: Option<String>,
}

impl EncodingDefinition {
    /// Returns the name of the encoding. If the definition has no name, returns the default name:
    /// the name of the kind, or `base` and the radix for the kind `radix`.
    pub fn name(&self) -> String {
        match (&self.name, self.kind, self.radix) {
            (Some(name), ..) => name.clone(),
            (None, EncodingKind::Radix, Some(radix)) => format!("base{radix}"),
            (None, kind, _) => kind.name().to_owned(),
        }
    }

    /// Returns the configuration keys of all settings that this definition of an encoding sets,
    /// except `kind`.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            ("name", self.name.is_some()),
            ("prefix", self.prefix.is_some()),
            ("radix", self.radix.is_some()),
            ("alphabet", self.alphabet.is_some()),
            ("case", self.case.is_some()),
            ("length", self.length.is_some()),
            ("check", self.check.is_some()),
            ("bytes", self.bytes.is_some()),
            ("strip", self.strip.is_some()),
            ("salt", self.salt.is_some()),
            ("salt_file", self.salt_file.is_some()),
            ("min_length", self.min_length.is_some()),
            ("groups", self.groups.is_some()),
            ("blocklist", self.blocklist.is_some()),
            ("method", self.method.is_some()),
        ];
        given
            .into_iter()
            .filter_map(|(key, is_given)| is_given.then_some(key))
    }
}

impl From<EncodingKind> for EncodingDefinition {
    fn from(kind: EncodingKind) -> Self {
        Self {
            kind,
            name: None,
            prefix: None,
            radix: None,
            alphabet: None,
            case: None,
            length: None,
            check: None,
            bytes: None,
            strip: None,
            salt: None,
            salt_file: None,
            min_length: None,
            groups: None,
            blocklist: None,
            method: None,
        }
    }
}

impl<'de> Deserialize<'de> for EncodingDefinition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrTable)
    }
}

struct NameOrTable;

impl<'de> Visitor<'de> for NameOrTable {
    type Value = EncodingDefinition;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(
            "the name of an encoding such as \"decimal\", or a table with its kind and settings",
        )
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Self::Value, E> {
        // If an encoding's TOML table has a mistake, the whole table arrives here as one string,
        // which can contain the salt. The error must therefore not quote the string.
        if !name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            return Err(E::custom(
                "must be the name of an encoding such as \"decimal\", or a table with its kind and settings",
            ));
        }
        EncodingKind::deserialize(StrDeserializer::new(name)).map(EncodingDefinition::from)
    }

    fn visit_map<M: MapAccess<'de>>(self, table: M) -> Result<Self::Value, M::Error> {
        EncodingDefinition::deserialize(MapAccessDeserializer::new(table))
    }
}

/// A secret text that shuffles an alphabet. Errors and `{:?}` never contain the salt.
///
/// ```
/// use idmint_core::id::Salt;
///
/// let salt = Salt::from("pepper");
/// assert_eq!((salt.as_str(), format!("{salt:?}").as_str()), ("pepper", "Salt(..)"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Salt(String);

impl Salt {
    /// Returns the secret text of the salt.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Salt {
    fn from(text: T) -> Salt {
        Salt(text.into())
    }
}

impl fmt::Debug for Salt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Salt(..)")
    }
}

impl<'de> Deserialize<'de> for Salt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Accept any type, because serde's error for a wrong type would quote the secret value.
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a salt must be a text")]
        enum Given {
            Text(String),
            Other(IgnoredAny),
        }
        match Given::deserialize(deserializer)? {
            Given::Text(text) => Ok(Salt(text)),
            Given::Other(_) => Err(serde::de::Error::custom("a salt must be a text")),
        }
    }
}

named! {
    /// The kinds of encoding, with the names that the configuration uses.
    ///
    /// ```
    /// use idmint_core::id::EncodingKind;
    ///
    /// assert_eq!(EncodingKind::HexPadded.name(), "hex_padded");
    /// assert!(EncodingKind::Hashids.keys().contains(&"salt"));
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum EncodingKind {
        /// Decimal digits without leading zeros.
        Decimal = "decimal",
        /// Hexadecimal digits without leading zeros.
        Hex = "hex",
        /// Hexadecimal digits, padded to the length of the greatest value.
        HexPadded = "hex_padded",
        /// The number as 16 bytes, in 32 hexadecimal digits.
        Bytes16Hex = "bytes16_hex",
        /// Digits of any radix or alphabet, with leading zeros up to the length of the greatest
        /// value.
        Radix = "radix",
        /// Digits 0 to 9 and A to Z, with leading zeros up to the length of the greatest value.
        Base36 = "base36",
        /// Digits 0 to 9, A to Z and a to z, with leading zeros up to the length of the greatest
        /// value.
        Base62 = "base62",
        /// Whole bytes in base64url of RFC 4648, without padding characters.
        Base64 = "base64",
        /// The 64 digits `-`, 0 to 9, A to Z, `_` and a to z, in ASCII order, with leading zeros up
        /// to the length of the greatest value. Texts therefore sort like their numbers.
        Base64Lex = "base64_lex",
        /// Crockford's base32 without leading zeros.
        Crockford = "crockford",
        /// Whole bytes in lower-case base32 of RFC 4648, without padding characters.
        B32l = "b32l",
        /// Whole bytes in Crockford's base32.
        Cb32 = "cb32",
        /// Whole bytes in base32hex of RFC 4648, without padding characters.
        Base32hex = "base32hex",
        /// The short shuffled texts of the Hashids project.
        Hashids = "hashids",
        /// The short shuffled texts of the Sqids project.
        Sqids = "sqids",
        /// All 128 bits in the 8-4-4-4-12 notation of RFC 9562.
        Uuid = "uuid",
        /// A number of up to 122 bits inside a UUID of version 8.
        Uuid8 = "uuid8",
        /// A decentralised identifier (DID) with a checksum.
        Did = "did",
    }
}

impl EncodingKind {
    /// Returns the configuration keys of the settings that this kind of encoding accepts. `name`
    /// and `prefix` are left out, because every kind accepts them.
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Decimal | Self::Base62 | Self::Base64Lex => &["length", "check"],
            Self::Hex => &["case"],
            Self::HexPadded | Self::Base36 | Self::Crockford => &["case", "length", "check"],
            Self::Radix => &["radix", "alphabet", "case", "length", "check"],
            Self::Base64 | Self::Cb32 => &["bytes"],
            Self::B32l => &["bytes", "strip"],
            Self::Base32hex => &["bytes", "case"],
            Self::Hashids => &["alphabet", "salt", "salt_file", "min_length", "groups"],
            Self::Sqids => &["alphabet", "min_length", "blocklist"],
            Self::Did => &["method"],
            Self::Bytes16Hex | Self::Uuid | Self::Uuid8 => &[],
        }
    }
}

/// A method of computing check digits, which detect mistyped ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckMethod {
    /// Two check digits at the end of a text. They are chosen so that the whole text, read as one
    /// number, has the remainder 1 when divided by 97.
    ///
    /// In decimal this is ISO 7064 MOD 97-10.
    Mod97,
}

/// The case of an encoding's letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LetterCase {
    /// `a` to `z`.
    Lower,
    /// `A` to `Z`.
    Upper,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Listed {
        encodings: Vec<EncodingDefinition>,
    }

    fn error_of(encoding: &str) -> String {
        toml::from_str::<Listed>(&format!("encodings = [{encoding}]"))
            .expect_err(encoding)
            .to_string()
    }

    #[test]
    fn a_name_and_a_table_are_read() {
        let text = r#"encodings = ["decimal", { kind = "hashids", salt = "s", min_length = 20, groups = [7, 7, 6] }]"#;
        let Listed { encodings } = toml::from_str(text).expect("two encodings");
        assert_eq!(encodings[0], EncodingKind::Decimal.into());
        let hashids = EncodingDefinition::from(EncodingKind::Hashids);
        let (salt, groups) = (Some(Salt::from("s")), Some(vec![7, 7, 6]));
        assert_eq!(
            encodings[1],
            EncodingDefinition {
                salt,
                groups,
                min_length: Some(20),
                ..hashids
            }
        );
    }

    #[test]
    fn errors_name_the_key_and_what_would_be_right() {
        assert!(
            error_of(r#"{ kind = "hex_padded", lenght = 3 }"#)
                .contains("unknown field `lenght`, expected one of")
        );
        assert!(error_of(r#""octal""#).contains("unknown variant `octal`, expected one of"));
        assert!(error_of(r#"{ radix = 8 }"#).contains("missing field `kind`"));
        assert!(error_of("8").contains("the name of an encoding such as \"decimal\", or a table"));
    }

    #[test]
    fn names_are_those_of_the_configuration() {
        for kind in [
            EncodingKind::Bytes16Hex,
            EncodingKind::Base64Lex,
            EncodingKind::B32l,
            EncodingKind::Base32hex,
        ] {
            assert_eq!(serde_json::json!(kind), kind.name());
        }
    }
}
