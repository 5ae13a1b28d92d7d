//! Tests of comparing formats with the stored ones, and of the errors of a damaged database.

use std::sync::Arc;

use super::*;
use crate::embedded::block_file::{BLOCK_LEN, Block, BlockFile};
use crate::embedded::simulation::SimulatedDisk;
use crate::failure::FailureKind;

/// The length of the log in blocks.
const LOG_LEN: u32 = 64;

fn format(name: &str, pairs: &[(&str, &str)]) -> KeptFormat {
    let description = pairs
        .iter()
        .map(|(key, text)| ((*key).to_owned(), (*text).to_owned()))
        .collect();
    KeptFormat {
        name: name.to_owned(),
        description,
        is_minted: true,
    }
}

fn snowflake() -> KeptFormat {
    format(
        "snowflake",
        &[
            ("epoch", "2015-01-01T00:00:00Z"),
            ("fields", "time 42 bits x4194304"),
            ("tick", "1ms"),
        ],
    )
}

fn payment() -> KeptFormat {
    format(
        "payment",
        &[("epoch", "2024-01-01T00:00:00Z"), ("tick", "1s")],
    )
}

fn database() -> Database {
    Database::on_simulated_disk().expect("memory suffices")
}

#[test]
fn equal_formats_pass_in_any_order_and_a_new_one_joins() {
    let database = database();
    let table = FormatsTable::new(&database);
    table
        .agree(4, &[snowflake()])
        .expect("the first start keeps");
    table
        .agree(4, &[payment(), snowflake()])
        .expect("payment joins");
    table
        .agree(4, &[snowflake(), payment()])
        .expect("both are equal");
}

#[test]
fn a_changed_format_is_refused_with_every_difference_and_the_way_out() {
    let database = database();
    let table = FormatsTable::new(&database);
    table
        .agree(4, &[payment(), snowflake()])
        .expect("the first start keeps");

    let changed = format(
        "snowflake",
        &[
            ("epoch", "2016-01-01T00:00:00Z"),
            ("rule", "sequenced"),
            ("tick", "1ms"),
        ],
    );
    let error = table
        .agree(4, &[payment(), changed])
        .expect_err("snowflake is not what it was");

    assert_eq!(error.failure_kind(), FailureKind::Disagrees);
    assert_eq!(
        error.to_string(),
        "format \"snowflake\" has changed since it minted its first ids:\n  \
         epoch: stored 2015-01-01T00:00:00Z, configured 2016-01-01T00:00:00Z\n  \
         fields: stored time 42 bits x4194304, configured (nothing)\n  \
         rule: stored (nothing), configured sequenced\n\
         give the changed format a new name, or undo the change"
    );
}

#[test]
fn a_format_left_out_for_a_while_is_still_held_to_what_it_was() {
    let database = database();
    let table = FormatsTable::new(&database);
    table
        .agree(4, &[payment(), snowflake()])
        .expect("the first start keeps");
    table
        .agree(4, &[snowflake()])
        .expect("payment is switched off");

    let changed = format(
        "payment",
        &[("epoch", "2024-01-01T00:00:00Z"), ("tick", "10ms")],
    );
    let error = table
        .agree(4, &[changed, snowflake()])
        .expect_err("payment is remembered");
    assert!(matches!(error, FormatsError::Changed { name, .. } if name == "payment"));
}

#[test]
fn what_an_earlier_version_kept_has_no_encodings_and_the_first_start_records_them() {
    let database = database();
    let table = FormatsTable::new(&database);
    let base36 = |digest: &str| KeptFormat::of_encoding(&payment(), "base36", digest.to_owned());
    table
        .agree(4, &[payment()])
        .expect("an earlier version keeps formats alone");
    table
        .agree(4, &[payment(), base36("5f2a")])
        .expect("the digest joins");
    table
        .agree(4, &[payment()])
        .expect("an earlier version passes it over");
    table
        .agree(4, &[payment(), base36("5f2a")])
        .expect("it is equal");

    let error = table
        .agree(4, &[payment(), base36("91bc")])
        .expect_err("it writes otherwise");
    assert_eq!(error.failure_kind(), FailureKind::Disagrees);
    assert_eq!(
        error.to_string(),
        "encoding \"base36\" of format \"payment\" has changed since its first ids were written, so one text could \
         mean two ids:\n\
         \x20 digest of its texts: stored 5f2a, configured 91bc\n\
         give the changed encoding a name of its own, or undo the change of its kind, alphabet, case, salt, prefix or \
         length"
    );
    let (slots, kept) = table.kept().expect("readable");
    assert!(slots.is_some());
    assert_eq!(
        kept.keys().map(String::as_str).collect::<Vec<_>>(),
        ["payment", "payment/base36"]
    );
    assert_eq!(
        kept.keys()
            .filter(|name| KeptFormat::is_name_of_format(name))
            .count(),
        1
    );
}

#[test]
fn another_number_of_slots_is_refused_with_the_one_kept() {
    let database = database();
    let table = FormatsTable::new(&database);
    table
        .agree(4, &[snowflake()])
        .expect("the first start keeps");
    let error = table.agree(8, &[snowflake()]).expect_err("4 is kept");
    assert!(matches!(
        error,
        FormatsError::SlotsChanged { kept: 4, now: 8 }
    ));
    assert_eq!(
        error.to_string(),
        "worker.slots is 8, but earlier ids were minted with 4; set worker.slots = 4; docs/OPERATIONS.md says how to change it"
    );
}

#[test]
fn a_refusal_writes_nothing_not_even_the_formats_that_would_have_joined() {
    let database = database();
    let table = FormatsTable::new(&database);
    table
        .agree(4, &[snowflake()])
        .expect("the first start keeps");
    let changed = format("snowflake", &[("tick", "2ms")]);
    table
        .agree(4, &[payment(), changed])
        .expect_err("snowflake is not what it was");

    // If the refused start had stored its `payment`, this different `payment` would be refused now.
    table
        .agree(4, &[format("payment", &[("tick", "7s")])])
        .expect("payment is new");
}

#[test]
fn what_is_kept_outlasts_the_process() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("idmint.redb");
    let database = Database::create(&path, Arc::default()).expect("the database is created");
    FormatsTable::new(&database)
        .agree(4, &[snowflake()])
        .expect("the first start keeps");
    drop(database);

    let database = Database::open(&path, Arc::default()).expect("the database opens");
    let table = FormatsTable::new(&database);
    table.agree(4, &[snowflake()]).expect("snowflake is equal");
    table
        .agree(4, &[format("snowflake", &[])])
        .expect_err("snowflake is not what it was");
}

/// Opens the database on this disk as a start does, and compares the formats.
fn start(disk: &Arc<SimulatedDisk>, formats: &[KeptFormat]) -> Result<(), FormatsError> {
    let database = Database::over(Arc::clone(disk) as Arc<dyn BlockFile>, LOG_LEN, "flipped")
        .map_err(StoreError::from)?;
    FormatsTable::new(&database).agree(4, formats)
}

/// Returns all offsets of `needle` in `bytes`.
fn places_of(needle: &[u8], bytes: &[u8]) -> Vec<usize> {
    (0..bytes.len() - needle.len())
        .filter(|at| bytes[*at..].starts_with(needle))
        .collect()
}

#[test]
fn a_flipped_byte_in_the_database_never_panics_and_never_lets_a_changed_format_pass() {
    let disk = Arc::new(SimulatedDisk::holding(&[], 0));
    start(&disk, &[snowflake(), payment()]).expect("the first start keeps");
    let blocks = 0..disk.len_in_blocks().expect("the disk works");
    let blocks: Vec<Block> = blocks
        .map(|block| disk.read_block(block).expect("the disk works"))
        .collect();
    let whole = blocks.as_flattened();
    let changed = format("snowflake", &[("tick", "2ms")]);

    // Change bytes in the header, in the rows, and in a sample of all other used bytes.
    let rows = places_of(b"format/snowflake", whole)
        .into_iter()
        .flat_map(|at| at - 100..at + 200);
    let in_use = (0..whole.len()).filter(|at| whole[*at] != 0).step_by(97);
    let (mut refused, mut seen) = (0, 0);
    for at in (0..320).chain(rows).chain(in_use) {
        // Use a copy of the disk, because a start writes to it.
        let spoiled = Arc::new(disk.copy(0));
        spoiled.corrupt(u64::try_from(at / BLOCK_LEN).expect("small"), |block| {
            block[at % BLOCK_LEN] ^= 0x41
        });
        match start(&spoiled, std::slice::from_ref(&changed)) {
            Err(FormatsError::Changed { .. }) => seen += 1,
            Err(error) if error.failure_kind() == FailureKind::Damaged => refused += 1,
            Ok(()) => panic!("byte {at}: the changed format passed"),
            Err(error) => panic!("byte {at}: {error}"),
        }
    }
    println!(
        "{} flips: {refused} were noticed, {seen} touch nothing that is read",
        refused + seen
    );
    assert!(
        refused > 100 && refused + seen > 1_000,
        "only {refused} of {} flips were noticed",
        refused + seen
    );
}

#[test]
fn templates_of_a_later_version_are_refused_and_not_ignored() {
    let database = database();
    let table = FormatsTable::new(&database);
    let keep = |line: &str| {
        let texts = BTreeMap::from([("0000000000".to_owned(), format!("{line}\n"))]);
        table
            .keep_of_numbers(TEMPLATES_ROW, &texts)
            .expect("the database works");
    };
    keep("acme-*\tA/{series}/{n}\t-\t-\t1-99");
    let history = table.number_templates().expect("this version has it");
    assert_eq!(history.all().count(), 1);
    keep("acme-*\tA/{later}/{n}\t-\t-\t1-99");
    let error = StoreError::from(table.number_templates().expect_err("nobody can read it"));
    assert_eq!(error.failure_kind(), FailureKind::Disagrees);
    assert!(
        error.to_string().contains("the templates of numbers"),
        "{error}"
    );
}
