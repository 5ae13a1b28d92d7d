//! A format as it is written in TOML.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::format::Rule;
use super::format_error::{Cause, FormatError};
use super::monotonic::Monotonic;
use crate::id::encoding::{EncodingDefinition, EncodingKind, Salt};
use crate::id::layout::{FieldKind, Width};
use crate::time::parse_duration;

/// A format as data, read from TOML: the built-in ones and those of the configuration are written alike.
///
/// Unknown keys are refused while reading; everything else is checked as a whole by [`FormatDefinition::compile`].
///
/// ```
/// use idmint::id::FormatDefinition;
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
/// # Ok::<(), idmint::id::FormatError>(())
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
    /// A number as it stands, or any text of an id.
    pub(super) start_after: Option<WholeNumber>,
    pub(super) exclude: Option<PathBuf>,
    #[serde(default)]
    pub(super) monotonic: Monotonic,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
    pub(super) mint_below: Option<WholeNumber>,
    #[serde(default = "one_day")]
    pub(super) plausible_ahead: String,
    #[serde(default)]
    pub(super) rarity: u8,
    #[serde(default)]
    pub(super) reveals: String,
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
    /// The name of the sequence field in the bits that the words of the suffix code leave.
    pub(super) sequence: Option<String>,
    pub(super) codes: Option<Vec<CodeDefinition>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CodeDefinition {
    pub(super) suffix: String,
    pub(super) name: Option<String>,
    /// Other names that callers may ask for.
    #[serde(default)]
    pub(super) aliases: Vec<String>,
}

/// A number that TOML's 64-bit integers may be too small for, then written as a string.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
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
    /// Reads the keys of one format.
    ///
    /// # Errors
    /// [`FormatError`] for an unknown or missing key, or a value of another type.
    pub fn from_toml(name: &str, text: &str) -> Result<FormatDefinition, FormatError> {
        toml::from_str(text).map_err(|error| FormatError::new(name, Cause::Toml(error.to_string())))
    }

    /// Reads the keys of one format from a table that is already parsed.
    ///
    /// # Errors
    /// As [`FormatDefinition::from_toml`].
    pub fn from_table(name: &str, table: toml::Table) -> Result<FormatDefinition, FormatError> {
        let refused = |error: toml::de::Error| {
            FormatError::new(name, Cause::Toml(error.to_string().trim_end().to_owned()))
        };
        // An error would quote the text that stands here instead, with the salts in it.
        if table
            .get("encodings")
            .is_some_and(|encodings| !encodings.is_array())
        {
            return Err(FormatError::new(
                name,
                Cause::Rule("encodings must be a list, in TOML".to_owned()),
            ));
        }
        table.try_into().map_err(refused)
    }

    /// The same with the salts of its files, each as `read` finds it: this crate's values read no files themselves.
    ///
    /// # Errors
    /// [`FormatError`] where an encoding has a `salt` beside its file, or `read` says what is wrong with the file; never
    /// what stands in it.
    pub fn read_salts(
        mut self,
        name: &str,
        read: impl Fn(&Path) -> Result<Salt, String>,
    ) -> Result<FormatDefinition, FormatError> {
        for encoding in self
            .encodings
            .iter_mut()
            .filter(|encoding| encoding.kind == EncodingKind::Hashids)
        {
            let Some(path) = encoding.salt_file.take() else {
                continue;
            };
            let salt = if encoding.salt.is_some() {
                Err("there is a salt, too".to_owned())
            } else {
                read(&path)
            };
            let refused = |problem| {
                FormatError::new(
                    name,
                    Cause::SaltFile {
                        encoding: encoding.name(),
                        path,
                        problem,
                    },
                )
            };
            encoding.salt = Some(salt.map_err(refused)?);
        }
        Ok(self)
    }
}

impl FieldDefinition {
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
