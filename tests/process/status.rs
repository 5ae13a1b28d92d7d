//! `idmint status`: how a service is, what is wrong, the safe action, and the code.

use crate::service::{Home, Service, idmint, run};

#[test]
fn a_service_that_mints_says_so_and_what_it_has_reserved() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let ended = run(idmint(&["status", "--server", &service.url()]));
    ended.assert(0, &[]);
    let lines: Vec<_> = ended
        .out
        .lines()
        .map(|line| line.split_once(' ').expect("a name and a value"))
        .collect();
    let names: Vec<_> = lines.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        ["mints", "slot", "reserved", "records"],
        "{}",
        ended.out
    );
    assert_eq!(lines[0].1.trim(), "yes");
}

#[test]
fn a_clock_that_is_behind_is_told_with_what_helps() {
    let home = Home::new();
    let mut command = home.serve();
    command.args(["--floor", "2200-01-01T00:00:00Z"]);
    let service = Service::start(command);
    let ended = run(idmint(&["status", "--server", &service.url()]));
    ended.assert(
        1,
        &[
            "mints no sequenced ids",
            "set the clock right",
            "\"Not ready\"",
        ],
    );
    assert!(
        ended.out.contains("no, clock-behind") && ended.out.contains("why "),
        "{}",
        ended.out
    );
}

#[test]
fn a_service_that_is_not_there_is_69_with_what_helps() {
    let home = Home::new();
    let service = home.start();
    let url = service.url();
    service.kill();
    run(idmint(&["status", "--server", &url])).assert(69, &["start it again", "\"Down\""]);
}
