//! Tests the JavaScript client, `clients/javascript/idmint.mjs`, and its types.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::hostile::assert_program_copes;
use super::rounds::assert_program_mints_while_services_are_killed;
use super::secured::Secured;
use super::speed::print_nanos_of_next;
use crate::tools::succeed;
use idmint_testing::service::Home;

fn ours(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns a command that runs a program of this folder. The first argument of the program is the
/// path of the client.
fn node(program: &str) -> Command {
    let mut command = Command::new("node");
    command
        .arg(ours("tests/system/prefetching/javascript").join(program))
        .arg(ours("clients/javascript/idmint.mjs"));
    command
}

#[test]
fn tasks_get_each_id_once_while_services_are_killed() {
    assert_program_mints_while_services_are_killed(node("mint.mjs"));
}

#[test]
fn errors_say_what_to_mend_and_an_append_is_done_once() {
    let secured = Secured::start();
    let mut errors = node("errors.mjs");
    errors
        .args(secured.arguments())
        .env("NODE_EXTRA_CA_CERTS", secured.home.path("ca.pem"));
    assert_eq!(succeed(&mut errors), "done\n");
}

#[test]
fn it_copes_with_a_hostile_server() {
    assert_program_copes(node("hostile.mjs"));
}

#[test]
fn the_time_of_a_next_is_told() {
    print_nanos_of_next("JavaScript", node("speed.mjs"));
}

/// Checks the syntax with Node.js, because Debian's eslint is from 2019 and cannot parse the
/// private members of the client.
#[test]
fn node_reads_each_file_without_running_it() {
    for file in [
        "clients/javascript/idmint.mjs",
        "errors.mjs",
        "hostile.mjs",
        "mint.mjs",
        "speed.mjs",
    ] {
        let path = if file.contains('/') {
            ours(file)
        } else {
            ours("tests/system/prefetching/javascript").join(file)
        };
        assert_eq!(succeed(Command::new("node").arg("--check").arg(path)), "");
    }
}

#[test]
fn the_types_compile() {
    let home = Home::new();
    for (from, to) in [
        ("clients/javascript/idmint.d.mts", "idmint.d.mts"),
        ("tests/system/prefetching/javascript/types.ts", "types.mts"),
    ] {
        fs::copy(ours(from), home.path(to)).unwrap();
    }
    let mut compiler = Command::new("tsc");
    compiler.args(
        "--strict --noEmit --target es2022 --module nodenext --moduleResolution nodenext"
            .split(' '),
    );
    assert_eq!(succeed(compiler.arg(home.path("types.mts"))), "");
}
