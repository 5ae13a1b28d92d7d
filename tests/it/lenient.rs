//! Checks ids in the forms in which people write them. Strict decoding must refuse such a text and
//! suggest the right id in `did_you_mean`. Lenient decoding must read exactly that id.

use serde_json::{Value, json};

use crate::service::{Service, in_path};
use crate::support::post_request;
use idmint_testing::http1::Answer;

/// Ids of ten formats, each with six ways in which people write it.
const WRITINGS: [(&str, [&str; 6]); 10] = [
    (
        "175928847299117063",
        [
            " 175928847299117063",
            "175928847299117063\t",
            "\"175928847299117063\"",
            "'175928847299117063'",
            "{175928847299117063}",
            "\u{201c}175928847299117063\u{201d}",
        ],
    ),
    (
        "1I9ZC1002",
        [
            "1i9zc1002",
            "1i9ZC1002",
            " 1I9ZC1002",
            "\"1i9zc1002\"",
            "{1I9ZC1002}",
            "`1I9zc1002`",
        ],
    ),
    (
        "zwwqlzz-pjjmxmd-lkpvwq",
        [
            "ZWWQLZZ-PJJMXMD-LKPVWQ",
            "Zwwqlzz-Pjjmxmd-Lkpvwq",
            "zwwqlzzpjjmxmd-lkpvwq",
            "zwwqlzzpjjmxmdlkpvwq",
            "ZWWQLZZPJJMXMDLKPVWQ",
            "'zwwqlzz-pjjmxmd-lkpvwq' ",
        ],
    ),
    (
        "did:siq:iuxvojaaf4c6s6aaaaaaaaaaaaaah",
        [
            "DID:SIQ:IUXVOJAAF4C6S6AAAAAAAAAAAAAAH",
            "did:siq:IUXVOJAAF4C6S6AAAAAAAAAAAAAAH",
            "Did:siq:iuxvojaaf4c6s6aaaaaaaaaaaaaah",
            "\"did:siq:iuxvojaaf4c6s6aaaaaaaaaaaaaah\"",
            "\u{a0}did:siq:iuxvojaaf4c6s6aaaaaaaaaaaaaah",
            "{DID:SIQ:iuxvojaaf4c6s6aaaaaaaaaaaaaah}",
        ],
    ),
    (
        "0RdKJcxqVBiAiQr0",
        [
            " 0RdKJcxqVBiAiQr0",
            "0RdKJcxqVBiAiQr0\n",
            "\"0RdKJcxqVBiAiQr0\"",
            "'0RdKJcxqVBiAiQr0'",
            "{0RdKJcxqVBiAiQr0}",
            "\u{2018}0RdKJcxqVBiAiQr0\u{2019}",
        ],
    ),
    (
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
        [
            "017F22E2-79B0-7CC3-98C4-DC0C0C07398F",
            "{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}",
            "urn:uuid:017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
            "URN:UUID:017F22E2-79B0-7CC3-98C4-DC0C0C07398F",
            "017F22E279B07CC398C4DC0C0C07398F",
            "017f22e279b0-7cc3-98c4-dc0c0c07398f",
        ],
    ),
    (
        "919108f7-52d1-4320-9bac-f847db4148a8",
        [
            "919108F7-52D1-4320-9BAC-F847DB4148A8",
            "{919108F7-52D1-4320-9BAC-F847DB4148A8}",
            "\"919108f7-52d1-4320-9bac-f847db4148a8\"",
            "urn:uuid:919108f752d143209bacf847db4148a8",
            " 919108f7-52d1-4320-9bac-f847db4148a8 ",
            "919108f752d1-4320-9bac-f847db4148a8",
        ],
    ),
    (
        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        [
            "01arz3ndektsv4rrffq69g5fav",
            "01Arz3ndektsv4rrffq69g5fav",
            "O1ARZ3NDEKTSV4RRFFQ69G5FAV",
            "0IARZ3NDEKTSV4RRFFQ69G5FAV",
            "olarz3ndektsv4rrffq69g5fav",
            "\"01ARZ3NDEKTSV4RRFFQ69G5FAV\"",
        ],
    ),
    (
        "9m4e2mr0ui3e8a215n4g",
        [
            "9M4E2MR0UI3E8A215N4G",
            " 9M4E2MR0UI3E8A215N4G",
            " 9m4e2mr0ui3e8a215n4g",
            "'9m4e2mr0ui3e8a215n4g'",
            "{9m4e2mr0ui3e8a215n4g}",
            "\"9M4E2MR0UI3E8A215N4G\"",
        ],
    ),
    (
        "507f1f77bcf86cd799439011",
        [
            "507F1F77BCF86CD799439011",
            "507f1f77bcf86CD799439011",
            "\"507f1f77bcf86cd799439011\"",
            "'507F1F77BCF86CD799439011'",
            " 507f1f77bcf86cd799439011",
            "{507f1f77bcf86cd799439011}",
        ],
    ),
];

async fn decode(service: &Service, text: &str, query: &str) -> Answer {
    service
        .get(&format!("/decode/{}{query}", in_path(text)))
        .await
}

/// Returns `true` if the specification of the format permits the text `written` for the id `meant`.
fn is_specified(written: &str, meant: &str) -> bool {
    let is_of_any_case = [36, 26, 24].contains(&meant.len());
    is_of_any_case && written.eq_ignore_ascii_case(meant)
}

#[tokio::test]
async fn what_people_write_is_no_id_strictly_and_that_id_and_no_other_leniently() {
    let service = Service::start("").await;
    for (meant, writings) in WRITINGS {
        let strict = decode(&service, meant, "").await;
        assert_eq!(strict.status, 200, "{strict:?}");
        let strict = strict.json();
        for written in writings {
            let refused = decode(&service, written, "").await;
            let told = refused.json();
            if is_specified(written, meant) {
                assert_eq!(told["canonical"], meant, "{written:?}: {told}");
            } else {
                assert_eq!(refused.status, 404, "{written:?}: {told}");
                assert_eq!(told["did_you_mean"][0], meant, "{written:?}: {told}");
            }

            let read = decode(&service, written, "?lenient=true").await;
            let told = read.json();
            assert_eq!(
                (read.status, &told["as_given"]),
                (200, &json!(false)),
                "{written:?}: {told}"
            );
            assert_eq!(
                (&told["id"], &told["matches"]),
                (&json!(written), &strict["matches"]),
                "{written:?}"
            );
            let pinned = format!(
                "?lenient=true&format={}",
                strict["matches"][0]["format"].as_str().unwrap()
            );
            assert_eq!(
                decode(&service, written, &pinned).await.json()["matches"][0],
                strict["matches"][0]
            );
        }
        let as_given = decode(&service, meant, "?lenient=true").await.json();
        assert_eq!(
            (&as_given["as_given"], &as_given["matches"]),
            (&json!(true), &strict["matches"])
        );
    }
}

#[tokio::test]
async fn many_are_read_leniently_or_told_what_they_are_near_to() {
    let service = Service::start("").await;
    let texts: Vec<&str> = WRITINGS
        .iter()
        .flat_map(|(_, writings)| writings)
        .copied()
        .collect();
    let meant: Vec<&str> = WRITINGS
        .iter()
        .flat_map(|(meant, writings)| writings.map(|_| *meant))
        .collect();
    let post = async |query: &str, accept: &str, texts: &[&str]| {
        let headers = format!("content-type: application/json\r\naccept: {accept}\r\n");
        service
            .exchange(&post_request(
                &format!("/decode{query}"),
                &headers,
                &json!(texts).to_string(),
            ))
            .await
    };
    let strictly = post("", "application/json", &texts).await.json();
    let leniently = post("?lenient=true", "application/json", &texts)
        .await
        .json();
    let of_meant = post("", "application/json", &meant).await.json();
    assert_eq!(strictly.as_array().map(Vec::len), Some(60));
    for (at, text) in texts.iter().enumerate() {
        if is_specified(text, meant[at]) {
            assert_eq!(strictly[at], leniently[at]);
        } else {
            assert_eq!(
                (&strictly[at]["format"], &strictly[at]["did_you_mean"][0]),
                (&Value::Null, &json!(meant[at]))
            );
        }
        let mut expected = of_meant[at].clone();
        expected["id"] = json!(text);
        expected["as_given"] = json!(false);
        let full = decode(&service, meant[at], "").await.json();
        expected["canonical"] = full["matches"][0]["canonical"].clone();
        assert_eq!(leniently[at], expected);
    }

    let lines = post("", "text/plain", &["1i9zc1002", "1I9ZC1002", "?"])
        .await
        .text();
    let fields = "payment\tbase36\t2026-11-21T03:36:01Z\ttime=91164961\tworker=0\tsequence=2";
    assert_eq!(
        lines,
        format!("1i9zc1002\t-\t-\t-\tdid_you_mean=1I9ZC1002\n1I9ZC1002\t{fields}\n?\t-\t-\t-\n")
    );
    let lines = post(
        "?lenient=true",
        "text/plain",
        &["1i9zc1002", "1I9ZC1002", "?"],
    )
    .await
    .text();
    assert_eq!(
        lines,
        format!(
            "1i9zc1002\t{fields}\tas_given=false\tcanonical=1I9ZC1002\n1I9ZC1002\t{fields}\n?\t-\t-\t-\n"
        )
    );
    let full = post(
        "?lenient=true&detail=full",
        "application/x-ndjson",
        &["{017f22e279b07cc398c4dc0c0c07398f}"],
    )
    .await;
    assert_eq!(full.json()["as_given"], false);
    assert_eq!(
        full.json()["matches"][0]["canonical"],
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
    );
}

#[tokio::test]
async fn a_blank_around_a_text_does_not_change_its_reading() {
    let service = Service::start("").await;
    // The text can be a decimal or a hexadecimal number.
    for query in [
        "?format=snowflake&lenient=true",
        "?format=snowflake&encoding=decimal&lenient=true",
    ] {
        let bare = decode(&service, "123", query).await.json();
        let with_blank = decode(&service, " 123", query).await.json();
        assert_eq!(bare["matches"][0]["value"], "123", "{bare}");
        assert_eq!(with_blank["matches"], bare["matches"], "{with_blank}");
        assert_eq!(
            (&bare["as_given"], &with_blank["as_given"]),
            (&json!(true), &json!(false))
        );
    }
}

#[tokio::test]
async fn leniency_is_a_closed_list() {
    let service = Service::start("").await;
    for (written, near) in [
        ("1I9ZC1002.", "1I9ZC1002"),
        ("1I9-ZC1-002", "1I9ZC1002"),
        ("175_928_847_299_117_063", "175928847299117063"),
        ("zwwqlzz pjjmxmd lkpvwq", "zwwqlzz-pjjmxmd-lkpvwq"),
        ("zwwqlz-zpjjmxmd-lkpvwq", "zwwqlzz-pjjmxmd-lkpvwq"),
        ("01ARZ3ND-EKTSV4RR-FFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    ] {
        let told = decode(&service, written, "?lenient=true").await;
        assert_eq!(told.status, 404, "{written:?}: {told:?}");
        assert_eq!(
            told.json()["did_you_mean"][0],
            near,
            "{written:?}: {told:?}"
        );
    }
    for written in [
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398",
        "hello",
        "HELLO",
        "{}",
        "\"\"",
        " ",
        "2026 ",
    ] {
        assert_eq!(
            decode(&service, written, "?lenient=true").await.status,
            404,
            "{written:?}"
        );
    }
    let refused = decode(&service, "1i9zc1002", "?lenient=yes").await;
    assert_eq!(
        (refused.status, &refused.json()["reason"]),
        (422, &json!("lenient"))
    );
}

/// Checks that no id is suggested for a text with wrong check digits. Several ids differ from the
/// text by one letter, and one of them may belong to somebody else.
#[tokio::test]
async fn of_a_text_whose_check_is_wrong_no_id_is_suggested_and_its_format_is_told() {
    let service = Service::start(
        "[formats.order]
        like = 'payment'
        encodings = [{ kind = 'radix', name = 'code', alphabet = '346789BCDFGHJKMPQRTW', check = 'mod97', prefix = 'o-' }]",
    )
    .await;
    let minted = service.mint("/ids/order?count=100").await;
    let pattern = service.get("/formats/order").await.json()["encodings"][0].clone();
    assert_eq!(
        (&pattern["length"], &pattern["pattern"]),
        (
            &json!(15),
            &json!("^o-[346-9B-DF-HJKMP-RTW]{11}[346-9B-DF-HJKMP-RTW]{2}$")
        )
    );
    for code in &minted {
        let read = decode(&service, code, "?format=order").await.json();
        assert_eq!(
            (&read["matches"][0]["canonical"], code.len()),
            (&json!(code), 15),
            "{read}"
        );
        let mut wrong = code.clone();
        wrong.replace_range(9..10, if &code[9..10] == "3" { "W" } else { "3" });
        for query in ["", "?lenient=true", "?format=order"] {
            let refused = decode(&service, &wrong, query).await.json();
            assert_eq!(
                (&refused["did_you_mean"], &refused["shaped_like"]),
                (&json!([]), &json!(["order"])),
                "{refused}"
            );
            let why = refused["rejected"]
                .as_array()
                .unwrap()
                .iter()
                .find(|rejected| rejected["format"] == "order");
            assert_eq!(why.unwrap()["reason"], "wrong_check", "{refused}");
        }
    }
    let small = minted[0].to_lowercase();
    assert_eq!(
        decode(&service, &small, "").await.json()["did_you_mean"],
        json!([minted[0]]),
        "its check is right"
    );
}

#[tokio::test]
async fn an_id_that_lacks_a_letter_or_has_one_too_many_is_known_by_its_shape() {
    let service = Service::start("").await;
    for (text, format) in [
        ("1I9ZC100", "payment"),
        ("1I9ZC10022", "payment"),
        ("01ARZ3NDEKTSV4RRFFQ69G5FA", "ulid"),
        ("017f22e2-79b0-7cc3-98c4-dc0c0c07398", "uuid7"),
        ("9m4e2mr0ui3e8a215n4", "xid"),
    ] {
        let refused = decode(&service, text, "").await.json();
        let shapes = refused["shaped_like"]
            .as_array()
            .unwrap_or_else(|| panic!("{text}: {refused}"));
        assert!(shapes.contains(&json!(format)), "{text}: {refused}");
        assert!(
            refused["detail"]
                .as_str()
                .unwrap()
                .contains("a wrong, missing or extra letter")
        );
        let alone = decode(&service, text, &format!("?format={format}"))
            .await
            .json();
        assert_eq!(alone["reason"], "wrong_length", "{alone}");
    }
    // This KSUID is from the README of segmentio/ksuid.
    let ksuid = decode(&service, "0ujtsYcgvSTl8PAuAdqWYSMnLOv", "")
        .await
        .json();
    assert_eq!(ksuid["shaped_like"], json!(["ksuid"]), "{ksuid}");
    assert!(
        ksuid["detail"]
            .as_str()
            .unwrap()
            .contains("the text looks like a KSUID, whose 160 bits"),
        "{ksuid}"
    );
    for text in [
        "hello",
        "internationally",
        "2026-11-21",
        "not an id",
        "aWgEPTl1tmebfsQzFP4bxwgy80W",
    ] {
        assert!(
            decode(&service, text, "").await.json()["shaped_like"].is_null(),
            "{text}"
        );
    }
}
