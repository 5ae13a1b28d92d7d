//! Checks how designators in messages are converted to catalogue numbers, with the settings
//! `conjunction.catalogs` and `conjunction.designators`.

use serde_json::json;

use crate::service::{Service, ids_of};
use crate::support::post_request;
use idmint_testing::http1::Answer;

const FIRST: &str = "zwwqlzz-pjjmxmd-lkpvwq";

fn message(secondary: &str, catalog: &str) -> String {
    format!(
        "CCSDS_CDM_VERS = 1.0\nTCA = 2024-02-01T00:00:00\nOBJECT = OBJECT1\nOBJECT_DESIGNATOR = 25544\n\
         CATALOG_NAME = SATCAT\nOBJECT = OBJECT2\nOBJECT_DESIGNATOR = {secondary}\n{catalog}"
    )
}

async fn send(service: &Service, media: &str, body: &str) -> Answer {
    service
        .exchange(&post_request(
            "/ids/conjunction",
            &format!("content-type: {media}\r\n"),
            body,
        ))
        .await
}

#[tokio::test]
async fn a_designator_that_is_no_number_is_named_as_such() {
    let service = Service::start("").await;
    for (designator, reason, named) in [
        (
            "UNKNOWN",
            "wrong_type",
            "\"UNKNOWN\" is not a catalogue number",
        ),
        ("L3972", "wrong_type", "as Alpha-5 it would be 203972"),
        ("A0001", "wrong_type", "as Alpha-5 it would be 100001"),
        ("T0001", "wrong_type", "as Alpha-5 it would be 270001"),
        ("799500001", "out_of_range", "799500001"),
    ] {
        let answer = send(&service, "text/plain", &message(designator, "")).await;
        let problem = answer.json();
        assert_eq!(
            (answer.status, &problem["reason"]),
            (422, &json!(reason)),
            "{problem}"
        );
        assert_eq!(
            (&problem["line"], &problem["keyword"]),
            (&json!(7), &json!("OBJECT_DESIGNATOR")),
            "{problem}"
        );
        assert!(
            problem["detail"].as_str().unwrap().contains(named),
            "{problem}"
        );
    }
}

#[tokio::test]
async fn a_number_of_another_catalogue_is_refused_unless_it_is_said_to_be_equal() {
    let leolabs = message("48274", "CATALOG_NAME = LEOLABS\n");
    let row = json!({ "TCA": "2024-02-01T00:00:00", "SAT1_OBJECT_DESIGNATOR": "25544", "SAT1_CATALOG_NAME": null,
        "SAT2_OBJECT_DESIGNATOR": "48274", "SAT2_CATALOG_NAME": "LEOLABS" })
    .to_string();
    let xml = "<cdm id=\"CCSDS_CDM_VERS\" version=\"1.0\"><header></header><body><relativeMetadataData>\
        <TCA>2024-02-01T00:00:00</TCA></relativeMetadataData><segment><metadata><OBJECT>OBJECT1</OBJECT>\
        <OBJECT_DESIGNATOR>25544</OBJECT_DESIGNATOR></metadata></segment><segment><metadata><OBJECT>OBJECT2</OBJECT>\
        <OBJECT_DESIGNATOR>48274</OBJECT_DESIGNATOR><CATALOG_NAME>LEOLABS</CATALOG_NAME></metadata></segment></body></cdm>";
    let strict = Service::start("").await;
    let lenient = Service::start("conjunction.catalogs = ['SATCAT', 'LeoLabs']").await;
    for (media, body, keyword, line) in [
        ("text/plain", leolabs.as_str(), "CATALOG_NAME", 8),
        ("application/json", &row, "SAT2_CATALOG_NAME", 1),
        ("application/xml", xml, "CATALOG_NAME", 1),
    ] {
        let answer = send(&strict, media, body).await;
        let problem = answer.json();
        assert_eq!(
            (answer.status, &problem["reason"]),
            (422, &json!("another_catalog")),
            "{problem}"
        );
        assert_eq!(
            (&problem["line"], &problem["keyword"]),
            (&json!(line), &json!(keyword)),
            "{problem}"
        );
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.contains("\"LEOLABS\" is not one of the accepted catalogues (SATCAT)")
                && detail.contains("conjunction.catalogs"),
            "{detail}"
        );
        assert_eq!(
            ids_of(&send(&lenient, media, body).await),
            [FIRST],
            "{media}"
        );
    }
    assert_eq!(strict.minted().await, 0.0);
}

#[tokio::test]
async fn a_catalogue_may_have_blanks_in_its_name() {
    let service = Service::start("conjunction.catalogs = ['SATCAT', 'US SATCAT']").await;
    for catalog in ["US SATCAT", "us satcat", "US  SATCAT", "US_SATCAT"] {
        let body = message("48274", &format!("CATALOG_NAME = {catalog}\n"));
        assert_eq!(ids_of(&send(&service, "text/plain", &body).await), [FIRST]);
    }
    let other = message("48274", "CATALOG_NAME = USSATCAT\n");
    assert_eq!(send(&service, "text/plain", &other).await.status, 422);
}

#[tokio::test]
async fn a_number_beside_a_designator_counts_if_the_designator_is_none() {
    let settings = "[conjunction.designators]\n'EXAMPLE/L3972' = 48274\n";
    let service = Service::start(settings).await;
    let row = |designator: &str, catalog: &str, number: serde_json::Value| {
        json!({ "TCA": "2024-02-01 00:00:00", "SAT1_OBJECT_DESIGNATOR": "25544",
            "SAT2_OBJECT_DESIGNATOR": designator, "SAT2_CATALOG_NAME": catalog, "SAT2_COMMENT_NORAD_ID": number })
        .to_string()
    };
    for (designator, catalog, number) in [
        ("L1", "EXAMPLE", json!("48274")),
        ("L1", "", json!(48_274)),
        ("77", "EXAMPLE", json!("48274")),
        ("48274", "SATCAT", json!("77")),
        ("L3972", "EXAMPLE", json!("77")),
        ("48274", "SATCAT", json!({})),
    ] {
        let body = row(designator, catalog, number);
        assert_eq!(
            ids_of(&send(&service, "application/json", &body).await),
            [FIRST],
            "{body}"
        );
    }
    for number in [json!(null), json!("L1"), json!(0), json!("")] {
        let answer = send(&service, "application/json", &row("L1", "", number)).await;
        assert_eq!(answer.json()["keyword"], "SAT2_OBJECT_DESIGNATOR");
    }
}

#[tokio::test]
async fn a_designator_is_the_number_that_the_configuration_gives_it() {
    let settings = "[conjunction.designators]\nL3972 = 48274\n'LEOLABS/48999' = 48274\n799500001 = 48274\nUNKNOWN = 48275\n";
    let service = Service::start(settings).await;
    for (designator, catalog) in [
        ("L3972", ""),
        ("L3972", "CATALOG_NAME = LEOLABS\n"),
        ("48999", "CATALOG_NAME = LEOLABS\n"),
        ("799500001", "CATALOG_NAME = SATCAT\n"),
        ("48274", "CATALOG_NAME = SATCAT\n"),
    ] {
        assert_eq!(
            ids_of(&send(&service, "text/plain", &message(designator, catalog)).await),
            [FIRST],
            "{designator}"
        );
    }
    let other = ids_of(&send(&service, "text/plain", &message("UNKNOWN", "")).await);
    assert_ne!(other, [FIRST]);
    for (designator, catalog) in [("48999", "CATALOG_NAME = OTHER\n"), ("L3973", "")] {
        assert_eq!(
            send(&service, "text/plain", &message(designator, catalog))
                .await
                .status,
            422,
            "{designator}"
        );
    }
}
