//! Checks reading ledgers page by page and in every media type, and requests for ledgers that do
//! not exist.

use serde_json::json;

use crate::ledgers::{
    JSON, append, append_request, assert_example_works, assert_problem, chain, create_request,
    event, ledger, order, text,
};
use crate::service::{Service, ids_of};
use crate::support::{get_request, post_request};

#[tokio::test]
async fn events_are_listed_a_thousand_a_page() {
    let service = Service::start("").await;
    let ledger = ledger(&service, 0).await;
    let page = async |after: &str| {
        service
            .get(&format!("/ledgers/{ledger}/ids{after}"))
            .await
            .json()
    };
    let mut ids = vec![text(&page("").await["ids"][0]["id"]).to_owned()];
    // Append different numbers of events, so that pages begin and end in the middle of an append.
    for (number, len) in [999, 1, 700, 2, 297, 501].into_iter().enumerate() {
        let events: Vec<String> = (0..len).map(event).collect();
        ids.extend(ids_of(
            &append(
                &service,
                &format!("fill-{number}"),
                &order(&ledger, &events),
            )
            .await,
        ));
        if ids.len() == 1_000 {
            assert_eq!(
                page("").await["next"],
                json!(null),
                "a full page is the last if nothing follows"
            );
        }
    }
    assert_eq!(ids.len(), 2_501);
    let first = page("").await;
    assert_eq!(
        (first["ids"].as_array().unwrap().len(), &first["next"]),
        (1_000, &json!(ids[999]))
    );

    let links = chain(&service, &ledger).await;
    assert!(links.iter().map(|link| text(&link["id"])).eq(ids.iter()));
    for (before, link) in links.iter().zip(&links[1..]) {
        assert_eq!(link["previous"], before["id"]);
        assert_eq!(
            link["place"].as_u64(),
            before["place"].as_u64().map(|place| place + 1)
        );
    }
    for at in [0, 1, 998, 999, 1_000, 1_001, 1_700, 2_499, 2_500] {
        let after = page(&format!("?after={}", ids[at])).await;
        assert_eq!(
            after["ids"].as_array().unwrap(),
            &links[at + 1..links.len().min(at + 1_001)],
            "after {at}"
        );
    }
}

#[tokio::test]
async fn ledgers_are_listed_a_thousand_a_page() {
    let service = Service::start("").await;
    let mut client = service.connect().await;
    let mut created = Vec::new();
    for number in 0..1_001 {
        let answer = client
            .exchange(&create_request(
                &format!("idempotency-key: {number}\r\n"),
                &event(number),
            ))
            .await;
        created.push(answer.json());
        if number == 999 {
            let full = service.get("/ledgers").await.json();
            assert_eq!(
                (full["ledgers"].as_array().unwrap().len(), &full["next"]),
                (1_000, &json!(null))
            );
        }
    }
    created.sort_by_key(|info| text(&info["ledger"]).to_owned());
    let first = service.get("/ledgers").await.json();
    assert_eq!(first["ledgers"].as_array().unwrap(), &created[..1_000]);
    assert_eq!(first["next"], created[999]["ledger"]);
    let second = service
        .get(&format!("/ledgers?after={}", text(&first["next"])))
        .await
        .json();
    assert_eq!(
        second,
        json!({ "ledgers": &created[1_000..], "next": null })
    );
    assert_eq!(
        service.get("/ledgers?after=fffffffc").await.json(),
        json!({ "ledgers": [], "next": null })
    );
    assert_eq!(
        service.get("/ledgers?after=00000000").await.json(),
        first,
        "no ledger needs to have that id"
    );
}

#[tokio::test]
async fn what_is_not_there_is_said() {
    let service = Service::start("").await;
    let missing = "0005cd7556b05092aecc815daa77f99c";
    for request in [
        get_request("/ledgers/aa77f99c"),
        get_request("/ledgers/aa77f99c/ids"),
        get_request(&format!("/ledgers/aa77f99c/ids/{missing}")),
        append_request("a", &order("aa77f99c", &[event(1)])),
    ] {
        assert_problem(&service.exchange(&request).await, 404, "unknown-ledger", "");
    }
    let ledger = ledger(&service, 0).await;
    let of_this_ledger = format!("{}{ledger}", &missing[..24]);
    for id in [missing, &of_this_ledger] {
        let answer = service.get(&format!("/ledgers/{ledger}/ids/{id}")).await;
        let problem = assert_problem(&answer, 404, "not-found", "");
        assert!(text(&problem["detail"]).contains(id), "{problem}");
    }
    for (id, reason) in [
        (missing, "ledger_mismatch"),
        (&of_this_ledger, "checksum_mismatch"),
    ] {
        let answer = service
            .get(&format!("/ledgers/{ledger}/ids?after={id}"))
            .await;
        let problem = assert_problem(&answer, 422, "invalid-parameter", reason);
        assert_example_works(&service, &problem).await;
    }
    for (ledger, reason) in [
        ("aa77f99", "wrong_length"),
        ("AA77F99C", "non_canonical"),
        ("aa77f99d", "bad_version"),
    ] {
        for path in ["", "/ids", "/ids/0005cd7556b05092aecc815daa77f99c"] {
            let answer = service.get(&format!("/ledgers/{ledger}{path}")).await;
            let problem = assert_problem(&answer, 422, "invalid-parameter", reason);
            assert_example_works(&service, &problem).await;
        }
        let answer = append(&service, "a", &order(ledger, &[event(1)])).await;
        let problem = assert_problem(&answer, 422, "invalid-parameter", reason);
        assert_example_works(&service, &problem).await;
    }
}

#[tokio::test]
async fn an_order_that_is_none_is_refused_and_its_example_works() {
    let service = Service::start("").await;
    // Test each refusal twice: before the ledger exists, and then with the ledger. In the first
    // case, the example that the refusal suggests creates the ledger.
    for is_there in [false, true] {
        let ledger = if is_there {
            ledger(&service, 0).await
        } else {
            "aa77f99c".to_owned()
        };
        let good = order(&ledger, &[event(1)]);
        for (path, body, slug, reason) in [
            ("", order::<&str>(&ledger, &[]), "invalid-event", "count"),
            ("", "[]".to_owned(), "invalid-event", "json_value"),
            ("", "{}".to_owned(), "invalid-event", "json_value"),
            (
                "",
                good.replace("ledger", "legder"),
                "invalid-event",
                "json_value",
            ),
            (
                "",
                good.replacen('{', r#"{"count":1,"#, 1),
                "invalid-event",
                "json_value",
            ),
            ("?count=1", good.clone(), "invalid-parameter", "count"),
            ("?type=user", good.clone(), "invalid-parameter", "type"),
            (
                "?encoding=hexx",
                good.clone(),
                "invalid-parameter",
                "encoding",
            ),
        ] {
            let request =
                append_request("a", &body).replace("/ids/evently", &format!("/ids/evently{path}"));
            let problem = assert_problem(&service.exchange(&request).await, 422, slug, reason);
            assert_example_works(&service, &problem).await;
            service.clock.advance(std::time::Duration::from_micros(1));
        }
    }
}

#[tokio::test]
async fn an_answer_has_the_form_that_was_asked_for() {
    let service = Service::start("").await;
    let order = order(&ledger(&service, 0).await, &[event(1), event(2)]);
    let ask = async |query: &str, accept: &str| {
        let headers = format!("{JSON}idempotency-key: same\r\naccept: {accept}\r\n");
        service
            .exchange(&post_request(
                &format!("/ids/evently{query}"),
                &headers,
                &order,
            ))
            .await
    };
    let json = ask("", "application/json").await;
    let ids = ids_of(&json);
    assert_eq!(
        (json.status, json.header("content-type")),
        (201, Some("application/json"))
    );
    let told = json.json();
    assert_eq!(
        (&told["format"], &told["count"]),
        (&json!("evently"), &json!(2))
    );
    // From here on, every request repeats the first one, so every response is a replay. Replays are
    // possible in any media type.
    let plain = ask("", "text/plain").await;
    assert_eq!(plain.text(), format!("{}\n{}\n", ids[0], ids[1]));
    let lines = ask("", "application/x-ndjson").await;
    assert_eq!(lines.text(), format!("\"{}\"\n\"{}\"\n", ids[0], ids[1]));
    let bytes = ask("", "application/octet-stream").await;
    let value = |id: &str| u128::from_str_radix(id, 16).unwrap().to_be_bytes();
    assert_eq!(
        (bytes.body.as_slice(), bytes.header("idmint-width")),
        (
            [value(&ids[0]), value(&ids[1])].concat().as_slice(),
            Some("16")
        )
    );
    for answer in [plain, lines, bytes] {
        assert_eq!(
            (answer.status, answer.header("idempotency-replayed")),
            (200, Some("true"))
        );
        assert_eq!(
            (
                answer.header("idmint-count"),
                answer.header("cache-control")
            ),
            (Some("2"), Some("no-store"))
        );
    }
    let uuid = |id: &str| [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]].join("-");
    let spelled = ask("?encoding=uuid", "application/json").await.json();
    assert_eq!(spelled["ids"], json!([uuid(&ids[0]), uuid(&ids[1])]));
    assert_eq!(spelled["details"][1]["previous"], json!(uuid(&ids[0])));
    for path in ["/ids/evently", "/ledgers"] {
        let image = post_request(
            path,
            &format!("{JSON}idempotency-key: x\r\naccept: image/png\r\n"),
            &order,
        );
        assert_problem(&service.exchange(&image).await, 406, "not-acceptable", "");
        let form = post_request(
            path,
            "content-type: application/x-www-form-urlencoded\r\nidempotency-key: x\r\n",
            &order,
        );
        assert_problem(
            &service.exchange(&form).await,
            415,
            "unsupported-media-type",
            "content_type",
        );
    }
    for path in ["/ledgers", "/ledgers/aa77f99c", "/ledgers/aa77f99c/ids"] {
        let image = get_request(path).replace("\r\n\r\n", "\r\naccept: text/plain\r\n\r\n");
        assert_problem(&service.exchange(&image).await, 406, "not-acceptable", "");
    }
}

/// Checks that the list of ledgers contains the first and the last event of each ledger, however
/// long the first and the last append are.
#[tokio::test]
async fn ledgers_of_long_appends_are_listed_right_by_many_while_ids_are_minted() {
    const LEDGERS: usize = 150;
    const EVENTS: usize = 2_000;
    let folder = tempfile::tempdir().unwrap();
    let settings = format!(
        "storage = {{ engine = 'embedded', data_dir = '{}' }}",
        folder.path().display()
    );
    let service = Service::start(&settings).await;
    let events = vec![r#"{"event":"a","entities":{}}"#; EVENTS];
    let mut expected = Vec::new();
    for number in 0..LEDGERS {
        let genesis = create_request(&format!("idempotency-key: {number}\r\n"), &event(number));
        let mut info = service.exchange(&genesis).await.json();
        let appended = append(
            &service,
            &format!("fill-{number}"),
            &order(text(&info["ledger"]), &events),
        )
        .await
        .json();
        let last = &appended["details"][EVENTS - 1];
        (info["head"], info["events"]) = (last["id"].clone(), json!(EVENTS + 1));
        expected.push(info);
    }
    expected.sort_by_key(|info| text(&info["ledger"]).to_owned());
    let first = service.get("/ledgers").await;
    let listed = first.json();
    let ends = |info: &serde_json::Value| {
        ["ledger", "genesis", "head", "events"].map(|member| info[member].clone())
    };
    assert!(
        listed["ledgers"]
            .as_array()
            .unwrap()
            .iter()
            .map(ends)
            .eq(expected.iter().map(ends))
    );

    let list = async || {
        let mut client = service.connect().await;
        for _ in 0..10 {
            let answer = client.exchange(&get_request("/ledgers")).await;
            assert_eq!((answer.status, &answer.body), (200, &first.body));
        }
    };
    let listing = async {
        tokio::join!(
            list(),
            list(),
            list(),
            list(),
            list(),
            list(),
            list(),
            list()
        )
    };
    let minted = std::cell::Cell::new(0);
    let minting = async {
        let mut client = service.connect().await;
        loop {
            let answer = client.exchange(&post_request("/ids/flax", "", "")).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            minted.set(minted.get() + 1);
        }
    };
    tokio::select! {
        _ = listing => {}
        () = minting => {}
    }
    assert!(
        minted.get() > 0,
        "nothing was minted while ledgers were listed"
    );
}
