//! Checks the deployment manifests. They must allow the host names that callers use, and each way
//! to run the service must have one Compose file.

use std::fs;

use idmint_http::Slug;
use regex_lite::Regex;

use crate::references::{read, root};

#[test]
fn every_manifest_names_the_hosts_that_its_callers_use_and_the_refusal_says_where() {
    let quoted = Regex::new(r#""([a-z0-9.-]+)""#).unwrap();
    for (file, setting, callers) in [
        (
            "docker-compose.yml",
            "IDMINT_HTTP__HOSTS: '",
            &["idmint"][..],
        ),
        (
            "docker-compose.fleet.yml",
            "IDMINT_HTTP__HOSTS: '",
            &[
                "idmint",
                "nodes",
                "idmint-1",
                "idmint-2",
                "idmint-3",
                "127.0.0.1",
                "localhost",
            ],
        ),
        (
            "deploy/kubernetes/single/idmint.toml",
            "http.hosts = ",
            &["idmint", "idmint.default", "idmint.default.svc"],
        ),
        (
            "deploy/kubernetes/ordinal/idmint.toml",
            "http.hosts = ",
            &["idmint", "idmint.ids", "idmint.ids.svc"],
        ),
        (
            "deploy/kubernetes/fleet/idmint.toml",
            "http.hosts = ",
            &["idmint", "idmint.ids", "idmint.ids.svc"],
        ),
    ] {
        let text = read(file);
        let line = text
            .lines()
            .find_map(|line| line.trim().strip_prefix(setting));
        let line = line.unwrap_or_else(|| panic!("{file} does not set http.hosts"));
        let hosts: Vec<&str> = quoted
            .captures_iter(line)
            .map(|host| host.get(1).unwrap().as_str())
            .collect();
        assert!(
            callers.iter().all(|caller| hosts.contains(caller)),
            "{file}: {hosts:?}"
        );
    }
    let page = Slug::ALL
        .iter()
        .map(|slug| slug.page())
        .find(|page| page.name == "unknown-host")
        .unwrap();
    assert!(
        page.safe_action.contains("http.hosts"),
        "{}",
        page.safe_action
    );
}

/// Checks that both copies of the alert rules are equal. The Prometheus operator needs them in a
/// resource of its own kind, and kustomize cannot include files of other folders.
#[test]
fn the_rules_for_the_prometheus_operator_are_the_alerts() {
    const FILE: &str = "deploy/kubernetes/monitoring/rules.yaml";
    let text = read(FILE);
    let (head, _) = text.split_once("  groups:\n").expect("groups");
    let alerts = read("deploy/prometheus/alerts.yml");
    let (_, groups) = alerts.split_once("groups:\n").expect("groups");
    let indented = |line: &str| {
        if line.is_empty() {
            "\n".to_owned()
        } else {
            format!("  {line}\n")
        }
    };
    let groups: String = groups.lines().map(indented).collect();
    let expected = format!("{head}  groups:\n{groups}");
    if text != expected && std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(root().join(FILE), expected).unwrap();
        return;
    }
    assert!(
        text == expected,
        "{FILE} is not made of alerts.yml: UPDATE_DOCS=1 makes it"
    );
}

#[test]
fn the_release_workflow_installs_the_packages_that_the_document_names() {
    let packages = Regex::new(r"`([a-z0-9-]+)`").unwrap();
    let page = read("docs/START.md");
    let (_, named) = page
        .split_once("`make release` also needs the Debian packages ")
        .expect("the packages");
    let (named, _) = named.split_once(", and").expect("the end of the list");
    let named: Vec<&str> = packages
        .captures_iter(named)
        .map(|package| package.get(1).unwrap().as_str())
        .collect();
    let workflow = read(".github/workflows/release.yml");
    let install = workflow
        .lines()
        .find(|line| line.contains("apt-get install"))
        .expect("an installation");
    assert!(named.len() >= 4, "{named:?}");
    assert!(
        named
            .iter()
            .all(|package| install.split(' ').any(|word| word == *package)),
        "{named:?}: {install}"
    );
}

#[test]
fn the_image_says_what_it_is_as_the_package_does() {
    let dockerfile = read("Dockerfile").replace("\\\n", " ");
    let (_, stage) = dockerfile
        .rsplit_once("\nFROM scratch")
        .expect("a last stage");
    let label = Regex::new(r#"org\.opencontainers\.image\.([a-z]+)="([^"]*)""#).unwrap();
    let labels: Vec<_> = label
        .captures_iter(stage)
        .map(|label| (label[1].to_owned(), label[2].to_owned()))
        .collect();
    let package = [
        ("title", env!("CARGO_PKG_NAME")),
        ("description", env!("CARGO_PKG_DESCRIPTION")),
        ("version", env!("CARGO_PKG_VERSION")),
        ("licenses", env!("CARGO_PKG_LICENSE")),
    ];
    assert_eq!(
        labels,
        package.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
}

/// Checks that each way to run has its own Compose file without profiles and without `.env`.
/// Versions of Compose differ in the precedence of `.env`, the environment and `--profile`. They
/// also differ in whether `down` stops the containers of a profile.
#[test]
fn compose_has_a_file_for_each_way_to_run_and_neither_profiles_nor_an_env_file() {
    for file in ["docker-compose.yml", "docker-compose.fleet.yml"] {
        assert!(!read(file).contains("profiles"), "{file}");
        assert!(
            read(file).lines().take(8).any(|line| line.contains("down")),
            "{file} says how to end it"
        );
    }
    assert!(!root().join(".env").exists());
}
