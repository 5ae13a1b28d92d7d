//! Checks that a response with many ids is written in parts while it is sent, so that the memory
//! use stays low.

use std::collections::HashSet;
use std::fs;

use idmint_testing::http1::{Client, request};
use idmint_testing::service::{Home, Service};

const COUNT: usize = 1_000_000;
const PEAK_MAX_KIB: u64 = 32 * 1024;

/// Returns the peak memory of a process in KiB, without pages of files. The kernel decides how much
/// of the program's file it maps, which can be 30 MiB.
pub(crate) fn peak_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let kib = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let value = line.expect("Linux reports it").trim();
        value.trim_end_matches(" kB").parse().unwrap()
    };
    kib("VmHWM:") - kib("RssFile:")
}

#[test]
fn a_million_ids_in_one_answer_are_distinct_and_take_little_memory() {
    let home = Home::new();
    let service = Service::start(home.serve_with(&format!("mint.batch_max = {COUNT}")));
    service.wait_until_ready();
    for order in ["snowflake", "siq?type=message", "flax"] {
        let separator = if order.contains('?') { '&' } else { '?' };
        // Check that each response arrives completely, with as many bytes as its Content-Length
        // says.
        let ids = service.mint(&format!("{order}{separator}count={COUNT}"));
        assert_eq!(ids.len(), COUNT, "{order}");
        assert_eq!(
            ids.into_iter().collect::<HashSet<_>>().len(),
            COUNT,
            "{order}: all are distinct"
        );
    }
    let peak_kib = self::peak_kib(service.pid());
    println!("{peak_kib} KiB at most");
    assert!(peak_kib < PEAK_MAX_KIB, "{peak_kib} KiB");
}

#[test]
fn one_more_than_the_most_is_refused() {
    let home = Home::new();
    let service = Service::start(home.serve_with(&format!("mint.batch_max = {COUNT}")));
    service.wait_until_ready();
    let answer = service.post(&format!("/ids/snowflake?count={}", COUNT + 1));
    assert_eq!(
        (answer.status, answer.json()["limit"].as_str()),
        (422, Some("1000000"))
    );
}

const DECODE_LEN_MAX: usize = 8 << 20;

/// The maximum memory in KiB that decoding may use in addition to the body of the request.
const DECODE_MORE_MAX_KIB: u64 = 12 * 1024;

fn decode_request(body: &str) -> String {
    request(
        "POST /decode",
        "content-type: text/plain\r\naccept: text/plain\r\n",
        body,
    )
}

#[test]
fn eight_mib_of_ids_are_decoded_in_one_call_in_order_and_take_little_memory() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    // Use formats whose canonical texts cannot be confused with those of another format.
    let formats = ["payment", "siq?type=message", "uuid7", "flax", "ulid"];
    let minted = formats.map(|order| {
        let count = if order == "payment" { 1_000 } else { 10_000 };
        let separator = if order.contains('?') { '&' } else { '?' };
        (
            order.split('?').next().unwrap(),
            service.mint(&format!("{order}{separator}count={count}")),
        )
    });
    let (mut body, mut expected) = (String::new(), Vec::new());
    for turn in 0.. {
        let wrong = (format!("no id {turn}"), "-");
        let ids = minted
            .iter()
            .map(|(format, ids)| (ids[turn % ids.len()].clone(), *format))
            .chain([wrong]);
        let ids: Vec<_> = ids.collect();
        let len: usize = ids.iter().map(|(id, _)| id.len() + 1).sum();
        if body.len() + len > DECODE_LEN_MAX {
            break;
        }
        for (id, format) in ids {
            body.push_str(&id);
            body.push('\n');
            expected.push((id, format));
        }
    }
    assert!(body.len() > DECODE_LEN_MAX - 200);

    let mut client = Client::connect(service.address());
    let before_kib = self::peak_kib(service.pid());
    let begun = std::time::Instant::now();
    let answer = client.exchange(decode_request(&body));
    let took = begun.elapsed();
    assert_eq!(answer.status, 200);
    let text = answer.text();
    assert_eq!(text.lines().count(), expected.len());
    for (line, (id, format)) in text.lines().zip(&expected) {
        assert!(
            line.starts_with(&format!("{id}\t{format}\t")),
            "{line} of {format}"
        );
    }
    let more_kib = self::peak_kib(service.pid()).saturating_sub(before_kib);
    println!(
        "{} ids in {took:?}, {before_kib} KiB before at most, {more_kib} KiB more",
        expected.len()
    );
    let body_kib = u64::try_from(body.len() / 1024).unwrap();
    assert!(more_kib < body_kib + DECODE_MORE_MAX_KIB, "{more_kib} KiB");
}

#[test]
fn ten_megabytes_to_decode_are_refused() {
    let home = Home::new();
    let service = home.start();
    let answer = Client::connect(service.address())
        .exchange(decode_request(&"1I9ZC1002\n".repeat(1_000_000)));
    assert_eq!(
        (answer.status, answer.json()["limit"].as_str()),
        (413, Some("8388608 bytes"))
    );
}
