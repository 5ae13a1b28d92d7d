//! Compares the service with libraries of other authors from PyPI. Each side must read the ids of
//! the other one and find the same fields. `oracles.py` uses the libraries.
//!
//! `crates/idmint-core/tests/properties/oracles.rs` compares single encodings with Rust crates.
//! This file covers whole ids, and libraries that exist only for Python.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::tools::succeed;
use idmint_testing::service::{Home, Service};

/// A configuration with Hashids encodings that have a salt and a minimum length, and with the
/// domain that the library `suou` hashes.
const CONFIGURATION: &str = r#"
siq.domains = ["example.com"]

[formats.salted]
like = "snowflake"
encodings = ["decimal", { kind = "hashids", salt = "pepper and more", min_length = 16 }]

# The letters of labels of conjunction-v1.
[formats.lettered]
like = "snowflake"
encodings = ["decimal", { kind = "hashids", alphabet = "abcdefghijklmnopqrstuvwxyz", min_length = 17, groups = [6, 6, 5] }]
"#;

/// The libraries. Each has a name, the format that the library reads and writes, and the number of
/// ways in which it writes an id.
const ORACLES: [(&str, &str, usize); 13] = [
    ("adr13", "payment", 1),
    ("hashids", "lettered", 1),
    ("hashids", "salted", 1),
    ("hashids", "snowflake", 1),
    ("pymongo", "objectid", 1),
    ("python", "uuid1", 1),
    ("python-flax-id", "flax", 1),
    ("python-ulid", "ulid", 1),
    ("sqids", "snowflake", 1),
    ("suou", "siq", 7),
    ("suou", "snowflake", 6),
    ("uuid6", "uuid6", 1),
    ("uuid6", "uuid7", 1),
];

/// The number of ids that each side has read, and the number of ids that the two sides read
/// differently.
#[derive(Default)]
struct Counts {
    spellings: Vec<String>,
    read: usize,
    minted: usize,
    differ: usize,
}

#[test]
fn libraries_of_others_and_the_service_read_each_others_ids() {
    let wanted: usize =
        std::env::var("ORACLE_IDS").map_or(10_000, |count| count.parse().expect("a number"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("target/tools/oracles/bin/python");
    assert!(
        python.is_file(),
        "the libraries are there: installed by .ci/install-oracles"
    );
    let home = Home::new();
    let service = Service::start(home.serve_with(CONFIGURATION));
    service.wait_until_ready();
    let mut oracles = Command::new(python);
    oracles
        .arg("-B")
        .arg(root.join("tests/system/oracles.py"))
        .arg(service.url());
    oracles
        .arg(env!("CARGO_BIN_EXE_idmint"))
        .arg(wanted.to_string());
    let printed = succeed(&mut oracles);

    let mut counts: BTreeMap<(&str, &str), Counts> = BTreeMap::new();
    // Stop after the counts, which lines about differences may follow.
    for line in printed
        .lines()
        .take_while(|line| line.split(' ').count() == 7)
    {
        let words: Vec<&str> = line.split(' ').collect();
        let [
            library,
            format,
            spelling,
            read,
            minted,
            differ_read,
            differ_minted,
        ] = words[..]
        else {
            unreachable!()
        };
        let number = |text: &str| text.parse::<usize>().unwrap();
        let of_both = counts.entry((library, format)).or_default();
        of_both.spellings.push(spelling.to_owned());
        of_both.read += number(read);
        of_both.minted += number(minted);
        of_both.differ += number(differ_read) + number(differ_minted);
    }
    for ((library, format), told) in &mut counts {
        let Counts {
            spellings,
            read,
            minted,
            differ,
        } = told;
        println!(
            "{library}, {format}: {read} ids read by the service, {minted} ids read by the library, {differ} differ"
        );
        spellings.sort();
        spellings.dedup();
        assert!(
            *read >= wanted && *minted >= wanted,
            "{library}, {format}: too few"
        );
    }
    let found: Vec<_> = counts
        .iter()
        .map(|((library, format), told)| (*library, *format, told.spellings.len()))
        .collect();
    assert_eq!(found, ORACLES, "{printed}");
    let [read, minted, differ] = [
        |told: &Counts| told.read,
        |told: &Counts| told.minted,
        |told: &Counts| told.differ,
    ]
    .map(|of| counts.values().map(of).sum::<usize>());
    println!(
        "oracles: {read} ids read by the service, {minted} ids read by the libraries, {differ} differ"
    );
    assert_eq!(differ, 0, "{printed}");
}
