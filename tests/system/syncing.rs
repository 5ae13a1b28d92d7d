//! Checks that data is synced before the program relies on it, using the system calls of a real
//! process.
//!
//! The tests with a simulated disk show that the syncs are at the right places. Only a real process
//! can show that the syncs reach the kernel.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use idmint_testing::service::{Home, Service, idmint, run, run_by, until};

/// The file with the system calls that strace has written for a process and its threads.
struct Trace(PathBuf);

impl Trace {
    /// Returns the command so that strace writes its system calls to a file in the folder `home`.
    /// Also returns that file.
    fn of(home: &Home, command: &Command) -> (Trace, Command) {
        let path = home.path("calls");
        let mut strace = Command::new("strace");
        // With `--daemonize`, the process that the test starts, and may kill, is the command
        // itself. strace is a grandchild of the test.
        strace.args([
            "--daemonize",
            "--follow-forks",
            "--decode-fds=path",
            "--string-limit=1024",
        ]);
        strace.arg(
            "--trace=?mkdir,mkdirat,?rename,renameat,renameat2,fsync,fdatasync,pwrite64,write,writev,sendto,sendmsg",
        );
        strace.arg("--output").arg(&path).arg("--");
        (Trace(path), run_by(strace, command))
    }

    /// Returns the successful calls in the order in which they completed. The list ends where the
    /// first call that contains `end` begins, or where the process ended.
    fn calls_until(&self, end: &str) -> Vec<String> {
        let text = until("strace has noted the end", || {
            let text = fs::read_to_string(&self.0).unwrap_or_default();
            text.lines().any(|line| line.contains(end)).then_some(text)
        });
        let mut begun = HashMap::new();
        let mut calls = Vec::new();
        for line in text.lines().take_while(|line| !line.contains(end)) {
            let (thread, call) = line
                .split_once(' ')
                .expect("the thread, and what it called");
            let call = call.trim_start();
            if let Some(beginning) = call.strip_suffix("<unfinished ...>") {
                begun.insert(thread, beginning);
                continue;
            }
            let rest = call
                .strip_prefix("<... ")
                .and_then(|call| call.split_once("resumed>"));
            let call = match rest {
                Some((_, rest)) => format!("{}{rest}", begun.remove(thread).expect("it has begun")),
                None => call.to_owned(),
            };
            if !call.contains(" = -1 ") {
                calls.push(call);
            }
        }
        calls
    }
}

/// Asserts that the calls contain all steps in this order. Other calls may be between them. A step
/// is the name of a call and a part of its arguments.
#[track_caller]
fn assert_in_order(calls: &[String], steps: &[(&str, &str)]) {
    let mut rest = calls.iter();
    for (call, with) in steps {
        let found = rest.any(|made| made.starts_with(call) && made.contains(with));
        assert!(
            found,
            "{call} with {with} is missing, or comes too early, of {steps:?} in:\n{}",
            calls.join("\n")
        );
    }
}

/// Returns the text that strace prints for an open file or folder.
fn open(path: &Path) -> String {
    format!("<{}>", path.display())
}

/// Returns the text that strace prints for a path.
fn named(path: &Path) -> String {
    format!("\"{}\"", path.display())
}

#[test]
fn a_first_start_has_synced_the_horizon_and_each_folder_above_it_before_an_id_is_answered() {
    let home = Home::new();
    let root = fs::canonicalize(home.path(".")).unwrap();
    let above = root.join("above");
    let data = above.join("data");
    let (trace, command) = Trace::of(&home, &idmint_testing::service::serve_from(&data));
    let service = Service::start(command);
    service.wait_until_ready();
    let id = service.mint("snowflake").remove(0);
    let calls = trace.calls_until(&id);
    service.kill();

    assert_in_order(
        &calls,
        &[("mkdir", &named(&above)), ("fsync", &open(&root))],
    );
    assert_in_order(
        &calls,
        &[("mkdir", &named(&data)), ("fsync", &open(&above))],
    );
    let (unfinished, horizon) = (data.join("horizon.new"), data.join("horizon"));
    let creation = [
        ("write(", open(&unfinished)),
        ("fsync", open(&unfinished)),
        ("rename", named(&horizon)),
        ("fsync", open(&data)),
        // Both copies of the horizon must name the database before the database has any content.
        ("rename", named(&data.join("idmint.redb"))),
        ("fsync", open(&data)),
        ("pwrite64", open(&horizon)),
    ];
    assert_in_order(
        &calls,
        &creation
            .each_ref()
            .map(|(call, with)| (*call, with.as_str())),
    );

    let of_horizon = calls.iter().filter(|call| call.contains(&open(&horizon)));
    let raises: Vec<&str> = of_horizon
        .map(|call| call.split('(').next().unwrap())
        .collect();
    // Ignore an unpaired call at the end. It belongs to an extension of the horizon that continued
    // while the response was sent.
    let (pairs, _) = raises.as_chunks::<2>();
    assert!(
        pairs.len() >= 2 && pairs.iter().all(|pair| pair == &["pwrite64", "fdatasync"]),
        "{raises:?}"
    );
    println!(
        "{} calls before the first id, {} copies of the horizon written and synced",
        calls.len(),
        pairs.len()
    );
}

#[test]
fn a_document_replaced_in_place_is_synced_with_its_folder() {
    let home = Home::new();
    let root = fs::canonicalize(home.path(".")).unwrap();
    let document = root.join("one.kvn");
    fs::copy(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cdm/one.kvn"),
        &document,
    )
    .unwrap();
    let (trace, command) = Trace::of(&home, idmint(&["cdm", "--in-place"]).arg(&document));
    run(command).assert(0, &[]);
    let calls = trace.calls_until("+++ exited with 0 +++");
    let unfinished = "one.kvn.idmint-";
    let steps = [
        ("write(", unfinished),
        ("fsync", unfinished),
        ("rename", &named(&document)),
        ("fsync", &open(&root)),
    ];
    assert_in_order(&calls, &steps);
}
