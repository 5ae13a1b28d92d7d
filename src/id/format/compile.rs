//! How a definition becomes a checked [`Format`].

use std::collections::BTreeMap;

use super::definition::{CodeDefinition, FormatDefinition, WholeNumber, number, plausible_ahead};
use super::format::{Format, PlacedCode, Rule, StartAfter, Variant};
use super::format_error::{Cause, FormatError};
use super::monotonic_check::check_monotonic;
use super::prefix_check::check_prefixes;
use super::rule_check::{check_above_word, check_chained, check_room};
use super::stamp_check::check_stamps;
use crate::id::encoding::Encoding;
use crate::id::layout::{FieldDraft, FieldKind, Layout, SuffixCode, Width};
use crate::time::{Tick, UnixTime};

impl FormatDefinition {
    /// Checks the definition as a whole, and makes the format of it.
    ///
    /// # Errors
    /// [`FormatError`] names the key, the value and the bound that it broke.
    pub fn compile(&self, name: &str) -> Result<Format, FormatError> {
        self.check(name)
            .map_err(|cause| FormatError::new(name, cause))
    }

    fn check(&self, name: &str) -> Result<Format, Cause> {
        check_name(name)?;
        let (variants, code) = self.variants()?;
        self.check_rule(&variants)?;
        let greatest = variants
            .iter()
            .map(|variant| variant.layout.greatest())
            .max()
            .unwrap_or(0);
        let encodings: Vec<Encoding> = self
            .encodings
            .iter()
            .map(|definition| Encoding::new(definition, greatest))
            .collect::<Result<_, _>>()?;
        check_encodings(&encodings)?;
        let prefixes = check_prefixes(self, &encodings, code.is_some())?;
        let tick: Option<Tick> = self.tick.as_deref().map(str::parse).transpose()?;
        let epoch = self
            .epoch
            .as_deref()
            .map_or(Ok(UnixTime::EPOCH), str::parse)?;
        if self.rule == Rule::Chained {
            check_chained(&variants[0].layout, tick, epoch)?;
        }
        let mint_below = match &self.mint_below {
            Some(number) => number.get("mint_below")?,
            None if u128::BITS - greatest.leading_zeros() == 64 => 1 << 63,
            None => Format::UNBOUNDED,
        };
        if self.worker_range.is_some_and(|[first, last]| first > last) {
            return Err(Cause::Rule(
                "worker_range: write the least number first".to_owned(),
            ));
        }
        let mut format = Format {
            name: name.to_owned(),
            summary: self.summary.clone(),
            rule: self.rule,
            tick,
            epoch,
            variants,
            code,
            encodings,
            prefixes,
            first_worker: self
                .first_worker
                .max(self.worker_range.map_or(0, |[first, _]| first)),
            last_worker: self.worker_range.map(|[_, last]| last),
            lanes: self.lanes,
            sequence_spread: self.sequence_spread,
            start_after: None,
            exclude: self.exclude.clone(),
            monotonic: self.monotonic,
            labels: self.labels()?,
            mint_below,
            plausible_ahead: plausible_ahead(&self.plausible_ahead)?,
            rarity: self.rarity,
            reveals: self.reveals.clone(),
            enabled: self.enabled,
        };
        check_room(&format)?;
        check_stamps(&format)?;
        check_monotonic(&format)?;
        if let Some(id) = &self.start_after {
            format.start_after = Some(start_after(&format, id.to_text())?);
        }
        Ok(format)
    }

    fn labels(&self) -> Result<BTreeMap<u128, String>, Cause> {
        self.labels
            .iter()
            .map(|(value, label)| Ok((number("labels", value)?, label.clone())))
            .collect()
    }

    /// One layout; or, where a field carries a suffix code, one for each of its words.
    fn variants(&self) -> Result<(Vec<Variant>, Option<PlacedCode>), Cause> {
        let mut coded = self
            .fields
            .iter()
            .filter(|field| field.kind == FieldKind::Qualifier);
        let (Some(field), None) = (coded.next(), coded.next()) else {
            if self
                .fields
                .iter()
                .any(|field| field.kind == FieldKind::Qualifier)
            {
                return Err(Cause::Rule(
                    "only one field can carry a suffix code".to_owned(),
                ));
            }
            let layout = self.layout(None)?;
            return Ok((
                vec![Variant {
                    name: None,
                    aliases: Vec::new(),
                    assigned: true,
                    layout,
                }],
                None,
            ));
        };
        let (Some(bits), Some(codes)) = (field.bits, &field.codes) else {
            return Err(Cause::Rule(format!(
                "field `{}`: a qualifier needs `bits` and `codes`",
                field.name
            )));
        };
        let words: Vec<_> = codes
            .iter()
            .map(|code| (code.suffix.clone(), code.name.clone()))
            .collect();
        let code = SuffixCode::new(&words, bits).map_err(|cause| Cause::Code {
            field: field.name.clone(),
            cause,
        })?;
        let variants = code
            .words()
            .iter()
            .map(|word| {
                let layout = self.layout(Some((word.bits, word.suffix)))?;
                let definition = codes
                    .iter()
                    .find(|code| code.name.is_some() && code.name == word.name);
                let aliases = definition.map_or_else(Vec::new, |code| code.aliases.clone());
                Ok(Variant {
                    name: word.name.clone(),
                    aliases,
                    assigned: word.name.is_some(),
                    layout,
                })
            })
            .collect::<Result<Vec<_>, Cause>>()?;
        check_type_names(codes)?;
        let qualifier = variants[0]
            .layout
            .field_of(FieldKind::Qualifier)
            .expect("each layout has the qualifier");
        if !qualifier.stride.is_power_of_two() {
            return Err(Cause::Rule(format!(
                "field `{}`: what stands below a suffix code must be bits",
                field.name
            )));
        }
        let shift = qualifier.stride.ilog2();
        variants
            .iter()
            .try_for_each(|variant| check_above_word(&variant.layout))?;
        Ok((variants, Some(PlacedCode { code, shift })))
    }

    /// The layout in which the qualifier, if there is one, is this word of so many bits.
    fn layout(&self, word: Option<(u32, u128)>) -> Result<Layout, Cause> {
        let mut builder = Layout::builder();
        for field in &self.fields {
            let given = |key, number: &Option<WholeNumber>| {
                number.as_ref().map(|number| number.get(key)).transpose()
            };
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
            let sequence = field
                .sequence
                .clone()
                .unwrap_or_else(|| "sequence".to_owned());
            builder = builder
                .field(&sequence, FieldKind::Sequence, Width::Bits(bits))
                .draft(FieldDraft {
                    stride,
                    value: Some(suffix),
                    ..FieldDraft::new(&field.name, FieldKind::Qualifier, Width::Bits(word_bits))
                });
        }
        Ok(builder.build()?)
    }
}

/// The id that another generator has come to. Of a text that several encodings read, the latest reading counts: nothing at or
/// below any of them is minted.
fn start_after(format: &Format, id: String) -> Result<StartAfter, Cause> {
    let readings =
        (0..format.encodings.len()).filter_map(|encoding| format.read_as(encoding, &id).ok());
    let ticks = readings.filter_map(|number| format.tick_of(number).ok().flatten());
    match ticks.max() {
        Some(tick) => Ok(StartAfter { id, tick }),
        None => Err(Cause::Rule(format!(
            "start_after = `{id}` is no id of this format in any of its encodings"
        ))),
    }
}

/// No two types, and no other names of them, are called alike, and what has no name has no other.
fn check_type_names(codes: &[CodeDefinition]) -> Result<(), Cause> {
    let mut names: Vec<&String> = codes
        .iter()
        .flat_map(|code| code.name.iter().chain(&code.aliases))
        .collect();
    names.sort_unstable();
    if let Some([twice, _]) = names.array_windows().find(|[one, next]| one == next) {
        return Err(Cause::Rule(format!("two types are called `{twice}`")));
    }
    match codes
        .iter()
        .find(|code| code.name.is_none() && !code.aliases.is_empty())
    {
        Some(code) => Err(Cause::Rule(format!(
            "suffix `{}` has aliases and no name",
            code.suffix
        ))),
        None => Ok(()),
    }
}

/// A name is part of a path, a metric label and an environment variable.
fn check_name(name: &str) -> Result<(), Cause> {
    let plain = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
    };
    let starts_well = name
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_lowercase());
    if starts_well && name.len() <= 64 && name.bytes().all(plain) {
        return Ok(());
    }
    Err(Cause::Rule(
        "a name is 1 to 64 of a-z, 0-9, - and _, and begins with a letter".to_owned(),
    ))
}

fn check_encodings(encodings: &[Encoding]) -> Result<(), Cause> {
    if encodings.is_empty() {
        return Err(Cause::Rule(
            "at least one encoding is needed, the first is the canonical one".to_owned(),
        ));
    }
    for (at, encoding) in encodings.iter().enumerate() {
        if encodings[..at]
            .iter()
            .any(|other| other.name() == encoding.name())
        {
            return Err(Cause::Rule(format!(
                "two encodings are named `{}`",
                encoding.name()
            )));
        }
    }
    Ok(())
}
