//! A format as it is written in TOML, and how it becomes a checked [`Format`].

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::format::{Format, PlacedCode, Rule, Variant};
use crate::id::encoding::{Encoding, EncodingDefinition, EncodingError};
use crate::id::layout::{Field, FieldDraft, FieldKind, Layout, LayoutError, SuffixCode, SuffixCodeError, Width};
use crate::time::{Tick, TickError, UnixTime, UnixTimeError, parse_duration};

/// A format as data: the built-in ones and those of the configuration are written alike.
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
    summary: String,
    rule: Rule,
    tick: Option<String>,
    epoch: Option<String>,
    fields: Vec<FieldDefinition>,
    encodings: Vec<EncodingDefinition>,
    #[serde(default)]
    first_worker: u32,
    worker_range: Option<[u32; 2]>,
    lanes: Option<u32>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    mint_below: Option<WholeNumber>,
    #[serde(default = "one_day")]
    plausible_ahead: String,
    #[serde(default)]
    reveals: String,
    #[serde(default = "yes")]
    enabled: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct FieldDefinition {
    name: String,
    kind: FieldKind,
    bits: Option<u32>,
    digits: Option<u32>,
    radix: Option<u32>,
    cardinality: Option<WholeNumber>,
    stride: Option<WholeNumber>,
    value: Option<WholeNumber>,
    max: Option<WholeNumber>,
    scale: Option<WholeNumber>,
    /// The name of the sequence in the bits that the code words leave.
    sequence: Option<String>,
    codes: Option<Vec<CodeDefinition>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct CodeDefinition {
    suffix: String,
    name: Option<String>,
}

/// A number that TOML's 64-bit integers may be too small for, then written as a string.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum WholeNumber {
    Integer(i64),
    Text(String),
}

fn one_day() -> String {
    "24h".to_owned()
}

fn yes() -> bool {
    true
}

/// Why a definition makes no format. The message names the format, the key, the value and the bound.
#[derive(Debug, thiserror::Error)]
#[error("format `{format}`: {cause}")]
pub struct FormatError {
    format: String,
    // Boxed: a Result carries it, and the good case should not pay for its size.
    cause: Box<Cause>,
}

impl FormatError {
    fn new(format: &str, cause: Cause) -> FormatError {
        FormatError { format: format.to_owned(), cause: Box::new(cause) }
    }
}

#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error("{0}")]
    Toml(String),
    #[error("{0}")]
    Tick(#[from] TickError),
    #[error("epoch: {0}")]
    Epoch(#[from] UnixTimeError),
    #[error("{0}")]
    Layout(#[from] LayoutError),
    #[error("field `{field}`: {cause}")]
    Code { field: String, cause: SuffixCodeError },
    #[error("{0}")]
    Encoding(#[from] EncodingError),
    #[error("{key} = `{value}` is not a whole number from 0 to 2^128 - 1")]
    Number { key: String, value: String },
    #[error("field `{field}`: give either `bits`, or `digits` and `radix`, or `cardinality`")]
    Width { field: String },
    #[error("plausible_ahead = `{0}` is not a duration such as 24h")]
    Duration(String),
    #[error("{0}")]
    Rule(String),
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
        let refused =
            |error: toml::de::Error| FormatError::new(name, Cause::Toml(error.to_string().trim_end().to_owned()));
        table.try_into().map_err(refused)
    }

    /// Checks the definition as a whole.
    ///
    /// # Errors
    /// [`FormatError`] names the key, the value and the bound that it broke.
    pub fn compile(&self, name: &str) -> Result<Format, FormatError> {
        self.checked(name).map_err(|cause| FormatError::new(name, cause))
    }

    fn checked(&self, name: &str) -> Result<Format, Cause> {
        check_name(name)?;
        let (variants, code) = self.variants()?;
        self.check_rule(&variants)?;
        let greatest = variants.iter().map(|variant| variant.layout.greatest()).max().unwrap_or(0);
        let encodings: Vec<Encoding> =
            self.encodings.iter().map(|definition| Encoding::new(definition, greatest)).collect::<Result<_, _>>()?;
        check_encodings(&encodings)?;
        let tick: Option<Tick> = self.tick.as_deref().map(str::parse).transpose()?;
        let epoch = self.epoch.as_deref().map_or(Ok(UnixTime::EPOCH), str::parse)?;
        if self.rule == Rule::Chained {
            check_chained(&variants[0].layout, tick, epoch)?;
        }
        let mint_below = match &self.mint_below {
            Some(number) => number.get("mint_below")?,
            None if u128::BITS - greatest.leading_zeros() == 64 => 1 << 63,
            None => u128::MAX,
        };
        if self.worker_range.is_some_and(|[first, last]| first > last) {
            return Err(Cause::Rule("worker_range: write the least number first".to_owned()));
        }
        Ok(Format {
            name: name.to_owned(),
            summary: self.summary.clone(),
            rule: self.rule,
            tick,
            epoch,
            variants,
            code,
            encodings,
            first_worker: self.first_worker.max(self.worker_range.map_or(0, |[first, _]| first)),
            last_worker: self.worker_range.map(|[_, last]| last),
            lanes: self.lanes,
            labels: self.labels()?,
            mint_below,
            plausible_ahead: plausible_ahead(&self.plausible_ahead)?,
            reveals: self.reveals.clone(),
            enabled: self.enabled,
        })
    }

    fn labels(&self) -> Result<BTreeMap<u128, String>, Cause> {
        self.labels.iter().map(|(value, label)| Ok((number("labels", value)?, label.clone()))).collect()
    }

    /// One layout; or, where a field carries a suffix code, one for each of its words.
    fn variants(&self) -> Result<(Vec<Variant>, Option<PlacedCode>), Cause> {
        let mut coded = self.fields.iter().filter(|field| field.kind == FieldKind::Qualifier);
        let (Some(field), None) = (coded.next(), coded.next()) else {
            if self.fields.iter().any(|field| field.kind == FieldKind::Qualifier) {
                return Err(Cause::Rule("only one field can carry a suffix code".to_owned()));
            }
            let layout = self.layout(None)?;
            return Ok((vec![Variant { name: None, assigned: true, layout }], None));
        };
        let (Some(bits), Some(codes)) = (field.bits, &field.codes) else {
            return Err(Cause::Rule(format!("field `{}`: a qualifier needs `bits` and `codes`", field.name)));
        };
        let words: Vec<_> = codes.iter().map(|code| (code.suffix.clone(), code.name.clone())).collect();
        let code = SuffixCode::new(&words, bits).map_err(|cause| Cause::Code { field: field.name.clone(), cause })?;
        let variants = code
            .words()
            .iter()
            .map(|word| {
                let layout = self.layout(Some((word.bits, word.suffix)))?;
                Ok(Variant { name: word.name.clone(), assigned: word.name.is_some(), layout })
            })
            .collect::<Result<Vec<_>, Cause>>()?;
        let qualifier = variants[0].layout.field_of(FieldKind::Qualifier).expect("each layout has the qualifier");
        if !qualifier.stride.is_power_of_two() {
            return Err(Cause::Rule(format!("field `{}`: what stands below a suffix code must be bits", field.name)));
        }
        let shift = qualifier.stride.ilog2();
        variants.iter().try_for_each(|variant| check_above_word(&variant.layout))?;
        Ok((variants, Some(PlacedCode { code, shift })))
    }

    /// The layout in which the qualifier, if there is one, is this word of so many bits.
    fn layout(&self, word: Option<(u32, u128)>) -> Result<Layout, Cause> {
        let mut builder = Layout::builder();
        for field in &self.fields {
            let given = |key, number: &Option<WholeNumber>| number.as_ref().map(|number| number.get(key)).transpose();
            let stride = given("stride", &field.stride)?;
            let (Some((word_bits, suffix)), FieldKind::Qualifier) = (word, field.kind) else {
                if field.codes.is_some() || field.sequence.is_some() {
                    return Err(Cause::Rule(format!(
                        "field `{}`: only a qualifier has `codes` and `sequence`",
                        field.name
                    )));
                }
                builder = builder.draft(FieldDraft {
                    stride,
                    value: given("value", &field.value)?,
                    max: given("max", &field.max)?,
                    scale: given("scale", &field.scale)?,
                    ..FieldDraft::new(&field.name, field.kind, field.width()?)
                });
                continue;
            };
            let bits = field.bits.unwrap_or(0).saturating_sub(word_bits);
            let sequence = field.sequence.clone().unwrap_or_else(|| "sequence".to_owned());
            builder = builder.field(&sequence, FieldKind::Sequence, Width::Bits(bits)).draft(FieldDraft {
                stride,
                value: Some(suffix),
                ..FieldDraft::new(&field.name, FieldKind::Qualifier, Width::Bits(word_bits))
            });
        }
        Ok(builder.build()?)
    }

    fn check_rule(&self, variants: &[Variant]) -> Result<(), Cause> {
        let layout = &variants[0].layout;
        let count = |kind| layout.fields().iter().filter(|field| field.kind == kind).count();
        let refuse = |text: &str| Err(Cause::Rule(format!("rule `{}`: {text}", self.rule.name())));
        for kind in [FieldKind::Time, FieldKind::Worker, FieldKind::Shard, FieldKind::Sequence, FieldKind::Object] {
            if count(kind) > 1 && self.rule.is_counted() {
                return refuse(&format!("at most one field can be of kind {kind}"));
            }
        }
        if count(FieldKind::Time) > 0 && (self.tick.is_none() || self.epoch.is_none()) {
            return refuse("a time field needs `tick` and `epoch`");
        }
        match self.rule {
            Rule::Sequenced => {
                if count(FieldKind::Time) != 1 || count(FieldKind::Sequence) != 1 {
                    return refuse("one field of kind time and one of kind sequence are needed");
                }
                if count(FieldKind::Random) + count(FieldKind::Checksum) + count(FieldKind::Ledger) > 0 {
                    return refuse("random, checksum and ledger fields belong to other rules");
                }
                self.check_sizes(variants)
            }
            Rule::Random if count(FieldKind::Random) == 0 => refuse("a field of kind random is needed"),
            Rule::Random => {
                let known = [FieldKind::Time, FieldKind::Random, FieldKind::Constant];
                match layout.fields().iter().find(|field| !known.contains(&field.kind)) {
                    Some(field) => {
                        refuse(&format!("field `{}` of kind {} belongs to another rule", field.name, field.kind))
                    }
                    None => Ok(()),
                }
            }
            Rule::Grouped => {
                if count(FieldKind::Time) != 1 || count(FieldKind::Object) != 2 {
                    return refuse("one field of kind time and two of kind object are needed");
                }
                let known = [FieldKind::Time, FieldKind::Object, FieldKind::Constant];
                match layout.fields().iter().find(|field| !known.contains(&field.kind) || field.scale != 1) {
                    Some(field) => refuse(&format!(
                        "field `{}` of kind {}, scale {}: only time, objects and constants of scale 1 belong to it",
                        field.name, field.kind, field.scale
                    )),
                    None => Ok(()),
                }
            }
            Rule::Chained | Rule::DecodeOnly => Ok(()),
        }
    }

    /// What the stamps of a sequenced format rely on: see `minting::stamps`.
    fn check_sizes(&self, variants: &[Variant]) -> Result<(), Cause> {
        for variant in variants {
            let layout = &variant.layout;
            let sequence = layout.field_of(FieldKind::Sequence).expect("checked above");
            if sequence.max >= 1 << 32 {
                return Err(Cause::Rule(format!("field `{}`: a sequence has at most 2^32 values", sequence.name)));
            }
            if layout.field_of(FieldKind::Time).expect("checked above").max >= 1 << 64 {
                return Err(Cause::Rule("a time field has at most 64 bits".to_owned()));
            }
            for kind in [FieldKind::Worker, FieldKind::Shard] {
                if let Some(field) = layout.field_of(kind).filter(|field| field.max > u128::from(u32::MAX)) {
                    return Err(Cause::Rule(format!("field `{}`: at most 32 bits of kind {kind}", field.name)));
                }
            }
            if let Some(object) = layout.field_of(FieldKind::Object).filter(|object| object.max != u128::from(u32::MAX))
            {
                return Err(Cause::Rule(format!(
                    "field `{}`: an object of a sequenced format holds the hash of a domain, 32 bits",
                    object.name
                )));
            }
        }
        Ok(())
    }
}

impl FieldDefinition {
    fn width(&self) -> Result<Width, Cause> {
        match (self.bits, self.digits, self.radix, &self.cardinality) {
            (Some(bits), None, None, None) => Ok(Width::Bits(bits)),
            (None, Some(digits), Some(radix), None) => Ok(Width::Digits { digits, radix }),
            (None, None, None, Some(cardinality)) => Ok(Width::Cardinality(cardinality.get("cardinality")?)),
            _ => Err(Cause::Width { field: self.name.clone() }),
        }
    }
}

impl WholeNumber {
    fn get(&self, key: &str) -> Result<u128, Cause> {
        match self {
            WholeNumber::Text(text) => number(key, text),
            WholeNumber::Integer(integer) => {
                u128::try_from(*integer).map_err(|_| Cause::Number { key: key.to_owned(), value: integer.to_string() })
            }
        }
    }
}

fn number(key: &str, text: &str) -> Result<u128, Cause> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = digits.then(|| text.parse().ok()).flatten();
    parsed.ok_or_else(|| Cause::Number { key: key.to_owned(), value: text.to_owned() })
}

fn plausible_ahead(text: &str) -> Result<Duration, Cause> {
    parse_duration(text).ok_or_else(|| Cause::Duration(text.to_owned()))
}

/// The word of a suffix code is looked for in the bits of the id, so what stands above it must leave those bits alone.
fn check_above_word(layout: &Layout) -> Result<(), Cause> {
    let word = layout.field_of(FieldKind::Qualifier).expect("a layout of a suffix code has its word");
    let place = word.stride * (word.max + 1);
    let reaches_in = |field: &&Field| field.stride > word.stride && !field.stride.is_multiple_of(place);
    match layout.fields().iter().find(reaches_in) {
        None => Ok(()),
        Some(field) => Err(Cause::Rule(format!(
            "field `{}`: stride {} must be a multiple of {place}, or ids of two types could be the same number",
            field.name, field.stride
        ))),
    }
}

/// A name is part of a path, a metric label and an environment variable.
/// A chain is checked by whoever has its events, so nothing of its ids can be had otherwise.
fn check_chained(layout: &Layout, tick: Option<Tick>, epoch: UnixTime) -> Result<(), Cause> {
    let fields = layout.fields().iter().map(|field| (field.kind, field.max, field.stride));
    let is_evently = fields.eq([
        (FieldKind::Time, (1 << 63) - 1, 1 << 64),
        (FieldKind::Checksum, (1 << 32) - 1, 1 << 32),
        (FieldKind::Ledger, (1 << 30) - 1, 1 << 2),
        (FieldKind::Constant, (1 << 2) - 1, 1),
    ]);
    if is_evently && tick.map(Tick::duration) == Some(Duration::from_micros(1)) && epoch == UnixTime::EPOCH {
        return Ok(());
    }
    Err(Cause::Rule("rule `chained`: fields, tick and epoch must be those of `evently`; `like` copies them".to_owned()))
}

fn check_name(name: &str) -> Result<(), Cause> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    let starts_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    if starts_well && name.len() <= 64 && name.bytes().all(plain) {
        return Ok(());
    }
    Err(Cause::Rule("a name is 1 to 64 of a-z, 0-9, - and _, and begins with a letter".to_owned()))
}

fn check_encodings(encodings: &[Encoding]) -> Result<(), Cause> {
    if encodings.is_empty() {
        return Err(Cause::Rule("at least one encoding is needed, the first is the canonical one".to_owned()));
    }
    for (at, encoding) in encodings.iter().enumerate() {
        if encodings[..at].iter().any(|other| other.name() == encoding.name()) {
            return Err(Cause::Rule(format!("two encodings are named `{}`", encoding.name())));
        }
    }
    Ok(())
}
