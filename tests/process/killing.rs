//! Checks that a service that is killed at any moment and restarted never mints an id twice.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use idmint_testing::http1::{Client, request};
use idmint_testing::ids::{PAYMENT, SEQUENCED};
use idmint_testing::load::kill_under_load;
use idmint_testing::service::{Home, Service};

/// The maximum time in milliseconds by which ids may be ahead of the clock. Ids may be one second
/// ahead. In addition, all ids of a tick may be minted at its beginning, and a tick of `payment` is
/// one second.
const AHEAD_MS_MAX: u128 = 2_000;

#[test]
fn no_id_comes_twice_and_each_worker_rises_through_20_kills_under_load() {
    let begun = Instant::now();
    let killed = kill_under_load(&Home::new(), 20, Duration::from_millis(500));
    killed.print(begun);
    assert!(
        killed.ids.iter().all(|count| *count > 1_000),
        "{:?}",
        killed.ids
    );
    assert!(
        killed.ahead_ms_at_the_end <= AHEAD_MS_MAX,
        "{} ms ahead",
        killed.ahead_ms_at_the_end
    );
}

#[test]
fn restarts_within_one_second_repeat_no_payment_id() {
    let (home, payment) = (Home::new(), &SEQUENCED[PAYMENT]);
    let (mut seen, mut newest, mut seconds) = (HashSet::new(), 0, HashSet::new());
    for _ in 0..25 {
        let service = home.start();
        service.wait_until_ready();
        for text in service.mint("payment?count=20") {
            let id = payment.value(&text);
            assert!(
                id > newest,
                "{text} is not above what was minted before the restart"
            );
            assert!(seen.insert(id), "{text} was minted twice");
            newest = id;
            seconds.insert(payment.unix_ms(id));
        }
        service.kill();
    }
    println!(
        "{} ids of 25 starts carry {} different seconds",
        seen.len(),
        seconds.len()
    );
}

#[test]
fn a_service_killed_before_it_has_minted_starts_again() {
    let home = Home::new();
    // Kill the service at different moments of its first start: before and after it creates the
    // lock, the horizon and the database.
    for delay_ms in [0, 2, 5, 10, 15, 20, 30, 40, 60, 80] {
        let mut child = home
            .serve()
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(delay_ms));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let service = home.start();
    service.wait_until_ready();
    assert_eq!(service.mint("snowflake?count=3").len(), 3);
}

#[test]
fn only_a_first_start_is_counted_as_a_cold_one() {
    let home = Home::new();
    for cold_starts in [1.0, 0.0] {
        let service = home.start();
        service.wait_until_ready();
        assert_eq!(
            service.metric("idmint_horizon_cold_starts_total"),
            cold_starts
        );
        service.kill();
    }
}

#[test]
fn what_was_asked_again_after_a_lost_answer_is_new() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let mut seen: HashSet<String> = HashSet::new();
    for _ in 0..50 {
        // A caller that disconnects without reading its response loses these ids. The next request
        // must get other ids.
        Client::connect(service.address()).send(request("POST /ids/snowflake?count=3", "", ""));
        for id in service.mint("snowflake?count=3") {
            assert!(seen.insert(id.clone()), "{id} was minted twice");
        }
    }
}

/// Every start uses a new, empty folder, as after the loss of all data. The memory engine has this
/// effect at every start. The clock is always right, so the start alone must prevent repeated ids.
#[test]
fn folders_lost_one_after_the_other_repeat_no_id() {
    for engine in ["embedded", "memory"] {
        let mut seen: HashSet<String> = HashSet::new();
        for run in 0..12 {
            let home = Home::new();
            let service =
                Service::start(home.serve_with(&format!("storage.engine = \"{engine}\"")));
            service.wait_until_ready();
            // Mint immediately after the start, and as many ids as may be ahead of the clock.
            for order in ["snowflake", "snowflake?count=20000", "js53?count=100"] {
                for id in service.mint(order) {
                    let of_format = format!("{} {id}", &order[..4]);
                    assert!(
                        seen.insert(of_format),
                        "{id} came again from run {run} with {engine}"
                    );
                }
            }
            service.kill();
        }
        assert_eq!(seen.len(), 12 * 20_101);
    }
}
