//! What a `next()` costs, beside a UUID and a counter of the same language.

use std::process::Command;

use crate::service::Home;
use crate::tools::succeed;

/// Has a program measure them and prints what it says: no claim depends on how fast a machine is. docs/CLIENTS.md has a table.
pub(crate) fn print_nanos_of_next(language: &str, mut program: Command) {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let said = succeed(program.arg(service.url()));
    print_nanos(language, &said);
}

/// The same of what was measured: nanoseconds of `next()`, of a UUID and of a counter.
pub(crate) fn print_nanos(language: &str, said: &str) {
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
