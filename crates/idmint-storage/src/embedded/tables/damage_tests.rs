//! Tests of damaged data, both with damage that the engine's checksums detect and with damage that
//! they miss. Damage is always reported, and never read as a record.

use std::fs;

use redb::{ReadableTable, TableDefinition};

use super::*;
use crate::failure::FailureKind;
use crate::records::rows::append_row;
use crate::records::{ConjunctionStore, LedgerStore, NumberStore, RequestStore};
use crate::samples::{
    NOW, anchor, append, give, given_plan, links, near, plan, series, void_plan, write_ledger,
};
use idmint_records::conjunction::{Anchor, Pair, Tca};
use idmint_records::ledger::KeyHash;

fn in_memory() -> (Arc<Database>, RecordTables) {
    let database = Arc::new(Database::on_simulated_disk().expect("memory suffices"));
    let records = RecordTables::open(Arc::clone(&database)).expect("it is new");
    (database, records)
}

/// The rows of a table as the engine stores them. Tests use it to change rows directly.
type Rows<K> = TableDefinition<'static, K, &'static [u8]>;

/// Flips one bit in a row.
fn spoil<K: redb::Key + 'static>(database: &Database, rows: Rows<K>, name: K::SelfType<'_>) {
    let spoil = |engine: &Engine| {
        let transaction = engine.begin_write()?;
        {
            let mut rows = transaction.open_table(rows)?;
            let mut row = rows.get(&name)?.expect("the row is there").value().to_vec();
            row[1] ^= 0x10;
            rows.insert(&name, row.as_slice())?;
        }
        transaction.commit()
    };
    database.attempt(spoil).expect("the database works");
}

fn assert_damaged<T: std::fmt::Debug>(outcome: Result<T, StoreError>, named: &str) {
    let error = outcome.expect_err("a row is damaged");
    assert_eq!(error.failure_kind(), FailureKind::Damaged);
    assert!(error.to_string().contains(named), "{error}");
}

#[test]
fn a_damaged_append_is_named_wherever_it_is_met() {
    let (database, records) = in_memory();
    let plans = write_ledger(&records, "genesis", 10);
    let other = write_ledger(&records, "other", 20);
    let (ledger, last) = (plans[0].ledger(), plans[2].head().id);
    spoil(&database, APPENDS, append_row::name(last));
    let named = format!("the events up to {last} are corrupted");
    assert_damaged(records.head(ledger), &named);
    assert_damaged(records.ledger(ledger), &named);
    assert_damaged(records.ledgers(None, 9), &named);
    assert_damaged(records.chain(ledger, None, 9), &named);
    assert_damaged(records.link(last), &named);
    assert_damaged(records.append(last), &named);
    let next = plan(
        &append(ledger, &["next"], 30),
        Some(plans[2].head()),
        NOW + 3_000_000,
    );
    let refused = records
        .write(&[RecordPlan::Append(next)])
        .expect_err("nothing is appended to damage");
    assert!(refused.to_string().contains(&named), "{refused}");

    assert_eq!(
        records
            .chain(other[0].ledger(), None, 9)
            .expect("the other ledger is sound"),
        links(&other)
    );
    assert_eq!(
        records
            .chain(ledger, None, 4)
            .expect("as far as it is sound"),
        links(&plans[..2])
    );
}

#[test]
fn a_damaged_key_is_named_and_not_taken_for_one_that_is_free() {
    let (database, records) = in_memory();
    let plans = write_ledger(&records, "genesis", 10);
    let day = u32::try_from(NOW / 86_400_000_000).expect("small");
    spoil(&database, REQUESTS, (day, 11));
    assert_damaged(
        records.request(KeyHash(11)),
        "the request 0000000000000000000000000000000b of day",
    );
    let sound = records
        .request(KeyHash(10))
        .expect("readable")
        .expect("it is there");
    assert_eq!(sound.last, plans[0].head().id);
}

/// Asserts that the database cannot be reopened, because a later version has written the content
/// that `described` names.
fn assert_written_later(database: &Database, described: &str) {
    let error = database.reopen().expect_err("it is of a later version");
    assert_eq!(error.failure_kind(), FailureKind::Disagrees, "{error}");
    let text = error.to_string();
    assert!(
        text.contains("a later version") && text.contains("SIGTERM") && text.contains(described),
        "{text}"
    );
}

#[test]
fn a_table_of_a_later_version_is_refused_and_not_ignored() {
    const LATER: TableDefinition<'_, u64, u64> = TableDefinition::new("later");
    let (database, records) = in_memory();
    give(&records, &series("acme"), 1, "a");
    drop(records);
    database.reopen().expect("all tables are known");
    let add = |engine: &Engine| {
        let transaction = engine.begin_write()?;
        transaction.open_table(LATER)?;
        transaction.commit()
    };
    database.attempt(add).expect("the database works");
    for _ in 0..2 {
        assert_written_later(&database, "the unknown table \"later\"");
    }
}

#[test]
fn a_log_of_a_later_version_is_told_from_a_damaged_one() {
    let given = give(&in_memory().1, &series("acme"), 1, "a");
    let mut row = crate::records::rows::number_rows::given_to_bytes(&given);
    let content_len = row.len() - 4;
    row[0] = 2;
    let crc = crc32c::crc32c_append(crc32c::crc32c(b"acme"), &1_u64.to_be_bytes());
    let crc = crc32c::crc32c_append(crc, &row[..content_len]);
    row[content_len..].copy_from_slice(&crc.to_be_bytes());
    let row_len = u16::try_from(row.len()).expect("short").to_be_bytes();
    let later = [&b"n\x04acme"[..], &1_u64.to_be_bytes(), &row_len, &row].concat();
    let log = |rows: &[u8]| {
        let (database, records) = in_memory();
        drop(records);
        let commit = |engine: &Engine| engine.commit_logged(rows, |_| Ok(true));
        assert!(database.attempt(commit).expect("the log takes any bytes"));
        database
    };
    assert_written_later(&log(b"xyz"), "rows of the kind 'x'");
    assert_written_later(&log(&later), "a row of the kind 'n' in an unknown form");

    let mut flipped = later;
    *flipped.last_mut().expect("it is long") ^= 1;
    for rows in [&flipped[..], b"n\x04ac"] {
        let error = log(rows).reopen().expect_err("a row is invalid");
        assert_eq!(error.failure_kind(), FailureKind::Damaged, "{error}");
    }
}

#[test]
fn a_row_of_a_later_version_is_told_from_a_damaged_one() {
    let (database, records) = in_memory();
    let acme = series("acme");
    give(&records, &acme, 1, "a");
    let change = |engine: &Engine| {
        let transaction = engine.begin_write()?;
        {
            let mut rows = transaction.open_table(NUMBERS)?;
            let mut row = rows
                .get(("acme", 1))?
                .expect("it is there")
                .value()
                .to_vec();
            let content_len = row.len() - 4;
            row[0] = 2;
            let crc = crc32c::crc32c_append(crc32c::crc32c(b"acme"), &1_u64.to_be_bytes());
            let crc = crc32c::crc32c_append(crc, &row[..content_len]);
            row[content_len..].copy_from_slice(&crc.to_be_bytes());
            rows.insert(("acme", 1), row.as_slice())?;
        }
        transaction.commit()
    };
    database.attempt(change).expect("the database works");
    let error = records.series_head(&acme).expect_err("it has version 2");
    assert_eq!(error.failure_kind(), FailureKind::Disagrees);
    let text = error.to_string();
    assert!(
        text.contains("a later version") && text.contains("the numbers of acme up to 1 are"),
        "{text}"
    );
}

#[test]
fn a_database_without_one_of_its_tables_is_of_an_earlier_build_and_left_as_it_is() {
    let (database, records) = in_memory();
    write_ledger(&records, "genesis", 10);
    drop(records);
    let remove = |engine: &Engine| {
        let transaction = engine.begin_write()?;
        assert!(transaction.delete_table(REQUESTS)?);
        transaction.commit()
    };
    database.attempt(remove).expect("the database works");
    for _ in 0..2 {
        let error =
            RecordTables::open(Arc::clone(&database)).expect_err("its keys would be unknown");
        assert_eq!(error.failure_kind(), FailureKind::Disagrees);
        assert!(
            error.to_string().contains("a build before a157b41"),
            "{error}"
        );
    }
}

#[test]
fn a_damaged_anchor_is_named_wherever_it_is_met() {
    let (database, records) = in_memory();
    records
        .write(&[anchor(0, 0), anchor(5_000_000, 0)])
        .expect("they are far apart");
    spoil(&database, ANCHORS, ("conjunction", 1, 2, 0));
    let named = "the anchor (\"conjunction\", 1, 2, 0) is corrupted";
    let key = (
        Pair {
            primary: 1,
            secondary: 2,
        },
        Tca(2_000_000),
    );
    assert_damaged(
        records.neighbours("conjunction", &mut std::iter::once(key)),
        named,
    );
    let refused = records
        .write(&[anchor(1_500_000, 1)])
        .expect_err("its neighbour is damaged");
    assert!(refused.to_string().contains(named), "{refused}");
    assert_eq!(near(&records, 5_000_000), [(5_000_000, 0)]);
}

#[test]
fn a_damaged_number_is_named_and_its_key_not_taken_for_one_that_is_free() {
    let (database, records) = in_memory();
    let (acme, other) = (series("acme"), series("other"));
    let given = give(&records, &acme, 3, "a");
    give(&records, &other, 1, "a");
    records
        .write(&[void_plan(&records, &acme, 2, "cancelled")])
        .expect("it is not void");
    let by_key = [(acme.clone(), given.mark.key)];
    spoil(&database, VOIDS, ("acme", 2));
    assert_damaged(
        records.voids(&acme, 0..=9),
        "the void of number 2 of the series acme is corrupted",
    );
    spoil(&database, NUMBER_KEYS, ("acme", given.mark.key.0));
    assert_damaged(records.given_to(&by_key), "of the series acme is corrupted");
    spoil(&database, NUMBERS, ("acme", 3));
    let named = "the numbers of acme up to 3 are corrupted";
    assert_damaged(records.series_head(&acme), named);
    assert_damaged(records.given(&acme, 0, 9), named);
    assert_damaged(records.series(None, 9), named);
    let refused = records.write(&[given_plan(&acme, 1, "b", Some(given.head()))]);
    assert!(
        refused
            .expect_err("nothing is given behind damage")
            .to_string()
            .contains(named)
    );
    assert_eq!(
        records
            .series_head(&other)
            .expect("the other series is sound")
            .map(|head| head.last),
        Some(1)
    );
}

#[test]
fn a_database_of_an_earlier_version_has_no_numbers_until_one_is_given() {
    let (database, records) = in_memory();
    let remove = |engine: &Engine| {
        let transaction = engine.begin_write()?;
        assert!(transaction.delete_table(NUMBERS)? && transaction.delete_table(NUMBER_KEYS)?);
        assert!(transaction.delete_table(VOIDS)?);
        transaction.commit()
    };
    database.attempt(remove).expect("the database works");
    drop(records);
    let (acme, records) = (
        series("acme"),
        RecordTables::open(Arc::clone(&database)).expect("it is sound"),
    );
    assert_eq!(records.series(None, 9).expect("reads"), []);
    assert_eq!(
        (
            records.given(&acme, 0, 9).expect("reads"),
            records.voids(&acme, 0..=9).expect("reads")
        ),
        (vec![], vec![])
    );
    let folder = tempfile::tempdir().expect("a temporary folder");
    assert_eq!(
        backup::copy(&database, &folder.path().join("copy"))
            .expect("copies")
            .numbers,
        0
    );
    assert_eq!(give(&records, &acme, 3, "a").last, 3);
    assert_eq!(
        backup::copy(&database, &folder.path().join("other"))
            .expect("copies")
            .numbers,
        3
    );
}

#[test]
fn a_damaged_file_is_refused_or_read_as_it_was() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("idmint.redb");
    let records = RecordTables::open(Arc::new(
        Database::create(&path, Arc::default()).expect("the folder is usable"),
    ))
    .expect("is new");
    let plans = write_ledger(&records, "genesis", 10);
    records.write(&[anchor(0, 0)]).expect("it is the first");
    drop(records);
    let whole = fs::read(&path).expect("the file is readable");

    let read = |content: &[u8]| -> Result<bool, StoreError> {
        fs::write(&path, content).expect("the file is writable");
        let records = RecordTables::open(Arc::new(Database::open(&path, Arc::default())?))?;
        records.request(KeyHash(11))?;
        let chain = records.chain(plans[0].ledger(), None, 100)?;
        let key = (
            Pair {
                primary: 1,
                secondary: 2,
            },
            Tca(0),
        );
        let found = records.neighbours("conjunction", &mut std::iter::once(key))?;
        Ok((chain, found)
            == (
                links(&plans),
                vec![vec![Anchor {
                    tca: Tca(0),
                    rank: 0,
                }]],
            ))
    };
    assert!(read(&whole).expect("it is sound"));
    for len in [0, 1, 320, 4096, 8192, whole.len() / 2, whole.len() - 4096] {
        let error = read(&whole[..len]).expect_err("it is cut");
        assert_eq!(
            error.failure_kind(),
            FailureKind::Damaged,
            "{len} bytes: {error}"
        );
        assert!(error.to_string().contains("idmint.redb"), "{error}");
    }
    // Overwrite each page that contains data with zeros.
    for (page, content) in whole
        .chunks(4096)
        .enumerate()
        .filter(|(_, content)| content.iter().any(|byte| *byte != 0))
    {
        let mut zeroed = whole.clone();
        zeroed[page * 4096..][..content.len()].fill(0);
        match read(&zeroed) {
            Ok(is_as_it_was) => assert!(is_as_it_was, "page {page} is gone, and nobody noticed"),
            Err(error) => assert_eq!(
                error.failure_kind(),
                FailureKind::Damaged,
                "page {page}: {error}"
            ),
        }
    }
}
