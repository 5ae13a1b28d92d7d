//! The built-in formats: TOML tables compiled in, written as a user would write them.

/// A built-in format.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// Its definition, a TOML table.
    pub toml: &'static str,
}

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(Preset { name: $name, toml: include_str!(concat!("../../../config/formats/", $name, ".toml")) }),*]
    };
}

/// The built-in formats, in the order in which they are listed and tried.
pub const PRESETS: &[Preset] = presets![
    "conjunction",
    "conjunction-v1",
    "evently",
    "payment",
    "flax",
    "siq",
    "snowflake",
    "payment-wide",
    "twitter",
    "instagram",
    "uuid7",
    "uuid4",
    "ulid",
    "firebase",
    "uuid1",
    "uuid6",
    "sonyflake",
    "objectid",
    "xid",
];
