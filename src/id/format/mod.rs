//! One kind of id: everything there is to know about it, and how it is written in TOML.
//!
//! A [`FormatDefinition`] is what TOML says. `compile.rs` checks it as a whole, with what each rule demands (`rule_check.rs`)
//! and what can be counted (`stamp_check.rs`), and makes a [`Format`] of it; what is wrong is a [`FormatError`]. The built-in formats are [`PRESETS`], written the same way.

mod compile;
mod definition;
mod format;
mod format_error;
mod presets;
mod rule_check;
mod sort_order;
mod stamp_check;

pub use definition::FormatDefinition;
pub use format::{Format, Parts, Rule, Variant};
pub use format_error::FormatError;
#[cfg(test)]
pub(crate) use presets::preset;
pub use presets::{PRESETS, Preset};
