//! The errors with which a configuration is refused.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{fmt, io};

/// The reason why a configuration is refused. In this case no service was started, and the exit
/// code is 78 (`EX_CONFIG`).
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is missing or cannot be read.
    #[error("cannot read the configuration file {}", .path.display())]
    Unreadable {
        /// The path that the caller gave.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// The file is not TOML. No setting was checked.
    #[error("{}, line {line}: the file is not valid TOML: {problem}", .path.display())]
    NotToml {
        /// The path that the caller gave.
        path: PathBuf,
        /// The line of the error, from 1.
        line: usize,
        /// The message of the parser.
        problem: String,
    },
    /// An environment variable with the prefix `IDMINT_` is not UTF-8.
    #[error("environment variable {name}: the name and the value of a setting must be UTF-8")]
    NotUtf8 {
        /// The name of the variable. Bytes that are not UTF-8 are replaced.
        name: String,
    },
    /// The value of a setting is out of bounds, conflicts with other settings, or belongs to an
    /// unknown key.
    #[error("{origin}: {key}: {problem}")]
    Setting {
        /// The full key, such as `http.listen`.
        key: String,
        /// The layer that set the setting.
        origin: Origin,
        /// The invalid value and the accepted values.
        problem: String,
    },
}

/// The layer from which a setting came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The default value.
    Default,
    /// The configuration file.
    File {
        /// The path that the caller gave.
        path: PathBuf,
        /// The line in the file, counted from 1. `None` if the error concerns several settings.
        line: Option<usize>,
    },
    /// The environment variable of this name.
    Variable(String),
    /// The command line.
    Flags,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File {
                path,
                line: Some(line),
            } => write!(f, "{}, line {line}", path.display()),
            Self::File { path, line: None } => write!(f, "{}", path.display()),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flags => f.write_str("command line"),
        }
    }
}

/// The place that sets each key of one table: a line of the file, an environment variable or the
/// command line.
///
/// A key is identified by its path in the table, such as `fields[1].bits`. The empty path stands
/// for the table itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeyOrigins(BTreeMap<String, Origin>);

impl KeyOrigins {
    /// Returns the place that sets a key, such as a line of the file. If no place sets the key,
    /// returns the place of the table or list item to which the key belongs.
    pub fn of(&self, key: &str) -> Option<&Origin> {
        let mut above = key;
        loop {
            match (self.0.get(above), above.rfind(['.', '['])) {
                (Some(origin), _) => return Some(origin),
                (None, Some(end)) => above = &above[..end],
                (None, None) => return self.0.get(""),
            }
        }
    }

    pub(super) fn insert(&mut self, key: &str, origin: Origin) {
        self.0.insert(key.to_owned(), origin);
    }

    /// Records the place that sets a key, such as a line of the file, and forgets the places of
    /// keys inside its value. The table itself (the empty path) gets this place if it has none yet.
    pub(super) fn replace(&mut self, key: &str, origin: &Origin) {
        let is_below = |path: &str| {
            path.strip_prefix(key)
                .is_some_and(|rest| rest.starts_with(['.', '[']))
        };
        self.0.retain(|path, _| !is_below(path));
        self.insert(key, origin.clone());
        self.0
            .entry(String::new())
            .or_insert_with(|| origin.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_key_has_the_place_of_its_table_and_a_replaced_one_that_of_its_variable() {
        let at = |line| Origin::File {
            path: PathBuf::from("f.toml"),
            line: Some(line),
        };
        let mut origins = KeyOrigins::default();
        for (key, line) in [
            ("", 1),
            ("tick", 2),
            ("fields", 3),
            ("fields[0]", 4),
            ("fields[0].kind", 5),
        ] {
            origins.insert(key, at(line));
        }
        for (key, line) in [
            ("tick", 2),
            ("fields[0].kind", 5),
            ("fields[0].bits", 4),
            ("fields[1].bits", 3),
            ("epoch", 1),
            ("", 1),
        ] {
            assert_eq!(origins.of(key), Some(&at(line)), "{key}");
        }
        let variable = Origin::Variable("IDMINT_FORMATS__MINE__FIELDS".to_owned());
        origins.replace("fields", &variable);
        assert_eq!(origins.of("fields[0].kind"), Some(&variable));
        assert_eq!(origins.of("epoch"), Some(&at(1)));
    }
}
