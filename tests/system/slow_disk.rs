//! Checks a service that mints one id now and then, on a disk whose syncs are slow.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use idmint_testing::service::{Home, Service, until};

const NODES: usize = 10;

/// A pause that is longer than any reservation. After the pause, no reserved time is left.
const IDLE: Duration = Duration::from_millis(3_500);

/// An strace that delays the syncs of one process. It is detached when this value is dropped.
struct SlowDisk(Child);

impl SlowDisk {
    /// Attaches strace to the service. When this function returns, each sync takes at least
    /// `each_sync`.
    fn of(home: &Home, service: &Service, each_sync: Duration) -> SlowDisk {
        let (calls, said) = ("fsync,fdatasync", home.path("said"));
        let strace = Command::new("strace")
            .args(["--follow-forks", &format!("--trace={calls}")])
            .arg(format!(
                "--inject={calls}:delay_exit={}",
                each_sync.as_micros()
            ))
            .arg("--output")
            .arg(home.path("calls"))
            .arg(format!("--attach={}", service.pid()))
            .stderr(fs::File::create(&said).unwrap())
            .stdin(Stdio::null())
            .spawn()
            .expect("strace runs: Debian package strace, installed by .ci/install-packages");
        let disk = SlowDisk(strace);
        until("strace is attached", || {
            fs::read_to_string(&said)
                .unwrap()
                .contains("attached")
                .then_some(())
        });
        disk
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        // End strace with SIGTERM, so that it detaches from the service.
        let pid = Pid::from_raw(self.0.id().try_into().unwrap()).unwrap();
        let _ = kill_process(pid, Signal::TERM);
        let _ = self.0.wait();
    }
}

/// Returns the number of ids that each node must mint.
fn asked_for() -> usize {
    std::env::var("LONE_IDS").map_or(2, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("LONE_IDS is {text:?}"))
    })
}

#[test]
fn lone_ids_are_minted_on_a_disk_that_takes_longer_than_callers_wait_for_the_time_of_their_ids() {
    // Raising the horizon takes four syncs, and callers wait two seconds for it. With a few ids,
    // use shorter syncs, because the machine may also be busy with other tests. Four of them still
    // take longer than `mint.wait_max`, which is 250 ms.
    let mints = asked_for();
    let sync = Duration::from_millis(if mints > 2 { 400 } else { 100 });
    thread::scope(|scope| {
        for _ in 0..NODES {
            scope.spawn(|| {
                let home = Home::new();
                let service = home.start();
                service.wait_until_ready();
                let _slow = SlowDisk::of(&home, &service, sync);
                for _ in 0..mints {
                    thread::sleep(IDLE);
                    let asked_at = Instant::now();
                    assert_eq!(service.mint("snowflake").len(), 1);
                    assert!(
                        asked_at.elapsed() >= 2 * sync,
                        "both copies of a horizon were written and synced first"
                    );
                }
            });
        }
    });
    println!(
        "{} lone ids on disks whose syncs take {sync:?}, none refused",
        NODES * mints
    );
}

#[test]
fn on_a_disk_that_takes_longer_than_two_seconds_callers_are_told_when_to_try_again() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let slow = SlowDisk::of(&home, &service, Duration::from_secs(3));
    thread::sleep(IDLE);
    let refused = service.post("/ids/snowflake");
    assert_eq!(
        (refused.status, refused.json()["type"].as_str()),
        (503, Some("/problems/horizon-reached"))
    );
    assert_eq!(refused.header("retry-after"), Some("2"));
    drop(slow);
    until("the disk has done what it was asked", || {
        (service.post("/ids/snowflake").status == 200).then_some(())
    });
}
