//! Checks numbers while the service is killed over and over under load. The numbers must have no
//! gaps and no duplicates, and each key must keep its first number.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::backup::floor;
use idmint_testing::http1::{Answer, Client, request};
use idmint_testing::numbering::{Callers, Orders, listed};
use idmint_testing::service::{Home, Service, idmint, run};

const KILLS: usize = 8;
/// A timeout that is long enough for any slow machine.
const LONG: Duration = Duration::from_secs(600);

pub(crate) const RULES: &str =
    "[numbers.all]\npattern = 'series-*'\ntext = '{series}/{n:06}'\ncheck = 'mod97'";

#[test]
fn no_number_is_missing_or_doubled_and_each_key_has_its_first_through_kills_under_load() {
    let home = Home::new();
    let mut service = Service::start(home.serve_with(RULES));
    service.wait_until_ready();
    // `make torture` sets this to a million numbers of a thousand series.
    let wanted = std::env::var("NUMBERS")
        .map_or(4_000, |numbers| numbers.parse().expect("how many numbers"));
    let (series, caller_count) = if wanted > 100_000 {
        (1_000, 35)
    } else {
        (5, 12)
    };
    let callers = Callers::of([&service], series, 3);
    let get_more = |asking: &[ScopedJoinHandle<'_, ()>]| {
        // Each request gets two numbers on average.
        let least = callers.told() + wanted / 2 / (KILLS + 1);
        let begun = Instant::now();
        while callers.told() < least {
            assert!(
                !asking.iter().any(ScopedJoinHandle::is_finished),
                "a caller was told what cannot be"
            );
            assert!(
                begun.elapsed() < LONG,
                "{} of {least} requests were answered",
                callers.told()
            );
            thread::sleep(Duration::from_millis(1));
        }
    };
    let service = thread::scope(|scope| {
        let _stop = callers.places.stop_at_the_end();
        let callers = &callers;
        let asking: Vec<_> = (0..caller_count)
            .map(|caller| scope.spawn(move || callers.ask(caller)))
            .collect();
        for kill in 0..KILLS {
            // Wait for more numbers before each kill, so that every kill has something to lose.
            get_more(&asking);
            thread::sleep(Duration::from_millis(3 * kill as u64));
            service.kill();
            service = Service::start(home.serve_with(RULES));
            callers.places.move_place(0, service.address());
        }
        service.wait_until_ready();
        get_more(&asking);
        service
    });
    let total = callers.check(&service, caller_count);
    assert!(total > wanted as u64 * 2 / 3, "{total}");
}

#[test]
fn numbers_and_voids_are_in_a_backup() {
    let (home, copy) = (Home::new(), Home::new());
    let service = Service::start(home.serve_with(RULES));
    service.wait_until_ready();
    let post = |service: &Service, line: &str, key: &str, body: &str| {
        let headers = format!("idempotency-key: {key}\r\n");
        Client::connect(service.address()).exchange(request(
            &format!("POST {line}"),
            &headers,
            body,
        ))
    };
    let given = post(&service, "/numbers/series-1?count=3", "a", "").json();
    let reason = json!({ "reason": "cancelled" }).to_string();
    assert_eq!(
        post(&service, "/numbers/series-1/2/void", "b", &reason).status,
        201
    );
    let ended = run(idmint(&[
        "backup",
        copy.data_dir().to_str().unwrap(),
        "--data-dir",
        home.data_dir().to_str().unwrap(),
    ]));
    ended.assert(0, &[]);
    assert!(
        ended
            .out
            .starts_with("0 appends, 0 conjunctions and 3 numbers are in "),
        "{}",
        ended.out
    );
    let before = listed(&service);
    service.kill();
    let mut command = copy.serve_with(RULES);
    command.args(["--floor", &floor()]);
    let service = Service::start(command);
    service.wait_until_ready();
    assert_eq!(listed(&service), before);
    let again = post(&service, "/numbers/series-1?count=3", "a", "");
    assert_eq!((again.status, again.json()), (200, given));
    let held = post(&service, "/numbers/series-1", "c", "");
    assert_eq!(
        (held.status, &held.json()["type"]),
        (503, &json!("/problems/numbers-held"))
    );
    let resumed = post(&service, "/numbers/series-1/resume?from=7", "", "");
    assert_eq!(
        (resumed.status, resumed.json()),
        (
            200,
            json!({ "series": "series-1", "next": "7", "skipped": { "first": "4", "last": "6" } })
        )
    );
    assert_eq!(
        post(&service, "/numbers/series-1", "c", "").json()["number"],
        "7"
    );
    let reasons: Vec<Value> = listed(&service).remove("series-1").unwrap()[3..6]
        .iter()
        .map(|number| number["void"]["reason"].clone())
        .collect();
    assert_eq!(
        reasons,
        ["skipped when the series was resumed after a restore"; 3]
    );
}

/// Set `RESTORES=1000` to repeat this more often.
#[test]
fn a_restore_under_callers_gives_no_number_to_two_orders() {
    let restores = std::env::var("RESTORES").map_or(3, |count| count.parse().expect("a number"));
    let (home, orders) = (Home::new(), Orders::default());
    let database = home.data_dir().join("idmint.redb");
    let older = home.path("older.redb");
    let mut service = Service::start(home.serve_with(RULES));
    service.wait_until_ready();
    for restore in 0..restores {
        orders.take_at_least(20 + restore % 7, service.address());
        service.kill();
        fs::copy(&database, &older).unwrap();
        service = Service::start(home.serve_with(RULES));
        service.wait_until_ready();
        orders.take_at_least(20 + restore % 5, service.address());
        service.kill();

        fs::copy(&older, &database).unwrap();
        run(home.serve_with(RULES)).assert(65, &["--floor"]);
        let mut command = home.serve_with(RULES);
        command.args(["--floor", &floor()]);
        service = Service::start(command);
        service.wait_until_ready();
        for series in 0..3 {
            let series = format!("series-{series}");
            let next = orders.highest_of(&series) + 1;
            let held = Client::connect(service.address()).exchange(request(
                &format!("POST /numbers/{series}"),
                &format!("idempotency-key: early-{restore}\r\n"),
                "",
            ));
            assert_eq!(held.json()["type"], "/problems/numbers-held");
            let url = service.url();
            let resume = || {
                let from = next.to_string();
                let args = [
                    "numbers", "resume", &series, "--from", &from, "--server", &url,
                ];
                run(idmint(&args))
            };
            resume().assert(0, &[]);
            let again = resume();
            again.assert(0, &[]);
            assert_eq!(again.out, format!("{series} continues with {next}\n"));
        }
    }
    orders.take_at_least(20, service.address());
    println!("{restores} restores, {} numbers", orders.taken());
}

/// The templates for the texts of one series. Each start uses the next template.
const TEXTS: [&str; 6] = [
    "A-{n:05}",
    "B-{n}",
    "{n}-C",
    "D/{n:03}/D",
    "E{n:07}",
    "F-{n}-2026",
];
const ORDERS: usize = 1_000;
const THREADS: usize = 50;

#[test]
fn every_number_keeps_its_first_text_while_the_template_changes_through_kills() {
    let home = Home::new();
    let rules = |text: &str| format!("[numbers.shop]\npattern = 'shop'\ntext = '{text}'");
    let next = AtomicUsize::new(0);
    // The orders whose outcome is unknown because the service was killed.
    let unknown = Mutex::new(Vec::new());
    let told: Mutex<BTreeMap<usize, Value>> = Mutex::default();
    let take = |client: &mut Client, order: usize| {
        let headers = format!("idempotency-key: order-{order}\r\n");
        let answer = client
            .try_exchange(request("POST /numbers/shop", &headers, ""))
            .ok()?;
        assert!([200, 201].contains(&answer.status), "{}", answer.text());
        Some(answer.json())
    };
    for (phase, text) in TEXTS.iter().enumerate() {
        let service = Service::start(home.serve_with(&rules(text)));
        service.wait_until_ready();
        if phase > 0 {
            let told = told.lock().unwrap();
            let mut client = Client::connect(service.address());
            for (order, before) in told.iter().step_by(37) {
                assert_eq!(take(&mut client, *order).as_ref(), Some(before));
            }
        }
        let (address, wanted) = (service.address(), ORDERS * (phase + 1) / TEXTS.len());
        let is_killed = phase % 2 == 1;
        let ask = || {
            // A thread that starts late finds a service that was killed already.
            let Ok(mut client) = Client::try_connect(address) else {
                return assert!(is_killed, "the service runs");
            };
            loop {
                let retried = unknown.lock().unwrap().pop();
                let order = retried.unwrap_or_else(|| next.fetch_add(1, Ordering::Relaxed));
                if order >= wanted {
                    unknown.lock().unwrap().push(order);
                    return;
                }
                let Some(first) = take(&mut client, order) else {
                    return unknown.lock().unwrap().push(order);
                };
                let Some(second) = take(&mut client, order) else {
                    return unknown.lock().unwrap().push(order);
                };
                assert_eq!(first, second, "order {order}");
                told.lock().unwrap().insert(order, first);
            }
        };
        thread::scope(|scope| {
            let asking: Vec<_> = (0..THREADS).map(|_| scope.spawn(ask)).collect();
            let (least, has_ended) = (wanted - 80, |it: &ScopedJoinHandle<'_, ()>| {
                it.is_finished()
            });
            let are_done = || match is_killed {
                true => told.lock().unwrap().len() >= least || asking.iter().all(has_ended),
                false => asking.iter().all(has_ended),
            };
            while !are_done() {
                thread::sleep(Duration::from_millis(1));
            }
            service.kill();
        });
    }
    let service = Service::start(home.serve_with(&rules("G-{n}")));
    service.wait_until_ready();
    let mut client = Client::connect(service.address());
    let mut told = told.into_inner().unwrap();
    for order in 0..ORDERS {
        let answer = take(&mut client, order).expect("the service runs");
        assert_eq!(
            *told.entry(order).or_insert(answer.clone()),
            answer,
            "order {order}"
        );
    }
    let texts: BTreeMap<u64, &str> = told
        .values()
        .map(|it| {
            (
                it["number"].as_str().unwrap().parse().unwrap(),
                it["text"].as_str().unwrap(),
            )
        })
        .collect();
    assert!(
        texts.keys().copied().eq(1..=ORDERS as u64),
        "1 to {ORDERS} without a hole"
    );
    let kinds: BTreeSet<_> = texts
        .values()
        .filter_map(|text| text.chars().find(char::is_ascii_alphabetic))
        .collect();
    assert!(
        kinds.len() >= TEXTS.len(),
        "each template has written some: {kinds:?}"
    );
    let listed = listed(&service).remove("shop").unwrap();
    let of_list: Vec<_> = listed
        .iter()
        .map(|it| it["text"].as_str().unwrap())
        .collect();
    assert_eq!(of_list, texts.into_values().collect::<Vec<_>>());
}

/// Sends a request with this idempotency key, or without a key if it is empty.
fn post(service: &Service, target: &str, key: &str, body: &str) -> Answer {
    let header = match key {
        "" => String::new(),
        key => format!("idempotency-key: {key}\r\n"),
    };
    let request = request(&format!("POST {target}"), &header, body);
    Client::connect(service.address()).exchange(request)
}

#[test]
fn a_template_that_could_write_an_earlier_text_again_is_refused_and_a_change_is_said() {
    let home = Home::new();
    let rules = |text: &str| format!("[numbers.shop]\npattern = 'shop'\ntext = '{text}'");
    let service = Service::start(home.serve_with(&rules("A-{n}")));
    service.wait_until_ready();
    assert_eq!(
        post(&service, "/numbers/shop?count=11", "a", "").json()["text"],
        "A-1"
    );
    service.kill();
    let check = |text: &str| {
        let file = home.path("idmint.toml");
        fs::write(&file, rules(text)).unwrap();
        let mut check = idmint(&["check", "--config", file.to_str().unwrap()]);
        check.env("IDMINT_STORAGE__DATA_DIR", home.data_dir());
        run(check)
    };
    let repeated = [
        "numbers.till.text could repeat a text that shop has written as A-{n}",
        "\"A-1\" would be number 1 of shop and number 1 of till",
    ];
    let other = "B-{n}'\n[numbers.till]\npattern = 'till'\ntext = 'A-{n}";
    check(other).assert(78, &repeated);
    run(home.serve_with(&rules(other))).assert(78, &repeated);
    let change = "numbers.shop now writes new numbers as B-{n}: shop from 12 on; earlier numbers keep their texts";
    let checked = check("B-{n}");
    checked.assert(0, &[]);
    let line = format!("\nnumbers           {change}\n");
    assert!(checked.out.contains(&line), "{}", checked.out);
    let service = Service::start(home.serve_with(&rules("B-{n}")));
    service.log_once_it_says(change);
    service.wait_until_ready();
    assert_eq!(
        post(&service, "/numbers/shop?count=11", "a", "").json()["text"],
        "A-1"
    );
    assert_eq!(
        post(&service, "/numbers/shop", "b", "").json()["text"],
        "B-12"
    );
    let void = post(
        &service,
        "/numbers/shop/1/void",
        "",
        r#"{"reason":"cancelled"}"#,
    );
    assert_eq!(void.json()["text"], "A-1");
}

#[test]
fn a_closed_series_stays_closed_after_a_kill_and_the_command_says_so() {
    let home = Home::new();
    let service = Service::start(home.serve_with(RULES));
    service.wait_until_ready();
    post(&service, "/numbers/series-1?count=3", "a", "");
    let close = |service: &Service, series: &str| {
        run(idmint(&[
            "numbers",
            "close",
            series,
            "--server",
            &service.url(),
        ]))
    };
    let closed = close(&service, "series-1");
    closed.assert(0, &[]);
    assert!(
        closed.out.starts_with("series-1 is closed since "),
        "{}",
        closed.out
    );
    assert!(closed.out.ends_with("and ends with 3\n"), "{}", closed.out);
    service.kill();
    let service = Service::start(home.serve_with(RULES));
    service.wait_until_ready();
    let refused = post(&service, "/numbers/series-1", "b", "");
    assert_eq!(
        (refused.status, &refused.json()["type"]),
        (409, &json!("/problems/series-closed"))
    );
    close(&service, "series-1").assert(0, &["already closed"]);
    close(&service, "series-2").assert(0, &[]);
    let listed = run(idmint(&["numbers", "list", "--server", &service.url()]));
    assert_eq!(
        listed.out.matches("closed since").count(),
        2,
        "{}",
        listed.out
    );
    assert!(
        listed.out.contains("series-2  no numbers  "),
        "{}",
        listed.out
    );
}

#[test]
fn a_held_series_is_not_closed_and_a_closed_one_does_not_stop_the_others_from_being_resumed() {
    let home = Home::new();
    let service = Service::start(home.serve_with("[numbers.all]\npattern = 'all'\nmax = 3"));
    service.wait_until_ready();
    for (series, count) in [("all", 3), ("closed", 2), ("open", 1)] {
        let target = format!("/numbers/{series}?count={count}");
        assert_eq!(post(&service, &target, "a", "").status, 201);
    }
    assert_eq!(post(&service, "/numbers/closed/close", "", "").status, 201);
    service.kill();
    fs::remove_file(home.data_dir().join("horizon")).unwrap();
    let mut command = home.serve_with("[numbers.all]\npattern = 'all'\nmax = 3");
    command.args(["--floor", &floor()]);
    let service = Service::start(command);
    service.wait_until_ready();

    // Callers may have got numbers after 1 that the backup lacks, so 1 may not be the last number.
    let held = post(&service, "/numbers/open/close", "", "");
    assert_eq!(
        (held.status, &held.json()["type"]),
        (503, &json!("/problems/numbers-held"))
    );
    assert_eq!(post(&service, "/numbers/closed/close", "", "").status, 200);
    // Resuming would not help a closed series.
    let late = post(&service, "/numbers/closed", "b", "");
    assert_eq!(
        (late.status, &late.json()["type"]),
        (409, &json!("/problems/series-closed"))
    );
    let file = home.path("last-numbers");
    fs::write(&file, "all 3\nclosed 2\nopen 4\n").unwrap();
    let (file, url) = (file.to_str().unwrap(), service.url());
    for skipped in ["; 2 to 4 are void", ""] {
        let resumed = run(idmint(&[
            "numbers", "resume", "--all", file, "--server", &url,
        ]));
        resumed.assert(0, &[]);
        assert_eq!(
            resumed.out,
            format!(
                "all continues with 4\nclosed continues with 3\nopen continues with 5{skipped}\n\
                 all other series continue at their stored numbers\n"
            )
        );
    }
    let closed = post(&service, "/numbers/open/close", "", "");
    assert_eq!((closed.status, &closed.json()["last"]), (201, &json!("4")));
}

#[test]
fn a_second_restore_with_the_same_floor_holds_the_numbers_again() {
    let home = Home::new();
    let service = Service::start(home.serve_with(RULES));
    service.wait_until_ready();
    assert_eq!(post(&service, "/numbers/acme", "a", "").status, 201);
    service.kill();
    for number in ["2", "3"] {
        fs::remove_file(home.data_dir().join("horizon")).unwrap();
        let mut command = home.serve_with(RULES);
        // The clock stays below this floor, so the horizon is not raised after the first restore.
        command.args(["--floor", "2200-01-01T00:00:00Z"]);
        let service = Service::start(command);
        let next = |key: &str| post(&service, "/numbers/acme", key, "");
        let held = next(number);
        assert_eq!(
            (held.status, &held.json()["type"]),
            (503, &json!("/problems/numbers-held")),
            "before {number}"
        );
        let url = service.url();
        run(idmint(&[
            "numbers",
            "resume",
            "--all",
            "/dev/null",
            "--server",
            &url,
        ]))
        .assert(0, &[]);
        assert_eq!(next(number).json()["number"], number);
        service.kill();
        // A restart without a restore sets no hold again, and does not warn about one.
        let service = Service::start(home.serve_with(RULES));
        let again = post(&service, "/numbers/acme", number, "");
        assert_eq!(
            (again.status, &again.json()["number"]),
            (200, &json!(number))
        );
        assert!(
            !service.log().contains("numbers resume"),
            "{}",
            service.log()
        );
        service.kill();
    }
}

#[test]
fn a_resume_that_comes_too_late_for_its_last_number_is_reported() {
    let home = Home::new();
    let service = Service::start(home.serve_with(RULES));
    service.wait_until_ready();
    let given = post(&service, "/numbers/acme?count=3", "a", "");
    assert_eq!(given.status, 201);
    service.kill();
    fs::remove_file(home.data_dir().join("horizon")).unwrap();
    let mut command = home.serve_with(RULES);
    command.args(["--floor", &floor()]);
    let service = Service::start(command);
    service.wait_until_ready();
    let (path, url) = (home.path("last-numbers"), service.url());
    let resume = |lines: &str| {
        fs::write(&path, lines).unwrap();
        let file = path.to_str().unwrap();
        run(idmint(&[
            "numbers", "resume", "--all", file, "--server", &url,
        ]))
    };
    let next = |key: &str| post(&service, "/numbers/acme", key, "").json()["number"].clone();

    // The file joins the lists of several programs. The highest number of a series counts.
    let resumed = resume("acme 90\nacme 100\nacme 5\n");
    resumed.assert(0, &[]);
    assert!(
        resumed
            .out
            .contains("acme continues with 101; 4 to 100 are void\n"),
        "{}",
        resumed.out
    );
    // Resuming at the same number again is not an error, although callers have taken numbers since
    // then.
    assert_eq!(next("b"), "101");
    let again = resume("acme 100\n");
    again.assert(0, &[]);
    assert!(
        again.out.contains("its next number is 102"),
        "{}",
        again.out
    );

    // The first run has resumed the series, so a file with higher numbers of another program comes
    // too late.
    let late = resume("acme 200\nfresh 0\nnever-seen 7\n");
    late.assert(
        1,
        &[
            "its next number is 102, so numbers up to 200 may be given twice",
            "its next number is 1, so numbers up to 7 may be given twice",
            "series that the file does not name were not resumed",
        ],
    );
    assert_eq!(late.out, "fresh continues with 1\n");
    assert_eq!(next("c"), "102");
}

#[test]
fn a_line_below_the_stored_number_and_the_highest_number_of_all_do_not_stop_a_resume() {
    let home = Home::new();
    let service = Service::start(home.serve_with(RULES));
    service.wait_until_ready();
    assert_eq!(post(&service, "/numbers/acme?count=3", "a", "").status, 201);
    service.kill();
    fs::remove_file(home.data_dir().join("horizon")).unwrap();
    let mut command = home.serve_with(RULES);
    command.args(["--floor", &floor()]);
    let service = Service::start(command);
    service.wait_until_ready();
    let file = home.path("last-numbers");
    fs::write(&file, "acme 1\nfull 9223372036854775807\nzeta 5\n").unwrap();
    let (file, url) = (file.to_str().unwrap(), service.url());

    let resumed = run(idmint(&[
        "numbers", "resume", "--all", file, "--server", &url,
    ]));

    resumed.assert(0, &[]);
    assert_eq!(
        resumed.out,
        "acme continues with 4; its next number is already above 1\n\
         full continues with 9223372036854775808; 1 to 9223372036854775807 are void\n\
         zeta continues with 6; 1 to 5 are void\n\
         all other series continue at their stored numbers\n"
    );
    let next = |series: &str| post(&service, &format!("/numbers/{series}"), "b", "");
    assert_eq!(next("acme").json()["number"], "4");
    assert_eq!(next("full").json()["type"], "/problems/series-ended");
}

#[test]
fn numbers_stay_held_if_the_first_start_after_a_restore_is_killed() {
    let home = Home::new();
    let service = Service::start(home.serve_with(RULES));
    service.wait_until_ready();
    service.kill();
    let horizon = fs::read_dir(home.data_dir())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().contains("horizon"));
    fs::remove_file(horizon.unwrap()).unwrap();
    let mut command = home.serve_with(RULES);
    command.args(["--floor", &floor()]);
    Service::start(command).kill();

    let service = Service::start(home.serve_with(RULES));
    service.wait_until_ready();
    let take = |key: &str| {
        let headers = format!("idempotency-key: {key}\r\n");
        let line = "POST /numbers/never-seen";
        Client::connect(service.address())
            .exchange(request(line, &headers, ""))
            .status
    };
    assert_eq!(take("a"), 503);
    let file = home.path("last-numbers");
    fs::write(&file, "series-1 41\n\nother 7\n").unwrap();
    let resumed = run(idmint(&[
        "numbers",
        "resume",
        "--all",
        file.to_str().unwrap(),
        "--server",
        &service.url(),
    ]));
    resumed.assert(0, &[]);
    assert_eq!(
        resumed.out,
        "other continues with 8; 1 to 7 are void\n\
         series-1 continues with 42; 1 to 41 are void\n\
         all other series continue at their stored numbers\n"
    );
    assert_eq!(take("a"), 201);
}

#[test]
fn numbers_are_taken_listed_made_void_and_exported_by_commands() {
    let home = Home::new();
    let service = Service::start(home.serve_with(RULES));
    service.wait_until_ready();
    let command = |args: &[&str]| {
        run(idmint(
            &[&["numbers"], args, &["--server", &service.url()]].concat(),
        ))
    };
    let text = |number: u64| -> String {
        let given = listed(&service).remove("series-1").unwrap();
        given[usize::try_from(number).unwrap() - 1]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let next = command(&["next", "series-1", "--key", "order-1"]);
    next.assert(0, &[]);
    assert_eq!(next.out, format!("{}\n", text(1)));
    let again = command(&["next", "series-1", "--key", "order-1"]);
    again.assert(
        0,
        &["these numbers were given by an earlier request with the same key"],
    );
    assert_eq!(again.out, next.out);
    let two = command(&["next", "series-1", "--key", "order-2", "--count", "2"]);
    two.assert(0, &[]);
    assert_eq!(two.out, format!("{}\n{}\n", text(2), text(3)));
    let json = command(&["next", "other", "--key", "order-1", "--json"]);
    assert_eq!(
        json.out,
        "{\"series\":\"other\",\"number\":\"1\",\"text\":\"1\"}\n"
    );
    command(&["next", "series-1", "--key", "order-2"]).assert(1, &["idempotency key"]);
    command(&["next", "a/b", "--key", "order-2"]).assert(64, &["a-z, 0-9"]);

    let void = command(&[
        "void",
        "series-1",
        "2",
        "--reason",
        "the order was cancelled",
    ]);
    void.assert(0, &[]);
    assert_eq!(
        void.out,
        format!("{} is void: the order was cancelled\n", text(2))
    );
    command(&[
        "void",
        "series-1",
        "2",
        "--reason",
        "the order was cancelled",
    ])
    .assert(0, &["the number was already void"]);
    command(&["void", "series-1", "2", "--reason", "another"]).assert(1, &["void"]);
    command(&["void", "series-1", "9", "--reason", "another"]).assert(1, &["9"]);
    command(&["void", "series-1", "2", "--reason", " "]).assert(64, &["1 to 500 bytes"]);

    let imported = command(&["import", "series-9", "4711"]);
    imported.assert(0, &[]);
    assert!(
        imported
            .out
            .starts_with("series-9 goes on after series-9/004711"),
        "{}",
        imported.out
    );
    command(&["import", "series-9", "4711"]).assert(0, &["imported before"]);
    command(&["import", "series-9", "4712"]).assert(1, &["its last number is 4711"]);
    command(&["import", "series-1", "4711"]).assert(1, &["its last number is 3"]);
    assert!(
        command(&["next", "series-9", "--key", "order-1"])
            .out
            .starts_with("series-9/004712")
    );

    let series = command(&["list"]);
    series.assert(0, &[]);
    let words: Vec<Vec<&str>> = series
        .out
        .lines()
        .map(|line| line.split("  ").collect())
        .collect();
    assert_eq!(
        (words[0][0], words[0][1], words[1][0], words[1][1]),
        ("other", "1 to 1", "series-1", "1 to 3")
    );
    let numbers = command(&["list", "series-1"]);
    let lines: Vec<&str> = numbers.out.lines().collect();
    assert!(
        lines.len() == 3 && lines[0].starts_with(&format!("1  {}  2", text(1))),
        "{}",
        numbers.out
    );
    assert!(
        lines[1].ends_with("  void: the order was cancelled"),
        "{}",
        numbers.out
    );
    command(&["list", "none"]).assert(1, &["no series none"]);

    let all = command(&["export"]);
    all.assert(0, &[]);
    let exported: Vec<Value> = all
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut expected = Vec::new();
    for (series, numbers) in listed(&service) {
        for mut number in numbers {
            number["series"] = json!(series);
            expected.push(number);
        }
    }
    assert_eq!((exported.len(), &exported), (6, &expected));
    assert_eq!(command(&["export", "series-1"]).out.lines().count(), 3);
}

#[test]
fn an_import_is_repeated_after_the_first_number_was_raised_above_it() {
    let home = Home::new();
    let import = |service: &Service, series: &str| {
        run(idmint(&[
            "numbers",
            "import",
            series,
            "4711",
            "--server",
            &service.url(),
        ]))
    };
    let service = Service::start(home.serve_with("[numbers.all]\npattern = 'acme-*'"));
    service.wait_until_ready();
    import(&service, "acme-1").assert(0, &[]);
    service.kill();
    let raised = "[numbers.all]\npattern = 'acme-*'\nstart = 5_000";
    let service = Service::start(home.serve_with(raised));
    service.wait_until_ready();
    let again = import(&service, "acme-1");
    again.assert(0, &["imported before"]);
    assert_eq!(again.out, "acme-1 goes on after 4711\n");
    import(&service, "acme-2").assert(1, &["must be from 5000"]);
}

#[test]
fn a_wrong_import_is_corrected_and_the_series_goes_on_through_a_kill() {
    let home = Home::new();
    let service = Service::start(home.serve());
    service.wait_until_ready();
    let import = |service: &Service, arguments: &[&str]| {
        let url = service.url();
        let command = ["numbers", "import", "acme-1"].iter().chain(arguments);
        run(idmint(
            &command
                .copied()
                .chain(["--server", &url])
                .collect::<Vec<_>>(),
        ))
    };
    let next = |service: &Service, key: &str| {
        let command = [
            "numbers",
            "next",
            "acme-1",
            "--key",
            key,
            "--server",
            &service.url(),
        ];
        run(idmint(&command)).out
    };
    import(&service, &["12"]).assert(0, &[]);
    import(&service, &["10"]).assert(1, &["it has already begun"]);
    for _ in 0..2 {
        let corrected = import(&service, &["10", "--instead-of", "12"]);
        corrected.assert(0, &[]);
        assert_eq!(corrected.out, "acme-1 goes on after 10\n");
    }
    assert_eq!(next(&service, "a"), "11\n");
    import(&service, &["5", "--instead-of", "10"]).assert(1, &["10 is not the only number"]);
    service.kill();
    let service = Service::start(home.serve());
    service.wait_until_ready();
    let numbers = ["a", "b", "c"].map(|key| next(&service, key));
    assert_eq!(numbers, ["11\n", "12\n", "13\n"]);
}

#[test]
fn a_start_refuses_equal_texts_of_two_series_unless_numbers_have_them() {
    let home = Home::new();
    let equal = "[numbers.inv]\npattern = 'inv-*'\ntext = 'INV-{n:05}'";
    let refused = run(home.serve_with(equal));
    refused.assert(
        78,
        &[
            "numbers.inv would write the same text",
            "put {series} into the text",
        ],
    );
    let named = equal.replace("INV-", "INV-{series}-");
    let service = Service::start(home.serve_with(&named));
    service.wait_until_ready();
    let command = [
        "numbers",
        "next",
        "inv-1",
        "--key",
        "a",
        "--server",
        &service.url(),
    ];
    run(idmint(&command)).assert(0, &[]);
    service.kill();
    let service = Service::start(home.serve_with(equal));
    service.wait_until_ready();
    let command = [
        "numbers",
        "next",
        "inv-1",
        "--key",
        "b",
        "--server",
        &service.url(),
    ];
    assert_eq!(run(idmint(&command)).out, "INV-00002\n");
}

#[test]
fn a_text_has_parts_of_the_name_and_only_listed_periods_get_numbers() {
    let home = Home::new();
    let rules = "[numbers.inv]\npattern = '{company}-{year}'\ntext = 'INV {company} № {year:last2}/{n:04}'\n\
                 years = [2000, 2099]\nformer = ['{series}:{n}']\nperiods = ['2025', '2026']";
    let next = |service: &Service, series: &str, key: &str| {
        let url = service.url();
        run(idmint(&[
            "numbers", "next", series, "--key", key, "--server", &url,
        ]))
    };
    let service = Service::start(home.serve_with(rules));
    service.wait_until_ready();
    for (series, text) in [
        ("acme-2026", "INV acme № 26/0001\n"),
        ("acme-2025", "INV acme № 25/0001\n"),
        ("other", "1\n"),
    ] {
        assert_eq!(next(&service, series, "a").out, text);
    }
    let refused = next(&service, "acme-2062", "b");
    refused.assert(1, &["\"2062\" is not in numbers.inv.periods (2025, 2026)"]);
    for text in ["INV%20acme%20%E2%84%96%2026%2F0001", "acme-2026:1"] {
        let request = request(
            &format!("GET /decode/{text}"),
            "accept: application/json\r\n",
            "",
        );
        let numbers = &Client::connect(service.address()).exchange(request).json()["numbers"];
        assert_eq!(
            (&numbers[0]["series"], &numbers[0]["number"]),
            (&json!("acme-2026"), &json!("1"))
        );
    }
    service.kill();

    let later = rules.replace("'2025', '2026'", "'2027'");
    let service = Service::start(home.serve_with(&later));
    service.wait_until_ready();
    assert_eq!(next(&service, "acme-2026", "a").out, "INV acme № 26/0001\n");
    next(&service, "acme-2026", "c").assert(1, &["(2027)"]);
    let url = service.url();
    let listed = run(idmint(&["numbers", "list", "acme-2026", "--server", &url]));
    listed.assert(0, &[]);
    assert_eq!(listed.out.lines().count(), 1);
}

#[test]
fn a_start_names_a_text_that_would_stand_for_two_numbers() {
    for (rules, expected) in [
        (
            "[numbers.a]\npattern = 'a*'\ntext = '{series}{n}'",
            [
                "numbers.a.text",
                "\"a11\" would be number 11 of a and number 1 of a1",
            ],
        ),
        (
            "[numbers.a]\npattern = '{shop}-{year}'\ntext = '{year}/{n}'",
            [
                "needs {shop}",
                "\"1111/1\" would be number 1 of a-1111 and number 1 of b-1111",
            ],
        ),
        (
            "[numbers.a]\npattern = 'a'\ntext = 'N{n}'\n[numbers.b]\npattern = 'b'\ntext = 'N{n:02}'",
            [
                "numbers.b.text",
                "\"N10\" would be number 10 of b and number 10 of a",
            ],
        ),
        (
            "[numbers.a]\npattern = '{shop}-{year}'\ntext = '{shop}/{year:last2}/{n}'",
            ["numbers.a.text", "years = [2000, 2099]"],
        ),
    ] {
        run(Home::new().serve_with(rules)).assert(78, &expected);
    }
}
