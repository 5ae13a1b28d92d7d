//! Backs up a container under load, and restores it to the volume of a new container. The image has
//! no shell and no `tar`, and its root file system is read-only.

use std::fs::File;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread::{self, ScopedJoinHandle};
use std::time::Instant;

use super::composed::{docker, docker_run, docker_succeeds};
use super::pods::PackedImage;
use idmint_testing::http1::{Client, request};
use idmint_testing::ids::assert_no_id_twice;
use idmint_testing::load::{Load, into_received};
use idmint_testing::numbering::Orders;
use idmint_testing::service::{Home, StopOnDrop, until};

/// The settings of both containers, with a rule for numbers.
const SETTINGS: [&str; 10] = [
    "--read-only",
    "--cap-drop",
    "ALL",
    "--publish",
    "127.0.0.1::8080",
    "--env",
    "IDMINT_INSECURE_PUBLIC=1",
    "--env",
    "IDMINT_WORKER__EXCLUSIVE=true",
    "--env=IDMINT_NUMBERS__ALL__PATTERN=series-*",
];

/// A container and its volume, both with the same name. Dropping the value removes both.
struct Node {
    name: String,
}

impl Node {
    fn named(image: &PackedImage, name: &str) -> Node {
        let name = format!("{}-{name}", image.tagged().replace(':', "-"));
        docker(&["volume", "create", &name]);
        Node { name }
    }

    fn volume(&self) -> String {
        format!("{}:/data", self.name)
    }

    fn start(&self, image: &PackedImage, more: &[&str]) {
        let (volume, image) = (self.volume(), image.tagged());
        let run = ["run", "--detach", "--name", &self.name, "--volume", &volume];
        docker(&[&run[..], &SETTINGS, more, &[&image]].concat());
    }

    /// Waits until the container mints, and returns its address.
    fn ready(&self) -> SocketAddr {
        until("the container is ready", || {
            let is_running =
                docker(&["inspect", "--format", "{{.State.Running}}", &self.name]) == "true";
            assert!(is_running, "{}", docker(&["logs", &self.name]));
            let published = docker(&["port", &self.name, "8080"]);
            let address = published.lines().find_map(|line| line.parse().ok())?;
            let answer = Client::try_connect(address).ok()?.try_exchange(request(
                "GET /health/ready",
                "",
                "",
            ));
            (answer.ok()?.status == 200).then_some(address)
        })
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        docker_succeeds(&["rm", "--force", &self.name]);
        docker_succeeds(&["volume", "rm", "--force", &self.name]);
    }
}

fn number_status(address: SocketAddr, key: &str) -> u16 {
    let headers = format!("idempotency-key: {key}\r\n");
    let line = request("POST /numbers/series-0", &headers, "");
    Client::connect(address).exchange(line).status
}

#[test]
fn a_backup_by_docker_exec_under_load_is_restored_in_a_new_container_and_nothing_is_issued_twice() {
    let (image, home, orders) = (
        PackedImage::load("restored"),
        Home::new(),
        Orders::default(),
    );
    let archive = home.path("idmint.tar");
    let old = Node::named(&image, "old");
    old.start(&image, &[]);
    let address = old.ready();
    let load = Load::fresh(address);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _over = StopOnDrop(&is_over);
        let takers = [(); 2].map(|()| scope.spawn(|| orders.take_numbers(address, &is_over)));
        let are_finished = || takers.iter().all(ScopedJoinHandle::is_finished);
        orders.wait_for(40, are_finished);
        let begun = Instant::now();
        let mut backup = Command::new("docker");
        backup.args(["exec", &old.name, "/idmint", "backup", "-"]);
        let backup = backup
            .stdout(File::create(&archive).unwrap())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&backup.stderr);
        assert!(backup.status.success(), "{said}");
        println!(
            "backup: {:?}, {} bytes; {said}",
            begun.elapsed(),
            archive.metadata().unwrap().len()
        );
        orders.wait_for(orders.taken() + 40, are_finished);
        docker(&["kill", &old.name]);
    });
    let callers = into_received(load.join());

    let new = Node::named(&image, "new");
    let begun = Instant::now();
    let mut restore = Command::new("docker");
    restore.args([
        "run",
        "--rm",
        "--interactive",
        "--read-only",
        "--cap-drop",
        "ALL",
    ]);
    restore.args(["--volume", &new.volume(), &image.tagged(), "restore", "-"]);
    let restore = restore
        .stdin(File::open(&archive).unwrap())
        .stderr(Stdio::inherit());
    let restored = restore.output().unwrap();
    assert!(restored.status.success());
    println!("restore: {:?}", begun.elapsed());
    let floor = String::from_utf8(restored.stdout)
        .unwrap()
        .trim()
        .to_owned();

    let (volume, tagged) = (new.volume(), image.tagged());
    let without = [&SETTINGS[..], &["--volume", &volume, &tagged]].concat();
    let (code, said) = docker_run(&without);
    assert!(
        code == Some(78) && said.contains(&floor),
        "{code:?}: {said}"
    );

    let begun = Instant::now();
    new.start(&image, &["--env", &format!("IDMINT_FLOOR={floor}")]);
    let address = new.ready();
    println!("from `docker run` until it mints: {:?}", begun.elapsed());
    let load = Load::start(address, callers);
    assert_eq!(number_status(address, "held"), 503);
    for series in ["series-0", "series-1", "series-2"] {
        let from = (orders.highest_of(series) + 1).to_string();
        // Retry, because on a slow disk the command can end with exit code 75 (try again later).
        until("the series is resumed", || {
            let resume = ["numbers", "resume", series, "--from", from.as_str()];
            docker_succeeds(&[&["exec", &new.name, "/idmint"][..], &resume].concat()).then_some(())
        });
    }
    orders.take_at_least(40, address);
    let callers = into_received(load.stop());

    // Docker starts the container again with the same variables, so the floor is still set.
    docker(&["kill", &new.name]);
    docker(&["start", &new.name]);
    let address = new.ready();
    // Retry after a 504, which means that a slow disk may still store the number. If it was stored,
    // the same key gets the status 200 instead of 201.
    let status = until("a number is given", || {
        match number_status(address, "later") {
            504 => None,
            status => Some(status),
        }
    });
    assert!(matches!(status, 200 | 201), "{status}");
    let load = Load::start(address, callers);
    orders.take_at_least(40, address);
    let ids = assert_no_id_twice(into_received(load.stop()));
    println!("{} numbers, ids {ids:?}, none twice", orders.taken());
    assert!(ids.iter().all(|count| *count > 100), "{ids:?}");
}
