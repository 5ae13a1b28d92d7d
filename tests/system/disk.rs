//! Disks that are full or may not be written.

use std::time::Duration;

use crate::ids::assert_no_id_twice;
use crate::load::{Load, assert_only_exhaustion_was_seen, fresh_callers, received};
use crate::service::{Service, run, serve_from};
use crate::small_disk::SmallDisk;

/// Longer than any reservation, so that the horizon has to be raised many times.
const LOAD: Duration = Duration::from_secs(6);

#[test]
fn on_a_disk_that_has_filled_up_ids_go_on_through_kills() {
    let disk = SmallDisk::empty();
    let serve = || disk.beside(&serve_from(&disk.path().join("data")));
    let service = Service::start(serve());
    service.wait_until_ready();
    disk.fill();
    let mut callers = fresh_callers();
    let mut service = Some(service);
    for _ in 0..3 {
        let running = service.take().unwrap_or_else(|| Service::start(serve()));
        running.wait_until_ready();
        let extended = || running.metric(r#"idmint_horizon_extensions_total{outcome="extended"}"#);
        let extended_before = extended();
        let load = Load::start(running.address(), callers);
        std::thread::sleep(LOAD / 3);
        assert!(extended() > extended_before, "the horizon is raised on a full disk");
        running.kill();
        let minted = load.join();
        assert_only_exhaustion_was_seen(&minted);
        callers = received(minted);
    }
    println!("{:?} ids, none twice", assert_no_id_twice(callers));
}

#[test]
fn a_first_start_on_a_full_disk_exits_74_with_the_path_and_the_cause() {
    let disk = SmallDisk::empty();
    disk.fill();
    let data_dir = disk.path().join("data");
    run(disk.beside(&serve_from(&data_dir))).assert(74, &[data_dir.to_str().unwrap(), "No space left on device"]);
}

#[test]
fn a_disk_that_may_only_be_read_exits_74_with_the_path_and_the_cause() {
    let disk = SmallDisk::read_only();
    for data_dir in [disk.path().join("data"), disk.path().to_owned()] {
        let ended = run(disk.beside(&serve_from(&data_dir)));
        ended.assert(74, &[data_dir.to_str().unwrap(), "Read-only file system"]);
    }
}
