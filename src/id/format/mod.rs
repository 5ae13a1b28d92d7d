//! One kind of id: everything there is to know about it, and how it is written in TOML.
//!
//! A [`FormatDefinition`] is what TOML says. `compile.rs` checks it as a whole, with what each rule demands (`rule_check.rs`)
//! what can be counted (`stamp_check.rs`), what can follow each other (`monotonic_check.rs`) and what can stand before a text
//! (`prefix_check.rs`), and makes a [`Format`] of it; what is wrong is a [`FormatError`]. `given_fields.rs` makes ids of given
//! fields. The built-in formats are [`PRESETS`], written the same way.

mod asked_prefix;
mod compile;
mod definition;
mod format;
mod format_error;
mod given_fields;
mod monotonic;
mod monotonic_check;
mod prefix_check;
mod prefixes;
mod presets;
mod rule_check;
mod sort_order;
mod stamp_check;

pub use asked_prefix::PrefixError;
pub use definition::FormatDefinition;
pub use format::{Format, Parts, Rule, StartAfter, Variant};
pub use format_error::FormatError;
pub use given_fields::{FieldsError, IdOfFields};
pub use monotonic::Monotonic;
pub use prefixes::{Prefix, Prefixes, TYPE_RULE, is_type};
#[cfg(test)]
pub(crate) use presets::preset;
pub use presets::{PRESETS, Preset};
