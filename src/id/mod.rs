//! What an id is: its fields, its spellings, and how it is read back. Pure values, no clock and no I/O.

mod decoding;
mod domain;
pub mod encoding;
mod format;
mod id_block;
mod layout;
mod reference;
mod rejection;

pub use decoding::{DecodeFilter, Decoded, Decoder, DecoderAt, Match, OwnNumbers};
pub use domain::DomainHash;
pub use encoding::{Codec, Encoding, EncodingDefinition, EncodingError, EncodingKind, LetterCase};
pub use format::{Format, FormatDefinition, FormatError, PRESETS, Parts, Preset, Rule, Variant};
pub use id_block::{IdBlock, Progression};
pub use layout::{
    CodeWord, Field, FieldDraft, FieldKind, Layout, LayoutBuilder, LayoutError, SuffixCode, SuffixCodeError, Width,
};
pub use reference::{CollisionOdds, Database, EXAMPLE_TIME, IdRange, LayoutDrawing, RangeError, StorageAdvice, Stored};
pub use rejection::Rejection;

/// A built-in format, compiled.
#[cfg(test)]
pub(crate) fn preset(name: &str) -> Format {
    let preset = PRESETS.iter().find(|preset| preset.name == name).expect("a built-in format");
    let definition = FormatDefinition::from_toml(preset.name, preset.toml).expect("built-in formats parse");
    definition.compile(name).expect("built-in formats are sound")
}
