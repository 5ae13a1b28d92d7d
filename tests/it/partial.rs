//! Checks `?partial=true`, with which an invalid report does not prevent the ids of the other
//! reports.

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

fn kvn(tca: &str, primary: &str, secondary: &str) -> String {
    format!(
        "CCSDS_CDM_VERS = 1.0\nTCA = {tca}\nOBJECT = OBJECT1\nOBJECT_DESIGNATOR = {primary}\nOBJECT = OBJECT2\n\
         OBJECT_DESIGNATOR = {secondary}\n"
    )
}

fn xml(tca: &str, primary: &str, secondary: &str) -> String {
    let segment = |object, number| {
        format!(
            "<segment><metadata><OBJECT>{object}</OBJECT>\n<OBJECT_DESIGNATOR>{number}</OBJECT_DESIGNATOR></metadata></segment>"
        )
    };
    format!(
        "<cdm id=\"CCSDS_CDM_VERS\" version=\"1.0\"><header></header><body><relativeMetadataData>\n<TCA>{tca}</TCA>\
         </relativeMetadataData>{}{}</body></cdm>\n",
        segment("OBJECT1", primary),
        segment("OBJECT2", secondary)
    )
}

fn row(tca: &str, primary: &str, secondary: &str) -> String {
    format!("{{\"TCA\":\"{tca}\",\n\"SAT_1_ID\":\"{primary}\",\n\"SAT_2_ID\":\"{secondary}\"}}")
}

/// Returns the position, the reason, the line and the keyword of each refused report.
fn refusals(answer: &Value) -> Vec<(usize, String, u64, String)> {
    let details = answer["details"].as_array().unwrap();
    assert_eq!(details.len(), answer["ids"].as_array().unwrap().len());
    let mut found = Vec::new();
    for (position, detail) in details.iter().enumerate() {
        let Some(problem) = detail.get("problem") else {
            assert_eq!(detail["id"], answer["ids"][position]);
            continue;
        };
        assert_eq!(
            (&problem["type"], &problem["status"]),
            (&json!("/problems/invalid-report"), &json!(422))
        );
        assert!(answer["ids"][position].is_null());
        let text = |member: &str| problem[member].as_str().unwrap_or_default().to_owned();
        found.push((
            position,
            text("reason"),
            problem["line"].as_u64().unwrap_or(0),
            text("keyword"),
        ));
    }
    let refused = u64::try_from(found.len()).unwrap();
    assert_eq!(
        answer["count"].as_u64().unwrap() + refused,
        u64::try_from(details.len()).unwrap()
    );
    found
}

/// A function that writes a message in one form, from a time and two objects.
type Form = fn(&str, &str, &str) -> String;

#[tokio::test]
async fn each_report_is_answered_by_its_id_or_its_problem_in_every_form() {
    let service = Service::start("").await;
    let good = "2024-02-01T00:00:00";
    let forms: [(&str, Form, [&str; 2], [u64; 3]); 3] = [
        ("text/plain", kvn, ["TCA", "OBJECT_DESIGNATOR"], [8, 18, 30]),
        (
            "application/xml",
            xml,
            ["TCA", "OBJECT_DESIGNATOR"],
            [6, 12, 20],
        ),
        ("application/json", row, ["TCA", "SAT_2_ID"], [4, 9, 15]),
    ];
    for (media, form, keywords, lines) in forms {
        let messages = [
            form(good, "25544", "48274"),
            form("2024-13-01T00:00:00", "25544", "48274"),
            form(good, "25544", "UNKNOWN"),
            form(good, "5", "12"),
            form(good, "5", "799500001"),
            form(good, "48274", "25544"),
        ];
        let body = match media {
            "text/plain" => messages.concat(),
            "application/xml" => format!("<ndm>{}</ndm>", messages.concat()),
            _ => format!("[{}]", messages.join(",\n")),
        };
        let answer = send(&service, "?partial=true", media, &body).await;
        assert_eq!(
            (answer.status, answer.header("idmint-count")),
            (200, Some("3")),
            "{media}: {answer:?}"
        );
        let answer = answer.json();
        assert_eq!(answer["ids"][0], FIRST);
        let expected = [
            (
                1,
                "bad_timestamp".to_owned(),
                lines[0],
                keywords[0].to_owned(),
            ),
            (2, "wrong_type".to_owned(), lines[1], keywords[1].to_owned()),
            (
                4,
                "out_of_range".to_owned(),
                lines[2],
                keywords[1].to_owned(),
            ),
        ];
        assert_eq!(refusals(&answer), expected, "{media}: {answer:#}");
        assert_eq!(answer["details"][4]["problem"]["limit"], "4194303");
        // Without `partial`, the first invalid report refuses all reports.
        let strict = send(&service, "", media, &body).await;
        assert_eq!(
            (strict.status, &strict.json()["line"]),
            (422, &json!(lines[0])),
            "{strict:?}"
        );
    }
    let refused = service
        .metric("idmint_conjunction_reports_total{outcome=\"refused\"}")
        .await;
    assert!((refused - 9.0).abs() < 0.5, "{refused}");
}

#[tokio::test]
async fn what_is_no_message_at_all_is_left_out_too() {
    let service = Service::start("").await;
    let good = kvn("2024-02-01T00:00:00", "25544", "48274");
    let body = format!(
        "CCSDS_CDM_VERS = 3.0\nTCA\n{good}CCSDS_CDM_VERS = 1.0\nno sign\n= 3\n{good}CCSDS_CDM_VERS = 1.0\n"
    );
    let answer = send(&service, "?partial=true", "text/plain", &body)
        .await
        .json();
    let expected = [
        (0, "bad_version".to_owned(), 1, "CCSDS_CDM_VERS".to_owned()),
        (2, "report_form".to_owned(), 10, "no".to_owned()),
        (4, "missing_field".to_owned(), 18, "TCA".to_owned()),
    ];
    assert_eq!(refusals(&answer), expected, "{answer:#}");

    let good = xml("2024-02-01T00:00:00", "25544", "48274");
    let wrong = [
        "<cdm id=\"CCSDS_CDM_VERS\" version=\"7\"><a><b>&none;</b></a></cdm>\n",
        "<cdm id=\"CCSDS_CDM_VERS\" version=\"1.0\"><header/><x><cdm/></x></cdm>\n",
        "<cdm id=\"CCSDS_CDM_VERS\" version=\"1.0\"><header></header></cdm>\n",
        "<cdm id=\"CCSDS_CDM_VERS\" version=\"1.0\"><header></header><COMMENT>a<b/></COMMENT></cdm>\n",
    ];
    let body = format!(
        "<ndm>{}</ndm>",
        wrong.map(|wrong| format!("{wrong}{good}")).concat()
    );
    let answer = send(&service, "?partial=true", "text/xml", &body)
        .await
        .json();
    let reasons: Vec<_> = refusals(&answer)
        .into_iter()
        .map(|(position, reason, ..)| (position, reason))
        .collect();
    let expected = [
        (0, "bad_version"),
        (2, "report_form"),
        (4, "missing_field"),
        (6, "report_form"),
    ];
    assert_eq!(
        reasons,
        expected.map(|(position, reason)| (position, reason.to_owned())),
        "{answer:#}"
    );
    for broken in ["<ndm><cdm", "<other/>", "<ndm></ndm>"] {
        assert_eq!(
            send(&service, "?partial=true", "text/xml", broken)
                .await
                .status,
            422,
            "{broken}"
        );
    }

    let good = json!({ "tca": "2024-02-01T00:00:00Z", "primary": 25_544, "secondary": 48_274 });
    let noted = |id: &str| {
        let mut report = good.clone();
        report["CONJUNCTION_EVENT_ID"] = json!(id);
        report
    };
    let other = json!({ "tca": "2024-02-01T00:00:00Z", "primary": 1, "secondary": 2, "CONJUNCTION_EVENT_ID": FIRST });
    let list = json!([7, good, {}, noted("nonsense"), good, other, { "tca": "", "primary": 1, "secondary": 2 }, noted(FIRST)]);
    let answer = send(
        &service,
        "?partial=true",
        "application/json",
        &list.to_string(),
    )
    .await
    .json();
    let reasons: Vec<_> = refusals(&answer)
        .into_iter()
        .map(|(position, reason, ..)| (position, reason))
        .collect();
    let expected = [
        (0, "report_form"),
        (2, "report_form"),
        (3, "another_id"),
        (5, "another_pair"),
        (6, "bad_timestamp"),
    ];
    assert_eq!(
        reasons,
        expected.map(|(position, reason)| (position, reason.to_owned())),
        "{answer:#}"
    );
    for (position, place) in [
        (0, "[0]: "),
        (2, "[2]: missing field `tca` at line 1 column "),
        (3, "[3].CONJUNCTION_EVENT_ID: "),
        (6, "[6].tca"),
    ] {
        let detail = answer["details"][position]["problem"]["detail"]
            .as_str()
            .unwrap();
        assert!(detail.starts_with(place), "{detail}");
    }
    assert_eq!(answer["ids"][7], FIRST);
}

#[tokio::test]
async fn a_wrong_report_is_named_by_its_place_in_the_whole_body() {
    let service = Service::start("").await;
    let good = "{\"tca\":\"2024-02-01T00:00:00Z\",\n \"primary\":1,\n\"secondary\":2}";
    for wrong in [
        good.replace("\"primary\":1", "\"primary\":\"x\""),
        good.replace(
            "\"primary\":1",
            &format!("\"primary\":\"{}\"", "x".repeat(9_999)),
        ),
        good.replace("\"secondary\":2", "\"secondary\":true"),
        good.replace("\"tca\"", "\"time\""),
        "{}".to_owned(),
        "\n7".to_owned(),
    ] {
        for list in [
            format!("[{good},{good},\n{good}, {wrong}]"),
            format!("\n\n[ {good},\n\n{good}\n,{good},\n{wrong},{good}\n]"),
        ] {
            let all = send(&service, "", "application/json", &list).await.json();
            let each = send(&service, "?partial=true", "application/json", &list).await;
            let of_one = &each.json()["details"][3]["problem"]["detail"];
            assert_eq!(all["detail"], *of_one, "{list}");
            assert!(of_one.as_str().unwrap().starts_with("[3]"), "{of_one}");
        }
    }
    // Errors in several reports have their own lines.
    let several = format!("[{{}},\n{good},\n{{}},\n\n 7]");
    let each = send(&service, "?partial=true", "application/json", &several).await;
    let details = &each.json()["details"];
    for (position, place) in [
        (0, "at line 1 column 3"),
        (2, "at line 5 column 2"),
        (3, "at line 7 column 2"),
    ] {
        let detail = details[position]["problem"]["detail"].as_str().unwrap();
        assert!(detail.ends_with(place), "{detail}");
    }
}

#[tokio::test]
async fn all_of_them_wrong_is_an_answer_and_too_many_are_none() {
    let service = Service::start("").await;
    let wrong = json!([{}, {}]).to_string();
    let answer = send(&service, "?partial=true", "application/json", &wrong).await;
    assert_eq!(
        (answer.status, answer.json()["ids"].clone()),
        (200, json!([null, null]))
    );
    assert_eq!(
        send(&service, "?partial=false", "application/json", &wrong)
            .await
            .status,
        422
    );
    let json = format!("[{}]", vec!["0"; 10_001].join(","));
    let csv = format!("TCA,SAT_1_ID,SAT_2_ID\n{}", "1\n".repeat(10_001));
    for (media, many) in [("application/json", json), ("text/csv", csv)] {
        let problem = send(&service, "?partial=true", media, &many).await.json();
        assert_eq!(
            (&problem["reason"], &problem["limit"]),
            (&json!("count"), &json!("10000")),
            "{media}: {problem}"
        );
    }
    for query in ["?partial=yes", "?partial", "?partial=true&return=cdm"] {
        let answer = send(
            &service,
            query,
            "text/plain",
            &kvn("2024-02-01T00:00:00", "1", "2"),
        )
        .await;
        assert_eq!(
            (answer.status, &answer.json()["reason"]),
            (422, &json!("partial")),
            "{query}"
        );
    }
    let headers = "content-type: application/json\r\naccept: text/plain\r\n";
    let text = service
        .exchange(&post_request(
            "/ids/conjunction?partial=true",
            headers,
            &wrong,
        ))
        .await;
    assert_eq!(text.status, 406);
}
