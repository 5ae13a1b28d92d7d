//! Tests that flip one bit anywhere in the data folder. Either every response is still right, or
//! the folder is refused with a clear error.
//!
//! The seed determines the bits. The bits are flipped in the folder of a process that stopped
//! cleanly, and in the folder of one that was killed. A failure reports the file and the position
//! of the bit. `FLIPS=20000 FLIPS_SEED=7 cargo test --lib flips` tries more bits from another seed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::embedded::tables::LOG_LEN;
use crate::engine::OwnEngine;
use crate::failure::{FailureKind, StoreError};
use crate::kept_formats::{FormatsError, KeptFormat};
use crate::records::{LedgerSummary, RecordPlan, RecordStore, StoredAppend, WriteError};
use crate::samples::{NOW, anchor, append, at, create, plan, ready, write};
use crate::start::Opened;
use idmint_core::time::UnixNanos;
use idmint_records::conjunction::{Anchor, Pair, Tca};
use idmint_records::ledger::{Head, KeyHash, LedgerId, Link};

const FLIPS: u32 = 2_000;
const HORIZON: UnixNanos = UnixNanos::from_seconds(1_800_000_000);
const KEYS: u128 = 600;
/// The key of an append so long that it is stored in several rows.
const LONG: u128 = 300;
const FILES: [&str; 3] = ["horizon", "idmint.redb", "lock"];
const BLOCK_BITS: u64 = 4_096 * 8;
/// The blocks that contain the log in the database file.
const LOG_BLOCKS: std::ops::Range<u64> = 2..2 + LOG_LEN as u64;
/// The blocks that describe the database. These blocks are the head, the checksums of the engine's
/// first page, the first block of other checksums, and the engine's first page.
const FIRST_BLOCKS: [u64; 4] = [0, 1, LOG_BLOCKS.end, LOG_BLOCKS.end + 1];
/// The number of bits at the start of the engine's first page that select one of two commits and
/// describe both.
const HEADER_BITS: u64 = 320 * 8;

/// The content of a folder: its files by name.
type Image = BTreeMap<&'static str, Vec<u8>>;

/// The results of all read operations of a store.
#[derive(Debug, PartialEq)]
struct Answers {
    ledgers: Vec<LedgerSummary>,
    chains: Vec<Vec<Link>>,
    requests: Vec<Option<(StoredAppend, Vec<Link>)>>,
    anchors: Vec<Vec<Anchor>>,
}

/// The outcome of one flip.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum Outcome {
    /// Every response is right, and later writes succeed.
    Right,
    /// The start is refused with exit code 65.
    RefusedAtStart,
    /// A request is refused with a 5xx status.
    RefusedInUse,
}

fn formats() -> Vec<KeptFormat> {
    let description = BTreeMap::from([("rule".to_owned(), "sequenced".to_owned())]);
    vec![KeptFormat {
        name: "snowflake".to_owned(),
        description,
        is_minted: true,
    }]
}

fn open(dir: &Path) -> Result<Opened, StoreError> {
    OwnEngine::Embedded {
        data_dir: dir.to_owned(),
    }
    .open(0, None)
}

fn image(dir: &Path) -> Image {
    FILES
        .map(|name| {
            (
                name,
                fs::read(dir.join(name)).expect("the file is readable"),
            )
        })
        .into()
}

/// Returns the content of a folder in two states: after a killed process, and after a clean stop.
fn images() -> [(&'static str, Image); 2] {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = ready(
        open(folder.path()).expect("the folder is empty"),
        HORIZON,
        &formats(),
    );
    let records = store.records().expect("the database works");
    let mut heads = Vec::new();
    for key in 0..KEYS {
        let micros = NOW + u64::try_from(key).expect("small") * 1_000;
        let events: &[&str] = if key == LONG {
            &["a"; 1_000]
        } else {
            &["a", "b"]
        };
        let request = match heads.len() {
            0..3 => create(&format!("ledger {key}"), key),
            _ => append(heads[usize::try_from(key % 3).expect("small")], events, key),
        };
        let head = records
            .head(request.ledger_at(at(micros)))
            .expect("readable");
        let planned = plan(&request, head, micros);
        if heads.len() < 3 {
            heads.push(planned.ledger());
        }
        if key % 50 == 0 || head.is_none() || key + 3 > KEYS {
            write(&*records, std::slice::from_ref(&planned));
        } else {
            let second = i64::try_from(key).expect("small") * 5_000_000;
            records
                .write(&[RecordPlan::Append(planned), anchor(second, 0)])
                .expect("nothing stands against it");
        }
    }
    let killed = image(folder.path());
    drop(records);
    drop(store);
    [("killed", killed), ("closed", image(folder.path()))]
}

fn ask(records: &dyn RecordStore) -> Result<Answers, StoreError> {
    let ledgers = records.ledgers(None, 10)?;
    let chain = |ledger: &LedgerSummary| records.chain(ledger.head.id.ledger(), None, usize::MAX);
    let request = |key| match records.request(KeyHash(key))? {
        Some(done) => records.append(done.last),
        None => Ok(None),
    };
    let pair = Pair {
        primary: 1,
        secondary: 2,
    };
    let mut times =
        (0..KEYS).map(|key| (pair, Tca(i64::try_from(key).expect("small") * 5_000_000)));
    Ok(Answers {
        chains: ledgers.iter().map(chain).collect::<Result<_, _>>()?,
        ledgers,
        requests: (0..=KEYS).map(request).collect::<Result<_, _>>()?,
        anchors: records.neighbours("conjunction", &mut times)?,
    })
}

/// Starts a node on the folder, reads everything, and appends to a ledger.
fn try_out(dir: &Path, truth: Option<&Answers>) -> Result<(Answers, Head), (Outcome, StoreError)> {
    let at_start = |error: StoreError| (Outcome::RefusedAtStart, error);
    let opened = open(dir).map_err(at_start)?;
    let Opened::Again(restart) = opened else {
        panic!("a folder with a horizon passes for an empty one")
    };
    assert_eq!(restart.horizon(), HORIZON, "another horizon");
    let agreed = restart
        .agree_on_formats(1, &formats())
        .map_err(|error| match error {
            FormatsError::Store(error) => at_start(error),
            other => panic!("the formats pass for others: {other}"),
        })?;
    let records = agreed.records().map_err(at_start)?;
    let in_use = |error: StoreError| (Outcome::RefusedInUse, error);
    let answers = ask(&*records).map_err(in_use)?;
    assert!(
        truth.is_none_or(|truth| *truth == answers),
        "another answer"
    );
    let ledger: LedgerId = answers.ledgers[0].head.id.ledger();
    let next = plan(
        &append(ledger, &["next"], KEYS),
        Some(answers.ledgers[0].head),
        NOW + 86_400_000_000,
    );
    records
        .write(&[RecordPlan::Append(next.clone())])
        .map_err(|error| match error {
            WriteError::Store(error)
            | WriteError::NotWritten(error)
            | WriteError::TooLong(error) => in_use(error),
            WriteError::Stale => panic!("what was read well does not hold"),
        })?;
    assert_eq!(records.head(ledger).map_err(in_use)?, Some(next.head()));
    Ok((answers, next.head()))
}

/// Starts a node on the folder a second time, after an append.
fn try_again(dir: &Path, head: Head) -> Result<(), (Outcome, StoreError)> {
    let at_start = |error: StoreError| (Outcome::RefusedAtStart, error);
    let Opened::Again(restart) = open(dir).map_err(at_start)? else {
        panic!("the folder passes for an empty one")
    };
    let agreed = restart
        .agree_on_formats(1, &formats())
        .expect("they are what they were");
    let records = agreed.records().map_err(at_start)?;
    assert_eq!(
        records
            .head(head.id.ledger())
            .map_err(|error| (Outcome::RefusedInUse, error))?,
        Some(head)
    );
    Ok(())
}

/// The blocks of a file, each with its offset.
type Blocks<'a> = Vec<(u64, &'a [u8])>;

/// Returns the blocks of each file that contain data. Most of a database file is a log of zeros.
fn blocks_of(image: &Image) -> Vec<(&'static str, Blocks<'_>)> {
    let blocks = |content| (0..).step_by(4_096).zip(<[u8]>::chunks(content, 4_096));
    let of_file = |content| {
        blocks(content)
            .filter(|(_, block)| block.iter().any(|byte| *byte != 0))
            .collect()
    };
    image
        .iter()
        .map(|(name, content)| (*name, of_file(content)))
        .collect()
}

fn lay_out(image: &Image, blocks: &[(&'static str, Blocks<'_>)], dir: &Path) {
    for (name, blocks) in blocks {
        let file = File::create(dir.join(name)).expect("the file is writable");
        file.set_len(u64::try_from(image[name].len()).expect("small"))
            .expect("the file is writable");
        for (at, block) in blocks {
            file.write_all_at(block, *at).expect("the file is writable");
        }
    }
}

/// Flips one bit in a file of the folder.
fn flip(image: &Image, dir: &Path, name: &str, bit: u64) {
    let byte = image[name][usize::try_from(bit / 8).expect("small")] ^ (1 << (bit % 8));
    let file = File::options()
        .write(true)
        .open(dir.join(name))
        .expect("the file is there");
    file.write_all_at(&[byte], bit / 8)
        .expect("the file is writable");
}

/// Draws a random bit. An eighth of the draws are from the small files, a quarter from the blocks
/// that describe the database, and a quarter from its log. The rest are from other data.
fn draw(image: &Image, random: &mut StdRng) -> (&'static str, u64) {
    let database = &image["idmint.redb"];
    let bits = u64::try_from(database.len()).expect("small") * 8;
    let within = match random.random_range(0..8) {
        0 => {
            let name = FILES[if random.random_bool(0.9) { 0 } else { 2 }];
            return (
                name,
                random.random_range(0..u64::try_from(image[name].len()).expect("small") * 8),
            );
        }
        1 | 2 => {
            let first = FIRST_BLOCKS[random.random_range(0..FIRST_BLOCKS.len())] * BLOCK_BITS;
            first..first + HEADER_BITS
        }
        3 | 4 => LOG_BLOCKS.start * BLOCK_BITS..LOG_BLOCKS.end * BLOCK_BITS,
        _ => LOG_BLOCKS.end * BLOCK_BITS..bits,
    };
    loop {
        let bit = random.random_range(within.clone());
        let chunk = usize::try_from(bit / 8 / 64).expect("small") * 64;
        if database[chunk..(chunk + 64).min(database.len())]
            .iter()
            .any(|byte| *byte != 0)
        {
            break ("idmint.redb", bit);
        }
    }
}

#[test]
fn no_flipped_bit_of_the_folder_gives_a_wrong_answer_or_ends_the_process_by_a_panic() {
    let number = |name: &str, default| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let (flips, seed) = (number("FLIPS", FLIPS), number("FLIPS_SEED", 1));
    let random = &mut StdRng::seed_from_u64(u64::from(seed));
    // Use a file system in memory. Each flip causes about ten syncs, and no result depends on the
    // disk.
    let folder = tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a temporary folder");
    let images = images();
    let mut counts = BTreeMap::<(&str, &str, Outcome), u32>::new();
    let blocks = images.each_ref().map(|(_, image)| blocks_of(image));
    lay_out(&images[0].1, &blocks[0], folder.path());
    let (truth, _) = try_out(folder.path(), None).expect("it is sound");
    assert_eq!(
        truth.requests.iter().flatten().count(),
        usize::try_from(KEYS).expect("small")
    );
    for nth in 0..flips {
        let of_state = usize::try_from(nth % 2).expect("small");
        let (state, image) = &images[of_state];
        let (name, bit) = draw(image, random);
        lay_out(image, &blocks[of_state], folder.path());
        flip(image, folder.path(), name, bit);
        let tried = || {
            try_out(folder.path(), Some(&truth))
                .and_then(|(_, head)| try_again(folder.path(), head))
        };
        let outcome = match catch_unwind(AssertUnwindSafe(tried)) {
            Ok(Ok(())) => Outcome::Right,
            Ok(Err((outcome, error))) => {
                assert_eq!(
                    error.failure_kind(),
                    FailureKind::Damaged,
                    "bit {bit} of {name}, {state}: {error}"
                );
                assert!(
                    error.to_string().contains(name),
                    "bit {bit} of {name}, {state}, is not named: {error}"
                );
                outcome
            }
            Err(_) => panic!(
                "bit {bit} of {name}, {state}, was not noticed, or ended in a panic; it is said above"
            ),
        };
        *counts.entry((state, name, outcome)).or_default() += 1;
    }
    println!("{flips} flips, none silently wrong: {counts:#?}");
    let of = |outcome| {
        counts
            .iter()
            .filter(|(key, _)| key.2 == outcome)
            .map(|(_, count)| count)
            .sum::<u32>()
    };
    assert_eq!(
        of(Outcome::Right) + of(Outcome::RefusedAtStart) + of(Outcome::RefusedInUse),
        flips
    );
    assert!(
        of(Outcome::RefusedAtStart) > flips / 10,
        "the flips hit nothing: {counts:?}"
    );
    assert!(
        of(Outcome::Right) > flips / 10,
        "everything is refused: {counts:?}"
    );
    // With debug assertions, the engine reads all of its pages when it is opened, so all damage is
    // found at the start.
    let is_found_in_use = of(Outcome::RefusedInUse) > flips / 50;
    assert!(
        is_found_in_use || cfg!(debug_assertions),
        "no page was found damaged when it was read: {counts:?}"
    );
}
