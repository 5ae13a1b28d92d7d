//! Damages, truncates or removes state files. If other data still proves which ids were minted, the
//! service must start with a warning. Otherwise, the service must refuse to start.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use idmint_core::time::UnixTime;

use idmint_testing::ids::{SEQUENCED, SNOWFLAKE};
use idmint_testing::service::{Home, Service, idmint, run};

const COPY_LEN: usize = 4096;

fn horizon(home: &Home) -> PathBuf {
    home.data_dir().join("horizon")
}

/// Inverts one bit in each of the bytes at `offsets` of the horizon file.
fn flip(home: &Home, offsets: &[usize]) {
    let mut bytes = fs::read(horizon(home)).unwrap();
    assert_eq!(bytes.len(), 3 * COPY_LEN);
    for offset in offsets {
        bytes[*offset] ^= 0x10;
    }
    fs::write(horizon(home), bytes).unwrap();
}

/// Starts a service, mints ids, and kills the service. Returns the greatest id, and the log.
fn mint_once(command: Command) -> (u128, String) {
    let service = Service::start(command);
    service.wait_until_ready();
    let ids = service.mint("snowflake?count=50");
    let log = service.log_once_it_says("minting begins at");
    service.kill();
    (
        ids.iter()
            .map(|id| SEQUENCED[SNOWFLAKE].value(id))
            .max()
            .unwrap(),
        log,
    )
}

/// Mints ids into a new folder. Returns the folder and the greatest id.
fn mint_into_folder() -> (Home, u128) {
    let home = Home::new();
    let (newest, _) = mint_once(home.serve());
    (home, newest)
}

/// Asserts that the next start mints only ids above `newest`. Returns the log of that start.
fn assert_serves_above(command: Command, newest: u128) -> String {
    let (after, log) = mint_once(command);
    assert!(after > newest, "{after} is not above {newest}");
    log
}

fn with_floor(home: &Home, from_now: Duration) -> Command {
    let instant = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + from_now;
    let floor = UnixTime::from_nanos(i128::try_from(instant.as_nanos()).unwrap())
        .to_text(9)
        .unwrap();
    let mut command = home.serve();
    command.args(["--floor", &floor]);
    command
}

#[test]
fn a_flipped_bit_anywhere_in_one_copy_is_served_warned_of_and_repaired() {
    let (home, mut newest) = mint_into_folder();
    for in_copy in [0, 9, 15, 20, 31, 32, 2_000, 4_091, 4_095] {
        for copy in [0, COPY_LEN] {
            flip(&home, &[copy + in_copy]);
            let (after, log) = mint_once(home.serve());
            assert!(
                after > newest,
                "byte {in_copy} of the copy at {copy}: {after} is not above {newest}"
            );
            assert!(
                log.contains("repaired") && log.contains("checksum does not match"),
                "{log}"
            );
            newest = after;
        }
    }
    assert!(
        !assert_serves_above(home.serve(), newest).contains("repaired"),
        "the repair lasts"
    );
    // Damage the third block of the horizon file. It follows the two copies of the horizon, and
    // records the last commit of the records.
    flip(&home, &[2 * COPY_LEN + 19]);
    assert!(
        assert_serves_above(home.serve(), newest)
            .contains("the commit number in the horizon file is damaged")
    );
    assert!(
        !assert_serves_above(home.serve(), newest).contains("is damaged"),
        "it is made anew"
    );
}

#[test]
fn two_damaged_copies_exit_65_and_a_floor_gets_out() {
    let (home, newest) = mint_into_folder();
    flip(&home, &[20, COPY_LEN + 25]);
    let damaged = fs::read(horizon(&home)).unwrap();
    run(home.serve()).assert(65, &["both copies", "--floor"]);
    assert_eq!(
        fs::read(horizon(&home)).unwrap(),
        damaged,
        "a refused start leaves the evidence"
    );

    let log = assert_serves_above(with_floor(&home, Duration::from_secs(2)), newest);
    assert!(log.contains("starting above the stated floor"), "{log}");
    assert_serves_above(home.serve(), newest);
}

#[test]
fn a_floor_that_is_not_needed_changes_nothing() {
    let (home, newest) = mint_into_folder();
    let mut command = home.serve();
    command.args(["--floor", "1971-01-01T00:00:00Z"]);
    let log = assert_serves_above(command, newest);
    assert!(
        log.contains("the stated floor (--floor) is ignored"),
        "{log}"
    );
}

#[test]
fn a_file_cut_after_its_first_copy_is_served_and_one_cut_before_exits_65() {
    let (home, newest) = mint_into_folder();
    let whole = fs::read(horizon(&home)).unwrap();
    fs::write(horizon(&home), &whole[..COPY_LEN]).unwrap();
    let log = assert_serves_above(home.serve(), newest);
    assert!(
        log.contains("repaired") && log.contains("the file ends before it"),
        "{log}"
    );
    assert_eq!(fs::read(horizon(&home)).unwrap().len(), whole.len());

    for len in [COPY_LEN - 1, 1, 0] {
        fs::write(horizon(&home), &whole[..len]).unwrap();
        run(home.serve()).assert(65, &["both copies", "the file ends before it"]);
    }
}

#[test]
fn a_horizon_missing_beside_the_database_exits_65_and_a_floor_gets_out() {
    let (home, newest) = mint_into_folder();
    fs::remove_file(horizon(&home)).unwrap();
    run(home.serve()).assert(65, &["is missing, although a database exists", "--floor"]);
    assert!(!horizon(&home).exists(), "a refused start makes nothing up");
    assert_serves_above(with_floor(&home, Duration::from_secs(2)), newest);
}

#[test]
fn a_damaged_database_exits_65_and_names_it() {
    let (home, _) = mint_into_folder();
    let database = home.data_dir().join("idmint.redb");
    let len = fs::metadata(&database).unwrap().len();
    fs::write(&database, vec![0xA5; usize::try_from(len).unwrap()]).unwrap();
    run(home.serve()).assert(65, &["idmint.redb", "damaged"]);
}

#[test]
fn while_the_floor_is_ahead_of_the_clock_ids_are_refused_and_decoded() {
    let home = Home::new();
    let mut command = home.serve();
    command.args(["--floor", "2200-01-01T00:00:00Z"]);
    let service = Service::start(command);

    let refused = service.post("/ids/snowflake");
    assert_eq!(
        (refused.status, refused.json()["type"].as_str()),
        (503, Some("/problems/clock-behind"))
    );
    assert!(refused.header("retry-after").is_some(), "{}", refused.head);
    assert_eq!(
        service.get("/health/ready").json()["reason"],
        "clock-behind"
    );
    assert_eq!(service.get("/health/live").status, 200);
    assert_eq!(service.get("/decode/175928847299117063").status, 200);
    // A ledger does not need the horizon, so appends work. Series of numbers wait for an operator,
    // because some of their numbers may have been lost together with the horizon.
    let ready = service.get("/health/ready?for=records");
    assert_eq!(
        (ready.status, &ready.json()["records"]),
        (200, &"numbers-held".into()),
        "{}",
        ready.text()
    );
    assert_eq!(service.get("/ledgers").status, 200);
    run(idmint(&["health", "--server", &service.url()])).assert(1, &["not ready: clock-behind"]);
}
