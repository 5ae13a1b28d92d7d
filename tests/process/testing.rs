//! Checks `idmint serve --test`, which mints the same ids for the same requests, and `idmint encode
//! --vectors`, which writes ids of known fields.

use std::collections::BTreeMap;
use std::fs;

use idmint_core::id::{Format, PRESETS, Preset};
use idmint_http::paths;
use serde_json::{Value, json};

use idmint_testing::http1::{Answer, Client, request};
use idmint_testing::service::{Home, Service, idmint, run, until};

const REQUESTS: usize = 10_000;

/// The formats that are minted by a count, each with the query parameters that it requires.
const MINTED: [(&str, &str); 12] = [
    ("payment", ""),
    ("snowflake", ""),
    ("flax", ""),
    ("siq", "&type=message"),
    ("uuid7", ""),
    ("uuid4", ""),
    ("ulid", ""),
    ("typeid", "&type=user"),
    ("firebase", ""),
    ("conjunction-v1", "&encoding=hashids"),
    ("js53", ""),
    ("instagram", ""),
];

/// Values from earlier responses that later requests need.
#[derive(Default)]
struct Known {
    id: String,
    ledger: String,
    event: String,
    conjunction: String,
}

/// Starts a service in test mode with these additional arguments. It keeps its state in memory, so
/// it needs no folder.
fn start(more: &[&str]) -> Service {
    let service = Service::start(idmint(
        &[&["serve", "--test", "--listen", "127.0.0.1:0"], more].concat(),
    ));
    service.wait_until_ready();
    service
}

/// Returns request number `at` of a run, for the route `template`.
fn request_of(at: usize, method: &str, template: &str, known: &Known) -> String {
    let (format, needs) = MINTED[at / 7 % MINTED.len()];
    let ledger = if known.ledger.is_empty() {
        "aa77f99c"
    } else {
        &known.ledger
    };
    let values = [
        ("{*id}", known.id.as_str()),
        (
            "{id}",
            if template.contains("ledgers") {
                &known.event
            } else {
                &known.conjunction
            },
        ),
        ("{format}", format),
        ("{ledger}", ledger),
        ("{slug}", "sequence-exhausted"),
        ("{file}", "main.js"),
        (
            "{series}",
            if template.ends_with("/resume") {
                "*"
            } else {
                "invoice-2026"
            },
        ),
        ("{n}", "1"),
    ];
    let path = values
        .iter()
        .fold(template.to_owned(), |path, (name, value)| {
            path.replace(name, value)
        });
    let second = at % 60;
    let report = json!({ "tca": format!("2026-02-01T00:00:{second:02}Z"), "primary": 25_544, "secondary": 40_000 + at % 50 });
    let event = json!({ "event": "Counted", "entities": {}, "data": at });
    let (query, body) = match template {
        "/ids/{format}" => (format!("?count={}{needs}", 1 + at % 700), String::new()),
        "/conjunctions" if method == "POST" => (String::new(), report.to_string()),
        "/ledgers" if method == "POST" => (String::new(), event.to_string()),
        "/ledgers/{ledger}/events" => (String::new(), json!({ "events": [event] }).to_string()),
        "/ledgers/{ledger}/verify" => (String::new(), event.to_string()),
        "/numbers/{series}/{n}/void" => {
            (String::new(), json!({ "reason": "cancelled" }).to_string())
        }
        "/decode" | "/inspect" => (String::new(), json!([known.id, "nonesuch"]).to_string()),
        "/encode/{format}" => ("?time=2026-01-01T00:00:00Z".to_owned(), String::new()),
        "/formats/{format}/range" => (
            "?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z".to_owned(),
            String::new(),
        ),
        _ => (String::new(), String::new()),
    };
    let kind = if template.ends_with("/verify") {
        "content-type: application/x-ndjson\r\n"
    } else {
        ""
    };
    let headers = format!("x-request-id: request-{at}\r\nidempotency-key: key-{at}\r\n{kind}");
    request(&format!("{method} {path}{query}"), &headers, &body)
}

impl Known {
    fn learn(&mut self, template: &str, method: &str, answer: &Answer) {
        if ![200, 201].contains(&answer.status) || method != "POST" {
            return;
        }
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        match template {
            "/ids/{format}" => self.id = text(&answer.json()["ids"][0]),
            "/conjunctions" => self.conjunction = text(&answer.json()["ids"][0]),
            "/ledgers" => self.ledger = text(&answer.json()["ledger"]),
            "/ledgers/{ledger}/events" => self.event = text(&answer.json()["ids"][0]),
            _ => {}
        }
    }
}

/// Sends all requests, and returns the responses. Values that differ between processes are removed:
/// the date, the address with its port, and the values in /metrics. A port alone could also be the
/// number of an object.
fn answers(service: &Service) -> Vec<(String, Vec<u8>)> {
    let mut client = Client::connect(service.address());
    let (routes, mut known) = (paths(), Known::default());
    let address = service.address().to_string();
    let answer = |at: usize| {
        let (method, template) = &routes[at % routes.len()];
        let asked = request_of(at, method.as_str(), template, &known);
        let answer = client.exchange(&asked);
        assert_eq!(answer.header("idmint-test"), Some("true"), "{answer:?}");
        known.learn(template, method.as_str(), &answer);
        let is_own = |line: &str| line.to_ascii_lowercase().starts_with("date:");
        let head: String = answer
            .head
            .split_inclusive('\n')
            .filter(|line| !is_own(line))
            .collect();
        let whole = if *template == "/metrics" {
            answer.status.to_string()
        } else {
            head + &answer.text().replace(&address, "ADDRESS")
        };
        (
            format!("{method} {template} {}", answer.status),
            whole.into_bytes(),
        )
    };
    (0..REQUESTS).map(answer).collect()
}

#[test]
fn ten_thousand_requests_of_all_routes_get_the_same_answers_of_two_services_to_test_against() {
    let [first, second] = std::thread::scope(|scope| {
        let runs = [(); 2].map(|()| scope.spawn(|| answers(&start(&[]))));
        runs.map(|run| run.join().unwrap())
    });
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut bytes = 0;
    for (at, ((name, one), (_, other))) in first.iter().zip(&second).enumerate() {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            one == other,
            "request {at}, {name}:\n{}\n\nand\n\n{}",
            text(one),
            text(other)
        );
        *outcomes.entry(name).or_default() += 1;
        bytes += one.len();
    }
    for (name, count) in &outcomes {
        println!("{count:>5} {name}");
    }
    println!("{REQUESTS} answers of {bytes} bytes, twice");
    assert_eq!((first.len(), second.len()), (REQUESTS, REQUESTS));
    for (method, template) in paths() {
        // The path without an id is refused, because the empty text is not an id.
        let expected: &[u16] = if template == "/decode/" {
            &[404]
        } else {
            &[200, 201]
        };
        let is_answered =
            |status: &u16| outcomes.contains_key(format!("{method} {template} {status}").as_str());
        assert!(
            expected.iter().any(is_answered),
            "{method} {template} was never answered: {outcomes:?}"
        );
    }
    // Another seed or another start time must give other ids.
    for more in [["--seed", "1"], ["--at", "2027-01-01T00:00:00Z"]] {
        let other = start(&more);
        assert_ne!(other.mint("uuid7"), start(&[]).mint("uuid7"), "{more:?}");
    }
}

#[test]
fn the_clock_of_a_test_stands_and_goes_on_when_a_tick_is_used_up() {
    let service = start(&["--at", "1999-12-31T23:59:59Z"]);
    assert_eq!(
        service.post("/ids/payment").status,
        503,
        "its epoch is later"
    );
    assert_eq!(
        service.post("/ids/uuid7").status,
        200,
        "the day on which this was built does not matter"
    );
    drop(service);
    let service = start(&["--at", "2025-01-01T00:00:00Z"]);
    let seconds = |ids: &[String]| -> Vec<u128> {
        let payment = Format::built_in("payment").unwrap();
        ids.iter()
            .map(|id| payment.canonical().read(id).unwrap() / (36 * 1296))
            .collect()
    };
    let (one, other) = (service.mint("payment"), service.mint("payment"));
    assert_eq!(seconds(&one), seconds(&other), "it stands");
    // Each of the eight lanes (worker numbers) mints 1 296 ids per second. The times of 100 000 ids
    // must therefore span at least nine seconds.
    let many = seconds(&service.mint("payment?count=100000"));
    let (first, last) = (many[0], many[99_999]);
    assert_eq!(first, seconds(&one)[0]);
    assert!((9..100).contains(&(last - first)), "{first} to {last}");
    assert!(
        seconds(&service.mint("payment"))[0] + 1 >= last,
        "and does not go back"
    );
}

#[test]
fn a_service_to_test_against_is_for_this_machine_alone_and_keeps_nothing() {
    let home = Home::new();
    let test = |more: &[&str]| run(idmint(&[&["serve", "--test"], more].concat()));
    test(&["--listen", "0.0.0.0:0"]).assert(78, &["--test", "127.0.0.1"]);
    test(&["--at", "2026-01-01T00:00:00.5Z"]).assert(64, &["whole second"]);
    test(&["--data-dir", home.data_dir().to_str().unwrap()]).assert(64, &["--data-dir"]);
    run(idmint(&["serve", "--seed", "1"])).assert(64, &["--test"]);
    let service = Service::start(home.serve());
    service.wait_until_ready();
    assert_eq!(
        service.get("/health/live").header("idmint-test"),
        None,
        "only a test says that it is one"
    );
}

#[test]
fn whoever_is_turned_away_from_a_service_to_test_against_is_told_that_it_is_one() {
    let home = Home::new();
    let file = home.path("idmint.toml");
    fs::write(&file, "http.connections_max = 1\n").unwrap();
    let service = start(&["--config", file.to_str().unwrap()]);
    let mut busy = Client::connect(service.address());
    let refused = until("the only connection is in use", || {
        busy.send("POST /decode HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9000\r\n\r\n[");
        let answer = service.get("/formats");
        if answer.status != 503 {
            busy = Client::connect(service.address());
        }
        (answer.status == 503).then_some(answer)
    });
    assert_eq!(
        (
            refused.header("idmint-test"),
            refused.header("content-length")
        ),
        (Some("true"), Some("0"))
    );
}

#[test]
fn vectors_of_every_format_hold_both_ways() {
    let (mut ids, mut texts) = (0, 0);
    let is_on = |preset: &&Preset| Format::built_in(preset.name).unwrap().enabled;
    for preset in PRESETS.iter().filter(is_on) {
        let made = run(idmint(&[
            "encode",
            preset.name,
            "--vectors",
            "--count",
            "20",
            "--seed",
            "7",
        ]));
        made.assert(0, &[]);
        let again = run(idmint(&[
            "encode",
            preset.name,
            "--vectors",
            "--count",
            "20",
            "--seed",
            "7",
        ]));
        assert_eq!(made.out, again.out, "the same seed, the same vectors");
        let vectors: Value = serde_json::from_str(&made.out).unwrap();
        assert_eq!(
            (&vectors["format"], &vectors["schema"]),
            (&json!(preset.name), &json!(1))
        );
        let format = Format::built_in(preset.name).unwrap();
        for vector in vectors["valid"].as_array().unwrap() {
            let fields: Vec<_> = vector["fields"].as_object().unwrap().iter().collect();
            let given: Vec<_> = fields
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
                .collect();
            let id = format
                .id_of_fields(&given)
                .unwrap_or_else(|error| panic!("{error}: {vector}"))
                .id;
            for (name, text) in vector["encodings"].as_object().unwrap() {
                let text = text.as_str().unwrap();
                let encoding = format.encoding(name).unwrap();
                assert_eq!(
                    (encoding.read(text), encoding.to_text(id).as_str()),
                    (Ok(id), text),
                    "{vector}"
                );
                texts += 1;
            }
            ids += 1;
        }
    }
    println!(
        "{ids} ids of {} formats, {texts} texts, each both ways",
        PRESETS.iter().filter(is_on).count()
    );
    assert!(ids > 500 && texts > ids, "{ids} {texts}");
}
