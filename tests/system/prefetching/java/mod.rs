//! Tests the Java client, `clients/java/idmint/client/Idmint.java`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::hostile::assert_program_copes;
use super::rounds::assert_program_mints_while_services_are_killed;
use super::secured::Secured;
use super::speed::print_nanos_of_next;
use crate::tools::succeed;
use idmint_testing::service::Home;

/// Compiles a program of this folder together with the client, using Debian's Java. Every warning
/// counts as an error. The result is in `home`.
fn compiled(home: &Home, program: &str) -> Command {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
    let programs = ours.join("tests/system/prefetching/java");
    let classes = home.path("classes");
    let mut compiler = Command::new("javac");
    compiler
        .args(["--release", "17", "-Xlint:all", "-Werror", "-d"])
        .arg(&classes);
    compiler
        .arg(ours.join("clients/java/idmint/client/Idmint.java"))
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
fn it_copes_with_a_hostile_server() {
    let home = Home::new();
    assert_program_copes(compiled(&home, "Hostile"));
}

/// Runs the program as a user without privileges, because root has no limit on the number of
/// processes.
#[test]
fn a_thread_that_cannot_be_started_is_a_failure_and_no_hang() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let java = compiled(&home, "NoThreads");
    let others = fs::Permissions::from_mode(0o755);
    fs::set_permissions(home.path("."), others).unwrap();
    let mut limited = Command::new("setpriv");
    limited.args("--reuid 54321 --regid 54321 --clear-groups prlimit --nproc=80".split(' '));
    limited.arg(java.get_program()).args(java.get_args());
    let printed = succeed(limited.arg(service.url()));
    assert!(printed.ends_with("done\n"), "{printed}");
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
