//! Checks reports that are sent again with the id that they got earlier.

use serde_json::{Value, json};

use crate::service::Service;
use crate::support::post_request;
use idmint_testing::http1::Answer;

const FIRST: &str = "zwwqlzz-pjjmxmd-lkpvwq";

async fn send(service: &Service, query: &str, media: &str, body: &str) -> Answer {
    let headers = format!("content-type: {media}\r\n");
    service
        .exchange(&post_request(
            &format!("/ids/conjunction{query}"),
            &headers,
            body,
        ))
        .await
}

/// Sends one report of the usual two objects. Returns the detail of the response for this report.
async fn detail(service: &Service, query: &str, tca: &str, noted: Option<&str>) -> Value {
    let mut report = json!({ "tca": tca, "primary": 25_544, "secondary": 48_274 });
    if let Some(noted) = noted {
        report["CONJUNCTION_EVENT_ID"] = json!(noted);
    }
    let answer = send(service, query, "application/json", &report.to_string()).await;
    assert_eq!(answer.status, 200, "{report}: {answer:?}");
    answer.json()["details"][0].clone()
}

fn message(tca: &str, secondary: u64, id: &str) -> String {
    format!(
        "CCSDS_CDM_VERS = 1.0\nCOMMENT CONJUNCTION_EVENT_ID = {id}\nTCA = {tca}\nOBJECT = OBJECT1\n\
         OBJECT_DESIGNATOR = 25544\nOBJECT = OBJECT2\nOBJECT_DESIGNATOR = {secondary}\n"
    )
}

#[tokio::test]
async fn a_report_that_comes_back_with_its_id_is_matched_by_it() {
    let service = Service::start("").await;
    let first = detail(&service, "", "2024-02-01T00:00:00.9Z", None).await;
    assert_eq!(
        (&first["id"], first.get("noted_differs")),
        (&json!(FIRST), None)
    );

    let within = detail(&service, "", "2024-02-01T00:00:01.9Z", Some(FIRST)).await;
    assert_eq!(
        (&within["id"], &within["tca_delta_us"]),
        (&json!(FIRST), &json!(1_000_000))
    );
    assert_eq!(
        (&within["created"], within.get("noted_differs")),
        (&json!(false), None)
    );

    let kept = detail(
        &service,
        "?noted=keep",
        "2024-02-01T01:00:00.9Z",
        Some(FIRST),
    )
    .await;
    assert_eq!(
        (&kept["id"], &kept["tca_delta_us"]),
        (&json!(FIRST), &json!(3_600_000_000_u64))
    );
    assert_eq!(
        (&kept["created"], kept.get("noted_differs")),
        (&json!(false), None)
    );

    let beyond = detail(&service, "", "2024-02-01T01:00:00.9Z", Some(FIRST)).await;
    assert_ne!(beyond["id"], FIRST);
    assert_eq!(
        (&beyond["created"], &beyond["noted_differs"]),
        (&json!(true), &json!(true))
    );
    let again = detail(
        &service,
        "?noted=keep",
        "2024-02-01T01:00:00.9Z",
        Some(FIRST),
    )
    .await;
    assert_eq!(
        again, kept,
        "it keeps its id beside another conjunction too"
    );
}

#[tokio::test]
async fn an_id_of_another_node_is_adopted_or_told_to_differ() {
    let service = Service::start("").await;
    let adopted = detail(&service, "", "2024-02-01T00:00:01.5Z", Some(FIRST)).await;
    assert_eq!(
        (&adopted["id"], &adopted["created"]),
        (&json!(FIRST), &json!(true))
    );
    assert_eq!(
        adopted["anchor_tca"], "2024-02-01T00:00:00.999999Z",
        "clamped into the second of the id"
    );
    assert_eq!(
        (&adopted["tca_delta_us"], adopted.get("noted_differs")),
        (&json!(500_001), None)
    );
    let later = detail(&service, "", "2024-02-01T00:00:01.9Z", None).await;
    assert_eq!(
        (&later["id"], &later["created"]),
        (&json!(FIRST), &json!(false)),
        "it is an anchor from then on"
    );

    // The attached id is from the previous second, and this service does not know it. The report
    // must join the anchor (first report) within one second instead.
    let other = Service::start("").await;
    let before = detail(&other, "", "2024-01-31T23:59:59.5Z", None).await["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let differs = detail(&service, "", "2024-02-01T00:00:00.2Z", Some(&before)).await;
    assert_eq!(
        (&differs["id"], &differs["noted_differs"]),
        (&json!(FIRST), &json!(true))
    );
    assert_eq!(differs["created"], false);
}

#[tokio::test]
async fn a_report_gets_its_answer_again_after_another_report_has_brought_the_id_that_it_names() {
    for (query, keeps) in [("", false), ("?noted=keep", true)] {
        // The first service gives both reports the same id. Before the second service gets these
        // reports, it gets another report of the same objects, whose time is one second later.
        let (first, second) = (Service::start("").await, Service::start("").await);
        let named = detail(&first, "", "2024-02-01T00:00:10Z", None).await["id"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(
            detail(&first, "", "2024-02-01T00:00:10.9Z", None).await["id"],
            named
        );
        let near = detail(&second, "", "2024-02-01T00:00:11.5Z", None).await["id"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_ne!(near, named);

        let told = detail(&second, query, "2024-02-01T00:00:10.9Z", Some(&named)).await;
        assert_eq!(told["id"], if keeps { &*named } else { &*near }, "{told}");
        assert_eq!(
            told.get("noted_differs"),
            (!keeps).then_some(&json!(true)),
            "{told}"
        );
        let brought = detail(&second, query, "2024-02-01T00:00:10Z", Some(&named)).await;
        assert_eq!(
            (&brought["id"], brought.get("noted_differs")),
            (&json!(named), None),
            "it comes into the service now"
        );
        let again = detail(&second, query, "2024-02-01T00:00:10.9Z", Some(&named)).await;
        assert_eq!(
            (&again["id"], again.get("noted_differs")),
            (&told["id"], told.get("noted_differs"))
        );
        let without = detail(&second, "", "2024-02-01T00:00:10.9Z", None).await;
        assert_eq!(
            (&without["id"], &without["created"]),
            (&json!(near), &json!(false)),
            "the oldest within a second"
        );
    }
}

#[tokio::test]
async fn an_id_of_other_objects_and_what_is_none_are_refused() {
    let service = Service::start("").await;
    let decimal = "30025386125795551919250";
    for (noted, secondary, reason) in [
        (FIRST, 48_275, "another_pair"),
        (decimal, 48_275, "another_pair"),
        ("zwwqlzz-pjjmxmd-lkpvwz", 48_274, "another_id"),
        ("", 48_274, "another_id"),
    ] {
        let report = json!({ "tca": "2024-02-01T00:00:00Z", "primary": 25_544, "secondary": secondary,
            "CONJUNCTION_EVENT_ID": noted });
        for (query, body, place) in [
            ("", report.to_string(), "CONJUNCTION_EVENT_ID: "),
            (
                "?noted=keep",
                format!("[{report}]"),
                "[0].CONJUNCTION_EVENT_ID: ",
            ),
        ] {
            let answer = send(&service, query, "application/json", &body).await;
            let problem = answer.json();
            assert_eq!(
                (answer.status, &problem["reason"]),
                (422, &json!(reason)),
                "{problem}"
            );
            let detail = problem["detail"].as_str().unwrap();
            assert!(
                detail.starts_with(&format!("{place}{noted:?} is ")),
                "{detail}"
            );
        }
    }
    let answer = send(
        &service,
        "",
        "text/plain",
        &message("2024-02-01T00:00:00", 48_275, FIRST),
    )
    .await;
    let problem = answer.json();
    assert_eq!(
        (answer.status, &problem["reason"], &problem["line"]),
        (422, &json!("another_pair"), &json!(2))
    );
    assert_eq!(problem["keyword"], "CONJUNCTION_EVENT_ID");
    assert_eq!(service.minted().await, 0.0);

    let answer = send(
        &service,
        "?noted=drop",
        "text/plain",
        &message("2024-02-01T00:00:00", 48_274, FIRST),
    )
    .await;
    assert_eq!(
        (answer.status, &answer.json()["limit"]),
        (422, &json!("keep"))
    );
    let known = detail(&service, "", "2024-02-01T00:00:00Z", Some(decimal)).await;
    assert_eq!(
        (&known["id"], known.get("noted_differs")),
        (&json!(FIRST), None),
        "in any encoding"
    );
}

#[tokio::test]
async fn a_message_is_given_back_only_with_its_own_id_in_it() {
    let service = Service::start("").await;
    let far = message("2024-02-01T02:00:00", 48_274, FIRST);
    let kept = send(&service, "?return=cdm&noted=keep", "text/plain", &far).await;
    assert_eq!((kept.status, kept.text()), (200, far.clone()));
    let answer = send(&service, "?return=cdm", "text/plain", &far).await;
    let problem = answer.json();
    assert_eq!(
        (answer.status, &problem["reason"], &problem["line"]),
        (422, &json!("another_id"), &json!(2)),
        "{problem}"
    );
    let created = service
        .metric("idmint_conjunction_reports_total{outcome=\"created\"}")
        .await;
    assert_eq!(created, 1.0, "the refused message created nothing");
    let ids = send(&service, "", "text/plain", &far).await.json();
    assert_eq!(ids["details"][0]["noted_differs"], true);
}

/// Returns a file in the form that the space agency's analysts send. It has more members than the
/// service reads.
fn analysis(event_id: &str, tca: &str, secondary: &Value) -> Value {
    json!({ "event_id": event_id, "cdm_id": "00000000-0000-4000-8000-000000000001", "tca": tca, "collision_probability": 1e-5,
        "RISK": "low", "primary_object": { "norad_id": 25_544, "common_name": "ISS (ZARYA)" },
        "secondary_object": { "norad_id": secondary, "licensing_country": null }, "analysis": [{ "tca": 1 }] })
}

#[tokio::test]
async fn what_analysts_post_back_is_matched_by_its_event_id() {
    let service = Service::start("").await;
    let first = detail(&service, "", "2024-02-01T00:00:00.9Z", None).await;
    let number = json!(48_274);
    let post = async |query: &str, body: &Value| {
        send(&service, query, "application/json", &body.to_string()).await
    };

    let moved = analysis(FIRST, "2024-02-01T00:00:45.8", &number);
    let kept = post("?noted=keep", &moved).await.json()["details"][0].clone();
    assert_eq!(
        (&kept["id"], &kept["created"]),
        (&first["id"], &json!(false)),
        "{kept}"
    );
    assert_eq!(kept["tca_delta_us"], 44_900_000);
    let many = post(
        "?noted=keep",
        &json!([
            moved,
            analysis(FIRST, "2024-032T00:00:01.5", &json!("48274"))
        ]),
    )
    .await
    .json();
    assert_eq!(
        (&many["count"], &many["ids"]),
        (&json!(2), &json!([FIRST, FIRST])),
        "{many}"
    );
    let flat = json!({ "event_id": FIRST, "tca": "2024-02-01T00:00:01Z", "primary_object.norad_id": 25_544,
        "secondary_object.norad_id": 48_274, "miss_distance": 1 });
    assert_eq!(
        post("", &flat).await.json()["ids"],
        json!([FIRST]),
        "the members as a table names them"
    );
    let fresh = json!({ "event_id": null, "tca": "2025-02-01T00:00:01Z", "primary_object": { "norad_id": 25_544 },
        "secondary_object": { "norad_id": 48_274 } });
    assert_eq!(post("", &fresh).await.json()["details"][0]["created"], true);

    for (query, body, reason) in [
        (
            "",
            analysis(FIRST, "2024-02-01T00:00:00Z", &json!(25_544)),
            "same_object",
        ),
        (
            "",
            analysis(FIRST, "2024-02-01T00:00:00Z", &json!(0)),
            "out_of_range",
        ),
        (
            "",
            analysis(FIRST, "2024-02-01T00:00:00Z", &json!("L3972")),
            "report_form",
        ),
        (
            "",
            analysis(FIRST, "2024-02-01T00:00:00Z", &json!(1.5)),
            "report_form",
        ),
        ("", analysis(FIRST, "today", &number), "bad_timestamp"),
    ] {
        let answer = post(query, &body).await;
        let problem = answer.json();
        assert_eq!(
            (answer.status, &problem["reason"]),
            (422, &json!(reason)),
            "{body}: {problem}"
        );
    }
    let zero = post(
        "",
        &json!([analysis(FIRST, "2024-02-01T00:00:00Z", &json!(0))]),
    )
    .await;
    let detail = zero.json()["detail"].as_str().unwrap().to_owned();
    assert!(
        detail.starts_with("[0].secondary_object.norad_id: secondary is 0"),
        "{detail}"
    );
    // Unknown members are allowed only in the form of the analysts.
    let plain = json!({ "tca": "2024-02-01T00:00:00Z", "primary": 25_544, "secondary": 48_274, "cdm_id": "1" });
    assert_eq!(post("", &plain).await.status, 422);
    let partial = post("?partial=true", &json!([fresh, { "event_id": FIRST }]))
        .await
        .json();
    assert_eq!(partial["count"], 1, "{partial}");
    assert_eq!(
        partial["details"][1]["problem"]["reason"], "report_form",
        "{partial}"
    );
    let created = service
        .metric("idmint_conjunction_reports_total{outcome=\"created\"}")
        .await;
    assert_eq!(created, 2.0);
}

#[tokio::test]
async fn an_analysis_joins_the_conjunction_that_it_names_up_to_the_configured_reach() {
    let number = json!(48_274);
    for (settings, reach_s) in [
        ("", 600),
        ("conjunction.analysis_reach = '90s'", 90),
        ("conjunction.analysis_reach = '0s'", 0),
    ] {
        let service = Service::start(settings).await;
        detail(&service, "", "2024-02-01T00:00:00.9Z", None).await;
        let post = async |tca: &str| {
            let body = analysis(FIRST, tca, &number).to_string();
            send(&service, "", "application/json", &body).await.json()["details"][0].clone()
        };
        for (tca, distance_s) in [
            ("2024-02-01T00:00:45.9", 45_i32),
            ("2024-02-01T00:01:30.9", 90),
            ("2024-02-01T00:10:00.9", 600),
            ("2024-01-31T23:50:00.9", -600),
            ("2024-02-01T00:10:03.0", 603),
        ] {
            let joined = post(tca).await;
            let is_named = distance_s.abs() <= reach_s;
            assert_eq!(joined["created"], !is_named, "{settings} {tca}: {joined}");
            assert_eq!(
                joined["id"] == FIRST,
                is_named,
                "{settings} {tca}: {joined}"
            );
        }
        // Only analyses are matched by the id that they contain. Reports of other forms are matched
        // by their times.
        let other = detail(&service, "", "2024-02-01T00:05:00.9Z", Some(FIRST)).await;
        assert_eq!(
            (&other["created"], &other["noted_differs"]),
            (&json!(true), &json!(true))
        );
    }
}

#[tokio::test]
async fn an_analysis_says_which_other_conjunction_is_nearer() {
    let service = Service::start("").await;
    let number = json!(48_274);
    let post = async |tca: &str| {
        let body = analysis(FIRST, tca, &number).to_string();
        send(&service, "", "application/json", &body).await.json()["details"][0].clone()
    };
    detail(&service, "", "2024-02-01T00:00:00.9Z", None).await;
    let alone = post("2024-02-01T00:02:00Z").await;
    assert_eq!(
        (&alone["id"], alone.get("nearer_id")),
        (&json!(FIRST), None)
    );
    let at_the_same_time = post("2024-02-01T00:00:00.9Z").await;
    assert_eq!(
        (&at_the_same_time["id"], at_the_same_time.get("nearer_id")),
        (&json!(FIRST), None)
    );
    let near = detail(&service, "", "2024-02-01T00:03:00Z", None).await["id"].clone();
    detail(&service, "", "2024-02-01T00:04:30Z", None).await;
    let named = post("2024-02-01T00:02:00Z").await;
    assert_eq!((&named["id"], &named["nearer_id"]), (&json!(FIRST), &near));
    let nearest = post("2024-02-01T00:01:00Z").await;
    assert_eq!(
        (&nearest["id"], nearest.get("nearer_id")),
        (&json!(FIRST), None)
    );

    // A conjunction within a second takes precedence over the conjunction in `event_id`.
    let within = post("2024-02-01T00:03:00.5Z").await;
    assert_eq!(
        (&within["id"], &within["noted_differs"]),
        (&near, &json!(true))
    );
    assert_eq!(within.get("nearer_id"), None);
    let kept = analysis(FIRST, "2024-02-01T00:03:00.5", &number).to_string();
    let kept = send(&service, "?noted=keep", "application/json", &kept).await;
    assert_eq!(kept.json()["details"][0]["nearer_id"], near);
}

#[tokio::test]
async fn a_foreign_event_id_is_kept_as_external_and_refuses_no_report() {
    let service = Service::start("").await;
    let (number, other) = (json!(48_274), json!(48_275));
    let tca = "2024-02-01T00:00:00.9";
    let mut bodies = Vec::new();
    for id in ["jbxleqg-ndrxvgb-gorpwg", "NOT-OURS", ""] {
        bodies.push(analysis(id, tca, &number));
    }
    let mut numbered = analysis("", tca, &number);
    numbered["event_id"] = json!(4_711);
    bodies.push(numbered);
    // As floating-point numbers, the first two would be equal. The third one is the id of this pair in
    // decimal, so it is not an id of another originator.
    let written = json!(bodies).to_string();
    let mut written = written.trim_end_matches(']').to_owned();
    for id in [
        "90000000000000000000001",
        "90000000000000000000002",
        "30025386125795551919250",
        "1.50",
        "true",
        "[7]",
        "{}",
    ] {
        let body = analysis("ID", tca, &number).to_string();
        written += &format!(",{}", body.replace("\"ID\"", id));
    }
    let many = send(&service, "", "application/json", &format!("{written}]")).await;
    assert_eq!(many.json()["ids"], json!(vec![FIRST; 11]), "{many:?}");
    // An id of this service for other objects counts as an id of another originator.
    let swapped = analysis(FIRST, tca, &other).to_string();
    for query in ["", "?noted=keep", "?partial=true"] {
        let swapped = send(&service, query, "application/json", &swapped).await;
        assert_eq!(swapped.status, 200, "{swapped:?}");
        assert_ne!(swapped.json()["ids"][0], FIRST);
    }
    let shown = service.get(&format!("/conjunctions/{FIRST}")).await.json();
    assert_eq!(
        shown["external"],
        json!([
            "jbxleqg-ndrxvgb-gorpwg",
            "NOT-OURS",
            "4711",
            "90000000000000000000001",
            "90000000000000000000002",
            "1.50"
        ])
    );
    let found = service
        .get(&format!("/conjunctions?external={FIRST}"))
        .await
        .json();
    assert_eq!(found["conjunctions"][0]["secondary"], 48_275);

    // A service in mode `pure` stores nothing, so it refuses an id of another originator, which it
    // could not keep.
    let pure = Service::start("conjunction.mode = 'pure'").await;
    for (body, reason) in [
        (&swapped, "another_pair"),
        (&bodies[1].to_string(), "another_id"),
    ] {
        let answer = send(&pure, "", "application/json", body).await;
        let problem = answer.json();
        assert_eq!(
            (answer.status, &problem["reason"]),
            (422, &json!(reason)),
            "{problem}"
        );
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.starts_with("event_id: "), "{detail}");
    }
}
