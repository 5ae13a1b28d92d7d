//! Builds the formats of a configuration for tests, because this crate cannot use the program's own
//! code for that.

use std::collections::BTreeMap;
use std::sync::Arc;

use idmint_core::id::{Decoder, FormatDefinition, PRESETS};

/// Returns a decoder for the built-in formats and the formats in `settings`. Settings of a built-in
/// format are merged into it. The formats in `enabled` are enabled.
///
/// `settings` has tables `formats.NAME`, like a configuration. The program's own catalog makes more
/// checks, and also resolves formats that are `like` one another.
///
/// # Panics
/// Panics if a format is not valid.
pub(crate) fn decoder(settings: &str, enabled: &[&str]) -> Decoder {
    let settings: toml::Table = settings.parse().expect("settings are TOML");
    let own: BTreeMap<String, toml::Table> = settings["formats"]
        .clone()
        .try_into()
        .expect("each format is a table");
    let mut tables: BTreeMap<&str, toml::Table> = PRESETS
        .iter()
        .map(|preset| (preset.name, preset.toml.parse().expect("a preset is TOML")))
        .collect();
    let names: Vec<&str> = PRESETS
        .iter()
        .map(|preset| preset.name)
        .chain(
            own.keys()
                .map(String::as_str)
                .filter(|name| !tables.contains_key(name)),
        )
        .collect();
    for (name, over) in &own {
        let base = match over.contains_key("like") {
            true => toml::Table::new(),
            false => tables.get(name.as_str()).cloned().unwrap_or_default(),
        };
        tables.insert(name, laid_over(base, over));
    }
    let formats = names.into_iter().filter_map(|name| {
        let mut table = tables[name].clone();
        if let Some(like) = table.remove("like") {
            let mut base = tables[like.as_str().expect("a name")].clone();
            base.remove("enabled");
            table = laid_over(base, &table);
        }
        // If a test enables or configures a format, the service mints it. Its ids are then not
        // rare.
        if enabled.contains(&name) || own.get(name).is_some_and(|own| !own.contains_key("rarity")) {
            table.remove("rarity");
        }
        let format = FormatDefinition::from_table(name, table)
            .and_then(|definition| definition.compile(name))
            .expect("a sound format");
        (format.enabled || enabled.contains(&name)).then(|| Arc::new(format))
    });
    Decoder::new(formats.collect())
}

fn laid_over(mut base: toml::Table, over: &toml::Table) -> toml::Table {
    base.extend(over.iter().map(|(key, value)| (key.clone(), value.clone())));
    base
}
