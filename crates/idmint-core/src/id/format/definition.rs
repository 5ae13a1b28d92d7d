//! The definition of a format in TOML.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::format::Rule;
use super::format_error::{Cause, FormatError};
use super::monotonic::Monotonic;
use super::table_reader::read_table;
use crate::id::encoding::{EncodingDefinition, EncodingKind, Salt};
use crate::id::layout::{FieldKind, Width};
use crate::time::parse_duration;

/// The definition of a format, read from TOML. Built-in formats and formats in the configuration
/// have the same form.
///
/// Deserialization refuses unknown keys. [`FormatDefinition::compile`] checks the values.
///
/// ```
/// use idmint_core::id::FormatDefinition;
/// let text = r#"
///     summary   = "Invoice number: time, region, counter"
///     rule      = "sequenced"
///     tick      = "1s"
///     epoch     = "2025-01-01T00:00:00Z"
///     fields    = [ { name = "time", kind = "time", digits = 6, radix = 36 },
///                   { name = "region", kind = "constant", digits = 1, radix = 36, value = 14 },
///                   { name = "worker", kind = "worker", digits = 1, radix = 36 },
///                   { name = "sequence", kind = "sequence", digits = 2, radix = 36 } ]
///     encodings = [ { kind = "radix", name = "base36", radix = 36, case = "upper", length = 10, prefix = "inv_" } ]
/// "#;
/// let format = FormatDefinition::from_toml("invoice", text)?.compile("invoice")?;
/// assert_eq!(format.canonical().to_text(14 * 36 * 36 * 36), "inv_000000E000");
/// # Ok::<(), idmint_core::id::FormatError>(())
/// ```
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormatDefinition {
    pub(super) summary: String,
    pub(super) rule: Rule,
    pub(super) tick: Option<String>,
    pub(super) epoch: Option<String>,
    pub(super) fields: Vec<FieldDefinition>,
    pub(super) encodings: Vec<EncodingDefinition>,
    #[serde(default)]
    pub(super) prefixes: Vec<String>,
    pub(super) types: Option<Vec<String>>,
    #[serde(default)]
    pub(super) first_worker: u32,
    pub(super) worker_range: Option<[u32; 2]>,
    pub(super) lanes: Option<u32>,
    #[serde(default = "one")]
    pub(super) sequence_spread: u32,
    /// The last id that another generator has minted, as a number or as a text in any of the
    /// format's encodings. Minting starts after the tick of this id.
    pub(super) start_after: Option<WholeNumber>,
    pub(super) exclude: Option<PathBuf>,
    #[serde(default)]
    pub(super) monotonic: Monotonic,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
    pub(super) mint_below: Option<WholeNumber>,
    pub(super) plausible_from: Option<String>,
    #[serde(default = "one_day")]
    pub(super) plausible_ahead: String,
    #[serde(default)]
    pub(super) rarity: u8,
    #[serde(default)]
    pub(super) reveals: String,
    #[serde(default = "yes")]
    pub(super) mint: bool,
    #[serde(default = "yes")]
    pub(super) enabled: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FieldDefinition {
    pub(super) name: String,
    pub(super) kind: FieldKind,
    pub(super) bits: Option<u32>,
    pub(super) digits: Option<u32>,
    pub(super) radix: Option<u32>,
    pub(super) cardinality: Option<WholeNumber>,
    pub(super) stride: Option<WholeNumber>,
    pub(super) value: Option<WholeNumber>,
    pub(super) max: Option<WholeNumber>,
    pub(super) scale: Option<WholeNumber>,
    /// The name of the sequence, a counter that takes the first bits of this field. The last bits
    /// of the field hold the code word.
    pub(super) sequence: Option<String>,
    pub(super) codes: Option<Vec<CodeDefinition>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CodeDefinition {
    pub(super) suffix: String,
    pub(super) name: Option<String>,
    /// Other names by which callers may select the type of id of this code word.
    #[serde(default)]
    pub(super) aliases: Vec<String>,
}

/// A whole number in a definition. Numbers that exceed the 64-bit integers of TOML are written as
/// strings.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    untagged,
    expecting = "must be a whole number, or a text of digits from 2^63 on"
)]
pub(super) enum WholeNumber {
    Integer(i64),
    Text(String),
}

fn one_day() -> String {
    "24h".to_owned()
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

impl FormatDefinition {
    /// Parses the definition of the format called `name` from TOML text.
    ///
    /// # Errors
    /// Returns [`FormatError`] if a key is unknown or missing, or a value has the wrong type.
    pub fn from_toml(name: &str, text: &str) -> Result<FormatDefinition, FormatError> {
        let table = text.parse().map_err(|error: toml::de::Error| {
            FormatError::new(name, Cause::Toml(error.to_string()))
        })?;
        FormatDefinition::from_table(name, table)
    }

    /// Parses the definition of the format called `name` from a TOML table.
    ///
    /// # Errors
    /// Returns the same errors as [`FormatDefinition::from_toml`].
    pub fn from_table(name: &str, table: toml::Table) -> Result<FormatDefinition, FormatError> {
        // Check that `encodings` is a list before parsing, because the parse error would quote the
        // value, including the secret salts in it.
        if table
            .get("encodings")
            .is_some_and(|encodings| !encodings.is_array())
        {
            let cause = Cause::Rule("encodings must be a list, in TOML".to_owned());
            return Err(FormatError::new(name, cause.at("encodings")));
        }
        read_table(&table).map_err(|error| FormatError::new(name, Cause::Read(error)))
    }

    /// Replaces the `salt_file` of each Hashids encoding by the salt that `read` loads from that
    /// file. Other encodings are left unchanged.
    ///
    /// The caller passes `read`, because this crate does not read files itself.
    ///
    /// # Errors
    /// Returns [`FormatError`] if an encoding has both `salt` and `salt_file`, or if `read` fails.
    /// The error quotes the message of `read`, which must not contain the contents of the file.
    pub fn read_salts(
        mut self,
        name: &str,
        read: impl Fn(&Path) -> Result<Salt, String>,
    ) -> Result<FormatDefinition, FormatError> {
        for (at, encoding) in self
            .encodings
            .iter_mut()
            .enumerate()
            .filter(|(_, encoding)| encoding.kind == EncodingKind::Hashids)
        {
            let Some(path) = encoding.salt_file.take() else {
                continue;
            };
            let salt = if encoding.salt.is_some() {
                Err("the encoding also has a salt; remove one of the two".to_owned())
            } else {
                read(&path)
            };
            let refused = |problem| {
                let encoding = encoding.name();
                let cause = Cause::SaltFile {
                    encoding,
                    path,
                    problem,
                };
                FormatError::new(name, cause.at(format!("encodings[{at}].salt_file")))
            };
            encoding.salt = Some(salt.map_err(refused)?);
        }
        Ok(self)
    }
}

impl FieldDefinition {
    /// Returns the key that sets the width of the field, such as `.bits`, as the end of a path for
    /// an error. If several keys set the width, returns the less common one, which is more likely
    /// the mistake.
    pub(super) fn width_key(&self) -> &'static str {
        let given = [
            (".cardinality", self.cardinality.is_some()),
            (".digits", self.digits.is_some()),
            (".radix", self.radix.is_some()),
            (".bits", self.bits.is_some()),
        ];
        given
            .into_iter()
            .find(|(_, is_given)| *is_given)
            .map_or("", |(key, _)| key)
    }

    pub(super) fn width(&self) -> Result<Width, Cause> {
        match (self.bits, self.digits, self.radix, &self.cardinality) {
            (Some(bits), None, None, None) => Ok(Width::Bits(bits)),
            (None, Some(digits), Some(radix), None) => Ok(Width::Digits { digits, radix }),
            (None, None, None, Some(cardinality)) => {
                Ok(Width::Cardinality(cardinality.get("cardinality")?))
            }
            _ => Err(Cause::Width {
                field: self.name.clone(),
            }),
        }
    }
}

impl WholeNumber {
    pub(super) fn get(&self, key: &str) -> Result<u128, Cause> {
        match self {
            WholeNumber::Text(text) => number(key, text),
            WholeNumber::Integer(integer) => u128::try_from(*integer).map_err(|_| Cause::Number {
                key: key.to_owned(),
                value: integer.to_string(),
            }),
        }
    }

    pub(super) fn to_text(&self) -> String {
        match self {
            WholeNumber::Text(text) => text.clone(),
            WholeNumber::Integer(integer) => integer.to_string(),
        }
    }
}

pub(super) fn number(key: &str, text: &str) -> Result<u128, Cause> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = digits.then(|| text.parse().ok()).flatten();
    parsed.ok_or_else(|| Cause::Number {
        key: key.to_owned(),
        value: text.to_owned(),
    })
}

pub(super) fn plausible_ahead(text: &str) -> Result<Duration, Cause> {
    parse_duration(text).ok_or_else(|| Cause::Duration(text.to_owned()))
}
