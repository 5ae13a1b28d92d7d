//! Checks which packages each crate may depend on.

use std::collections::BTreeSet;
use std::process::Command;

use crate::{crates, read, root};

/// The maximum number of packages in a default build, including the crates of this workspace.
const PACKAGES_MAX: usize = 200;

/// Runs cargo in the workspace without network access, and returns its output.
fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .args(["--locked", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "cargo {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the names of all packages that `package` depends on, directly or indirectly. The result
/// includes `package` itself.
fn packages_of(package: &str, edges: &str) -> BTreeSet<String> {
    let tree = cargo(&["tree", "-p", package, "-e", edges, "--prefix", "none"]);
    let name = |line: &str| line.split(' ').next().map(str::to_owned);
    tree.lines().filter_map(name).collect()
}

#[test]
fn core_and_records_have_no_io_and_no_runtime() {
    for package in ["idmint-core", "idmint-records"] {
        let packages = packages_of(package, "normal");
        assert!(packages.contains("jiff"), "{packages:?}");
        for forbidden in [
            "tokio",
            "hyper",
            "axum",
            "redb",
            "tracing",
            "reqwest",
            "prometheus",
        ] {
            assert!(
                !packages.contains(forbidden),
                "{package} is built with {forbidden}"
            );
        }
    }
}

#[test]
fn the_client_is_built_without_the_server() {
    let packages = packages_of("idmint-client", "normal");
    assert!(packages.contains("idmint-wire"), "{packages:?}");
    for forbidden in [
        "axum",
        "redb",
        "idmint-storage",
        "idmint-service",
        "idmint-http",
        "idmint-net",
    ] {
        assert!(
            !packages.contains(forbidden),
            "the client is built with {forbidden}"
        );
    }
}

#[test]
fn a_default_build_has_no_fleet_and_few_packages() {
    let packages = packages_of("idmint", "normal,build");
    println!("{} packages", packages.len());
    assert!(packages.contains("idmint-net"), "{packages:?}");
    for forbidden in ["idmint-fleet", "etcd-client", "tonic"] {
        assert!(
            !packages.contains(forbidden),
            "a default build has {forbidden}"
        );
    }
    assert!(
        packages.len() <= PACKAGES_MAX,
        "{} packages",
        packages.len()
    );
}

#[test]
fn only_storage_names_redb_and_the_service_names_no_http() {
    for name in crates() {
        let manifest: toml::Table = read(&format!("crates/{name}/Cargo.toml")).parse().unwrap();
        let dependencies = manifest["dependencies"].as_table().unwrap();
        assert_eq!(
            dependencies.contains_key("redb"),
            name == "idmint-storage",
            "{name}"
        );
        for http in ["axum", "http-body", "hyper", "tower"] {
            let may_have = [
                "idmint-http",
                "idmint-net",
                "idmint-client",
                "idmint-testing",
            ];
            let has = dependencies.contains_key(http);
            assert!(
                !has || may_have.contains(&name.as_str()),
                "{name} has {http}"
            );
        }
    }
}

#[test]
fn what_is_published_has_its_files_and_the_rest_says_that_it_is_internal() {
    let published = [
        ("idmint-core", "formats/snowflake.toml"),
        ("idmint-client", "src/lib.rs"),
        ("idmint", "src/main.rs"),
    ];
    for name in crates() {
        let text = read(&format!("crates/{name}/src/lib.rs"));
        let is_internal = text.starts_with("//! Internal to idmint: ");
        let is_published = published.iter().any(|(package, _)| *package == name);
        assert_eq!(is_internal, !is_published, "{name}");
    }
    for (package, file) in published {
        let listed = cargo(&["package", "--list", "--allow-dirty", "-p", package]);
        let files: Vec<&str> = listed.lines().collect();
        println!("{package}: {} files", files.len());
        assert!(files.contains(&file), "{package} lacks {file}: {files:#?}");
        let outside = files
            .iter()
            .find(|file| file.starts_with("../") || file.starts_with("tests/"));
        assert_eq!(outside, None, "{package}");
    }
    let listed = cargo(&["package", "--list", "--allow-dirty", "-p", "idmint-core"]);
    assert!(listed.lines().any(|file| file == "sqids-blocklist.txt"));
}
