//! A format: one kind of id, with everything there is to know about it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::monotonic::Monotonic;
use super::prefixes::Prefixes;
use crate::id::encoding::Encoding;
use crate::id::layout::{Field, FieldKind, Layout, SuffixCode, Width};
use crate::id::rejection::Rejection;
use crate::time::{Tick, UnixTime};

/// How the ids of a format come to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// From the time, a worker number and a counter: never twice, and increasing for each worker.
    Sequenced,
    /// From the time, if the format has one, and random bits.
    Random,
    /// Each id names the one before it.
    Chained,
    /// The same happening gets the same id.
    Grouped,
    /// Read, and never made.
    DecodeOnly,
}

impl Rule {
    /// The rule as it is written in TOML and in answers.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::Sequenced => "sequenced",
            Rule::Random => "random",
            Rule::Chained => "chained",
            Rule::Grouped => "grouped",
            Rule::DecodeOnly => "decode-only",
        }
    }

    /// Whether a request for ids of this rule only says how many: they need no event or report each.
    pub const fn is_counted(self) -> bool {
        matches!(self, Rule::Sequenced | Rule::Random)
    }

    /// Whether ids of this rule are minted at all.
    pub const fn is_minted(self) -> bool {
        !matches!(self, Rule::DecodeOnly)
    }
}

/// One kind of id: its layout, its encodings, and how it is minted.
///
/// Made from a [`FormatDefinition`](super::FormatDefinition), and checked there: whatever holds a `Format` holds a sound one.
/// Shape: at least one layout and one encoding; a sequenced format has a tick, one time and one sequence.
///
/// ```
/// use idmint::id::Format;
///
/// let format = Format::built_in("snowflake").expect("a built-in format");
/// let parts = format.split(175_928_847_299_117_063)?;
/// assert_eq!(parts.values, [41_944_705_796, 1, 0, 7]);
/// assert_eq!(parts.time.and_then(|time| time.to_text(3)).as_deref(), Some("2016-04-30T11:18:25.796Z"));
/// assert_eq!(format.end().and_then(|end| end.to_text(0)).as_deref(), Some("2084-09-06T15:47:35Z"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Format {
    /// What callers ask for it by, such as `snowflake`.
    pub name: String,
    /// One line for people.
    pub summary: String,
    /// How its ids come to be.
    pub rule: Rule,
    /// The unit of its time, if it has one.
    pub tick: Option<Tick>,
    /// The instant at which its time is zero.
    pub epoch: UnixTime,
    /// Its layouts: one, or one for each word of its suffix code.
    pub variants: Vec<Variant>,
    /// Tells which layout an id has, if there are several.
    pub(in crate::id) code: Option<PlacedCode>,
    /// Its encodings, the canonical one first.
    pub encodings: Vec<Encoding>,
    /// What may stand before the canonical text.
    pub prefixes: Prefixes,
    /// The least worker number that it mints with.
    pub first_worker: u32,
    /// The greatest worker number that it may mint with, where an older generator has the others.
    pub last_worker: Option<u32>,
    /// How many lanes it mints with, if that is not left to the configuration.
    pub lanes: Option<u32>,
    /// Over how many sequences the first ids of ticks are spread: a power of two, 1 where each is 0.
    pub sequence_spread: u32,
    /// An id of another generator: nothing of its tick, or of an earlier one, is minted.
    pub start_after: Option<StartAfter>,
    /// A file with ids of another generator: no tick of a worker number that holds one of them is minted in.
    pub exclude: Option<PathBuf>,
    /// Which of its ids are greater than those before them, where they are random.
    pub monotonic: Monotonic,
    /// What worker numbers stand for.
    pub labels: BTreeMap<u128, String>,
    /// Ids at or above this decode and are not minted; [`Format::UNBOUNDED`] if there is no such bound.
    pub mint_below: u128,
    /// How far in the future a decoded time still counts as plausible.
    pub plausible_ahead: Duration,
    /// How much rarer its ids are in the world than those of well-known formats, in bits: 8 for one in 256. Decoding weighs
    /// it, and nothing else.
    pub rarity: u8,
    /// What an outsider learns from an id.
    pub reveals: String,
    /// Whether it is on unless the configuration says otherwise.
    pub enabled: bool,
}

/// An id below which nothing is minted, as it was written, and its tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartAfter {
    /// As written.
    pub id: String,
    /// Its tick: the latest, where several encodings could be meant.
    pub tick: u128,
}

/// One layout of a format, and the word of the suffix code that says so.
#[derive(Debug)]
pub struct Variant {
    /// What callers ask for it by (`?type=`); `None` where the format has one layout, or the word is unassigned.
    pub name: Option<String>,
    /// Other names that callers may ask for it by; a reading tells the name alone.
    pub aliases: Vec<String>,
    /// Whether it may be minted.
    pub assigned: bool,
    /// The fields.
    pub layout: Layout,
}

/// A suffix code at its place in the number.
#[derive(Debug)]
pub(in crate::id) struct PlacedCode {
    pub(in crate::id) code: SuffixCode,
    /// The bits below the field that carries the code.
    pub(in crate::id) shift: u32,
}

/// An id taken apart.
///
/// ```
/// use idmint::id::Format;
///
/// let format = Format::built_in("payment").expect("a built-in format");
/// let parts = format.split(format.canonical().read("1I9ZC1002")?)?;
/// let numbers: Vec<_> = parts.numbers().map(|(field, value, _)| (field.name.as_str(), value)).collect();
/// assert_eq!(numbers, [("time", 91_164_961), ("worker", 0), ("sequence", 2)]);
/// # Ok::<(), idmint::id::Rejection>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The layout it has.
    pub layout: &'a Layout,
    /// The value of each field of that layout.
    pub values: Vec<u128>,
    /// The instant its time field stands for; `None` without such a field.
    pub time: Option<UnixTime>,
}

impl<'a> Parts<'a> {
    /// The numbers that the id carries: each field, or the fields of one name together, with how many values it has.
    pub fn numbers(&self) -> impl Iterator<Item = (&'a Field, u128, Width)> {
        let fields = self.layout.fields();
        // Names are compared only where one stands twice; then the shares of a number have other scales.
        let has_shares = fields.iter().any(|field| field.scale != 1);
        let is_first = move |at: &usize| {
            !has_shares
                || fields[..*at]
                    .iter()
                    .all(|field| field.name != fields[*at].name)
        };
        (0..fields.len()).filter(is_first).map(move |at| {
            let first = &fields[at];
            if !has_shares {
                return (first, self.values[at], first.width);
            }
            let shares = || {
                fields
                    .iter()
                    .zip(&self.values)
                    .filter(|(field, _)| field.name == first.name)
            };
            let value = shares().map(|(field, value)| value * field.scale).sum();
            let width = match shares().count() {
                1 => first.width,
                _ => Width::of_max(shares().map(|(field, _)| field.max * field.scale).sum()),
            };
            (first, value, width)
        })
    }
}

impl Format {
    /// The `mint_below` of a format that sets none: every id that fits its layout may be minted.
    pub const UNBOUNDED: u128 = u128::MAX;

    /// The layout that an id has.
    pub fn variant_of(&self, id: u128) -> &Variant {
        &self.variants[self.variant_at(id)]
    }

    /// The position in `variants` of the layout that an id has.
    pub fn variant_at(&self, id: u128) -> usize {
        self.code
            .as_ref()
            .map_or(0, |placed| placed.code.index_of(id >> placed.shift))
    }

    /// Whether callers must say which sort of id they want (`?type=`).
    pub fn has_types(&self) -> bool {
        self.code.is_some()
    }

    /// The position in `variants` of the type that has this name, or this other name.
    ///
    /// # Errors
    /// [`Rejection::UnassignedQualifier`] when no type has that name.
    pub fn type_named(&self, name: &str) -> Result<usize, Rejection> {
        let is_called = |variant: &Variant| {
            variant.name.as_deref() == Some(name)
                || variant.aliases.iter().any(|alias| alias == name)
        };
        self.variants
            .iter()
            .position(is_called)
            .ok_or(Rejection::UnassignedQualifier)
    }

    /// The encoding of that name.
    pub fn encoding(&self, name: &str) -> Option<&Encoding> {
        self.encodings
            .iter()
            .find(|encoding| encoding.name() == name)
    }

    /// The canonical encoding.
    pub fn canonical(&self) -> &Encoding {
        &self.encodings[0]
    }

    /// The greatest id of this format, whichever layout it has.
    pub fn greatest(&self) -> u128 {
        self.variants
            .iter()
            .map(|variant| variant.layout.greatest())
            .max()
            .expect("a format has a layout")
    }

    /// The smallest id of this format, whichever layout it has.
    pub fn least(&self) -> u128 {
        self.variants
            .iter()
            .map(|variant| variant.layout.least())
            .min()
            .expect("a format has a layout")
    }

    /// How many bytes an id takes as a big-endian number: 1 to 16.
    pub fn byte_width(&self) -> usize {
        let bits = u128::BITS - self.greatest().leading_zeros();
        usize::try_from(bits.div_ceil(8).max(1)).expect("at most 16")
    }

    /// The id that a text is in the encoding at this position; in the canonical one, behind any prefix that a caller may choose.
    ///
    /// # Errors
    /// [`Rejection`] where it is none, also of the empty text.
    pub fn read_as(&self, encoding: usize, text: &str) -> Result<u128, Rejection> {
        if text.is_empty() {
            return Err(Rejection::WrongLength);
        }
        let read = self.encodings[encoding].read(text);
        let behind_prefix = || {
            self.prefixes
                .read(text, self.canonical())
                .and_then(Result::ok)
        };
        match read {
            Err(_) if encoding == 0 => behind_prefix().map_or(read, |(_, id)| Ok(id)),
            _ => read,
        }
    }

    /// The tick of an id; `None` where the format has no time.
    ///
    /// # Errors
    /// As [`Layout::unpack`].
    pub fn tick_of(&self, id: u128) -> Result<Option<u128>, Rejection> {
        let layout = &self.variant_of(id).layout;
        Ok(layout.sum_of(FieldKind::Time, &layout.unpack(id)?))
    }

    /// The instant from which ids are minted, where an id of another generator says so.
    pub fn starts_at(&self) -> Option<UnixTime> {
        self.time_of(self.start_after.as_ref()?.tick + 1)
    }

    /// Takes an id apart.
    ///
    /// # Errors
    /// As [`Layout::unpack`].
    pub fn split(&self, id: u128) -> Result<Parts<'_>, Rejection> {
        self.split_as(self.variant_at(id), id)
    }

    /// Takes an id apart that has the layout at this position in `variants`.
    pub(in crate::id) fn split_as(&self, variant: usize, id: u128) -> Result<Parts<'_>, Rejection> {
        let layout = &self.variants[variant].layout;
        let values = layout.unpack(id)?;
        let time = layout
            .sum_of(FieldKind::Time, &values)
            .and_then(|ticks| self.time_of(ticks));
        Ok(Parts {
            layout,
            values,
            time,
        })
    }

    /// The instant at which that tick begins.
    pub fn time_of(&self, ticks: u128) -> Option<UnixTime> {
        self.tick?.start(self.epoch, ticks)
    }

    /// The tick that an instant falls in.
    ///
    /// # Errors
    /// [`Rejection::BeforeEpoch`], or [`Rejection::Overflow`] after the last tick of the time field.
    pub fn ticks_at(&self, instant: UnixTime) -> Result<u128, Rejection> {
        let tick = self.tick.ok_or(Rejection::OutOfRange)?;
        let ticks =
            u128::try_from(tick.count(self.epoch, instant)).map_err(|_| Rejection::BeforeEpoch)?;
        let most = self.variants[0].layout.greatest_of(FieldKind::Time);
        if Some(ticks) <= most {
            Ok(ticks)
        } else {
            Err(Rejection::Overflow)
        }
    }

    /// The first tick that cannot be minted any more, since the time field is full or ids reach `mint_below`, whatever
    /// their other fields hold; `None` for a format without time. Of a format that is only read, the first tick without
    /// ids.
    pub fn end_tick(&self) -> Option<u128> {
        let layout = &self.variants[0].layout;
        let full = layout.greatest_of(FieldKind::Time)? + 1;
        if !self.rule.is_minted() || self.mint_below == Format::UNBOUNDED {
            return Some(full);
        }
        let stride = layout.field_of(FieldKind::Time)?.stride;
        if self.rule == Rule::Grouped {
            // What its other fields hold is looked at for each id.
            return Some(full.min(self.mint_below / stride));
        }
        let room = self
            .mint_below
            .checked_sub(self.greatest_without_time() + 1);
        Some(full.min(room.map_or(0, |room| room / stride + 1)))
    }

    /// The greatest id that could be minted if its time were zero.
    pub(super) fn greatest_without_time(&self) -> u128 {
        let most = |field: &Field| match (field.kind, self.last_worker) {
            (FieldKind::Time, _) => 0,
            (FieldKind::Worker, Some(last)) => field.max.min(last.into()),
            _ => field.constant.unwrap_or(field.max),
        };
        let of_layout = |layout: &Layout| {
            layout
                .fields()
                .iter()
                .map(|field| most(field) * field.stride)
                .sum()
        };
        self.variants
            .iter()
            .map(|variant| of_layout(&variant.layout))
            .max()
            .expect("a format has a layout")
    }

    /// The instant from which nothing can be minted any more; `None` for a format without time.
    pub fn end(&self) -> Option<UnixTime> {
        self.time_of(self.end_tick()?)
    }

    /// How many ids of this layout one worker number has in a second, on average; `None` where nothing counts them.
    pub fn per_second(&self, layout: &Layout) -> Option<u128> {
        let (tick, sequence) = (self.tick?, layout.field_of(FieldKind::Sequence)?);
        let in_parts = (sequence.max + 1).checked_mul(1_000_000_000 * u128::from(tick.parts()))?;
        Some(in_parts / u128::from(tick.nanos()))
    }

    /// What two programs must have in common to mint the same format, by name: if they differ, one id could be minted twice.
    pub fn identity(&self) -> BTreeMap<String, String> {
        let fields = |layout: &Layout| {
            layout
                .fields()
                .iter()
                .map(identity_of)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let layouts: Vec<String> = self
            .variants
            .iter()
            .map(|variant| fields(&variant.layout))
            .collect();
        BTreeMap::from([
            ("fields".to_owned(), layouts.join("; ")),
            (
                "tick".to_owned(),
                self.tick
                    .map_or_else(|| "none".to_owned(), |tick| tick.to_string()),
            ),
            (
                "epoch".to_owned(),
                self.epoch
                    .to_text(9)
                    .unwrap_or_else(|| self.epoch.nanos().to_string()),
            ),
            ("rule".to_owned(), self.rule.name().to_owned()),
            ("first_worker".to_owned(), self.first_worker.to_string()),
        ])
    }
}

fn identity_of(field: &Field) -> String {
    let constant = field
        .constant
        .map(|value| format!(" = {value}"))
        .unwrap_or_default();
    let scale = if field.scale == 1 {
        String::new()
    } else {
        format!(" counted {}", field.scale)
    };
    format!(
        "{} ({}) 0..{} x {}{scale}{constant}",
        field.name, field.kind, field.max, field.stride
    )
}

#[cfg(test)]
mod tests {
    use crate::id::FormatDefinition;

    fn identity(text: &str) -> std::collections::BTreeMap<String, String> {
        let definition = FormatDefinition::from_toml("custom", text).expect("TOML");
        definition.compile("custom").expect("is sound").identity()
    }

    #[test]
    fn formats_that_differ_in_anything_that_decides_their_ids_differ_in_that_part_of_their_identity()
     {
        let text = r#"
            summary = ""
            rule = "sequenced"
            tick = "1s"
            epoch = "2024-01-01T00:00:00Z"
            first_worker = 0
            fields = [
                { name = "time", kind = "time", bits = 32, stride = 46656 },
                { name = "worker", kind = "worker", cardinality = 40 },
                { name = "sequence", kind = "sequence", cardinality = 1024 },
            ]
            encodings = ["decimal"]"#;
        let kept = identity(text);
        // What does not decide which ids there can be is not kept.
        assert_eq!(
            identity(&text.replace("first_worker = 0", "first_worker = 0\nsequence_spread = 64")),
            kept
        );
        assert_eq!(
            identity(&text.replace("first_worker = 0", "first_worker = 0\nprefixes = ['pi_']")),
            kept
        );
        for (key, old, new) in [
            ("fields", "stride = 46656", "stride = 65536"),
            ("fields", "bits = 32", "bits = 33"),
            ("fields", "cardinality = 40", "cardinality = 41"),
            ("fields", "cardinality = 1024", "cardinality = 1000"),
            ("tick", "1s", "2s"),
            ("epoch", "2024", "2025"),
            ("first_worker", "first_worker = 0", "first_worker = 1"),
            ("rule", "sequenced", "decode-only"),
        ] {
            assert!(text.contains(old), "{old} is there to be changed");
            let now = identity(&text.replace(old, new));
            let differing: Vec<_> = kept
                .iter()
                .filter(|(name, value)| now.get(*name) != Some(value))
                .collect();
            assert!(
                differing.iter().any(|(name, _)| *name == key),
                "{new} instead of {old}: {now:?}"
            );
        }
        assert_eq!(
            kept,
            identity(&text.replace("summary = \"\"", "summary = \"another\"")),
            "what decides nothing"
        );
    }
}
