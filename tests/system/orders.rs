//! Follows the recipe of docs/NUMBERS.md with a real PostgreSQL. Whatever fails, every number must
//! be on an order or be marked as void.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};
use std::thread;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::databases::{Server, Session};
use idmint_testing::http1::{Answer, Client, post_json, request};
use idmint_testing::numbering::listed;
use idmint_testing::service::{Home, Service, until};

const ORDERS: usize = 10_000;
const CLERKS: usize = 4;
const KILLS: usize = 5;
const SERIES: &str = "series-2026";

/// A failure while a clerk (a process that writes orders) works on an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Failure {
    /// The clerk fails before it has requested the number.
    BeforeItAsks,
    /// The clerk fails before the response with the number arrives.
    BeforeTheAnswer,
    /// The clerk has the number, and fails before it has written the number to the order.
    BeforeItWrites,
    /// The database session ends within the transaction that writes the number to the order.
    WithinTheTransaction,
}

const FAILURES: [Failure; 4] = [
    Failure::BeforeItAsks,
    Failure::BeforeTheAnswer,
    Failure::BeforeItWrites,
    Failure::WithinTheTransaction,
];

/// A process that writes orders to the database and requests a number for each.
struct Clerk<'a> {
    database: &'a Server,
    session: Session,
    service: &'a RwLock<SocketAddr>,
    planted: &'a Mutex<BTreeMap<Failure, usize>>,
}

impl Clerk<'_> {
    fn order(&mut self, id: usize, failure: Option<Failure>) {
        self.session
            .run(&format!("INSERT INTO orders (id) VALUES ({id});"));
        if let Some(failure) = failure {
            *self.planted.lock().unwrap().entry(failure).or_default() += 1;
        }
        match failure {
            Some(Failure::BeforeItAsks) => return,
            Some(Failure::BeforeTheAnswer) => {
                if let Ok(mut client) = Client::try_connect(*self.service.read().unwrap()) {
                    client.send(asking(id));
                }
                return;
            }
            Some(Failure::BeforeItWrites | Failure::WithinTheTransaction) | None => {}
        }
        let number = self.number_of(id);
        match failure {
            Some(Failure::BeforeItWrites) => {}
            Some(Failure::WithinTheTransaction) => {
                self.session.run(&format!(
                    "BEGIN; UPDATE orders SET number = {number} WHERE id = {id};"
                ));
                self.session = self.database.session();
            }
            Some(_) | None => {
                self.session.run(&format!(
                    "UPDATE orders SET number = {number} WHERE id = {id};"
                ));
            }
        }
    }

    /// Requests the number of an order. Every request for the same order gets the same number.
    fn number_of(&self, id: usize) -> u64 {
        self.insist(|| asking(id)).json()["number"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap()
    }

    fn insist(&self, request: impl Fn() -> String) -> Answer {
        loop {
            let address = *self.service.read().unwrap();
            let client = Client::try_connect(address).map_err(drop);
            match client.and_then(|mut client| client.try_exchange(request()).map_err(drop)) {
                Ok(answer) if [200, 201].contains(&answer.status) => return answer,
                Ok(answer) => assert!([503, 504].contains(&answer.status), "{}", answer.text()),
                Err(()) => {}
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Runs the periodic repair of the recipe. It requests numbers for orders that have none, and
    /// voids the numbers of cancelled orders. Returns the number of orders that had no number.
    fn mend(&mut self) -> usize {
        let without = self
            .session
            .run("SELECT id FROM orders WHERE number IS NULL;");
        for id in &without {
            let id = id.parse().unwrap();
            let number = self.number_of(id);
            self.session.run(&format!(
                "UPDATE orders SET number = {number} WHERE id = {id};"
            ));
        }
        for number in self
            .session
            .run("SELECT number FROM orders WHERE is_cancelled;")
        {
            let target = format!("/numbers/{SERIES}/{number}/void");
            self.insist(|| post_json(&target, "", r#"{"reason":"the order was cancelled"}"#));
        }
        without.len()
    }
}

fn asking(id: usize) -> String {
    request(
        &format!("POST /numbers/{SERIES}"),
        &format!("idempotency-key: order-{id}\r\n"),
        "",
    )
}

#[test]
fn every_number_is_on_an_order_or_void_whatever_fails_between_the_order_and_its_number() {
    let (home, database) = (Home::new(), Server::postgresql());
    database.session().run(
        "CREATE TABLE orders (id int PRIMARY KEY, number bigint UNIQUE, is_cancelled boolean NOT NULL DEFAULT false);",
    );
    let mut service = Service::start(home.serve());
    service.wait_until_ready();
    let (address, written) = (RwLock::new(service.address()), AtomicUsize::new(0));
    let planted = Mutex::new(BTreeMap::new());
    let clerk = || Clerk {
        database: &database,
        session: database.session(),
        service: &address,
        planted: &planted,
    };
    let service = thread::scope(|scope| {
        for number in 0..CLERKS {
            let (mut clerk, written) = (clerk(), &written);
            let dice = &mut StdRng::seed_from_u64(number as u64);
            let failures: Vec<_> = (0..ORDERS)
                .map(|_| {
                    dice.random_bool(0.1)
                        .then(|| FAILURES[dice.random_range(0..4)])
                })
                .collect();
            scope.spawn(move || {
                for id in (number..ORDERS).step_by(CLERKS) {
                    clerk.order(id, failures[id]);
                    written.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for kill in 1..=KILLS {
            until("orders are written", || {
                (written.load(Ordering::Relaxed) >= kill * ORDERS / (KILLS + 1)).then_some(())
            });
            service.kill();
            service = Service::start(home.serve());
            *address.write().unwrap() = service.address();
        }
        service
    });
    let mut clerk = clerk();
    let cancelled = clerk
        .session
        .run("UPDATE orders SET is_cancelled = true WHERE id % 50 = 7 RETURNING id;")
        .len();
    let mended = clerk.mend();

    let numbers = listed(&service).remove(SERIES).unwrap();
    let of_orders = clerk
        .session
        .run("SELECT number, is_cancelled FROM orders ORDER BY number;");
    let on_orders: BTreeSet<u64> = of_orders
        .iter()
        .filter_map(|row| row.strip_suffix("|f")?.parse().ok())
        .collect();
    for (number, listed) in (1_u64..).zip(&numbers) {
        assert_eq!(listed["number"], number.to_string(), "none is missing");
        assert_eq!(
            on_orders.contains(&number),
            listed["void"].is_null(),
            "{listed} is on an order, or void"
        );
    }
    let planted = planted.into_inner().unwrap();
    println!(
        "{ORDERS} orders, {} numbers, {cancelled} void, {mended} mended, {KILLS} kills of the service, planted: {planted:?}",
        numbers.len()
    );
    assert_eq!(
        (numbers.len(), on_orders.len(), cancelled),
        (ORDERS, ORDERS - cancelled, ORDERS / 50)
    );
    assert!(
        planted.len() == FAILURES.len() && mended > ORDERS / 20,
        "{mended} mended"
    );
}
