//! Checks a service that is stopped or cannot continue. It must respond to all accepted requests,
//! and exit with the right code.

use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use idmint_testing::http1::{Client, request};
use idmint_testing::ids::assert_no_id_twice;
use idmint_testing::load::{End, Load, assert_only_exhaustion_was_seen, into_received};
use idmint_testing::loopback::address_of_its_own;
use idmint_testing::service::{Home, Service, Signal, idmint, until, without_size_signal};

/// Sends the signal to a service under load, and then restarts the service. No response may be cut
/// off, and no id may be minted twice.
fn no_answer_is_lost(signal: Signal, farewell: &str) {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let load = Load::fresh(service.address());
    std::thread::sleep(Duration::from_millis(700));
    load.wait_until_each_has_ids();
    service.send(signal);
    let minted = load.join();
    service
        .wait()
        .assert(0, &[farewell, "every request got its response"]);
    assert_only_exhaustion_was_seen(&minted);
    for caller in &minted {
        assert_eq!(
            caller.end,
            End::Closed,
            "the last answer is whole and says so: {:?}",
            caller.refused
        );
    }

    let service = home.start();
    service.wait_until_ready();
    let load = Load::start(service.address(), into_received(minted));
    std::thread::sleep(Duration::from_millis(300));
    load.wait_until_each_has_ids();
    assert_no_id_twice(into_received(load.stop()));
}

#[test]
fn sigterm_under_load_loses_no_answer_and_exits_0() {
    no_answer_is_lost(Signal::TERM, "SIGTERM: draining");
}

#[test]
fn sigint_under_load_loses_no_answer_and_exits_0() {
    no_answer_is_lost(Signal::INT, "SIGINT: draining");
}

#[test]
fn a_service_told_to_end_as_soon_as_it_listens_exits_0() {
    for _ in 0..10 {
        let home = Home::new();
        let service = home.start();
        service.send(Signal::TERM);
        service.wait().assert(0, &[]);
    }
}

#[test]
fn a_service_that_waits_for_its_clock_ends_when_told() {
    let home = Home::new();
    let mut command = home.serve();
    command.args(["--floor", "2200-01-01T00:00:00Z"]);
    let service = Service::start(command);
    assert_eq!(service.get("/health/ready").status, 503);
    service.send(Signal::TERM);
    service.wait().assert(0, &["this node does not mint yet"]);
}

#[test]
fn an_answer_that_is_being_read_slowly_is_finished() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let mut slow = Client::connect(service.address());
    slow.send(request(
        "POST /ids/snowflake?count=100000",
        "accept: text/plain\r\n",
        "",
    ));
    slow.wait_for_first_byte();
    service.send(Signal::TERM);
    std::thread::sleep(Duration::from_millis(300));
    let answer = slow.receive();
    assert_eq!(answer.text().lines().count(), 100_000);
    drop(slow);
    service
        .wait()
        .assert(0, &["every request got its response"]);
}

#[test]
fn a_service_whose_log_cannot_be_written_serves_and_ends_well() {
    let home = Home::new();
    let service = Service::start_with_log_lost(home.serve(), "/dev/full");
    service.wait_until_ready();
    assert_eq!(service.mint("snowflake?count=3").len(), 3);
    service.send(Signal::TERM);
    service.wait().assert(0, &[]);
}

#[test]
fn a_log_in_a_file_has_no_colours() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    service.send(Signal::TERM);
    let log = service.wait().err;
    assert!(
        log.contains("INFO minting begins") && !log.contains('\x1b'),
        "{log}"
    );
}

#[test]
fn a_service_whose_banner_cannot_be_written_serves() {
    let home = Home::new();
    let address = address_of_its_own();
    let mut command = idmint(&["serve", "--listen", &address.to_string(), "--data-dir"]);
    let full = File::options().write(true).open("/dev/full").unwrap();
    command
        .arg(home.data_dir())
        .stdin(Stdio::null())
        .stdout(full)
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let answer = until("an answer", || {
        assert!(child.try_wait().unwrap().is_none(), "the service ended");
        Client::try_connect(address)
            .ok()?
            .try_exchange(request("GET /health/live", "", ""))
            .ok()
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(answer.status, 200);
}

#[test]
fn a_disk_that_refuses_a_write_ends_the_service_with_74_and_no_id_comes_twice() {
    let home = Home::new();
    let service = Service::start(without_size_signal(&home.serve()));
    service.wait_until_ready();
    let load = Load::fresh(service.address());
    std::thread::sleep(Duration::from_millis(300));
    load.wait_until_each_has_ids();
    // Limit the length of files, so that the second copy of the horizon cannot be written. The log
    // is a pipe, so it can still be written.
    let one_copy = Some(4096);
    let pid = Pid::from_raw(service.pid().try_into().unwrap());
    prlimit(
        pid,
        Resource::Fsize,
        Rlimit {
            current: one_copy,
            maximum: one_copy,
        },
    )
    .unwrap();
    let minted = load.join();
    let ended = service.wait();
    ended.assert(
        74,
        &[
            "the horizon can no longer be raised",
            "File too large",
            "the store failed while running",
        ],
    );
    assert!(
        minted.iter().all(|caller| caller.end == End::Closed),
        "what was asked is answered all the same"
    );

    let service = home.start();
    service.wait_until_ready();
    let load = Load::start(service.address(), into_received(minted));
    std::thread::sleep(Duration::from_millis(300));
    load.wait_until_each_has_ids();
    assert_no_id_twice(into_received(load.stop()));
}
