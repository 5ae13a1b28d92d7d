//! Guests: single nodes that are adopted into the fleet during the campaign, with all their
//! records.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::callers::formats;
use crate::fleet::reimport;
use crate::torture::callers::Minted;
use crate::wall_clock::WallClock;
use idmint_testing::http1::{Client, request};
use idmint_testing::service::{Home, Service, Signal, idmint, until};

/// The number of events and of numbers of a single node.
const RECORDS: usize = 12;

/// The clock of the first guest is behind by this time, and the clock of each further guest by
/// [`APART_S`] more. No node of the fleet has minted at these times. The times are less than three
/// days ago, so the idempotency keys of the guests are still stored.
const BEHIND_S: i64 = 86_400;
const APART_S: i64 = 600;

/// A single node that has ended, and what its callers received.
pub(super) struct Guest {
    home: Home,
    name: String,
    ledger: String,
    /// The ids of the events by their keys `e0`, `e1` and so on.
    events: Vec<Value>,
    /// The numbers by their keys `n0`, `n1` and so on.
    numbers: Vec<u64>,
}

impl Guest {
    /// Starts a single node with these settings, mints ids and writes records, and ends the node.
    pub(super) fn live(nth: usize, settings: &str, minted: &mut Minted) -> Guest {
        let (home, name) = (Home::new(), format!("guest-{nth}"));
        let wall = WallClock::of(&home);
        wall.set(-BEHIND_S - APART_S * i64::try_from(nth).expect("a small number"));
        let service = wall.start(home.serve_with(settings));
        service.wait_until_ready();
        // A format with a long tick may still wait for the start of its first whole tick.
        let is_minted = |format: &usize| minted.mint_one(service.address(), *format).is_none();
        let count = formats().into_iter().filter(is_minted).count();
        assert!(count >= 4, "only {count} formats are minted");
        let created = reimport::create(&service, &name).json();
        let ledger = created["ledger"].as_str().expect("an id").to_owned();
        let mut guest = Guest {
            home,
            name,
            ledger,
            events: Vec::new(),
            numbers: Vec::new(),
        };
        (0..RECORDS).for_each(|_| guest.go_on(&service));
        if nth.is_multiple_of(2) {
            service.kill();
        } else {
            service.send(Signal::TERM);
            service.wait();
        }
        guest
    }

    /// Returns the command that adopts the folder of the node.
    pub(super) fn adopt(&self, config: &Path) -> Command {
        let mut command = idmint(&["fleet", "adopt"]);
        command
            .arg(self.home.data_dir())
            .arg("--config")
            .arg(config);
        command
    }

    /// Repeats the first requests, and writes one more event and one more number.
    pub(super) fn go_on_at(&mut self, node: &Service) {
        assert_eq!(self.append(node, 0), self.events[0], "{}", self.name);
        assert_eq!(self.number(node, 0), self.numbers[0], "{}", self.name);
        self.go_on(node);
    }

    fn go_on(&mut self, node: &Service) {
        let nth = self.events.len();
        let (event, number) = (self.append(node, nth), self.number(node, nth));
        self.events.push(event);
        self.numbers.push(number);
    }

    fn append(&self, node: &Service, nth: usize) -> Value {
        let body = json!({ "ledger": self.ledger, "events": [{ "event": format!("E{nth}"), "entities": {} }] });
        let key = format!("{}-e{nth}", self.name);
        let answer = reimport::exchange(node, "/ids/evently", &key, &body);
        assert!([200, 201].contains(&answer.status), "{}", answer.text());
        answer.json()["ids"].take()
    }

    fn number(&self, node: &Service, nth: usize) -> u64 {
        let head = format!("POST /numbers/{}", self.name);
        let key = format!("idempotency-key: n{nth}\r\n");
        let answer = until("it is answered", || {
            let answer = Client::connect(node.address()).exchange(request(&head, &key, ""));
            Some(answer).filter(|answer| ![503, 504].contains(&answer.status))
        });
        assert!([200, 201].contains(&answer.status), "{}", answer.text());
        let number = answer.json();
        let number = number["number"].as_str().expect("a number");
        number.parse().expect("a number")
    }

    /// Compares the records of the fleet with what the callers received. Returns the number of
    /// records.
    pub(super) fn assert_all_is_kept(&self, node: &Service) -> usize {
        let count = self.events.len();
        let expected: Vec<u64> = (1..=count as u64).collect();
        assert_eq!(self.numbers, expected, "{} has no gap", self.name);
        for nth in 0..count {
            assert_eq!(
                self.append(node, nth),
                self.events[nth],
                "{} {nth}",
                self.name
            );
            assert_eq!(
                self.number(node, nth),
                self.numbers[nth],
                "{} {nth}",
                self.name
            );
        }
        // The repeated requests have written nothing, so a new request gets the next number.
        let next = self.number(node, count);
        assert_eq!(next, count as u64 + 1, "{}", self.name);
        2 * count
    }
}
