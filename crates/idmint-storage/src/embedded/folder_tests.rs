//! Tests of starts on existing folders, including the cases in which a start is refused.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::sync::Mutex;

use super::*;
use crate::embedded::AdoptedFolder;
use crate::samples::{assert_at_floor, ready, series};
use crate::start::{FirstStart, Restart, Store};
use idmint_core::minting::HorizonPlan;

const SLOT: u32 = 3;

fn at(nanos: u64) -> UnixNanos {
    UnixNanos::new(nanos)
}

fn plan(nanos: u64) -> HorizonPlan {
    HorizonPlan::at(at(nanos))
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn open(dir: &Path) -> Result<Opened, OpenError> {
    Folder::open(dir, SLOT, None).map(Opened::from)
}

fn first(dir: &Path) -> FirstStart {
    match open(dir).expect("the folder is usable") {
        Opened::First(first) => first,
        Opened::Again(_) => panic!("nothing was reserved"),
    }
}

fn restart(dir: &Path) -> Restart {
    match open(dir).expect("the folder is usable") {
        Opened::Again(restart) => restart,
        Opened::First(_) => panic!("a horizon is there"),
    }
}

/// Returns the horizon that a start with this floor uses.
fn found_above(dir: &Path, slot: u32, floor: Option<u64>) -> Option<UnixNanos> {
    Opened::from(Folder::open(dir, slot, floor.map(at)).expect("the start is not refused"))
        .horizon()
}

fn refusal(dir: &Path) -> OpenError {
    open(dir).err().expect("the start is refused")
}

fn snowflake() -> [KeptFormat; 1] {
    let description = BTreeMap::from([("tick".to_owned(), "1ms".to_owned())]);
    [KeptFormat {
        name: "snowflake".to_owned(),
        description,
        is_minted: true,
    }]
}

/// Starts a store in `dir` and raises its horizon to this value.
fn used(dir: &Path, horizon: u64) -> Store {
    ready(
        open(dir).expect("the folder is usable"),
        at(horizon),
        &snowflake(),
    )
}

/// Returns the folder of a node that ran without faults and reserved time up to this horizon.
fn used_folder(horizon: u64) -> tempfile::TempDir {
    let root = folder();
    drop(used(root.path(), horizon));
    root
}

fn spoil(root: &tempfile::TempDir, at: usize) {
    let path = root.path().join("horizon");
    let mut bytes = fs::read(&path).expect("the horizon is readable");
    bytes[at] ^= 0x20;
    fs::write(path, bytes).expect("the horizon is writable");
}

fn spoil_both(root: &tempfile::TempDir) {
    spoil(root, 30);
    spoil(root, 4096 + 30);
}

#[test]
fn a_first_start_finds_nothing_and_the_next_finds_the_last_raise() {
    let root = folder();
    let first = first(root.path());
    assert!(!root.path().join("horizon").exists());
    let (reserved, _) = first.reserve(plan(500)).expect("the horizon is created");
    assert!(
        !root.path().join("idmint.redb").exists(),
        "the database comes after the horizon"
    );
    let mut store = reserved
        .agree_on_formats(1, &snowflake())
        .expect("the formats are new");
    store
        .raise_horizon(plan(700))
        .expect("the horizon is raised");
    drop(store);

    let found = restart(root.path());
    assert_eq!(found.horizon(), at(700));
    drop(
        found
            .agree_on_formats(1, &snowflake())
            .expect("the formats are equal"),
    );
    assert!(
        restart(root.path())
            .agree_on_formats(2, &snowflake())
            .is_err(),
        "the slots are not"
    );
}

#[test]
fn a_first_start_that_raised_nothing_leaves_a_first_start() {
    let root = folder();
    drop(first(root.path()));
    assert_eq!(
        open(root.path()).expect("the folder is usable").horizon(),
        None
    );
}

#[test]
fn a_first_start_that_ended_before_the_database_goes_on_from_its_horizon() {
    let root = folder();
    drop(
        first(root.path())
            .reserve(plan(500))
            .expect("the horizon is created"),
    );
    let found = restart(root.path());
    assert_eq!(found.horizon(), at(500));
    drop(
        found
            .agree_on_formats(1, &snowflake())
            .expect("the database is created"),
    );
    assert!(root.path().join("idmint.redb").exists());
}

#[test]
fn a_second_store_on_one_folder_is_locked_at_every_stage_of_a_start() {
    let root = folder();
    let is_locked = || assert_eq!(refusal(root.path()).failure_kind(), FailureKind::Locked);
    let first = first(root.path());
    is_locked();
    let (reserved, _) = first.reserve(plan(500)).expect("the horizon is created");
    is_locked();
    let store = reserved
        .agree_on_formats(1, &[])
        .expect("the formats are new");
    is_locked();
    drop(store);
    let restart = restart(root.path());
    is_locked();
    let agreed = restart
        .agree_on_formats(1, &[])
        .expect("the formats are equal");
    is_locked();
    drop(agreed);
    open(root.path()).expect("the folder is free again");
}

/// Returns everything that `work` logs on this thread.
fn log_of(work: impl FnOnce()) -> String {
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);
    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("nobody panics with it").write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    // With a single subscriber, tracing asks the first thread that reaches a log line for its
    // interest, and caches the result. That thread may belong to another test, which has no
    // subscriber. A second subscriber prevents the caching.
    let _another = tracing::Dispatch::new(
        tracing_subscriber::fmt()
            .with_writer(std::io::sink)
            .finish(),
    );
    tracing::subscriber::with_default(subscriber, work);
    let bytes = log.0.lock().expect("nobody panics with it").clone();
    String::from_utf8(bytes).expect("a log is text")
}

#[test]
fn one_bad_copy_is_served_and_told_of() {
    let root = used_folder(500);
    spoil(&root, 30);
    let log = log_of(|| assert_eq!(restart(root.path()).horizon(), at(500), "copy B serves"));
    assert!(log.contains("repaired") && log.contains("copy A"), "{log}");
    assert_eq!(
        log_of(|| drop(restart(root.path()))),
        "",
        "it is good again"
    );
}

#[test]
fn a_horizon_missing_damaged_empty_or_of_another_slot_is_refused_without_a_floor() {
    let missing = used_folder(500);
    fs::remove_file(missing.path().join("horizon")).expect("the horizon is removed");
    let error = refusal(missing.path());
    assert!(matches!(error, OpenError::HorizonMissing { .. }), "{error}");

    let damaged = used_folder(500);
    spoil_both(&damaged);
    let error = refusal(damaged.path());
    assert!(
        matches!(
            error,
            OpenError::Horizon(HorizonError::BothCopiesDamaged { .. })
        ),
        "{error}"
    );

    let empty = used_folder(500);
    fs::write(empty.path().join("horizon"), "").expect("the horizon is emptied");
    let error = refusal(empty.path());
    assert!(
        matches!(
            error,
            OpenError::Horizon(HorizonError::BothCopiesDamaged { .. })
        ),
        "{error}"
    );

    let other = used_folder(500);
    let error = Folder::open(other.path(), 4, None)
        .err()
        .expect("slot 3 is kept");
    assert!(
        matches!(
            error,
            OpenError::Horizon(HorizonError::OtherSlot {
                kept: 3,
                asked: 4,
                ..
            })
        ),
        "{error}"
    );

    for root in [missing, damaged, empty, other] {
        let error = Folder::open(root.path(), 4, None)
            .err()
            .expect("still refused");
        assert_eq!(error.failure_kind(), FailureKind::Damaged);
        assert!(error.to_string().contains("--floor"), "{error}");
        assert!(
            error
                .to_string()
                .contains(&root.path().display().to_string()),
            "{error}"
        );
    }
}

#[test]
fn a_floor_stands_in_for_a_horizon_that_is_missing_damaged_or_of_another_slot() {
    let missing = used_folder(500);
    fs::remove_file(missing.path().join("horizon")).expect("the horizon is removed");
    let damaged = used_folder(500);
    spoil_both(&damaged);
    let new = folder();
    for root in [&missing, &damaged, &new] {
        let found = found_above(root.path(), SLOT, Some(900));
        assert_at_floor(found, at(900));
        let again = found_above(root.path(), SLOT, None);
        assert_eq!(again, found, "the file was written");
    }

    let other = used_folder(500);
    // A floor below the readable horizon of another slot counts as that horizon.
    let mut readable = at(900);
    for (slot, floor) in [(4, 900), (5, 300)] {
        let found = found_above(other.path(), slot, Some(floor));
        assert_at_floor(found, readable);
        let again = found_above(other.path(), slot, None);
        assert_eq!(again, found, "the slot is kept now");
        readable = found.expect("checked above");
    }
}

#[test]
fn a_floor_never_undercuts_the_newer_of_two_copies_that_differ() {
    let root = used_folder(500);
    let path = root.path().join("horizon");
    let older = fs::read(&path).expect("the horizon is readable");
    used(root.path(), 500)
        .raise_horizon(plan(900))
        .expect("the horizon is raised");
    let newer = fs::read(&path).expect("the horizon is readable");
    // A raise writes the two copies of the horizon one after the other. A crash between the two
    // writes leaves one of these files, depending on which copy was written first.
    for copies in [
        [&newer[..4096], &older[4096..]],
        [&older[..4096], &newer[4096..]],
    ] {
        fs::write(&path, copies.concat()).expect("the horizon is writable");
        // 900 is the readable horizon of the slot before.
        assert_at_floor(found_above(root.path(), 4, Some(300)), at(900));
    }
}

#[test]
fn a_database_missing_beside_a_horizon_that_knows_of_it_is_refused_without_a_floor() {
    let root = used_folder(500);
    fs::remove_file(root.path().join("idmint.redb")).expect("the database is removed");
    let error = refusal(root.path());
    assert!(
        matches!(error, OpenError::DatabaseMissing { .. }),
        "{error}"
    );
    assert_eq!(error.failure_kind(), FailureKind::Damaged);
    assert!(
        error.to_string().contains("--floor") && error.to_string().contains("idmint.redb"),
        "{error}"
    );

    let Opened::Again(found) = Folder::open(root.path(), SLOT, Some(at(300)))
        .map(Opened::from)
        .expect("a floor is stated")
    else {
        panic!("a horizon is there")
    };
    let horizon = found.horizon();
    assert_at_floor(Some(horizon), at(500));
    assert_eq!(found.floor(), Some(horizon));
    drop(
        found
            .agree_on_formats(1, &snowflake())
            .expect("the database is created anew"),
    );
    assert_eq!(
        restart(root.path()).horizon(),
        horizon,
        "the next start needs no floor"
    );
}

#[test]
fn nothing_is_raised_once_a_file_was_removed_or_replaced() {
    type Displace = fn(&Path) -> std::io::Result<()>;
    let ways: [(&str, Displace); 6] = [
        ("horizon removed", |dir| {
            fs::remove_file(dir.join("horizon"))
        }),
        ("database removed", |dir| {
            fs::remove_file(dir.join("idmint.redb"))
        }),
        ("lock removed", |dir| fs::remove_file(dir.join("lock"))),
        ("horizon replaced", |dir| {
            fs::copy(dir.join("horizon"), dir.join("copy"))?;
            fs::rename(dir.join("copy"), dir.join("horizon"))
        }),
        ("horizon written to", |dir| {
            fs::write(dir.join("horizon"), [0; 8192])
        }),
        ("folder replaced", |dir| {
            fs::rename(dir, dir.with_extension("old"))?;
            fs::create_dir(dir)
        }),
    ];
    for (what, displace) in ways {
        let root = folder();
        let dir = root.path().join("data");
        let mut store = used(&dir, 500);
        store
            .raise_horizon(plan(600))
            .expect("nothing was done to the folder");
        displace(&dir).expect("it can be displaced");
        let error = store.raise_horizon(plan(700)).expect_err(what);
        assert_eq!(
            error.failure_kind(),
            FailureKind::Damaged,
            "{what}: {error}"
        );
    }
}

#[test]
fn nothing_is_answered_from_a_database_that_was_removed() {
    let root = folder();
    let store = used(root.path(), 500);
    let records = store.records().expect("they are there");
    records
        .ledgers(None, 1)
        .expect("the database is in its place");
    fs::remove_file(root.path().join("idmint.redb")).expect("the database is removed");
    assert!(
        records.ledgers(None, 1).is_err(),
        "the next start would not find it"
    );
}

#[test]
fn a_floor_changes_nothing_beside_a_horizon_that_can_be_read() {
    let root = used_folder(500);
    for floor in [100, 900] {
        assert_eq!(
            found_above(root.path(), SLOT, Some(floor)),
            Some(at(500)),
            "the horizon is good"
        );
    }
}

#[test]
fn a_damaged_database_is_refused_by_name() {
    let root = used_folder(500);
    fs::write(root.path().join("idmint.redb"), "not a database").expect("the database is spoiled");
    let error = refusal(root.path());
    assert_eq!(error.failure_kind(), FailureKind::Damaged);
    assert!(error.to_string().contains("idmint.redb"), "{error}");
}

#[test]
fn a_horizon_that_could_not_be_created_ends_the_start() {
    let root = folder();
    let first = first(root.path());
    fs::create_dir(root.path().join("horizon.new")).expect("the obstacle is made");
    // The error consumes the store, because it is unknown whether the file exists. So this process
    // cannot retry.
    let error = first.reserve(plan(500)).err().expect("the disk refuses");
    assert_eq!(error.failure_kind(), FailureKind::NotUsable);
    assert!(
        error.to_string().contains("cannot make the horizon"),
        "{error}"
    );
    fs::remove_dir(root.path().join("horizon.new")).expect("the obstacle is removed");
    assert_eq!(
        open(root.path()).expect("the lock is given back").horizon(),
        None
    );
}

#[test]
fn a_folder_with_either_mark_of_an_adoption_is_refused_and_no_floor_helps() {
    let root = folder();
    drop(used(root.path(), 500));
    let [note_at, horizon_at] = ["adoption.json", "horizon"].map(|name| root.path().join(name));
    let note = AdoptionNote::begun(
        "7".repeat(32),
        "default".to_owned(),
        vec!["http://etcd-0:2379".to_owned()],
    );
    let assert_adopted = |is_noted: bool| {
        for (slot, floor) in [
            (SLOT, None),
            (SLOT, Some(at(9_000))),
            (SLOT + 1, Some(at(9_000))),
        ] {
            let refused = Folder::open(root.path(), slot, floor)
                .err()
                .expect("the start is refused");
            assert_eq!(refused.failure_kind(), FailureKind::Disagrees, "{refused}");
            assert!(
                matches!(&refused, OpenError::Adopted { note, .. } if note.is_some() == is_noted),
                "{refused}"
            );
            assert_eq!(
                refused
                    .to_string()
                    .contains("fleet default at http://etcd-0:2379"),
                is_noted,
                "{refused}"
            );
        }
    };
    // The adoption ended between its two writes, so its note exists and the horizon is unchanged.
    note.write(&note_at).expect("the folder is writable");
    assert_adopted(true);
    let mut adopted = AdoptedFolder::open(root.path()).expect("it is whole");
    assert_eq!((adopted.note(), adopted.horizon()), (Some(&note), at(500)));
    adopted
        .write_note(note.clone())
        .expect("the folder is writable");
    drop(adopted);
    assert_adopted(true);
    let bytes = fs::read(&horizon_at).expect("it is there");
    assert_eq!(
        [8, 4_096 + 8].map(|copy| &bytes[copy..copy + 4]),
        [[0, 0, 0, 3]; 2],
        "earlier programs refuse version 3"
    );
    fs::remove_file(&note_at).expect("it is there");
    assert_adopted(false);
    note.write(&note_at).expect("the folder is writable");
    fs::write(&horizon_at, [7; 8_192]).expect("the folder is writable");
    assert_adopted(true);
    fs::write(&note_at, "{}").expect("the folder is writable");
    assert_eq!(refusal(root.path()).failure_kind(), FailureKind::Damaged);
}

#[test]
fn a_single_node_begins_where_a_fleet_was_only_above_a_floor_and_above_all_that_is_known_of_the_fleet()
 {
    let root = folder();
    let leave = |namespace: &str, text: &str| {
        let file =
            crate::files::CheckedFile::at(root.path().join(format!("high-water-{namespace}")));
        file.write(text).expect("the folder is writable");
    };
    let known = |h_ms: u64| {
        format!(
            r#"{{"v":1,"fleet":"{}","floor_ms":5,"at_ms":7,"revision":9,"slots":{{"3":{{"h_ms":{h_ms},"revision":8}}}}}}"#,
            "0".repeat(32)
        )
    };
    leave("ours", &known(600));
    let error = refusal(root.path());
    assert_eq!(error.failure_kind(), FailureKind::Disagrees);
    let text = error.to_string();
    assert!(
        text.contains("high-water-ours")
            && text.contains("--floor")
            && text.contains("storage.data_dir"),
        "{text}"
    );
    assert!(!root.path().join("horizon").exists(), "nothing was begun");

    leave("theirs", &known(700));
    let found = found_above(root.path(), SLOT, Some(900_000_000));
    assert_at_floor(found, at(900_000_000));
    let again = found_above(root.path(), SLOT, None);
    assert_eq!(again, found, "it has a horizon of its own now");
    fs::remove_file(root.path().join("horizon")).expect("it is there");
    // The fleet is known to have minted up to 700 ms.
    let found = found_above(root.path(), SLOT, Some(650_000_000));
    assert_at_floor(found, at(700_000_000));
    fs::remove_file(root.path().join("horizon")).expect("it is there");
    leave("theirs", "nothing that can be read");
    let found = found_above(root.path(), SLOT, Some(650_000_000));
    assert_at_floor(found, at(650_000_000));
    fs::remove_file(root.path().join("horizon")).expect("it is there");
    assert!(matches!(
        refusal(root.path()),
        OpenError::FormerFleet { .. }
    ));
    for namespace in ["ours", "theirs"] {
        fs::remove_file(root.path().join(format!("high-water-{namespace}"))).expect("it is there");
    }
    fs::write(root.path().join("high-water-ours.idmint-7"), "").expect("the folder is writable");
    drop(first(root.path()));
}

#[test]
fn a_folder_whose_numbers_wait_since_a_restore_is_not_adopted_before_they_are_resumed() {
    let root = used_folder(900_000_000);
    drop(AdoptedFolder::open(root.path()).expect("the control is not restored"));
    fs::remove_file(root.path().join("horizon")).expect("it is there");
    let restored = || {
        let folder = Folder::open(root.path(), SLOT, Some(at(950_000_000)));
        Opened::from(folder.expect("the floor stands in"))
    };
    // Simulate a start that ended before it could put the numbers on hold.
    drop(restored());
    let refused = || {
        let error = AdoptedFolder::open(root.path()).err();
        error.expect("the numbers wait").to_string()
    };
    assert!(refused().contains("idmint numbers resume"), "{}", refused());

    let store = ready(restored(), at(960_000_000), &snowflake());
    let records = store.records().expect("the folder is usable");
    drop(store);
    assert!(records.is_held(&series("acme")).expect("it is readable"));
    drop(records);
    assert!(refused().contains("idmint numbers resume"), "{}", refused());

    let store = used(root.path(), 970_000_000);
    let records = store.records().expect("the folder is usable");
    records.end_hold(None).expect("the folder is writable");
    drop((records, store));
    drop(AdoptedFolder::open(root.path()).expect("the numbers are resumed"));
}

#[test]
fn a_second_restore_with_the_same_floor_holds_numbers_that_were_resumed_after_the_first() {
    let root = used_folder(900_000_000);
    // Agree on the formats, which sets the hold, but do not raise the horizon.
    let restart_with_floor = |floor: Option<u64>| {
        let folder = Folder::open(root.path(), SLOT, floor.map(at)).expect("the folder is usable");
        let Folder::Reserved(folder) = folder else {
            panic!("a horizon is there");
        };
        let ready = folder.agree_on_formats(1, &snowflake());
        let ready = ready.expect("no format changed");
        ready.records().expect("the folder is usable")
    };
    for restore in 0..20 {
        fs::remove_file(root.path().join("horizon")).expect("it is there");
        let records = restart_with_floor(Some(950_000_000));
        let is_held = || records.is_held(&series("acme")).expect("it is readable");
        assert!(is_held(), "restore {restore}");
        records.end_hold(None).expect("the folder is writable");
        assert!(!is_held(), "restore {restore}");
        drop(records);
        let records = restart_with_floor(None);
        let is_held = records.is_held(&series("acme")).expect("it is readable");
        assert!(!is_held, "a restart after restore {restore}");
    }
}
