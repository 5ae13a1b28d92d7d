//! The fence behind a restore of etcd, as an operator sets it.

use std::path::{Path, PathBuf};

use crate::fleet::nodes::until_within;
use crate::service::{Ended, LONG, idmint, run};

/// What it ends with where etcd did not answer in time: it is to be run again.
const TRY_AGAIN: i32 = 75;

/// Runs `idmint fleet fence-restore` with these files, `--journal` or `--high-water` each, until etcd answers it.
pub(super) fn fence_restore(
    config: &Path,
    files: impl IntoIterator<Item = (&'static str, PathBuf)>,
) -> Ended {
    let files: Vec<_> = files.into_iter().collect();
    until_within(LONG, "etcd answers in time", || {
        let mut command = idmint(&["fleet", "fence-restore", "--config"]);
        command.arg(config);
        for (option, path) in &files {
            command.arg(option).arg(path);
        }
        Some(run(command)).filter(|ended| ended.status.code() != Some(TRY_AGAIN))
    })
}
