//! Compiles the definition of a format into a checked [`Format`].

use std::collections::BTreeMap;

use super::definition::{
    CodeDefinition, FieldDefinition, FormatDefinition, WholeNumber, number, plausible_ahead,
};
use super::format::{Format, PlacedCode, Rule, StartAfter, Variant};
use super::format_error::{Cause, FormatError};
use super::monotonic::check_monotonic;
use super::prefix_check::check_prefixes;
use super::rule_check::{check_above_word, check_chained, check_room};
use super::stamp_check::check_stamps;
use crate::id::encoding::Encoding;
use crate::id::layout::{FieldKind, Layout, LayoutError, SuffixCode, Width};
use crate::time::{Tick, UnixTime};

impl FormatDefinition {
    /// Checks the whole definition and builds the format called `name` from it.
    ///
    /// # Errors
    /// Returns [`FormatError`] with the key, the value and the violated bound if a setting is
    /// invalid.
    pub fn compile(&self, name: &str) -> Result<Format, FormatError> {
        self.check(name)
            .map_err(|cause| FormatError::new(name, cause))
    }

    fn check(&self, name: &str) -> Result<Format, Cause> {
        check_name(name)?;
        let (variants, code) = self.variants()?;
        self.check_rule(&variants)?;
        let greatest = variants.iter().map(|variant| variant.layout.greatest());
        let greatest = greatest.max().unwrap_or(0);
        let encodings = self.encodings.iter().enumerate();
        let encodings: Vec<Encoding> = encodings
            .map(|(at, definition)| {
                let encoding = Encoding::new(definition, greatest);
                encoding.map_err(|error| {
                    let key = format!("encodings[{at}].{}", error.key());
                    Cause::from(error).at(key)
                })
            })
            .collect::<Result<_, _>>()?;
        check_encodings(&encodings)?;
        check_least(&variants, &encodings[0])?;
        let prefixes = check_prefixes(self, &encodings, code.is_some())?;
        let tick: Result<Option<Tick>, _> = self.tick.as_deref().map(str::parse).transpose();
        let tick = tick.map_err(|error| Cause::Tick(error).at("tick"))?;
        let epoch = instant("epoch", self.epoch.as_deref(), UnixTime::EPOCH)?;
        let plausible_from = instant("plausible_from", self.plausible_from.as_deref(), epoch)?;
        if self.rule == Rule::Chained {
            check_chained(&variants[0].layout, tick, epoch).map_err(|cause| cause.at("fields"))?;
        }
        let has_time = variants[0].layout.field_of(FieldKind::Time).is_some();
        let mint_below = match &self.mint_below {
            Some(number) => number
                .get("mint_below")
                .map_err(|cause| cause.at("mint_below"))?,
            None if u128::BITS - greatest.leading_zeros() == 64 && has_time => 1 << 63,
            None => Format::UNBOUNDED,
        };
        if self.worker_range.is_some_and(|[first, last]| first > last) {
            return Cause::rule_at(
                "worker_range",
                "worker_range: write the lowest number first",
            );
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
            plausible_from: plausible_from.max(epoch),
            plausible_ahead: plausible_ahead(&self.plausible_ahead)
                .map_err(|cause| cause.at("plausible_ahead"))?,
            rarity: self.rarity,
            reveals: self.reveals.clone(),
            mint: self.mint,
            enabled: self.enabled,
        };
        let bound = self.mint_below.as_ref().map_or("fields", |_| "mint_below");
        check_room(&format).map_err(|cause| cause.at(bound))?;
        check_stamps(&format).map_err(|cause| cause.at(self.key_of_kind(FieldKind::Sequence)))?;
        check_monotonic(&format).map_err(|cause| cause.at("monotonic"))?;
        if let Some(id) = &self.start_after {
            let after = start_after(&format, id.to_text());
            format.start_after = Some(after.map_err(|cause| cause.at("start_after"))?);
        }
        Ok(format)
    }

    fn labels(&self) -> Result<BTreeMap<u128, String>, Cause> {
        self.labels
            .iter()
            .map(|(value, label)| {
                let value =
                    number("labels", value).map_err(|cause| cause.at(format!("labels.{value}")))?;
                Ok((value, label.clone()))
            })
            .collect()
    }

    /// Returns the layouts of the format, usually one. If a field carries a suffix code, the result
    /// has one layout for each word, and the code with its position.
    fn variants(&self) -> Result<(Vec<Variant>, Option<PlacedCode>), Cause> {
        let fields = self.fields.iter();
        let mut coded = fields.filter(|field| field.kind == FieldKind::Qualifier);
        let (coded, another) = (coded.next(), coded.next());
        if let Some(another) = another {
            return Cause::rule_at(
                self.key_of_field(&another.name),
                "only one field can be of kind qualifier; remove this one",
            );
        }
        let Some(field) = coded else {
            let variant = Variant {
                name: None,
                aliases: Vec::new(),
                assigned: true,
                layout: self.layout(None)?,
            };
            return Ok((vec![variant], None));
        };
        let name = &field.name;
        let key = self.key_of_field(name);
        let (Some(bits), Some(codes)) = (field.bits, &field.codes) else {
            return Cause::rule_at(
                key,
                format!("field `{name}`: a field of kind qualifier needs `bits` and `codes`"),
            );
        };
        let words = codes.iter();
        let words: Vec<_> = words
            .map(|code| (code.suffix.clone(), code.name.clone()))
            .collect();
        let code = SuffixCode::new(&words, bits).map_err(|cause| {
            let field = name.clone();
            Cause::Code { field, cause }.at(format!("{key}.codes"))
        })?;
        let mut variants = Vec::new();
        for word in code.words() {
            let mut named = codes.iter().filter(|code| code.name.is_some());
            let definition = named.find(|code| code.name == word.name);
            variants.push(Variant {
                name: word.name.clone(),
                aliases: definition.map_or_else(Vec::new, |code| code.aliases.clone()),
                assigned: word.name.is_some(),
                layout: self.layout(Some((word.bits, word.suffix)))?,
            });
        }
        check_type_names(codes).map_err(|cause| cause.at(format!("{key}.codes")))?;
        let qualifier = variants[0].layout.field_of(FieldKind::Qualifier);
        let qualifier = qualifier.expect("each layout has the qualifier");
        if !qualifier.stride.is_power_of_two() {
            return Cause::rule_at(
                key,
                format!("field `{name}`: give the fields below a qualifier their width in `bits`"),
            );
        }
        let shift = qualifier.stride.ilog2();
        variants
            .iter()
            .try_for_each(|variant| check_above_word(&variant.layout))
            .map_err(|cause| cause.at(format!("{key}.stride")))?;
        Ok((variants, Some(PlacedCode { code, shift })))
    }

    /// Builds one layout. If a field carries a code word, `word` is the length of that word in bits
    /// and its value.
    fn layout(&self, word: Option<(u32, u128)>) -> Result<Layout, Cause> {
        let mut builder = Layout::builder();
        for (at, field) in self.fields.iter().enumerate() {
            let given = |key, number: &Option<WholeNumber>| {
                let number = number.as_ref().map(|number| number.get(key)).transpose();
                number.map_err(|cause| cause.at(format!("fields[{at}].{key}")))
            };
            let stride = given("stride", &field.stride)?;
            let (Some((word_bits, suffix)), FieldKind::Qualifier) = (word, field.kind) else {
                if field.codes.is_some() || field.sequence.is_some() {
                    let key = field.codes.as_ref().map_or("sequence", |_| "codes");
                    return Cause::rule_at(
                        format!("fields[{at}].{key}"),
                        format!(
                            "field `{}`: only a field of kind qualifier has `codes` and `sequence`",
                            field.name
                        ),
                    );
                }
                let width = field.width().map_err(|cause| {
                    let key = field.width_key();
                    cause.at(format!("fields[{at}]{key}"))
                })?;
                builder = builder
                    .field(&field.name, field.kind, width)
                    .stride(stride)
                    .constant(given("value", &field.value)?)
                    .max(given("max", &field.max)?)
                    .scale(given("scale", &field.scale)?);
                continue;
            };
            let bits = field.bits.unwrap_or(0).saturating_sub(word_bits);
            let sequence = field
                .sequence
                .clone()
                .unwrap_or_else(|| "sequence".to_owned());
            builder = builder
                .field(&sequence, FieldKind::Sequence, Width::Bits(bits))
                .field(&field.name, FieldKind::Qualifier, Width::Bits(word_bits))
                .stride(stride)
                .constant(suffix);
        }
        let layout = builder.build();
        layout.map_err(|error| {
            let key = self.key_of_layout(&error);
            Cause::from(error).at(key)
        })
    }

    /// Returns the path of the setting that causes this layout error, such as `fields[1].max`.
    fn key_of_layout(&self, error: &LayoutError) -> String {
        let (name, key) = match error {
            LayoutError::FieldCount { .. } => return "fields".to_owned(),
            LayoutError::NameTwice { name } => {
                let again = self.fields.iter().rposition(|field| field.name == *name);
                return format!("fields[{}].name", again.unwrap_or(0));
            }
            LayoutError::TooWide { name } | LayoutError::Width { name, .. } => {
                let field = self.fields.iter().find(|field| field.name == *name);
                (name, field.map_or("", FieldDefinition::width_key))
            }
            LayoutError::Max { name, .. } => (name, ".max"),
            LayoutError::Scale { name, .. } => (name, ".scale"),
            LayoutError::Stride { name, .. } => (name, ".stride"),
            LayoutError::Constant { name, .. } => (name, ".value"),
        };
        self.key_of_field(name) + key
    }

    /// Returns the path of the first field with this name, such as `fields[1]`. A sequence that
    /// shares the bits of a qualifier field has no entry in `fields`. For such a sequence, the path
    /// of the qualifier field is returned.
    pub(super) fn key_of_field(&self, name: &str) -> String {
        match self.fields.iter().position(|field| field.name == name) {
            Some(at) => format!("fields[{at}]"),
            None => self.key_of_kind(FieldKind::Qualifier),
        }
    }

    /// Returns the path of the last field of this kind, such as `fields[2]`, or `fields` if no
    /// field has this kind.
    pub(super) fn key_of_kind(&self, kind: FieldKind) -> String {
        match self.fields.iter().rposition(|field| field.kind == kind) {
            Some(at) => format!("fields[{at}]"),
            None => "fields".to_owned(),
        }
    }
}

fn instant(key: &'static str, text: Option<&str>, default: UnixTime) -> Result<UnixTime, Cause> {
    text.map_or(Ok(default), str::parse)
        .map_err(|cause| Cause::Instant { key, cause }.at(key))
}

/// Parses the setting `start_after`, which is the last id of another generator.
///
/// If several encodings can read the text as ids with different ticks, the latest of these ticks is
/// used. Whichever encoding was meant, no id is then minted in the tick of the other generator's
/// last id, or before.
fn start_after(format: &Format, id: String) -> Result<StartAfter, Cause> {
    let readings =
        (0..format.encodings.len()).filter_map(|encoding| format.read_as(encoding, &id).ok());
    let ticks = readings.filter_map(|number| format.tick_of(number).ok().flatten());
    match ticks.max() {
        Some(tick) => Ok(StartAfter { id, tick }),
        None => Cause::rule(format!(
            "start_after = `{id}` is not an id of this format in any of its encodings"
        )),
    }
}

/// Checks the types of ids that the code words in `codes` stand for. No two types may share a name
/// or an alias, and every type with aliases must also have a name.
fn check_type_names(codes: &[CodeDefinition]) -> Result<(), Cause> {
    let mut names: Vec<&String> = codes
        .iter()
        .flat_map(|code| code.name.iter().chain(&code.aliases))
        .collect();
    names.sort_unstable();
    if let Some([twice, _]) = names.array_windows().find(|[one, next]| one == next) {
        return Cause::rule(format!("two types are named `{twice}`; rename one of them"));
    }
    match codes
        .iter()
        .find(|code| code.name.is_none() && !code.aliases.is_empty())
    {
        Some(code) => Cause::rule(format!(
            "suffix `{}` has aliases but no name; give it a name",
            code.suffix
        )),
        None => Ok(()),
    }
}

/// Checks the name of a format, which becomes part of URL paths, metric labels and environment
/// variables.
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
    Cause::rule(
        "the name must be 1 to 64 characters from a-z, 0-9, - and _, and begin with a letter",
    )
}

/// Checks that no id has an empty canonical text. An encoding with `strip = true` writes 0 as the
/// empty text, which cannot be read as an id.
fn check_least(variants: &[Variant], canonical: &Encoding) -> Result<(), Cause> {
    let mut least = variants.iter().map(|variant| variant.layout.least());
    if least.any(|id| canonical.to_text(id).is_empty()) {
        return Cause::rule_at(
            "encodings[0].strip",
            "the canonical text of the id 0 would be empty: set `strip = false`, or list another \
             encoding first",
        );
    }
    Ok(())
}

fn check_encodings(encodings: &[Encoding]) -> Result<(), Cause> {
    if encodings.is_empty() {
        return Cause::rule_at(
            "encodings",
            "a format needs at least one encoding; the first one is canonical",
        );
    }
    for (at, encoding) in encodings.iter().enumerate() {
        if encodings[..at]
            .iter()
            .any(|other| other.name() == encoding.name())
        {
            return Cause::rule_at(
                format!("encodings[{at}]"),
                format!(
                    "two encodings are named `{}`; rename one of them",
                    encoding.name()
                ),
            );
        }
    }
    Ok(())
}
