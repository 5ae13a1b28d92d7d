//! Checks `idmint status` after a clock jump and with a full disk. `tests/process/status.rs` covers
//! a healthy service, and a service whose clock is below its floor. The tests in `fleet/` cover
//! fleets.

use crate::appending::begin;
use crate::small_disk::SmallDisk;
use crate::wall_clock::WallClock;
use idmint_testing::http1::{Client, post_json};
use idmint_testing::service::{Ended, Home, Service, idmint, run, serve_from, until};

fn status(service: &Service) -> Ended {
    run(idmint(&["status", "--server", &service.url()]))
}

/// Asserts the exit code of `idmint status`, the lines that it prints about the service, and its
/// advice.
#[track_caller]
pub(crate) fn assert_status_says(service: &Service, code: i32, lines: &[&str], advice: &[&str]) {
    let ended = status(service);
    println!("{}{}", ended.out, ended.err);
    ended.assert(code, advice);
    for line in lines {
        assert!(ended.out.contains(line), "{line:?} is not in {}", ended.out);
    }
}

#[test]
fn a_clock_that_was_never_set_is_told_with_what_helps() {
    let home = Home::new();
    let wall = WallClock::of(&home);
    wall.set(WallClock::in_1970());
    let service = wall.start(home.serve());
    let lines = [
        "mints    no, clock-jumped",
        "records  clock-jumped",
        "why      ",
    ];
    assert_status_says(
        &service,
        1,
        &lines,
        &[
            "mints no sequenced ids",
            "correct the clock",
            "\"Not ready\"",
        ],
    );
    wall.set(0);
    service.wait_until_ready();
    assert_status_says(&service, 0, &["mints    yes", "records  ready"], &[]);
}

/// The service continues to mint with a full disk, and notices the disk only when it writes. The
/// test therefore repeats the command until it reports the disk.
#[test]
fn a_full_disk_is_told_with_what_helps_while_ids_are_minted() {
    let disk = SmallDisk::empty(4);
    let service = Service::start(disk.beside(&serve_from(&disk.path().join("data"))));
    service.wait_until_ready();
    let ledger = begin(&service, 1).remove(0).id;
    disk.fill();
    let events = vec![r#"{"event":"Long","entities":{}}"#; 1_000].join(",");
    let order = format!(r#"{{"ledger":"{ledger}","events":[{events}]}}"#);
    let mut key = 0;
    let told = until("it is told", || {
        key += 1;
        let append = post_json(
            "/ids/evently",
            &format!("idempotency-key: {key}\r\n"),
            &order,
        );
        Client::connect(service.address()).exchange(append);
        Some(status(&service)).filter(|ended| ended.status.code() != Some(0))
    });
    println!("{}{}", told.out, told.err);
    told.assert(
        1,
        &[
            "stores no events",
            "free space outside storage.data_dir",
            "\"Records unavailable\"",
        ],
    );
    assert!(
        told.out.contains("mints    yes") && told.out.contains("records  storage-unavailable"),
        "{}",
        told.out
    );
}
