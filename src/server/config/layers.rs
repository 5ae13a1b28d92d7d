//! Where settings come from, and how the later layer goes over the earlier one.
//!
//! Each layer is checked alone before it is merged, every variable for itself: only there is it still known which
//! line or which variable a value came from.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use toml::{Table, Value};

use super::configuration::Config;
use super::error::{ConfigError, Origin};

const PREFIX: &str = "IDMINT_";

/// The variable that says `--insecure-public`: a decision for one start, and no setting that a file could make for good.
pub const INSECURE_PUBLIC: &str = "IDMINT_INSECURE_PUBLIC";

/// What has been set, lowest layer first.
#[derive(Debug, Default)]
pub(super) struct Layers(Vec<(Origin, Table)>);

impl Layers {
    /// Adds a TOML file.
    pub(super) fn add_file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let text =
            fs::read_to_string(path).map_err(|cause| ConfigError::Unreadable { path: path.to_owned(), cause })?;
        let line_of = |error: &toml::de::Error| line_of(&text, error);
        let not_toml = |error: toml::de::Error| ConfigError::NotToml {
            path: path.to_owned(),
            line: line_of(&error),
            problem: error.message().to_owned(),
        };
        let table: Table = text.parse().map_err(not_toml)?;
        // From the text and not from the table: only the text knows its lines.
        let document = toml::Deserializer::parse(&text).map_err(not_toml)?;
        read(document).map_err(|error| {
            let line = Some(line_of(error.inner()));
            refusal(&error, Origin::File { path: path.to_owned(), line })
        })?;
        self.0.push((Origin::File { path: path.to_owned(), line: None }, table));
        Ok(())
    }

    /// Adds every setting under `IDMINT_`: `IDMINT_HTTP__LISTEN` is `http.listen`.
    pub(super) fn add_environment(
        &mut self,
        env: &BTreeMap<String, String>,
        kubernetes: bool,
    ) -> Result<(), ConfigError> {
        for (name, raw) in env {
            let Some(key) = name.strip_prefix(PREFIX) else { continue };
            if name == INSECURE_PUBLIC || (kubernetes && is_service_link(key)) {
                continue;
            }
            let nest = |value, part: &str| Value::Table(Table::from_iter([(part.to_owned(), value)]));
            let value = key.to_ascii_lowercase().rsplit("__").fold(value_of(raw), nest);
            self.add(Origin::Variable(name.clone()), value)?;
        }
        Ok(())
    }

    /// Adds what the command line says, in the shape of the file.
    pub(super) fn add_flags(&mut self, flags: Table) -> Result<(), ConfigError> {
        self.add(Origin::Flags, Value::Table(flags))
    }

    /// Merges all layers over the defaults.
    pub(super) fn merge(&self) -> Result<Config, ConfigError> {
        let mut all = Table::new();
        for (_, table) in &self.0 {
            merge_tables(&mut all, table);
        }
        read(Value::Table(all)).map_err(|error| self.refusal(&error.path().to_string(), error.inner().message().into()))
    }

    /// The error for a setting that was accepted alone, with the highest layer that set it.
    pub(super) fn refusal(&self, key: &str, problem: String) -> ConfigError {
        let (section, name) = key.split_once('.').unwrap_or((key, ""));
        let sets_it = |table: &Table| table.get(section).is_some_and(|section| section.get(name).is_some());
        let layer = self.0.iter().rev().find(|(_, table)| sets_it(table));
        let origin = layer.map_or(Origin::Default, |(origin, _)| origin.clone());
        ConfigError::Setting { key: key.to_owned(), origin, problem }
    }

    fn add(&mut self, origin: Origin, value: Value) -> Result<(), ConfigError> {
        read(value.clone()).map_err(|error| refusal(&error, origin.clone()))?;
        if let Value::Table(table) = value {
            self.0.push((origin, table));
        }
        Ok(())
    }
}

type ReadError = serde_path_to_error::Error<toml::de::Error>;

fn read<'de>(deserializer: impl serde::Deserializer<'de, Error = toml::de::Error>) -> Result<Config, ReadError> {
    serde_path_to_error::deserialize(deserializer)
}

fn refusal(error: &ReadError, origin: Origin) -> ConfigError {
    ConfigError::Setting { key: error.path().to_string(), origin, problem: error.inner().message().to_owned() }
}

fn line_of(text: &str, error: &toml::de::Error) -> usize {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    before.matches('\n').count() + 1
}

/// The value of a variable: TOML where it is TOML (`8`, `true`, `["a", "b"]`), else the text as it stands.
fn value_of(raw: &str) -> Value {
    match toml::de::ValueDeserializer::parse(raw).and_then(Value::deserialize) {
        // No setting is a TOML date; an epoch is written as text.
        Ok(Value::Datetime(_)) | Err(_) => Value::String(raw.to_owned()),
        Ok(value) => value,
    }
}

/// Kubernetes tells every pod the address of every service, so a service called `idmint` sets `IDMINT_PORT`,
/// `IDMINT_SERVICE_HOST` and more. They are nobody's mistake; no setting has a name of that shape.
fn is_service_link(key: &str) -> bool {
    let key = format!("_{key}");
    let is_of_that_shape = key.ends_with("_SERVICE_HOST") || key.ends_with("_PORT") || key.contains("_PORT_");
    is_of_that_shape && !key.contains("__")
}

/// Tables key by key; anything else replaces what was there.
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
