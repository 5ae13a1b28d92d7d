//! Checks `make fleet`, using the program of these tests: the output of its script, and the
//! experiment that docs/FLEET.md suggests.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use idmint_fleet::{CoordinatorError, Range};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::client::settings;
use idmint_testing::http1::{Client, request};
use idmint_testing::service::{LONG, until};

const NODES: [&str; 2] = ["node-1", "node-2"];
const MEMBERS: [&str; 3] = ["m1", "m2", "m3"];

/// A lock for the fixed ports of the demo fleet. Only one demo fleet can run at a time.
static PORTS: Mutex<()> = Mutex::new(());

/// The running script, with the lines that it prints. Dropping this value ends all processes that
/// the script has started.
struct Script {
    child: Child,
    said: Receiver<String>,
}

impl Script {
    fn start(folder: &Path, nodes: usize) -> Script {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/fleet/run");
        // Reset SIGINT to its default. A test that runs in the background inherits an ignored
        // SIGINT, and a shell cannot handle a signal that was ignored at its start.
        let mut run = Command::new("env");
        run.arg("--default-signal=INT")
            .arg(script)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        run.env("FLEET_DIR", folder)
            .env("NODES", nodes.to_string())
            .env("IDMINT", env!("CARGO_BIN_EXE_idmint"));
        let mut child = run.spawn().expect("bash is there");
        let lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let (tell, said) = channel();
        thread::spawn(move || lines.for_each(|line| drop(tell.send(line))));
        Script { child, said }
    }

    /// Returns the next line of output.
    fn next(&self) -> String {
        let line = self.said.recv_timeout(2 * LONG).expect("it says something");
        println!("{line}");
        line
    }

    /// Waits for the line that says that the process `name` is ready. Returns its process id and
    /// address.
    fn next_ready(&self, name: &str) -> Running {
        let line = self.next();
        let what = line
            .strip_prefix(&format!("{name} is ready, process "))
            .unwrap_or_else(|| panic!("{line}"));
        let (pid, place) = what.split_once(": ").unwrap();
        let (_, address) = place.split_once("http://").unwrap();
        let address = address.split('/').next().unwrap().parse().unwrap();
        Running {
            pid: Pid::from_raw(pid.parse().unwrap()).unwrap(),
            address,
        }
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

/// A running process of the script, which is a node or an etcd member.
#[derive(Debug, Clone, Copy)]
struct Running {
    pid: Pid,
    address: SocketAddr,
}

fn mint(node: &Running) -> String {
    let answer = until("it mints", || {
        let answer = Client::connect(node.address).exchange(request("POST /ids/snowflake", "", ""));
        Some(answer).filter(|answer| answer.status != 503)
    });
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["ids"][0].as_str().unwrap().to_owned()
}

/// Writes the name letter by letter. The pauses are longer than the script waits for a line.
fn type_slowly(start: &Path, name: &str) {
    let mut start = File::options().write(true).open(start).unwrap();
    for letter in format!("{name}\n").bytes() {
        start.write_all(&[letter]).unwrap();
        thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn whatever_is_killed_of_the_fleet_to_try_out_is_said_and_comes_back_and_ctrl_c_ends_all_of_it() {
    let _alone = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let mut script = Script::start(folder.path(), NODES.len());
    let names = MEMBERS.into_iter().chain(NODES);
    let mut running: BTreeMap<&str, Running> =
        names.map(|name| (name, script.next_ready(name))).collect();
    assert_eq!(
        script.next(),
        "kill any of them by its process; Ctrl-C here ends all"
    );
    let mut ids: Vec<String> = NODES.iter().map(|node| mint(&running[node])).collect();

    for name in ["node-1", "m2"] {
        let pid = running[name].pid;
        kill_process(pid, Signal::KILL).unwrap();
        let said = script.next();
        let ended = format!(
            "{name}, process {}, has ended by SIGKILL; this starts it again: ",
            pid.as_raw_nonzero()
        );
        let command = said
            .strip_prefix(&ended)
            .unwrap_or_else(|| panic!("{said}"))
            .to_owned();
        ids.push(mint(&running["node-2"]));
        if name == "m2" {
            type_slowly(&folder.path().join("start"), name);
        } else {
            // Run the documented command in another folder, because a user runs it in another
            // terminal.
            let typed = Command::new("bash")
                .arg("-c")
                .arg(command)
                .current_dir("/")
                .status()
                .unwrap();
            assert!(typed.success());
        }
        assert!(
            script
                .next()
                .starts_with(&format!("{name} is starting again, process "))
        );
        let again = script.next_ready(name);
        assert_ne!(again.pid, pid);
        running.insert(name, again);
        ids.extend(NODES.iter().map(|node| mint(&running[node])));
    }
    // The script must report the exit code of a process that ends by itself, for example after a
    // signal.
    kill_process(running["node-1"].pid, Signal::TERM).unwrap();
    assert!(script.next().contains(", has ended with exit code 0; "));
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "{ids:?}");

    kill_process(Pid::from_child(&script.child), Signal::INT).unwrap();
    assert!(script.next().starts_with("ended; "));
    assert!(script.child.wait().unwrap().success());
    running.remove("node-1");
    for (name, left) in &running {
        until(name, || test_kill_process(left.pid).is_err().then_some(()));
    }
    let endpoints = MEMBERS.map(|member| format!("http://{}", running[member].address));
    let refused = idmint_fleet::connect(&settings(&endpoints))
        .unwrap()
        .read(&[Range::one("/a")])
        .unwrap_err();
    assert!(
        matches!(refused, CoordinatorError::NotSent(_)),
        "nobody is left: {refused}"
    );
    assert!(!folder.path().join("start").exists());
}

#[test]
fn the_script_ends_when_nothing_of_its_fleet_runs_any_more() {
    let _alone = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let mut script = Script::start(folder.path(), 0);
    let members = MEMBERS.map(|name| script.next_ready(name));
    script.next();
    for (name, member) in MEMBERS.iter().zip(members) {
        kill_process(member.pid, Signal::KILL).unwrap();
        assert!(script.next().starts_with(&format!("{name}, process ")));
    }
    assert!(script.next().starts_with("ended; "));
    assert_eq!(script.child.wait().unwrap().code(), Some(1));
}
