//! Checks that a format has the fields that its rule requires.

use std::time::Duration;

use super::definition::FormatDefinition;
use super::format::{Format, Rule, Variant};
use super::format_error::Cause;
use crate::id::layout::{Field, FieldKind, Layout};
use crate::time::{Tick, UnixTime};

impl FormatDefinition {
    pub(super) fn check_rule(&self, variants: &[Variant]) -> Result<(), Cause> {
        let layout = &variants[0].layout;
        let count = |kind| layout.fields_of(kind).count();
        let refuse = |key: &str, text: &str| {
            Cause::rule_at(key, format!("rule `{}`: {text}", self.rule.name()))
        };
        let refuse_kind = |kind, text: &str| refuse(&self.key_of_kind(kind), text);
        for kind in [
            FieldKind::Time,
            FieldKind::Worker,
            FieldKind::Shard,
            FieldKind::Sequence,
            FieldKind::Object,
        ] {
            if count(kind) > 1 && self.rule.is_counted() {
                return refuse_kind(kind, &format!("at most one field can be of kind {kind}"));
            }
            let scaled = layout.fields_of(kind).find(|field| field.scale != 1);
            if let Some(Field { name, scale, .. }) = scaled
                && self.rule.is_counted()
                && self.mint
            {
                return refuse(
                    &(self.key_of_field(name) + ".scale"),
                    &format!(
                        "field `{name}` has scale = {scale}, but ids are minted as if it were 1: remove `scale`, and \
                         give the format a new name if it has minted ids"
                    ),
                );
            }
        }
        let mut times = layout.fields_of(FieldKind::Time).map(|field| &field.name);
        if let Some(first) = times.next()
            && let Some(other) = times.find(|name| *name != first)
        {
            return Cause::rule_at(
                self.key_of_field(other),
                format!(
                    "fields `{first}` and `{other}` are both of kind time, but an id has one time: give them one name \
                     if they are parts of one time, or give one of them another kind"
                ),
            );
        }
        if count(FieldKind::Time) > 0 && (self.tick.is_none() || self.epoch.is_none()) {
            let missing = self.tick.as_ref().map_or("tick", |_| "epoch");
            return refuse(missing, "a time field needs `tick` and `epoch`");
        }
        if self.rule != Rule::Sequenced && (self.start_after.is_some() || self.exclude.is_some()) {
            let given = self.exclude.as_ref().map_or("start_after", |_| "exclude");
            return refuse(
                given,
                "start_after and exclude are settings of the rule `sequenced`; remove them",
            );
        }
        match self.rule {
            Rule::Sequenced => {
                if count(FieldKind::Time) != 1 || count(FieldKind::Sequence) != 1 {
                    return refuse(
                        "fields",
                        "the format needs exactly one field of kind time and one of kind sequence",
                    );
                }
                for kind in [FieldKind::Random, FieldKind::Checksum, FieldKind::Ledger] {
                    if count(kind) > 0 {
                        return refuse_kind(
                            kind,
                            "the format cannot have fields of kind random, checksum or ledger",
                        );
                    }
                }
                self.check_sizes(variants)?;
                self.check_spread(variants)
            }
            Rule::Random | Rule::Grouped | Rule::Chained if self.sequence_spread != 1 => refuse(
                "sequence_spread",
                "sequence_spread is a setting of the rule `sequenced`; remove it",
            ),
            Rule::Random if count(FieldKind::Random) == 0 => {
                refuse("fields", "the format needs a field of kind random")
            }
            Rule::Random => {
                let known = [FieldKind::Time, FieldKind::Random, FieldKind::Constant];
                let mut fields = layout.fields().iter();
                match fields.find(|field| !known.contains(&field.kind)) {
                    Some(field) => refuse(
                        &self.key_of_field(&field.name),
                        &format!(
                            "field `{}` of kind {} is not allowed; only time, random and constant fields are",
                            field.name, field.kind
                        ),
                    ),
                    None => Ok(()),
                }
            }
            Rule::Grouped => {
                if count(FieldKind::Time) != 1 || count(FieldKind::Object) != 2 {
                    return refuse(
                        "fields",
                        "the format needs exactly one field of kind time and two of kind object",
                    );
                }
                let known = [FieldKind::Time, FieldKind::Object, FieldKind::Constant];
                let mut fields = layout.fields().iter();
                match fields.find(|field| !known.contains(&field.kind) || field.scale != 1) {
                    Some(field) => refuse(
                        &self.key_of_field(&field.name),
                        &format!(
                            "field `{}` of kind {}, scale {}: only time, objects and constants of scale 1 are allowed",
                            field.name, field.kind, field.scale
                        ),
                    ),
                    None => Ok(()),
                }
            }
            Rule::Chained | Rule::DecodeOnly => Ok(()),
        }
    }

    /// Checks that `sequence_spread` is 1, or a power of two up to a quarter of the sequence
    /// values. A tick may start at any sequence below `sequence_spread`, and skips the sequences
    /// before its start, so at most a quarter is lost.
    fn check_spread(&self, variants: &[Variant]) -> Result<(), Cause> {
        let layouts = variants.iter().map(|variant| &variant.layout);
        let sequences = layouts.filter_map(|layout| layout.field_of(FieldKind::Sequence));
        let narrowest = sequences.min_by_key(|sequence| sequence.max);
        let narrowest = narrowest.expect("checked above");
        let values = narrowest.max + 1;
        let is_sound = self.sequence_spread == 1
            || self.sequence_spread.is_power_of_two()
                && u128::from(self.sequence_spread) <= values / 4;
        if is_sound {
            return Ok(());
        }
        let (spread, most, name) = (self.sequence_spread, values / 4, &narrowest.name);
        Cause::rule_at(
            "sequence_spread",
            format!(
                "sequence_spread = {spread} is neither 1 nor a power of two of at most {most} (a quarter of the {values} values of field `{name}`)"
            ),
        )
    }

    /// Checks the sizes of the fields in a sequenced format. Minting relies on these bounds when it
    /// combines tick and sequence into one integer, the stamp. See `minting::stamps`.
    fn check_sizes(&self, variants: &[Variant]) -> Result<(), Cause> {
        for variant in variants {
            let layout = &variant.layout;
            let sequence = layout.field_of(FieldKind::Sequence).expect("checked above");
            let refuse = |field: &Field, text| {
                let key = self.key_of_field(&field.name);
                Cause::rule_at(key, format!("field `{}`: {text}", field.name))
            };
            if sequence.max >= 1 << 32 {
                return refuse(sequence, "a sequence has at most 2^32 values");
            }
            if layout.field_of(FieldKind::Time).expect("checked above").max >= 1 << 64 {
                return Cause::rule_at(
                    self.key_of_kind(FieldKind::Time),
                    "a time field has at most 64 bits",
                );
            }
            for kind in [FieldKind::Worker, FieldKind::Shard] {
                if let Some(field) = layout.field_of(kind)
                    && field.max > u128::from(u32::MAX)
                {
                    let name = &field.name;
                    return Cause::rule_at(
                        self.key_of_field(name),
                        format!(
                            "field `{name}`: a field of kind {kind} has at most 32 bits; put a constant field \
                             above it for the other bits"
                        ),
                    );
                }
            }
            if let Some(object) = layout.field_of(FieldKind::Object)
                && object.max != u128::from(u32::MAX)
            {
                let text = "in a sequenced format, a field of kind object holds the hash of a domain, so it \
                    must have 32 bits";
                return refuse(object, text);
            }
        }
        Ok(())
    }
}

/// Checks that `mint_below`, the exclusive upper bound for minted ids, permits at least one id in a
/// format with time. Minting without time ignores the bound, so the check refuses a bound that
/// would exclude ids of a random format without time.
///
/// The check assumes the greatest values for all fields except the time. If a field is more
/// significant than the time, the greatest value of that field alone may exceed `mint_below`.
pub(super) fn check_room(format: &Format) -> Result<(), Cause> {
    let greatest = format.greatest();
    let is_ignored = format.rule == Rule::Random
        && format.end_tick().is_none()
        && format.mint_below != Format::UNBOUNDED;
    if is_ignored && format.mint && format.mint_below <= greatest {
        return Cause::rule(format!(
            "without a time field, ids up to {greatest} are minted, and not only those below mint_below = {}: \
             remove mint_below, or give the random fields fewer values",
            format.mint_below
        ));
    }
    let least = format.greatest_without_time();
    let is_bounded = format.rule.is_counted()
        && format.end_tick().is_some()
        && format.mint_below != Format::UNBOUNDED;
    if !is_bounded || least < format.mint_below {
        return Ok(());
    }
    Cause::rule(format!(
        "the fields other than the time already reach {least}, above mint_below = {}: give them fewer values, \
         set worker_range, or set mint_below = \"{}\" if no signed column stores these ids",
        format.mint_below,
        greatest.saturating_add(1)
    ))
}

/// Checks that a chained format has the fields, tick and epoch of the built-in format `evently`.
///
/// This lets other programs verify a chain of ids from its events.
pub(super) fn check_chained(
    layout: &Layout,
    tick: Option<Tick>,
    epoch: UnixTime,
) -> Result<(), Cause> {
    let fields = layout.fields().iter();
    let fields = fields.map(|field| (field.kind, field.max, field.stride, field.scale));
    let is_evently = fields.eq([
        (FieldKind::Time, (1 << 63) - 1, 1 << 64, 1),
        (FieldKind::Checksum, (1 << 32) - 1, 1 << 32, 1),
        (FieldKind::Ledger, (1 << 30) - 1, 1 << 2, 1),
        (FieldKind::Constant, (1 << 2) - 1, 1, 1),
    ]);
    if is_evently
        && tick.map(Tick::duration) == Some(Duration::from_micros(1))
        && epoch == UnixTime::EPOCH
    {
        return Ok(());
    }
    Cause::rule(
        "rule `chained`: fields, tick and epoch must be those of `evently`; copy them with like = \"evently\"",
    )
}

/// Checks that no more significant field changes the bits of the qualifier, a field whose last bits
/// identify the type of the id. Otherwise, ids of two types could be the same number.
pub(super) fn check_above_word(layout: &Layout) -> Result<(), Cause> {
    let word = layout
        .field_of(FieldKind::Qualifier)
        .expect("a layout of a suffix code has its word");
    let place = word.stride * (word.max + 1);
    let reaches_in =
        |field: &&Field| field.stride > word.stride && !field.stride.is_multiple_of(place);
    match layout.fields().iter().find(reaches_in) {
        None => Ok(()),
        Some(field) => Cause::rule(format!(
            "field `{}`: stride {} must be a multiple of {place}, or ids of two types could be the same number",
            field.name, field.stride
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::Format;
    use crate::id::FormatDefinition;

    /// Compiles a 64-bit format in which the worker comes before the time.
    fn worker_first(more: &str) -> Result<Format, String> {
        let text = format!(
            r#"
            summary = ""
            rule = "sequenced"
            tick = "1ms"
            epoch = "2020-01-01T00:00:00Z"
            fields = [ {{ name = "worker", kind = "worker", bits = 10 }}, {{ name = "time", kind = "time", bits = 42 }},
                       {{ name = "sequence", kind = "sequence", bits = 12 }} ]
            encodings = ["decimal"]
            {more}"#
        );
        let definition = FormatDefinition::from_toml("mine", &text).expect("TOML");
        definition
            .compile("mine")
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_worker_above_the_time_that_reaches_mint_below_is_refused_with_the_ways_out() {
        let error = worker_first("").expect_err("worker 512 and above set bit 63");
        assert!(
            error.contains("9223372036854775808") && error.contains("worker_range"),
            "{error}"
        );
        let confined = worker_first("worker_range = [0, 511]").expect("the workers below do not");
        assert_eq!(
            confined.end_tick(),
            Some(1 << 42),
            "the whole time field is left"
        );
        let unsigned =
            worker_first("mint_below = '18446744073709551616'").expect("the operator's word");
        assert_eq!(unsigned.end_tick(), Some(1 << 42));
    }

    #[test]
    fn a_scale_that_minting_would_ignore_is_refused_at_its_field() {
        let compile = |rule: &str, fields: &str, more: &str| {
            let text = format!(
                "summary = ''\nrule = '{rule}'\ntick = '1s'\nepoch = '2025-01-01T00:00:00Z'\n\
                 encodings = ['hex']\nfields = [{fields}]\n{more}"
            );
            FormatDefinition::from_toml("mine", &text)
                .expect("TOML")
                .compile("mine")
                .map_err(|error| (error.key().to_owned(), error.to_string()))
        };
        let field = |kind: &str, bits: u32, scale: u32| {
            format!("{{ name = '{kind}', kind = '{kind}', bits = {bits}, scale = {scale} }}")
        };
        let sequenced = |scales: [u32; 5]| {
            let kinds = ["time", "worker", "shard", "object", "sequence"];
            let bits = [20, 4, 4, 32, 4];
            let fields = kinds.iter().zip(bits).zip(scales);
            let fields = fields.map(|((kind, bits), scale)| field(kind, bits, scale));
            fields.collect::<Vec<_>>().join(", ")
        };
        compile("sequenced", &sequenced([1; 5]), "").expect("no scale");
        for at in 0..5 {
            let mut scales = [1; 5];
            scales[at] = 1000;
            let fields = sequenced(scales);
            let (key, message) = compile("sequenced", &fields, "").expect_err("ignored");
            assert_eq!(key, format!("fields[{at}].scale"));
            assert!(message.contains("scale = 1000"), "{message}");
            compile("sequenced", &fields, "mint = false").expect("decoding uses the scale");
            compile("decode-only", &fields, "").expect("decoding uses the scale");
        }
        let random =
            |time, random| [field("time", 20, time), field("random", 64, random)].join(",");
        let (key, _) = compile("random", &random(2, 1), "").expect_err("ignored");
        assert_eq!(key, "fields[0].scale");
        compile("random", &random(1, 2), "").expect("any number is random");
    }

    #[test]
    fn time_fields_of_different_names_are_refused() {
        let compile = |second: &str| {
            let text = format!(
                "summary = ''\nrule = 'decode-only'\ntick = '1ms'\nepoch = '2025-01-01T00:00:00Z'\n\
                 encodings = ['hex']\nfields = [\n\
                 {{ name = 'time', kind = 'time', bits = 32, scale = 1000 }},\n\
                 {{ name = '{second}', kind = 'time', cardinality = 1000 }} ]"
            );
            FormatDefinition::from_toml("mine", &text)
                .expect("TOML")
                .compile("mine")
        };
        compile("time").expect("the parts of one time");
        let error = compile("deleted").expect_err("two times");
        assert_eq!(error.key(), "fields[1]");
        let message = error.to_string();
        assert!(
            message.contains("`time` and `deleted`") && message.contains("one name"),
            "{message}"
        );
    }

    #[test]
    fn a_random_format_without_time_has_no_mint_below_that_would_be_ignored() {
        let compile = |more: &str| {
            let text = format!(
                "summary = ''\nrule = 'random'\nencodings = ['decimal']\n{more}\n\
                 fields = [{{ name = 'random', kind = 'random', bits = 64 }}]"
            );
            FormatDefinition::from_toml("mine", &text)
                .expect("TOML")
                .compile("mine")
        };
        for bound in ["0", "'9223372036854775808'", "'18446744073709551615'"] {
            let error = compile(&format!("mint_below = {bound}")).expect_err("ignored");
            assert_eq!(error.key(), "mint_below");
            assert!(error.to_string().contains("remove mint_below"), "{error}");
        }
        compile("mint_below = '18446744073709551616'").expect("every id is below");
        compile("mint_below = 0\nmint = false").expect("nothing is minted");
        let default = compile("").expect("no bound");
        assert_eq!(default.mint_below, Format::UNBOUNDED);
    }

    #[test]
    fn a_chained_format_with_a_scale_is_refused() {
        let evently = include_str!("../../../formats/evently.toml");
        let compile = |text: &str| {
            FormatDefinition::from_toml("mine", text)
                .expect("TOML")
                .compile("mine")
        };
        compile(evently).expect("built in");
        let scaled = evently.replace("kind = \"time\",", "kind = \"time\", scale = 2,");
        assert_ne!(scaled, evently);
        assert_eq!(compile(&scaled).expect_err("another time").key(), "fields");
    }

    #[test]
    fn a_spread_is_a_power_of_two_up_to_a_quarter_of_the_sequence() {
        for sound in [1, 2, 64, 1024] {
            let format = worker_first(&format!(
                "worker_range = [0, 511]\nsequence_spread = {sound}"
            ))
            .expect("sound");
            assert_eq!(format.sequence_spread, sound);
        }
        for unsound in [0, 3, 48, 2048, 4096] {
            let error = worker_first(&format!("sequence_spread = {unsound}"))
                .expect_err("no power of two up to 1024");
            let named = [
                format!("sequence_spread = {unsound} "),
                "at most 1024 (a quarter".to_owned(),
                "`sequence`".to_owned(),
            ];
            assert!(named.iter().all(|part| error.contains(part)), "{error}");
        }
        let random = "summary = ''\nrule = 'random'\nsequence_spread = 64\nencodings = ['hex']\n\
                      fields = [{ name = 'random', kind = 'random', bits = 64 }]";
        let random = FormatDefinition::from_toml("mine", random)
            .expect("TOML")
            .compile("mine");
        assert!(
            random
                .expect_err("it has no sequence")
                .to_string()
                .contains("sequence_spread")
        );
    }

    #[test]
    fn the_last_tick_leaves_room_below_mint_below_for_every_other_field() {
        let format = worker_first("worker_range = [0, 1]\nmint_below = '18014398509486080'")
            .expect("some room");
        // The worker number has the highest bits. In tick 0, worker 1 has ids up to 2^54 + 4095.
        // Ids must be below 2^54 + 4096 (`mint_below`), so none of worker 1 in tick 1 fits.
        let end = format.end_tick().expect("it has a time");
        let greatest = |tick: u128| (1 << 54) + (tick << 12) + 4095;
        assert!(
            end > 0 && greatest(end - 1) < format.mint_below && greatest(end) >= format.mint_below,
            "{end}"
        );
    }
}
