//! Tests of a database that lacks its last commits, while the horizon file is current. Either the
//! start is refused with a clear error, or every response is right.

use std::fs;
use std::path::Path;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::embedded::tables::LOG_LEN;
use crate::engine::OwnEngine;
use crate::failure::{FailureKind, StoreError};
use crate::kept_formats::KeptFormat;
use crate::samples::{NOW, append, create, plan, ready, write};
use crate::start::{Opened, Store};
use idmint_core::time::UnixNanos;
use idmint_records::ledger::{AppendPlan, Link};

const HORIZON: UnixNanos = UnixNanos::from_seconds(1_800_000_000);
const APPENDS: usize = 120;
const TRIALS_OF_EACH: usize = 40;
const BLOCK_LEN: usize = 4_096;
/// The byte range of the log in the database file.
const LOG: std::ops::Range<usize> = 2 * BLOCK_LEN..(2 + LOG_LEN as usize) * BLOCK_LEN;

fn open(dir: &Path, floor: Option<UnixNanos>) -> Result<Opened, StoreError> {
    OwnEngine::Embedded {
        data_dir: dir.to_owned(),
    }
    .open(0, floor)
}

fn formats() -> Vec<KeptFormat> {
    vec![KeptFormat {
        name: "snowflake".to_owned(),
        description: [].into(),
        is_minted: true,
    }]
}

fn start(dir: &Path) -> Store {
    ready(
        open(dir, None).expect("the folder is usable"),
        HORIZON,
        &formats(),
    )
}

/// The database after each append, as `kill -9` would leave it. The horizon is the one after the
/// last append.
struct History {
    databases: Vec<Vec<u8>>,
    horizon: Vec<u8>,
    chain: Vec<Link>,
    plans: Vec<AppendPlan>,
}

/// Creates a history of appends to one ledger, with some restarts.
fn history(random: &mut StdRng) -> History {
    let folder = tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a temporary folder");
    let read = |name: &str| fs::read(folder.path().join(name)).expect("the file is readable");
    let mut store = start(folder.path());
    let mut records = store.records().expect("the database works");
    let (mut databases, mut plans) = (Vec::new(), Vec::<AppendPlan>::new());
    for number in 0..APPENDS {
        let micros = NOW + u64::try_from(number).expect("small") * 1_000;
        let key = u128::try_from(number).expect("small");
        let next = match plans.last() {
            None => plan(&create("begun", key), None, micros),
            Some(last) => plan(
                &append(last.ledger(), &["a"], key),
                Some(last.head()),
                micros,
            ),
        };
        write(&*records, std::slice::from_ref(&next));
        plans.push(next);
        databases.push(read("idmint.redb"));
        if random.random_bool(0.05) {
            drop(records);
            drop(store);
            store = start(folder.path());
            records = store.records().expect("the database works");
        }
    }
    History {
        databases,
        horizon: read("horizon"),
        chain: crate::samples::links(&plans),
        plans,
    }
}

/// A way in which a file loses its end. Parts of the newest file are replaced by zeros, or by parts
/// of an older file.
type Loss = fn(&mut Vec<u8>, &[u8], &mut StdRng);

const LOSSES: [(&str, Loss); 6] = [
    ("an older file", |newest, older, _| *newest = older.to_vec()),
    ("the log of an older file", |newest, older, _| {
        newest[LOG].copy_from_slice(&older[LOG])
    }),
    (
        "the last commit and the note behind it are zero",
        |newest, _, _| {
            let is_used = |block: &usize| newest[*block..*block + 4] == *b"idml";
            let last = LOG
                .step_by(BLOCK_LEN)
                .rfind(is_used)
                .expect("a log is there");
            newest[last - BLOCK_LEN..last + BLOCK_LEN].fill(0);
        },
    ),
    ("an extent is older", |newest, older, random| {
        let len = random.random_range(4..256) * BLOCK_LEN;
        let most = older.len().min(newest.len()) / BLOCK_LEN;
        let at = random.random_range(0..most) * BLOCK_LEN;
        let end = (at + len).min(most * BLOCK_LEN);
        newest[at..end].copy_from_slice(&older[at..end]);
    }),
    ("the first part is older", |newest, older, random| {
        let end = random.random_range(1..older.len().min(newest.len()) / BLOCK_LEN) * BLOCK_LEN;
        newest[..end].copy_from_slice(&older[..end]);
    }),
    ("all but the first page is older", |newest, older, _| {
        let first = newest[..BLOCK_LEN].to_vec();
        *newest = older.to_vec();
        newest[..BLOCK_LEN].copy_from_slice(&first);
    }),
];

/// Starts on the folder, and returns the chain of events in the ledger.
fn chain_in(
    dir: &Path,
    history: &History,
    floor: Option<UnixNanos>,
) -> Result<Vec<Link>, StoreError> {
    let Opened::Again(restart) = open(dir, floor)? else {
        panic!("a folder with a horizon passes for an empty one")
    };
    let agreed = restart
        .agree_on_formats(1, &formats())
        .map_err(|error| StoreError::new(FailureKind::Damaged, error))?;
    agreed
        .records()?
        .chain(history.plans[0].ledger(), None, usize::MAX)
}

fn lay_out(dir: &Path, horizon: &[u8], database: &[u8]) {
    fs::write(dir.join("horizon"), horizon).expect("the folder is writable");
    fs::write(dir.join("idmint.redb"), database).expect("the folder is writable");
}

#[test]
fn records_that_lost_their_end_are_refused() {
    let random = &mut StdRng::seed_from_u64(1);
    let history = history(random);
    let folder = tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a temporary folder");
    let dir = folder.path();
    let newest = history.databases.last().expect("some");
    lay_out(dir, &history.horizon, newest);
    assert_eq!(
        chain_in(dir, &history, None).expect("nothing was lost"),
        history.chain
    );

    let (mut refused, mut right, mut named) = (0, 0, 0);
    for (what, lose) in LOSSES {
        for trial in 0..TRIALS_OF_EACH {
            let older = &history.databases[random.random_range(0..APPENDS - 1)];
            let mut database = newest.clone();
            lose(&mut database, older, random);
            lay_out(dir, &history.horizon, &database);
            match chain_in(dir, &history, None) {
                Ok(chain) => {
                    assert_eq!(
                        chain.len(),
                        history.chain.len(),
                        "{what}, trial {trial}: lost without a word"
                    );
                    assert_eq!(chain, history.chain, "{what}, trial {trial}");
                    right += 1;
                }
                Err(error) => {
                    assert_eq!(
                        error.failure_kind(),
                        FailureKind::Damaged,
                        "{what}, trial {trial}: {error}"
                    );
                    named += usize::from(error.to_string().contains("commit 120 was acknowledged"));
                    refused += 1;
                }
            }
        }
    }
    println!(
        "{} losses: {refused} refused, {named} of them by the last commit; {right} lost nothing",
        refused + right
    );
    assert_eq!(refused + right, LOSSES.len() * TRIALS_OF_EACH);
    assert!(
        named >= 2 * TRIALS_OF_EACH && right < TRIALS_OF_EACH,
        "{named} named, {right} right"
    );
}

#[test]
fn above_a_stated_floor_older_records_are_taken_and_known_from_then_on() {
    let history = history(&mut StdRng::seed_from_u64(2));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let dir = folder.path();
    let older = |len: usize| &history.databases[len - 1];
    lay_out(dir, &history.horizon, older(100));
    let text = chain_in(dir, &history, None)
        .expect_err("20 are missing")
        .to_string();
    assert!(
        text.contains("ends with commit 100, but commit 120 was acknowledged")
            && text.contains("--floor"),
        "{text}"
    );
    assert_eq!(
        chain_in(dir, &history, Some(HORIZON))
            .expect("the operator says so")
            .len(),
        100
    );
    assert_eq!(
        chain_in(dir, &history, None)
            .expect("the next start needs no floor")
            .len(),
        100
    );
    fs::write(dir.join("idmint.redb"), older(60)).expect("the folder is writable");
    chain_in(dir, &history, None).expect_err("40 of those are missing");
}

#[test]
fn a_horizon_of_two_blocks_is_taken_and_gets_its_third() {
    let history = history(&mut StdRng::seed_from_u64(3));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let dir = folder.path();
    lay_out(
        dir,
        &history.horizon[..2 * BLOCK_LEN],
        &history.databases[APPENDS - 1],
    );
    assert_eq!(
        chain_in(dir, &history, None).expect("nothing was lost"),
        history.chain
    );
    let third = 2 * BLOCK_LEN..;
    assert_eq!(
        fs::read(dir.join("horizon")).expect("it is there")[third.clone()],
        history.horizon[third]
    );
}
