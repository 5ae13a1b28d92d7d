//! An etcd cluster on free ports of this machine. It ends when its value is dropped.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use idmint_testing::loopback::address_of_its_own;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A timeout that is much longer than etcd needs to start on a slow machine.
const LONG: Duration = Duration::from_secs(300);

/// An argument with which etcdctl waits longer than 5 s for a response. Use it only while all
/// members run, because etcdctl may wait as long for a member that is down.
const PATIENT: &str = "--command-timeout=60s";

/// An etcd cluster whose data is in a temporary folder.
pub(crate) struct EtcdCluster {
    members: Vec<Member>,
    /// The arguments that etcdctl needs in addition to the endpoints.
    etcdctl_args: Vec<String>,
    home: TempDir,
}

struct Member {
    endpoint: String,
    args: Vec<String>,
    process: Option<Child>,
}

impl EtcdCluster {
    /// Starts a cluster of `count` members, and waits for a leader.
    pub(crate) fn start(count: usize) -> EtcdCluster {
        EtcdCluster::start_with(count, "http", &[], &[])
    }

    /// Starts a cluster whose endpoints use `scheme`, with the additional arguments `args` for each
    /// member. `etcdctl_args` are the arguments with which etcdctl can reach these members.
    pub(crate) fn start_with(
        count: usize,
        scheme: &str,
        args: &[String],
        etcdctl_args: &[String],
    ) -> EtcdCluster {
        let home = tempfile::tempdir().expect("a temporary folder");
        // The certificates of the tests name 127.0.0.1.
        let client_address: fn() -> SocketAddr = if scheme == "https" {
            free_localhost_address
        } else {
            address_of_its_own
        };
        let addresses = |address: fn() -> SocketAddr| -> Vec<SocketAddr> {
            (0..count).map(|_| address()).collect()
        };
        let (clients, peers) = (addresses(client_address), addresses(address_of_its_own));
        let peer = |place: usize| format!("http://{}", peers[place]);
        let all: Vec<_> = (0..count)
            .map(|place| format!("m{place}={}", peer(place)))
            .collect();
        let member = |place: usize| {
            let endpoint = format!("{scheme}://{}", clients[place]);
            let data = home.path().join(format!("m{place}")).display().to_string();
            let own = [
                ("--name", format!("m{place}")),
                ("--data-dir", data),
                ("--listen-client-urls", endpoint.clone()),
                ("--advertise-client-urls", endpoint.clone()),
                ("--listen-peer-urls", peer(place)),
                ("--initial-advertise-peer-urls", peer(place)),
                ("--initial-cluster", all.join(",")),
                ("--log-level", "error".to_owned()),
            ];
            let own = own
                .into_iter()
                .map(|(name, value)| format!("{name}={value}"));
            Member {
                endpoint,
                args: own.chain(args.iter().cloned()).collect(),
                process: None,
            }
        };
        let members = (0..count).map(member).collect();
        let mut cluster = EtcdCluster {
            members,
            etcdctl_args: etcdctl_args.to_vec(),
            home,
        };
        (0..count).for_each(|place| cluster.restart(place));
        cluster.wait_until_writable();
        cluster
    }

    /// Returns the endpoint of each member.
    pub(crate) fn endpoints(&self) -> Vec<String> {
        self.members
            .iter()
            .map(|member| member.endpoint.clone())
            .collect()
    }

    /// Starts a member that is not running.
    pub(crate) fn restart(&mut self, place: usize) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log(place));
        let member = &mut self.members[place];
        assert!(member.process.is_none(), "it is running");
        let mut etcd = Command::new("etcd");
        etcd.args(&member.args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("the folder is ours"));
        let process = etcd
            .spawn()
            .expect("etcd runs: Debian package etcd-server, installed by .ci/install-packages");
        member.process = Some(process);
    }

    /// Returns the path of a member's log, which is printed if the test fails.
    fn log(&self, place: usize) -> PathBuf {
        self.home.path().join(format!("m{place}.log"))
    }

    /// Sends a signal to a member that is running.
    pub(crate) fn signal(&self, place: usize, signal: Signal) {
        let process = self.members[place].process.as_ref().expect("it is running");
        kill_process(Pid::from_child(process), signal).expect("it is ours");
    }

    /// Kills a member that is running.
    pub(crate) fn kill(&mut self, place: usize) {
        self.signal(place, Signal::KILL);
        let mut process = self.members[place].process.take().expect("it is running");
        process.wait().expect("it was ours");
    }

    /// Waits until a member leads, and returns its index.
    pub(crate) fn leader(&self) -> usize {
        until("a member leads", || self.leader_if_any())
    }

    /// Returns the index of the leader, or `None` if no member leads. Some members may be down.
    pub(crate) fn leader_if_any(&self) -> Option<usize> {
        let output = self
            .etcdctl_command(&["endpoint", "status", "--write-out=simple"])
            .output();
        let status = String::from_utf8_lossy(
            &output
                .expect("etcdctl runs: Debian package etcd-client")
                .stdout,
        )
        .into_owned();
        let leads = |line: &&str| line.split(", ").nth(4) == Some("true");
        let line = status.lines().find(leads)?;
        self.members
            .iter()
            .position(|member| line.starts_with(&member.endpoint))
    }

    /// Runs etcdctl with the endpoints of all members, and returns its output. The command must
    /// succeed.
    pub(crate) fn etcdctl(&self, args: &[&str]) -> String {
        let output = self
            .etcdctl_command(args)
            .arg(PATIENT)
            .output()
            .expect("etcdctl runs: Debian package etcd-client");
        let printed =
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "etcdctl {args:?}:\n{printed}");
        printed
    }

    /// Runs etcdctl, and ignores a failure. The requested action may have been done already.
    pub(crate) fn etcdctl_if_any(&self, args: &[&str]) {
        drop(
            self.etcdctl_command(args)
                .output()
                .expect("etcdctl runs: Debian package etcd-client"),
        );
    }

    fn etcdctl_command(&self, args: &[&str]) -> Command {
        let mut etcdctl = self.etcdctl_of(&self.endpoints().join(","));
        etcdctl.args(args);
        etcdctl
    }

    fn etcdctl_of(&self, endpoints: &str) -> Command {
        let mut etcdctl = Command::new("etcdctl");
        etcdctl
            .env("ETCDCTL_API", "3")
            .arg("--endpoints")
            .arg(endpoints)
            .args(&self.etcdctl_args);
        etcdctl
    }

    /// Saves a snapshot with etcdctl, as an operator does. Returns its path.
    pub(crate) fn save(&self) -> PathBuf {
        let snapshot = self.home.path().join("snapshot");
        let mut save = self.etcdctl_of(&self.members[0].endpoint);
        let output = save
            .arg("snapshot")
            .arg("save")
            .arg(&snapshot)
            .arg(PATIENT)
            .output()
            .expect("etcdctl runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        snapshot
    }

    /// Stops all members, and starts them again with the data of a snapshot.
    pub(crate) fn restore(&mut self, snapshot: &Path) {
        self.restore_after(snapshot, Duration::ZERO);
    }

    /// Stops all members. After `pause`, starts them again with the data of a snapshot.
    pub(crate) fn restore_after(&mut self, snapshot: &Path, pause: Duration) {
        self.lose_all();
        thread::sleep(pause);
        for member in &self.members {
            let is_of_restore = |arg: &&String| {
                ["--name=", "--data-dir=", "--initial-"]
                    .iter()
                    .any(|name| arg.starts_with(name))
            };
            let mut restore = Command::new("etcdctl");
            restore
                .env("ETCDCTL_API", "3")
                .arg("snapshot")
                .arg("restore")
                .arg(snapshot);
            let output = restore
                .args(member.args.iter().filter(is_of_restore))
                .output()
                .expect("etcdctl runs");
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        (0..self.members.len()).for_each(|place| self.restart(place));
        self.wait_until_writable();
    }

    /// Stops all members, and starts them again without data.
    pub(crate) fn wipe(&mut self) {
        self.lose_all();
        (0..self.members.len()).for_each(|place| self.restart(place));
        self.wait_until_writable();
    }

    /// Stops all members, and removes their data.
    fn lose_all(&mut self) {
        (0..self.members.len()).for_each(|place| self.kill(place));
        for member in &self.members {
            let data = member
                .args
                .iter()
                .find_map(|arg| arg.strip_prefix("--data-dir="))
                .expect("it has a folder");
            fs::remove_dir_all(data).expect("it is ours");
        }
    }

    /// Waits until every member is healthy.
    pub(crate) fn wait_until_healthy(&self) {
        self.wait_until_done("every member is healthy", &["endpoint", "health"]);
    }

    /// Returns the revision of the store, which is the number of transactions that have written so
    /// far.
    pub(crate) fn revision(&self) -> u64 {
        let status = self.etcdctl(&["get", "/started", "--write-out=fields"]);
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("\"Revision\" : "))
            .expect("a revision");
        line.trim().parse().expect("a number")
    }

    /// Waits until a write succeeds, which is only possible with a quorum.
    pub(crate) fn wait_until_writable(&self) {
        self.wait_until_done("etcd has started", &["put", "/started", "yes"]);
    }

    /// Repeats a command of etcdctl until it succeeds.
    fn wait_until_done(&self, what: &str, args: &[&str]) {
        until(what, || {
            let output = self.etcdctl_command(args).output().expect("etcdctl runs");
            output.status.success().then_some(())
        });
    }
}

/// Returns an address on 127.0.0.1 whose port is free.
fn free_localhost_address() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|free| free.local_addr())
        .expect("a free port")
}

/// Calls `look` again and again until it returns a value.
fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < LONG, "{what}, within {LONG:?}");
        thread::sleep(Duration::from_millis(50));
    }
}

impl Drop for EtcdCluster {
    fn drop(&mut self) {
        for process in self
            .members
            .iter_mut()
            .filter_map(|member| member.process.as_mut())
        {
            // SIGKILL ends even a stopped process.
            let _ = process.kill();
            let _ = process.wait();
        }
        if thread::panicking() {
            for place in 0..self.members.len() {
                let log = fs::read_to_string(self.log(place)).unwrap_or_default();
                eprintln!("the log of etcd member {place}:\n{log}");
            }
        }
    }
}
