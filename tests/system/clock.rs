//! Changes the wall clock while the service runs, while it is stopped, and before its first start.

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::wall_clock::WallClock;
use idmint_testing::ids::{SEQUENCED, SNOWFLAKE, assert_no_id_twice};
use idmint_testing::load::{Load, assert_only_exhaustion_was_seen, fresh_callers, into_received};
use idmint_testing::service::{Home, Service, until};

const HOUR_S: i64 = 3600;
const REGRESSIONS: &str = "idmint_clock_regressions_total";

/// A duration that is long enough for several clock checks and thousands of ids.
const A_WHILE: Duration = Duration::from_millis(700);

/// The most by which a logged step can differ from the step of the test, in seconds.
const STEP_ERROR_MAX_S: f64 = 0.5;

fn ready(wall: &WallClock, command: Command) -> Service {
    let service = wall.start(command);
    service.wait_until_ready();
    service
}

/// Requests an id that must be refused, and returns the problem type of the response.
fn refusal(service: &Service) -> String {
    let answer = service.post("/ids/snowflake");
    assert_eq!(answer.status, 503, "{}", answer.text());
    answer.json()["type"].as_str().unwrap().to_owned()
}

/// Returns the duration in seconds of each backward step in the log.
///
/// The log can contain steps that no test has made. A busy machine can pause the service while it
/// reads its two clocks. If two threads read the file of libfaketime at the same time, the library
/// can return the right time once.
fn steps_back_s(service: &Service) -> Vec<f64> {
    let log = service.log();
    log.lines()
        .filter(|line| line.contains("the wall clock was set back by"))
        .filter_map(|line| {
            let (_, field) = line.split_once("step_s=")?;
            field.split(' ').next()?.parse().ok()
        })
        .collect()
}

/// Returns `true` if one of the steps is as long as expected.
fn has_step_of(steps_s: &[f64], expected_s: f64) -> bool {
    steps_s
        .iter()
        .any(|step| (step - expected_s).abs() < STEP_ERROR_MAX_S)
}

#[track_caller]
fn assert_waits_for_its_clock(service: &Service, reason: &str) {
    assert_eq!(refusal(service), format!("/problems/{reason}"));
    let readiness = service.get("/health/ready");
    assert_eq!(
        (readiness.status, readiness.json()["reason"].as_str()),
        (503, Some(reason))
    );
    assert_eq!(service.get("/health/live").status, 200);
    assert_eq!(service.get("/decode/175928847299117063").status, 200);
}

#[test]
fn a_wall_clock_set_back_while_running_is_counted_and_not_seen_in_any_id() {
    let home = Home::new();
    let wall = WallClock::of(&home);
    let service = ready(&wall, home.serve());
    assert_eq!(service.metric(REGRESSIONS), 0.0);
    let load = Load::fresh(service.address());
    let in_1970 = WallClock::in_1970();
    let steps_s = [(-1, 1), (-HOUR_S, HOUR_S - 1), (in_1970, -in_1970 - HOUR_S)];
    for (ahead_s, step_s) in steps_s {
        let step_s = f64::from(u32::try_from(step_s).unwrap());
        sleep(A_WHILE);
        load.wait_until_each_has_ids();
        wall.set(ahead_s);
        until("the step is logged", || {
            has_step_of(&steps_back_s(&service), step_s).then_some(())
        });
        assert_eq!(service.get("/health/ready").status, 200);
    }
    sleep(A_WHILE);
    wall.set(0);
    sleep(A_WHILE);
    let minted = load.stop();
    assert_only_exhaustion_was_seen(&minted);
    // A step is logged after it is counted.
    let steps_s = until("each counted step is logged", || {
        let steps_s = steps_back_s(&service);
        (service.count(REGRESSIONS) == steps_s.len()).then_some(steps_s)
    });
    assert_eq!(
        service.count("idmint_clock_regression_seconds_count"),
        steps_s.len()
    );
    println!(
        "{:?} ids, none twice",
        assert_no_id_twice(into_received(minted))
    );
}

#[test]
fn a_wall_clock_set_ahead_by_an_hour_while_running_is_not_followed_and_said_in_the_log() {
    let home = Home::new();
    let wall = WallClock::of(&home);
    let service = ready(&wall, home.serve());
    let load = Load::fresh(service.address());
    sleep(A_WHILE);
    load.wait_until_each_has_ids();
    wall.set(HOUR_S);
    until("the log says so", || {
        service.log().contains("is ignored").then_some(())
    });
    sleep(A_WHILE);
    assert_eq!(service.get("/health/ready").status, 200);
    let id = SEQUENCED[SNOWFLAKE].value(&service.mint("snowflake")[0]);
    assert!(
        SEQUENCED[SNOWFLAKE].ahead_ms(id) < 2_000,
        "the id does not carry the wrong hour"
    );
    assert!(service.metric("idmint_clock_skew_seconds") > 3_500.0);
    wall.set(0);
    sleep(A_WHILE);
    let minted = load.stop();
    assert_only_exhaustion_was_seen(&minted);
    assert_no_id_twice(into_received(minted));
}

#[test]
fn a_wall_clock_an_hour_back_at_a_start_is_waited_for_and_the_start_goes_on_by_itself() {
    let home = Home::new();
    let wall = WallClock::of(&home);
    let service = ready(&wall, home.serve());
    let load = Load::fresh(service.address());
    sleep(A_WHILE);
    load.wait_until_each_has_ids();
    service.kill();
    let before = into_received(load.join());

    wall.set(-HOUR_S);
    let service = wall.start(home.serve());
    until("the start has found its clock behind", || {
        service
            .log()
            .contains("this node does not mint yet")
            .then_some(())
    });
    assert_waits_for_its_clock(&service, "clock-behind");
    sleep(A_WHILE);
    assert_waits_for_its_clock(&service, "clock-behind");
    wall.set(0);
    service.wait_until_ready();
    let load = Load::start(service.address(), before);
    sleep(A_WHILE);
    load.wait_until_each_has_ids();
    let minted = load.stop();
    assert_only_exhaustion_was_seen(&minted);
    println!(
        "{:?} ids, none twice",
        assert_no_id_twice(into_received(minted))
    );
}

#[test]
fn with_run_ahead_a_start_an_hour_back_mints_above_everything_before() {
    let home = Home::new();
    let wall = WallClock::of(&home);
    let mut callers = fresh_callers();
    // The clock is right at the first start. At the next starts, it is one hour back, two hours
    // back, and right again. The ids of each caller must increase throughout.
    for ahead_s in [0, -HOUR_S, -2 * HOUR_S, 0] {
        wall.set(ahead_s);
        let mut command = home.serve();
        command.arg("--run-ahead");
        let service = ready(&wall, command);
        let load = Load::start(service.address(), callers);
        sleep(A_WHILE);
        load.wait_until_each_has_ids();
        service.kill();
        callers = into_received(load.join());
    }
    println!("{:?} ids, none twice", assert_no_id_twice(callers));
}

#[test]
fn a_wall_clock_that_was_never_set_is_waited_for_without_an_exit() {
    let home = Home::new();
    let wall = WallClock::of(&home);
    wall.set(WallClock::in_1970());
    let mut service = wall.start(home.serve());
    until("the start has found its clock wrong", || {
        service
            .log()
            .contains("this node does not mint yet")
            .then_some(())
    });
    assert_waits_for_its_clock(&service, "clock-jumped");
    sleep(A_WHILE);
    assert!(service.is_running());
    assert_waits_for_its_clock(&service, "clock-jumped");
    wall.set(0);
    service.wait_until_ready();
    assert!(
        SEQUENCED[SNOWFLAKE].ahead_ms(SEQUENCED[SNOWFLAKE].value(&service.mint("snowflake")[0]))
            < 2_000
    );
}

#[test]
fn a_clock_30_days_after_the_last_record_is_warned_of_at_the_start_and_one_29_days_after_is_not() {
    const DAY_S: i64 = 24 * HOUR_S;
    let home = Home::new();
    let wall = WallClock::of(&home);
    let warning = "days after the last record of this node";
    let mut callers = fresh_callers();
    // The clock is right at the first start, and 29 days ahead at the second one. At the third
    // start, it is 31 days after the second one, which must give a warning.
    for (ahead_s, warned) in [
        (0, None),
        (29 * DAY_S, None),
        (60 * DAY_S + HOUR_S, Some("31 days after the last record")),
    ] {
        wall.set(ahead_s);
        let service = ready(&wall, home.serve());
        let log = service.log_once_it_says("minting begins at");
        assert_eq!(log.contains(warning), warned.is_some(), "{log}");
        if let Some(warned) = warned {
            assert!(
                log.contains(warned) && log.contains("\"A clock years ahead\""),
                "{log}"
            );
            let at = |text| {
                log.find(text)
                    .unwrap_or_else(|| panic!("{text:?} is not in {log}"))
            };
            assert!(
                at(warned) < at("minting begins at"),
                "said before anything is durable: {log}"
            );
        }
        let load = Load::start(service.address(), callers);
        sleep(A_WHILE);
        load.wait_until_each_has_ids();
        service.kill();
        callers = into_received(load.join());
    }
    println!("{:?} ids, none twice", assert_no_id_twice(callers));
}
