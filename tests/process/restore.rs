//! Checks `idmint backup -`, which writes an archive of a running node, and `idmint restore`, with
//! which a node continues from the archive.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread::{self, ScopedJoinHandle};

use crate::numbers::RULES;
use idmint_testing::http1::{Client, request};
use idmint_testing::ids::assert_no_id_twice;
use idmint_testing::load::{Load, into_received};
use idmint_testing::numbering::Orders;
use idmint_testing::service::{Ended, Home, Service, StopOnDrop, idmint, run, until};

/// The variable with the floor of a restore.
const FLOOR: &str = "IDMINT_FLOOR";

/// Writes an archive of the node of `home` to the file `archive`.
fn back_up(home: &Home, archive: &Path) {
    let mut command = idmint(&["backup", "-", "--data-dir"]);
    command
        .arg(home.data_dir())
        .stdout(File::create(archive).unwrap())
        .stderr(Stdio::piped());
    let ended = command.output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.success(), "{said}");
    assert!(said.contains("numbers are in the archive"), "{said}");
    assert!(!home.data_dir().join("backup.new").exists());
}

fn restore(archive: &Path, to: &Home) -> Ended {
    let mut command = idmint(&["restore"]);
    command.arg(archive).arg("--data-dir").arg(to.data_dir());
    run(command)
}

fn with_floor(home: &Home, floor: &str) -> Command {
    let mut command = home.serve_with(RULES);
    command.env(FLOOR, floor);
    command
}

/// Requests a number, and returns the status of the response and its problem.
fn number_of(service: &Service, series: &str, key: &str) -> (u16, String) {
    let headers = format!("idempotency-key: {key}\r\n");
    let line = format!("POST /numbers/{series}");
    let answer = Client::connect(service.address()).exchange(request(&line, &headers, ""));
    let problem = answer.json()["type"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    (answer.status, problem)
}

#[test]
fn an_archive_made_under_load_is_restored_and_no_id_and_no_number_is_issued_twice() {
    let (home, restored, orders) = (Home::new(), Home::new(), Orders::default());
    let archive = home.path("idmint.tar");
    let service = Service::start(home.serve_with(RULES));
    service.wait_until_ready();
    let load = Load::fresh(service.address());
    let address = service.address();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _over = StopOnDrop(&is_over);
        let takers = [(); 2].map(|()| scope.spawn(|| orders.take_numbers(address, &is_over)));
        let are_finished = || takers.iter().all(ScopedJoinHandle::is_finished);
        orders.wait_for(40, are_finished);
        back_up(&home, &archive);
        // Take more numbers, which are missing in the backup.
        orders.wait_for(orders.taken() + 40, are_finished);
        service.kill();
    });
    let callers = into_received(load.join());

    let ended = restore(&archive, &restored);
    ended.assert(0, &["--floor", FLOOR, "numbers resume"]);
    let floor = ended.out.trim_end();
    run(restored.serve_with(RULES)).assert(78, &["restored from a backup", "--floor", floor]);
    run(with_floor(&restored, "2026-01-01T00:00:00Z")).assert(78, &[FLOOR, floor]);
    run(with_floor(&restored, "soon")).assert(78, &["IDMINT_FLOOR=soon"]);

    // Kill the first three starts on the restored folder: the first one immediately, the second one
    // when the horizon is on disk, and the third one when the service listens.
    let spawn = || {
        with_floor(&restored, floor)
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut killed = spawn();
    killed.kill().unwrap();
    killed.wait().unwrap();
    let mut killed = spawn();
    until("the horizon is on disk", || {
        let horizon = restored.data_dir().join("horizon");
        horizon.exists().then_some(())
    });
    killed.kill().unwrap();
    killed.wait().unwrap();
    Service::start(with_floor(&restored, floor)).kill();

    let service = Service::start(with_floor(&restored, floor));
    service.wait_until_ready();
    let load = Load::start(service.address(), callers);
    for series in ["series-0", "series-1", "series-2"] {
        let (status, problem) = number_of(&service, series, "held");
        assert_eq!((status, &*problem), (503, "/problems/numbers-held"));
        let from = (orders.highest_of(series) + 1).to_string();
        let url = service.url();
        run(idmint(&[
            "numbers", "resume", series, "--from", &from, "--server", &url,
        ]))
        .assert(0, &[]);
    }
    let count = |outcome| {
        service.count(&format!(
            "idmint_number_requests_total{{outcome=\"{outcome}\"}}"
        ))
    };
    assert_eq!(
        (count("held"), count("unavailable")),
        (3, 0),
        "the disk is not the cause"
    );
    orders.take_at_least(40, service.address());
    let callers = into_received(load.stop());
    service.kill();

    // The floor is still set for this start, as in the manifest of a Kubernetes pod.
    let service = Service::start(with_floor(&restored, floor));
    service.wait_until_ready();
    assert_eq!(
        number_of(&service, "series-0", "later").0,
        201,
        "nothing is held again"
    );
    let load = Load::start(service.address(), callers);
    orders.take_at_least(40, service.address());
    let ids = assert_no_id_twice(into_received(load.stop()));
    println!("{} numbers, ids {ids:?}, none twice", orders.taken());
    assert!(ids.iter().all(|count| *count > 0), "{ids:?}");
}

#[test]
fn in_a_pod_a_backup_and_its_restore_need_no_promise_about_the_slot() {
    let (home, restored) = (Home::new(), Home::new());
    let service = home.start();
    service.wait_until_ready();
    let archive = home.path("idmint.tar");
    let in_pod_of = |home: &Home, command: &str, archive: &Path| {
        let mut command = idmint(&[command]);
        command
            .arg(archive)
            .env("KUBERNETES_SERVICE_HOST", "10.0.0.1")
            .env("IDMINT_STORAGE__DATA_DIR", home.data_dir());
        command
    };
    let ended = run(in_pod_of(&home, "backup", &archive.with_extension("d")));
    ended.assert(0, &[]);
    back_up(&home, &archive);
    service.kill();
    run(in_pod_of(&restored, "restore", &archive)).assert(0, &["--floor"]);
}

#[test]
fn an_archive_is_a_tar_file_with_a_digest_that_other_programs_can_check() {
    let home = Home::new();
    let archive = home.path("idmint.tar");
    let service = home.start();
    service.wait_until_ready();
    back_up(&home, &archive);
    let unpacked = home.path("unpacked");
    fs::create_dir(&unpacked).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("--extract")
        .arg("--file")
        .arg(&archive)
        .arg("--directory")
        .arg(&unpacked);
    assert!(tar.status().unwrap().success());
    let mut check = Command::new("sha256sum");
    check
        .args(["--check", "--status", "SHA256SUMS"])
        .current_dir(&unpacked);
    assert!(check.status().unwrap().success());
}

#[test]
fn a_note_that_cannot_be_written_does_not_lose_the_result() {
    let (home, restored) = (Home::new(), Home::new());
    let archive = home.path("idmint.tar");
    let service = Service::start(home.serve_with(RULES));
    service.wait_until_ready();
    let print = |args: &[&str]| {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ended = idmint(args).stderr(full).output().unwrap();
        assert!(ended.status.success(), "{args:?}: {}", ended.status);
        ended.stdout
    };
    let url = service.url();
    let next = [
        "numbers", "next", "series-1", "--key", "a", "--server", &url,
    ];
    let number = print(&next);
    assert!(!number.is_empty());
    assert_eq!(print(&next), number, "the note says that it was repeated");
    let data_dir = home.data_dir();
    let copy = print(&["backup", "-", "--data-dir", data_dir.to_str().unwrap()]);
    fs::write(&archive, copy).unwrap();
    let (archive, data_dir) = (archive.to_str().unwrap(), restored.data_dir());
    let floor = print(&["restore", archive, "--data-dir", data_dir.to_str().unwrap()]);
    let floor = String::from_utf8(floor).unwrap();
    Service::start(with_floor(&restored, floor.trim_end())).wait_until_ready();
}

#[test]
fn a_restore_is_refused_if_the_folder_is_in_use_or_the_archive_is_bad() {
    let (home, other) = (Home::new(), Home::new());
    let archive = home.path("idmint.tar");
    let service = home.start();
    service.wait_until_ready();
    back_up(&home, &archive);
    restore(&archive, &home).assert(78, &["not empty", "empty or new folder"]);
    service.kill();
    restore(&archive, &home).assert(78, &["not empty"]);

    let whole = fs::read(&archive).unwrap();
    fs::write(&archive, &whole[..whole.len() - 600]).unwrap();
    restore(&archive, &other).assert(65, &["truncated", "nothing was restored"]);
    restore(&home.path("missing.tar"), &other).assert(74, &["missing.tar"]);
    run(with_floor(&other, "2026-01-01T00:00:00Z")).assert(78, &["run `idmint restore` first"]);
    let found: Vec<_> = fs::read_dir(other.data_dir()).unwrap().collect();
    assert_eq!(found.len(), 1, "only the lock: {found:?}");

    fs::write(&archive, &whole).unwrap();
    let mut piped = idmint(&["restore", "-", "--data-dir"]);
    piped
        .arg(other.data_dir())
        .stdin(File::open(&archive).unwrap());
    let ended = piped.output().unwrap();
    assert!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    assert!(other.data_dir().join("idmint.redb").exists());
}

#[test]
fn check_judges_a_restored_folder_as_the_next_start_does() {
    let (home, restored) = (Home::new(), Home::new());
    let archive = home.path("idmint.tar");
    let service = home.start();
    service.wait_until_ready();
    back_up(&home, &archive);
    service.kill();
    let floor = restore(&archive, &restored).out;
    let check = |floor: &str| {
        let mut command = idmint(&["check"]);
        command
            .env("IDMINT_STORAGE__DATA_DIR", restored.data_dir())
            .env(FLOOR, floor);
        run(command)
    };
    check("").assert(78, &["start once with --floor"]);
    check("2026-01-01T00:00:00Z").assert(78, &["the floor is 2026-01-01"]);
    let sound = check(floor.trim_end());
    sound.assert(0, &[]);
    assert!(
        sound.out.contains("matches the configuration"),
        "{}",
        sound.out
    );
    run(restored.serve()).assert(78, &["start once with --floor"]);

    // A restore that was killed leaves its note without a database.
    fs::remove_file(restored.data_dir().join("idmint.redb")).unwrap();
    check("").assert(78, &["has not ended"]);
}
