//! Stops or restarts the service under load. No connection may be refused, and no response may be
//! lost.

use std::collections::HashSet;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use idmint_testing::http1::{Client, request};
use idmint_testing::service::{Home, LONG, PREFER_TEXT, Service, Signal, run, run_by, until};

/// Callers that send requests to the same address. Each caller mints one id after another, and
/// reconnects when a response announces that the connection closes.
struct Callers {
    target: Arc<Mutex<SocketAddr>>,
    stop: Arc<AtomicBool>,
    tallies: Arc<[Mutex<Tally>; 4]>,
    threads: Vec<JoinHandle<()>>,
}

/// The results of all requests of one caller.
#[derive(Debug, Default)]
struct Tally {
    ids: Vec<String>,
    connects: usize,
    refused: Vec<String>,
    lost: Vec<String>,
}

impl Callers {
    /// Starts four callers, and waits until each of them has an id.
    fn four(target: SocketAddr) -> Callers {
        let (target, stop) = (
            Arc::new(Mutex::new(target)),
            Arc::new(AtomicBool::new(false)),
        );
        let tallies = Arc::<[Mutex<Tally>; 4]>::default();
        let threads = (0..tallies.len()).map(|number| {
            let (target, stop) = (Arc::clone(&target), Arc::clone(&stop));
            let tallies = Arc::clone(&tallies);
            thread::spawn(move || call_until(&stop, &target, &tallies[number]))
        });
        let callers = Callers {
            threads: threads.collect(),
            target,
            stop,
            tallies,
        };
        callers.wait_until_each(|tally| !tally.ids.is_empty());
        callers
    }

    fn wait_until_each(&self, claim: impl Fn(&Tally) -> bool) {
        until("each caller has gone on", || {
            let is_true = |tally: &Mutex<Tally>| claim(&tally.lock().unwrap());
            self.tallies.iter().all(is_true).then_some(())
        });
    }

    fn turn_to(&self, target: SocketAddr) {
        *self.target.lock().unwrap() = target;
    }

    /// Waits until each caller has connected again, and stops the callers.
    fn stop(self) -> Vec<Tally> {
        self.wait_until_each(|tally| tally.connects > 1);
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
        self.tallies
            .iter()
            .map(|tally| std::mem::take(&mut *tally.lock().unwrap()))
            .collect()
    }
}

fn call_until(stop: &AtomicBool, target: &Mutex<SocketAddr>, tally: &Mutex<Tally>) {
    let mut open = None;
    while !stop.load(Ordering::Relaxed) {
        let Some(client) = &mut open else {
            let address = *target.lock().unwrap();
            let connected = Client::try_connect(address);
            let mut tally = tally.lock().unwrap();
            tally.connects += 1;
            match connected {
                Ok(client) => open = Some(client),
                Err(error) => tally.refused.push(error.to_string()),
            }
            continue;
        };
        let answer = client.try_exchange(request("POST /ids/snowflake", PREFER_TEXT, ""));
        let mut tally = tally.lock().unwrap();
        match answer {
            Ok(answer) => {
                let closes = answer.header("connection") == Some("close");
                match answer.status {
                    200 => tally.ids.push(answer.text().trim().to_owned()),
                    // A 503 also counts as a response. A new process starts at the horizon of the
                    // old one, which may be ahead of the clock.
                    503 => thread::sleep(Duration::from_millis(5)),
                    _ => tally.lost.push(answer.text()),
                }
                if closes {
                    open = None;
                }
            }
            Err(error) => {
                tally.lost.push(format!("{error:?}"));
                open = None;
            }
        }
        drop(tally);
        thread::sleep(Duration::from_millis(1));
    }
}

fn assert_nothing_was_lost(tallies: Vec<Tally>) {
    for tally in &tallies {
        println!(
            "{} ids over {} connects, {} refused, {} lost",
            tally.ids.len(),
            tally.connects,
            tally.refused.len(),
            tally.lost.len()
        );
        assert_eq!((&tally.refused, &tally.lost), (&Vec::new(), &Vec::new()));
        assert!(
            tally.connects > 1 && !tally.ids.is_empty(),
            "it went on across the restart: {tally:?}"
        );
    }
    let ids: Vec<_> = tallies.iter().flat_map(|tally| &tally.ids).collect();
    assert_eq!(
        ids.iter().collect::<HashSet<_>>().len(),
        ids.len(),
        "an id came twice"
    );
}

/// Returns the command so that it starts as from a systemd socket unit, with `socket` as file
/// descriptor 3.
fn handing_over(socket: &TcpListener, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        "exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" \"$@\"",
    ]);
    let mut command = run_by(shell, command);
    command.stdin(Stdio::from(OwnedFd::from(socket.try_clone().unwrap())));
    command
}

#[test]
fn a_restart_on_an_inherited_socket_refuses_no_connect_and_loses_no_answer() {
    let home = Home::new();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let start = || Service::start_with_input(handing_over(&socket, &home.serve()));
    let mut service = start();
    assert_eq!(
        service.address(),
        socket.local_addr().unwrap(),
        "http.listen gives way to the socket"
    );
    service.wait_until_ready();
    let callers = Callers::four(service.address());
    for _ in 0..3 {
        thread::sleep(Duration::from_millis(400));
        service.send(Signal::TERM);
        service
            .wait()
            .assert(0, &["every request got its response"]);
        service = start();
    }
    thread::sleep(Duration::from_millis(400));
    assert_nothing_was_lost(callers.stop());
}

#[test]
fn a_restart_behind_drain_delay_refuses_no_connect_and_loses_no_answer() {
    let node = |home: &Home, slot: u32| {
        let settings = format!(
            "worker = {{ slots = 2, slot = {slot}, exclusive = true }}\nhttp = {{ drain_delay = '8s' }}\n\
                 mint = {{ wait_max = '60s' }}\n"
        );
        let service = Service::start(home.serve_with(&settings));
        service.wait_until_ready();
        service
    };
    let homes = [Home::new(), Home::new()];
    let (old, new) = (node(&homes[0], 0), node(&homes[1], 1));
    let callers = Callers::four(old.address());
    thread::sleep(Duration::from_millis(300));
    old.send(Signal::TERM);
    // Ask for the health of the node as a load balancer does. A load balancer sends callers to
    // another node while this one drains.
    let told = until("the old node says that it drains", || {
        let ready = old.get("/health/ready");
        (ready.status == 503).then(|| ready.text())
    });
    assert!(told.contains("\"draining\""), "{told}");
    assert_eq!(
        old.mint("snowflake?count=2").len(),
        2,
        "it still takes connections, and mints"
    );
    callers.turn_to(new.address());
    old.wait()
        .assert(0, &["SIGTERM: draining", "every request got its response"]);
    thread::sleep(Duration::from_millis(300));
    assert_nothing_was_lost(callers.stop());
}

#[test]
fn a_second_sigterm_ends_the_service_at_once() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    // A response that nobody reads makes the drain last for its maximum of 25 seconds.
    let mut unread = Client::connect(service.address());
    unread.send(request("POST /ids/snowflake?count=100000", "", "").repeat(20));
    unread.wait_for_first_byte();
    let told = Instant::now();
    service.send(Signal::TERM);
    until("it drains", || {
        service.log().contains("SIGTERM: draining").then_some(())
    });
    thread::sleep(Duration::from_millis(500));
    assert!(
        !service.log().contains("every request got its response"),
        "the answer holds it: {}",
        service.log()
    );
    service.send(Signal::TERM);
    service
        .wait()
        .assert(0, &["SIGTERM again: stopping at once"]);
    assert!(
        told.elapsed() < Duration::from_secs(20),
        "it took {:?}",
        told.elapsed()
    );
}

#[test]
fn a_second_sigterm_ends_the_delay_too() {
    let home = Home::new();
    let service = Service::start(home.serve_with("http.drain_delay = '1h'"));
    service.wait_until_ready();
    service.send(Signal::TERM);
    until("it drains", || {
        (service.get("/health/ready").status == 503).then_some(())
    });
    service.send(Signal::INT);
    service
        .wait()
        .assert(0, &["SIGTERM: draining", "SIGINT again: stopping at once"]);
}

#[test]
fn what_is_handed_over_and_no_listening_socket_is_refused() {
    let home = Home::new();
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        "exec 3</dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" \"$@\"",
    ]);
    let refused = run_by(shell, &home.serve()).output().unwrap();
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(78), "{told}");
    assert!(
        told.contains("not hand over a listening TCP socket"),
        "{told}"
    );
}

#[test]
fn the_supervisor_is_told_when_ids_are_minted_and_when_the_service_ends() {
    let home = Home::new();
    let path = home.path("notify");
    let supervisor = UnixDatagram::bind(&path).unwrap();
    supervisor.set_read_timeout(Some(LONG)).unwrap();
    let next = || {
        let mut message = [0; 256];
        let len = supervisor.recv(&mut message).unwrap();
        String::from_utf8_lossy(&message[..len]).trim().to_owned()
    };
    let mut command = home.serve();
    command.env("NOTIFY_SOCKET", &path);
    let service = Service::start(command);
    assert_eq!(next(), "READY=1");
    assert_eq!(service.get("/health/ready").status, 200);
    service.send(Signal::TERM);
    assert_eq!(next(), "STOPPING=1");
    service.wait().assert(0, &[]);
}

#[test]
fn state_is_for_its_user_alone_whatever_the_umask() {
    for umask in ["000", "022", "077"] {
        let home = Home::new();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("umask {umask} && exec \"$0\" \"$@\"")]);
        let service = Service::start(run_by(shell, &home.serve()));
        service.wait_until_ready();
        let mode =
            |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&home.data_dir()), 0o700, "umask {umask}");
        let files: Vec<_> = fs::read_dir(home.data_dir())
            .unwrap()
            .map(|file| file.unwrap().path())
            .collect();
        assert!(files.len() >= 3, "{files:?}");
        for file in files {
            assert_eq!(mode(&file), 0o600, "umask {umask}: {}", file.display());
        }
        service.send(Signal::TERM);
        service.wait().assert(0, &[]);
    }
}

#[test]
fn a_umask_that_takes_rights_from_the_owner_ends_the_start() {
    for umask in ["0777", "0300"] {
        let home = Home::new();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("umask {umask} && exec \"$0\" \"$@\"")]);
        let ended = run(run_by(shell, &home.serve()));
        ended.assert(
            74,
            &[
                "the umask of this process gave the new file or folder mode",
                "chmod 0700",
            ],
        );
    }
}
