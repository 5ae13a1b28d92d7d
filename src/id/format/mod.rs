//! One kind of id: everything there is to know about it, and how it is written in TOML.

mod compile;
mod definition;
mod format;
mod format_error;
mod presets;
mod rule_check;
mod sort_order;

pub use definition::FormatDefinition;
pub use format::{Format, Parts, Rule, Variant};
pub use format_error::FormatError;
pub use presets::{PRESETS, Preset};
