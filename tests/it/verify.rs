//! Checks the responses of `POST /ledgers/{ledger}/verify`, which verifies a chain of events.

use idmint_core::time::{ManualClock, UnixNanos};
use serde_json::{Value, json};
use tokio::time::Duration;

use crate::service::Service;
use crate::support::post_request;
use idmint_testing::chain_with_keys::WITH_KEYS;
use idmint_testing::chains::{Chain, chains};
use idmint_testing::http1::Answer;

const NDJSON: &str = "content-type: application/x-ndjson\r\n";
const MIB: usize = 1024 * 1024;

/// Returns a valid chain that contains every shape of event.
fn long_chain() -> Chain {
    chains().swap_remove(1)
}

async fn verify(service: &Service, target: &str, body: &str) -> Answer {
    service
        .exchange(&post_request(&format!("/ledgers/{target}"), NDJSON, body))
        .await
}

/// Sends a chain to verify, and returns the response.
async fn verdict(service: &Service, target: &str, body: &str) -> Value {
    let answer = verify(service, target, body).await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("application/json")),
        "{answer:?}"
    );
    answer.json()
}

#[tokio::test]
async fn every_published_chain_comes_out_as_published() {
    let service = Service::start("").await;
    let chains = chains();
    assert_eq!(chains.len(), 14);
    for Chain {
        name,
        ledger,
        lines,
        outcome,
    } in chains
    {
        for body in [lines.join("\n"), lines.join("\r\n") + "\r\n"] {
            let mut told = verdict(&service, &format!("{ledger}/verify"), &body).await;
            match &outcome {
                Ok(head) => assert_eq!(
                    told,
                    json!({ "valid": true, "events": lines.len(), "head": head }),
                    "{name}"
                ),
                Err((index, reason)) => {
                    let error = told["error"].take();
                    assert_eq!(
                        told,
                        json!({ "valid": false, "events": lines.len(), "error": null }),
                        "{name}"
                    );
                    assert_eq!(
                        (&error["index"], &error["reason"]),
                        (&json!(index), &json!(reason)),
                        "{name}"
                    );
                    assert!(
                        error["expected"] != error["found"] && error["found"].is_string(),
                        "{name}: {error}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn the_same_bytes_are_a_chain_in_every_media_type() {
    let service = Service::start("").await;
    let Chain { ledger, lines, .. } = long_chain();
    for media in [
        "application/x-ndjson",
        "text/plain; charset=utf-8",
        "application/octet-stream",
    ] {
        let headers = format!("content-type: {media}\r\n");
        let request = post_request(
            &format!("/ledgers/{ledger}/verify"),
            &headers,
            &lines.join("\n"),
        );
        let answer = service.exchange(&request).await;
        assert_eq!(
            (answer.status, &answer.json()["events"]),
            (200, &json!(lines.len())),
            "{media}"
        );
    }
}

#[tokio::test]
async fn a_chain_with_entities_and_keys_holds() {
    let service = Service::start("").await;
    let held = verdict(&service, "e95bff80/verify", &WITH_KEYS.join("\n")).await;
    assert_eq!(
        held,
        json!({ "valid": true, "events": 2, "head": "0005d5814ce488843dc5de3ee95bff80" })
    );
}

#[tokio::test]
async fn a_chain_goes_on_after_an_event_that_is_trusted() {
    let service = Service::start("").await;
    let Chain {
        ledger,
        lines,
        outcome,
        ..
    } = long_chain();
    let id_of = |line: &str| line.rsplit_once("eventId\":\"").unwrap().1[..32].to_owned();
    let target = format!("{ledger}/verify?after={}", id_of(&lines[4]));
    let held = verdict(&service, &target, &lines[5..].join("\n")).await;
    assert_eq!(
        held,
        json!({ "valid": true, "events": lines.len() - 5, "head": outcome.unwrap() })
    );
    let gap = verdict(&service, &target, &lines[6..].join("\n")).await;
    assert_eq!(
        (&gap["error"]["index"], &gap["error"]["reason"]),
        (&json!(0), &json!("checksum_mismatch"))
    );
}

#[tokio::test]
async fn an_event_that_cannot_be_read_is_the_error_of_its_line() {
    let service = Service::start("").await;
    let Chain { ledger, lines, .. } = long_chain();
    let target = format!("{ledger}/verify");
    for (line, reason, words) in [
        ("", "invalid_json", "the text ends, but a value is expected"),
        ("{", "invalid_json", "the text ends, but a key is expected"),
        ("7", "wrong_type", "the event is 7, but must be an object"),
        (
            r#"{"event":"a","entities":{}}"#,
            "missing_field",
            "`eventId`",
        ),
        (
            r#"{"event":"a","entities":{},"eventId":"0005"}"#,
            "wrong_length",
            "\"0005\"",
        ),
        (
            r#"{"event":"a","entities":{},"tags":[]}"#,
            "unknown_field",
            "`tags`",
        ),
        (
            r#"{"event":"a","entities":{},"data":{"n":1e999}}"#,
            "number_not_interoperable",
            "`data`: number 1e999",
        ),
    ] {
        let told = verdict(
            &service,
            &target,
            &format!("{}\n{line}\n{}", lines[0], lines[1]),
        )
        .await;
        assert_eq!(
            (&told["valid"], &told["events"]),
            (&json!(false), &json!(3)),
            "{line}"
        );
        let error = &told["error"];
        assert_eq!(
            (&error["index"], &error["reason"]),
            (&json!(1), &json!(reason)),
            "{line}"
        );
        assert_eq!(
            (&error["expected"], &error["found"]),
            (&Value::Null, &Value::Null),
            "{line}"
        );
        assert!(
            error["detail"].as_str().unwrap().contains(words),
            "{line}: {error}"
        );
    }
}

#[tokio::test]
async fn a_body_of_any_length_is_read_and_a_line_is_not() {
    let service = Service::start("").await;
    let Chain { ledger, lines, .. } = long_chain();
    let target = format!("{ledger}/verify");
    let spaces = " ".repeat(MIB - lines[0].len());
    let most = format!("{}{spaces}\n{}\n", lines[0], lines[1]);
    assert_eq!(verdict(&service, &target, &most).await["valid"], true);

    let many = format!("{}\n", lines.join("\n")).repeat(3 * MIB / lines.concat().len());
    let told = verdict(&service, &target, &many).await;
    assert_eq!(told["events"], json!(many.lines().count()));
    assert_eq!(
        (&told["error"]["index"], &told["error"]["reason"]),
        (&json!(lines.len()), &json!("not_monotonic"))
    );

    let answer = verify(
        &service,
        &target,
        &format!("{}\n{} {spaces}\n", lines[0], lines[0]),
    )
    .await;
    let problem = answer.json();
    assert_eq!(
        (answer.status, &problem["type"]),
        (413, &json!("/problems/payload-too-large"))
    );
    assert_eq!(
        problem["detail"],
        "line 2 is longer than 1048576 bytes, the limit of one event"
    );
    assert_eq!(problem["limit"], "1048576 bytes a line");
}

#[tokio::test]
async fn wrong_requests_are_refused_and_their_example_works() {
    let service = Service::start("").await;
    let Chain { ledger, lines, .. } = long_chain();
    for (target, body, reason, named) in [
        ("aa77f99/verify", "{}", "wrong_length", "\"aa77f99\""),
        ("aa77f99g/verify", "{}", "bad_alphabet", "\"aa77f99g\""),
        ("AA77F99C/verify", "{}", "non_canonical", "\"AA77F99C\""),
        ("aa77f99e/verify", "{}", "bad_version", "0, 4, 8 or c"),
        (
            "aa77f99c/verify?after=1",
            "{}",
            "wrong_length",
            "after is \"1\"",
        ),
        (
            "aa77f99c/verify?after=e005cd7556b05092aecc815daa77f99c",
            "{}",
            "out_of_range",
            "after is \"e005",
        ),
        (
            "aa77f99c/verify?after=0005cd7556b05092aecc815d00000000",
            "{}",
            "ledger_mismatch",
            "ledger 00000000",
        ),
        (
            "aa77f99c/verify?before=1",
            "{}",
            "unknown_parameter",
            "before",
        ),
        ("aa77f99c/verify", "", "body", "empty"),
    ] {
        let answer = verify(&service, target, body).await;
        let problem = answer.json();
        assert_eq!(
            (answer.status, &problem["reason"]),
            (422, &json!(reason)),
            "{target}: {problem}"
        );
        assert!(
            problem["detail"].as_str().unwrap().contains(named),
            "{target}: {problem}"
        );
        let (path, body) = problem["example"]
            .as_str()
            .unwrap()
            .strip_prefix("POST ")
            .unwrap()
            .split_once(' ')
            .unwrap();
        let example = service.exchange(&post_request(path, NDJSON, body)).await;
        assert_eq!(
            (example.status, &example.json()["valid"]),
            (200, &json!(true)),
            "{example:?}"
        );
    }
    let target = format!("/ledgers/{ledger}/verify");
    let status = async |headers: &str| {
        service
            .exchange(&post_request(&target, headers, &lines[0]))
            .await
            .status
    };
    assert_eq!(status("content-type: text/plain\r\n").await, 200);
    assert_eq!(status("content-type: application/json\r\n").await, 415);
    assert_eq!(status("accept: text/plain\r\n").await, 406);
    assert_eq!(service.get(&target).await.status, 405);
}

#[tokio::test]
async fn a_body_is_read_as_long_as_more_of_it_arrives() {
    let service = Service::start("http.body_timeout = \"4s\"").await;
    let Chain {
        ledger,
        lines,
        outcome,
        ..
    } = long_chain();
    let head = format!(
        "POST /ledgers/{ledger}/verify HTTP/1.1\r\nhost: localhost\r\n{NDJSON}transfer-encoding: chunked\r\n\r\n"
    );
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());

    // This client sends only the first event. It gets its response after the timeout.
    let mut stalled = service.connect().await;
    stalled.send(format!("{head}{}", chunk(&lines[0]))).await;

    // The pauses of this client together are longer than the timeout.
    let mut client = service.connect().await;
    client.send(&head).await;
    for line in &lines {
        tokio::time::sleep(Duration::from_millis(350)).await;
        client.send(chunk(&format!("{line}\n"))).await;
    }
    client.send("0\r\n\r\n").await;
    assert_eq!(client.receive().await.json()["head"], outcome.unwrap());

    let answer = stalled.receive().await;
    assert_eq!(answer.status, 408, "{answer:?}");
    assert!(
        answer
            .text()
            .contains("nothing more of the body arrived within 4s"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn chains_are_checked_while_no_id_can_be_minted() {
    // The clock was never set, and shows a time long before this program was built.
    let service =
        Service::start_on(ManualClock::at(UnixNanos::from_seconds(1_000_000_000)), "").await;
    let Chain { ledger, lines, .. } = long_chain();
    assert_eq!(
        verdict(&service, &format!("{ledger}/verify"), &lines.join("\n")).await["valid"],
        true
    );
}
