//! Checks that random ids increase as their format promises, for any number of ids, and that they
//! are as random as promised.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use idmint_core::id::{Format, FormatDefinition, Monotonic, PRESETS};
use idmint_core::minting::{Mint, MintSettings, Minter, Randomness};
use idmint_core::time::{Clock, ManualClock, UnixNanos};

/// The number of ids that are computed together, as in a response.
const ROW: usize = 512;

fn minter(like: &str, mode: Monotonic, clock: Clock, randomness: Randomness) -> Arc<Minter> {
    let preset = PRESETS.iter().find(|preset| preset.name == like).unwrap();
    let mut table: toml::Table = preset.toml.parse().unwrap();
    table.insert("monotonic".to_owned(), mode.name().into());
    let format: Format = FormatDefinition::from_table(like, table)
        .unwrap()
        .compile(like)
        .unwrap();
    let wait_max = Duration::from_millis(250);
    let settings = MintSettings {
        wait_max,
        lead_max: Duration::from_millis(5),
        window: wait_max,
        shard: 0,
    };
    Mint::new(Arc::new(clock), settings).add_random(Arc::new(format), randomness)
}

/// Mints a response of `count` ids, and asserts that each id is greater than the previous one.
/// Returns the first and the last id.
fn mint_ascending(minter: &Minter, count: u32) -> (u128, u128) {
    let request = minter
        .request(NonZeroU32::new(count).unwrap(), None)
        .unwrap();
    let mut batch = minter.reserve(&request).unwrap().batch;
    let (mut ids, mut first, mut last, mut minted) = ([0; ROW], None, None, 0);
    while let row @ 1.. = batch.fill(&mut ids) {
        for id in &ids[..row] {
            assert!(last < Some(*id), "{id} came after {last:?}");
            last = Some(*id);
        }
        first = first.or(Some(ids[0]));
        minted += row;
    }
    assert_eq!(minted, usize::try_from(count).unwrap());
    (first.unwrap(), last.unwrap())
}

/// Mints many responses of different sizes, some of them large.
fn mint_many(like: &str, mode: Monotonic) {
    let hand = ManualClock::at(UnixNanos::from_seconds(1_800_000_000));
    let minter = minter(like, mode, hand.clock(), Randomness::Thread);
    let sizes = (0..10_000)
        .map(|at| 1 + at * 7_919 % 1_000)
        .chain([100_000; 100])
        .chain([10_000_000]);
    let mut last_of_all = 0;
    for (at, count) in sizes.enumerate() {
        let (first, last) = mint_ascending(&minter, count);
        assert!(
            !mode.has_parts() || last_of_all < first,
            "answer {at} of {like}, {}",
            mode.name()
        );
        last_of_all = last;
        // Advance by zero sometimes, so that several responses have the same time.
        hand.advance(Duration::from_nanos(u64::try_from(at % 3).unwrap() * 300));
    }
}

#[test]
fn answers_of_one_to_ten_million_ids_ascend_by_the_clock() {
    mint_many("uuid7", Monotonic::Clock);
}

#[test]
fn answers_of_one_to_ten_million_ids_ascend_by_batch() {
    mint_many("ulid", Monotonic::Batch);
}

#[test]
fn answers_of_one_to_ten_million_ids_ascend_by_process() {
    mint_many("firebase", Monotonic::Process);
}

#[test]
fn lone_ids_of_one_process_ascend_in_each_of_its_threads_and_none_comes_twice() {
    const THREADS: usize = 4;
    const IDS: usize = 100_000;
    let still = || ManualClock::at(UnixNanos::from_seconds(1_800_000_000)).clock();
    for (like, mode) in [("uuid7", Monotonic::Clock), ("ulid", Monotonic::Process)] {
        for clock in [Clock::system(), still()] {
            let minter = minter(like, mode, clock, Randomness::Thread);
            let mint = || {
                (0..IDS)
                    .map(|_| mint_ascending(&minter, 1).0)
                    .collect::<Vec<_>>()
            };
            let of_threads: Vec<Vec<u128>> = thread::scope(|scope| {
                let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(mint)).collect();
                threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap())
                    .collect()
            });
            assert!(
                of_threads
                    .iter()
                    .all(|ids| ids.is_sorted_by(|one, next| one < next)),
                "{like}"
            );
            let mut all = of_threads.concat();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), THREADS * IDS, "{like}");
        }
    }
}

#[test]
fn each_random_bit_of_what_ascends_is_one_as_often_as_zero() {
    let formats = [
        ("uuid7", Monotonic::Clock),
        ("ulid", Monotonic::Batch),
        ("ulid", Monotonic::Process),
    ];
    // Use a fixed seed, so that an improbable outcome does not make the test fail once in a while.
    for ((like, mode), bits) in formats.into_iter().zip([62, 80, 80]) {
        let hand = ManualClock::at(UnixNanos::from_seconds(1_800_000_000));
        let minter = minter(like, mode, hand.clock(), Randomness::seeded(7));
        let mut ones = vec![0; bits];
        let mut ids = 0;
        // The most significant random bits depend on the response, so mint many responses.
        for count in [1; 10_000].into_iter().chain([3, 100].repeat(50)) {
            let request = minter
                .request(NonZeroU32::new(count).unwrap(), None)
                .unwrap();
            let mut batch = minter.reserve(&request).unwrap().batch;
            let mut row = [0; ROW];
            while let of_row @ 1.. = batch.fill(&mut row) {
                for id in &row[..of_row] {
                    ones.iter_mut()
                        .enumerate()
                        .for_each(|(bit, ones)| *ones += id >> bit & 1);
                }
                ids += u128::try_from(of_row).unwrap();
            }
            hand.advance(Duration::from_millis(1));
        }
        // Except with `Monotonic::Batch`, the ids of one response are in the same part of a tick.
        // Their twelve most significant bits are therefore equal, and give fewer independent
        // samples.
        for (bit, ones) in ones.iter().enumerate() {
            let percent = if bit + 12 < bits || mode == Monotonic::Batch {
                4
            } else {
                15
            };
            let off = (ones * 2).abs_diff(ids) * 100;
            assert!(
                off < ids * percent,
                "{like} {}, bit {bit}: {ones} of {ids}",
                mode.name()
            );
        }
    }
}
