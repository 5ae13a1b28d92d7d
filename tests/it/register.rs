//! Checks `/conjunctions`, which lists the conjunctions into which reports were grouped.

use serde_json::{Value, json};

use crate::service::Service;
use crate::support::post_request;

async fn report(service: &Service, tca: &str, primary: u64, secondary: u64) -> Value {
    let body = json!({ "tca": tca, "primary": primary, "secondary": secondary }).to_string();
    let request = post_request(
        "/ids/conjunction",
        "content-type: application/json\r\n",
        &body,
    );
    let answer = service.exchange(&request).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["details"][0].clone()
}

async fn listed(service: &Service, query: &str) -> (Vec<String>, Option<String>) {
    let answer = service.get(&format!("/conjunctions{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {answer:?}");
    let list = answer.json();
    let ids = list["conjunctions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_str().unwrap().to_owned());
    (ids.collect(), list["next"].as_str().map(str::to_owned))
}

fn id_in(detail: &Value) -> String {
    detail["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_conjunction_is_shown_with_its_reports_and_what_is_near() {
    let service = Service::start("").await;
    let first = report(&service, "2024-02-01T00:00:00.5Z", 25_544, 48_274).await;
    assert_eq!(first.get("near"), None);
    for tca in ["2024-02-01T00:00:01.2Z", "2024-01-31T23:59:59.9Z"] {
        assert_eq!(
            report(&service, tca, 25_544, 48_274).await["created"],
            false
        );
    }
    let id = id_in(&first);
    let shown = service.get(&format!("/conjunctions/{id}")).await.json();
    let expected = json!({ "id": id, "anchor_tca": "2024-02-01T00:00:00.500000Z", "primary": 25_544, "secondary": 48_274,
        "rank": 0, "reports": 3, "first_reported": shown["first_reported"], "last_reported": shown["last_reported"],
        "first_tca": "2024-02-01T00:00:00.500000Z", "last_tca": "2024-01-31T23:59:59.900000Z", "near": [], "external": [] });
    assert_eq!(shown, expected);
    assert!(
        shown["first_reported"]
            .as_str()
            .unwrap()
            .starts_with("2040-01-01T00:00:0"),
        "{shown}"
    );

    // These reports are more than one second away, or have the objects swapped, so each begins a
    // new conjunction. The response must list the earlier conjunctions nearby, the nearest one
    // first.
    let drifted = report(&service, "2024-02-01T00:00:40Z", 25_544, 48_274).await;
    assert_eq!(
        (&drifted["created"], &drifted["near"]),
        (&json!(true), &json!([id]))
    );
    let swapped = report(&service, "2024-02-01T00:00:30Z", 48_274, 25_544).await;
    assert_eq!(swapped["near"], json!([id_in(&drifted), id]));
    let joined = report(&service, "2024-02-01T00:00:40.1Z", 25_544, 48_274).await;
    assert_eq!(
        joined.get("near"),
        None,
        "only an answer that creates an id lists them"
    );
    let far = report(&service, "2024-02-01T00:01:00.500001Z", 25_544, 48_274).await;
    assert_eq!(
        far["near"],
        json!([id_in(&drifted), id_in(&swapped)]),
        "a minute and a microsecond from the first"
    );
    assert_eq!(service.metric("idmint_conjunction_near_total").await, 3.0);
    let shown = service.get(&format!("/conjunctions/{id}")).await.json();
    assert_eq!(shown["near"], json!([id_in(&swapped), id_in(&drifted)]));
    let other = report(&service, "2024-02-01T00:00:30Z", 25_544, 48_275).await;
    assert_eq!(other.get("near"), None, "other objects");
}

#[tokio::test]
async fn a_created_conjunction_is_returned_with_the_ten_nearest_others() {
    let service = Service::start("").await;
    let mut ids = Vec::new();
    for second in (10..34).step_by(2) {
        let tca = format!("2024-02-01T00:00:{second}Z");
        ids.insert(0, id_in(&report(&service, &tca, 25_544, 48_274).await));
    }
    let last = report(&service, "2024-02-01T00:00:34Z", 25_544, 48_274).await;
    assert_eq!(last["near"], json!(ids[..10]));
    let path = format!("/conjunctions/{}", id_in(&last));
    let shown = service.get(&path).await.json();
    assert_eq!(shown["near"], json!(ids), "a stored one is shown with all");
}

#[tokio::test]
async fn conjunctions_are_listed_latest_first_or_from_a_time_on() {
    let service = Service::start("").await;
    let mut ids = Vec::new();
    for (second, primary, secondary) in [(10, 1, 2), (20, 1, 3), (30, 4, 2), (30, 5, 6), (40, 1, 2)]
    {
        ids.push(id_in(
            &report(
                &service,
                &format!("2024-02-01T00:00:{second}Z"),
                primary,
                secondary,
            )
            .await,
        ));
    }
    let of = |places: &[usize]| places.iter().map(|at| ids[*at].clone()).collect::<Vec<_>>();
    assert_eq!(listed(&service, "").await, (of(&[4, 3, 2, 1, 0]), None));
    for (query, places) in [
        ("?from=2024-02-01T00:00:20Z", &[1, 2, 3, 4][..]),
        (
            "?from=2024-02-01T00:00:20.000001Z&to=2024-02-01T00:00:40Z",
            &[2, 3][..],
        ),
        ("?to=2024-02-01T00:00:30Z", &[1, 0][..]),
        ("?primary=1", &[4, 1, 0][..]),
        ("?secondary=2", &[4, 2, 0][..]),
        ("?primary=1&secondary=2&from=2024-032T00:00:00", &[0, 4][..]),
        ("?primary=9", &[][..]),
    ] {
        assert_eq!(listed(&service, query).await, (of(places), None), "{query}");
    }
    for (query, order) in [
        ("", [4, 3, 2, 1, 0]),
        ("&from=2024-02-01T00:00:00Z", [0, 1, 2, 3, 4]),
    ] {
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let (page, next) = listed(&service, &format!("?limit=2{query}{after}")).await;
            assert!(page.len() <= 2);
            found.extend(page);
            let Some(next) = next else { break };
            after = format!("&after={next}");
        }
        assert_eq!(found, of(&order), "{query}");
    }
    // By default, a page has at most ten conjunctions.
    for second in 0..12 {
        report(
            &service,
            &format!("2024-03-01T00:00:{:02}Z", 4 * second),
            7,
            8,
        )
        .await;
    }
    assert_eq!(listed(&service, "").await.0.len(), 10);
    assert_eq!(listed(&service, "?limit=1000").await.0.len(), 17);
}

#[tokio::test]
async fn what_is_not_stored_is_not_found() {
    let service = Service::start("").await;
    let known = "zwwqlzz-pjjmxmd-lkpvwq";
    let answer = service.get(&format!("/conjunctions/{known}")).await;
    assert_eq!(
        (answer.status, &answer.json()["type"]),
        (404, &json!("/problems/not-found"))
    );
    report(&service, "2024-02-01T00:00:00.25Z", 25_544, 48_274).await;
    for text in [known, "30025386125795551919250", "065badf00018f200bc92"] {
        assert_eq!(
            service.get(&format!("/conjunctions/{text}")).await.json()["id"],
            known,
            "{text}"
        );
    }
    let pure = Service::start("conjunction.mode = 'pure'").await;
    report(&pure, "2024-02-01T00:00:00.25Z", 25_544, 48_274).await;
    for path in ["/conjunctions".to_owned(), format!("/conjunctions/{known}")] {
        let answer = pure.get(&path).await;
        assert_eq!(
            (answer.status, &answer.json()["type"]),
            (404, &json!("/problems/not-found")),
            "{path}"
        );
    }
    for query in [
        "limit=0",
        "limit=1001",
        "limit=+1",
        "primary=x",
        "to=now",
        "after=x",
        // An id whose two objects are the same.
        "after=30025386125795551896520",
    ] {
        let answer = service.get(&format!("/conjunctions?{query}")).await;
        assert_eq!(
            (answer.status, &answer.json()["type"]),
            (422, &json!("/problems/invalid-parameter")),
            "{query}"
        );
    }
}

#[tokio::test]
async fn a_list_continues_after_a_conjunction_that_is_no_longer_stored() {
    let service = Service::start("").await;
    let mut ids = Vec::new();
    for (tca, secondary) in [("00.2", 2), ("03.4", 2), ("03.6", 4), ("06.0", 2)] {
        let tca = format!("2024-02-01T00:00:{tca}Z");
        ids.push(id_in(&report(&service, &tca, 1, secondary).await));
    }
    // The id of a conjunction in the same tick as two others, which this service does not store.
    let other = Service::start("").await;
    let removed = id_in(&report(&other, "2024-02-01T00:00:03.5Z", 1, 3).await);
    for (query, expected) in [("", [2, 1, 0]), ("from=2024-02-01T00:00:00Z&", [1, 2, 3])] {
        let found = listed(&service, &format!("?{query}after={removed}")).await;
        assert_eq!(found, (expected.map(|at| ids[at].clone()).to_vec(), None));
    }
}
