//! Numbers of a service that is killed again and again while callers ask: no hole, none doubled, each key its first number.

use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::backup::floor;
use crate::http1::{Client, request};
use crate::numbering::{Callers, listed};
use crate::service::{Home, Service, idmint, run};

const KILLS: usize = 8;
/// On however slow a machine.
const LONG: Duration = Duration::from_secs(600);

const RULES: &str =
    "[numbers.all]\npattern = 'series-*'\ntext = '{series}/{n:06}'\ncheck = 'mod97'";

#[test]
fn no_number_is_missing_or_doubled_and_each_key_has_its_first_through_kills_under_load() {
    let home = Home::new();
    let mut service = Service::start(home.serve_with(RULES));
    service.wait_until_ready();
    // In `make torture` a million numbers of a thousand series.
    let wanted = std::env::var("NUMBERS")
        .map_or(4_000, |numbers| numbers.parse().expect("how many numbers"));
    let (series, caller_count) = if wanted > 100_000 {
        (1_000, 35)
    } else {
        (5, 12)
    };
    let callers = Callers::of([&service], series, 3);
    let get_more = |asking: &[ScopedJoinHandle<'_, ()>]| {
        // A request is given two numbers on average.
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
        let _stop = callers.stop_at_the_end();
        let callers = &callers;
        let asking: Vec<_> = (0..caller_count)
            .map(|caller| scope.spawn(move || callers.ask(caller)))
            .collect();
        for kill in 0..KILLS {
            // So that there is something to lose in each life.
            get_more(&asking);
            thread::sleep(Duration::from_millis(3 * kill as u64));
            service.kill();
            service = Service::start(home.serve_with(RULES));
            callers.move_place(0, service.address());
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
    assert_eq!(
        post(&service, "/numbers/series-1", "c", "").json()["number"],
        "4"
    );
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
    again.assert(0, &["given before, to the same key"]);
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
    .assert(0, &["void before"]);
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
