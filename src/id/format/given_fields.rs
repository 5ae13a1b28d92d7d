//! The id of given fields: the inverse of taking one apart.

use super::asked_prefix::PrefixError;
use super::format::{Format, Variant};
use super::prefixes::{Prefixes, TYPE_RULE, is_type};
use crate::id::layout::{Field, FieldKind};
use crate::time::{UnixTime, UnixTimeError};

/// The instant of the time field, as RFC 3339 has it.
const TIME: &str = "time";
/// The same in ticks since the epoch.
const TIME_TICKS: &str = "time_ticks";
/// The type, in a format that has types.
const TYPE: &str = "type";
/// What stands before the canonical text, in a format that has such.
const PREFIX: &str = "prefix";

/// An id, and what stands before its canonical text.
///
/// Made by [`Format::id_of_fields`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdOfFields {
    /// The number.
    pub id: u128,
    /// What stands before the canonical text; empty where nothing does.
    pub prefix: String,
}

/// Why given fields make no id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// The format has no such field.
    #[error("`{given}` is no field of {format}, which has {}", .names.join(", "))]
    Unknown {
        /// As given.
        given: String,
        /// The format.
        format: String,
        /// What it has.
        names: Vec<String>,
    },
    /// A field has two values.
    #[error("`{0}` is given more than once")]
    Twice(String),
    /// The time is given as an instant and as a number.
    #[error("`time` and `time_ticks` are both given, and say the same: leave out one")]
    TimeTwice,
    /// The value is no number.
    #[error("`{name}` is {given:?}, it must be a whole number from 0 to {most}, in decimal digits")]
    NotANumber {
        /// The field.
        name: String,
        /// As given.
        given: String,
        /// The greatest value of the field.
        most: u128,
    },
    /// The value is greater than any of the field.
    #[error("`{name}` is {given}, it must be 0 to {most}")]
    TooGreat {
        /// The field.
        name: String,
        /// As given.
        given: u128,
        /// The greatest value of the field.
        most: u128,
    },
    /// The field has another value in every id.
    #[error("`{name}` is {given}, in every id it is {constant}")]
    Constant {
        /// The field.
        name: String,
        /// As given.
        given: u128,
        /// Its only value.
        constant: u128,
    },
    /// The time is no instant.
    #[error("time: {0}")]
    NoInstant(String),
    /// The instant lies before the epoch, or after the last tick.
    #[error("time {given:?} lies outside of what its ids can say, {first} to {last}")]
    OutsideTime {
        /// As given.
        given: String,
        /// The epoch.
        first: UnixTime,
        /// The last tick, as text.
        last: String,
    },
    /// The instant lies within a tick.
    #[error(
        "time {given:?} is on no tick of {tick}: those next to it are {before} and {after}, and `time_ticks` takes their number"
    )]
    OffTick {
        /// As given.
        given: String,
        /// The unit of the time.
        tick: String,
        /// The tick that it lies in.
        before: String,
        /// The next one.
        after: String,
    },
    /// No type has this name or number.
    #[error("{name} `{given}` is not one of {}", .types.join(", "))]
    TypeUnknown {
        /// What it was given by: `type`, or the name of the field.
        name: String,
        /// As given.
        given: String,
        /// The types.
        types: Vec<String>,
    },
    /// Nothing of this kind stands before ids of the format.
    #[error(transparent)]
    Prefix(#[from] PrefixError),
}

impl FieldsError {
    /// What was given that does not fit, by its name.
    pub fn name(&self) -> &str {
        match self {
            FieldsError::Unknown { given: name, .. }
            | FieldsError::Twice(name)
            | FieldsError::NotANumber { name, .. }
            | FieldsError::TooGreat { name, .. }
            | FieldsError::Constant { name, .. }
            | FieldsError::TypeUnknown { name, .. } => name,
            FieldsError::TimeTwice
            | FieldsError::NoInstant(_)
            | FieldsError::OutsideTime { .. }
            | FieldsError::OffTick { .. } => TIME,
            FieldsError::Prefix(PrefixError::TypeMalformed { .. }) => TYPE,
            FieldsError::Prefix(_) => PREFIX,
        }
    }

    /// The bound that it broke; `None` where there is none to name.
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
            | FieldsError::NoInstant(_)
            | FieldsError::Prefix(_) => None,
        }
    }
}

impl Format {
    /// The names by which [`id_of_fields`](Self::id_of_fields) takes values: `time` and `time_ticks` for the time, each other
    /// field by its name, `type` where the format has types, `prefix` where it has prefixes.
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
        names.extend(has_type.then_some(TYPE));
        names.extend((!self.prefixes.listed().is_empty()).then_some(PREFIX));
        names
    }

    /// The id whose fields have these values, each a name of [`field_names`](Self::field_names) and a text.
    ///
    /// A field that is not given is 0, or its constant; so a lone `time` gives the smallest id of that instant. Nothing is
    /// computed: random numbers and checksums are taken as they are given. `time` must be the beginning of a tick, as it is or
    /// as decoding writes it.
    ///
    /// ```
    /// use idmint::id::Format;
    ///
    /// let payment = Format::built_in("payment").expect("a built-in format");
    /// let made = payment.id_of_fields(&[("time", "2026-11-21T03:36:01Z"), ("sequence", "2")])?;
    /// assert_eq!(payment.canonical().to_text(made.id), "1I9ZC1002");
    /// let refused = payment.id_of_fields(&[("worker", "36")]).expect_err("one digit of base 36");
    /// assert_eq!(refused.to_string(), "`worker` is 36, it must be 0 to 35");
    /// # Ok::<(), idmint::id::FieldsError>(())
    /// ```
    ///
    /// # Errors
    /// [`FieldsError`] names the field, what was given, and the bound.
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
            values = layout.with_ticks(self.ticks_given(given, most)?, values);
        }
        for (at, field) in layout
            .fields()
            .iter()
            .enumerate()
            .filter(|(_, field)| field.kind != FieldKind::Time)
        {
            if let Some(text) = value_of(given, &field.name) {
                let shares = layout
                    .fields()
                    .iter()
                    .filter(|other| other.name == field.name);
                let number = number(
                    &field.name,
                    text,
                    shares.map(|share| share.max * share.scale).sum(),
                )?;
                values[at] = share_of(field, number)?;
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

    /// The layout of the type that is given, by its name or by the value of its field; else the one with the smallest ids.
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
            .variants
            .iter()
            .filter_map(|variant| variant.layout.field_of(FieldKind::Qualifier)?.constant);
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

    /// The tick that begins at this instant.
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
                .map_or_else(|| "far after 9999".to_owned(), |last| last.to_string());
            return Err(FieldsError::OutsideTime {
                given: text.to_owned(),
                first: self.epoch,
                last,
            });
        };
        if self.time_of(count) == Some(given) {
            return Ok(count);
        }
        // Ticks of a fraction of a second begin between the digits of the second that texts have, which cut the rest.
        let unit = 10_i128.pow(9 - u32::from(tick.second_digits()));
        let next = self.time_of(count + 1).filter(|_| count < most);
        if next.is_some_and(|next| next.nanos() - next.nanos().rem_euclid(unit) == given.nanos()) {
            return Ok(count + 1);
        }
        let exact_text = |ticks| {
            self.time_of(ticks)
                .and_then(UnixTime::to_exact_text)
                .unwrap_or_default()
        };
        let (before, after) = (exact_text(count), exact_text((count + 1).min(most)));
        Err(FieldsError::OffTick {
            given: text.to_owned(),
            tick: tick.to_string(),
            before,
            after,
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

/// The text that is given for this name.
fn value_of<'a>(given: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    given
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// A whole number up to `most`, in decimal digits alone.
fn number(name: &str, text: &str, most: u128) -> Result<u128, FieldsError> {
    let name = || name.to_owned();
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_digits.then(|| text.parse().ok()).flatten();
    let Some(given) = number else {
        return Err(FieldsError::NotANumber {
            name: name(),
            given: text.to_owned(),
            most,
        });
    };
    if given > most {
        Err(FieldsError::TooGreat {
            name: name(),
            given,
            most,
        })
    } else {
        Ok(given)
    }
}

/// What a field holds of the number that the fields of its name carry together.
fn share_of(field: &Field, number: u128) -> Result<u128, FieldsError> {
    let share = number / field.scale % (field.max + 1);
    match field.constant {
        Some(constant) if constant != share => Err(FieldsError::Constant {
            name: field.name.clone(),
            given: number,
            constant,
        }),
        _ => Ok(share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{PRESETS, preset};

    fn refusal(format: &str, given: &[(&str, &str)]) -> String {
        preset(format)
            .id_of_fields(given)
            .expect_err("refused")
            .to_string()
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
        let next_to = "2024-01-01T00:00:00.000015259Z and 2024-01-01T00:00:00.000030518Z";
        assert!(off.contains(next_to) && off.contains("1s/65536"), "{off}");
        let within = refusal("payment", &[("time", "2024-02-20T00:00:00.5Z")]);
        assert!(
            within.contains("2024-02-20T00:00:00Z and 2024-02-20T00:00:01Z"),
            "{within}"
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_bound() {
        assert_eq!(
            refusal("payment", &[("worker", "36")]),
            "`worker` is 36, it must be 0 to 35"
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
            "`shard` is no field of payment, which has time, time_ticks, worker, sequence"
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
            "`version` is 4, in every id it is 7"
        );
        assert!(
            refusal("payment", &[("time", "2023-12-31T23:59:59Z")])
                .contains("2024-01-01T00:00:00.000Z to 2092")
        );
        assert!(refusal("payment", &[("time_ticks", "2176782336")]).contains("0 to 2176782335"));
        assert!(refusal("siq", &[("type", "letter")]).contains("message"));
        assert!(refusal("siq", &[("type", "message"), ("qualifier", "7")]).contains("it is 14"));
        assert!(refusal("siq", &[("qualifier", "9")]).contains("14"));
        assert!(refusal("typeid", &[("type", "User")]).contains("a-z"));
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
}
