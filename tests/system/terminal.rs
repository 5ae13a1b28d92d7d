//! Checks the output of the program on a terminal.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::tools::output_of;
use idmint_testing::service::{Home, idmint, run, until};

/// Starts a service on a terminal that the program `script` provides, with this value of
/// `NO_COLOR`. Returns the log up to the line about the beginning of minting.
fn logged(no_color: &str) -> String {
    let home = Home::new();
    let serve = format!("{:?}", home.serve()).replace('"', "'");
    let terminal = home.path("terminal");
    let mut command = Command::new("script");
    command.args([
        "--quiet",
        "--return",
        "--flush",
        "--command",
        // The time limit ends the service if this test fails.
        &format!("exec timeout 600 {serve}"),
        "/dev/null",
    ]);
    let mut script = command
        .env("NO_COLOR", no_color)
        .stdin(Stdio::null())
        .stdout(File::create(&terminal).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .expect("script runs");
    let said = until(
        "the service logs a warning and the start of minting",
        || {
            let said = String::from_utf8_lossy(&fs::read(&terminal).unwrap()).into_owned();
            let has_ended = script.try_wait().unwrap().is_some();
            assert!(!has_ended, "the service ended: {said}");
            let is_complete =
                said.contains("ids of siq are for development") && said.contains("INFO");
            is_complete.then_some(said)
        },
    );
    // `script` passes the signal on to the service.
    kill_process(Pid::from_child(&script), Signal::TERM).unwrap();
    script.wait().unwrap();
    said
}

#[test]
fn the_log_has_colours_on_a_terminal_unless_somebody_wants_none() {
    const ESCAPE: char = '\u{1b}';
    assert!(logged("").contains(ESCAPE));
    assert!(!logged("1").contains(ESCAPE));
}

/// Runs a command on a terminal, with its standard output redirected to `/dev/null`. Returns what
/// the terminal shows.
fn shown(command: &str) -> String {
    let command = format!("{} {command} > /dev/null", env!("CARGO_BIN_EXE_idmint"));
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &command, "/dev/null"]);
    let output = output_of(&mut script);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command}: {shown}");
    shown
}

#[test]
fn an_archive_is_not_written_to_a_terminal() {
    let command = format!("{} backup -", env!("CARGO_BIN_EXE_idmint"));
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &command, "/dev/null"]);
    let output = output_of(&mut script);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(64), "{said}");
    assert!(said.contains("idmint backup - > idmint.tar"), "{said}");
}

#[test]
fn bringing_conjunctions_elsewhere_shows_how_far_it_is_on_a_terminal_alone() {
    let (home, other) = (Home::new(), Home::new());
    let (service, there) = (home.start(), other.start());
    service.wait_until_ready();
    there.wait_until_ready();
    let message = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cdm/one.kvn");
    run(idmint(&["cdm", "--server", &service.url(), message])).assert(0, &[]);
    let export = format!("conjunction export --server {}", service.url());
    assert!(shown(&export).contains(" so far"), "{}", shown(&export));
    let exported = run(idmint(&export.split(' ').collect::<Vec<_>>()));
    assert_eq!(
        (exported.out.lines().count(), exported.err.as_str()),
        (1, ""),
        "nobody watches"
    );
    let file = home.path("conjunctions.ndjson");
    fs::write(&file, exported.out).unwrap();
    let imported = shown(&format!(
        "conjunction import {} --server {}",
        file.display(),
        there.url()
    ));
    assert!(imported.contains("1 of 1"), "{imported}");
}
