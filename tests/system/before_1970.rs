//! Sets the wall clock before 1970, at a start and while ids are minted. HTTP has no date for such
//! a time.

use std::time::Duration;

use crate::wall_clock::WallClock;
use idmint_testing::http1::{Client, request};
use idmint_testing::ids::assert_no_id_twice;
use idmint_testing::load::{End, Load, into_received};
use idmint_testing::service::{Home, PREFER_TEXT, Service, until};

/// A duration that is long enough for several clock checks and thousands of ids.
const A_WHILE: Duration = Duration::from_millis(700);

#[track_caller]
fn assert_refuses_every_new_connection(service: &Service) {
    for target in [
        "POST /ids/snowflake",
        "POST /ids/uuid7",
        "GET /health/ready",
        "GET /formats",
        "GET /nonesuch",
    ] {
        let mut client = Client::connect(service.address());
        let answer = client.exchange(request(target, "", ""));
        assert_eq!(answer.status, 503, "{target}: {answer:?}");
        let header = |name| answer.header(name);
        assert_eq!(
            (header("connection"), header("retry-after")),
            (Some("close"), Some("1")),
            "{target}: {answer:?}"
        );
        assert_eq!(
            header("content-type"),
            Some("application/problem+json"),
            "{target}"
        );
        let problem = answer.json();
        assert_eq!(problem["type"], "/problems/clock-jumped", "{target}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.contains("the clock shows 1969-12-31T1"),
            "{target}: {detail}"
        );
        assert_eq!(
            problem["instance"].as_str(),
            header("x-request-id"),
            "{target}"
        );
        assert!(
            client.try_receive().is_err(),
            "{target}: the connection is closed"
        );
    }
}

fn assert_never_panicked(service: &Service) {
    let log = service.log();
    assert!(!log.contains("panic"), "{log}");
}

#[test]
fn a_start_before_1970_answers_clock_jumped_and_mints_once_the_clock_is_right() {
    let home = Home::new();
    let wall = WallClock::of(&home);
    wall.set(WallClock::before_1970());
    let mut service = wall.start(home.serve());
    until("the start has found its clock wrong", || {
        service
            .log()
            .contains("this node does not mint yet")
            .then_some(())
    });
    assert_refuses_every_new_connection(&service);
    std::thread::sleep(A_WHILE);
    assert!(service.is_running());
    assert_refuses_every_new_connection(&service);

    wall.set(0);
    service.wait_until_ready();
    assert_eq!(service.mint("snowflake?count=3").len(), 3);
    assert_never_panicked(&service);
}

#[test]
fn a_clock_set_before_1970_while_minting_is_answered_clock_jumped_and_repeats_no_id() {
    let home = Home::new();
    let wall = WallClock::of(&home);
    let service = wall.start(home.serve());
    service.wait_until_ready();
    let load = Load::fresh(service.address());
    std::thread::sleep(A_WHILE);
    load.wait_until_each_has_ids();
    wall.set(WallClock::before_1970());
    until("the step is seen", || {
        service
            .log()
            .contains("the wall clock was set back by")
            .then_some(())
    });
    assert_refuses_every_new_connection(&service);
    std::thread::sleep(A_WHILE);
    assert_refuses_every_new_connection(&service);

    wall.set(0);
    until("new connections are served", || {
        let answer = Client::connect(service.address()).exchange(request(
            "POST /ids/snowflake",
            PREFER_TEXT,
            "",
        ));
        (answer.status == 200).then_some(())
    });
    let minted = load.stop();
    // The clock step either does not affect a connected caller, or costs the caller its connection
    // and nothing else.
    for caller in &minted {
        assert!(
            caller.granted > 0,
            "{} answers, {:?}",
            caller.granted,
            caller.refused
        );
    }
    let went_on = minted
        .iter()
        .filter(|caller| caller.end == End::Stopped)
        .count();
    println!("{went_on} of {} connections went on", minted.len());

    let again = Load::start(service.address(), into_received(minted));
    std::thread::sleep(A_WHILE);
    again.wait_until_each_has_ids();
    let minted = again.stop();
    assert!(
        minted
            .iter()
            .all(|caller| caller.end == End::Stopped && caller.granted > 0)
    );
    println!(
        "{:?} ids, none twice",
        assert_no_id_twice(into_received(minted))
    );
}
