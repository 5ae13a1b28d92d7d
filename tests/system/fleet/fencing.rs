//! Runs the fence of a fleet after etcd was restored, as an operator does. A fence sets a time
//! below which no node mints.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fleet::nodes::until_within;
use idmint_testing::service::{Ended, LONG, idmint, run};

/// The exit code for an etcd that did not respond in time. The command must then be run again.
const TRY_AGAIN: i32 = 75;

/// An option of the fence, which is `--journal` or `--high-water`, and the path that follows it.
pub(super) type GivenFile = (&'static str, PathBuf);

/// Runs `idmint fleet fence-restore --yes` with these files. Repeats the command until etcd
/// responds.
pub(super) fn fence_restore(config: &Path, files: impl IntoIterator<Item = GivenFile>) -> Ended {
    fence_until_answered(config, files, |command| {
        command.arg("--yes");
    })
}

/// Runs the fence like [`fence_restore`], with `--trust-this-clock`. This option says that the
/// clock of the machine is right, although a file shows a later time.
pub(super) fn fence_trusting_the_clock(
    config: &Path,
    files: impl IntoIterator<Item = GivenFile>,
) -> Ended {
    fence_until_answered(config, files, |command| {
        command.args(["--yes", "--trust-this-clock"]);
    })
}

/// Runs `idmint fleet fence-restore` with these files, after `change` has modified the command.
/// Repeats the command until etcd responds.
pub(super) fn fence_until_answered(
    config: &Path,
    files: impl IntoIterator<Item = GivenFile>,
    change: impl Fn(&mut Command),
) -> Ended {
    let files: Vec<_> = files.into_iter().collect();
    run_until_answered(|| {
        let mut command = idmint(&["fleet", "fence-restore", "--config"]);
        command.arg(config);
        for (option, path) in &files {
            command.arg(option).arg(path);
        }
        change(&mut command);
        command
    })
}

/// Runs a command, and repeats it after exit code 75, as an operator does when etcd has not
/// responded in time.
pub(super) fn run_until_answered(command: impl Fn() -> Command) -> Ended {
    until_within(LONG, "etcd answers in time", || {
        Some(run(command())).filter(|ended| ended.status.code() != Some(TRY_AGAIN))
    })
}
