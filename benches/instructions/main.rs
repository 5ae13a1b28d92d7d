//! Counts the instructions for minting and decoding an id, and compares them with the counts in
//! `counts.txt`. `make instructions` runs this benchmark, and so does `make test-all`.
//!
//! Durations depend on the machine and on its other work. The instruction counts of valgrind's
//! callgrind do not, so an increase of a tenth comes from a change of the code. The program runs
//! itself under callgrind, once for all subjects. It writes the profile of each subject to
//! `target/instructions/`, where `callgrind_annotate` can read it.

mod counts;
#[path = "../harness/mod.rs"]
mod harness;
mod subjects;

use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs, io};

use counts::Counts;

/// The argument with which this program runs itself under callgrind.
const UNDER_CALLGRIND: &str = "under-callgrind";

const PROFILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/instructions");
const RECORDED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/benches/instructions/counts.txt"
);

/// The architecture for which the counts are recorded. On another instruction set, the counts would
/// be different.
const ARCHITECTURE: &str = "x86_64";

fn main() -> ExitCode {
    if env::args().any(|argument| argument == UNDER_CALLGRIND) {
        subjects::run_all(|name, units| println!("{name} {units}"));
        return ExitCode::SUCCESS;
    }
    match count_all().and_then(|counted| record_or_compare(&counted)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

/// Runs every subject under callgrind, and returns the counts.
fn count_all() -> Result<Counts, String> {
    if env::consts::ARCH != ARCHITECTURE {
        return Err(format!(
            "the counts are of {ARCHITECTURE}, this is {}: nothing was compared",
            env::consts::ARCH
        ));
    }
    let failed = |what: &str, cause: io::Error| format!("{what}: {cause}");
    if Path::new(PROFILES).exists() {
        fs::remove_dir_all(PROFILES).map_err(|cause| failed(PROFILES, cause))?;
    }
    fs::create_dir_all(PROFILES).map_err(|cause| failed(PROFILES, cause))?;
    let output = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind"])
        .arg(format!("--callgrind-out-file={PROFILES}/part"))
        .arg(format!("--toggle-collect=*{}*", subjects::COUNTED))
        .arg(format!("--dump-after=*{}*", subjects::WRITTEN))
        .arg(env::current_exe().map_err(|cause| failed("this program", cause))?)
        .arg(UNDER_CALLGRIND)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|cause| {
            failed(
                "valgrind (Debian package valgrind, installed by .ci/install-packages)",
                cause,
            )
        })?;
    if !output.status.success() {
        return Err(format!("the counted program failed: {}", output.status));
    }
    let mut counts = Counts::default();
    let told = String::from_utf8_lossy(&output.stdout);
    for (at, line) in told.lines().enumerate() {
        let (name, units) = line.rsplit_once(' ').expect("written above");
        let units: u64 = units.parse().expect("written above");
        counts.insert(name, total_of_profile(at + 1, name)? / units);
    }
    Ok(counts)
}

/// Returns the instruction count in profile number `number`. Renames the profile, so that its name
/// contains the subject.
fn total_of_profile(number: usize, name: &str) -> Result<u64, String> {
    let part = format!("{PROFILES}/part.{number}");
    let text = fs::read_to_string(&part)
        .map_err(|cause| format!("no profile of {name} in {part}: {cause}"))?;
    let total = text
        .lines()
        .find_map(|line| line.strip_prefix("totals: "))
        .and_then(|total| total.parse().ok());
    fs::rename(
        &part,
        format!("{PROFILES}/{}", name.replace(['/', ' ', '?'], "-")),
    )
    .map_err(|cause| format!("{part}: {cause}"))?;
    total
        .filter(|total| *total > 0)
        .ok_or_else(|| format!("nothing was counted of {name}"))
}

/// Records the counts if `UPDATE_INSTRUCTIONS` is set. Otherwise compares them with the recorded
/// counts.
fn record_or_compare(counted: &Counts) -> Result<(), String> {
    if env::var_os("UPDATE_INSTRUCTIONS").is_some() {
        fs::write(RECORDED, counted.to_string()).map_err(|cause| format!("{RECORDED}: {cause}"))?;
        println!("{} counts are recorded in {RECORDED}", counted.len());
        return Ok(());
    }
    let recorded = fs::read_to_string(RECORDED)
        .map_err(|cause| format!("{RECORDED}: {cause}"))?
        .parse::<Counts>()?;
    let changes = counted.changes_since(&recorded);
    changes.iter().for_each(|change| println!("  {change}"));
    io::stdout()
        .flush()
        .map_err(|cause| format!("standard output: {cause}"))?;
    let failing = changes.iter().filter(|change| change.fails()).count();
    println!(
        "{} subjects, {failing} fail; profiles for callgrind_annotate are in {PROFILES}",
        counted.len()
    );
    match (failing, changes.len()) {
        (0, 0) => Ok(()),
        (0, _) => {
            println!(
                "record what was gained, or it can be lost again unseen: UPDATE_INSTRUCTIONS=1 make instructions"
            );
            Ok(())
        }
        _ => Err(
            "make it cheaper, or record what it is worth: UPDATE_INSTRUCTIONS=1 make instructions"
                .to_owned(),
        ),
    }
}
