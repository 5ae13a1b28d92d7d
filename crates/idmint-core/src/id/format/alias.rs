//! Former names of built-in formats.

/// A former name of a built-in format. The name now stands for one encoding of another format. For
/// example, `conjunction-v1-label` is now the encoding `label` of `conjunction-v1`.
///
/// Callers and configurations may still use the former name.
///
/// ```
/// use idmint_core::id::FormatAlias;
///
/// let alias = FormatAlias::named("conjunction-v1-label").expect("a former name");
/// assert_eq!((alias.format, alias.encoding), ("conjunction-v1", "label"));
/// assert_eq!(FormatAlias::current_name("conjunction-v1-label"), "conjunction-v1");
/// assert_eq!(FormatAlias::current_name("payment"), "payment");
/// ```
#[derive(Debug)]
pub struct FormatAlias {
    /// The former name.
    pub name: &'static str,
    /// The current name of the format.
    pub format: &'static str,
    /// The encoding for which the former name stands.
    pub encoding: &'static str,
    /// The former name of the encoding `encoding`. In earlier versions, it was an encoding of a
    /// separate format with the name `name`.
    former_encoding: &'static str,
    /// The encodings that the format `name` had in earlier versions, as TOML. The first of them is
    /// the one that is now called `encoding`.
    pub encodings: &'static str,
}

impl FormatAlias {
    /// All former names.
    pub const ALL: &[FormatAlias] = &[FormatAlias {
        name: "conjunction-v1-label",
        format: "conjunction-v1",
        encoding: "label",
        former_encoding: "hashids",
        encodings: r#"encodings = [
            { kind = "hashids", alphabet = "abcdefghijklmnopqrstuvwxyz", min_length = 17, groups = [6, 6, 5] },
            "decimal",
            "hex_padded",
        ]"#,
    }];

    /// Returns the alias with the former name `name`, or `None` if `name` is not a former name.
    pub fn named(name: &str) -> Option<&'static FormatAlias> {
        FormatAlias::ALL.iter().find(|alias| alias.name == name)
    }

    /// Returns the current name of the format if `name` is a former name, and `name` itself
    /// otherwise.
    pub fn current_name(name: &str) -> &str {
        FormatAlias::named(name).map_or(name, |alias| alias.format)
    }

    /// Returns the current name of the encoding `encoding`. Call this function if a caller used the
    /// format's former name, because that caller may also use the encoding's former name.
    pub fn current_encoding<'a>(&self, encoding: &'a str) -> &'a str {
        if encoding == self.former_encoding {
            self.encoding
        } else {
            encoding
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{FormatDefinition, PRESETS, preset};

    #[test]
    fn the_encoding_of_a_former_name_writes_the_same_texts() {
        for alias in FormatAlias::ALL {
            let current = preset(alias.format);
            let built_in = PRESETS.iter().find(|preset| preset.name == alias.format);
            let mut table: toml::Table = built_in.expect("above").toml.parse().expect("TOML");
            table.extend(alias.encodings.parse::<toml::Table>().expect("TOML"));
            let former = FormatDefinition::from_table(alias.name, table).expect("a definition");
            let former = former.compile(alias.name).expect("is sound");
            let encoding = current.encoding(alias.encoding).expect("it has one");
            assert_eq!(former.canonical().digest(), encoding.digest());
            assert_eq!(former.canonical().name(), alias.former_encoding);
        }
    }
}
