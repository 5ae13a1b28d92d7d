//! Checks the packages of `make release`. The bytes must be reproducible, the program must run, and
//! the bill of materials must be correct.
//!
//! `make release` itself checks that two builds give the same bytes, because that check would take
//! too long here.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use regex_lite::Regex;
use serde_json::Value;

use crate::tools::succeed;
use idmint_testing::service::{Home, Service};

/// Packs this build in a namespace without network access. Returns the path of each file by its
/// name.
fn pack(folder: &Path) -> BTreeMap<String, PathBuf> {
    let mut release = Command::new("unshare");
    release.args(["--net", ".ci/release", env!("CARGO_BIN_EXE_idmint")]);
    release
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("DIST", folder)
        .env("SOURCE_DATE_EPOCH", "1790000000");
    succeed(&mut release);
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    files
        .map(|file| (file.file_name().into_string().unwrap(), file.path()))
        .collect()
}

fn ending<'a>(files: &'a BTreeMap<String, PathBuf>, end: &str) -> &'a Path {
    let mut found = files.iter().filter(|(name, _)| name.ends_with(end));
    found
        .next()
        .unwrap_or_else(|| panic!("no {end} in {files:?}"))
        .1
}

#[test]
fn a_release_is_packed_without_network_and_gives_equal_bytes_each_time() {
    let home = Home::new();
    let [once, again] = ["once", "again"].map(|name| pack(&home.path(name)));
    assert_eq!(once.len(), 4, "{once:?}");
    for (name, path) in &once {
        assert!(
            fs::read(path).unwrap() == fs::read(&again[name]).unwrap(),
            "{name} differs"
        );
    }
    let mut check = Command::new("sha256sum");
    let checked = succeed(
        check
            .args(["--check", "SHA256SUMS"])
            .current_dir(home.path("once")),
    );
    assert_eq!(checked.matches(": OK").count(), 3, "{checked}");

    let begun = Instant::now();
    let mut unpack = Command::new("tar");
    succeed(
        unpack
            .arg("--extract")
            .arg("--directory")
            .arg(home.path("."))
            .arg("--file")
            .arg(ending(&once, "-linux.tar.gz")),
    );
    let unpacked = home.path(&format!(
        "idmint-{}-{}-linux",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH
    ));
    let version = succeed(Command::new(unpacked.join("idmint")).arg("--version"));
    assert_eq!(
        version.trim(),
        concat!("idmint ", env!("CARGO_PKG_VERSION"))
    );
    let mut serve = Command::new(unpacked.join("idmint"));
    serve
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(home.data_dir());
    let service = Service::start(serve);
    service.wait_until_ready();
    assert_eq!(service.mint("snowflake").len(), 1);
    println!("from the archive to the first id: {:?}", begun.elapsed());
    for config in ["config/default.toml", "config/cluster.toml"] {
        succeed(
            Command::new(unpacked.join("idmint"))
                .arg("check")
                .arg("--config")
                .arg(unpacked.join(config)),
        );
    }
    for file in [
        "LICENSE",
        "README.md",
        "openapi.yaml",
        "openapi-3.0.yaml",
        "deploy/systemd/idmint.service",
        concat!(
            "clients/idmint-",
            env!("CARGO_PKG_VERSION"),
            "-py3-none-any.whl"
        ),
        concat!("clients/idmint-", env!("CARGO_PKG_VERSION"), ".tgz"),
        concat!("clients/idmint-", env!("CARGO_PKG_VERSION"), ".jar"),
        "clients/go/go.mod",
    ] {
        assert!(unpacked.join(file).is_file(), "{file}");
    }
    let (man, completions) = (unpacked.join("man"), unpacked.join("completions"));
    assert!(
        fs::read_dir(man).unwrap().count() > 20,
        "a page for each command"
    );
    for script in ["idmint", "_idmint", "idmint.fish"] {
        assert!(
            fs::read_to_string(completions.join(script))
                .unwrap()
                .contains("idmint"),
            "{script}"
        );
    }
    let packed = fs::read(ending(&once, ".cdx.json")).unwrap();
    assert_eq!(
        fs::read(unpacked.join(ending(&once, ".cdx.json").file_name().unwrap())).unwrap(),
        packed
    );
    assert_lists_what_is_built_in(&serde_json::from_slice(&packed).unwrap());
}

/// Asserts that the bill of materials lists each crate of the program, with its version, licence
/// and checksum as in `Cargo.lock`. It must not list crates that only tests need.
fn assert_lists_what_is_built_in(bill: &Value) {
    assert_eq!(
        [&bill["bomFormat"], &bill["specVersion"]],
        ["CycloneDX", "1.5"]
    );
    assert_eq!(bill["metadata"]["component"]["name"], "idmint");
    let here = env!("CARGO_MANIFEST_DIR");
    assert!(
        !bill.to_string().contains(here),
        "it says where it was made"
    );

    let lock = fs::read_to_string(Path::new(here).join("Cargo.lock")).unwrap();
    let package = Regex::new(
        "name = \"([^\"]+)\"\nversion = \"([^\"]+)\"\nsource = [^\n]+\nchecksum = \"([^\"]+)\"",
    )
    .unwrap();
    let locked: BTreeMap<_, _> = package
        .captures_iter(&lock)
        .map(|found| {
            (
                (found[1].to_owned(), found[2].to_owned()),
                found[3].to_owned(),
            )
        })
        .collect();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let components = bill["components"].as_array().expect("components");
    for component in components {
        let crate_ = (text(&component["name"]), text(&component["version"]));
        let purl = format!("pkg:cargo/{}@{}", crate_.0, crate_.1);
        assert!(component["licenses"][0].is_object(), "{component}");
        // Crates of this workspace have no checksum, because they do not come from a registry.
        if crate_.0.starts_with("idmint-") {
            assert!(text(&component["purl"]).starts_with(&purl), "{component}");
            continue;
        }
        assert_eq!(
            component["hashes"][0]["content"], *locked[&crate_],
            "{crate_:?}"
        );
        assert_eq!(component["purl"], purl);
    }
    let names: Vec<_> = components
        .iter()
        .map(|component| text(&component["name"]))
        .collect();
    for of_the_program in [
        "idmint-core",
        "redb",
        "hyper",
        "tokio",
        "crc32c",
        "clap",
        "etcd-client",
    ] {
        assert!(
            names.iter().any(|name| name == of_the_program),
            "{of_the_program}"
        );
    }
    for of_tests in ["proptest", "divan", "saphyr-parser"] {
        assert!(!names.iter().any(|name| name == of_tests), "{of_tests}");
    }
}
