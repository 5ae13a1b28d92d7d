//! Tests the Python client, `clients/python/idmint.py`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::hostile::assert_program_copes;
use super::rounds::assert_program_mints_while_services_are_killed;
use super::secured::Secured;
use super::speed::print_nanos_of_next;
use crate::tools::succeed;
use idmint_testing::loopback::address_of_its_own;
use idmint_testing::service::{Home, Service, idmint};

fn python(script: &str) -> Command {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new("python3");
    command.arg(ours.join("tests/system/prefetching/python").join(script));
    command
        .env("PYTHONPATH", ours.join("clients/python"))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

#[test]
fn flake8_finds_nothing() {
    let mut flake8 = Command::new("flake8");
    flake8.args([
        "--max-line-length",
        "140",
        "clients/python",
        "tests/system/prefetching",
    ]);
    assert_eq!(succeed(flake8.current_dir(env!("CARGO_MANIFEST_DIR"))), "");
}

#[test]
fn threads_get_each_id_once_while_services_are_killed() {
    assert_program_mints_while_services_are_killed(python("mint.py"));
}

#[test]
fn tasks_get_each_id_once_while_services_are_killed() {
    let mut client = python("mint.py");
    client.env("TASKS", "1");
    assert_program_mints_while_services_are_killed(client);
}

#[test]
fn the_time_of_a_next_is_told() {
    print_nanos_of_next("Python", python("speed.py"));
}

/// Forks eight children from a process whose client has prefetched ids. Returns the number of ids
/// that the children minted, and the number of duplicates among them.
fn ids_of_children(service: &Service, way: &str, guard: &str) -> (usize, usize) {
    let printed = succeed(python("fork.py").args([&service.url(), way, guard]));
    let ids: Vec<&str> = printed.lines().collect();
    (
        ids.len(),
        ids.len() - ids.iter().collect::<BTreeSet<_>>().len(),
    )
}

#[test]
fn children_of_a_filled_stock_share_no_id_and_would_without_the_guard() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    for way in ["fork", "multiprocessing", "unnoticed"] {
        let (ids, twice) = ids_of_children(&service, way, "guarded");
        assert_eq!((ids, twice), (8 * 40, 0), "{way}");
        let (ids, twice) = ids_of_children(&service, way, "unguarded");
        println!("{way}: without the guard {twice} of {ids} ids come twice");
        assert!(ids == 8 * 40 && twice > 200, "{way}: {twice} of {ids}");
    }
}

#[test]
fn no_id_is_older_than_its_validity_and_an_outage_is_bridged_until_then() {
    let home = Home::new();
    // The script kills the service. Then nobody else may listen at its address.
    let address = address_of_its_own().to_string();
    let mut serve = idmint(&["serve", "--listen", &address, "--data-dir"]);
    serve.arg(home.data_dir());
    let service = Service::start(serve);
    service.wait_until_ready();
    let said = succeed(python("validity.py").args([service.url(), service.pid().to_string()]));
    assert_eq!(said, "done\n");
}

#[test]
fn it_copes_with_a_hostile_server() {
    assert_program_copes(python("hostile.py"));
}

/// Returns the number of children to fork, which `FORKS` sets (`make torture`: 1000).
fn forks() -> usize {
    std::env::var("FORKS").map_or(100, |forks| forks.parse().expect("FORKS is a number"))
}

/// Forks children in every phase of an HTTP exchange, with clients with and without TLS. Asserts
/// that no child hangs and no id occurs twice.
fn assert_children_share_nothing(way: &str, children: usize) {
    let secured = Secured::start();
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let [_, _, _, tls_port, authority, ..] = secured.arguments();
    let plain = service.url();
    let services = format!("{plain} https://127.0.0.1:{tls_port} {authority}");
    let mut forks = python("forks.py");
    forks
        .arg(way)
        .env("SERVICES", services)
        .env("CHILDREN", children.to_string());
    assert_eq!(succeed(&mut forks), "done\n");
}

#[test]
fn children_are_forked_while_the_stock_is_filled() {
    assert_children_share_nothing("fork", forks());
}

#[test]
fn children_of_a_pool_are_forked_while_the_stock_is_filled() {
    assert_children_share_nothing("pool", forks());
}

/// Forks fewer children than the other tests, because gunicorn pauses after each fork.
#[test]
fn workers_of_a_preloading_gunicorn_are_forked_while_the_stock_is_filled() {
    assert_children_share_nothing("gunicorn", forks() / 5);
}

/// Returns a tool that .ci/install-client-tools installs.
fn tool(path: &str) -> PathBuf {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/client-tools");
    let tool = tools.join(path);
    assert!(
        tool.is_file(),
        "{path} is missing: .ci/install-client-tools installs it"
    );
    tool
}

/// Runs basedpyright with Debian's Node.js and the settings of `clients/python/pyproject.toml`.
#[test]
fn basedpyright_finds_nothing() {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut basedpyright = Command::new("node");
    basedpyright
        .arg(tool("basedpyright.js"))
        .args(["--warnings", "--project", "clients/python"]);
    let found = succeed(basedpyright.current_dir(ours));
    assert!(found.starts_with("0 errors, 0 warnings"), "{found}");
}

/// Checks the client, and a program that is checked against the annotations of the client.
#[test]
fn mypy_finds_nothing() {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = tool("bin/mypy");
    let mut mypy = Command::new(program);
    mypy.args(["--strict", "--cache-dir", "/dev/null"])
        .args([
            "clients/python/idmint.py",
            "tests/system/prefetching/python/caller.py",
        ])
        .env("MYPYPATH", "clients/python");
    let found = succeed(mypy.current_dir(ours));
    assert!(found.starts_with("Success"), "{found}");
}

#[test]
fn errors_say_what_to_mend_and_an_append_is_done_once() {
    let secured = Secured::start();
    assert_eq!(
        succeed(python("errors.py").args(secured.arguments())),
        "done\n"
    );
}
