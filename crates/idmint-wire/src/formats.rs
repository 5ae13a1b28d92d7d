//! The responses of `GET /formats` and `GET /formats/{format}`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::storage::{StorageInfo, StorageSql};
use idmint_core::id::{
    Encoding, Field, FieldKind, Format, Layout, Monotonic, Prefixes, Rule, Width,
};
use idmint_core::time::UnixTime;

/// The type in the example id of a format that permits every valid type, as in `user_01h4…`.
const EXAMPLE_TYPE: &str = "user";

/// A short description of a format, as in `GET /formats?detail=brief`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormatBrief {
    /// The name of the format.
    pub name: String,
    /// A one-line summary for people.
    pub summary: String,
    /// The rule by which ids of the format are made, such as `sequenced`.
    pub rule: String,
    /// `true` if `POST /ids/{name}` mints this format on this node.
    pub minted: bool,
    /// The number of bits that the greatest id needs.
    pub bits: u32,
    /// A valid id in the canonical encoding. All responses have the same example.
    pub example: String,
}

impl FormatBrief {
    /// Describes a format.
    pub fn new(format: &Format) -> FormatBrief {
        FormatBrief {
            name: format.name.clone(),
            summary: format.summary.clone(),
            rule: format.rule.name().to_owned(),
            minted: format.is_minted(),
            bits: bits_of(format),
            example: example_text(format),
        }
    }
}

/// Returns the number of bits that the greatest id of a format needs.
fn bits_of(format: &Format) -> u32 {
    u128::BITS - format.greatest().leading_zeros()
}

/// Returns the example id of a format in its canonical encoding, with a type if the format has
/// types.
fn example_text(format: &Format) -> String {
    let text = format.canonical().to_text(format.example());
    if !format.prefixes.are_types() {
        return text;
    }
    let of_type = format.prefixes.minted_type().unwrap_or(EXAMPLE_TYPE);
    let prefix = format.prefix_of_type(of_type);
    let prefix = prefix.expect("a type of the list, or any is minted");
    format!("{}{text}", prefix.as_str())
}

/// The complete description of a format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormatInfo {
    /// The name of the format.
    pub name: String,
    /// A one-line summary for people.
    pub summary: String,
    /// The rule by which ids of the format are made, such as `sequenced`.
    pub rule: String,
    /// `true` if `POST /ids/{name}` mints this format on this node.
    pub minted: bool,
    /// The number of bits that the greatest id needs.
    pub bits: u32,
    /// The number of bytes that each id takes in `application/octet-stream`.
    pub bytes: usize,
    /// The unit of the time field, such as `1ms`, or null if the format has none.
    pub tick: Option<String>,
    /// The instant at which the time field is zero, or null if the format has no tick.
    pub epoch: Option<String>,
    /// The instant from which ids can no longer be minted. Null if ids have no time, or if the
    /// instant is after the year 9999.
    pub end: Option<String>,
    /// The fields, most significant first. If the last bits of an id select its type, these are the
    /// fields of the first type.
    pub fields: Vec<FieldInfo>,
    /// The possible values of the query parameter `type`, each with the number of ids of that type
    /// that one worker number can mint in one tick.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub types: BTreeMap<String, String>,
    /// The types that can be minted, if each text of the format begins with a type, such as `user`
    /// in `user_01h455vb4pex5vsknk084sn02q`. An empty list means that every valid type can be
    /// minted. `None` if texts of the format do not begin with a type.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub types_minted: Option<Vec<String>>,
    /// The possible values of the query parameter `prefix`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub prefixes: Vec<String>,
    /// The encodings, the canonical one first.
    pub encodings: Vec<EncodingInfo>,
    /// The number of ids that one worker number can mint in one tick.
    pub per_tick: Option<String>,
    /// The number of ids that one worker number can mint in one second, on average.
    pub per_second: Option<String>,
    /// An exclusive upper bound of the first sequence number in each tick. The first numbers are
    /// spread evenly below it. With a bound above 1, ids that are minted one at a time therefore do
    /// not all end alike. Absent if `rule` is not `sequenced`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sequence_spread: Option<u32>,
    /// The guaranteed order of random ids: `off` (none), `batch` (within a response), `process`
    /// (within a process), or `clock` (across processes whose clocks agree). Absent if ids are not
    /// random.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub monotonic: Option<Monotonic>,
    /// The worker numbers that this node uses for the format.
    pub workers: Vec<u32>,
    /// The maximum number of ids in one request to this node. Null if the node does not mint the
    /// format, or mints its ids from the events of a ledger.
    pub batch_max: Option<String>,
    /// The labels of worker numbers, by worker number.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub labels: BTreeMap<String, String>,
    /// A description of the order of ids.
    pub order: String,
    /// The odds that two ids are equal, or null if ids are not random.
    pub collision_odds: Option<OddsInfo>,
    /// A description of what an id reveals to people who see it.
    pub reveals: String,
    /// A valid id. All responses have the same example.
    pub example: ExampleId,
    /// Advice on storing ids in each database. For each database, the most compact column comes
    /// first, then the readable one.
    pub storage: Vec<StorageInfo>,
}

/// The risk of equal random ids, given as the number of ids among which two are equal with a
/// certain probability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OddsInfo {
    /// The period in which ids can be equal: a tick, or a part of a tick such as `1ms/4096`. Ids of
    /// different periods are never equal. Null if ids contain no time, so that any two ids can be
    /// equal.
    pub within: Option<String>,
    /// The number of random bits in an id.
    pub random_bits: String,
    /// The number of ids in one period `within` among which two are equal with a probability of one
    /// in a million.
    pub one_in_a_million: String,
    /// The number of ids in one period `within` among which two are equal with a probability of one
    /// half.
    pub even: String,
}

/// An example of a valid id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExampleId {
    /// The time of the id, or null if it has none.
    pub time: Option<String>,
    /// The id as a decimal number.
    pub value: String,
    /// The id in every encoding.
    pub encodings: BTreeMap<String, String>,
}

/// One field of a format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldInfo {
    /// The name of the field.
    pub name: String,
    /// The purpose of the field.
    pub kind: FieldKind,
    /// The number of values that the field can have.
    pub width: FieldWidth,
    /// The greatest value that the field can have.
    pub max: String,
    /// The amount by which the id grows if the field grows by one.
    pub stride: String,
}

/// The number of values that a field can have. In JSON, this is the member `bits`, the two members
/// `digits` and `radix`, or the member `cardinality`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FieldWidth {
    /// `2^bits` values.
    Bits {
        /// The number of bits.
        bits: u32,
    },
    /// `radix^digits` values.
    Digits {
        /// The number of digits.
        digits: u32,
        /// The base of the digits.
        radix: u32,
    },
    /// Any other number of values, for example 45.
    Cardinality {
        /// The number of values.
        cardinality: String,
    },
}

/// One encoding of a format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncodingInfo {
    /// The name of the encoding, which `?encoding=` accepts.
    pub name: String,
    /// The number of characters of an id in this encoding, or null if ids differ in length.
    pub length: Option<usize>,
    /// The minimum number of characters.
    pub length_min: usize,
    /// The maximum number of characters.
    pub length_max: usize,
    /// A regular expression that matches every id in this encoding.
    pub pattern: String,
    /// `true` if the texts sort in the same order as the ids.
    pub sortable: bool,
}

impl From<Width> for FieldWidth {
    fn from(width: Width) -> FieldWidth {
        match width {
            Width::Bits(bits) => FieldWidth::Bits { bits },
            Width::Digits { digits, radix } => FieldWidth::Digits { digits, radix },
            Width::Cardinality(cardinality) => FieldWidth::Cardinality {
                cardinality: cardinality.to_string(),
            },
        }
    }
}

impl EncodingInfo {
    /// Describes the encoding with the index `at`. Only texts in the first encoding may begin with
    /// a prefix.
    fn new(at: usize, encoding: &Encoding, format: &Format) -> EncodingInfo {
        let prefixes = Some(&format.prefixes).filter(|prefixes| at == 0 && !prefixes.is_empty());
        EncodingInfo {
            name: encoding.name().to_owned(),
            length: encoding.fixed_len().filter(|_| prefixes.is_none()),
            length_min: encoding.len(format.least()),
            length_max: encoding.len_max() + prefixes.map_or(0, Prefixes::len_max),
            pattern: prefixes
                .map_or_else(|| encoding.pattern(), |prefixes| prefixes.pattern(encoding)),
            sortable: encoding.is_sortable(),
        }
    }
}

impl OddsInfo {
    fn new(format: &Format) -> Option<OddsInfo> {
        let odds = format.collision_odds()?;
        let within = format
            .tick
            .filter(|_| format.layout().field_of(FieldKind::Time).is_some());
        let within = within.map(|tick| match format.monotonic {
            Monotonic::Clock => format!("{tick}/{}", Monotonic::PARTS_OF_TICK),
            Monotonic::Off | Monotonic::Batch | Monotonic::Process => tick.to_string(),
        });
        Some(OddsInfo {
            within,
            random_bits: odds.random_bits,
            one_in_a_million: odds.one_in_a_million,
            even: odds.even,
        })
    }
}

impl ExampleId {
    fn new(format: &Format) -> ExampleId {
        let id = format.example();
        let time = format.split(id).ok().and_then(|parts| parts.time);
        let name_and_text =
            |encoding: &Encoding| (encoding.name().to_owned(), encoding.to_text(id));
        let mut encodings: BTreeMap<_, _> = format.encodings.iter().map(name_and_text).collect();
        encodings.insert(format.canonical().name().to_owned(), example_text(format));
        ExampleId {
            time: time.and_then(UnixTime::to_exact_text),
            value: id.to_string(),
            encodings,
        }
    }
}

impl FormatInfo {
    /// Returns the SQL statements for the most compact column of each database. Databases with the
    /// same statements form one group.
    pub fn storage_sql(&self) -> Vec<(Vec<&str>, &StorageSql)> {
        let mut together: Vec<(Vec<&str>, &StorageSql)> = Vec::new();
        for StorageInfo { database, sql, .. } in &self.storage {
            let is_first = together
                .iter()
                .all(|(databases, _)| !databases.contains(&database.as_str()));
            match together.iter_mut().find(|(_, same)| *same == sql) {
                _ if !is_first => {}
                Some((databases, _)) => databases.push(database),
                None => together.push((vec![database], sql)),
            }
        }
        together
    }

    /// Returns the notes on storage, without duplicates.
    pub fn storage_notes(&self) -> Vec<&str> {
        let mut notes: Vec<&str> = Vec::new();
        for note in self.storage.iter().flat_map(|advice| &advice.notes) {
            if !notes.contains(&note.as_str()) {
                notes.push(note);
            }
        }
        notes
    }

    /// Describes a format. `workers` are the worker numbers that this node uses, and `batch_max` is
    /// the maximum number of ids in one request.
    pub fn new(format: &Format, workers: &[u32], batch_max: Option<u64>) -> FormatInfo {
        let layout = format.layout();
        let per_tick = |layout: &Layout| {
            let sequence = layout.field_of(FieldKind::Sequence);
            sequence.map(|field| (field.max + 1).to_string())
        };
        let encodings = format.encodings.iter().enumerate();
        let digits = format.tick.map_or(0, |tick| tick.second_digits());
        let types = format
            .variants
            .iter()
            .filter_map(|variant| Some((variant.name.clone()?, per_tick(&variant.layout)?)));
        let field = |field: &Field| FieldInfo {
            name: field.name.clone(),
            kind: field.kind,
            width: field.width.into(),
            max: field.constant.unwrap_or(field.max).to_string(),
            stride: field.stride.to_string(),
        };
        FormatInfo {
            name: format.name.clone(),
            summary: format.summary.clone(),
            rule: format.rule.name().to_owned(),
            minted: format.is_minted(),
            bits: bits_of(format),
            bytes: format.byte_width(),
            tick: format.tick.map(|tick| tick.to_string()),
            epoch: format.tick.and_then(|_| format.epoch.to_text(digits)),
            end: format.end().and_then(|end| end.to_text(digits)),
            fields: layout.fields().iter().map(field).collect(),
            types: types.collect(),
            types_minted: match &format.prefixes {
                Prefixes::Types { minted } => Some(minted.clone()),
                Prefixes::Listed(_) => None,
            },
            prefixes: format
                .prefixes
                .listed()
                .iter()
                .map(|prefix| prefix.as_str().to_owned())
                .collect(),
            encodings: encodings
                .map(|(at, encoding)| EncodingInfo::new(at, encoding, format))
                .collect(),
            per_tick: per_tick(layout),
            per_second: format.per_second(layout).map(|count| count.to_string()),
            sequence_spread: (format.rule == Rule::Sequenced).then_some(format.sequence_spread),
            monotonic: (format.rule == Rule::Random).then_some(format.monotonic),
            workers: workers.to_vec(),
            batch_max: batch_max.map(|most| most.to_string()),
            labels: format
                .labels
                .iter()
                .map(|(value, label)| (value.to_string(), label.clone()))
                .collect(),
            order: format.sort_order(),
            collision_odds: OddsInfo::new(format),
            reveals: format.reveals.clone(),
            example: ExampleId::new(format),
            storage: StorageInfo::all(format),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_value_of_a_constant_is_the_constant() {
        let typeid = Format::built_in("typeid").expect("a built-in format");
        let info = FormatInfo::new(&typeid, &[], None);
        let fields = info.fields.iter();
        let greatest: Vec<_> = fields
            .map(|field| (&*field.name, &*field.max))
            .filter(|(name, _)| name.starts_with('v'))
            .collect();
        assert_eq!(greatest, [("version", "7"), ("variant", "2")]);
    }
}
