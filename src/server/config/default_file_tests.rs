//! Tests that `config/default.toml` contains every setting, with its default value.

use std::path::Path;

use serde::Deserialize;
use toml::{Table, Value};

use super::configuration::Config;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/config/default.toml");
const TEXT: &str = include_str!("../../../config/default.toml");

/// Returns the default file with every setting active: `# key = example` becomes `key = example`.
/// Comments in prose stay comments.
fn uncommented() -> Table {
    let is_key = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    let setting = |line: &str| {
        let text = line.strip_prefix("# ")?;
        text.split_once(" = ")
            .is_some_and(|(key, _)| is_key(key))
            .then(|| text.to_owned())
    };
    let lines: Vec<String> = TEXT
        .lines()
        .map(|line| setting(line).unwrap_or_else(|| line.to_owned()))
        .collect();
    lines
        .join("\n")
        .parse()
        .expect("the file without its comment signs is TOML")
}

/// Returns the keys of a section. The error message for an unknown key lists them.
fn keys_of(section: Option<&str>) -> Vec<String> {
    let unknown = Table::from_iter([("?".to_owned(), Value::Boolean(true))]);
    let table = match section {
        None => unknown,
        Some(section) => Table::from_iter([(section.to_owned(), Value::Table(unknown))]),
    };
    let refused = Config::deserialize(table).expect_err("an unknown key");
    let (_, expected) = refused
        .message()
        .split_once("expected")
        .expect("a list of what is expected");
    expected
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_file_says_what_the_defaults_are() {
    let config = Config::load(Some(Path::new(PATH)), std::iter::empty(), Table::new())
        .expect("a valid file");
    assert_eq!(config, Config::default());
}

#[test]
fn the_file_shows_every_setting_there_is() {
    let shown = uncommented();
    let sections = keys_of(None);
    assert_eq!(sections.len(), 14, "{sections:?}");
    for section in sections
        .iter()
        .filter(|section| !["formats", "numbers"].contains(&section.as_str()))
    {
        let keys = keys_of(Some(section));
        assert!(!keys.is_empty(), "{section}");
        for key in keys {
            assert!(
                shown
                    .get(section)
                    .and_then(|table| table.get(&key))
                    .is_some(),
                "{section}.{key} is not shown"
            );
        }
    }
    assert!(shown["formats"].get("enabled").is_some());
    for (name, keys) in [
        (
            "invoice",
            ["pattern", "text", "former", "start", "max", "check"].as_slice(),
        ),
        ("monthly", &["years", "periods"]),
        ("rows", &["kind", "reserve"]),
    ] {
        for key in keys {
            assert!(
                shown["numbers"][name].get(key).is_some(),
                "numbers.<name>.{key} is not shown"
            );
        }
    }
}

#[test]
fn the_examples_of_unset_settings_are_valid_and_are_not_the_defaults() {
    let examples = Config::deserialize(uncommented()).expect("valid examples");
    let default = Config::default();
    assert_ne!(examples.http.admin_listen, default.http.admin_listen);
    assert_ne!(examples.http.tokens, default.http.tokens);
    assert_ne!(examples.http.rate, default.http.rate);
    assert_eq!(
        (
            examples.http.tls.check(),
            examples.http.tls.client_scopes.len()
        ),
        (Ok(()), 2)
    );
    assert_ne!(examples.worker.slot, default.worker.slot);
    assert_ne!(examples.storage.window, default.storage.window);
    assert_ne!(examples.etcd.user, default.etcd.user);
    assert_ne!(examples.etcd.password_file, default.etcd.password_file);
    assert_ne!(examples.etcd.ca, default.etcd.ca);
    assert_ne!(examples.etcd.certificate, default.etcd.certificate);
    assert_ne!(examples.etcd.key, default.etcd.key);
    assert_ne!(examples.cluster.slots, default.cluster.slots);
    assert_ne!(examples.siq.default_type, default.siq.default_type);
    assert_ne!(examples.siq.local_id, default.siq.local_id);
    assert_ne!(
        examples.conjunction.retention,
        default.conjunction.retention
    );
    assert_ne!(examples.numbers, default.numbers);
    assert_ne!(examples.formats.enabled, default.formats.enabled);
    assert_eq!(
        examples.formats.definitions["payment-2022"]["like"].as_str(),
        Some("payment")
    );
}

#[cfg(feature = "etcd")]
#[test]
fn the_file_of_a_fleet_is_sound() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/config/cluster.toml"));
    let kubernetes = [("KUBERNETES_SERVICE_HOST".to_owned(), "10.0.0.1".to_owned())].into_iter();
    let config = Config::load(Some(path), kubernetes, Table::new()).expect("a valid file");
    assert_eq!(config.storage.window(), std::time::Duration::from_secs(60));
    assert_eq!(config.etcd.checked().endpoints.len(), 3);
}
