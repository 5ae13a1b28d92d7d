//! Tests of the horizon file with flipped bytes, lost and incomplete writes, and failing syncs.

use std::fs;
use std::os::unix::fs::FileExt;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::embedded::block_file::{BLOCK_LEN, Block};
use crate::embedded::simulation::{Fault, SimulatedDisk};
use crate::failure::FailureKind;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const SLOT: u32 = 3;

fn instant(nanos: u64) -> UnixNanos {
    UnixNanos::new(nanos)
}

fn record(sequence: u64, horizon: u64) -> HorizonRecord {
    HorizonRecord {
        slot: SLOT,
        sequence,
        horizon: instant(horizon),
        floor: None,
        has_records: true,
        is_adopted: false,
    }
}

fn disk_with(a: HorizonRecord, b: HorizonRecord) -> SimulatedDisk {
    SimulatedDisk::holding(&[a.to_block(), b.to_block()], 1)
}

fn open(
    disk: &SimulatedDisk,
) -> Result<(HorizonFile<&SimulatedDisk>, Option<Damage>), HorizonError> {
    HorizonFile::read_from(disk, Path::new("horizon"), SLOT)
}

fn copies_on(disk: &SimulatedDisk) -> [Result<HorizonRecord, CopyFault>; 2] {
    [A, B].map(|copy| read_copy(&disk, copy))
}

#[test]
fn every_flipped_byte_of_either_copy_is_served_from_the_other_reported_and_repaired() {
    for at in 0..2 * BLOCK_LEN {
        let (copy, index) = if at < BLOCK_LEN { (A, 0) } else { (B, 1) };
        let disk = disk_with(record(8, 500), record(8, 500));
        disk.corrupt(index, |block| block[at % BLOCK_LEN] ^= 0x10);

        let (horizon, damage) = open(&disk).expect("the other copy serves");

        assert_eq!(horizon.horizon(), instant(500), "byte {at}");
        assert_eq!(
            damage,
            Some(Damage {
                copy,
                fault: CopyFault::WrongChecksum
            }),
            "byte {at}"
        );
        disk.power_on();
        let [a, b] = copies_on(&disk);
        assert_eq!(a, b, "byte {at}");
        assert_eq!(
            a.expect("copy A is repaired").horizon,
            instant(500),
            "byte {at}"
        );
    }
}

#[test]
fn the_same_flip_in_both_copies_is_refused_and_nothing_is_written() {
    for at in (0..BLOCK_LEN).step_by(61) {
        let disk = disk_with(record(8, 500), record(8, 500));
        disk.corrupt(0, |block| block[at] ^= 1);
        disk.corrupt(1, |block| block[at] ^= 1);
        let before = [0, 1].map(|index| disk.read_block(index).expect("the block is there"));

        let error = open(&disk).expect_err("no copy is good");

        assert!(
            matches!(error, HorizonError::BothCopiesDamaged { .. }),
            "byte {at}: {error}"
        );
        assert_eq!(error.failure_kind(), FailureKind::Damaged);
        assert_eq!(
            [0, 1].map(|index| disk.read_block(index).expect("the block is there")),
            before
        );
    }
}

#[test]
fn a_file_cut_to_one_copy_serves_and_an_empty_one_is_refused() {
    let disk = disk_with(record(8, 500), record(8, 500));
    disk.truncate(1);
    let (horizon, damage) = open(&disk).expect("copy A serves");
    assert_eq!(horizon.horizon(), instant(500));
    assert_eq!(
        damage,
        Some(Damage {
            copy: B,
            fault: CopyFault::CutOff
        })
    );
    assert_eq!(open(&disk).expect("both copies are there again").1, None);

    disk.truncate(0);
    assert!(matches!(
        open(&disk),
        Err(HorizonError::BothCopiesDamaged { .. })
    ));
}

#[test]
fn of_two_good_copies_the_later_pass_serves_and_an_interrupted_pass_is_no_damage() {
    let interrupted = [
        (record(8, 700), record(7, 500)),
        (record(8, 500), record(9, 700)),
    ];
    for (a, b) in interrupted {
        let disk = disk_with(a, b);
        let (horizon, damage) = open(&disk).expect("both copies are good");
        assert_eq!(horizon.horizon(), instant(700));
        assert_eq!(damage, None);
        let [a, b] = copies_on(&disk);
        assert_eq!(a, b);
    }
}

#[test]
fn a_first_copy_older_than_the_second_is_a_lost_write() {
    let disk = disk_with(record(7, 500), record(8, 700));
    let (horizon, damage) = open(&disk).expect("both copies are good");
    assert_eq!(horizon.horizon(), instant(700));
    assert_eq!(
        damage,
        Some(Damage {
            copy: A,
            fault: CopyFault::WriteLost {
                expected: 8,
                found: 7
            }
        })
    );
}

#[test]
fn copies_that_no_order_of_writing_explains_are_refused() {
    for (a, b) in [
        (record(8, 500), record(8, 700)),
        (record(8, 500), record(7, 700)),
    ] {
        assert!(matches!(
            open(&disk_with(a, b)),
            Err(HorizonError::CopiesDisagree { .. })
        ));
    }
}

#[test]
fn another_slot_is_refused_even_when_only_one_copy_names_it() {
    let other = HorizonRecord {
        slot: 9,
        ..record(8, 500)
    };
    for (a, b) in [
        (other, other),
        (record(8, 500), other),
        (other, record(8, 500)),
    ] {
        let error = open(&disk_with(a, b)).expect_err("slot 9 is not slot 3");
        assert!(matches!(
            error,
            HorizonError::OtherSlot {
                kept: 9,
                asked: SLOT,
                ..
            }
        ));
    }
}

#[test]
fn a_raise_is_on_the_disk_in_both_copies_when_it_returns() {
    let disk = disk_with(record(8, 500), record(8, 500));
    let (mut horizon, _) = open(&disk).expect("both copies are good");
    for value in [700, 700, 900] {
        horizon.raise(instant(value)).expect("the disk works");
        disk.power_on();
        for copy in copies_on(&disk) {
            assert_eq!(copy.expect("the copy is good").horizon, instant(value));
        }
    }
}

#[test]
#[should_panic(expected = "a horizon is never lowered")]
fn lowering_the_horizon_is_a_bug_and_panics() {
    let disk = disk_with(record(8, 500), record(8, 500));
    let (mut horizon, _) = open(&disk).expect("both copies are good");
    let _ = horizon.raise(instant(499));
}

#[test]
fn one_failed_write_or_sync_poisons_the_file_for_good() {
    for operation in 0..4 {
        for errno in [EIO, ENOSPC] {
            let disk = disk_with(record(8, 500), record(8, 500));
            let (mut horizon, _) = open(&disk).expect("both copies are good");
            disk.fail_after(operation, Fault::Error(errno));

            let error = horizon.raise(instant(700)).expect_err("the disk refuses");
            assert!(
                matches!(error, HorizonError::NotWritten { .. }),
                "operation {operation}: {error}"
            );

            // The disk works again, but the content of the file cannot be trusted.
            let error = horizon
                .raise(instant(900))
                .expect_err("the file is poisoned");
            assert!(
                matches!(error, HorizonError::Poisoned { .. }),
                "operation {operation}: {error}"
            );
            assert_eq!(horizon.horizon(), instant(500));
        }
    }
}

#[test]
fn a_repair_that_fails_is_not_served() {
    let disk = disk_with(record(8, 500), record(8, 500));
    disk.corrupt(0, |block| block[99] ^= 1);
    disk.fail_after(0, Fault::Error(EIO));
    assert!(matches!(open(&disk), Err(HorizonError::NotWritten { .. })));
}

#[test]
fn power_lost_at_any_step_of_a_raise_leaves_the_old_horizon_or_the_new() {
    let mut seen = [0, 0];
    for seed in 0..500 {
        for operation in 0..4 {
            let before = record(seed % 2, 500);
            let disk = SimulatedDisk::holding(&[before.to_block(), before.to_block()], seed);
            let (mut horizon, _) = open(&disk).expect("both copies are good");
            disk.fail_after(operation, Fault::Halt);
            horizon
                .raise(instant(700))
                .expect_err("the process is stopped");
            disk.power_on();

            let (horizon, _) = open(&disk).expect("one copy is good");
            match horizon.horizon().get() {
                500 => seen[0] += 1,
                700 => seen[1] += 1,
                other => panic!("seed {seed}, operation {operation}: {other} was never written"),
            }
        }
    }
    assert!(
        seen.iter().all(|times| *times > 100),
        "the disk is too kind: {seen:?}"
    );
}

/// The bounds that the file guarantees across several runs of the process. Each run finds a horizon
/// that is at least `acknowledged` and at most `attempted`.
struct Promise {
    /// The highest horizon for which an open or a raise has returned `Ok`.
    acknowledged: u64,
    /// The highest horizon that was ever requested.
    attempted: u64,
}

/// Simulates one run of the process. The run opens the file and raises the horizon a few times,
/// until a fault occurs at a random moment.
fn live_and_die(
    disk: &SimulatedDisk,
    random: &mut StdRng,
    promise: &mut Promise,
) -> Result<(), HorizonError> {
    let fault = [Fault::Halt, Fault::Error(EIO), Fault::Error(ENOSPC)][random.random_range(0..3)];
    disk.fail_after(random.random_range(0..14), fault);
    let (mut horizon, damage) = open(disk)?;
    let read = horizon.horizon().get();
    assert!(
        read >= promise.acknowledged,
        "{read} was read, {} was acknowledged",
        promise.acknowledged
    );
    assert!(
        read <= promise.attempted,
        "{read} was read, only {} was attempted",
        promise.attempted
    );
    assert!(
        !matches!(
            damage,
            Some(Damage {
                fault: CopyFault::WriteLost { .. },
                ..
            })
        ),
        "no write is lost on this disk, yet {damage:?}"
    );
    promise.acknowledged = read;
    for _ in 0..4 {
        let next = horizon.horizon().get() + random.random_range(0..1000);
        promise.attempted = promise.attempted.max(next);
        horizon.raise(instant(next))?;
        promise.acknowledged = next;
    }
    Ok(())
}

#[test]
fn no_fault_in_any_of_many_lives_lowers_the_horizon_or_loses_it() {
    for seed in 0..4_000 {
        let mut random = StdRng::seed_from_u64(seed);
        let first = record(0, 500);
        let disk = SimulatedDisk::holding(&[first.to_block(), first.to_block()], seed);
        let mut promise = Promise {
            acknowledged: 500,
            attempted: 500,
        };
        for life in 0..12 {
            match live_and_die(&disk, &mut random, &mut promise) {
                Ok(()) | Err(HorizonError::NotWritten { .. }) => {}
                Err(error) => panic!("seed {seed}, life {life}: {error}"),
            }
            match random.random() {
                true => disk.power_on(),
                false => disk.restart_process(),
            }
        }
    }
}

#[test]
fn a_real_file_is_created_whole_raised_reopened_and_repaired() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("horizon");
    let mut horizon = HorizonFile::create(&path, record(0, 500)).expect("the file is created");
    assert_eq!(
        fs::metadata(&path).expect("the file is there").len(),
        12_288
    );
    assert!(!folder.path().join("horizon.new").exists());
    horizon.raise(instant(700)).expect("the file is writable");
    drop(horizon);

    for copy in [A, B] {
        let file = OpenOptions::new()
            .write(true)
            .open(&path)
            .expect("the file opens");
        file.write_all_at(&[0xff; 3], copy.index() * 4096 + 25)
            .expect("three bytes are spoiled");
        let (horizon, damage) = HorizonFile::open(&path, SLOT).expect("the other copy serves");
        assert_eq!(horizon.horizon(), instant(700));
        assert_eq!(damage.map(|damage| damage.copy), Some(copy));
    }
    assert_eq!(
        HorizonFile::open(&path, SLOT)
            .expect("both copies are good")
            .1,
        None
    );
}

#[test]
fn a_leftover_of_an_unfinished_creation_is_overwritten() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("horizon");
    fs::write(folder.path().join("horizon.new"), [9; 20_000]).expect("the leftover is written");
    HorizonFile::create(&path, record(0, 500)).expect("the file is created");
    assert_eq!(
        fs::metadata(&path).expect("the file is there").len(),
        12_288
    );
}

#[test]
fn a_file_of_another_version_is_refused_whatever_the_other_copy_says() {
    let mut foreign: Block = record(8, 500).to_block();
    foreign[11] = 4;
    let checksum = crc32c::crc32c(&foreign[..4092]);
    foreign[4092..].copy_from_slice(&checksum.to_be_bytes());
    let ours = record(8, 500).to_block();
    for copies in [[foreign, ours], [ours, foreign], [foreign, foreign]] {
        let disk = SimulatedDisk::holding(&copies, 1);
        assert!(matches!(
            open(&disk),
            Err(HorizonError::UnknownVersion { version: 4, .. })
        ));
        assert_eq!(
            [0, 1].map(|index| disk.read_block(index).expect("it is there")),
            copies,
            "nothing is written"
        );
    }
}
