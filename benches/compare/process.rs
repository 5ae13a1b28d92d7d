//! A program that runs until its value is dropped.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A timeout that is much longer than any of these programs takes to start or to end.
const LONG: Duration = Duration::from_secs(30);

/// A running server process. Dropping this value sends the signal `end`, and kills the process if
/// it does not exit.
pub(crate) struct Process {
    child: Child,
    end: Signal,
    /// The standard output of the process. It stays open, because the server may print more lines.
    stdout: Option<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts a program.
    ///
    /// # Errors
    /// Returns the reason if the program cannot be run.
    pub(crate) fn start(mut command: Command, end: Signal) -> Result<Self, String> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command
            .spawn()
            .map_err(|error| format!("{command:?} does not run: {error}"))?;
        let stdout = child.stdout.take().map(BufReader::new);
        Ok(Self { child, end, stdout })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the address at the end of the first line that the program prints.
    ///
    /// # Errors
    /// Returns an error if the line does not end with an address.
    pub(crate) fn address(&mut self) -> Result<SocketAddr, String> {
        let mut line = String::new();
        let stdout = self.stdout.as_mut().ok_or("its output is not read")?;
        stdout
            .read_line(&mut line)
            .map_err(|error| format!("it cannot be read: {error}"))?;
        let address = line
            .trim_end()
            .rsplit(['/', ' '])
            .next()
            .and_then(|address| address.parse().ok());
        address.ok_or_else(|| format!("it printed {line:?} where its address should be"))
    }

    /// Waits until the program accepts connections at `address`.
    ///
    /// # Errors
    /// Returns an error if the program exits, or if it does not accept a connection in time.
    pub(crate) fn accepts_at(&mut self, address: SocketAddr) -> Result<(), String> {
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("it ended, {status}"));
            }
            if began.elapsed() > LONG {
                return Err(format!("it does not listen on {address}"));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id())
            .ok()
            .and_then(Pid::from_raw)
            .expect("a process has a number");
        let _ = kill_process(pid, self.end);
        let began = Instant::now();
        while began.elapsed() < LONG {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns an address with a port that is free at this moment. Needed for servers that cannot
/// choose a free port themselves.
pub(crate) fn free_port() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of this machine");
    listener
        .local_addr()
        .expect("a bound socket has an address")
}

/// Runs a program to its end and returns its output.
///
/// # Errors
/// Returns the text of standard error if the program fails.
pub(crate) fn run_to_end(mut command: Command) -> Result<String, String> {
    let run = command.stdin(Stdio::null()).output();
    let Output {
        status,
        stdout,
        stderr,
    } = run.map_err(|error| format!("{command:?} does not run: {error}"))?;
    if !status.success() {
        return Err(format!(
            "{status}: {}",
            String::from_utf8_lossy(&stderr).trim()
        ));
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}
