//! Runs the program as a process, with its data folder and address.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, kill_process, prlimit};
use tempfile::{NamedTempFile, TempDir};

pub use rustix::process::Signal;

use crate::http1::{Answer, Client, request};
use crate::program;

/// A time limit that is much longer than any step takes, even on a slow machine.
pub const LONG: Duration = Duration::from_secs(240);

/// The time after which [`until`] checks its condition less often.
const OFTEN_FOR: Duration = Duration::from_millis(100);

/// A header that asks for ids as plain text, one on each line.
pub const PREFER_TEXT: &str = "accept: text/plain, */*;q=0.5\r\n";

/// The data folder of one service, which is removed when this value is dropped.
pub struct Home(TempDir);

impl Home {
    pub fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn data_dir(&self) -> PathBuf {
        self.path("data")
    }

    pub fn serve(&self) -> Command {
        serve_from(&self.data_dir())
    }

    /// Returns the command `serve` with this text as its configuration file.
    pub fn serve_with(&self, toml: &str) -> Command {
        let file = self.path("idmint.toml");
        fs::write(&file, toml).unwrap();
        let mut command = self.serve();
        command.arg("--config").arg(file);
        command
    }

    pub fn start(&self) -> Service {
        Service::start(self.serve())
    }
}

/// Returns a command that runs `idmint` with these arguments. Settings from the environment of the
/// test are removed.
pub fn idmint(args: &[&str]) -> Command {
    let mut command = Command::new(program());
    let ours = |name: &str| name.starts_with("IDMINT_") || name.starts_with("KUBERNETES_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(ours)) {
        command.env_remove(name);
    }
    command.args(args);
    command
}

/// Returns the command `wrapper` with `command` appended as its last arguments.
pub fn run_by(mut wrapper: Command, command: &Command) -> Command {
    wrapper.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapper.env(name, value),
            None => wrapper.env_remove(name),
        };
    }
    wrapper
}

/// Returns a command that runs `command` and ignores the signal SIGXFSZ. A write beyond the file
/// size limit then returns an error instead of killing the process.
pub fn without_size_signal(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ && exec \"$0\" \"$@\""]);
    run_by(shell, command)
}

/// Returns the command `idmint serve` on a free loopback port.
pub fn serve_from(data_dir: &Path) -> Command {
    let mut command = idmint(&["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
    command.arg(data_dir);
    command
}

/// A running service that listens on its address. Dropping the value kills the process, and prints
/// the log if the test has failed.
pub struct Service {
    child: Child,
    begun: Instant,
    address: SocketAddr,
    banner: NamedTempFile,
    log: NamedTempFile,
}

impl Service {
    /// Starts the service, and waits until it prints its address.
    pub fn start(mut command: Command) -> Service {
        command.stdin(Stdio::null());
        Service::start_with_input(command)
    }

    /// Starts the service with the standard input that `command` specifies.
    pub fn start_with_input(command: Command) -> Service {
        let log = NamedTempFile::new().unwrap();
        let written = log.reopen().unwrap();
        Service::logging_to(command, log, written)
    }

    /// Starts the service, and sends its log to `sink`. The test cannot read the log.
    pub fn start_with_log_lost(mut command: Command, sink: &str) -> Service {
        command.stdin(Stdio::null());
        let sink = File::options().write(true).open(sink).unwrap();
        Service::logging_to(command, NamedTempFile::new().unwrap(), sink)
    }

    fn logging_to(mut command: Command, log: NamedTempFile, sink: File) -> Service {
        let banner = NamedTempFile::new().unwrap();
        command.stdout(banner.reopen().unwrap()).stderr(sink);
        let begun = Instant::now();
        let mut child = command.spawn().expect("the program starts");
        let address = until("the service says where it listens", || {
            if let Some(status) = child.try_wait().unwrap() {
                panic!("the service ended, {status}:\n{}", text_of(&log));
            }
            address_in(&text_of(&banner))
        });
        Service {
            child,
            begun,
            address,
            banner,
            log,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn banner(&self) -> String {
        text_of(&self.banner)
    }

    /// Waits until the log contains `text`, and returns the log. Waiting is necessary because a log
    /// line is written shortly after the event that it describes.
    pub fn log_once_it_says(&self, text: &str) -> String {
        until(text, || Some(self.log()).filter(|log| log.contains(text)))
    }

    pub fn log(&self) -> String {
        text_of(&self.log)
    }

    /// Waits until the service is ready, and returns how long this took since the start.
    pub fn wait_until_ready(&self) -> Duration {
        until("the service is ready", || {
            (self.get("/health/ready").status == 200).then(|| self.begun.elapsed())
        })
    }

    pub fn get(&self, target: &str) -> Answer {
        self.exchange(&format!("GET {target}"))
    }

    pub fn post(&self, target: &str) -> Answer {
        self.exchange(&format!("POST {target}"))
    }

    /// Sends one request on a new connection.
    fn exchange(&self, method_and_target: &str) -> Answer {
        Client::connect(self.address).exchange(request(method_and_target, PREFER_TEXT, ""))
    }

    /// Mints ids with one request, and returns them.
    ///
    /// # Panics
    /// Panics if the request is refused.
    pub fn mint(&self, order: &str) -> Vec<String> {
        let answer = self.post(&format!("/ids/{order}"));
        assert_eq!(answer.status, 200, "{order}: {}", answer.text());
        answer.text().lines().map(str::to_owned).collect()
    }

    /// Returns the value of one time series in `/metrics`. `series` is its name with its labels.
    pub fn metric(&self, series: &str) -> f64 {
        let text = self.get("/metrics").text();
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value
            .unwrap_or_else(|| panic!("no {series} in:\n{text}"))
            .parse()
            .unwrap()
    }

    /// Returns the value of a counter in `/metrics`.
    pub fn count(&self, series: &str) -> usize {
        self.metric(series).to_string().parse().unwrap()
    }

    /// Kills the process with SIGKILL, and waits until it has ended.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn send(&self, signal: Signal) {
        kill_process(self.process(), signal).unwrap();
    }

    /// Lowers the number of files that the running process may open. Lower the limit only after the
    /// start. If the limit is already low at the start, the service accepts fewer connections and
    /// stays below the limit.
    pub fn limit_open_files(&self, most: u64) {
        let limit = Rlimit {
            current: Some(most),
            maximum: getrlimit(Resource::Nofile).maximum,
        };
        prlimit(Some(self.process()), Resource::Nofile, limit).unwrap();
    }

    fn process(&self) -> Pid {
        Pid::from_raw(self.child.id().try_into().unwrap()).unwrap()
    }

    /// Waits until the process ends. This function does not kill the process.
    pub fn wait(mut self) -> Ended {
        let status = until("the service ends", || self.child.try_wait().unwrap());
        Ended {
            status,
            out: String::new(),
            err: self.log(),
        }
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the log of process {}:\n{}", self.pid(), self.log());
        }
    }
}

/// The exit status and the output of a command that has ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
}

impl Ended {
    /// Asserts that the exit code is `code`, and that standard error contains all `words`.
    #[track_caller]
    pub fn assert(&self, code: i32, words: &[&str]) {
        assert_eq!(self.status.code(), Some(code), "{}", self.err);
        for word in words {
            assert!(self.err.contains(word), "{word:?} is not in {}", self.err);
        }
    }
}

/// Runs a command until it ends, and returns its result.
pub fn run(mut command: Command) -> Ended {
    let (out, err) = (NamedTempFile::new().unwrap(), NamedTempFile::new().unwrap());
    command
        .stdin(Stdio::null())
        .stdout(out.reopen().unwrap())
        .stderr(err.reopen().unwrap());
    let mut child = KilledOnDrop(command.spawn().expect("the program starts"));
    let status = until("the command ends", || child.0.try_wait().unwrap());
    Ended {
        status,
        out: text_of(&out),
        err: text_of(&err),
    }
}

struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Calls `look` again and again until it returns a value.
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            begun.elapsed() < LONG,
            "this should have happened long ago: {what}"
        );
        // Check less often if the condition takes long to become true. The machine may then be
        // busy, and most checks send another request.
        let pause_ms = if begun.elapsed() < OFTEN_FOR { 1 } else { 20 };
        std::thread::sleep(Duration::from_millis(pause_ms));
    }
}

/// Sets the stop flag of callers when this value is dropped, even if the test fails.
/// Otherwise, a failed test would wait for its callers forever.
pub struct StopOnDrop<'a>(pub &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn address_in(banner: &str) -> Option<SocketAddr> {
    let (_, rest) = banner.split_once("listens on http")?;
    let (url, _) = rest.split_once('\n')?;
    url.trim_start_matches('s')
        .strip_prefix("://")?
        .parse()
        .ok()
}

fn text_of(file: &NamedTempFile) -> String {
    std::io::read_to_string(File::open(file).unwrap()).unwrap()
}
