//! The id formats of this program: the built-in formats, with the changes and additions of the
//! configuration.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::server::config::{Config, FormatsConfig, Origin, Origins};
use idmint_core::id::{Format, FormatAlias, FormatDefinition, PRESETS, Salt, nearest};

/// The name of the format that the section `typeid` configures.
const TYPEID: &str = "typeid";

/// The maximum length of a chain of formats in which each is based on the next by the key `like`,
/// such as `a` on `b` and `b` on `c`. A longer chain is refused as a cycle.
const LIKE_MAX: usize = 16;

/// All enabled formats, in the order in which decoding tries them.
#[derive(Debug)]
pub struct Catalog {
    /// The formats.
    pub formats: Vec<Arc<Format>>,
    /// The names of the disabled formats.
    pub off: Vec<String>,
}

/// An error in the format settings.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CatalogError(String);

fn prefix(place: Option<Origin>) -> String {
    place.map_or_else(String::new, |place| format!("{place}: "))
}

fn choice<'a>(given: &str, known: impl Iterator<Item = &'a String>) -> String {
    let known: Vec<_> = known.map(String::as_str).collect();
    match nearest(given, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("choose from {}", known.join(", ")),
    }
}

impl Catalog {
    /// Builds and checks the formats of a configuration.
    ///
    /// # Errors
    /// Returns [`CatalogError`], which names the format or setting, the value and the alternatives.
    pub fn of(config: &Config) -> Result<Catalog, CatalogError> {
        let settings = with_current_names(&config.formats)?;
        let mut tables = tables(&settings)?;
        add_former_names(&mut tables, config)?;
        if !config.typeid.types.is_empty() {
            let types = config
                .typeid
                .types
                .iter()
                .map(|name| toml::Value::from(name.as_str()))
                .collect();
            let types = toml::Value::Array(types);
            let own = settings.definitions.get(TYPEID);
            if let Some(other) = own.and_then(|own| own.get("types"))
                && *other != types
            {
                return Err(CatalogError(format!(
                    "{}typeid.types = {types} and formats.typeid.types = {other} differ; remove one of them",
                    prefix(config.origins.of_format(TYPEID, "types"))
                )));
            }
            tables
                .entry(TYPEID.to_owned())
                .or_default()
                .insert("types".to_owned(), types);
        }
        let (mut formats, mut off) = (Vec::new(), Vec::new());
        for name in names_in_order(&tables) {
            let mut table = resolved(&name, &tables, &config.origins)?;
            // The built-in `rarity` says how much rarer the ids of a format are than those of
            // well-known formats. A format that the configuration defines or enables is in use
            // here, so its ids are not rare. Remove the built-in value, unless the configuration
            // sets another one.
            let own = settings.definitions.get(&name);
            let is_enabled = || settings.enabled.iter().flatten().any(|of| *of == name);
            if own.map_or_else(is_enabled, |own| !own.contains_key("rarity")) {
                table.remove("rarity");
            }
            let compiled = FormatDefinition::from_table(&name, table)
                .and_then(|written| written.read_salts(&name, read_salt)?.compile(&name));
            let format = compiled.map_err(|error| {
                CatalogError(format!(
                    "{}{error}\ndocs/CUSTOM-FORMATS.md describes every key.",
                    prefix(config.origins.of_format(&name, error.key()))
                ))
            })?;
            let is_on = settings
                .enabled
                .as_ref()
                .map_or(format.enabled, |enabled| enabled.contains(&name));
            if is_on {
                formats.push(Arc::new(format));
            } else {
                off.push(name);
            }
        }
        let on: Vec<String> = formats.iter().map(|format| format.name.clone()).collect();
        let check = |key, name: &str, known: &mut dyn Iterator<Item = &String>| {
            if on.iter().any(|on| on == name) {
                return Ok(());
            }
            Err(CatalogError(format!(
                "{key} names `{name}`, which is not an enabled format; {}",
                choice(name, known)
            )))
        };
        for name in settings.enabled.iter().flatten() {
            check("formats.enabled", name, &mut tables.keys())?;
        }
        let order = config.decode.order.iter();
        let order: Vec<_> = order.map(|name| FormatAlias::current_name(name)).collect();
        for name in &order {
            check("decode.order", name, &mut on.iter())?;
        }
        let place = |format: &Arc<Format>| order.iter().position(|name| *name == format.name);
        formats.sort_by_key(|format| place(format).unwrap_or(usize::MAX));
        Ok(Catalog { formats, off })
    }

    /// Returns the names of the enabled formats.
    pub fn names(&self) -> Vec<&str> {
        let formats = self.formats.iter();
        formats.map(|format| format.name.as_str()).collect()
    }
}

/// Returns the format settings with former names of formats replaced by the current names. For
/// example, the keys of `[formats.conjunction-v1-label]`, except `summary`, `reveals`, `encodings`
/// and `enabled = false`, move to `[formats.conjunction-v1]`.
fn with_current_names(config: &FormatsConfig) -> Result<FormatsConfig, CatalogError> {
    let mut settings = config.clone();
    for name in settings.enabled.iter_mut().flatten() {
        *name = FormatAlias::current_name(name).to_owned();
    }
    for alias in FormatAlias::ALL {
        let Some(table) = settings.definitions.remove(alias.name) else {
            continue;
        };
        let own = settings
            .definitions
            .entry(alias.format.to_owned())
            .or_default();
        for (key, value) in table {
            let is_fixed = matches!(key.as_str(), "like" | "rule" | "tick" | "epoch" | "fields");
            match key.as_str() {
                "summary" | "reveals" | "encodings" => {}
                // Ignore `enabled = false` under the former name of a format. It is the default
                // there, and does not disable the format under its current name.
                "enabled" if value.as_bool() == Some(false) => {}
                "enabled" => _ = own.insert(key, value),
                _ if is_fixed || own.get(&key).is_some_and(|kept| *kept != value) => {
                    let (name, format) = (alias.name, alias.format);
                    return Err(CatalogError(format!(
                        "formats.{name}.{key}: `{name}` is a former name of `{format}`, which has another {key}; write \
                         the keys of this table in [formats.{format}], or give a format of your own another name"
                    )));
                }
                _ => _ = own.insert(key, value),
            }
        }
    }
    Ok(settings)
}

/// Adds a table for each former name of a format, so that a format can be based on a former name
/// (`like`). If the configuration uses a former name, also adds the encoding of the former name to
/// the current format. The encoding gets the settings in the former name's table.
fn add_former_names(
    tables: &mut BTreeMap<String, toml::Table>,
    config: &Config,
) -> Result<(), CatalogError> {
    for alias in FormatAlias::ALL {
        let mut former = preset_table(alias.format)?;
        former.extend(built_in(alias.name, alias.encodings)?);
        let own = config.formats.definitions.get(alias.name);
        former.extend(own.cloned().unwrap_or_default());
        if let (true, Some(encoding), Some(table)) = (
            is_former_name_used(config, alias),
            former_encoding(&former, alias),
            tables.get_mut(alias.format),
        ) && let Some(toml::Value::Array(encodings)) = table.get_mut("encodings")
        {
            let is_same = |known: &toml::Value| {
                known.get("name").and_then(toml::Value::as_str) == Some(alias.encoding)
            };
            match encodings.iter_mut().find(|known| is_same(known)) {
                Some(known) if own.is_some_and(|own| own.contains_key("encodings")) => {
                    *known = encoding;
                }
                Some(_) => {}
                None => encodings.push(encoding),
            }
        }
        tables.insert(alias.name.to_owned(), former);
    }
    Ok(())
}

/// Returns the first encoding in `former`, the table of a format under its former name, with the
/// encoding's current name. For example, `hashids` of `conjunction-v1-label` is now `label`.
fn former_encoding(former: &toml::Table, alias: &FormatAlias) -> Option<toml::Value> {
    let mut encoding = match former.get("encodings")?.get(0)? {
        toml::Value::Table(table) => table.clone(),
        word => toml::Table::from_iter([("kind".to_owned(), word.clone())]),
    };
    encoding.insert("name".to_owned(), alias.encoding.into());
    Some(encoding.into())
}

fn is_former_name_used(config: &Config, alias: &FormatAlias) -> bool {
    let mut listed = config.formats.enabled.iter().flatten();
    config.formats.definitions.contains_key(alias.name)
        || listed.any(|name| name == alias.name)
        || config.decode.order.iter().any(|name| name == alias.name)
}

/// Returns the table of a built-in format.
fn preset_table(name: &str) -> Result<toml::Table, CatalogError> {
    let preset = PRESETS.iter().find(|preset| preset.name == name);
    let preset = preset.expect("a former name stands for a built-in format");
    built_in(preset.name, preset.toml)
}

fn built_in(name: &'static str, text: &str) -> Result<toml::Table, CatalogError> {
    text.parse().map_err(|problem: toml::de::Error| {
        CatalogError(format!("the built-in format `{name}` is broken: {problem}"))
    })
}

/// Returns the definition of every format by name. The configured tables are merged over the
/// built-in tables.
fn tables(config: &FormatsConfig) -> Result<BTreeMap<String, toml::Table>, CatalogError> {
    let mut tables = BTreeMap::new();
    for preset in PRESETS {
        tables.insert(preset.name.to_owned(), built_in(preset.name, preset.toml)?);
    }
    for (name, table) in &config.definitions {
        let base = if table.contains_key("like") {
            None
        } else {
            tables.get(name)
        };
        tables.insert(
            name.clone(),
            laid_over(base.cloned().unwrap_or_default(), table),
        );
    }
    Ok(tables)
}

/// Returns the names of all formats, except for former names. The built-in formats come first, in
/// their own order, and the other names follow in alphabetical order.
fn names_in_order(tables: &BTreeMap<String, toml::Table>) -> Vec<String> {
    let presets = PRESETS.iter().map(|preset| preset.name.to_owned());
    let others = tables
        .keys()
        .filter(|name| PRESETS.iter().all(|preset| preset.name != name.as_str()))
        .filter(|name| FormatAlias::named(name).is_none())
        .cloned();
    presets.chain(others).collect()
}

/// Returns the complete table of a format. If the key `like` names a base format, the keys of this
/// format override the keys of the base format, which may in turn have a base format.
fn resolved(
    name: &str,
    tables: &BTreeMap<String, toml::Table>,
    origins: &Origins,
) -> Result<toml::Table, CatalogError> {
    let place = || prefix(origins.of_format(name, "like"));
    let mut table = tables[name].clone();
    for _ in 0..LIKE_MAX {
        let Some(like) = table.remove("like") else {
            return Ok(table);
        };
        let like = like.as_str().unwrap_or_default().to_owned();
        let Some(base) = tables.get(&like) else {
            return Err(CatalogError(format!(
                "{}format `{name}`: like = `{like}` is not a format; {}",
                place(),
                choice(&like, tables.keys())
            )));
        };
        let mut base = base.clone();
        // A format does not inherit `enabled` and `mint` from the format that it is based on. That
        // format may be disabled because the new one replaces it.
        base.remove("enabled");
        base.remove("mint");
        // A format does not inherit `start_after` and `exclude`. They keep the base format from
        // repeating ids of another program. That program made no ids in the new format.
        base.remove("start_after");
        base.remove("exclude");
        table = laid_over(base, &table);
    }
    Err(CatalogError(format!(
        "{}format `{name}`: its `like` refers back to itself; base it on another format",
        place()
    )))
}

/// Reads a salt from a file that has one line.
fn read_salt(path: &Path) -> Result<Salt, String> {
    let bytes = fs::read(path).map_err(|cause| cause.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "the file must be ASCII".to_owned())?;
    let mut lines = text.lines();
    match (lines.next().filter(|line| !line.is_empty()), lines.next()) {
        (Some(salt), None) => Ok(salt.into()),
        _ => Err("the file must have exactly one line, the salt".to_owned()),
    }
}

fn laid_over(mut base: toml::Table, over: &toml::Table) -> toml::Table {
    base.extend(over.iter().map(|(key, value)| (key.clone(), value.clone())));
    base
}

#[cfg(test)]
mod tests {
    use super::*;
    use idmint_core::id::Encoding;

    fn catalog(toml: &str) -> Result<Catalog, CatalogError> {
        let flags = toml.parse().expect("TOML");
        Catalog::of(&Config::load(None, std::iter::empty(), flags).expect("a configuration"))
    }

    fn names(catalog: &Catalog) -> Vec<&str> {
        catalog
            .formats
            .iter()
            .map(|format| format.name.as_str())
            .collect()
    }

    #[test]
    fn the_built_in_formats_are_on_in_their_order_but_for_one() {
        let catalog = catalog("").expect("the defaults");
        let on = PRESETS
            .iter()
            .map(|preset| preset.name)
            .filter(|name| *name != "payment-wide");
        assert_eq!(names(&catalog), on.collect::<Vec<_>>());
    }

    #[test]
    fn a_format_like_another_differs_in_what_it_says() {
        let catalog =
            catalog("[formats.payment-2022]\nlike = 'payment'\nepoch = '2022-01-01T00:00:00Z'")
                .expect("sound");
        let format = catalog
            .formats
            .iter()
            .find(|format| format.name == "payment-2022")
            .expect("is on");
        assert_eq!(
            format.epoch.to_text(0).as_deref(),
            Some("2022-01-01T00:00:00Z")
        );
        assert_eq!(format.canonical().name(), "base36");
    }

    #[test]
    fn a_built_in_format_can_be_changed_key_by_key() {
        let catalog = catalog(
            "[formats.payment-wide]\nenabled = true\n[formats.snowflake]\nfirst_worker = 3",
        )
        .expect("sound");
        assert!(names(&catalog).contains(&"payment-wide"));
        let snowflake = catalog
            .formats
            .iter()
            .find(|format| format.name == "snowflake")
            .expect("is on");
        assert_eq!(snowflake.first_worker, 3);
    }

    #[test]
    fn the_decode_order_comes_first() {
        let catalog = catalog("decode.order = ['twitter', 'siq']").expect("sound");
        assert_eq!(names(&catalog)[..3], ["twitter", "siq", "conjunction"]);
    }

    #[test]
    fn what_names_no_format_is_refused_with_its_key() {
        for (toml, named) in [
            (
                "formats.enabled = ['snowflake', 'snowfluke']",
                "formats.enabled names `snowfluke`",
            ),
            (
                "decode.order = ['payment-wide']",
                "decode.order names `payment-wide`",
            ),
            ("[formats.mine]\nlike = 'yours'", "like = `yours`"),
            (
                "typeid.types = ['a']\n[formats.typeid]\ntypes = ['b']",
                "typeid.types = [\"a\"] and formats.typeid.types = [\"b\"] differ",
            ),
            ("[formats.mine]\nlike = 'mine'", "refers back to itself"),
            (
                "[formats.snowflake]\nepok = 1",
                "epok: unknown key; did you mean `epoch`?",
            ),
        ] {
            let error = catalog(toml).expect_err(toml).to_string();
            assert!(error.contains(named), "{error}");
        }
    }

    const FORMER: &str = "conjunction-v1-label";

    fn encoding_of<'a>(catalog: &'a Catalog, name: &str, encoding: &str) -> &'a Encoding {
        let format = catalog.formats.iter().find(|format| format.name == name);
        format
            .expect("is on")
            .encoding(encoding)
            .expect("it has one")
    }

    #[test]
    fn a_former_name_stands_for_its_format_in_tables_and_lists() {
        let label = "abcdef-ghijkl-mnopq".len();
        for toml in [
            format!("[formats.{FORMER}]\nenabled = true"),
            format!(
                "[formats.{FORMER}]\nenabled = true\n[formats.conjunction-v1]\nenabled = false"
            ),
            format!("formats.enabled = ['{FORMER}', 'payment']"),
            format!(
                "formats.enabled = ['{FORMER}', 'conjunction-v1']\ndecode.order = ['{FORMER}']"
            ),
            format!(
                "[formats.{FORMER}]\nlanes = 1\n[formats.conjunction-v1]\nencodings = ['decimal']"
            ),
        ] {
            let catalog = catalog(&toml).expect(&toml);
            let names = names(&catalog);
            assert!(
                names.contains(&"conjunction-v1") && !names.contains(&FORMER),
                "{toml}"
            );
            let encoding = encoding_of(&catalog, "conjunction-v1", "label");
            assert_eq!(encoding.fixed_len(), Some(label), "{toml}");
        }
    }

    #[test]
    fn the_table_of_a_former_name_gives_the_format_its_salt() {
        let salted = "encodings = [{ kind = 'hashids', alphabet = 'abcdefghijklmnopqrstuvwxyz', salt = 's', min_length = 17 }]";
        let plain = catalog("").expect("the defaults");
        let salted = catalog(&format!("[formats.{FORMER}]\n{salted}")).expect("sound");
        let digest = |catalog, encoding| encoding_of(catalog, "conjunction-v1", encoding).digest();
        assert_ne!(digest(&plain, "label"), digest(&salted, "label"));
        assert_eq!(digest(&plain, "hashids"), digest(&salted, "hashids"));
    }

    #[test]
    fn a_format_like_a_former_name_has_its_encodings() {
        let catalog = catalog(&format!("[formats.mine]\nlike = '{FORMER}'")).expect("sound");
        let mine = catalog.formats.iter().find(|format| format.name == "mine");
        let mine = mine.expect("is on");
        assert_eq!(mine.encoding_names(), "hashids, decimal, hex_padded");
        let label = encoding_of(&catalog, "conjunction-v1", "label");
        assert_eq!(mine.canonical().digest(), label.digest());
    }

    #[test]
    fn a_former_name_cannot_be_another_format() {
        for (toml, key) in [
            ("epoch = '2020-01-01T00:00:00Z'", "epoch"),
            ("like = 'payment'", "like"),
            ("lanes = 2\n[formats.conjunction-v1]\nlanes = 1", "lanes"),
        ] {
            let error = catalog(&format!("[formats.{FORMER}]\n{toml}")).expect_err(toml);
            let named =
                format!("formats.{FORMER}.{key}: `{FORMER}` is a former name of `conjunction-v1`");
            assert!(error.to_string().contains(&named), "{error}");
        }
    }
}
