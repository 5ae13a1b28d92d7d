//! Callers that append to ledgers and retry after a lost response. They record all acknowledged
//! events, so that a test can compare these events with the store.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::ledger::check_in_python;
use idmint_testing::chains::line;
use idmint_testing::http1::{Answer, Client, post_json, request};
use idmint_testing::service::{Home, LONG, Service, until};

/// The maximum number of attempts in which an append requires the head (last event) that its caller
/// knows.
const EXPECTED_MAX: usize = 3;

/// An address at which nobody listens. While a node is down, its callers use this address, because
/// another process may get the port of the node.
pub(crate) const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

/// The current address of a service. The address changes with each start.
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

    pub(crate) fn try_connect(&self) -> Option<Client> {
        let address = *self.0.read().unwrap_or_else(PoisonError::into_inner);
        Client::try_connect(address).ok()
    }
}

/// Kills and restarts the service whenever the callers have received as many responses as the next
/// number in `kills_at`. The numbers must increase.
///
/// Returns the service that was started last.
pub(crate) fn kill_while(
    home: &Home,
    mut service: Service,
    place: &Place,
    granted: &AtomicU64,
    kills_at: impl Iterator<Item = u64>,
) -> Service {
    for count in kills_at {
        let begun = Instant::now();
        // Wait without sleeping. A sleep would take longer than most of the work that a kill should
        // interrupt.
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

/// An event, together with the service's response to it.
#[derive(Debug)]
pub(crate) struct Kept {
    ledger: usize,
    event: String,
    told: Value,
}

impl Kept {
    pub(crate) fn id(&self) -> &str {
        text(&self.told["id"])
    }

    fn place(&self) -> u64 {
        self.told["place"].as_u64().expect("a place is a number")
    }

    /// Returns the event as a line for `verify`, with its time and its id.
    fn line(&self) -> String {
        let time = format!(
            "{},\"timestamp\":{}}}",
            self.event.strip_suffix('}').expect("an object"),
            self.told["timestamp"]
        );
        line(&time, text(&self.told["id"]))
    }
}

/// A ledger, together with its first event.
pub(crate) struct Begun {
    pub(crate) id: String,
    genesis: Kept,
}

/// Creates `count` ledgers.
pub(crate) fn begin(service: &Service, count: usize) -> Vec<Begun> {
    let begin = |number| {
        let event = json!({ "event": "Begun", "entities": {}, "data": number }).to_string();
        // Retry until the ledger exists. A slow node may respond with an error, but recognizes the
        // idempotency key of the next attempt.
        let answer = until("it is answered", || {
            let create = post_json(
                "/ledgers",
                &format!("idempotency-key: begin-{number}\r\n"),
                &event,
            );
            let answer = Client::connect(service.address()).exchange(create);
            Some(answer).filter(|answer| ![503, 504].contains(&answer.status))
        });
        assert!([200, 201].contains(&answer.status), "{}", answer.text());
        let id = text(&answer.json()["ledger"]).to_owned();
        let told = chain(service, &id).remove(0);
        Begun {
            id,
            genesis: Kept {
                ledger: number,
                event,
                told,
            },
        }
    };
    (0..count).map(begin).collect()
}

/// Everything that one caller has observed.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) kept: Vec<Kept>,
    /// The number of responses for each status. The status 0 stands for requests without a
    /// response.
    pub(crate) answers: BTreeMap<u16, u64>,
}

/// A caller that sends one append after another, until it gets a response for each.
pub(crate) struct Appender<'a> {
    number: usize,
    /// The services that the caller may use. If a request fails, the caller uses the next one.
    places: &'a [Place],
    /// The index in `places` of the service that the caller uses now.
    at: usize,
    ledgers: &'a [Begun],
    /// The last head of each ledger that the caller has seen.
    heads: Vec<String>,
    random: StdRng,
    client: Option<Client>,
    pub(crate) seen: Seen,
}

/// The content of one append: its ledger and its number of events.
#[derive(Clone, Copy)]
pub(crate) struct Order {
    pub(crate) ledger: usize,
    pub(crate) count: usize,
    /// `true` if the append is valid only as long as the head is the one that the caller knows.
    pub(crate) expects: bool,
}

impl<'a> Appender<'a> {
    pub(crate) fn new(number: usize, place: &'a Place, ledgers: &'a [Begun]) -> Appender<'a> {
        Appender::among(number, std::slice::from_ref(place), ledgers)
    }

    /// Returns a caller that may use all services in `places`.
    pub(crate) fn among(number: usize, places: &'a [Place], ledgers: &'a [Begun]) -> Appender<'a> {
        let random = StdRng::seed_from_u64(number.try_into().unwrap());
        let heads = ledgers
            .iter()
            .map(|ledger| text(&ledger.genesis.told["id"]).to_owned())
            .collect();
        Appender {
            number,
            places,
            at: number,
            ledgers,
            heads,
            random,
            client: None,
            seen: Seen::default(),
        }
    }

    /// Sends all kinds of appends until `stop` is set. A quarter of the appends go to the last
    /// ledger, which all callers share.
    pub(crate) fn run(mut self, granted: &AtomicU64, stop: &AtomicBool) -> Seen {
        let contended = self.ledgers.len() - 1;
        for turn in 0.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let own = self.number % contended;
            let order = Order {
                ledger: if self.random.random_ratio(1, 4) {
                    contended
                } else {
                    own
                },
                count: if self.random.random_ratio(1, 8) {
                    self.random.random_range(2..6)
                } else {
                    1
                },
                expects: self.random.random_ratio(1, 8),
            };
            self.append(turn, &order);
            granted.fetch_add(1, Ordering::Relaxed);
        }
        self.seen
    }

    /// Appends events. Retries until a response says at which positions they are.
    pub(crate) fn append(&mut self, turn: usize, order: &Order) {
        let key = format!("{}-{turn}", self.number);
        let events = self.events(turn, order.count);
        let mut was_lost = false;
        for attempt in 0.. {
            let expected =
                (order.expects && attempt < EXPECTED_MAX).then(|| self.heads[order.ledger].clone());
            let answer = self.exchange(
                &key,
                &self.body(order.ledger, &events, expected.as_deref()),
                &mut was_lost,
            );
            match answer.status {
                201 => return self.keep(order.ledger, events, &answer),
                // The status 200 means that an earlier attempt already succeeded. This is only
                // possible if the response to that attempt was lost.
                200 if was_lost => return self.keep(order.ledger, events, &answer),
                409 if expected.is_some() => {
                    self.heads[order.ledger] = text(&answer.json()["head"]).to_owned()
                }
                _ => panic!("{key}: {}\n{}", answer.head, answer.text()),
            }
        }
    }

    /// Repeats the append of this turn. The response must be the same as the first one, which is in
    /// the list of kept events from position `first` on.
    pub(crate) fn append_again(&mut self, turn: usize, order: &Order, first: usize) {
        let key = format!("{}-{turn}", self.number);
        let events = self.events(turn, order.count);
        let answer = self.exchange(&key, &self.body(order.ledger, &events, None), &mut false);
        assert_eq!(
            answer.status,
            200,
            "{key}, again: {}\n{}",
            answer.head,
            answer.text()
        );
        let told: Vec<&Value> = self.seen.kept[first..first + order.count]
            .iter()
            .map(|kept| &kept.told)
            .collect();
        let again = answer.json();
        assert!(
            again["details"]
                .as_array()
                .expect("where each event stands")
                .iter()
                .eq(told),
            "{key}, again: {again}"
        );
    }

    /// Switches to the next service in `places`.
    pub(crate) fn go_elsewhere(&mut self) {
        self.at += 1;
        self.client = None;
    }

    /// Switches back to the caller's first service.
    pub(crate) fn return_to_first(&mut self) {
        if self.at != self.number {
            self.at = self.number;
            self.client = None;
        }
    }

    /// Sends an append, and returns the status. The append is refused if the caller does not know
    /// the current head. Only a lost response makes the caller repeat the request.
    pub(crate) fn try_append(&mut self, turn: usize, order: &Order) -> u16 {
        let events = self.events(turn, order.count);
        let expected = order.expects.then(|| self.heads[order.ledger].clone());
        let body = self.body(order.ledger, &events, expected.as_deref());
        let mut was_lost = false;
        let answer = self.exchange(&format!("{}-{turn}", self.number), &body, &mut was_lost);
        match answer.status {
            200 if was_lost => self.keep(order.ledger, events, &answer),
            201 => self.keep(order.ledger, events, &answer),
            409 => self.heads[order.ledger] = text(&answer.json()["head"]).to_owned(),
            _ => panic!("{}\n{}", answer.head, answer.text()),
        }
        answer.status
    }

    fn events(&self, turn: usize, count: usize) -> Vec<String> {
        let event = |part| {
            let data = json!({ "turn": turn, "part": part });
            json!({ "event": "Appended", "entities": { "caller": self.number }, "data": data })
                .to_string()
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

    /// Sends a request, and repeats it with the same idempotency key until a response says what
    /// happened.
    fn exchange(&mut self, key: &str, body: &str, was_lost: &mut bool) -> Answer {
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < 2 * LONG, "{key} is still refused");
            let mut client = self.client.take().unwrap_or_else(|| self.connect());
            let answer = client.try_exchange(post_json(
                "/ids/evently",
                &format!("idempotency-key: {key}\r\n"),
                body,
            ));
            *self
                .seen
                .answers
                .entry(answer.as_ref().map_or(0, |answer| answer.status))
                .or_default() += 1;
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
        let details = answer["details"]
            .as_array_mut()
            .expect("where each event stands");
        assert_eq!(details.len(), events.len());
        self.heads[ledger] = text(&details[details.len() - 1]["id"]).to_owned();
        let first = details[0]["place"].as_u64().unwrap();
        let told = details.iter_mut().map(Value::take);
        let kept = events.into_iter().zip(told).map(|(event, told)| Kept {
            ledger,
            event,
            told,
        });
        let kept: Vec<Kept> = kept.collect();
        assert!(
            kept.iter().map(Kept::place).eq((first..).take(kept.len())),
            "what is appended at once stands together"
        );
        self.seen.kept.extend(kept);
    }
}

/// Asserts that all chains are valid, and that they contain exactly the acknowledged events.
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
        check_chain(&stored, &told).unwrap_or_else(|why| panic!("{ledger}: {why}"));
        assert!(
            stored
                .windows(2)
                .all(|pair| pair[1]["previous"] == pair[0]["id"]),
            "{ledger}"
        );

        let head = text(&stored[stored.len() - 1]["id"]);
        let lines: Vec<String> = kept.iter().map(Kept::line).collect();
        assert_eq!(
            check_in_python(&lines, None),
            (true, format!("ok {} {head}", lines.len())),
            "{ledger}"
        );
        let verify = format!("POST /ledgers/{ledger}/verify");
        let lines_sent = request(
            &verify,
            "content-type: application/x-ndjson\r\n",
            &lines.join("\n"),
        );
        let verdict = Client::connect(service.address())
            .exchange(lines_sent)
            .json();
        assert_eq!(
            verdict,
            json!({ "valid": true, "events": lines.len(), "head": head }),
            "{ledger}"
        );
    }
}

/// Removes one acknowledged event from a chain, and asserts that the check of
/// [`assert_all_is_kept`] then fails. This proves that the check can find a loss.
pub(crate) fn assert_a_planted_loss_is_found(service: &Service, ledgers: &[Begun], seen: &[Seen]) {
    let kept = || seen.iter().flat_map(|seen| &seen.kept);
    let Kept {
        ledger, told: lost, ..
    } = kept().last().expect("something was appended");
    let mut kept: Vec<&Kept> = kept()
        .filter(|kept| kept.ledger == *ledger)
        .chain([&ledgers[*ledger].genesis])
        .collect();
    kept.sort_by_key(|kept| kept.place());
    let told: Vec<&Value> = kept.iter().map(|kept| &kept.told).collect();
    let mut stored = chain(service, &ledgers[*ledger].id);
    assert_eq!(check_chain(&stored, &told), Ok(()), "the control");
    stored.retain(|event| event["id"] != lost["id"]);
    assert!(
        check_chain(&stored, &told).is_err(),
        "a planted loss is found"
    );
}

/// Checks that a chain contains exactly the acknowledged events `told`, which are sorted by
/// position. The error names the first difference.
fn check_chain(stored: &[Value], told: &[&Value]) -> Result<(), String> {
    let differs = stored
        .iter()
        .zip(told)
        .position(|(stored, told)| stored != *told);
    let differs =
        differs.or_else(|| (stored.len() != told.len()).then(|| stored.len().min(told.len())));
    if let Some(at) = differs {
        let (stored_len, told_len) = (stored.len(), told.len());
        let (stored, told) = (stored.get(at), told.get(at));
        return Err(format!(
            "{stored_len} events are there, {told_len} were acknowledged; in place {}: {stored:?}, {told:?}",
            at + 1
        ));
    }
    match stored
        .iter()
        .zip(1..)
        .find(|(event, place)| event["place"] != *place)
    {
        None => Ok(()),
        Some((event, place)) => Err(format!("{event} stands in place {place}")),
    }
}

/// Reads the chain of a ledger page by page, and returns all of its events.
fn chain(service: &Service, ledger: &str) -> Vec<Value> {
    let (mut links, mut after) = (Vec::new(), String::new());
    loop {
        // A node of a fleet gets no response from etcd for a while after a mishap.
        let mut page = until("a page of the ledger", || {
            let answer = service.get(&format!("/ledgers/{ledger}/ids{after}"));
            assert!([200, 503].contains(&answer.status), "{}", answer.text());
            (answer.status == 200).then(|| answer.json())
        });
        links.append(page["ids"].as_array_mut().expect("a page of events"));
        match &page["next"] {
            Value::Null => return links,
            next => after = format!("?after={}", text(next)),
        }
    }
}

fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} should be a text"))
}

#[test]
fn an_append_that_was_lost_doubled_or_replaced_is_found() {
    let event = |place: u64, id: &str| json!({ "place": place, "id": id });
    let told = [event(1, "a"), event(2, "b"), event(3, "c"), event(4, "d")];
    let is_found = |stored: &[Value]| check_chain(stored, &told.each_ref()).is_err();
    assert!(!is_found(&told), "the control");
    assert!(is_found(&told[..3]), "the last one is lost");
    assert!(
        is_found(&[&told[..1], &told[2..]].concat()),
        "one in the middle is lost"
    );
    assert!(
        is_found(&[&told[..2], &[event(3, "d"), event(4, "c")]].concat()),
        "two have changed places"
    );
    assert!(
        is_found(&[&told[..3], &[event(4, "other")]].concat()),
        "another one has its place"
    );
    assert!(
        is_found(&[&told[..], &[event(5, "d")]].concat()),
        "one was appended twice"
    );
    let twice = [&told[..2], &told[1..]].concat();
    assert!(
        check_chain(&twice, &twice.iter().collect::<Vec<_>>()).is_err(),
        "two callers were told one place"
    );
}
