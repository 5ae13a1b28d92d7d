//! Measures the duration of a call of `next()`, compared with creating a UUID and with incrementing
//! a counter in the same language.

use std::process::Command;

use crate::tools::succeed;
use idmint_testing::service::Home;

/// Runs a program that measures the times, and prints them. The test asserts no time, because times
/// depend on the machine. docs/internals/MEASUREMENTS.md has a table. The bench `next` of
/// `idmint-client` measures the client in Rust.
pub(crate) fn print_nanos_of_next(language: &str, mut program: Command) {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let said = succeed(program.arg(service.url()));
    let nanos: Vec<f64> = said
        .split_whitespace()
        .map(|number| number.parse().expect("nanoseconds"))
        .collect();
    let [next, uuid4, counter] = nanos[..] else {
        panic!("three numbers, not {said:?}")
    };
    println!("{language}: next() {next} ns, uuid4 {uuid4} ns, a counter {counter} ns");
    assert!(next > 0.0 && uuid4 > 0.0 && counter > 0.0, "{said}");
}
