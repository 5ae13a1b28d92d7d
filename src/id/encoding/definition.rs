//! An encoding as the configuration writes it.

use std::fmt;
use std::path::PathBuf;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// An encoding as written in TOML: its kind alone (`"decimal"`), or a table of its kind and settings.
///
/// Shape: which settings a kind takes is [`EncodingKind::keys`]. Unknown keys are refused while reading, keys of
/// another kind and values out of bounds by [`Encoding::new`](crate::id::Encoding::new).
///
/// ```
/// use idmint::id::{EncodingDefinition, EncodingKind};
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
    /// How numbers become texts.
    pub kind: EncodingKind,
    /// What callers ask for; by default the kind's name, for `radix` `base` and the radix.
    pub name: Option<String>,
    /// Text in front of every id, such as `inv_`: printable ASCII.
    pub prefix: Option<String>,
    /// How many digits there are: 2 to 62.
    pub radix: Option<usize>,
    /// The letters that stand for digits, smallest first.
    pub alphabet: Option<String>,
    /// The case of the letters.
    pub case: Option<LetterCase>,
    /// How many digits every text has: at most 255.
    pub length: Option<usize>,
    /// What stands behind the digits to tell a mistyped text from an id.
    pub check: Option<CheckMethod>,
    /// How many bytes every text carries: at most 64.
    pub bytes: Option<usize>,
    /// Whether leading zeros are removed, which makes zero the empty text.
    pub strip: Option<bool>,
    /// What shuffles the alphabet: ASCII.
    pub salt: Option<Salt>,
    /// A file with the salt, in its only line. Whoever reads the definition puts `salt` in its place:
    /// [`FormatDefinition::read_salts`](crate::id::FormatDefinition::read_salts).
    pub salt_file: Option<PathBuf>,
    /// The letters every text has at least: at most 255.
    pub min_length: Option<usize>,
    /// How many letters stand between two hyphens.
    pub groups: Option<Vec<usize>>,
    /// Words no text contains, instead of the published list.
    pub blocklist: Option<Vec<String>>,
    /// The method of a decentralised identifier.
    pub method: Option<String>,
}

impl EncodingDefinition {
    /// The encoding's name, given or by default.
    pub fn name(&self) -> String {
        match (&self.name, self.kind, self.radix) {
            (Some(name), ..) => name.clone(),
            (None, EncodingKind::Radix, Some(radix)) => format!("base{radix}"),
            (None, kind, _) => kind.name().to_owned(),
        }
    }

    /// The settings given beside the kind, by their keys.
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
        out.write_str("an encoding's name, or a table with its kind and settings")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Self::Value, E> {
        // A table that is not quite TOML comes here as a text, with its salt in it.
        if !name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            return Err(E::custom(
                "an encoding is a name such as \"decimal\", or a table with its kind and settings",
            ));
        }
        EncodingKind::deserialize(StrDeserializer::new(name)).map(EncodingDefinition::from)
    }

    fn visit_map<M: MapAccess<'de>>(self, table: M) -> Result<Self::Value, M::Error> {
        EncodingDefinition::deserialize(MapAccessDeserializer::new(table))
    }
}

/// What shuffles an alphabet: a text that nobody is shown. It is read as text, and no error or `{:?}` has it.
///
/// ```
/// use idmint::id::Salt;
///
/// let salt = Salt::from("pepper");
/// assert_eq!((salt.as_str(), format!("{salt:?}").as_str()), ("pepper", "Salt(..)"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Salt(String);

impl Salt {
    /// The salt itself.
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
        // What is of another type would be quoted by its error.
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

/// How numbers become texts, by the name the configuration uses.
///
/// ```
/// use idmint::id::EncodingKind;
///
/// assert_eq!(EncodingKind::HexPadded.name(), "hex_padded");
/// assert!(EncodingKind::Hashids.keys().contains(&"salt"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EncodingKind {
    /// Digits 0 to 9, none in front that are zero.
    Decimal,
    /// Hexadecimal, no zeros in front.
    Hex,
    /// Hexadecimal, as many digits as the greatest value has.
    HexPadded,
    /// Hexadecimal of 16 bytes.
    Bytes16Hex,
    /// Any radix or alphabet, as many digits as the greatest value has.
    Radix,
    /// Digits 0 to 9 and A to Z, as many as the greatest value has.
    Base36,
    /// Digits 0 to 9, A to Z and a to z, as many as the greatest value has.
    Base62,
    /// RFC 4648 base64url of whole bytes, without padding characters.
    Base64,
    /// 64 letters in ascending order, as many as the greatest value has.
    Base64Lex,
    /// Crockford's base32, no zeros in front.
    Crockford,
    /// RFC 4648 base32 of whole bytes in lower case, without padding characters.
    B32l,
    /// Crockford's base32 of whole bytes.
    Cb32,
    /// RFC 4648 base32hex of whole bytes, without padding characters.
    Base32hex,
    /// Hashids.
    Hashids,
    /// Sqids.
    Sqids,
    /// The form of RFC 9562.
    Uuid,
    /// Up to 122 bits inside a UUID of version 8.
    Uuid8,
    /// A decentralised identifier with a checksum.
    Did,
}

impl EncodingKind {
    /// The name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Decimal => "decimal",
            Self::Hex => "hex",
            Self::HexPadded => "hex_padded",
            Self::Bytes16Hex => "bytes16_hex",
            Self::Radix => "radix",
            Self::Base36 => "base36",
            Self::Base62 => "base62",
            Self::Base64 => "base64",
            Self::Base64Lex => "base64_lex",
            Self::Crockford => "crockford",
            Self::B32l => "b32l",
            Self::Cb32 => "cb32",
            Self::Base32hex => "base32hex",
            Self::Hashids => "hashids",
            Self::Sqids => "sqids",
            Self::Uuid => "uuid",
            Self::Uuid8 => "uuid8",
            Self::Did => "did",
        }
    }

    /// The settings this kind takes, beside `name` and `prefix`, which all take.
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

/// How a mistyped text is told from an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckMethod {
    /// Two check digits: [`Checked`](super::Checked).
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
        assert!(error_of("8").contains("an encoding's name, or a table"));
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
