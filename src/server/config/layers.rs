//! The layers of a configuration, such as its file and its environment variables. A later layer
//! overrides an earlier one.
//!
//! Each layer, and each environment variable, is checked before the layers are merged. After the
//! merge, an error could not name the line or the variable that contains the invalid value.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use toml::de::{DeString, DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::configuration::{Config, Origins};
use super::error::{ConfigError, KeyOrigins, Origin};

/// The prefix of each environment variable that is a setting.
pub const VARIABLE_PREFIX: &str = "IDMINT_";

/// The environment variable that has the effect of the flag `--insecure-public`. It is not a
/// setting, because an operator should decide this for each start, while a setting in a file would
/// be permanent.
pub const INSECURE_PUBLIC: &str = "IDMINT_INSECURE_PUBLIC";

/// The environment variable for the floor (the earliest time for new ids) of a restored node. It is
/// not a setting, because only the first start after the restore uses it.
pub const RESTORE_FLOOR: &str = "IDMINT_FLOOR";

/// The part of a variable's name, in lower case, that comes before a designator.
const DESIGNATORS: &str = "conjunction__designators__";

/// The layers that contain settings, lowest first.
#[derive(Debug, Default)]
pub(super) struct Layers {
    layers: Vec<(Origin, Table)>,
    /// The place that sets each key of a format definition: a line of the file, or an environment
    /// variable.
    formats: BTreeMap<String, KeyOrigins>,
}

impl Layers {
    /// Adds the settings in a TOML file as a layer.
    pub(super) fn add_file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let text = fs::read_to_string(path).map_err(|cause| ConfigError::Unreadable {
            path: path.to_owned(),
            cause,
        })?;
        let table: Table = text
            .parse()
            .map_err(|error: toml::de::Error| ConfigError::NotToml {
                path: path.to_owned(),
                line: line_of(&text, &error),
                problem: error.message().to_owned(),
            })?;
        // The settings are parsed from the text of the file, because the parsed table has no line
        // numbers for error messages.
        read(&text).map_err(|error| {
            let line = Some(error.line);
            error.of(Origin::File {
                path: path.to_owned(),
                line,
            })
        })?;
        self.formats = formats_of(path, &text);
        self.layers.push((
            Origin::File {
                path: path.to_owned(),
                line: None,
            },
            table,
        ));
        Ok(())
    }

    /// Adds a layer for each environment variable with the prefix `IDMINT_` that is a setting. For
    /// example, `IDMINT_HTTP__LISTEN` sets `http.listen`, but `IDMINT_FLOOR` is no setting.
    pub(super) fn add_environment(
        &mut self,
        env: &BTreeMap<String, String>,
        kubernetes: bool,
    ) -> Result<(), ConfigError> {
        for (name, raw) in env {
            let Some(key) = name.strip_prefix(VARIABLE_PREFIX) else {
                continue;
            };
            if [INSECURE_PUBLIC, RESTORE_FLOOR].contains(&name.as_str())
                || (kubernetes && is_service_link(key))
            {
                continue;
            }
            let nest =
                |value, part: &str| Value::Table(Table::from_iter([(part.to_owned(), value)]));
            let mut setting = key.to_ascii_lowercase();
            // The keys below are designators, in which upper and lower case differ.
            let kept = key.get(DESIGNATORS.len()..);
            if let Some(kept) = kept.filter(|_| setting.starts_with(DESIGNATORS)) {
                setting.replace_range(DESIGNATORS.len().., kept);
            }
            let value = setting.rsplit("__").fold(value_of(raw), nest);
            let Value::Table(table) = value else {
                unreachable!("a key has a part")
            };
            self.add(Origin::Variable(name.clone()), table)?;
        }
        Ok(())
    }

    /// Adds the settings from the command line as a layer. The table has the same structure as the
    /// configuration file.
    pub(super) fn add_flags(&mut self, flags: Table) -> Result<(), ConfigError> {
        self.add(Origin::Flags, flags)
    }

    /// Merges all layers over the defaults.
    pub(super) fn merge(&self) -> Result<Config, ConfigError> {
        let mut all = Table::new();
        for (_, table) in &self.layers {
            merge_tables(&mut all, table);
        }
        read_table(&all).map_err(|error| self.refusal(&error.key, error.problem))
    }

    /// Returns the sources of the settings.
    pub(super) fn origins(&self) -> Origins {
        Origins {
            overruled: self.overruled(),
            formats: self.formats.clone(),
        }
    }

    /// Returns a sentence for each setting in the configuration file that an environment variable
    /// overrides.
    fn overruled(&self) -> Vec<String> {
        let Some((Origin::File { path, .. }, file)) = self.layers.first() else {
            return Vec::new();
        };
        let variables = self
            .layers
            .iter()
            .filter_map(|(origin, table)| match origin {
                Origin::Variable(name) => Some((name, leaf(table)?)),
                Origin::File { .. } | Origin::Flags | Origin::Default => None,
            });
        let overruled = variables.filter(|(_, (key, value))| {
            value_at(file, key).is_some_and(|in_file| in_file != *value)
        });
        let told = |(name, (key, _)): (&String, (Vec<&str>, _))| {
            format!(
                "the environment variable {name} overrides {} of {}",
                key.join("."),
                path.display()
            )
        };
        overruled.map(told).collect()
    }

    /// Returns the error for a setting that conflicts with other settings. The error names the
    /// highest layer that sets `key`, such as an environment variable.
    pub(super) fn refusal(&self, key: &str, problem: String) -> ConfigError {
        let path: Vec<&str> = key.split('.').collect();
        let sets_it = |table: &Table| value_at(table, &path).is_some();
        let layer = self.layers.iter().rev().find(|(_, table)| sets_it(table));
        let origin = layer.map_or(Origin::Default, |(origin, _)| origin.clone());
        ConfigError::Setting {
            key: key.to_owned(),
            origin,
            problem,
        }
    }

    fn add(&mut self, origin: Origin, table: Table) -> Result<(), ConfigError> {
        read_table(&table).map_err(|error| error.of(origin.clone()))?;
        let formats = table.get("formats").and_then(Value::as_table);
        for (name, keys) in formats.into_iter().flatten() {
            let origins = self.formats.entry(name.clone()).or_default();
            for key in keys.as_table().into_iter().flat_map(Table::keys) {
                origins.replace(key, &origin);
            }
        }
        self.layers.push((origin, table));
        Ok(())
    }
}

/// The error for a setting that cannot be parsed.
struct ReadError {
    key: String,
    line: usize,
    problem: String,
}

impl ReadError {
    fn of(self, origin: Origin) -> ConfigError {
        ConfigError::Setting {
            key: self.key,
            origin,
            problem: self.problem,
        }
    }
}

fn read(text: &str) -> Result<Config, ReadError> {
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let place = error.span().map_or(0, |span| span.start);
        let key = DeTable::parse(text)
            .ok()
            .and_then(|document| key_at(document.get_ref(), place));
        let line = line_of(text, &error);
        ReadError {
            key: key.unwrap_or_default(),
            line,
            problem: error.message().to_owned(),
        }
    })
}

/// Parses the settings in a table. The table is first written as text, so that only the parser for
/// text is compiled, and not a second one for tables.
fn read_table(table: &Table) -> Result<Config, ReadError> {
    read(&table.to_string())
}

/// Returns the full key, such as `http.listen`, of the name or value at this position in the text.
fn key_at(document: &DeTable<'_>, place: usize) -> Option<String> {
    let (mut of_name, mut of_value) = (None, None);
    visit_table("", document, &mut |key, name, value| {
        if name.contains(&place) {
            of_name.get_or_insert(key.to_owned());
        } else if value.contains(&place) {
            // Keep the last match, which is the innermost value at this position of the TOML
            // document, because outer values are visited before inner ones.
            of_value = Some(key.to_owned());
        }
    });
    of_name.or(of_value)
}

fn line_of(text: &str, error: &toml::de::Error) -> usize {
    line_at(text, error.span().map_or(0, |span| span.start))
}

/// Returns the number of the line at this position in the text. The first line has number 1.
fn line_at(text: &str, place: usize) -> usize {
    let before = text.get(..place).unwrap_or_default();
    before.matches('\n').count() + 1
}

/// Returns the line in the file that sets each key of each format definition.
fn formats_of(path: &Path, text: &str) -> BTreeMap<String, KeyOrigins> {
    let document = DeTable::parse(text);
    let formats = document.iter().find_map(|document| {
        let formats = document.get_ref().get("formats")?;
        formats.get_ref().as_table()
    });
    let definition = |(name, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
        let mut origins = KeyOrigins::default();
        let mut add = |key: &str, place| {
            let line = Some(line_at(text, place));
            let path = path.to_owned();
            origins.insert(key, Origin::File { path, line });
        };
        add("", name.span().start);
        visit_below("", value.get_ref(), &mut |key, name, _| {
            add(key, name.start)
        });
        (name.get_ref().to_string(), origins)
    };
    formats.into_iter().flatten().map(definition).collect()
}

/// Calls `visit` for each key and list item in a table, including nested ones. The arguments of
/// `visit` are the item's path, and the positions of its name and its value in the text. A list
/// item has no name, so its name position is an empty range. `above` is the path of the table.
fn visit_table(
    above: &str,
    table: &DeTable<'_>,
    visit: &mut impl FnMut(&str, Range<usize>, Range<usize>),
) {
    for (name, value) in table {
        let dot = if above.is_empty() { "" } else { "." };
        let path = format!("{above}{dot}{}", name.get_ref());
        visit(&path, name.span(), value.span());
        visit_below(&path, value.get_ref(), visit);
    }
}

fn visit_below(
    above: &str,
    value: &DeValue<'_>,
    visit: &mut impl FnMut(&str, Range<usize>, Range<usize>),
) {
    match value {
        DeValue::Table(table) => visit_table(above, table, visit),
        DeValue::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let path = format!("{above}[{at}]");
                visit(&path, item.span().start..item.span().start, item.span());
                visit_below(&path, item.get_ref(), visit);
            }
        }
        _ => {}
    }
}

/// Parses the value of an environment variable as TOML, such as `8`, `true` or `["a", "b"]`. A text
/// that is not valid TOML is used as a string.
fn value_of(raw: &str) -> Value {
    match toml::de::ValueDeserializer::parse(raw).and_then(Value::deserialize) {
        // A date without quotes is kept as a string. No setting has the TOML type of a date, and
        // settings that are points in time, such as epochs, are strings.
        Ok(Value::Datetime(_)) | Err(_) => Value::String(raw.to_owned()),
        Ok(value) => value,
    }
}

/// Returns the first setting in a table, as its key and its value. A table that was made from an
/// environment variable has only one setting.
fn leaf(table: &Table) -> Option<(Vec<&str>, &Value)> {
    let (name, value) = table.iter().next()?;
    match value {
        Value::Table(below) => {
            let (rest, value) = leaf(below)?;
            Some(([vec![name.as_str()], rest].concat(), value))
        }
        value => Some((vec![name.as_str()], value)),
    }
}

fn value_at<'a>(table: &'a Table, key: &[&str]) -> Option<&'a Value> {
    let (section, below) = key.split_first()?;
    below
        .iter()
        .try_fold(table.get(*section)?, |value, part| value.get(part))
}

/// Returns `true` for an environment variable that Kubernetes sets because a Kubernetes service has
/// the name `idmint`, such as `IDMINT_PORT` or `IDMINT_SERVICE_HOST`. Every pod gets these
/// variables, so they are ignored. No setting has such a name.
fn is_service_link(key: &str) -> bool {
    let key = format!("_{key}");
    let is_of_that_shape =
        key.ends_with("_SERVICE_HOST") || key.ends_with("_PORT") || key.contains("_PORT_");
    is_of_that_shape && !key.contains("__")
}

/// Merges the table `above` into the table `below`. Nested tables are merged key by key. All other
/// values in `above` replace those in `below`.
fn merge_tables(below: &mut Table, above: &Table) {
    for (key, value) in above {
        match (below.get_mut(key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge_tables(below, above),
            _ => {
                below.insert(key.clone(), value.clone());
            }
        }
    }
}
