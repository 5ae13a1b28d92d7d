//! Checks series of the kind `blocks` while the service is killed over and over under load. No
//! number may be given twice, and only few may be lost.

use std::thread;

use serde_json::{Value, json};

use idmint_testing::http1::{Client, request};
use idmint_testing::numbering::{BLOCK_RULES, BlockCallers};
use idmint_testing::service::{Home, Service, idmint, run, until};

const CALLERS: usize = 8;
const KILLS: u64 = 6;
const RESERVE: u64 = 1_000;

#[test]
fn no_number_of_a_block_is_doubled_and_a_kill_loses_no_more_than_what_is_reserved() {
    let home = Home::new();
    let mut service = Service::start(home.serve_with(BLOCK_RULES));
    service.wait_until_ready();
    let callers = BlockCallers::of([&service]);
    thread::scope(|scope| {
        let _stop = callers.places.stop_at_the_end();
        for caller in 0..CALLERS {
            let callers = &callers;
            scope.spawn(move || callers.ask(caller));
        }
        let get_more = || {
            let least = callers.told() + 200;
            until("callers get numbers", || {
                (callers.told() >= least).then_some(())
            });
        };
        for _ in 0..KILLS {
            get_more();
            service.kill();
            service = Service::start(home.serve_with(BLOCK_RULES));
            callers.places.move_place(0, service.address());
        }
        get_more();
    });
    let (numbers, lost) = callers.check();
    println!("{lost} lost by {KILLS} kills");
    // In addition, each kill may lose one response of each caller, with up to 300 numbers.
    let unheard = KILLS * (CALLERS * 300) as u64;
    assert!(
        numbers > 100_000 && lost <= KILLS * RESERVE + unheard,
        "{lost} of {numbers} lost"
    );
}

/// Requests a number, with an idempotency key if the series needs one. Returns the number.
fn take(service: &Service, series: &str, key: &str) -> Value {
    let asked = request(&format!("POST /numbers/{series}"), key, "");
    let given = Client::connect(service.address()).exchange(asked);
    assert_eq!(given.status, 201, "{}", given.text());
    let given = given.json();
    given.get("first").unwrap_or(&given["number"]).clone()
}

const KEY: &str = "idempotency-key: order-1\r\n";

#[test]
fn a_reservation_of_a_billion_numbers_is_one_line_of_an_export() {
    let home = Home::new();
    let rules = "[numbers.rows]\npattern = 'rows-*'\nkind = 'blocks'\nreserve = 1_000_000_000";
    let service = Service::start(home.serve_with(rules));
    service.wait_until_ready();
    assert_eq!(take(&service, "rows-1", ""), json!("1"));
    assert_eq!(take(&service, "invoices", KEY), json!("1"));
    let numbers = |args: &[&str]| {
        let done = run(idmint(
            &[&["numbers"], args, &["--server", &service.url()]].concat(),
        ));
        done.assert(0, &[]);
        done.out
    };
    let exported = numbers(&["export"]);
    let lines: Vec<Value> = exported
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let shown = lines
        .iter()
        .map(|line| (&line["series"], &line["number"], line.get("last")))
        .collect::<Vec<_>>();
    assert_eq!(
        shown,
        [
            (&json!("invoices"), &json!("1"), None),
            (&json!("rows-1"), &json!("1"), Some(&json!("1000000000"))),
        ]
    );
    let listed = numbers(&["list", "rows-1"]);
    assert!(
        listed.starts_with("1 to 1000000000  ") && listed.lines().count() == 1,
        "{listed}"
    );
}

#[test]
fn a_series_with_numbers_does_not_change_its_kind() {
    let home = Home::new();
    let rules = |kind: &str, other: &str| {
        format!(
            "[numbers.rows]\npattern = 'rows-*'\nkind = '{kind}'\n[numbers.other]\npattern = 'other'\nkind = '{other}'"
        )
    };
    let service = Service::start(home.serve_with(&rules("gapless", "gapless")));
    service.wait_until_ready();
    assert_eq!(take(&service, "rows-1", KEY), json!("1"));
    service.kill();
    for rules in [rules("blocks", "gapless"), rules("blocks", "blocks")] {
        run(home.serve_with(&rules)).assert(
            78,
            &[
                "the series rows-1 has numbers of kind gapless",
                "makes it blocks",
                "give it the kind gapless again",
            ],
        );
    }
    // The kind of the pattern `other` may change, because the pattern has no series with numbers
    // yet.
    let service = Service::start(home.serve_with(&rules("gapless", "blocks")));
    service.wait_until_ready();
    assert_eq!(
        take(&service, "rows-1", "idempotency-key: b\r\n"),
        json!("2")
    );
    assert_eq!(take(&service, "other", ""), json!("1"));
    service.kill();
    run(home.serve_with(&rules("gapless", "gapless"))).assert(
        78,
        &[
            "the series other has numbers of kind blocks",
            "makes it gapless",
        ],
    );
}
