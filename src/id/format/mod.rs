//! One kind of id: everything there is to know about it, and how it is written in TOML.

mod definition;
mod format;
mod order;
mod presets;

pub use definition::{FormatDefinition, FormatError};
pub use format::{Format, Parts, Rule, Variant};
pub use presets::{PRESETS, Preset};
