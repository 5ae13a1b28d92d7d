//! Running the binary: a folder for its state, a process with its address, and how it ended.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, kill_process};
use tempfile::{NamedTempFile, TempDir};

pub(crate) use rustix::process::Signal;

use crate::http1::{Answer, Client, request};

/// Far longer than anything here takes, on however slow a machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Ids as plain text, one a line.
pub(crate) const PREFER_TEXT: &str = "accept: text/plain, */*;q=0.5\r\n";

/// The folder of one service, gone with the value.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.path("data")
    }

    pub(crate) fn serve(&self) -> Command {
        serve_from(&self.data_dir())
    }

    /// The same with this configuration file.
    pub(crate) fn serve_with(&self, toml: &str) -> Command {
        let file = self.path("idmint.toml");
        fs::write(&file, toml).unwrap();
        let mut command = self.serve();
        command.arg("--config").arg(file);
        command
    }

    pub(crate) fn start(&self) -> Service {
        Service::start(self.serve())
    }
}

/// `idmint`, without the settings that the environment of this test may have.
pub(crate) fn idmint(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_idmint"));
    let ours = |name: &str| name.starts_with("IDMINT_") || name.starts_with("KUBERNETES_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(ours)) {
        command.env_remove(name);
    }
    command.args(args);
    command
}

/// The same command, run by this one, which takes it as its last arguments.
pub(crate) fn run_by(mut wrapper: Command, command: &Command) -> Command {
    wrapper.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapper.env(name, value),
            None => wrapper.env_remove(name),
        };
    }
    wrapper
}

/// Runs a command that gets an error, not a signal, where a file may not grow so far.
pub(crate) fn without_size_signal(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ && exec \"$0\" \"$@\""]);
    run_by(shell, command)
}

/// `idmint serve` on a free port of this machine.
pub(crate) fn serve_from(data_dir: &Path) -> Command {
    let mut command = idmint(&["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
    command.arg(data_dir);
    command
}

/// A service that listens. Killed when dropped; if the test has failed, its log is shown.
pub(crate) struct Service {
    child: Child,
    begun: Instant,
    address: SocketAddr,
    banner: NamedTempFile,
    log: NamedTempFile,
}

impl Service {
    /// Starts it and waits for its address.
    pub(crate) fn start(mut command: Command) -> Service {
        command.stdin(Stdio::null());
        Service::start_with_input(command)
    }

    /// The same with the standard input that the command has.
    pub(crate) fn start_with_input(command: Command) -> Service {
        let log = NamedTempFile::new().unwrap();
        let written = log.reopen().unwrap();
        Service::logging_to(command, log, written)
    }

    /// The same with a log of which nothing will be known.
    pub(crate) fn start_with_log_lost(mut command: Command, sink: &str) -> Service {
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

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn banner(&self) -> String {
        text_of(&self.banner)
    }

    /// The log, once this stands in it: lines are written a moment after what they tell of.
    pub(crate) fn log_once_it_says(&self, text: &str) -> String {
        until(text, || Some(self.log()).filter(|log| log.contains(text)))
    }

    pub(crate) fn log(&self) -> String {
        text_of(&self.log)
    }

    /// Waits until it mints, and says how long after its start that was.
    pub(crate) fn wait_until_ready(&self) -> Duration {
        until("the service is ready", || {
            (self.get("/health/ready").status == 200).then(|| self.begun.elapsed())
        })
    }

    pub(crate) fn get(&self, target: &str) -> Answer {
        self.exchange(&format!("GET {target}"))
    }

    pub(crate) fn post(&self, target: &str) -> Answer {
        self.exchange(&format!("POST {target}"))
    }

    /// One request on a connection of its own.
    fn exchange(&self, method_and_target: &str) -> Answer {
        Client::connect(self.address).exchange(request(method_and_target, PREFER_TEXT, ""))
    }

    /// The ids of one request, which must be granted.
    pub(crate) fn mint(&self, order: &str) -> Vec<String> {
        let answer = self.post(&format!("/ids/{order}"));
        assert_eq!(answer.status, 200, "{order}: {}", answer.text());
        answer.text().lines().map(str::to_owned).collect()
    }

    /// One series of `/metrics`, named with its labels.
    pub(crate) fn metric(&self, series: &str) -> f64 {
        let text = self.get("/metrics").text();
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value
            .unwrap_or_else(|| panic!("no {series} in:\n{text}"))
            .parse()
            .unwrap()
    }

    /// The same, of a series that counts.
    pub(crate) fn count(&self, series: &str) -> usize {
        self.metric(series).to_string().parse().unwrap()
    }

    /// `kill -9`: nothing of it runs any more when this returns.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn send(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits until it ends by itself.
    pub(crate) fn wait(mut self) -> Ended {
        let status = until("the service ends", || self.child.try_wait().unwrap());
        Ended {
            status,
            out: String::new(),
            err: self.log(),
        }
    }

    pub(crate) fn is_running(&mut self) -> bool {
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

/// How a command ended and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// The exit code must be `code`, and what it wrote to standard error must say `words`.
    #[track_caller]
    pub(crate) fn assert(&self, code: i32, words: &[&str]) {
        assert_eq!(self.status.code(), Some(code), "{}", self.err);
        for word in words {
            assert!(self.err.contains(word), "{word:?} is not in {}", self.err);
        }
    }
}

/// Runs a command that ends by itself.
pub(crate) fn run(mut command: Command) -> Ended {
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

/// Looks again and again until there is something.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            begun.elapsed() < LONG,
            "this should have happened long ago: {what}"
        );
        std::thread::sleep(Duration::from_millis(1));
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
