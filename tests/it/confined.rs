//! Checks confined tokens, which are limited to some ledgers, series or formats. Every route is
//! requested with every method, scope and confinement, and every byte of each response is searched
//! for secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use axum::http::Method;
use idmint_http::paths;
use serde_json::json;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::ledgers::{JSON, order};
use crate::service::{Service, ids_of};
use idmint_testing::http1::{Answer, request};

const SCOPES: [&str; 6] = ["mint", "ledger", "decode", "metrics", "import", "number"];
/// Two series of numbers. Tokens are confined to the first one, and must learn nothing about the
/// second one.
const SERIES: [&str; 2] = ["own-2026", "foreign-2026"];
/// The rules for how the numbers of [`SERIES`] are written.
const NUMBER_RULES: &str = "
[numbers.own]
pattern = 'own-2026'
text = 'OWN-{n:05}'
[numbers.foreign]
pattern = 'foreign-2026'
text = 'FOREIGN-{n:05}'
";
const METHODS: [Method; 3] = [Method::GET, Method::POST, Method::DELETE];
/// The only objects that the reports contain.
const OBJECTS: [u64; 2] = [3_141_592, 2_718_281];

/// Returns the first event of a ledger. The event determines the id of the ledger, so that ledger
/// `number` has the same id in every service.
fn genesis(number: usize) -> String {
    format!(
        r#"{{"event":"Begun","entities":{{"n":"{number}"}},"timestamp":"2039-01-01T00:00:0{number}Z"}}"#
    )
}

/// A service with the token `all`, which has no confinement. For each confinement, there is a token
/// for each scope, and one token with all scopes.
struct Confined {
    service: Service,
    tokens: Vec<String>,
    _folder: TempDir,
}

impl Confined {
    async fn start(confinements: &[(&str, String)]) -> Confined {
        let all = SCOPES.map(|scope| format!("'{scope}'")).join(", ");
        let scopes = SCOPES
            .map(|scope| (scope, format!("'{scope}'")))
            .into_iter()
            .chain([("every", all.clone())]);
        let scopes: Vec<_> = scopes.collect();
        let confined = confinements.iter().flat_map(|(name, confinement)| {
            scopes.iter().map(move |(scope, listed)| {
                (
                    format!("{scope}-{name}"),
                    listed.clone(),
                    confinement.clone(),
                )
            })
        });
        let entries: Vec<_> = confined
            .chain([("all".to_owned(), all.clone(), String::new())])
            .collect();
        let (folder, mut text) = (tempfile::tempdir().unwrap(), String::new());
        for (name, scopes, confinement) in &entries {
            let digest = Sha256::digest(format!("token-{name}"));
            let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(text, "[[token]]\nname = '{name}'\nsha256 = '{digest}'\nscopes = [{scopes}]\n{confinement}")
                .unwrap();
        }
        let path = folder.path().join("tokens.toml");
        std::fs::write(&path, text).unwrap();
        let settings = format!("http.tokens = '{}'\n{NUMBER_RULES}", path.display());
        let service = Service::start(&settings).await;
        let tokens = entries
            .into_iter()
            .map(|(name, ..)| name)
            .filter(|name| name != "all")
            .collect();
        Confined {
            service,
            tokens,
            _folder: folder,
        }
    }

    async fn ask(&self, token: &str, method_and_target: &str, headers: &str, body: &str) -> Answer {
        let headers = format!("authorization: Bearer token-{token}\r\n{headers}");
        self.service
            .exchange(&request(method_and_target, &headers, body))
            .await
    }

    /// Creates the ledger whose first event is [`genesis`] with `number`. Returns the ids of the
    /// ledger and of its last event.
    async fn begin_ledger(&self, number: usize) -> [String; 2] {
        let answer = self
            .ask("all", "POST /ledgers", JSON, &genesis(number))
            .await;
        assert_eq!(answer.status, 201, "{answer:?}");
        ["ledger", "head"].map(|name| answer.json()[name].as_str().unwrap().to_owned())
    }
}

/// The value of each parameter in the path of a route.
type Values<'a> = BTreeMap<&'static str, &'a str>;

fn fill(template: &str, values: &Values) -> String {
    values
        .iter()
        .fold(template.to_owned(), |path, (name, value)| {
            path.replace(name, value)
        })
}

#[tokio::test]
async fn no_byte_of_any_answer_tells_a_confined_token_of_anything_else() {
    let own_ledger = Confined::start(&[]).await.begin_ledger(0).await[0].clone();
    let confinements = [
        ("format", "formats = ['payment']".to_owned()),
        ("ledger", format!("ledgers = ['{own_ledger}']")),
        ("series", "series = ['own-*']".to_owned()),
    ];
    let guarded = Confined::start(&confinements).await;
    let [own, own_head] = guarded.begin_ledger(0).await;
    let [foreign, foreign_head] = guarded.begin_ledger(1).await;
    assert_eq!(own, own_ledger);
    let report =
        json!({ "tca": "2039-01-01T00:00:00Z", "primary": OBJECTS[0], "secondary": OBJECTS[1] })
            .to_string();
    let reported = guarded
        .ask("all", "POST /conjunctions", JSON, &format!("[{report}]"))
        .await;
    assert_eq!(reported.status, 200, "{reported:?}");
    let own_id = ids_of(&guarded.ask("all", "POST /ids/payment", "", "").await).remove(0);
    let foreign_id = ids_of(&guarded.ask("all", "POST /ids/snowflake", "", "").await).remove(0);
    for series in SERIES {
        let given = guarded
            .ask(
                "all",
                &format!("POST /numbers/{series}"),
                "idempotency-key: 1\r\n",
                "",
            )
            .await;
        assert_eq!(given.status, 201, "{given:?}");
    }

    let mut secrets = vec![foreign.clone(), foreign_head.clone()];
    secrets.extend(ids_of(&reported));
    secrets.extend(OBJECTS.map(|object| object.to_string()));
    let fillings: [Values; 2] = [
        [
            ("{format}", "payment"),
            ("{ledger}", &own),
            ("{id}", &own_head),
            ("{*id}", &own_id),
            ("{slug}", "forbidden"),
            ("{series}", SERIES[0]),
            ("{n}", "1"),
        ]
        .into(),
        [
            ("{format}", "evently"),
            ("{ledger}", &foreign),
            ("{id}", &foreign_head),
            ("{*id}", &foreign_id),
            ("{slug}", "nothing"),
            ("{series}", SERIES[1]),
            ("{n}", "1"),
        ]
        .into(),
    ];
    let templates: BTreeSet<_> = paths().into_iter().map(|(_, template)| template).collect();
    let bodies = [
        "",
        "{}",
        r#"["x"]"#,
        &order(&own, &[genesis(2)])[..],
        &genesis(3),
    ];
    let (mut asked, mut refused, mut searched) = (0, 0, 0);
    for token in &guarded.tokens {
        for (template, values) in templates
            .iter()
            .flat_map(|template| fillings.iter().map(move |values| (template, values)))
        {
            let path = fill(template, values);
            for (method, body) in METHODS
                .iter()
                .flat_map(|method| bodies.map(|body| (method, body)))
            {
                if *method == Method::GET && !body.is_empty() {
                    continue;
                }
                let headers = if body.is_empty() {
                    String::new()
                } else {
                    format!("{JSON}idempotency-key: k{asked}\r\n")
                };
                // These requests create no ledger that the token must not see, because a token that
                // is confined to a ledger may not create one.
                let answer = guarded
                    .ask(token, &format!("{method} {path}"), &headers, body)
                    .await;
                let text = format!("{}{}", answer.head, answer.text());
                asked += 1;
                refused += usize::from(answer.status == 403);
                searched += text.len();
                // A response may repeat a secret that is in the path of its own request.
                let of_series = [SERIES[1].to_owned()];
                let secrets = if token.ends_with("-series") {
                    &of_series[..]
                } else {
                    &secrets[..]
                };
                for secret in secrets.iter().filter(|secret| !path.contains(*secret)) {
                    assert!(
                        !text.contains(secret),
                        "{token}: {method} {path} {body} tells of {secret}: {text}"
                    );
                }
            }
        }
    }
    println!(
        "{asked} requests of {} tokens, {refused} refused, {searched} bytes searched",
        guarded.tokens.len()
    );
    assert_eq!(
        asked,
        guarded.tokens.len() * templates.len() * 2 * (1 + 2 * bodies.len())
    );
    assert!(
        refused > asked / 10 && refused < asked / 2,
        "{refused} of {asked}"
    );
    // Check that the search can find the secrets, by listing them with a token without confinement.
    let listed = guarded.ask("all", "GET /ledgers", "", "").await.text();
    assert!(
        listed.contains(&own) && listed.contains(&foreign),
        "{listed}"
    );
    let listed = guarded.ask("all", "GET /numbers", "", "").await.text();
    assert!(
        SERIES.iter().all(|series| listed.contains(series)),
        "{listed}"
    );
    let listed = guarded.ask("all", "GET /conjunctions", "", "").await.text();
    assert!(listed.contains(&OBJECTS[0].to_string()), "{listed}");
}

#[tokio::test]
async fn a_token_limited_to_some_series_decodes_no_number_of_another_one() {
    let guarded = Confined::start(&[("series", "series = ['own-*']".to_owned())]).await;
    let [own, foreign] = SERIES;
    for media in ["application/json", "application/x-ndjson", "text/plain"] {
        let headers = format!("{JSON}accept: {media}\r\n");
        let body = r#"["OWN-00042","FOREIGN-00042"]"#;
        let target = "POST /decode?detail=full";
        let decoded = guarded.ask("all", target, &headers, body).await.text();
        assert!(
            decoded.contains(own) && decoded.contains(foreign),
            "{media}: {decoded}"
        );
        let decoded = guarded.ask("decode-series", target, &headers, body).await;
        let decoded = decoded.text();
        assert!(
            decoded.contains(own) && !decoded.contains(foreign),
            "{media}: {decoded}"
        );
    }
}
