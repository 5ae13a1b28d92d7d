//! Checks a service whose disk is full or read-only.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::appending::{Appender, Place, Seen, assert_all_is_kept, begin};
use crate::small_disk::SmallDisk;
use idmint_testing::http1::{Client, post_json};
use idmint_testing::ids::assert_no_id_twice;
use idmint_testing::load::{Load, assert_only_exhaustion_was_seen, fresh_callers, into_received};
use idmint_testing::numbering::Callers;
use idmint_testing::service::{Service, StopOnDrop, idmint, run, serve_from, until};

/// The duration of the load. It is longer than any reservation, so the horizon must be raised many
/// times.
const LOAD: Duration = Duration::from_secs(6);

#[test]
fn on_a_disk_that_has_filled_up_ids_go_on_through_kills() {
    let disk = SmallDisk::empty(1);
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
        until("the horizon is raised on a full disk", || {
            (extended() > extended_before).then_some(())
        });
        load.wait_until_each_has_ids();
        running.kill();
        let minted = load.join();
        assert_only_exhaustion_was_seen(&minted);
        callers = into_received(minted);
    }
    println!("{:?} ids, none twice", assert_no_id_twice(callers));
}

/// Returns the number of appends that failed because of the disk: those that were refused, and
/// those with an unknown outcome.
fn appends_not_done(service: &Service) -> f64 {
    let of = |outcome| {
        service.metric(&format!(
            "idmint_ledger_appends_total{{outcome=\"{outcome}\"}}"
        ))
    };
    of("unavailable") + of("unknown")
}

#[test]
fn appends_refused_by_a_full_disk_are_done_once_there_is_room_and_none_is_lost() {
    const CALLERS: usize = 8;
    let disk = SmallDisk::empty(8);
    let serve = || disk.beside(&serve_from(&disk.path().join("data")));
    let service = Service::start(serve());
    service.wait_until_ready();
    let ledgers = begin(&service, 3);
    let place = Place::of(&service);
    let (granted, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let seen: Vec<Seen> = std::thread::scope(|scope| {
        let caller = |number| {
            let caller = Appender::new(number, &place, &ledgers);
            scope.spawn(|| caller.run(&granted, &stop))
        };
        let callers: Vec<_> = (0..CALLERS).map(caller).collect();
        let running = StopOnDrop(&stop);
        let go_on = || {
            let enough = granted.load(Ordering::Relaxed) + 200;
            until("the callers go on", || {
                (granted.load(Ordering::Relaxed) >= enough).then_some(())
            });
        };
        go_on();
        for _ in 0..2 {
            disk.fill();
            let before = appends_not_done(&service);
            until("the disk refuses appends", || {
                (appends_not_done(&service) >= before + 20.0).then_some(())
            });
            for _ in 0..100 {
                assert_eq!(service.mint("snowflake?count=10").len(), 10, "ids go on");
            }
            assert_eq!(service.get("/health/ready").status, 200);
            disk.free();
            go_on();
        }
        drop(running);
        callers
            .into_iter()
            .map(|caller| caller.join().expect("the caller found nothing wrong"))
            .collect()
    });
    // Kill the service, so that the next start knows only the data on the disk.
    service.kill();
    let service = Service::start(serve());
    service.wait_until_ready();
    assert_all_is_kept(&service, ledgers, seen);
}

#[test]
fn numbers_refused_by_a_full_disk_are_given_once_there_is_room_and_none_is_missing() {
    const CALLERS: usize = 8;
    let disk = SmallDisk::empty(8);
    let serve = || disk.beside(&serve_from(&disk.path().join("data")));
    let service = Service::start(serve());
    service.wait_until_ready();
    let callers = Callers::of([&service], 4, 3);
    let not_given = || {
        let of = |outcome| {
            service.metric(&format!(
                "idmint_number_requests_total{{outcome=\"{outcome}\"}}"
            ))
        };
        of("unavailable") + of("unknown")
    };
    std::thread::scope(|scope| {
        let _stop = callers.places.stop_at_the_end();
        for caller in 0..CALLERS {
            let callers = &callers;
            scope.spawn(move || callers.ask(caller));
        }
        let go_on = || {
            let enough = callers.told() + 200;
            until("the callers go on", || {
                (callers.told() >= enough).then_some(())
            });
        };
        go_on();
        for _ in 0..2 {
            disk.fill();
            let before = not_given();
            until("the disk refuses numbers", || {
                (not_given() >= before + 20.0).then_some(())
            });
            disk.free();
            go_on();
        }
    });
    // Kill the service, so that the next start knows only the data on the disk.
    service.kill();
    let service = Service::start(serve());
    service.wait_until_ready();
    assert!(callers.check(&service, CALLERS) > 600);
}

#[test]
fn while_a_disk_is_full_all_that_needs_no_new_record_is_answered_and_each_answer_says_that_it_is_full()
 {
    let disk = SmallDisk::empty(8);
    let service = Service::start(disk.beside(&serve_from(&disk.path().join("data"))));
    service.wait_until_ready();
    let post = |target: &str, key: &str, body: &str| {
        let headers = format!("idempotency-key: {key}\r\n");
        Client::connect(service.address()).exchange(post_json(target, &headers, body))
    };
    let ledger = begin(&service, 1).remove(0).id;
    let append = format!(r#"{{"ledger":"{ledger}","events":[{{"event":"A","entities":{{}}}}]}}"#);
    let report =
        |tca: &str| format!(r#"{{"tca":"2027-01-01T00:00:0{tca}Z","primary":1,"secondary":2}}"#);
    assert_eq!(post("/ids/evently", "a0", &append).status, 201);
    assert_eq!(post("/numbers/s", "k7", "").status, 201);
    assert_eq!(post("/conjunctions", "r", &report("0")).status, 200);
    disk.fill();
    let refused = (0..10_000).find(|key| {
        let many = post("/numbers/s?count=1000", &format!("many-{key}"), "");
        many.status != 201
    });
    refused.expect("the disk is full");

    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // The requests of this caller need space for new records.
        scope.spawn(|| {
            for key in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let new = post("/numbers/s?count=1000", &format!("new-{key}"), "");
                assert!([503, 504].contains(&new.status), "{}", new.text());
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let _over = StopOnDrop(&is_over);
        for poll in 0..200 {
            for (answer, status) in [
                (post("/ids/evently", "a0", &append), 200),
                (post("/numbers/s", "k7", ""), 200),
                (post("/conjunctions", "r", &report("0.5")), 200),
                (service.get("/numbers/s?limit=1"), 200),
                (service.get(&format!("/ledgers/{ledger}")), 200),
                (service.get("/health/ready"), 200),
                (service.get("/health/ready?for=records"), 503),
            ] {
                assert_eq!(answer.status, status, "poll {poll}: {}", answer.text());
            }
            let said = service.get("/health/ready").json();
            assert_eq!(said["records"], "storage-unavailable", "poll {poll}");
            assert!(
                said["records_detail"]
                    .as_str()
                    .unwrap()
                    .contains("the disk is full")
            );
            let ended = run(idmint(&["status", "--server", &service.url()]));
            ended.assert(1, &["free space outside storage.data_dir"]);
        }
    });
    disk.free();
    // Check that the service recovers without any request that writes. A load balancer sends no
    // such requests to a node that cannot store records.
    until("records are stored again", || {
        let ready = service.get("/health/ready?for=records");
        (ready.status == 200).then_some(())
    });
    assert_eq!(post("/numbers/s", "last", "").status, 201);
}

#[test]
fn records_that_a_full_disk_has_closed_are_read_though_nobody_appends() {
    let disk = SmallDisk::empty(4);
    let service = Service::start(disk.beside(&serve_from(&disk.path().join("data"))));
    service.wait_until_ready();
    let ledger = begin(&service, 1).remove(0).id;
    disk.fill();
    let events = vec![r#"{"event":"Long","entities":{}}"#; 1_000].join(",");
    let order = format!(r#"{{"ledger":"{ledger}","events":[{events}]}}"#);
    let append = |key: u64| {
        let headers = format!("idempotency-key: {key}\r\n");
        Client::connect(service.address()).exchange(post_json("/ids/evently", &headers, &order))
    };
    // The first appends may succeed, because the log has some preallocated space.
    let refused = (0..100)
        .map(|key| (key, append(key)))
        .find(|(_, answer)| answer.status != 201);
    let (done, answer) = refused.expect("the disk is full");
    assert_eq!(
        (answer.status, &answer.json()["type"]),
        (504, &"/problems/outcome-unknown".into())
    );
    assert_eq!(
        service.get(&format!("/ledgers/{ledger}")).json()["events"],
        1 + 1_000 * done
    );
    disk.free();
    assert_eq!(append(done).status, 201);
}

#[test]
fn a_first_start_on_a_full_disk_exits_74_with_the_path_and_the_cause() {
    let disk = SmallDisk::empty(1);
    disk.fill();
    let data_dir = disk.path().join("data");
    run(disk.beside(&serve_from(&data_dir)))
        .assert(74, &[data_dir.to_str().unwrap(), "No space left on device"]);
}

#[test]
fn a_disk_that_may_only_be_read_exits_74_with_the_path_and_the_cause() {
    let disk = SmallDisk::read_only();
    for data_dir in [disk.path().join("data"), disk.path().to_owned()] {
        let ended = run(disk.beside(&serve_from(&data_dir)));
        ended.assert(74, &[data_dir.to_str().unwrap(), "Read-only file system"]);
    }
}
