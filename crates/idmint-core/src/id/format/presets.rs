//! The built-in formats. They are compiled into the program as TOML tables, in the same form in
//! which users define their own formats.

use super::definition::FormatDefinition;
use super::format::Format;

/// A built-in format: its name, and its definition as a TOML table.
///
/// [`Format::built_in`] returns the compiled format.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// The name of the format, such as `snowflake`.
    pub name: &'static str,
    /// The definition of the format in the form that [`FormatDefinition::from_toml`] reads.
    pub toml: &'static str,
}

impl Format {
    /// Returns the built-in format called `name`, or `None` if [`PRESETS`] has no such format.
    ///
    /// ```
    /// use idmint_core::id::Format;
    ///
    /// let ulid = Format::built_in("ulid").expect("a built-in format");
    /// assert_eq!(ulid.canonical().len_max(), 26);
    /// assert!(Format::built_in("octal").is_none());
    /// ```
    pub fn built_in(name: &str) -> Option<Format> {
        let preset = PRESETS.iter().find(|preset| preset.name == name)?;
        let definition = FormatDefinition::from_toml(preset.name, preset.toml)
            .expect("built-in formats are TOML");
        Some(
            definition
                .compile(preset.name)
                .expect("built-in formats are sound"),
        )
    }
}

/// Returns the built-in format called `name`. For tests only.
///
/// # Panics
/// Panics if no built-in format has this name.
#[cfg(any(test, feature = "testing"))]
pub fn preset(name: &str) -> Format {
    Format::built_in(name).expect("a built-in format")
}

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(Preset { name: $name, toml: include_str!(concat!("../../../formats/", $name, ".toml")) }),*]
    };
}

/// The built-in formats, in the order in which they are listed and in which decoding tries them.
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
    "js53",
    "uuid7",
    "uuid4",
    "ulid",
    "firebase",
    "typeid",
    "uuid1",
    "uuid6",
    "sonyflake",
    "objectid",
    "xid",
    "uuid2",
    "uuid3",
    "uuid5",
    "uuid8",
    "uuid-nil",
    "uuid-max",
    "mastodon",
    "tsid",
    "typeid-uuid",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nil_uuid_has_32_hexadecimal_digits() {
        let nil = preset("uuid-nil");
        let hex = nil.encoding("hex_padded").expect("it has one");
        assert_eq!(hex.to_text(0), "0".repeat(32));
        assert_eq!(hex.read("0"), Err(crate::id::Rejection::WrongLength));
    }

    #[test]
    fn every_js53_is_an_integer_that_a_double_holds_and_its_neighbours_too() {
        let js53 = preset("js53");
        assert_eq!(
            (js53.greatest(), js53.mint_below),
            ((1 << 53) - 1, Format::UNBOUNDED)
        );
        // 2026-01-01 is 365 days after the epoch, and a day has 8 640 000 ticks. The worker is 0
        // and the sequence is 7.
        assert_eq!(js53.canonical().to_text(js53.example()), "103337164800007");
        assert_eq!(
            js53.encoding("hex_padded")
                .expect("it has one")
                .to_text(js53.greatest()),
            "1fffffffffffff"
        );
        for id in [0, 1, js53.example(), js53.greatest() - 1, js53.greatest()] {
            let number: f64 = js53.canonical().to_text(id).parse().expect("a number");
            assert_eq!(format!("{number:.0}"), id.to_string());
        }
    }
}
