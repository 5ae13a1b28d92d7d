//! What an id is: its fields, its spellings, and how it is read back. Pure values, no clock and no I/O.

pub mod codec;
mod collision_odds;
mod decoder;
mod domain;
mod encoding;
mod encoding_definition;
mod evidence;
mod example;
mod field;
mod format;
mod format_definition;
mod layout;
mod layout_drawing;
mod letter_set;
mod near_texts;
mod order;
mod presets;
mod rejection;
mod row;
mod spelling_groups;
mod storage_advice;
mod storage_sql;
mod suffix_code;
mod time_range;

pub use codec::Codec;
pub use collision_odds::CollisionOdds;
pub use decoder::{Decoded, Decoder, DecoderAt, Match, Pin};
pub use domain::DomainHash;
pub use encoding::{Encoding, EncodingError};
pub use encoding_definition::{EncodingDefinition, EncodingKind, LetterCase};
pub use evidence::OwnNumbers;
pub use example::EXAMPLE_TIME;
pub use field::{Field, FieldKind, Width};
pub use format::{Format, Parts, Rule, Variant};
pub use format_definition::{FormatDefinition, FormatError};
pub use layout::{FieldDraft, Layout, LayoutBuilder, LayoutError};
pub use layout_drawing::LayoutDrawing;
pub use presets::{PRESETS, Preset};
pub use rejection::Rejection;
pub use row::{Progression, Row};
pub use storage_advice::{Database, StorageAdvice, Stored};
pub use suffix_code::{CodeWord, SuffixCode, SuffixCodeError};
pub use time_range::{IdRange, RangeError};

/// A built-in format, compiled.
#[cfg(test)]
pub(crate) fn preset(name: &str) -> Format {
    let preset = PRESETS.iter().find(|preset| preset.name == name).expect("a built-in format");
    let definition = FormatDefinition::from_toml(preset.name, preset.toml).expect("built-in formats parse");
    definition.compile(name).expect("built-in formats are sound")
}
