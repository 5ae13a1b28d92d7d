//! Callers that append to ledgers, ask again when an answer is lost, and keep what they were told.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::chains::line;
use crate::http1::{Answer, Client, post_json, request};
use crate::ledger::check_in_python;
use crate::service::{Home, LONG, Service, until};

/// How often a caller insists on the head that it knows.
const EXPECTED_MAX: usize = 3;

/// Where the service is now: another place after each start.
pub(crate) struct Place(RwLock<SocketAddr>);

impl Place {
    pub(crate) fn of(service: &Service) -> Place {
        Place(RwLock::new(service.address()))
    }

    pub(crate) fn move_to(&self, address: SocketAddr) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = address;
    }

    pub(crate) fn connect(&self) -> Client {
        until("the service listens", || self.try_connect())
    }

    fn try_connect(&self) -> Option<Client> {
        let address = *self.0.read().unwrap_or_else(PoisonError::into_inner);
        Client::try_connect(address).ok()
    }
}

/// Kills a service each time that callers have got so many answers, in rising order, and starts it again. Returns the
/// last one started.
pub(crate) fn kill_while(
    home: &Home,
    mut service: Service,
    place: &Place,
    granted: &AtomicU64,
    kills_at: impl Iterator<Item = u64>,
) -> Service {
    for count in kills_at {
        let begun = Instant::now();
        // Without a sleep, which is longer than most of what a kill should fall into.
        while granted.load(Ordering::Relaxed) < count {
            assert!(begun.elapsed() < LONG, "the callers go on");
            std::thread::yield_now();
        }
        service.kill();
        service = home.start();
        place.move_to(service.address());
    }
    service
}

/// An event as a caller keeps it: what it sent, and what it was told.
#[derive(Debug)]
pub(crate) struct Kept {
    ledger: usize,
    event: String,
    told: Value,
}

impl Kept {
    fn place(&self) -> u64 {
        self.told["place"].as_u64().expect("a place is a number")
    }

    /// The event as it is checked: with its time and its id.
    fn line(&self) -> String {
        let time =
            format!("{},\"timestamp\":{}}}", self.event.strip_suffix('}').expect("an object"), self.told["timestamp"]);
        line(&time, text(&self.told["id"]))
    }
}

/// A ledger, with its first event.
pub(crate) struct Begun {
    pub(crate) id: String,
    genesis: Kept,
}

/// Creates ledgers.
pub(crate) fn begin(service: &Service, count: usize) -> Vec<Begun> {
    let begin = |number| {
        let event = json!({ "event": "Begun", "entities": {}, "data": number }).to_string();
        let create = post_json("/ledgers", &format!("idempotency-key: begin-{number}\r\n"), &event);
        let answer = Client::connect(service.address()).exchange(create);
        assert_eq!(answer.status, 201, "{}", answer.text());
        let id = text(&answer.json()["ledger"]).to_owned();
        let told = service.get(&format!("/ledgers/{id}/ids")).json()["ids"][0].clone();
        Begun { id, genesis: Kept { ledger: number, event, told } }
    };
    (0..count).map(begin).collect()
}

/// What one caller has seen.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) kept: Vec<Kept>,
    /// How many answers of each status came, and how many requests got none (0).
    pub(crate) answers: BTreeMap<u16, u64>,
}

/// Stops those who look there, also when the test has failed: it would wait for them.
pub(crate) struct StopOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A caller, which appends one order after the other.
pub(crate) struct Appender<'a> {
    number: usize,
    /// The services that it may ask: the next one whenever one does not do what it was asked for.
    places: &'a [Place],
    /// Which of them it asks.
    at: usize,
    ledgers: &'a [Begun],
    /// The head of each ledger, as far as this caller knows.
    heads: Vec<String>,
    random: StdRng,
    client: Option<Client>,
    pub(crate) seen: Seen,
}

/// What is to be appended at once.
pub(crate) struct Order {
    pub(crate) ledger: usize,
    pub(crate) count: usize,
    /// Only if the head is the one that the caller knows.
    pub(crate) expects: bool,
}

impl<'a> Appender<'a> {
    pub(crate) fn new(number: usize, place: &'a Place, ledgers: &'a [Begun]) -> Appender<'a> {
        Appender::among(number, std::slice::from_ref(place), ledgers)
    }

    /// A caller who may ask any of these.
    pub(crate) fn among(number: usize, places: &'a [Place], ledgers: &'a [Begun]) -> Appender<'a> {
        let random = StdRng::seed_from_u64(number.try_into().unwrap());
        let heads = ledgers.iter().map(|ledger| text(&ledger.genesis.told["id"]).to_owned()).collect();
        Appender { number, places, at: number, ledgers, heads, random, client: None, seen: Seen::default() }
    }

    /// Appends all kinds of orders until it is told to stop, a quarter of them to the last ledger, where everybody is.
    pub(crate) fn run(mut self, granted: &AtomicU64, stop: &AtomicBool) -> Seen {
        let contended = self.ledgers.len() - 1;
        for turn in 0.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let own = self.number % contended;
            let order = Order {
                ledger: if self.random.random_ratio(1, 4) { contended } else { own },
                count: if self.random.random_ratio(1, 8) { self.random.random_range(2..6) } else { 1 },
                expects: self.random.random_ratio(1, 8),
            };
            self.append(turn, &order);
            granted.fetch_add(1, Ordering::Relaxed);
        }
        self.seen
    }

    /// Appends events until the answer says where they are.
    pub(crate) fn append(&mut self, turn: usize, order: &Order) {
        let key = format!("{}-{turn}", self.number);
        let events = self.events(turn, order.count);
        let mut was_lost = false;
        for attempt in 0.. {
            let expected = (order.expects && attempt < EXPECTED_MAX).then(|| self.heads[order.ledger].clone());
            let answer = self.exchange(&key, &self.body(order.ledger, &events, expected.as_deref()), &mut was_lost);
            match answer.status {
                201 => return self.keep(order.ledger, events, &answer),
                // Done before, so there was an attempt whose answer did not come.
                200 if was_lost => return self.keep(order.ledger, events, &answer),
                409 if expected.is_some() => self.heads[order.ledger] = text(&answer.json()["head"]).to_owned(),
                _ => panic!("{key}: {}\n{}", answer.head, answer.text()),
            }
        }
    }

    /// From now on it asks the service that it asked first.
    pub(crate) fn return_to_first(&mut self) {
        if self.at != self.number {
            self.at = self.number;
            self.client = None;
        }
    }

    /// One attempt at an order, of which nothing comes if the head is another. Returns the status.
    pub(crate) fn try_append(&mut self, turn: usize, order: &Order) -> u16 {
        let events = self.events(turn, order.count);
        let expected = order.expects.then(|| self.heads[order.ledger].clone());
        let body = self.body(order.ledger, &events, expected.as_deref());
        let answer = self.exchange(&format!("{}-{turn}", self.number), &body, &mut false);
        match answer.status {
            201 => self.keep(order.ledger, events, &answer),
            409 => self.heads[order.ledger] = text(&answer.json()["head"]).to_owned(),
            _ => panic!("{}\n{}", answer.head, answer.text()),
        }
        answer.status
    }

    fn events(&self, turn: usize, count: usize) -> Vec<String> {
        let event = |part| {
            let data = json!({ "turn": turn, "part": part });
            json!({ "event": "Appended", "entities": { "caller": self.number }, "data": data }).to_string()
        };
        (0..count).map(event).collect()
    }

    fn body(&self, ledger: usize, events: &[String], expected: Option<&str>) -> String {
        let expected = json!(expected);
        format!(
            r#"{{"ledger":"{}","expected_previous":{expected},"events":[{}]}}"#,
            self.ledgers[ledger].id,
            events.join(",")
        )
    }

    /// Asks until there is an answer that says what became of it, with the same key.
    fn exchange(&mut self, key: &str, body: &str, was_lost: &mut bool) -> Answer {
        loop {
            let mut client = self.client.take().unwrap_or_else(|| self.connect());
            let answer = client.try_exchange(post_json("/ids/evently", &format!("idempotency-key: {key}\r\n"), body));
            *self.seen.answers.entry(answer.as_ref().map_or(0, |answer| answer.status)).or_default() += 1;
            match answer {
                Ok(answer) if [503, 504].contains(&answer.status) => {
                    *was_lost |= answer.status == 504;
                    self.at += 1;
                    std::thread::sleep(Duration::from_millis(1));
                }
                Ok(answer) => {
                    self.client = Some(client);
                    return answer;
                }
                Err(_) => {
                    *was_lost = true;
                    self.at += 1;
                }
            }
        }
    }

    fn connect(&mut self) -> Client {
        until("a service listens", || {
            let client = self.places[self.at % self.places.len()].try_connect();
            self.at += usize::from(client.is_none());
            client
        })
    }

    fn keep(&mut self, ledger: usize, events: Vec<String>, answer: &Answer) {
        let mut answer = answer.json();
        let details = answer["details"].as_array_mut().expect("where each event stands");
        assert_eq!(details.len(), events.len());
        self.heads[ledger] = text(&details[details.len() - 1]["id"]).to_owned();
        let first = details[0]["place"].as_u64().unwrap();
        let told = details.iter_mut().map(Value::take);
        let kept = events.into_iter().zip(told).map(|(event, told)| Kept { ledger, event, told });
        let kept: Vec<Kept> = kept.collect();
        assert!(
            kept.iter().map(Kept::place).eq((first..).take(kept.len())),
            "what is appended at once stands together"
        );
        self.seen.kept.extend(kept);
    }
}

/// The chains are exactly what the callers were told, nothing more and nothing less, and they hold.
pub(crate) fn assert_all_is_kept(service: &Service, ledgers: Vec<Begun>, seen: Vec<Seen>) {
    let mut kept: Vec<Vec<Kept>> = Vec::new();
    let ids: Vec<String> = ledgers.iter().map(|ledger| ledger.id.clone()).collect();
    kept.extend(ledgers.into_iter().map(|ledger| vec![ledger.genesis]));
    for event in seen.into_iter().flat_map(|seen| seen.kept) {
        kept[event.ledger].push(event);
    }
    for (ledger, mut kept) in ids.iter().zip(kept) {
        kept.sort_by_key(Kept::place);
        let stored = chain(service, ledger);
        let told: Vec<&Value> = kept.iter().map(|kept| &kept.told).collect();
        let differs = stored.iter().zip(&told).position(|(stored, told)| stored != *told);
        assert_eq!((stored.len(), differs), (told.len(), None), "{ledger}: the chain is what the callers were told");
        assert!(stored.iter().map(|link| link["place"].as_u64().unwrap()).eq((1..).take(stored.len())), "{ledger}");
        assert!(stored.windows(2).all(|pair| pair[1]["previous"] == pair[0]["id"]), "{ledger}");

        let head = text(&stored[stored.len() - 1]["id"]);
        let lines: Vec<String> = kept.iter().map(Kept::line).collect();
        assert_eq!(check_in_python(&lines, None), (true, format!("ok {} {head}", lines.len())), "{ledger}");
        let verify = format!("POST /ledgers/{ledger}/verify");
        let lines_sent = request(&verify, "content-type: application/x-ndjson\r\n", &lines.join("\n"));
        let verdict = Client::connect(service.address()).exchange(lines_sent).json();
        assert_eq!(verdict, json!({ "valid": true, "events": lines.len(), "head": head }), "{ledger}");
    }
}

/// A whole chain, page by page.
fn chain(service: &Service, ledger: &str) -> Vec<Value> {
    let (mut links, mut after) = (Vec::new(), String::new());
    loop {
        let mut page = service.get(&format!("/ledgers/{ledger}/ids{after}")).json();
        links.append(page["ids"].as_array_mut().expect("a page of events"));
        match &page["next"] {
            Value::Null => return links,
            next => after = format!("?after={}", text(next)),
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} should be a text"))
}
