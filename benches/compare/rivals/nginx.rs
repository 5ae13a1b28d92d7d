//! Runs nginx with a constant response, as an example of a server in C.

use std::fs;

use rustix::process::Signal;
use tempfile::TempDir;

use super::Target;
use crate::cpu_pinning::{CpuPinning, Side};
use crate::process::{Process, free_port};

const PROGRAM: &str = "/usr/sbin/nginx";

pub(crate) struct Nginx {
    _process: Process,
    pub(crate) target: Target,
    _home: TempDir,
}

impl Nginx {
    /// Starts a server whose responses have `body_len` bytes.
    ///
    /// # Errors
    /// Returns the reason if the server does not run.
    pub(crate) fn start(pinning: &CpuPinning, body_len: usize) -> Result<Self, String> {
        if !fs::exists(PROGRAM).is_ok_and(|exists| exists) {
            return Err("not installed: Debian package nginx-light".to_owned());
        }
        let home = tempfile::tempdir().map_err(|error| error.to_string())?;
        let address = free_port();
        let file = home.path().join("nginx.conf");
        let body = "1".repeat(body_len);
        let config = format!(
            "daemon off; worker_processes 1; pid {0}/pid; error_log /dev/null crit;
             events {{ worker_connections 1024; }}
             http {{
                 access_log off; default_type application/json; tcp_nodelay on;
                 keepalive_requests 1000000000; keepalive_timeout 1h;
                 client_body_temp_path {0}/body; proxy_temp_path {0}/proxy; fastcgi_temp_path {0}/fastcgi;
                 uwsgi_temp_path {0}/uwsgi; scgi_temp_path {0}/scgi;
                 server {{ listen {address}; location / {{ return 200 '{body}'; }} }}
             }}",
            home.path().display()
        );
        fs::write(&file, config).map_err(|error| error.to_string())?;
        let mut command = pinning.command(Side::Server, PROGRAM);
        command.arg("-e").arg("/dev/null").arg("-c").arg(&file);
        let mut process = Process::start(command, Signal::TERM)?;
        process.accepts_at(address)?;
        let target = Target {
            address,
            pid: process.pid(),
        };
        Ok(Self {
            _process: process,
            target,
            _home: home,
        })
    }
}
