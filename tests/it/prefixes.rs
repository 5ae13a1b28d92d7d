//! Checks ids with a type or a prefix: minting them, reading them, and refusing invalid ones.

use serde_json::{Value, json};

use crate::service::{Service, ids_of, in_path};
use crate::support::post_request;

const TYPES: &str = "typeid.types = ['user', 'line_item']";
const PREFIXES: &str =
    "[formats.payment]\nprefixes = ['pi_', 'ch_']\n[formats.snowflake]\nprefixes = ['sn_']";

/// Mints ids with this media type, and returns the body of the response.
async fn mint_as(service: &Service, path: &str, media: &str) -> String {
    let answer = service
        .exchange(&post_request(path, &format!("accept: {media}\r\n"), ""))
        .await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    let len = answer.body.len().to_string();
    assert_eq!(
        answer.header("content-length"),
        Some(len.as_str()),
        "{path}"
    );
    answer.text()
}

/// Sends a mint request that must be refused. Returns the reason, the limit and the detail of the
/// refusal.
async fn refusal(service: &Service, path: &str) -> [String; 3] {
    let answer = service.post(path).await;
    assert_eq!(answer.status, 422, "{path}: {answer:?}");
    let problem = answer.json();
    assert_eq!(problem["type"], "/problems/invalid-parameter");
    let example = problem["example"].as_str().unwrap();
    let works = service.post(example.strip_prefix("POST ").unwrap()).await;
    assert_eq!(works.status, 200, "{example}");
    ["reason", "limit", "detail"]
        .map(|member| problem[member].as_str().unwrap_or_default().to_owned())
}

/// Decodes an id, and returns the first match.
async fn first(service: &Service, id: &str) -> Value {
    let answer = service.get(&format!("/decode/{}", in_path(id))).await;
    assert_eq!(answer.status, 200, "{id}: {answer:?}");
    answer.json()["matches"][0].clone()
}

#[tokio::test]
async fn a_typeid_has_the_type_that_was_asked_for_in_every_form() {
    let service = Service::start("").await;
    let is_typed = |id: &str, of_type: &str| {
        let suffix = id.strip_prefix(of_type).unwrap_or_else(|| panic!("{id}"));
        suffix.len() == 26
            && suffix
                .bytes()
                .all(|letter| b"0123456789abcdefghjkmnpqrstvwxyz".contains(&letter))
    };
    let json: Value = serde_json::from_str(
        &mint_as(
            &service,
            "/ids/typeid?type=user&count=2",
            "application/json",
        )
        .await,
    )
    .unwrap();
    assert_eq!(
        (&json["format"], &json["count"]),
        (&"typeid".into(), &2.into())
    );
    assert!(
        json["ids"]
            .as_array()
            .unwrap()
            .iter()
            .all(|id| is_typed(id.as_str().unwrap(), "user_")),
        "{json}"
    );
    let lines = mint_as(
        &service,
        "/ids/typeid?type=line_item&count=20000",
        "text/plain",
    )
    .await;
    let ids: Vec<_> = lines.lines().collect();
    assert_eq!(ids.len(), 20_000);
    assert!(
        ids.iter().all(|id| is_typed(id, "line_item_")) && ids.is_sorted_by(|a, b| a < b),
        "in pieces, ascending"
    );
    let lines = mint_as(
        &service,
        "/ids/typeid?type=a&count=3",
        "application/x-ndjson",
    )
    .await;
    assert!(
        lines
            .lines()
            .all(|line| is_typed(&serde_json::from_str::<String>(line).unwrap(), "a_")),
        "{lines}"
    );
    for untyped in ["/ids/typeid", "/ids/typeid?type="] {
        let ids = service.mint(untyped).await;
        assert!(is_typed(&ids[0], ""), "{untyped}: {ids:?}");
    }
    // In other encodings, the id consists only of the UUID without the type.
    let uuid = service
        .mint("/ids/typeid?type=user&encoding=uuid")
        .await
        .remove(0);
    assert_eq!(first(&service, &uuid).await["format"], "uuid7", "{uuid}");
    assert_eq!(
        service
            .mint("/ids/typeid?type=user&encoding=hex_padded")
            .await[0]
            .len(),
        32
    );
    let bytes = service
        .exchange(&post_request(
            "/ids/typeid?type=user",
            "accept: application/octet-stream\r\n",
            "",
        ))
        .await;
    assert_eq!(
        (bytes.status, bytes.body.len(), bytes.header("idmint-width")),
        (200, 16, Some("16"))
    );
}

#[tokio::test]
async fn what_is_no_type_or_not_minted_is_refused_with_the_list() {
    let any = Service::start("").await;
    for wrong in ["User", "user_", "_user", "user2", &"a".repeat(64)] {
        let [reason, limit, detail] = refusal(&any, &format!("/ids/typeid?type={wrong}")).await;
        assert_eq!(
            (reason.as_str(), limit.as_str()),
            (
                "type",
                "0 to 63 characters from a-z and _ that begin and end with a letter"
            )
        );
        assert!(detail.contains(wrong), "{detail}");
    }
    let some = Service::start(TYPES).await;
    for (path, said) in [
        ("/ids/typeid?type=order", "`order` is not one of"),
        ("/ids/typeid", "`type` is missing"),
        ("/ids/typeid?encoding=uuid", "`type` is missing"),
    ] {
        let [reason, limit, detail] = refusal(&some, path).await;
        assert_eq!(
            (reason.as_str(), limit.as_str()),
            ("type", "user, line_item"),
            "{path}"
        );
        assert!(detail.contains(said), "{detail}");
    }
    assert!(some.mint("/ids/typeid?type=line_item").await[0].starts_with("line_item_"));
    // The setting restricts minting, but not reading.
    let read = first(&some, "order_01h455vb4pex5vsknk084sn02q").await;
    assert_eq!(
        (&read["format"], &read["type"]),
        (&"typeid".into(), &"order".into())
    );
    let format = some.get("/formats/typeid").await.json();
    assert_eq!(format["types_minted"], json!(["user", "line_item"]));
    assert!(
        format["example"]["encodings"]["typeid"]
            .as_str()
            .unwrap()
            .starts_with("user_"),
        "{format}"
    );
    // The empty type can be minted if the setting lists it.
    let and_none = Service::start("typeid.types = ['', 'user']").await;
    assert_eq!(and_none.mint("/ids/typeid").await[0].len(), 26);
}

#[tokio::test]
async fn a_reading_of_a_typeid_tells_its_type_and_keeps_it_in_the_canonical_text() {
    let service = Service::start("").await;
    const ID: &str = "user_01h455vb4pex5vsknk084sn02q";
    let answer = service.get(&format!("/decode/{ID}")).await.json();
    let read = &answer["matches"][0];
    assert_eq!(
        (&answer["ambiguous"], &read["format"], &read["type"]),
        (&false.into(), &"typeid".into(), &"user".into())
    );
    assert_eq!(
        (&read["canonical"], &read["encodings"]["typeid"]),
        (&ID.into(), &ID.into())
    );
    assert_eq!(
        read["encodings"]["uuid"],
        "01890a5d-ac96-774b-bcce-b302099a8057"
    );
    assert_eq!(
        (&read["time"], &read["evidence"]),
        (&"2023-06-30T03:34:18.518Z".into(), &"strong".into())
    );
    assert_eq!(read.get("prefix"), None);
    let bare = first(&service, "01h455vb4pex5vsknk084sn02q").await;
    assert_eq!(
        (&bare["format"], &bare["type"], &bare["canonical"]),
        (
            &"typeid".into(),
            &"".into(),
            &"01h455vb4pex5vsknk084sn02q".into()
        )
    );
    assert_eq!(
        first(&service, "01H455VB4PEX5VSKNK084SN02Q").await["format"],
        "ulid"
    );
    let uuid = service
        .get("/decode/01890a5d-ac96-774b-bcce-b302099a8057")
        .await
        .json();
    assert_eq!(
        (&uuid["matches"][0]["format"], &uuid["ambiguous"]),
        (&"uuid7".into(), &false.into())
    );
    let as_uuid = service
        .get("/decode/01890a5d-ac96-774b-bcce-b302099a8057?format=typeid")
        .await
        .json();
    assert_eq!(as_uuid["matches"][0].get("type"), None, "a UUID has none");

    let lines = service
        .exchange(&post_request(
            "/decode",
            "content-type: text/plain\r\naccept: text/plain\r\n",
            ID,
        ))
        .await;
    let line = lines.text();
    assert!(
        line.starts_with(&format!(
            "{ID}\ttypeid\ttypeid\t2023-06-30T03:34:18.518Z\ttime="
        )),
        "{line}"
    );
    assert!(line.trim_end().ends_with("\ttype=user"), "{line}");
    let body = json!([ID]).to_string();
    let brief = service
        .exchange(&post_request(
            "/decode",
            "content-type: application/json\r\n",
            &body,
        ))
        .await
        .json();
    let brief = brief.as_array().unwrap_or_else(|| panic!("{brief}"));
    assert_eq!(
        (&brief[0]["type"], &brief[0]["format"]),
        (&"user".into(), &"typeid".into())
    );
    let ruler = service
        .exchange(&format!(
            "GET /decode/{ID} HTTP/1.1\r\nhost: localhost\r\naccept: text/plain\r\n\r\n"
        ))
        .await
        .text();
    assert!(
        ruler.contains("typeid (typeid)  type user  2023-06-30T03:34:18.518Z"),
        "{ruler}"
    );
    assert!(ruler.contains(&format!("typeid      {ID}")), "{ruler}");
}

#[tokio::test]
async fn a_typeid_in_capitals_is_meant_and_read_leniently() {
    let service = Service::start(PREFIXES).await;
    for (given, meant, beginning) in [
        (
            "USER_01H455VB4PEX5VSKNK084SN02Q",
            "user_01h455vb4pex5vsknk084sn02q",
            ["type", "user"],
        ),
        (
            "{user_oih455vb4pex5vsknk084sn02q}",
            "user_01h455vb4pex5vsknk084sn02q",
            ["type", "user"],
        ),
        ("PI_1i9zc1002", "pi_1I9ZC1002", ["prefix", "pi_"]),
    ] {
        let strict = service.get(&format!("/decode/{}", in_path(given))).await;
        assert_eq!(
            (strict.status, &strict.json()["did_you_mean"]),
            (404, &json!([meant])),
            "{given}"
        );
        let lenient = service
            .get(&format!("/decode/{}?lenient=true", in_path(given)))
            .await
            .json();
        let read = &lenient["matches"][0];
        assert_eq!(
            (&lenient["as_given"], &read["canonical"]),
            (&false.into(), &meant.into()),
            "{lenient}"
        );
        assert_eq!(read[beginning[0]], beginning[1], "{lenient}");
        let body = json!([given]).to_string();
        let head = "content-type: application/json\r\n";
        let brief = service
            .exchange(&post_request("/decode?lenient=true", head, &body))
            .await
            .json();
        assert_eq!(
            (&brief[0]["canonical"], &brief[0][beginning[0]]),
            (&meant.into(), &beginning[1].into()),
            "{brief}"
        );
    }
}

#[tokio::test]
async fn a_prefix_stands_before_the_canonical_text_alone() {
    let service = Service::start(PREFIXES).await;
    for (path, prefix, len) in [
        ("payment", "pi_", 9),
        ("payment", "ch_", 9),
        ("snowflake", "sn_", 19),
    ] {
        let ids = service
            .mint(&format!("/ids/{path}?prefix={prefix}&count=3"))
            .await;
        assert!(
            ids.iter()
                .all(|id| id.starts_with(prefix) && id.len() == len + prefix.len()),
            "{ids:?}"
        );
        for id in ids {
            let read = first(&service, &id).await;
            assert_eq!(
                (&read["format"], &read["prefix"], &read["canonical"]),
                (&path.into(), &prefix.into(), &id.as_str().into())
            );
            assert_eq!(read.get("type"), None);
            let texts = read["encodings"].as_object().unwrap().values();
            let behind = texts
                .filter(|text| text.as_str().unwrap().starts_with(prefix))
                .count();
            assert_eq!(
                (
                    behind,
                    read["value"].as_str().map(|value| value.contains('_'))
                ),
                (1, Some(false)),
                "{read}"
            );
        }
    }
    let bare = service.mint("/ids/payment").await.remove(0);
    assert_eq!(first(&service, &bare).await.get("prefix"), None);
    let big = mint_as(
        &service,
        "/ids/snowflake?prefix=sn_&count=30000",
        "application/x-ndjson",
    )
    .await;
    assert!(
        big.lines().count() == 30_000 && big.lines().all(|line| line.starts_with("\"sn_")),
        "in pieces"
    );
    for (path, limit, said) in [
        (
            "/ids/payment?prefix=xx_",
            "pi_, ch_",
            "`xx_` is not one of pi_, ch_",
        ),
        ("/ids/payment?prefix=", "pi_, ch_", "is not one of pi_, ch_"),
        (
            "/ids/payment?prefix=pi_&encoding=decimal",
            "pi_, ch_ in base36",
            "`pi_` needs the canonical encoding",
        ),
        (
            "/ids/uuid7?prefix=pi_",
            "",
            "`uuid7` has no prefixes (formats.uuid7.prefixes)",
        ),
        (
            "/ids/typeid?prefix=user_",
            "",
            "`typeid` has types, not prefixes",
        ),
    ] {
        let [reason, told, detail] = refusal(&service, path).await;
        assert_eq!(
            (reason.as_str(), told.as_str()),
            ("prefix", limit),
            "{path}"
        );
        assert!(detail.contains(said), "{detail}");
    }
    let bytes = post_request(
        "/ids/payment?prefix=pi_",
        "accept: application/octet-stream\r\n",
        "",
    );
    let refused = service.exchange(&bytes).await;
    assert_eq!(
        (refused.status, &refused.json()["limit"]),
        (422, &"pi_, ch_ in base36".into())
    );
    let same = service
        .mint("/ids/payment?prefix=pi_&encoding=base36")
        .await;
    assert!(
        same[0].starts_with("pi_"),
        "the canonical encoding by its name"
    );
}

#[tokio::test]
async fn formats_say_what_may_stand_before_their_ids() {
    let service = Service::start(PREFIXES).await;
    let payment = service.get("/formats/payment").await.json();
    let canonical = &payment["encodings"][0];
    assert_eq!(payment["prefixes"], json!(["pi_", "ch_"]));
    assert_eq!(
        [
            &canonical["length"],
            &canonical["length_min"],
            &canonical["length_max"]
        ],
        [&Value::Null, &9.into(), &12.into()]
    );
    assert_eq!(canonical["pattern"], "^(?:pi_|ch_)?[0-9A-Z]{9}$");
    assert_eq!(
        payment["encodings"][1]["pattern"]
            .as_str()
            .map(|pattern| pattern.contains("pi_")),
        Some(false)
    );
    let typeid = service.get("/formats/typeid").await.json();
    let canonical = &typeid["encodings"][0];
    assert_eq!(
        [
            &canonical["length"],
            &canonical["length_min"],
            &canonical["length_max"]
        ],
        [&Value::Null, &26.into(), &90.into()]
    );
    assert_eq!(
        (&typeid["types_minted"], typeid.get("prefixes")),
        (&json!([]), None)
    );
    let pattern = regex_lite::Regex::new(canonical["pattern"].as_str().unwrap()).unwrap();
    let longest = format!("{}_01h455vb4pex5vsknk084sn02q", "a".repeat(63));
    for id in [
        "user_01h455vb4pex5vsknk084sn02q",
        "01h455vb4pex5vsknk084sn02q",
        &longest,
    ] {
        assert!(pattern.is_match(id), "{id}");
    }
    for no_id in [
        "_01h455vb4pex5vsknk084sn02q",
        "User_01h455vb4pex5vsknk084sn02q",
        &format!("a{longest}"),
    ] {
        assert!(!pattern.is_match(no_id), "{no_id}");
    }
    assert_eq!(
        (
            &typeid["monotonic"],
            &typeid["collision_odds"]["random_bits"]
        ),
        (&"clock".into(), &"62".into())
    );
    let range = service
        .get("/formats/typeid/range?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z")
        .await
        .json();
    assert_eq!(
        range["least"]["encodings"]["uuid"],
        "019b76da-a800-7000-8000-000000000000"
    );
    assert_eq!(
        range["least"]["encodings"]["typeid"],
        "01kdvdna00e008000000000000"
    );
}

#[tokio::test]
async fn ids_of_a_process_ascend_and_bear_the_time_of_its_clock() {
    let service = Service::start("").await;
    let mut last = String::new();
    for _ in 0..200 {
        let id = service.mint("/ids/typeid?type=user").await.remove(0);
        assert!(last < id, "{last} {id}");
        last = id;
    }
    let read = first(&service, &last).await;
    assert_eq!(read["time_unix_seconds"], "2208988800");
    let answer = service.post("/ids/typeid?type=user&count=5").await;
    assert!(ids_of(&answer).is_sorted_by(|a, b| a < b));
}
