//! Measures how long it takes to reserve a run of consecutive ids. The goal is less than 40 ns,
//! both for one id and for 4096 ids, including one read of the system clock.
//!
//! The benchmark measures `Minter::reserve`, which does the work of the mint for a request. It
//! reads the clock, computes the bounds of the run, takes the run by compare-exchange and updates
//! the counters. The ids of the resulting batch are never written. `harness::service` explains why
//! the ids do not run out.

mod harness;

use std::hint::black_box;
use std::num::NonZeroU32;
use std::thread;
use std::time::Duration;

use harness::comparison::{Comparison, Target, time_per_unit};
use harness::service::{YEARS, service};
use idmint_service::Service;
use tokio::runtime::Runtime;

const RUNS: u32 = 20_000;
const ROUNDS: usize = 31;

/// The number of runs that are reserved in a second. Each run takes one id, and one lane (worker
/// number) of `payment` has 1 296 ids in a second.
const RUNS_IN_A_SECOND: u32 = 1_200;
const SECONDS: usize = 11;

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let roomy = &*service(&runtime, YEARS);
    let mut comparison = Comparison::new();
    comparison.add("the clock alone", Target::None, || {
        time_per_unit(RUNS, || {
            (0..RUNS).for_each(|_| _ = black_box(roomy.clock().now()))
        })
    });
    for (name, held) in [
        ("snowflake", ""),
        ("siq", ""),
        ("payment-90ms", ""),
        ("payment", ", held"),
    ] {
        for count in [1, 4_096] {
            let mut reserve = reservation(roomy, name, count);
            comparison.add(
                format!("{name}, a run of {count}{held}"),
                Target::Under(40.0),
                move || time_per_unit(RUNS, || (0..RUNS).for_each(|_| reserve())),
            );
        }
    }
    comparison.run("Reserving a run", ROUNDS);

    // A lane (worker number) of `payment` has 1 296 ids in a second. If all of them are taken, the
    // next run must wait for the next second.
    let usual = &*service(&runtime, Duration::from_millis(5));
    let mut comparison = Comparison::new();
    let mut reserve = reservation(usual, "payment", 1);
    comparison.add(
        "payment, a run of 1 that may leave at once",
        Target::Under(40.0),
        move || {
            wait_for_next_second(usual);
            time_per_unit(RUNS_IN_A_SECOND, || {
                (0..RUNS_IN_A_SECOND).for_each(|_| reserve())
            })
        },
    );
    comparison.run("Reserving a run within the present second", SECONDS);
}

/// Returns a function that reserves a run of `count` ids and drops it.
fn reservation<'a>(service: &'a Service, format: &str, count: u32) -> impl FnMut() + 'a {
    let minter = service
        .formats()
        .named(format)
        .ok()
        .and_then(|served| served.minter())
        .expect("a minted format");
    let of_type = minter.counted().format.has_types().then_some("message");
    let count = NonZeroU32::new(count).expect("at least one id");
    let request = minter.request(count, of_type).expect("a sound request");
    move || {
        let granted = minter.reserve(black_box(&request));
        assert!(black_box(&granted).is_ok(), "there is room for years");
    }
}

fn wait_for_next_second(service: &Service) {
    let clock = service.clock();
    thread::sleep(
        clock
            .now()
            .after(Duration::from_millis(1))
            .ceil_to_second()
            .since(clock.now()),
    );
}
