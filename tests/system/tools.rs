//! Runs external programs and libraries for the tests.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

/// A time limit that is much longer than any program takes, even on a busy machine.
const LIMIT: Duration = Duration::from_mins(30);

/// Runs a program until it ends, and returns its output. Its standard input is empty.
///
/// # Panics
/// Panics if the program is missing, fails or takes longer than [`LIMIT`]. The message contains its
/// output.
#[track_caller]
pub(crate) fn succeed(command: &mut Command) -> String {
    succeed_with(command, Stdio::null())
}

#[track_caller]
fn succeed_with(command: &mut Command, input: Stdio) -> String {
    let output = run(command, input);
    let printed = printed(&output);
    assert!(output.status.success(), "{command:?}:\n{printed}");
    printed
}

/// Runs a program until it ends, and returns its output, even if it fails. Its standard input is
/// empty.
///
/// # Panics
/// Panics if the program is missing or takes longer than [`LIMIT`].
#[track_caller]
pub(crate) fn output_of(command: &mut Command) -> Output {
    run(command, Stdio::null())
}

/// The output goes to files, because a process that the program leaves behind would keep a pipe
/// open.
#[track_caller]
fn run(command: &mut Command, input: Stdio) -> Output {
    let files = [(); 2].map(|()| NamedTempFile::new().expect("a temporary file"));
    let [stdout, stderr] = files
        .each_ref()
        .map(|file| file.reopen().expect("the file is there"));
    command.stdin(input).stdout(stdout).stderr(stderr);
    let mut child = command.spawn().unwrap_or_else(|error| {
        panic!("{command:?} does not run: {error}; .ci/install-packages and make test-all install what is needed")
    });
    let begun = Instant::now();
    let (status, hangs) = loop {
        let status = child.try_wait().expect("it is a child of this process");
        if let Some(status) = status {
            break (status, false);
        }
        if begun.elapsed() > LIMIT {
            child.kill().expect("it is a child of this process");
            break (child.wait().expect("it was killed"), true);
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let [stdout, stderr] = files.map(|file| std::fs::read(file.path()).expect("the file is there"));
    let output = Output {
        status,
        stdout,
        stderr,
    };
    assert!(!hangs, "{command:?} hangs:\n{}", printed(&output));
    output
}

/// Returns what a program has written to its standard output and then to its standard error.
fn printed(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes))
        .concat()
}

/// Runs promtool with these arguments in the root of this repository, and returns its output.
///
/// # Panics
/// Panics if promtool is missing or reports an error. The message contains its output.
pub(crate) fn promtool<A: AsRef<OsStr>>(args: &[A]) -> String {
    promtool_with(args, Stdio::null())
}

/// Runs promtool with `text` as its standard input, and returns its output.
pub(crate) fn promtool_reads(args: &[&str], text: &str) -> String {
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes())
        .expect("the text is written");
    promtool_with(args, File::open(&file).expect("the file is there").into())
}

fn promtool_with<A: AsRef<OsStr>>(args: &[A], input: Stdio) -> String {
    succeed_with(
        Command::new("promtool")
            .args(args)
            .current_dir(env!("CARGO_MANIFEST_DIR")),
        input,
    )
}

/// Returns a command that runs schemathesis in the folder `folder`. schemathesis stores data for
/// its next run there.
///
/// # Panics
/// Panics if schemathesis is missing.
pub(crate) fn schemathesis(folder: &Path, args: &[&str]) -> Command {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = ours.join("target/tools/schemathesis/bin/schemathesis");
    assert!(
        program.is_file(),
        "schemathesis is there: installed by .ci/install-schemathesis"
    );
    let told = ours.join("tests/system/schemathesis");
    let mut command = Command::new(program);
    command
        .arg("--no-color")
        .arg("--config-file")
        .arg(told.join("schemathesis.toml"));
    command.arg("run").arg(ours.join("openapi.yaml")).args(args);
    command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONPATH", told)
        .current_dir(folder);
    command
}

/// Reads these files with the package ccsds-ndm, using `read_cdm.py`. Returns one value for each
/// file.
///
/// # Panics
/// Panics if ccsds-ndm is missing or cannot read a file. The message contains its output.
pub(crate) fn read_cdms(files: &[&Path]) -> Vec<serde_json::Value> {
    run_ccsds_ndm("read_cdm.py", files)
}

/// Returns documents of every kind with conjunction reports, which Python packages have written.
/// `template` is a message as KVN.
///
/// # Panics
/// Panics if ccsds-ndm is missing or fails. The message contains its output.
pub(crate) fn write_cdms(template: &Path) -> Vec<serde_json::Value> {
    run_ccsds_ndm("write_cdms.py", &[template])
}

/// Runs a script with ccsds-ndm, and returns the lines of JSON that it prints.
fn run_ccsds_ndm(script: &str, files: &[&Path]) -> Vec<serde_json::Value> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = ours.join("target/tools/ccsds-ndm/bin/python");
    assert!(
        python.is_file(),
        "ccsds-ndm is there: installed by .ci/install-ccsds-ndm"
    );
    let mut command = Command::new(python);
    command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(ours.join("tests/system").join(script))
        .args(files);
    let output = output_of(&mut command);
    assert!(
        output.status.success(),
        "ccsds-ndm failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let printed = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    printed
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// Returns the path of libfaketime. A process that preloads this library gets its own wall clock.
///
/// # Panics
/// Panics if the library is missing. The library is in a folder named after the machine's
/// architecture.
pub(crate) fn libfaketime() -> PathBuf {
    std::fs::read_dir("/usr/lib")
        .expect("/usr/lib can be listed")
        .flatten()
        .map(|folder| folder.path().join("faketime/libfaketime.so.1"))
        .find(|library| library.is_file())
        .expect(
            "libfaketime.so.1 is there: Debian package faketime, installed by .ci/install-packages",
        )
}

#[test]
fn promtool_and_libfaketime_are_present() {
    assert!(promtool(&["--version"]).contains("promtool, version"));

    // Check that a program can load the library. It is not sufficient that the file exists.
    let told = Command::new("date")
        .args(["--utc", "+%Y"])
        .env("LD_PRELOAD", libfaketime())
        .env("FAKETIME", "@2001-02-03 04:05:06")
        .output()
        .expect("date runs");
    assert_eq!(String::from_utf8_lossy(&told.stdout), "2001\n");
}
