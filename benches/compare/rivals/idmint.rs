//! Runs the release binary, `idmint serve`, with one worker thread.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use rustix::process::Signal;
use tempfile::TempDir;

use super::Target;
use crate::cpu_pinning::{CpuPinning, Side};
use crate::process::Process;

/// Returns the path of the binary to measure. This is `COMPARE_BINARY` if it is set, or else the
/// binary that cargo has built together with this program. That binary has the features of the
/// tests.
pub(crate) fn binary() -> PathBuf {
    env::var_os("COMPARE_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_idmint").into(), PathBuf::from)
}

/// A running service with its own data directory.
pub(crate) struct Idmint {
    _process: Process,
    target: Target,
    _home: TempDir,
}

impl Idmint {
    /// Starts a service with the default configuration and the settings in `toml`, which take
    /// precedence.
    ///
    /// # Errors
    /// Returns the reason if the service does not run.
    pub(crate) fn start(pinning: &CpuPinning, toml: &str) -> Result<Self, String> {
        let home = tempfile::tempdir().map_err(|error| error.to_string())?;
        let file = home.path().join("idmint.toml");
        fs::write(&file, toml).map_err(|error| error.to_string())?;
        let mut command = serve_from(pinning, &home.path().join("data"));
        command.arg("--config").arg(file);
        let mut process = Process::start(command, Signal::TERM)?;
        let target = Target {
            address: process.address()?,
            pid: process.pid(),
        };
        Ok(Self {
            _process: process,
            target,
            _home: home,
        })
    }

    pub(crate) fn target(&self) -> Target {
        self.target
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.target.address
    }
}

/// Returns a command that starts a service on a free port. The settings in the environment of this
/// program are removed.
pub(crate) fn serve_from(pinning: &CpuPinning, data_dir: &Path) -> Command {
    let mut command = pinning.command(Side::Server, binary());
    for (name, _) in env::vars_os().filter(|(name, _)| {
        name.to_str()
            .is_some_and(|name| name.starts_with("IDMINT_"))
    }) {
        command.env_remove(name);
    }
    command.env("TOKIO_WORKER_THREADS", "1");
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(data_dir);
    command
}
