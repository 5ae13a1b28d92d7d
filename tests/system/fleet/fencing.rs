//! The fence after a restore of etcd, set as an operator sets it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fleet::nodes::until_within;
use idmint_testing::service::{Ended, LONG, idmint, run};

/// The exit code if etcd did not answer in time, so the command must be run again.
const TRY_AGAIN: i32 = 75;

/// An option with its file: `--journal` or `--high-water`.
pub(super) type GivenFile = (&'static str, PathBuf);

/// Runs `idmint fleet fence-restore --yes` with these files until etcd answers.
pub(super) fn fence_restore(config: &Path, files: impl IntoIterator<Item = GivenFile>) -> Ended {
    fence_until_answered(config, files, |command| {
        command.arg("--yes");
    })
}

/// Runs the fence like [`fence_restore`], on a machine whose clock is right although some file
/// shows a later time.
pub(super) fn fence_trusting_the_clock(
    config: &Path,
    files: impl IntoIterator<Item = GivenFile>,
) -> Ended {
    fence_until_answered(config, files, |command| {
        command.args(["--yes", "--trust-this-clock"]);
    })
}

/// Runs `idmint fleet fence-restore` with these files, changed by `change`, until etcd answers.
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

/// Runs a command again until etcd answers in time, as an operator does after exit code 75.
pub(super) fn run_until_answered(command: impl Fn() -> Command) -> Ended {
    until_within(LONG, "etcd answers in time", || {
        Some(run(command())).filter(|ended| ended.status.code() != Some(TRY_AGAIN))
    })
}
