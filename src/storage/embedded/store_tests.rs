//! What a start finds in its folder, and when it refuses.

use std::collections::BTreeMap;
use std::fs;

use super::*;

const SLOT: u32 = 3;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn open(dir: &Path) -> Result<(EmbeddedStore, FoundHorizon), OpenError> {
    EmbeddedStore::open(dir, SLOT, None)
}

fn refusal(dir: &Path) -> OpenError {
    open(dir).err().expect("the start is refused")
}

fn snowflake() -> [KeptFormat; 1] {
    let description = BTreeMap::from([("tick".to_owned(), "1ms".to_owned())]);
    [KeptFormat { name: "snowflake".to_owned(), description }]
}

/// A folder as an ordinary run leaves it, with the horizon at `horizon_unix_ns`.
fn used_folder(horizon_unix_ns: u64) -> tempfile::TempDir {
    let root = folder();
    let (mut store, _) = open(root.path()).expect("the folder is usable");
    store.raise_horizon(horizon_unix_ns).expect("the horizon is created");
    store.agree_on_formats(1, &snowflake()).expect("the formats are new");
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
    let (mut store, found) = open(root.path()).expect("the folder is usable");
    assert_eq!(found, FoundHorizon::None);
    assert!(!root.path().join("horizon").exists());
    store.raise_horizon(500).expect("the horizon is created");
    assert!(!root.path().join("idmint.redb").exists(), "the database comes after the horizon");
    store.agree_on_formats(1, &snowflake()).expect("the formats are new");
    store.raise_horizon(700).expect("the horizon is raised");
    drop(store);

    let (mut store, found) = open(root.path()).expect("the folder is usable");
    assert_eq!(found, FoundHorizon::At(700));
    assert_eq!(store.repaired(), None);
    store.agree_on_formats(1, &snowflake()).expect("the formats are equal");
    store.agree_on_formats(2, &snowflake()).expect_err("the slots are not");
}

#[test]
fn a_first_start_that_raised_nothing_leaves_a_first_start() {
    let root = folder();
    drop(open(root.path()).expect("the folder is usable"));
    assert_eq!(open(root.path()).expect("the folder is usable").1, FoundHorizon::None);
}

#[test]
#[should_panic(expected = "the database is created after the horizon")]
fn agreeing_before_the_first_raise_is_a_bug_and_panics() {
    let root = folder();
    let (mut store, _) = open(root.path()).expect("the folder is usable");
    let _ = store.agree_on_formats(1, &snowflake());
}

#[test]
fn a_first_start_that_ended_before_the_database_goes_on_from_its_horizon() {
    let root = used_folder(500);
    fs::remove_file(root.path().join("idmint.redb")).expect("the database is removed");
    let (mut store, found) = open(root.path()).expect("the horizon is enough");
    assert_eq!(found, FoundHorizon::At(500));
    store.agree_on_formats(1, &snowflake()).expect("the database is created");
}

#[test]
fn a_second_store_on_one_folder_is_locked() {
    let root = used_folder(500);
    let first = open(root.path()).expect("the folder is free");
    assert_eq!(refusal(root.path()).trouble(), Trouble::Locked);
    drop(first);
    open(root.path()).expect("the folder is free again");
}

#[test]
fn one_bad_copy_is_served_and_told_of() {
    let root = used_folder(500);
    spoil(&root, 30);
    let (store, found) = open(root.path()).expect("copy B serves");
    assert_eq!(found, FoundHorizon::At(500));
    assert!(store.repaired().is_some());
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
    assert!(matches!(error, OpenError::Horizon(HorizonError::BothCopiesDamaged { .. })), "{error}");

    let empty = used_folder(500);
    fs::write(empty.path().join("horizon"), "").expect("the horizon is emptied");
    let error = refusal(empty.path());
    assert!(matches!(error, OpenError::Horizon(HorizonError::BothCopiesDamaged { .. })), "{error}");

    let other = used_folder(500);
    let error = EmbeddedStore::open(other.path(), 4, None).err().expect("slot 3 is kept");
    assert!(matches!(error, OpenError::Horizon(HorizonError::OtherSlot { kept: 3, asked: 4, .. })), "{error}");

    for root in [missing, damaged, empty, other] {
        let error = EmbeddedStore::open(root.path(), 4, None).err().expect("still refused");
        assert_eq!(error.trouble(), Trouble::Damaged);
        assert!(error.to_string().contains("--floor"), "{error}");
        assert!(error.to_string().contains(&root.path().display().to_string()), "{error}");
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
        let (_, found) = EmbeddedStore::open(root.path(), SLOT, Some(900)).expect("the floor stands in");
        assert_eq!(found, FoundHorizon::At(900));
        assert_eq!(open(root.path()).expect("the file was written").1, FoundHorizon::At(900));
    }

    let other = used_folder(500);
    for (slot, floor, expected) in [(4, 900, 900), (5, 300, 900)] {
        let (_, found) = EmbeddedStore::open(other.path(), slot, Some(floor)).expect("the floor stands in");
        assert_eq!(found, FoundHorizon::At(expected), "what is readable is never undercut");
        let (_, found) = EmbeddedStore::open(other.path(), slot, None).expect("the slot is kept now");
        assert_eq!(found, FoundHorizon::At(expected));
    }
}

#[test]
fn a_floor_changes_nothing_beside_a_horizon_that_can_be_read() {
    let root = used_folder(500);
    for floor in [100, 900] {
        let (_, found) = EmbeddedStore::open(root.path(), SLOT, Some(floor)).expect("the horizon is good");
        assert_eq!(found, FoundHorizon::At(500));
    }
}

#[test]
fn a_damaged_database_is_refused_by_name() {
    let root = used_folder(500);
    fs::write(root.path().join("idmint.redb"), "not a database").expect("the database is spoiled");
    let error = refusal(root.path());
    assert_eq!(error.trouble(), Trouble::Damaged);
    assert!(error.to_string().contains("idmint.redb"), "{error}");
}

#[test]
fn a_horizon_that_could_not_be_created_is_not_tried_again() {
    let root = folder();
    let (mut store, _) = open(root.path()).expect("the folder is usable");
    fs::create_dir(root.path().join("horizon.new")).expect("the obstacle is made");
    assert!(matches!(store.raise_horizon(500), Err(HorizonError::NotWritten { .. })));
    fs::remove_dir(root.path().join("horizon.new")).expect("the obstacle is removed");
    assert!(matches!(store.raise_horizon(700), Err(HorizonError::Poisoned { .. })));
}
