//! Checks that ledgers and conjunctions survive when the service is killed and restarted.

use std::fs;

use serde_json::{Value, json};

use idmint_testing::chains::chains;
use idmint_testing::http1::{Answer, Client, post_json};
use idmint_testing::service::{Home, Service, run};

fn post(service: &Service, target: &str, headers: &str, body: &Value) -> Answer {
    Client::connect(service.address()).exchange(post_json(target, headers, &body.to_string()))
}

/// Appends one event, with an idempotency key that contains `number`. Returns the status and the
/// body of the response.
fn append(service: &Service, ledger: &Value, number: usize) -> (u16, Value) {
    let body = json!({ "ledger": ledger, "events": [{ "event": "Counted", "entities": {}, "data": number }] });
    let answer = post(
        service,
        "/ids/evently",
        &format!("idempotency-key: number-{number}\r\n"),
        &body,
    );
    (answer.status, answer.json())
}

#[test]
fn ledgers_and_their_keys_are_there_after_a_kill() {
    let home = Home::new();
    let mut service = home.start();
    service.wait_until_ready();
    let genesis = json!({ "event": "Begun", "entities": {} });
    let create =
        |service: &Service| post(service, "/ledgers", "idempotency-key: begin\r\n", &genesis);
    let created = create(&service);
    assert_eq!(created.status, 201);
    let (created, mut appended) = (created.json(), Vec::new());
    let ledger = &created["ledger"];
    for number in 0..6 {
        let (status, answer) = append(&service, ledger, number);
        assert_eq!(status, 201, "{answer}");
        appended.push(answer);
        let before = service
            .get(&format!("/ledgers/{}/ids", ledger.as_str().unwrap()))
            .json();

        service.kill();
        service = home.start();
        service.wait_until_ready();
        assert_eq!(
            service
                .get(&format!("/ledgers/{}/ids", ledger.as_str().unwrap()))
                .json(),
            before
        );
        for (number, answer) in appended.iter().enumerate() {
            assert_eq!(
                append(&service, ledger, number),
                (200, answer.clone()),
                "asked again after a restart"
            );
        }
        let other = json!({ "ledger": ledger, "events": [{ "event": "Other", "entities": {} }] });
        assert_eq!(
            post(
                &service,
                "/ids/evently",
                "idempotency-key: number-0\r\n",
                &other
            )
            .status,
            422
        );
        let again = create(&service);
        assert_eq!(
            (again.status, &again.json()["genesis"]),
            (200, &created["genesis"])
        );
    }
    let last = appended[5]["ids"][0].as_str().unwrap();
    assert_eq!(service.get("/ledgers").json()["ledgers"][0]["head"], last);
    assert_eq!(
        service.metric(r#"idmint_ids_minted_total{format="evently"}"#),
        0.0,
        "replays mint nothing"
    );
}

#[test]
fn an_imported_chain_is_there_after_a_kill() {
    let chain = chains().swap_remove(1);
    let events: Vec<Value> = chain
        .lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    assert_eq!(post(&service, "/ledgers", "", &events[0]).status, 201);
    let rest = json!({ "ledger": chain.ledger, "events": events[1..] });
    assert_eq!(
        post(
            &service,
            "/ids/evently",
            "idempotency-key: import\r\n",
            &rest
        )
        .status,
        201
    );
    service.kill();

    let service = home.start();
    service.wait_until_ready();
    let told = service.get(&format!("/ledgers/{}", chain.ledger)).json();
    assert_eq!(
        (told["head"].as_str(), told["events"].as_u64()),
        (chain.outcome.ok().as_deref(), Some(13))
    );
    assert_eq!(
        post(&service, "/ledgers", "", &events[0]).status,
        409,
        "it is there already"
    );
    assert_eq!(
        post(
            &service,
            "/ids/evently",
            "idempotency-key: import\r\n",
            &rest
        )
        .status,
        200
    );
}

#[test]
fn a_conjunction_keeps_its_id_after_a_kill() {
    let home = Home::new();
    let report = |service: &Service, second: &str| {
        let report = json!({ "tca": format!("2040-01-01T00:00:{second}Z"), "primary": 25_544, "secondary": 48_274 });
        post(service, "/ids/conjunction", "", &report).json()["details"][0].clone()
    };
    let service = home.start();
    service.wait_until_ready();
    let first = report(&service, "10.9");
    assert_eq!(first["created"], true);
    service.kill();
    let service = home.start();
    service.wait_until_ready();
    for (second, delta_us) in [("10.9", 0), ("11.9", 1_000_000), ("09.9", -1_000_000)] {
        let joined = report(&service, second);
        assert_eq!(
            (&joined["id"], &joined["created"]),
            (&first["id"], &json!(false)),
            "{second}"
        );
        assert_eq!(joined["tca_delta_us"], delta_us);
    }
    assert_eq!(report(&service, "11.900001")["created"], true);
}

#[test]
fn a_row_that_is_not_what_was_written_ends_the_start_with_65() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let created = post(
        &service,
        "/ledgers",
        "idempotency-key: begin\r\n",
        &json!({ "event": "Begun", "entities": {} }),
    );
    let head = created.json()["head"].as_str().unwrap().to_owned();
    service.kill();

    let path = home.data_dir().join("idmint.redb");
    let bytes = fs::read(&path).unwrap();
    let id = u128::from_str_radix(&head, 16).unwrap().to_be_bytes();
    // The key of the row also contains the id, but in another byte order.
    let places: Vec<usize> = bytes
        .windows(16)
        .enumerate()
        .filter(|(_, part)| *part == id)
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty(), "the row holds the id");
    let flip = || {
        let mut bytes = fs::read(&path).unwrap();
        places.iter().for_each(|at| bytes[*at + 20] ^= 1);
        fs::write(&path, &bytes).unwrap();
    };
    flip();
    run(home.serve()).assert(65, &["idmint.redb", "damaged"]);
    run(home.serve()).assert(65, &["idmint.redb", "damaged"]);

    // Repair the file. The service must then start normally, because the refused start changed
    // nothing.
    flip();
    let service = home.start();
    service.wait_until_ready();
    assert_eq!(
        service.get(&format!("/ledgers/{}/ids", &head[24..])).json()["ids"][0]["id"],
        head
    );
}
