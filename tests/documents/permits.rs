//! Checks that the documents describe the permissions of tokens correctly.
//!
//! The tests request every route of `openapi.yaml` with every method, with tokens of every scope
//! and every confinement (the formats, ledgers and series that a token is limited to). Each request
//! must be allowed or get a 403. No response may contain an id, a name or a count that the token
//! may not see.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use idmint::server::config::Config;
use idmint_http::{Api, Guard, HostPolicy, Scope, TokenDigest, TokenEntry, Tokens};
use idmint_service::IdSource;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::schema::openapi;
use crate::service::{assembled, begin_in_memory};

const SETTINGS: &str =
    "formats.hidden-payment.like = 'payment'\nformats.hidden-report.like = 'conjunction'";
const REPORT: &str = r#"{"tca":"2024-02-01T00:00:00Z","primary":11111,"secondary":22222}"#;
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Two series of numbers. Tokens are confined to the first one, and must learn nothing about the
/// second one.
const SERIES: [&str; 2] = ["own-2026", "foreign-2026"];

/// The number of events after the first one in the ledger that tokens must not see. The number is
/// unlikely to occur anywhere else in a response.
const FOREIGN_EVENTS: usize = 1_234;

/// The confinement of a token, as in its entry of the configuration: the formats, ledgers and
/// series that the token is limited to.
#[derive(Debug, Clone, Default)]
struct Confinement {
    formats: Option<Vec<String>>,
    ledgers: Option<Vec<String>>,
    series: Option<Vec<String>>,
}

impl Confinement {
    fn to_formats(formats: &[&str]) -> Confinement {
        Confinement {
            formats: Some(formats.iter().map(|name| (*name).to_owned()).collect()),
            ..Confinement::default()
        }
    }

    fn to_ledgers(ledgers: &[&String]) -> Confinement {
        let ledgers = Some(ledgers.iter().map(|ledger| (*ledger).clone()).collect());
        Confinement {
            ledgers,
            ..Confinement::default()
        }
    }

    fn to_series(series: &str) -> Confinement {
        Confinement {
            series: Some(vec![series.to_owned()]),
            ..Confinement::default()
        }
    }

    fn is_any(&self) -> bool {
        self.formats.is_some() || self.ledgers.is_some() || self.series.is_some()
    }

    fn has_format(&self, name: &str) -> bool {
        self.formats
            .as_ref()
            .is_none_or(|formats| formats.iter().any(|format| format == name))
    }

    fn has_series(&self, series: &str) -> bool {
        self.series.as_ref().is_none_or(|all| {
            all.iter()
                .any(|it| series.starts_with(it.trim_end_matches('*')))
        })
    }

    fn has_ledger(&self, ledger: &str) -> bool {
        self.has_format("evently")
            && self
                .ledgers
                .as_ref()
                .is_none_or(|ledgers| ledgers.iter().any(|it| it == ledger))
    }
}

/// A token with its scopes and its confinement.
struct Bearer {
    token: String,
    scopes: Vec<Scope>,
    confinement: Confinement,
}

impl Bearer {
    fn all(scope_sets: &[Vec<Scope>], confinements: &[Confinement]) -> Vec<Bearer> {
        let pairs = scope_sets.iter().flat_map(|scopes| {
            confinements
                .iter()
                .map(move |confinement| (scopes, confinement))
        });
        pairs
            .enumerate()
            .map(|(number, (scopes, confinement))| Bearer {
                token: format!("bearer-{number}"),
                scopes: scopes.clone(),
                confinement: confinement.clone(),
            })
            .collect()
    }

    fn has(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    fn sees_ledger(&self, ledger: &str) -> bool {
        self.has(Scope::Ledger) && self.confinement.has_ledger(ledger)
    }

    /// Returns `true` if the bearer may see conjunctions of this format. This requires permission
    /// to read the register of conjunctions or to send reports.
    fn sees_conjunctions(&self, format: &str) -> bool {
        let reads = self.has(Scope::Ledger) && self.confinement.ledgers.is_none();
        (reads || self.has(Scope::Mint)) && self.confinement.has_format(format)
    }
}

/// A service that stores two ledgers and two conjunctions.
struct Stored {
    open: Api,
    guarded: Api,
    own: Ledger,
    foreign: Ledger,
    conjunction: String,
    hidden_conjunction: String,
}

struct Ledger {
    id: String,
    event: String,
    others: Vec<String>,
}

/// The status of a response, and all of its bytes.
struct Told {
    status: u16,
    text: String,
}

impl Told {
    fn json(&self) -> Value {
        serde_json::from_str(self.text.split_once("\n\n").unwrap().1)
            .unwrap_or_else(|_| panic!("{}", self.text))
    }
}

async fn ask(api: &Api, token: &str, method: &str, target: &str, body: &str) -> Told {
    let kind = if target.contains("/verify") {
        "application/x-ndjson"
    } else {
        "application/json"
    };
    let request = Request::builder()
        .method(method)
        .uri(target)
        .header("host", "localhost")
        .header("content-type", kind);
    let request = request.header("authorization", format!("Bearer {token}"));
    let is_keyed = ["/ids/", "/numbers/"]
        .iter()
        .any(|path| target.starts_with(path));
    let request = if is_keyed {
        request.header("idempotency-key", "same")
    } else {
        request
    };
    let answer = api
        .clone()
        .oneshot(request.body(Body::from(body.to_owned())).unwrap())
        .await
        .unwrap();
    let (head, body) = answer.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let text = format!("{:?}\n\n{}", head.headers, String::from_utf8_lossy(&body));
    Told {
        status: head.status.as_u16(),
        text,
    }
}

fn genesis(number: usize) -> String {
    let time = format!(
        "2024-01-01T00:00:{:02}.{:06}Z",
        number / 1_000_000,
        number % 1_000_000
    );
    json!({ "event": "Ledger Created", "entities": {}, "data": number, "timestamp": time })
        .to_string()
}

fn append(ledger: &str, count: usize) -> String {
    let event = json!({ "event": "Item Ordered", "entities": {} });
    json!({ "ledger": ledger, "events": vec![event; count] }).to_string()
}

async fn create(api: &Api, number: usize) -> Ledger {
    let told = ask(api, "", "POST", "/ledgers", &genesis(number)).await;
    assert_eq!(told.status, 201, "{}", told.text);
    let [id, event] =
        ["ledger", "genesis"].map(|member| told.json()[member].as_str().unwrap().to_owned());
    Ledger {
        id,
        event,
        others: Vec::new(),
    }
}

async fn mint(api: &Api, target: &str, body: &str) -> Vec<String> {
    let told = ask(api, "", "POST", target, body).await;
    assert!([200, 201].contains(&told.status), "{}", told.text);
    told.json()["ids"]
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_str().unwrap().to_owned())
        .collect()
}

impl Stored {
    /// Starts a service, and creates a token for every combination of a scope set and a
    /// confinement. `confinements` returns the confinements for the two ledgers of the service.
    async fn start(
        scope_sets: &[Vec<Scope>],
        confinements: impl AsyncFnOnce(&Api, &Ledger, &Ledger) -> Vec<Confinement>,
    ) -> (Stored, Vec<Bearer>) {
        let config = Config::load(None, std::iter::empty(), SETTINGS.parse().unwrap()).unwrap();
        let (service, metrics) = assembled(&config);
        begin_in_memory(&service).await;
        let open = Api::new(
            Arc::clone(&service),
            Arc::clone(&metrics),
            HostPolicy::default(),
        );
        let (own, mut foreign) = (create(&open, 1).await, create(&open, 2).await);
        foreign.others = mint(&open, "/ids/evently", &append(&foreign.id, FOREIGN_EVENTS)).await;
        let conjunction = mint(&open, "/ids/conjunction", REPORT).await.remove(0);
        let other_pair = REPORT.replace("11111", "11112");
        let hidden_conjunction = mint(&open, "/ids/hidden-report", &other_pair)
            .await
            .remove(0);
        mint(&open, "/ids/hidden-payment", "").await;
        for series in SERIES {
            let told = ask(&open, "", "POST", &format!("/numbers/{series}"), "").await;
            assert_eq!(told.status, 201, "{}", told.text);
        }

        let bearers = Bearer::all(scope_sets, &confinements(&open, &own, &foreign).await);
        let entry = |bearer: &Bearer| TokenEntry {
            name: bearer.token.clone(),
            sha256: TokenDigest::of(bearer.token.as_bytes()),
            scopes: bearer.scopes.clone(),
            formats: bearer.confinement.formats.clone(),
            ledgers: bearer.confinement.ledgers.clone(),
            series: bearer.confinement.series.clone(),
            expires: None,
        };
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            file.path(),
            bearers
                .iter()
                .map(|bearer| entry(bearer).to_toml())
                .collect::<String>(),
        )
        .unwrap();
        let names: Vec<_> = service
            .formats()
            .iter()
            .map(|served| served.format().name.clone())
            .collect();
        let of_events = service
            .formats()
            .iter()
            .filter(|served| matches!(served.source(), IdSource::Events));
        let of_events = of_events
            .map(|served| served.format().name.clone())
            .collect();
        let tokens = Tokens::load(file.path(), &names).unwrap();
        let clock = Arc::clone(service.clock());
        let guard = Arc::new(Guard::new(Some(tokens), None, None, of_events, clock));
        let guarded = Api::guarded(
            service,
            metrics,
            HostPolicy::default(),
            Some(guard.admission()),
        );
        (
            Stored {
                open,
                guarded,
                own,
                foreign,
                conjunction,
                hidden_conjunction,
            },
            bearers,
        )
    }

    /// Returns the texts that must not occur in any response to this bearer. Names of formats are
    /// not secret on routes that need no token.
    fn secrets(&self, bearer: &Bearer, is_open: bool) -> Vec<String> {
        let mut secrets = Vec::new();
        for ledger in [&self.own, &self.foreign]
            .into_iter()
            .filter(|ledger| !bearer.sees_ledger(&ledger.id))
        {
            // Allow the ledgers in the token's own entry, because a refusal may name them.
            let is_named = bearer
                .confinement
                .ledgers
                .iter()
                .flatten()
                .any(|named| *named == ledger.id);
            secrets.extend((!is_named).then(|| ledger.id.clone()));
            secrets.push(ledger.event.clone());
            secrets.extend(ledger.others.iter().take(3).cloned());
        }
        if !bearer.sees_ledger(&self.foreign.id) {
            secrets.push(format!("\":{},", FOREIGN_EVENTS + 1));
        }
        for (format, id) in [
            ("conjunction", &self.conjunction),
            ("hidden-report", &self.hidden_conjunction),
        ] {
            secrets.extend((!bearer.sees_conjunctions(format)).then(|| id.clone()));
        }
        if !bearer.has(Scope::Number) || !bearer.confinement.has_series(SERIES[1]) {
            secrets.push(SERIES[1].to_owned());
        }
        if !bearer.has(Scope::Metrics) || bearer.confinement.is_any() {
            secrets.push("idmint_ids_minted_total{".to_owned());
        }
        if !is_open && bearer.confinement.formats.is_some() {
            secrets.push("hidden-".to_owned());
        }
        secrets
    }

    /// Returns the path once for every combination of values for its parameters.
    fn fill(&self, path: &str) -> Vec<String> {
        let Some((before, (name, behind))) = path
            .split_once('{')
            .map(|(before, rest)| (before, rest.split_once('}').unwrap()))
        else {
            return vec![path.to_owned()];
        };
        let values: Vec<&str> = match (before.split('/').nth(1).unwrap(), name) {
            (_, "format") => vec![
                "payment",
                "evently",
                "conjunction",
                "uuid1",
                "hidden-payment",
                "hidden-report",
            ],
            (_, "ledger") => vec![&self.own.id, &self.foreign.id],
            ("ids", "id") => vec![&self.own.event, &self.foreign.event],
            ("conjunctions", "id") => vec![&self.conjunction],
            ("decode", "id") => vec!["1I9ZC1002", &self.own.event, "1i9zc1002"],
            ("numbers", "series") => SERIES.to_vec(),
            (_, "n") => vec!["1"],
            (_, "slug") => vec!["draining"],
            (_, "file") => vec!["main.js"],
            other => panic!("what can {other:?} of {path} be?"),
        };
        let rest = self.fill(behind);
        values
            .iter()
            .flat_map(|value| {
                rest.iter()
                    .map(move |rest| format!("{before}{value}{rest}"))
            })
            .collect()
    }

    /// Returns `true` if, according to the documents, a bearer with this confinement may send the
    /// request. The bearer must also have the right scope.
    fn permits(&self, confinement: &Confinement, method: &str, path: &str) -> bool {
        let mut parts = path.split('/').skip(1);
        match (parts.next().unwrap(), parts.next()) {
            ("ids", Some("evently")) => confinement.has_ledger(&self.own.id),
            ("encode" | "formats" | "ids", Some(format)) => confinement.has_format(format),
            ("formats" | "inspect", None) | ("decode", _) => true,
            ("ledgers", None) if method == "POST" => {
                confinement.has_format("evently") && confinement.ledgers.is_none()
            }
            ("ledgers", None) => confinement.has_format("evently"),
            ("ledgers", Some(ledger)) => confinement.has_ledger(ledger),
            ("conjunctions", None) if method == "POST" => confinement.has_format("conjunction"),
            ("conjunctions", _) => {
                confinement.has_format("conjunction") && confinement.ledgers.is_none()
            }
            ("numbers", None) => true,
            ("numbers", Some(series)) => confinement.has_series(series),
            ("metrics", None) => !confinement.is_any(),
            (other, _) => panic!("what may a confined token do with {other}?"),
        }
    }

    /// Returns requests that the route refuses, each for another reason.
    fn odd_requests(&self, method: &str, path: &str) -> Vec<(String, String)> {
        let queries = [
            "?nonsense=1",
            "?encoding=nope",
            "?format=hidden-report",
            "?limit=0",
            "?after=ffffffff",
            "?import=more",
        ];
        let after = format!("?after={}", self.foreign.event);
        let queries = queries
            .into_iter()
            .chain([after.as_str()])
            .map(|query| (format!("{path}{query}"), String::new()));
        let bodies = [
            "{}",
            "[]",
            r#"["1I9ZC1002"]"#,
            REPORT,
            &genesis(1),
            &append(&self.own.id, 0),
            &append(&self.foreign.id, 1),
        ]
        .map(|body| (path.to_owned(), body.to_owned()));
        queries
            .chain(bodies.into_iter().filter(|_| method == "POST"))
            .collect()
    }
}

/// Returns the scopes that a route of `openapi.yaml` requires. Returns `None` if the route needs no
/// token.
fn scopes_of(operation: &Value) -> Option<Vec<Scope>> {
    let ways = operation["security"].as_array().unwrap();
    let scopes = ways
        .iter()
        .filter_map(|way| way["token"].as_array())
        .flatten();
    (!ways.is_empty()).then(|| {
        scopes
            .map(|scope| scope.as_str().unwrap().parse().unwrap())
            .collect()
    })
}

#[tokio::test]
async fn every_route_by_every_method_is_open_or_forbidden_and_tells_nothing_of_what_a_token_may_not_see()
 {
    let mut scope_sets: Vec<Vec<Scope>> = Scope::ALL.map(|scope| vec![scope]).to_vec();
    scope_sets.extend([vec![Scope::Ledger, Scope::Import], Scope::ALL.to_vec()]);
    let (stored, bearers) = Stored::start(&scope_sets, async |_, own, _| {
        let nowhere = "aa77f99c".to_owned();
        vec![
            Confinement::default(),
            Confinement::to_formats(&["payment"]),
            Confinement::to_formats(&["uuid1", "uuid4"]),
            Confinement::to_formats(&["evently"]),
            Confinement::to_formats(&["conjunction"]),
            Confinement::to_ledgers(&[&own.id]),
            Confinement::to_ledgers(&[&nowhere]),
            Confinement {
                ledgers: Some(vec![own.id.clone()]),
                ..Confinement::to_formats(&["payment", "evently"])
            },
            Confinement {
                ledgers: Some(vec![own.id.clone()]),
                ..Confinement::to_formats(&["payment"])
            },
            Confinement::to_series("own-*"),
            Confinement {
                series: Some(vec!["own-2026".to_owned()]),
                ..Confinement::to_formats(&["payment"])
            },
        ]
    })
    .await;
    let document = openapi();
    let (mut asked, mut forbidden, mut kept) = (0, 0, 0);
    for (path, described) in document["paths"].as_object().unwrap() {
        let known: BTreeSet<String> = described
            .as_object()
            .unwrap()
            .keys()
            .map(|method| method.to_uppercase())
            .collect();
        for (target, method) in stored
            .fill(path)
            .iter()
            .flat_map(|target| METHODS.map(|method| (target, method)))
        {
            let as_known = if method == "HEAD" { "GET" } else { method };
            let operation = known
                .contains(as_known)
                .then(|| &described[as_known.to_lowercase()]);
            let scopes = operation.map(scopes_of);
            let plain = if target == "/ids/evently" {
                append(&stored.own.id, 1)
            } else {
                String::new()
            };
            let odd = if operation.is_some() {
                stored.odd_requests(method, target)
            } else {
                Vec::new()
            };
            for bearer in &bearers {
                let is_open = scopes == Some(None) || method == "OPTIONS";
                let needed = match &scopes {
                    Some(Some(_)) if target == "/ids/evently" => vec![Scope::Ledger],
                    Some(Some(_)) if target.starts_with("/ids/") => vec![Scope::Mint],
                    Some(Some(scopes)) => scopes.clone(),
                    _ => Vec::new(),
                };
                // Resuming a series needs all of its scopes together. For every other route, one of
                // the scopes is enough.
                let mut has = needed.iter().map(|scope| bearer.has(*scope));
                let has_scope = match target.ends_with("/resume") {
                    true => has.all(|has| has),
                    false => has.any(|has| has),
                };
                let may = needed.is_empty()
                    || has_scope && stored.permits(&bearer.confinement, as_known, target);
                let requests =
                    std::iter::once((target.clone(), plain.clone())).chain(odd.iter().cloned());
                for (place, (target, body)) in requests.enumerate() {
                    let told = ask(&stored.guarded, &bearer.token, method, &target, &body).await;
                    let Bearer {
                        scopes,
                        confinement,
                        ..
                    } = bearer;
                    let what = format!(
                        "{method} {target} {body:.80} with {scopes:?} and {confinement:?}: {:.400}",
                        told.text
                    );
                    assert!(
                        told.status != 401 && told.status < 500,
                        "{} {what}",
                        told.status
                    );
                    match (place, may) {
                        (0, may) => assert_eq!(told.status != 403, may, "{} {what}", told.status),
                        (_, false) => assert!(told.status >= 400, "{} {what}", told.status),
                        (_, true) => {}
                    }
                    let sent = format!("{target} {body}");
                    for secret in stored
                        .secrets(bearer, is_open)
                        .iter()
                        .filter(|secret| !sent.contains(*secret))
                    {
                        assert!(!told.text.contains(secret), "{secret} is told: {what}");
                        kept += 1;
                    }
                    asked += 1;
                    forbidden += usize::from(told.status == 403);
                }
            }
        }
    }
    println!("{asked} requests, {forbidden} forbidden; {kept} times a secret could have been told");
    assert!(asked > 20_000 && forbidden > 10_000 && kept > 50_000);
    // Check that the secrets can be found at all: a token without confinement sees all of them.
    let reader = &bearers
        .iter()
        .find(|bearer| bearer.scopes.len() == Scope::ALL.len())
        .unwrap()
        .token;
    let listed = [
        "/numbers",
        "/ledgers",
        "/conjunctions",
        "/conjunctions?format=hidden-report",
        "/formats",
        "/metrics",
    ];
    let mut all = String::new();
    for target in listed
        .map(str::to_owned)
        .into_iter()
        .chain([format!("/ledgers/{}/ids", stored.foreign.id)])
    {
        all += &ask(&stored.guarded, reader, "GET", &target, "").await.text;
    }
    let nothing = Bearer {
        token: String::new(),
        scopes: Vec::new(),
        confinement: Confinement::to_formats(&[]),
    };
    for secret in stored.secrets(&nothing, false) {
        assert!(
            all.contains(&secret),
            "{secret} is nowhere, so nothing was looked for"
        );
    }
}

/// Checks that the page size and the cursor of the list reveal nothing about other ledgers. A page
/// contains only ledgers that the token may see, and so does the cursor.
#[tokio::test]
async fn whoever_pages_through_ledgers_counts_its_own_alone() {
    const PAGE: usize = 1_000;
    let many = std::cell::RefCell::new(BTreeSet::new());
    let (stored, bearers) = Stored::start(&[vec![Scope::Ledger]], async |open, own, _| {
        for number in 0..=PAGE {
            let created = create(open, 100 + number).await.id;
            many.borrow_mut().insert(created);
        }
        let many: Vec<String> = many.borrow().iter().cloned().collect();
        vec![
            Confinement::to_ledgers(&[&own.id, &"aa77f99c".to_owned()]),
            Confinement {
                ledgers: Some(many),
                ..Confinement::default()
            },
        ]
    })
    .await;
    let many: Vec<String> = many.into_inner().into_iter().collect();
    let page = async |bearer: &Bearer, after: &str| {
        let told = ask(
            &stored.guarded,
            &bearer.token,
            "GET",
            &format!("/ledgers{after}"),
            "",
        )
        .await
        .json();
        let ledgers = told["ledgers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|info| info["ledger"].as_str().unwrap().to_owned());
        (ledgers.collect::<Vec<_>>(), told["next"].clone())
    };
    let last = |ids: &[String]| json!(ids[ids.len() - 1]);
    assert_eq!(
        page(&bearers[0], "").await,
        (vec![stored.own.id.clone()], Value::Null)
    );
    let before_own = page(&bearers[0], "?after=00000000").await;
    assert_eq!(before_own, (vec![stored.own.id.clone()], Value::Null));
    assert_eq!(
        page(&bearers[0], &format!("?after={}", stored.own.id)).await,
        (Vec::new(), Value::Null)
    );
    assert_eq!(
        page(&bearers[1], "").await,
        (many[..PAGE].to_vec(), last(&many[..PAGE]))
    );
    let next = format!("?after={}", many[PAGE - 1]);
    assert_eq!(
        page(&bearers[1], &next).await,
        (many[PAGE..].to_vec(), Value::Null)
    );
    // Check that the service has more than one page of other ledgers, so that the test can fail.
    let told = ask(&stored.open, "", "GET", "/ledgers", "").await.json();
    assert!(told["next"].is_string());
}
