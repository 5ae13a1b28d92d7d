//! Checks tokens. A request without a token, with a wrong token or without the right scope must
//! change nothing and reveal nothing.

use std::fmt::Write as _;

use axum::http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::edge::requests;
use crate::ledgers::{JSON, assert_problem, event, order};
use crate::service::{Service, ids_of};
use idmint_testing::http1::{Answer, request};

/// The name, the SHA-256 digest and the entry of each token. The token itself is `token-` followed
/// by the name. The digests were computed by coreutils, as in `printf %s token-mint | sha256sum`.
const TOKENS: [(&str, &str, &str); 7] = [
    (
        "all",
        "8e26b770c14de02b61a7cefc423dd918d0b440c3b9b24c26546dc3f12104d1dd",
        "scopes = ['mint', 'ledger', 'decode', 'metrics']",
    ),
    (
        "mint",
        "072281fccaeeb83669e54d8067aad5048b1b98ae5451540f5c9e08c9f4304e91",
        "scopes = ['mint']",
    ),
    (
        "ledger",
        "716752b07f755467d8df2f90b9123613b82a9571593894a3429b0a66950b3d64",
        "scopes = ['ledger']",
    ),
    (
        "decode",
        "e9e291b7609d019ea30beb9cf6497bde425872edf25dc2446f2002e2c83e3a46",
        "scopes = ['decode']",
    ),
    (
        "metrics",
        "42850ddcb2abaed4d501b9e2f15ea475bacd91c56aeff046c69739b4d637b040",
        "scopes = ['metrics']",
    ),
    (
        "payment",
        "70580da710614a23a60d3462bb1b0f71097517b8a91ed770fe12c6281976b71f",
        "scopes = ['mint', 'decode']\nformats = ['payment']",
    ),
    (
        "expired",
        "9450637a6cfce60f2c2b31b97578c94080d28a202656cde6fa812ac38aa9eb24",
        "scopes = ['mint']\nexpires = '2039-12-31T23:59:59Z'",
    ),
];

/// A service that requires a token for its requests.
struct Guarded {
    service: Service,
    _folder: TempDir,
}

impl Guarded {
    async fn start() -> Guarded {
        Guarded::start_with(
            TOKENS
                .map(|(name, sha256, more)| (name, sha256, more.to_owned()))
                .to_vec(),
        )
        .await
    }

    async fn start_with(tokens: Vec<(&str, &str, String)>) -> Guarded {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        let mut text = String::new();
        for (name, sha256, more) in tokens {
            writeln!(
                text,
                "[[token]]\nname = '{name}'\nsha256 = '{sha256}'\n{more}"
            )
            .unwrap();
        }
        std::fs::write(&path, text).unwrap();
        let service = Service::start(&format!("http.tokens = '{}'", path.display())).await;
        Guarded {
            service,
            _folder: folder,
        }
    }

    /// Sends a request with the token called `token`, or without a token if `token` is empty.
    async fn ask(&self, token: &str, method_and_target: &str, headers: &str, body: &str) -> Answer {
        let shown = if token.is_empty() {
            String::new()
        } else {
            format!("authorization: Bearer token-{token}\r\n")
        };
        self.service
            .exchange(&request(
                method_and_target,
                &format!("{shown}{headers}"),
                body,
            ))
            .await
    }

    /// Returns the number of ids that were minted so far.
    async fn minted(&self) -> f64 {
        let metrics = self.ask("all", "GET /metrics", "", "").await.text();
        let series = metrics
            .lines()
            .filter(|line| line.starts_with("idmint_ids_minted_total"));
        series
            .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
            .sum()
    }
}

fn json_of(answer: &Answer) -> Value {
    serde_json::from_str(&answer.text()).unwrap()
}

/// Returns the scope that a request needs. Returns `None` if the route needs no token, and an empty
/// text if any token is sufficient.
fn scope_needed(method: &Method, path: &str) -> Option<&'static str> {
    let reads = matches!(*method, Method::GET | Method::HEAD);
    let scope = match path.split(['/', '?']).nth(1).unwrap_or_default() {
        "" | "health" | "openapi.yaml" | "openapi-3.0.yaml" | "page" | "problems" if reads => {
            return None;
        }
        "ids" if *method == Method::POST => "mint",
        "conjunctions" if path == "/conjunctions" && *method == Method::POST => "mint",
        "encode" | "formats" if reads => "decode",
        "decode" if reads || path == "/decode" => "decode",
        "inspect" if *method == Method::POST => "decode",
        "conjunctions" if reads => "ledger",
        "ledgers" if reads || *method == Method::POST => "ledger",
        "numbers" if reads && !path.ends_with("/void") => "number",
        "numbers" if *method == Method::POST && path != "/numbers" => "number",
        "metrics" if reads => "metrics",
        _ => "",
    };
    // For a path without a route, any token is sufficient.
    let is_answered = !matches!(path, "/ids/" | "/ids/flax/more" | "/no/such/route");
    Some(if is_answered { scope } else { "" })
}

#[tokio::test]
async fn every_route_asks_for_its_scope_and_nothing_is_minted_without_it() {
    let guarded = Guarded::start().await;
    let (mut asked, mut refused) = (0, 0);
    // Skip preflight requests, which need no token. Also skip HEAD requests, because their
    // responses have no body to compare.
    let walked = requests()
        .into_iter()
        .filter(|(method, _)| ![Method::OPTIONS, Method::HEAD].contains(method));
    for (method, path) in walked {
        let target = format!("{method} {path}");
        let before = guarded.minted().await;
        let Some(needed) = scope_needed(&method, &path) else {
            let answer = guarded.ask("", &target, "", "").await;
            assert!(
                ![401, 403].contains(&answer.status),
                "{target} is open to anybody: {answer:?}"
            );
            continue;
        };
        for token in ["", "unknown", "expired"] {
            let answer = guarded.ask(token, &target, "", "").await;
            assert_eq!(
                (answer.status, answer.header("www-authenticate")),
                (401, Some("Bearer")),
                "{target} {token:?}"
            );
            asked += 1;
            refused += 1;
        }
        for token in ["mint", "ledger", "decode", "metrics"] {
            let may = needed.is_empty() || needed == token;
            if may && needed == "mint" {
                continue;
            }
            let answer = guarded.ask(token, &target, "", "").await;
            assert_eq!(
                answer.status != 403,
                may,
                "{target} with {token:?}: {answer:?}"
            );
            assert_ne!(answer.status, 401, "{target} with {token:?}");
            asked += 1;
            refused += usize::from(!may);
        }
        assert_eq!(guarded.minted().await, before, "{target} minted");
    }
    println!("{asked} requests, {refused} of them refused for their token");
    assert!(asked > 100 && refused > 80);
    assert_eq!(
        guarded
            .ask("mint", "POST /ids/flax?count=3", "", "")
            .await
            .status,
        200
    );
    assert_eq!(guarded.minted().await, 3.0);
}

#[tokio::test]
async fn head_needs_what_get_needs_and_a_preflight_nothing() {
    let guarded = Guarded::start().await;
    for (method, token, status) in [
        ("HEAD", "", "401"),
        ("HEAD", "mint", "403"),
        ("HEAD", "decode", "200"),
        ("OPTIONS", "", "405"),
    ] {
        let mut client = guarded.service.connect().await;
        let headers = format!("authorization: Bearer token-{token}\r\nconnection: close\r\n");
        client
            .send(request(&format!("{method} /formats"), &headers, ""))
            .await;
        let head = client.read_to_close().await;
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status}")),
            "{method} with {token:?}: {head}"
        );
    }
}

#[tokio::test]
async fn a_token_is_shown_once_as_a_bearer_and_is_not_too_long() {
    let guarded = Guarded::start().await;
    let ask = async |headers: &str| {
        guarded
            .service
            .exchange(&request("POST /ids/flax", headers, ""))
            .await
    };
    for (headers, reason) in [
        ("", "missing_token"),
        ("authorization: Bearer \r\n", "malformed_token"),
        ("authorization: token-mint\r\n", "malformed_token"),
        (
            "authorization: Basic dG9rZW4tbWludA==\r\n",
            "malformed_token",
        ),
        (
            "authorization: Bearer token-mint\r\nauthorization: Bearer token-mint\r\n",
            "malformed_token",
        ),
        (
            "authorization: Bearer token-mint,token-mint\r\n",
            "invalid_token",
        ),
        ("authorization: Bearer token-expired\r\n", "expired_token"),
        ("authorization: Bearer TOKEN-MINT\r\n", "invalid_token"),
    ] {
        let problem = assert_problem(&ask(headers).await, 401, "unauthorized", reason);
        assert!(
            !problem["detail"].as_str().unwrap().contains("token-"),
            "no answer repeats a token: {problem}"
        );
    }
    let long = ask(&format!("authorization: Bearer {}\r\n", "a".repeat(4_000))).await;
    assert_problem(&long, 401, "unauthorized", "malformed_token");
    let mut client = guarded.service.connect().await;
    client
        .send(format!(
            "POST /ids/flax HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}",
            "a".repeat(20_000)
        ))
        .await;
    assert!(
        client.read_to_close().await.starts_with("HTTP/1.1 431"),
        "a head is at most 16 KiB long"
    );
    assert_eq!(
        ask("authorization: bearer token-mint\r\n").await.status,
        200,
        "the scheme has no case"
    );
    assert_eq!(guarded.minted().await, 1.0);
}

#[tokio::test]
async fn a_token_for_one_format_neither_mints_nor_reads_nor_lists_another() {
    let guarded = Guarded::start().await;
    let ask = async |target: &str| guarded.ask("payment", target, "", "").await;
    let own = ids_of(&ask("POST /ids/payment?count=2").await);
    let foreign = ids_of(&guarded.ask("all", "POST /ids/snowflake", "", "").await).remove(0);
    for target in [
        "POST /ids/snowflake",
        "POST /ids/%73nowflake",
        "POST /ids/nothing",
        "GET /formats/snowflake",
        "GET /formats/snowflake/range?from=2024-01-01T00:00:00Z&to=2024-01-02T00:00:00Z",
        "GET /encode/snowflake?worker=1",
        &format!("GET /decode/{foreign}?format=snowflake"),
        "POST /decode?format=snowflake",
        "POST /inspect?format=snowflake",
    ] {
        let problem = assert_problem(&ask(target).await, 403, "forbidden", "format");
        assert_eq!(problem["limit"], "payment", "{target}");
    }
    let listed = json_of(&ask("GET /formats").await);
    let names: Vec<_> = listed["formats"]
        .as_array()
        .unwrap()
        .iter()
        .map(|format| &format["name"])
        .collect();
    assert_eq!(names, [&json!("payment")]);
    let unread = ask(&format!("GET /decode/{foreign}")).await;
    assert_eq!(unread.status, 404, "{unread:?}");
    assert!(!unread.text().contains("snowflake"), "{unread:?}");
    let body = json!([own[0], foreign]).to_string();
    let many = guarded.ask("payment", "POST /decode", JSON, &body).await;
    assert!(
        !many.text().contains("snowflake") && many.text().contains("payment"),
        "{many:?}"
    );
    let foreign = ids_of(
        &guarded
            .ask("all", "POST /ids/snowflake?count=100", "", "")
            .await,
    );
    let column = guarded
        .ask(
            "payment",
            "POST /inspect",
            JSON,
            &json!(foreign).to_string(),
        )
        .await;
    assert!(
        column.status == 200 && !column.text().contains("snowflake"),
        "{column:?}"
    );
    assert_eq!(json_of(&column)["certainty"], "cannot_be_told");
    assert_eq!(
        json_of(&ask(&format!("GET /decode/{}", own[1])).await)["matches"][0]["format"],
        "payment"
    );
}

#[tokio::test]
async fn a_token_for_one_ledger_neither_appends_to_nor_reads_nor_lists_another() {
    let genesis = |number: usize| {
        format!(
            r#"{{"event":"Ledger Created","entities":{{"ledger":"{number}"}},"timestamp":"2039-01-01T00:00:0{number}Z"}}"#
        )
    };
    let create = async |guarded: &Guarded, token: &str, number| {
        guarded
            .ask(token, "POST /ledgers", JSON, &genesis(number))
            .await
    };
    // The first event of a ledger determines its id, so both services have the same ledgers.
    let before = Guarded::start().await;
    let mut ledgers = Vec::new();
    for number in 0..2 {
        ledgers.push(
            json_of(&create(&before, "all", number).await)["ledger"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    let (own, foreign) = (&ledgers[0], &ledgers[1]);
    let confined = format!("scopes = ['ledger']\nledgers = ['{own}']");
    let tokens = vec![
        ("all", TOKENS[0].1, TOKENS[0].2.to_owned()),
        ("confined", TOKENS[1].1, confined),
    ];
    let guarded = Guarded::start_with(tokens).await;
    for number in 0..2 {
        assert_eq!(create(&guarded, "all", number).await.status, 201);
    }

    let append = async |ledger: &str| {
        let headers = format!("{JSON}idempotency-key: one\r\n");
        guarded
            .ask(
                "mint",
                "POST /ids/evently",
                &headers,
                &order(ledger, &[event(1)]),
            )
            .await
    };
    assert_problem(&append(foreign).await, 403, "forbidden", "ledger");
    assert_problem(
        &create(&guarded, "mint", 2).await,
        403,
        "forbidden",
        "ledger",
    );
    for target in [
        format!("GET /ledgers/{foreign}"),
        format!("GET /ledgers/{foreign}/ids"),
        format!("GET /ledgers/{foreign}/ids/0005cd7556b05092aecc815daa77f99c"),
        format!("POST /ledgers/{foreign}/verify"),
        "GET /ledgers/aa77f99c".to_owned(),
    ] {
        assert_problem(
            &guarded.ask("mint", &target, "", "").await,
            403,
            "forbidden",
            "ledger",
        );
    }
    assert_eq!(append(own).await.status, 201);
    let listed = json_of(&guarded.ask("mint", "GET /ledgers", "", "").await);
    let names: Vec<_> = listed["ledgers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|ledger| &ledger["ledger"])
        .collect();
    assert_eq!(names, [&json!(own)]);
    let page = json_of(
        &guarded
            .ask("mint", &format!("GET /ledgers/{own}/ids"), "", "")
            .await,
    );
    assert_eq!(page["ids"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn an_import_into_a_ledger_in_use_needs_its_scope_and_one_into_a_new_ledger_does_not() {
    let tokens = vec![
        ("ledger", TOKENS[2].1, "scopes = ['ledger']".to_owned()),
        (
            "operator",
            TOKENS[0].1,
            "scopes = ['ledger', 'import']".to_owned(),
        ),
        ("import", TOKENS[1].1, "scopes = ['import']".to_owned()),
    ];
    let guarded = Guarded::start_with(tokens).await;
    let append = async |token: &str, ledger: &str, import: &str, number: usize| {
        let headers = format!("{JSON}idempotency-key: {number}\r\n");
        let target = format!("POST /ids/evently{import}");
        guarded
            .ask(token, &target, &headers, &order(ledger, &[event(number)]))
            .await
    };
    let create = async |import: &str, number: usize| {
        let headers = format!("{JSON}idempotency-key: {number}\r\n");
        let created = guarded
            .ask(
                "ledger",
                &format!("POST /ledgers{import}"),
                &headers,
                &event(number),
            )
            .await;
        assert_eq!(created.status, 201, "{created:?}");
        json_of(&created)["ledger"].as_str().unwrap().to_owned()
    };
    let (ledger, operator) = ("ledger", "all");
    let in_use = create("", 0).await;
    let problem = assert_problem(
        &append(ledger, &in_use, "?import=more", 1).await,
        403,
        "forbidden",
        "scope",
    );
    assert_eq!(problem["limit"], "import");
    assert_eq!(
        append(ledger, &in_use, "", 2).await.status,
        201,
        "the ledger takes events as before"
    );
    assert_eq!(
        append(ledger, &in_use, "?import=last", 3).await.status,
        201,
        "which keeps nobody out"
    );
    assert_problem(
        &append("mint", &in_use, "?import=more", 4).await,
        403,
        "forbidden",
        "scope",
    );

    assert_eq!(
        append(operator, &in_use, "?import=more", 5).await.status,
        201
    );
    assert_problem(
        &append(ledger, &in_use, "", 6).await,
        409,
        "ledger-importing",
        "",
    );
    assert_eq!(
        append(ledger, &in_use, "?import=more", 7).await.status,
        201,
        "an import that has begun is gone on with"
    );
    assert_eq!(append(ledger, &in_use, "?import=last", 8).await.status, 201);
    assert_eq!(append(ledger, &in_use, "", 9).await.status, 201);
    assert_eq!(
        append(ledger, &in_use, "?import=more", 7).await.status,
        200,
        "a repetition appends nothing"
    );

    let new = create("?import=more", 10).await;
    assert_eq!(append(ledger, &new, "?import=more", 11).await.status, 201);
    assert_eq!(append(ledger, &new, "?import=last", 12).await.status, 201);
    assert_problem(
        &append(ledger, &new, "?import=more", 13).await,
        403,
        "forbidden",
        "scope",
    );
}

/// Checks that the example in a refusal works with the token that got the refusal.
#[tokio::test]
async fn the_example_of_a_refusal_works_for_a_token_that_is_confined() {
    let all = "scopes = ['mint', 'ledger', 'decode', 'import']".to_owned();
    let before = Guarded::start_with(vec![("all", TOKENS[0].1, all.clone())]).await;
    let genesis = |number: usize| {
        format!(
            r#"{{"event":"Created","entities":{{}},"data":{number},"timestamp":"2039-01-01T00:00:00Z"}}"#
        )
    };
    let mut ledgers = Vec::new();
    for number in 0..4 {
        let created = json_of(
            &before
                .ask("all", "POST /ledgers", JSON, &genesis(number))
                .await,
        );
        ledgers.push(created["ledger"].as_str().unwrap().to_owned());
    }
    let confined = |more: &str| format!("{all}\n{more}");
    // Confine the token to the last ledger. An example that ignored the confinement would use the
    // first ledger.
    ledgers.sort();
    let own = &ledgers[3];
    let guarded = Guarded::start_with(vec![
        ("all", TOKENS[0].1, all.clone()),
        (
            "own",
            TOKENS[1].1,
            confined(&format!("ledgers = ['{own}']")),
        ),
        ("nothing", TOKENS[2].1, confined("ledgers = ['aa77f99c']")),
        ("read", TOKENS[3].1, confined("formats = ['uuid1']")),
        (
            "minted",
            TOKENS[4].1,
            confined("formats = ['uuid1', 'uuid4']"),
        ),
    ])
    .await;
    for number in 0..4 {
        assert_eq!(
            guarded
                .ask("all", "POST /ledgers", JSON, &genesis(number))
                .await
                .status,
            201
        );
    }
    let bearers = ["mint", "ledger", "decode", "metrics"];
    let [own_ledger, no_ledger, read_format, minted_format] = bearers;
    let none = |ledger: &str| order::<&str>(ledger, &[]);
    for (token, target, body, example) in [
        (
            own_ledger,
            "POST /ids/evently",
            none(own),
            format!("POST /ids/evently Idempotency-Key: example {{\"ledger\":\"{own}\""),
        ),
        (
            no_ledger,
            "POST /ids/evently",
            none("aa77f99c"),
            "GET /ledgers".to_owned(),
        ),
        (
            own_ledger,
            &format!("POST /ledgers/{own}/verify"),
            String::new(),
            "GET /ledgers".to_owned(),
        ),
        (
            read_format,
            "POST /ids/uuid1",
            String::new(),
            "GET /openapi.yaml".to_owned(),
        ),
        (
            minted_format,
            "POST /ids/uuid1",
            String::new(),
            "POST /ids/uuid4".to_owned(),
        ),
        (
            minted_format,
            "GET /formats/uuid4/range",
            String::new(),
            "GET /formats".to_owned(),
        ),
    ] {
        let kind = if target.ends_with("verify") {
            "content-type: text/plain\r\n"
        } else {
            JSON
        };
        let answer = guarded
            .ask(
                token,
                target,
                &format!("{kind}idempotency-key: one\r\n"),
                &body,
            )
            .await;
        let problem = answer.json();
        assert_eq!(answer.status, 422, "{target}: {problem}");
        let told = problem["example"].as_str().unwrap();
        assert!(told.starts_with(&example), "{target}: {told}");
        let (request, body) = told
            .split_once(" {")
            .map_or((told, String::new()), |(request, body)| {
                (request, format!("{{{body}"))
            });
        let request = request
            .split_once(" Idempotency-Key: ")
            .map_or(request, |(request, _)| request);
        let answer = guarded
            .ask(
                token,
                request,
                &format!("{JSON}idempotency-key: example\r\n"),
                &body,
            )
            .await;
        assert!([200, 201].contains(&answer.status), "{told}: {answer:?}");
    }
}
