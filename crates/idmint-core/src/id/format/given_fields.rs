//! Builds ids from field values, which is the reverse of splitting an id into its fields.

use super::asked_prefix::PrefixError;
use super::format::{Format, Variant};
use super::prefixes::{Prefixes, TYPE_RULE, is_type};
use crate::id::layout::{Field, FieldKind, Layout};
use crate::time::{UnixTime, UnixTimeError};

/// The name under which callers give the time as an RFC 3339 instant.
const TIME: &str = "time";
/// The name under which callers give the time in ticks since the epoch.
const TIME_TICKS: &str = "time_ticks";
/// The name under which callers give the type of an id, in a format whose ids have types.
const TYPE: &str = "type";
/// The name under which callers give the prefix of the canonical text, such as `user_`, if any.
const PREFIX: &str = "prefix";

/// An id that was built from field values, and the prefix of its canonical text.
///
/// Returned by [`Format::id_of_fields`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdOfFields {
    /// The number of the id.
    pub id: u128,
    /// The prefix of the id's canonical text. Empty if the text has no prefix.
    pub prefix: String,
}

/// The reason why the field values that a caller gave do not form an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// The format has no field with this name.
    #[error("`{given}` is not a field of {format}; its fields are {}", .names.join(", "))]
    Unknown {
        /// The name that the caller gave.
        given: String,
        /// The name of the format.
        format: String,
        /// The field names that the format accepts.
        names: Vec<String>,
    },
    /// The caller gave the same field twice.
    #[error("`{0}` is given more than once")]
    Twice(String),
    /// The caller gave the time of the id twice, as an instant and as a number of ticks.
    #[error("`time` and `time_ticks` are both given; leave one out")]
    TimeTwice,
    /// The value of a field is not a whole number in decimal digits.
    #[error(
        "`{name}` is {given:?}, but must be a whole number from 0 to {most}, in decimal digits"
    )]
    NotANumber {
        /// The name of the field.
        name: String,
        /// The value that the caller gave.
        given: String,
        /// The greatest value of the field.
        most: u128,
    },
    /// The value of a field exceeds the greatest value that the field can have.
    #[error("`{name}` is {given}, but must be 0 to {most}")]
    TooGreat {
        /// The name of the field.
        name: String,
        /// The value that the caller gave.
        given: u128,
        /// The greatest value of the field.
        most: u128,
    },
    /// The field is a constant, and the caller gave another value.
    #[error("`{name}` is {given}, but is always {constant}")]
    Constant {
        /// The name of the field.
        name: String,
        /// The value that the caller gave.
        given: u128,
        /// The only value that the field can have.
        constant: u128,
    },
    /// The fields with this name each hold a part of one number, but the number that the caller
    /// gave cannot be divided among them.
    #[error("`{name}` is {given}, which its fields cannot hold; the next lower value is {before}")]
    Gap {
        /// The name of the field.
        name: String,
        /// The number that the caller gave. For the time, the number of ticks since the epoch.
        given: u128,
        /// The greatest lower value that the fields can hold.
        before: u128,
    },
    /// The text of the time is not an RFC 3339 instant.
    #[error("time: {0}")]
    NoInstant(String),
    /// The time that the caller gave is before the epoch or after the last tick of the format.
    #[error("time {given:?} is outside the range of this format, {first} to {last}")]
    OutsideTime {
        /// The instant that the caller gave.
        given: String,
        /// The epoch, which is the first possible instant.
        first: UnixTime,
        /// The start of the last possible tick, as text.
        last: String,
    },
    /// The instant is not the beginning of a tick.
    #[error(
        "time {given:?} is not on a tick of {tick}: use {}, or a tick number as `time_ticks`",
        .nearest.join(" or ")
    )]
    OffTick {
        /// The instant that the caller gave.
        given: String,
        /// The length of a tick.
        tick: String,
        /// The start of the tick that contains the instant, and of the next tick, unless the first
        /// one is the last that ids can hold or the last of the year 9999.
        nearest: Vec<String>,
    },
    /// The format has no type with this name or number.
    #[error("{name} `{given}` is not one of {}", .types.join(", "))]
    TypeUnknown {
        /// The name under which the type was given: `type`, or the name of the field.
        name: String,
        /// The type that the caller gave.
        given: String,
        /// The types that the format has.
        types: Vec<String>,
    },
    /// The requested prefix or type is refused.
    #[error(transparent)]
    Prefix(#[from] PrefixError),
}

impl FieldsError {
    /// Returns the name under which the caller gave the invalid value.
    pub fn name(&self) -> &str {
        match self {
            FieldsError::Unknown { given: name, .. }
            | FieldsError::Twice(name)
            | FieldsError::NotANumber { name, .. }
            | FieldsError::TooGreat { name, .. }
            | FieldsError::Constant { name, .. }
            | FieldsError::Gap { name, .. }
            | FieldsError::TypeUnknown { name, .. } => name,
            FieldsError::TimeTwice
            | FieldsError::NoInstant(_)
            | FieldsError::OutsideTime { .. }
            | FieldsError::OffTick { .. } => TIME,
            FieldsError::Prefix(PrefixError::TypeMalformed { .. }) => TYPE,
            FieldsError::Prefix(_) => PREFIX,
        }
    }

    /// Returns the text of the bound that the value violates, such as `0 to 35`, or `None` if the
    /// error has no bound.
    pub fn limit(&self) -> Option<String> {
        match self {
            FieldsError::Unknown { names, .. } => Some(names.join(", ")),
            FieldsError::NotANumber { most, .. } | FieldsError::TooGreat { most, .. } => {
                Some(format!("0 to {most}"))
            }
            FieldsError::Constant { constant, .. } => Some(constant.to_string()),
            FieldsError::OutsideTime { first, last, .. } => Some(format!("{first} to {last}")),
            FieldsError::OffTick { tick, .. } => Some(tick.clone()),
            FieldsError::TypeUnknown { types, .. } => Some(types.join(", ")),
            FieldsError::Prefix(PrefixError::TypeMalformed { .. }) => Some(TYPE_RULE.to_owned()),
            FieldsError::Prefix(PrefixError::PrefixUnknown { prefixes, .. }) => {
                Some(prefixes.join(", "))
            }
            FieldsError::Twice(_)
            | FieldsError::TimeTwice
            | FieldsError::Gap { .. }
            | FieldsError::NoInstant(_)
            | FieldsError::Prefix(_) => None,
        }
    }
}

impl Format {
    /// Returns the field names that [`id_of_fields`](Self::id_of_fields) accepts.
    ///
    /// The time has two names, `time` and `time_ticks`. Each other field has its own name. Formats
    /// with types also accept `type`, and formats with prefixes accept `prefix`.
    pub fn field_names(&self) -> Vec<&str> {
        let layout = &self.variants[0].layout;
        let times: &[&str] = if layout.field_of(FieldKind::Time).is_some() {
            &[TIME, TIME_TICKS]
        } else {
            &[]
        };
        let mut names = times.to_vec();
        for field in layout
            .fields()
            .iter()
            .filter(|field| field.kind != FieldKind::Time)
        {
            if !names.contains(&field.name.as_str()) {
                names.push(&field.name);
            }
        }
        let has_type = self.has_types() || self.prefixes.are_types();
        names.extend((has_type && !names.contains(&TYPE)).then_some(TYPE));
        names.extend((!self.prefixes.listed().is_empty()).then_some(PREFIX));
        names
    }

    /// Builds an id from field values. Each item of `given` is one of the
    /// [`field_names`](Self::field_names) and the field's value as text.
    ///
    /// A missing field gets the value 0, or its constant. If only `time` is given, the result is
    /// therefore the smallest id of that instant. Random numbers and checksums are not computed,
    /// but must be given like other values. `time` must be the beginning of a tick, either exactly
    /// or truncated to the fractional digits that decoding writes.
    ///
    /// ```
    /// use idmint_core::id::Format;
    ///
    /// let payment = Format::built_in("payment").expect("a built-in format");
    /// let made = payment.id_of_fields(&[("time", "2026-11-21T03:36:01Z"), ("sequence", "2")])?;
    /// assert_eq!(payment.canonical().to_text(made.id), "1I9ZC1002");
    /// let refused = payment.id_of_fields(&[("worker", "36")]).expect_err("one digit of base 36");
    /// assert_eq!(refused.to_string(), "`worker` is 36, but must be 0 to 35");
    /// # Ok::<(), idmint_core::id::FieldsError>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`FieldsError`] with the field, the value and the bound if a value does not fit its
    /// field.
    pub fn id_of_fields(&self, given: &[(&str, &str)]) -> Result<IdOfFields, FieldsError> {
        let names = self.field_names();
        for (at, (name, _)) in given.iter().enumerate() {
            if !names.contains(name) {
                let names = names.iter().map(|name| (*name).to_owned()).collect();
                return Err(FieldsError::Unknown {
                    given: (*name).to_owned(),
                    format: self.name.clone(),
                    names,
                });
            }
            if given[..at].iter().any(|(earlier, _)| earlier == name) {
                return Err(FieldsError::Twice((*name).to_owned()));
            }
        }
        let layout = &self.variant_of_fields(given)?.layout;
        let mut values: Vec<u128> = layout
            .fields()
            .iter()
            .map(|field| field.constant.unwrap_or(0))
            .collect();
        if let Some(most) = layout.greatest_of(FieldKind::Time) {
            let ticks = self.ticks_given(given, most)?;
            divide(layout, &mut values, TIME_TICKS, ticks, |field| {
                field.kind == FieldKind::Time
            })?;
        }
        // A field of kind qualifier may be named `type`. Its given value is then the name of the
        // type, not a number.
        let is_type_name = |field: &Field| {
            field.kind == FieldKind::Qualifier && field.name == TYPE && self.has_types()
        };
        for field in layout
            .fields()
            .iter()
            .filter(|field| field.kind != FieldKind::Time && !is_type_name(field))
        {
            if let Some(text) = value_of(given, &field.name) {
                let is_part = |other: &Field| other.name == field.name;
                let parts = layout.fields().iter().filter(|other| is_part(other));
                let most = parts.map(|part| part.max * part.scale).sum();
                let number = number(&field.name, text, most)?;
                match field.constant.map(|constant| constant * field.scale) {
                    None => divide(layout, &mut values, &field.name, number, is_part)?,
                    Some(constant) if constant == number => {}
                    Some(constant) => {
                        return Err(FieldsError::Constant {
                            name: field.name.clone(),
                            given: number,
                            constant,
                        });
                    }
                }
            }
        }
        let id = layout
            .pack(&values)
            .expect("each value was compared with its field");
        Ok(IdOfFields {
            id,
            prefix: self.prefix_given(given)?,
        })
    }

    /// Returns the variant of the type of id that the caller gave, by its name or as a number for
    /// the field of the type. Without a type, returns the variant with the smallest ids.
    fn variant_of_fields(&self, given: &[(&str, &str)]) -> Result<&Variant, FieldsError> {
        let by_name = value_of(given, TYPE).filter(|_| self.has_types());
        if let Some(name) = by_name {
            return self
                .type_named(name)
                .map(|at| &self.variants[at])
                .map_err(|_| self.no_type(TYPE, name));
        }
        let word_of = |variant: &Variant| {
            variant
                .layout
                .field_of(FieldKind::Qualifier)
                .and_then(|field| field.constant)
        };
        let qualifier = self.variants[0]
            .layout
            .field_of(FieldKind::Qualifier)
            .filter(|_| self.has_types());
        if let Some((field, text)) =
            qualifier.and_then(|field| Some((field, value_of(given, &field.name)?)))
        {
            let found = self
                .variants
                .iter()
                .find(|variant| word_of(variant).is_some_and(|word| text == word.to_string()));
            return found.ok_or_else(|| self.no_type(&field.name, text));
        }
        Ok(self
            .variants
            .iter()
            .min_by_key(|variant| variant.layout.least())
            .expect("a format has a layout"))
    }

    fn no_type(&self, name: &str, given: &str) -> FieldsError {
        let named = self
            .variants
            .iter()
            .filter_map(|variant| variant.name.clone());
        let words = self
            .layouts()
            .filter_map(|layout| layout.field_of(FieldKind::Qualifier)?.constant);
        let types = if name == TYPE {
            named.collect()
        } else {
            words.map(|word| word.to_string()).collect()
        };
        FieldsError::TypeUnknown {
            name: name.to_owned(),
            given: given.to_owned(),
            types,
        }
    }

    fn ticks_given(&self, given: &[(&str, &str)], most: u128) -> Result<u128, FieldsError> {
        match (value_of(given, TIME), value_of(given, TIME_TICKS)) {
            (Some(_), Some(_)) => Err(FieldsError::TimeTwice),
            (None, None) => Ok(0),
            (None, Some(ticks)) => number(TIME_TICKS, ticks, most),
            (Some(instant), None) => self.ticks_of_instant(instant, most),
        }
    }

    /// Returns the number of the tick that begins at the instant in `text`. The number must be at
    /// most `most`.
    fn ticks_of_instant(&self, text: &str, most: u128) -> Result<u128, FieldsError> {
        let given: UnixTime = text
            .parse()
            .map_err(|error: UnixTimeError| FieldsError::NoInstant(error.to_string()))?;
        let tick = self.tick.expect("a format with a time has a tick");
        let count = u128::try_from(tick.count(self.epoch, given))
            .ok()
            .filter(|count| *count <= most);
        let Some(count) = count else {
            let last = self
                .time_of(most)
                .and_then(UnixTime::to_exact_text)
                .unwrap_or_else(|| "far after 9999".to_owned());
            return Err(FieldsError::OutsideTime {
                given: text.to_owned(),
                first: self.epoch,
                last,
            });
        };
        if self.time_of(count) == Some(given) {
            return Ok(count);
        }
        // Decoded instants are cut to a fixed number of decimals, so the start of a tick may be
        // written as an instant just before that start. Therefore compare the given instant with
        // the start of the next tick, cut in the same way.
        let unit = 10_i128.pow(9 - u32::from(tick.second_digits()));
        let next = self.time_of(count + 1).filter(|_| count < most);
        if next.is_some_and(|next| next.nanos() - next.nanos().rem_euclid(unit) == given.nanos()) {
            return Ok(count + 1);
        }
        let nearest = (count..=most).take(2).filter_map(|ticks| {
            let time = self.time_of(ticks)?;
            time.to_exact_text()
        });
        Err(FieldsError::OffTick {
            given: text.to_owned(),
            tick: tick.to_string(),
            nearest: nearest.collect(),
        })
    }

    fn prefix_given(&self, given: &[(&str, &str)]) -> Result<String, FieldsError> {
        match &self.prefixes {
            Prefixes::Types { .. } => match value_of(given, TYPE).unwrap_or_default() {
                "" => Ok(String::new()),
                of_type if is_type(of_type) => Ok(format!("{of_type}_")),
                other => Err(PrefixError::TypeMalformed {
                    given: other.to_owned(),
                }
                .into()),
            },
            Prefixes::Listed(_) => match value_of(given, PREFIX) {
                None => Ok(String::new()),
                Some(text) => Ok(self.prefix(text, None)?.as_str().to_owned()),
            },
        }
    }
}

fn value_of<'a>(given: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    given
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// Parses a whole number of at most `most` that consists only of decimal digits. `name` is the name
/// of the field, which the error message contains.
fn number(name: &str, text: &str, most: u128) -> Result<u128, FieldsError> {
    let name = || name.to_owned();
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match is_digits.then(|| text.parse().ok()).flatten() {
        None => Err(FieldsError::NotANumber {
            name: name(),
            given: text.to_owned(),
            most,
        }),
        Some(given) if given > most => Err(FieldsError::TooGreat {
            name: name(),
            given,
            most,
        }),
        Some(given) => Ok(given),
    }
}

/// Divides `number` among the fields that each hold a part of it, and writes their values into
/// `values`. The error contains `name`, under which the caller gave the number.
fn divide(
    layout: &Layout,
    values: &mut [u128],
    name: &str,
    number: u128,
    is_part: impl Fn(&Field) -> bool,
) -> Result<(), FieldsError> {
    match layout.divide(number, values, is_part) {
        0 => Ok(()),
        rest => Err(FieldsError::Gap {
            name: name.to_owned(),
            given: number,
            before: number - rest,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{FormatDefinition, PRESETS, preset};

    fn refusal(format: &str, given: &[(&str, &str)]) -> String {
        preset(format)
            .id_of_fields(given)
            .expect_err("refused")
            .to_string()
    }

    #[test]
    fn a_time_outside_the_range_is_refused_with_the_exact_last_instant() {
        let error = refusal("uuid6", &[("time", "9000-01-01T00:00:00Z")]);
        assert!(
            error.ends_with(" to 5236-03-31T21:21:00.684697500Z"),
            "{error}"
        );
    }

    #[test]
    fn the_fields_of_every_built_in_format_make_the_id_that_they_were_taken_from() {
        let mut made = 0;
        for format in PRESETS.iter().map(|it| preset(it.name)) {
            for id in [format.least(), format.example(), format.greatest()] {
                let parts = format.split(id).expect("an id");
                let numbers: Vec<_> = parts
                    .numbers()
                    .map(|(field, value, _)| (field, value.to_string()))
                    .collect();
                let name_of = |field: &Field| {
                    if field.kind == FieldKind::Time {
                        TIME_TICKS.to_owned()
                    } else {
                        field.name.clone()
                    }
                };
                let named: Vec<_> = numbers
                    .iter()
                    .map(|(field, value)| (name_of(field), value))
                    .collect();
                let given: Vec<_> = named
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_str()))
                    .collect();
                assert_eq!(
                    format.id_of_fields(&given).map(|it| it.id),
                    Ok(id),
                    "{}: {given:?}",
                    format.name
                );
                made += 1;
            }
        }
        assert!(made > 80, "{made}");
    }

    #[test]
    fn a_lone_time_gives_the_smallest_id_of_its_instant() {
        for name in [
            "payment",
            "snowflake",
            "flax",
            "siq",
            "uuid7",
            "conjunction",
            "evently",
            "uuid1",
        ] {
            let format = preset(name);
            let time = "2024-02-20T00:00:00Z";
            let id = format
                .id_of_fields(&[("time", time)])
                .expect("an instant on a tick")
                .id;
            let instant = time.parse().expect("an instant");
            assert_eq!(
                format.split(id).expect("an id").time,
                Some(instant),
                "{name}"
            );
            if let Ok(range) = format.range(instant, UnixTime::from_nanos(instant.nanos() + 1)) {
                assert_eq!(id, range.least, "{name}");
            }
        }
    }

    #[test]
    fn a_time_is_taken_as_decoding_writes_it_and_within_a_tick_refused_with_its_neighbours() {
        let siq = preset("siq");
        let ticks = |time| siq.id_of_fields(&[("time", time)]).map(|it| it.id >> 56);
        let first = ticks("2024-01-01T00:00:00Z").expect("a whole second");
        assert_eq!(
            ticks("2024-01-01T00:00:00.000015259Z"),
            Ok(first + 1),
            "the first nanosecond of the tick"
        );
        assert_eq!(
            ticks("2024-01-01T00:00:00.000015Z"),
            Ok(first + 1),
            "as it is written"
        );
        let off = ticks("2024-01-01T00:00:00.00002Z")
            .expect_err("in a tick")
            .to_string();
        let next_to = "2024-01-01T00:00:00.000015259Z or 2024-01-01T00:00:00.000030518Z";
        assert!(off.contains(next_to) && off.contains("1s/65536"), "{off}");
        let within = refusal("payment", &[("time", "2024-02-20T00:00:00.5Z")]);
        assert!(
            within.contains("2024-02-20T00:00:00Z or 2024-02-20T00:00:01Z"),
            "{within}"
        );
        for (format, last, only) in [
            ("payment", "2092-12-23T05:45:35.5Z", "2092-12-23T05:45:35Z,"),
            (
                "siq",
                "9999-12-31T23:59:59.999999Z",
                "9999-12-31T23:59:59.999984742Z,",
            ),
        ] {
            let off = refusal(format, &[("time", last)]);
            assert!(
                off.contains(&format!("use {only} or a tick number")),
                "{off}"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_bound() {
        assert_eq!(
            refusal("payment", &[("worker", "36")]),
            "`worker` is 36, but must be 0 to 35"
        );
        for text in ["", "+1", "-1", "1e3", "0x1", "1.0", "１"] {
            assert!(
                refusal("payment", &[("worker", text)]).contains("from 0 to 35"),
                "{text}"
            );
        }
        let beyond = "340282366920938463463374607431768211456";
        assert!(
            refusal("flax", &[("random", beyond)]).contains("from 0 to 72057594037927935"),
            "2^128"
        );
        let unknown = refusal("payment", &[("shard", "1")]);
        assert_eq!(
            unknown,
            "`shard` is not a field of payment; its fields are time, time_ticks, worker, sequence"
        );
        assert!(refusal("payment", &[("worker", "1"), ("worker", "1")]).contains("more than once"));
        assert!(
            refusal(
                "payment",
                &[("time", "2024-01-01T00:00:00Z"), ("time_ticks", "0")]
            )
            .contains("both")
        );
        assert_eq!(
            refusal("uuid7", &[("version", "4")]),
            "`version` is 4, but is always 7"
        );
        assert!(
            refusal("payment", &[("time", "2023-12-31T23:59:59Z")])
                .contains("2024-01-01T00:00:00.000Z to 2092")
        );
        assert!(refusal("payment", &[("time_ticks", "2176782336")]).contains("0 to 2176782335"));
        assert!(refusal("siq", &[("type", "letter")]).contains("message"));
        assert!(
            refusal("siq", &[("type", "message"), ("qualifier", "7")]).contains("is always 14")
        );
        assert!(refusal("siq", &[("qualifier", "9")]).contains("14"));
        assert!(refusal("typeid", &[("type", "User")]).contains("a-z"));
    }

    #[test]
    fn a_number_in_a_gap_between_fields_of_one_name_is_refused() {
        let text = "summary = ''\nrule = 'decode-only'\ntick = '1s'\nepoch = '2025-01-01T00:00:00Z'\n\
                    encodings = ['decimal']\nfields = [\n\
                    { name = 'time', kind = 'time', cardinality = 100, scale = 10 },\n\
                    { name = 'n', kind = 'object', cardinality = 5 },\n\
                    { name = 'time', kind = 'time', cardinality = 6 },\n\
                    { name = 'n', kind = 'object', cardinality = 4, scale = 7 } ]";
        let format = FormatDefinition::from_toml("gap", text)
            .expect("TOML")
            .compile("gap")
            .expect("sound");
        for (name, end, in_gap) in [
            (
                TIME_TICKS,
                996,
                (|number| number % 10 > 5) as fn(u32) -> bool,
            ),
            ("n", 26, |number| number % 7 > 4),
        ] {
            for number in 0..end {
                let made = format.id_of_fields(&[(name, &number.to_string())]);
                if in_gap(number) {
                    let error = made.expect_err("no id has this number").to_string();
                    assert!(error.contains("cannot hold"), "{error}");
                    continue;
                }
                let parts = format
                    .split(made.expect("a number of ids").id)
                    .expect("an id");
                let field = name.strip_suffix("_ticks").unwrap_or(name);
                let mut numbers = parts.numbers();
                let read = numbers.find(|(other, ..)| other.name == field);
                assert_eq!(read.map(|(_, read, _)| read), Some(number.into()), "{name}");
            }
        }
        let refused = format.id_of_fields(&[("time", "2025-01-01T00:00:18Z")]);
        assert_eq!(
            refused.expect_err("between 15 s and 20 s").to_string(),
            "`time_ticks` is 18, which its fields cannot hold; the next lower value is 15"
        );
    }

    #[test]
    fn a_type_is_given_by_its_name_or_by_the_value_of_its_field() {
        let siq = preset("siq");
        let id = |given| siq.id_of_fields(given).expect("fields").id;
        assert_eq!(id(&[("type", "message"), ("serial", "1")]), 0b1_1110);
        assert_eq!(id(&[("qualifier", "14"), ("serial", "1")]), 0b1_1110);
        assert_eq!(
            id(&[("qualifier", "18")]),
            18,
            "one that nobody has assigned"
        );
        assert_eq!(id(&[]), 0, "a user, whose ids are the smallest");
        let typeid = preset("typeid")
            .id_of_fields(&[("type", "user")])
            .expect("a type");
        assert_eq!(typeid.prefix, "user_");
    }

    #[test]
    fn a_type_is_given_by_its_name_if_its_field_is_named_type() {
        let text = "summary = ''\nrule = 'decode-only'\nencodings = ['decimal']\nfields = [\n\
                    { name = 'n', kind = 'object', bits = 8 },\n\
                    { name = 'type', kind = 'qualifier', bits = 2, codes = [\n\
                    { suffix = '0', name = 'user' }, { suffix = '1', name = 'order' }] } ]";
        let format = FormatDefinition::from_toml("typed", text)
            .expect("TOML")
            .compile("typed")
            .expect("sound");
        let id = |of_type| Ok(format.id_of_fields(&[("n", "5"), ("type", of_type)])?.id);
        assert_eq!(id("order"), Ok(0b1_0101));
        assert_eq!(id("user"), Ok(0b1_0100));
        assert_eq!(format.field_names(), ["n", "sequence", "type"]);
        let unknown: Result<_, FieldsError> = id("1");
        assert!(unknown.expect_err("a number").to_string().contains("order"));
    }
}
