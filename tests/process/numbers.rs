//! Numbers of a service that is killed again and again while callers ask: no hole, none doubled, each key its first number.

use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::backup::floor;
use crate::http1::{Client, request};
use crate::numbering::{Callers, listed};
use crate::service::{Home, Service, idmint, run, until};

const CALLERS: usize = 12;
const KILLS: usize = 8;

const RULES: &str = "[numbers.all]\npattern = 'series-*'\ntext = '{series}/{n:06}'\ncheck = 'mod97'";

#[test]
fn no_number_is_missing_or_doubled_and_each_key_has_its_first_through_kills_under_load() {
    let home = Home::new();
    let mut service = Service::start(home.serve_with(RULES));
    service.wait_until_ready();
    let callers = Callers::of([&service]);
    let get_more = || {
        let least = callers.told() + 200;
        until("callers get numbers", || (callers.told() >= least).then_some(()));
    };
    let service = thread::scope(|scope| {
        let _stop = callers.stop_at_the_end();
        for caller in 0..CALLERS {
            let callers = &callers;
            scope.spawn(move || callers.ask(caller));
        }
        for kill in 0..KILLS {
            // So that there is something to lose in each life.
            get_more();
            thread::sleep(Duration::from_millis(3 * kill as u64));
            service.kill();
            service = Service::start(home.serve_with(RULES));
            callers.move_place(0, service.address());
        }
        service.wait_until_ready();
        get_more();
        service
    });
    let total = callers.check(&service, CALLERS);
    assert!(total > 2_000, "{total}");
}

#[test]
fn numbers_and_voids_are_in_a_backup() {
    let (home, copy) = (Home::new(), Home::new());
    let service = Service::start(home.serve_with(RULES));
    service.wait_until_ready();
    let post = |service: &Service, line: &str, key: &str, body: &str| {
        let headers = format!("idempotency-key: {key}\r\n");
        Client::connect(service.address()).exchange(request(&format!("POST {line}"), &headers, body))
    };
    let given = post(&service, "/numbers/series-1?count=3", "a", "").json();
    let reason = json!({ "reason": "cancelled" }).to_string();
    assert_eq!(post(&service, "/numbers/series-1/2/void", "b", &reason).status, 201);
    let ended =
        run(idmint(&["backup", copy.data_dir().to_str().unwrap(), "--data-dir", home.data_dir().to_str().unwrap()]));
    ended.assert(0, &[]);
    assert!(ended.out.starts_with("0 appends, 0 conjunctions and 3 numbers are in "), "{}", ended.out);
    let before = listed(&service);
    service.kill();
    let mut command = copy.serve_with(RULES);
    command.args(["--floor", &floor()]);
    let service = Service::start(command);
    service.wait_until_ready();
    assert_eq!(listed(&service), before);
    let again = post(&service, "/numbers/series-1?count=3", "a", "");
    assert_eq!((again.status, again.json()), (200, given));
    assert_eq!(post(&service, "/numbers/series-1", "c", "").json()["number"], "4");
}
