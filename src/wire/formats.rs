//! `GET /formats` and `GET /formats/{format}`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::storage::{StorageInfo, StorageSql};
use crate::id::{
    CollisionOdds, Encoding, Field, FieldKind, Format, Layout, Monotonic, Prefixes, Rule, Width,
};
use crate::time::UnixTime;

/// The type of an example where any type is minted.
const EXAMPLE_TYPE: &str = "user";

/// All formats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormatList {
    /// The formats, in the order in which decoding tries them.
    pub formats: Vec<FormatInfo>,
}

/// Everything there is to know about a format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormatInfo {
    /// Its name.
    pub name: String,
    /// One line for people.
    pub summary: String,
    /// The rule by which it is minted.
    pub rule: String,
    /// Whether `POST /ids/{name}` mints it here.
    pub minted: bool,
    /// How many bits the greatest id needs.
    pub bits: u32,
    /// How many bytes an id takes in `application/octet-stream`.
    pub bytes: usize,
    /// The unit of its time.
    pub tick: Option<String>,
    /// The instant at which its time is zero.
    pub epoch: Option<String>,
    /// The first instant that it cannot mint any more.
    pub end: Option<String>,
    /// Its fields, most significant first. Where the last bits tell the type, those of the first type.
    pub fields: Vec<FieldInfo>,
    /// What `?type=` can be, and how many ids of it a worker has in one tick.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub types: BTreeMap<String, String>,
    /// The types that are minted, where a type stands before the canonical text; none if any of the grammar is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub types_minted: Option<Vec<String>>,
    /// What `?prefix=` can be.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub prefixes: Vec<String>,
    /// Its encodings, the canonical one first.
    pub encodings: Vec<EncodingInfo>,
    /// How many ids one worker number has in one tick.
    pub per_tick: Option<String>,
    /// The same in one second, on average.
    pub per_second: Option<String>,
    /// Over how many sequences the first ids of ticks are spread: 1 where each is 0; `None` where ids have no sequence.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sequence_spread: Option<u32>,
    /// Which of its ids are greater than those before them: `clock`, `batch`, `process` or `off`; `None` where they are not
    /// random.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub monotonic: Option<Monotonic>,
    /// The worker numbers that this node mints with.
    pub workers: Vec<u32>,
    /// How many ids one request can have here.
    pub batch_max: Option<String>,
    /// What worker numbers stand for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub labels: BTreeMap<String, String>,
    /// In which order its ids come.
    pub order: String,
    /// How likely two ids are the same; `None` where they never are.
    pub collision_odds: Option<OddsInfo>,
    /// What an id reveals to anybody who sees it.
    pub reveals: String,
    /// A valid id, the same every time.
    pub example: ExampleId,
    /// How to keep ids in a database: for each the most compact column, then the readable one.
    pub storage: Vec<StorageInfo>,
}

/// How many ids make it how likely that two of them are the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OddsInfo {
    /// The span within which ids can be the same: the tick, or a part of it such as `1ms/4096`; `None` for ids that carry no
    /// time, which can be ever.
    pub within: Option<String>,
    /// How many random bits an id has.
    pub random_bits: String,
    /// How many ids of that span make a collision as likely as one in a million.
    pub one_in_a_million: String,
    /// How many ids of that span make a collision as likely as none.
    pub even: String,
}

/// A valid id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExampleId {
    /// The instant it carries.
    pub time: Option<String>,
    /// The id as a number.
    pub value: String,
    /// The id in every encoding.
    pub encodings: BTreeMap<String, String>,
}

/// One field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldInfo {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub kind: FieldKind,
    /// How many values it has.
    pub width: FieldWidth,
    /// The greatest value.
    pub max: String,
    /// What one unit adds to the id.
    pub stride: String,
}

/// How many values a field has: one of `bits`, `digits` of `radix`, or `cardinality`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FieldWidth {
    /// 2^bits.
    Bits {
        /// How many bits.
        bits: u32,
    },
    /// radix^digits.
    Digits {
        /// How many digits.
        digits: u32,
        /// Of which base.
        radix: u32,
    },
    /// A number that is neither.
    Cardinality {
        /// How many values.
        cardinality: String,
    },
}

/// One encoding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncodingInfo {
    /// What `?encoding=` asks for it by.
    pub name: String,
    /// The number of characters, where all ids have the same.
    pub length: Option<usize>,
    /// The least number of characters.
    pub length_min: usize,
    /// The greatest number of characters.
    pub length_max: usize,
    /// A regular expression that every id in this encoding matches.
    pub pattern: String,
    /// Whether the order of the texts is the order of the ids.
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
    /// Of the encoding at that position: the first one may stand behind a prefix.
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
        let CollisionOdds {
            random_bits,
            one_in_a_million,
            even,
        } = format.collision_odds()?;
        let within = format.tick.filter(|_| {
            format.variants[0]
                .layout
                .field_of(FieldKind::Time)
                .is_some()
        });
        let within = within.map(|tick| match format.monotonic {
            Monotonic::Clock => format!("{tick}/{}", Monotonic::PARTS_OF_TICK),
            Monotonic::Off | Monotonic::Batch | Monotonic::Process => tick.to_string(),
        });
        Some(OddsInfo {
            within,
            random_bits,
            one_in_a_million,
            even,
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
        if format.prefixes.are_types() {
            let of_type = format.prefixes.minted_type().unwrap_or(EXAMPLE_TYPE);
            let prefix = format
                .prefix_of_type(of_type)
                .expect("a type of the list, or any is minted");
            let canonical = format.canonical();
            encodings.insert(
                canonical.name().to_owned(),
                format!("{}{}", prefix.as_str(), canonical.to_text(id)),
            );
        }
        ExampleId {
            time: time.and_then(UnixTime::to_exact_text),
            value: id.to_string(),
            encodings,
        }
    }
}

impl FormatInfo {
    /// The statements for the first column of each database, with the databases that share them.
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

    /// The notes on storage, each once.
    pub fn storage_notes(&self) -> Vec<&str> {
        let mut notes: Vec<&str> = Vec::new();
        for note in self.storage.iter().flat_map(|advice| &advice.notes) {
            if !notes.contains(&note.as_str()) {
                notes.push(note);
            }
        }
        notes
    }

    /// The description of a format that is minted here with these worker numbers, at most `batch_max` ids a request.
    pub fn new(format: &Format, workers: &[u32], batch_max: Option<u64>) -> FormatInfo {
        let layout = &format.variants[0].layout;
        let per_tick = |layout: &Layout| {
            layout
                .field_of(FieldKind::Sequence)
                .map(|field| (field.max + 1).to_string())
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
            max: field.max.to_string(),
            stride: field.stride.to_string(),
        };
        FormatInfo {
            name: format.name.clone(),
            summary: format.summary.clone(),
            rule: format.rule.name().to_owned(),
            minted: batch_max.is_some(),
            bits: u128::BITS - format.greatest().leading_zeros(),
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
