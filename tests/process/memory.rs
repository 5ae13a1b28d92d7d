//! However many ids a caller asks for, they are spelled while they are sent.

use std::collections::HashSet;
use std::fs;

use crate::service::{Home, Service};

const COUNT: usize = 1_000_000;
const RESIDENT_MAX_KIB: u64 = 64 * 1024;

/// The most memory that a process has had, `VmHWM`.
fn resident_peak_kib(service: &Service) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", service.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says so");
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_million_ids_in_one_answer_are_distinct_and_take_little_memory() {
    let home = Home::new();
    let service = Service::start(home.serve_with(&format!("mint.batch_max = {COUNT}")));
    service.wait_until_ready();
    for order in ["snowflake", "siq?type=message", "flax"] {
        let separator = if order.contains('?') { '&' } else { '?' };
        // Answers come whole: as long as their Content-Length.
        let ids = service.mint(&format!("{order}{separator}count={COUNT}"));
        assert_eq!(ids.len(), COUNT, "{order}");
        assert_eq!(ids.into_iter().collect::<HashSet<_>>().len(), COUNT, "{order}: all are distinct");
    }
    let peak_kib = resident_peak_kib(&service);
    println!("{peak_kib} KiB resident at most");
    assert!(peak_kib < RESIDENT_MAX_KIB, "{peak_kib} KiB");
}

#[test]
fn one_more_than_the_most_is_refused() {
    let home = Home::new();
    let service = Service::start(home.serve_with(&format!("mint.batch_max = {COUNT}")));
    service.wait_until_ready();
    let answer = service.post(&format!("/ids/snowflake?count={}", COUNT + 1));
    assert_eq!((answer.status, answer.json()["limit"].as_str()), (422, Some("1000000")));
}
