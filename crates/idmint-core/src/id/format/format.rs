//! A format, which is one kind of id, with all its properties.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::monotonic::Monotonic;
use super::prefixes::Prefixes;
use crate::id::encoding::Encoding;
use crate::id::layout::{Field, FieldKind, Layout, SuffixCode, Width};
use crate::id::rejection::Rejection;
use crate::named;
use crate::time::{Tick, UnixTime};

named! {
    /// The rule by which the ids of a format are minted.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Rule {
        /// Ids are made from the time, a worker number and a counter. They are unique, and the ids
        /// with the same worker number increase.
        Sequenced = "sequenced",
        /// Ids are made from random bits, and from the time if the format has one.
        Random = "random",
        /// Ids form a chain: each id is made from an event and from the previous id of the same
        /// ledger.
        Chained = "chained",
        /// Ids are made from reports of an event. All reports of the same event get the same id.
        Grouped = "grouped",
        /// Ids are decoded but never minted.
        DecodeOnly = "decode-only",
    }
}

impl Rule {
    /// Returns `true` if a mint request for a format with this rule gives only the number of ids.
    /// With other rules that mint, each id is made from an event or a report in the request.
    pub const fn is_counted(self) -> bool {
        matches!(self, Rule::Sequenced | Rule::Random)
    }

    /// Returns `true` if ids of formats with this rule can be minted.
    pub const fn is_minted(self) -> bool {
        !matches!(self, Rule::DecodeOnly)
    }
}

/// One kind of id: its layout, its encodings, and how it is minted.
///
/// A `Format` is always valid, because compiling a [`FormatDefinition`](super::FormatDefinition)
/// checks it.
///
/// A format has at least one layout and one encoding. A sequenced format also has a tick, one time
/// field and one sequence field.
///
/// ```
/// use idmint_core::id::Format;
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
    /// The name by which callers select the format, such as `snowflake`.
    pub name: String,
    /// A one-line summary for people.
    pub summary: String,
    /// The rule by which ids are minted.
    pub rule: Rule,
    /// The unit in which the time field counts, such as 1 ms, or `None` if the format has no tick.
    pub tick: Option<Tick>,
    /// The instant at which tick 0 begins.
    pub epoch: UnixTime,
    /// The layouts of ids of this format: one for each code word of `code`, which stands for a type
    /// of id, or a single one if `code` is `None`.
    pub variants: Vec<Variant>,
    /// The set of code words, bit patterns that stand for the type of an id and select its layout.
    /// Each id contains one. `None` if the format has only one layout.
    pub(in crate::id) code: Option<PlacedCode>,
    /// The encodings, of which the first one is canonical.
    pub encodings: Vec<Encoding>,
    /// The prefixes that may precede an id's text in the canonical encoding.
    pub prefixes: Prefixes,
    /// The smallest worker number that may be used for minting.
    pub first_worker: u32,
    /// The greatest worker number that may be used for minting. Greater numbers are left to another
    /// generator. `None` if only the layout limits the worker number.
    pub last_worker: Option<u32>,
    /// The number of lanes, which are the worker numbers that a node uses at the same time. `None`
    /// if the service's configuration decides.
    pub lanes: Option<u32>,
    /// The first sequence of every tick is below this bound, which is a power of two. The first
    /// sequences of different ticks are spread evenly. With 1, every tick starts at sequence 0.
    pub sequence_spread: u32,
    /// The last id that another generator has minted. This service mints no ids in the tick of that
    /// id or in an earlier tick.
    pub start_after: Option<StartAfter>,
    /// A file with ids that another generator has minted. This service never mints an id with the
    /// same tick and worker number as an id in the file.
    pub exclude: Option<PathBuf>,
    /// The guarantee about the order of ids in a random format.
    pub monotonic: Monotonic,
    /// Labels that explain worker numbers to people, by worker number.
    pub labels: BTreeMap<u128, String>,
    /// The exclusive upper bound for minted ids, or [`Format::UNBOUNDED`]. Greater ids, and the
    /// bound itself, are decoded but never minted.
    pub mint_below: u128,
    /// The earliest plausible time of an id, such as the year in which the format was published.
    /// Never earlier than the epoch.
    pub plausible_from: UnixTime,
    /// The maximum duration by which the time of an id may be in the future and still be plausible.
    pub plausible_ahead: Duration,
    /// The rarity of this format's ids compared with ids of well-known formats, in bits. For
    /// example, 8 means that ids of this format are 256 times rarer.
    ///
    /// Only decoding uses this number.
    pub rarity: u8,
    /// A description, for people, of the information that an id reveals to anyone who sees it.
    pub reveals: String,
    /// `false` if the definition has `mint = false`, so that ids are decoded and no longer minted.
    /// [`Format::is_minted`] also considers whether the format's [`Rule`] mints ids.
    pub mint: bool,
    /// `true` if the service enables the format unless `formats.enabled` in the configuration says
    /// otherwise.
    pub enabled: bool,
}

/// The last id that another generator has minted, as text, and the tick of that id. Minting starts
/// after this tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartAfter {
    /// The id, as written in the definition of the format.
    pub id: String,
    /// The tick in which the id was minted. If several encodings can read the text as ids of
    /// different ticks, this is the latest of these ticks.
    pub tick: u128,
}

/// One layout of a format, together with the name of the type of id that has this layout.
#[derive(Debug)]
pub struct Variant {
    /// The name by which callers select this type of id (`?type=`). `None` if this is the format's
    /// only layout, or if no type is assigned to its code word.
    pub name: Option<String>,
    /// Other names by which callers may select this type of id. Responses contain only `name`.
    pub aliases: Vec<String>,
    /// `true` if ids with this layout may be minted, and `false` if they are only decoded.
    pub assigned: bool,
    /// The fields of an id and their positions.
    pub layout: Layout,
}

/// A set of code words that stand for types of ids, and the position of the word in an id.
#[derive(Debug)]
pub(in crate::id) struct PlacedCode {
    pub(in crate::id) code: SuffixCode,
    /// The number of bits to the right of the field that carries the code word.
    pub(in crate::id) shift: u32,
}

/// The fields of an id with their values, and the time of the id.
///
/// ```
/// use idmint_core::id::Format;
///
/// let format = Format::built_in("payment").expect("a built-in format");
/// let parts = format.split(format.canonical().read("1I9ZC1002")?)?;
/// let numbers: Vec<_> = parts.numbers().map(|(field, value, _)| (field.name.as_str(), value)).collect();
/// assert_eq!(numbers, [("time", 91_164_961), ("worker", 0), ("sequence", 2)]);
/// # Ok::<(), idmint_core::id::Rejection>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The layout that the id has.
    pub layout: &'a Layout,
    /// The value of each field of `layout`, in the order of its fields.
    pub values: Vec<u128>,
    /// The instant at which the tick in the time field begins, or `None` if the layout has no time
    /// field.
    pub time: Option<UnixTime>,
}

impl<'a> Parts<'a> {
    /// Returns the numbers in the id. If several fields have the same name, they hold parts of one
    /// number, and their values are combined. Each item has the first field with a name, the
    /// combined value, and the width of that value.
    pub fn numbers(&self) -> impl Iterator<Item = (&'a Field, u128, Width)> {
        let fields = self.layout.fields();
        // Fields with the same name are parts of one number, with different scales. If all scales
        // are 1, no two fields have the same name, so the names need not be compared.
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
    /// The value of `mint_below`, the upper bound for new ids, that stands for no bound. The format
    /// then mints ids up to the greatest id that fits its layout.
    pub const UNBOUNDED: u128 = u128::MAX;

    /// Returns `true` if new ids of the format can be minted: its [`Rule`] mints ids, and its
    /// definition does not have `mint = false`.
    pub fn is_minted(&self) -> bool {
        self.mint && self.rule.is_minted()
    }

    /// Returns the first layout, the only one unless ids contain code words for their types.
    pub fn layout(&self) -> &Layout {
        &self.variants[0].layout
    }

    /// Returns the layout of each variant.
    pub(crate) fn layouts(&self) -> impl Iterator<Item = &Layout> {
        self.variants.iter().map(|variant| &variant.layout)
    }

    /// Returns the variant whose layout an id has.
    pub fn variant_of(&self, id: u128) -> &Variant {
        &self.variants[self.variant_at(id)]
    }

    /// Returns the index in `variants` of the layout that the number `id` has.
    pub fn variant_at(&self, id: u128) -> usize {
        self.code
            .as_ref()
            .map_or(0, |placed| placed.code.index_of(id >> placed.shift))
    }

    /// Returns `true` if callers must choose a type of id (`?type=`).
    pub fn has_types(&self) -> bool {
        self.code.is_some()
    }

    /// Returns the index in `variants` of the type of id whose name or alias is `name`.
    ///
    /// # Errors
    /// Returns [`Rejection::UnassignedQualifier`] if no type has that name or alias.
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

    /// Returns the encoding called `name`, or `None` if the format has no such encoding.
    pub fn encoding(&self, name: &str) -> Option<&Encoding> {
        self.encodings.get(self.encoding_index(name)?)
    }

    /// Returns the index of the encoding called `name`, or `None` if the format has no such
    /// encoding.
    pub fn encoding_index(&self, name: &str) -> Option<usize> {
        let mut names = self.encodings.iter().map(Encoding::name);
        names.position(|known| known == name)
    }

    /// Returns the names of all encodings, separated by commas.
    pub fn encoding_names(&self) -> String {
        let names: Vec<_> = self.encodings.iter().map(Encoding::name).collect();
        names.join(", ")
    }

    /// Returns the canonical encoding.
    pub fn canonical(&self) -> &Encoding {
        &self.encodings[0]
    }

    /// Returns the greatest id of this format over all layouts.
    pub fn greatest(&self) -> u128 {
        let greatest = self.layouts().map(Layout::greatest).max();
        greatest.expect("a format has a layout")
    }

    /// Returns the smallest id of this format over all layouts.
    pub fn least(&self) -> u128 {
        let least = self.layouts().map(Layout::least).min();
        least.expect("a format has a layout")
    }

    /// Returns the number of bytes, 1 to 16, that the greatest id needs as a big-endian number.
    pub fn byte_width(&self) -> usize {
        let bits = u128::BITS - self.greatest().leading_zeros();
        usize::try_from(bits.div_ceil(8).max(1)).expect("at most 16")
    }

    /// Parses a text as an id. `encoding` is the index of the encoding that the text is in.
    ///
    /// In the canonical encoding, the text may start with any prefix that callers can request.
    ///
    /// # Errors
    /// Returns [`Rejection`] if the text is empty or is not an id.
    pub fn read_as(&self, encoding: usize, text: &str) -> Result<u128, Rejection> {
        if text.is_empty() {
            return Err(Rejection::WrongLength);
        }
        let read = self.encodings[encoding].read(text);
        if read.is_ok() || encoding != 0 {
            return read;
        }
        match self.prefixes.read(text, self.canonical()) {
            Some(Ok((_, id))) => Ok(id),
            _ => read,
        }
    }

    /// Returns the time of an id in ticks since the epoch, or `None` if the format has no time.
    ///
    /// # Errors
    /// Returns the same errors as [`Layout::unpack`].
    pub(crate) fn tick_of(&self, id: u128) -> Result<Option<u128>, Rejection> {
        let layout = &self.variant_of(id).layout;
        Ok(layout.sum_of(FieldKind::Time, &layout.unpack(id)?))
    }

    /// Returns the first instant at which `start_after` permits minting, or `None` if `start_after`
    /// is not set.
    pub fn starts_at(&self) -> Option<UnixTime> {
        self.time_of(self.start_after.as_ref()?.tick + 1)
    }

    /// Splits an id into its fields.
    ///
    /// # Errors
    /// Returns the same errors as [`Layout::unpack`].
    pub fn split(&self, id: u128) -> Result<Parts<'_>, Rejection> {
        self.split_as(self.variant_at(id), id)
    }

    /// Splits an id into its fields, using the layout with the index `variant` in `variants`.
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

    /// Returns the instant at which the tick number `ticks` begins. Returns `None` if the format
    /// has no tick, or if the instant is out of range.
    pub fn time_of(&self, ticks: u128) -> Option<UnixTime> {
        self.tick?.start(self.epoch, ticks)
    }

    /// Returns the number of the tick that contains an instant.
    ///
    /// # Errors
    /// Returns [`Rejection::BeforeEpoch`] if the instant precedes the epoch, or
    /// [`Rejection::Overflow`] if the instant follows the last tick that the time field can hold.
    pub fn ticks_at(&self, instant: UnixTime) -> Result<u128, Rejection> {
        let tick = self.tick.ok_or(Rejection::OutOfRange)?;
        let ticks =
            u128::try_from(tick.count(self.epoch, instant)).map_err(|_| Rejection::BeforeEpoch)?;
        match Some(ticks) <= self.layout().greatest_of(FieldKind::Time) {
            true => Ok(ticks),
            false => Err(Rejection::Overflow),
        }
    }

    /// Returns the first tick in which no id can be minted, or `None` if the format has no time.
    ///
    /// Minting ends when the time field is full. Minting ends earlier if an id with the greatest
    /// values in its other fields would reach `mint_below`. For a format that is only decoded, the
    /// result is the first tick that does not fit the time field.
    pub fn end_tick(&self) -> Option<u128> {
        let layout = self.layout();
        let full = layout.greatest_of(FieldKind::Time)? + 1;
        if !self.rule.is_minted() || self.mint_below == Format::UNBOUNDED {
            return Some(full);
        }
        let stride = layout.field_of(FieldKind::Time)?.stride;
        if self.rule == Rule::Grouped {
            // Grouped ids contain object numbers from a report, which are unknown here. Minting
            // therefore also checks that each id is below `mint_below`.
            return Some(full.min(self.mint_below / stride));
        }
        let below = self.mint_below;
        let room = below.checked_sub(self.greatest_without_time() + 1);
        Some(full.min(room.map_or(0, |room| room / stride + 1)))
    }

    /// Returns the greatest id that could be minted if the time field were 0.
    pub(super) fn greatest_without_time(&self) -> u128 {
        let most = |field: &Field| match (field.kind, self.last_worker) {
            (FieldKind::Time, _) => 0,
            (FieldKind::Worker, Some(last)) => field.max.min(last.into()),
            _ => field.constant.unwrap_or(field.max),
        };
        let of_layout = |layout: &Layout| {
            let fields = layout.fields().iter();
            fields.map(|field| most(field) * field.stride).sum()
        };
        let greatest = self.layouts().map(of_layout).max();
        greatest.expect("a format has a layout")
    }

    /// Returns the instant from which no id can be minted, or `None` if the format has no time or
    /// the instant is out of range.
    pub fn end(&self) -> Option<UnixTime> {
        self.time_of(self.end_tick()?)
    }

    /// Returns how many ids per second `layout` permits on average for one worker number. `None` if
    /// the format has no tick, or no sequence within a tick.
    pub fn per_second(&self, layout: &Layout) -> Option<u128> {
        let (tick, sequence) = (self.tick?, layout.field_of(FieldKind::Sequence)?);
        let in_parts = (sequence.max + 1).checked_mul(1_000_000_000 * u128::from(tick.parts()))?;
        Some(in_parts / u128::from(tick.nanos()))
    }

    /// Returns the properties, by name, that must be equal in all programs that mint ids of this
    /// format at the same time.
    ///
    /// If a property differs between two programs, they could mint the same id.
    pub fn identity(&self) -> BTreeMap<String, String> {
        let fields = |layout: &Layout| {
            let fields: Vec<_> = layout.fields().iter().map(identity_of).collect();
            fields.join(", ")
        };
        let layouts: Vec<String> = self.layouts().map(fields).collect();
        let tick = self.tick.map(|tick| tick.to_string());
        let epoch = self.epoch.to_text(9);
        let properties = [
            ("fields", layouts.join("; ")),
            ("tick", tick.unwrap_or_else(|| "none".to_owned())),
            (
                "epoch",
                epoch.unwrap_or_else(|| self.epoch.nanos().to_string()),
            ),
            ("rule", self.rule.name().to_owned()),
            ("first_worker", self.first_worker.to_string()),
        ];
        properties
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }
}

fn identity_of(field: &Field) -> String {
    let (name, kind, max, stride) = (&field.name, field.kind, field.max, field.stride);
    let mut identity = format!("{name} ({kind}) 0..{max} x {stride}");
    if field.scale != 1 {
        identity += &format!(" counted {}", field.scale);
    }
    if let Some(constant) = field.constant {
        identity += &format!(" = {constant}");
    }
    identity
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
        // The identity omits settings without effect on possible ids. Programs may differ in them.
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
