//! `clients/java/Idmint.java`.

use std::path::Path;
use std::process::Command;

use super::rounds::assert_program_mints_while_services_are_killed;
use super::secured::Secured;
use super::speed::print_nanos_of_next;
use crate::service::Home;
use crate::tools::succeed;

/// A program of this folder, compiled with the client by Debian's Java in `home`, every warning an error.
fn compiled(home: &Home, program: &str) -> Command {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
    let programs = ours.join("tests/system/prefetching/java");
    let classes = home.path("classes");
    let mut compiler = Command::new("javac");
    compiler
        .args(["--release", "17", "-Xlint:all", "-Werror", "-d"])
        .arg(&classes);
    compiler
        .arg(ours.join("clients/java/Idmint.java"))
        .arg(programs.join(format!("{program}.java")));
    assert_eq!(succeed(&mut compiler), "");
    let mut command = Command::new("java");
    command.arg("-cp").arg(classes).arg(program);
    command
}

#[test]
fn threads_get_each_id_once_while_services_are_killed() {
    let home = Home::new();
    assert_program_mints_while_services_are_killed(compiled(&home, "Mint"));
}

#[test]
fn errors_say_what_to_mend_and_an_append_is_done_once() {
    let secured = Secured::start();
    let mut errors = compiled(&secured.home, "Errors");
    assert_eq!(succeed(errors.args(secured.arguments())), "done\n");
}

#[test]
fn the_time_of_a_next_is_told() {
    let home = Home::new();
    print_nanos_of_next("Java", compiled(&home, "Speed"));
}
