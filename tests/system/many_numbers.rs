//! Checks that memory does not grow with numbers and their idempotency keys, although the service
//! stores them forever. After a kill, the service must still know every key.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::many_appends::{receive_stored, resident_kib};
use idmint_testing::http1::{Client, request};
use idmint_testing::service::{Home, Service, until};

/// The number of requested numbers, each with its own idempotency key. The variable `MANY_NUMBERS`
/// sets another number, and `make torture` sets ten million.
const NUMBERS: usize = 60_000;
const SERIES: usize = 1_000;
const THREADS: usize = 2;
/// The number of connections of each thread. With this many, many requests share one sync of the
/// disk.
const CONNECTIONS: usize = 256;
const GROWTH_MAX_KIB: u64 = 64 * 1024;

/// Returns the request of turn `turn`, which has its own idempotency key.
fn next_number(turn: usize) -> String {
    request(
        &format!("POST /numbers/series-{}", turn % SERIES),
        &format!("idempotency-key: order-{turn}\r\n"),
        "",
    )
}

/// Requests one number in each turn from `from` to `to`, on several connections at the same time.
/// Returns the sum of the numbers.
fn ask_all(address: SocketAddr, from: usize, to: usize) -> u64 {
    let mut clients: Vec<_> = (0..CONNECTIONS).map(|_| Client::connect(address)).collect();
    let (mut turn, mut sum) = (from, 0);
    while turn < to {
        let round = clients.len().min(to - turn);
        for (at, client) in clients[..round].iter_mut().enumerate() {
            client.send(next_number(turn + at));
        }
        for (at, client) in clients[..round].iter_mut().enumerate() {
            let answer = receive_stored(client, &[201], || next_number(turn + at));
            sum += answer.json()["number"]
                .as_str()
                .unwrap()
                .parse::<u64>()
                .unwrap();
        }
        turn += round;
    }
    sum
}

#[test]
fn memory_does_not_grow_with_numbers_and_a_start_after_a_kill_knows_every_key() {
    let wanted = std::env::var("MANY_NUMBERS").map_or(NUMBERS, |numbers| {
        numbers.parse().expect("how many numbers")
    });
    // Round down, so that each thread requests equally many numbers of each series.
    let of_each = wanted / THREADS / SERIES * SERIES;
    let home = Home::new();
    // On a busy machine, a connection may wait for its first request while the others are opened.
    let service = Service::start(home.serve_with("http.header_timeout = '60s'"));
    service.wait_until_ready();
    let begun = Instant::now();
    let ask = |from: usize, to: usize| -> u64 {
        std::thread::scope(|scope| {
            let thread = |thread: usize| {
                let (address, offset) = (service.address(), thread * of_each);
                scope.spawn(move || ask_all(address, offset + from, offset + to))
            };
            let threads: Vec<_> = (0..THREADS).map(thread).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("each is given"))
                .sum()
        })
    };
    let mut sum = ask(0, of_each / 10);
    let resident_before = resident_kib(&service);
    sum += ask(of_each / 10, of_each);
    let (resident, time) = (resident_kib(&service), begun.elapsed());
    let growth = resident.saturating_sub(resident_before);
    let total = of_each * THREADS;
    println!(
        "{total} numbers of {SERIES} series in {time:?}; {resident_before} KiB after a tenth, {growth} KiB more at the end"
    );
    assert!(growth <= GROWTH_MAX_KIB, "{growth} KiB more");
    let last = (total / SERIES) as u64;
    assert_eq!(
        sum,
        SERIES as u64 * (last * (last + 1) / 2),
        "each number of each series once"
    );

    service.kill();
    let begun = Instant::now();
    let service = home.start();
    let again = until("a start gives numbers again", || {
        let answer = Client::try_connect_within(service.address(), Duration::from_secs(1))
            .ok()?
            .try_exchange(next_number(7))
            .ok()?;
        (answer.status == 200).then(|| answer.json())
    });
    println!(
        "first number {:?} after the start, behind {total} numbers: {again}",
        begun.elapsed()
    );
    assert_eq!(again["series"], "series-7");
    let mut client = Client::connect(service.address());
    for turn in (0..total).step_by(total / 97) {
        assert_eq!(
            client.exchange(next_number(turn)).status,
            200,
            "the key of turn {turn} is known"
        );
    }
    let next = client.exchange(next_number(total)).json();
    assert_eq!(next["number"], (last + 1).to_string());
}
