//! Formats, which are the kinds of id, with all their properties and their definitions in TOML.
//!
//! A [`FormatDefinition`] is the TOML form of a format, which `table_reader.rs` reads. `compile.rs`
//! checks the definition and builds a [`Format`] or returns a [`FormatError`]. Separate files check
//! the fields that each rule needs (`rule_check.rs`), the size of counters (`stamp_check.rs`), the
//! order of ids (`monotonic.rs`), and prefixes (`prefix_check.rs`). `given_fields.rs` builds ids
//! from field values. The built-in formats are [`PRESETS`], which have the same TOML form.

mod alias;
mod asked_prefix;
mod compile;
mod definition;
mod equal_texts;
mod format;
mod format_error;
mod given_fields;
mod monotonic;
mod prefix_check;
mod prefixes;
mod presets;
mod rule_check;
mod sort_order;
mod stamp_check;
mod table_reader;

pub use alias::FormatAlias;
pub use asked_prefix::PrefixError;
pub use definition::FormatDefinition;
pub use format::{Format, Parts, Rule, StartAfter, Variant};
pub use format_error::FormatError;
pub use given_fields::{FieldsError, IdOfFields};
pub use monotonic::Monotonic;
pub use prefixes::{Prefix, Prefixes, TYPE_RULE, is_type};
#[cfg(any(test, feature = "testing"))]
pub use presets::preset;
pub use presets::{PRESETS, Preset};
pub use table_reader::nearest;
