//! Checks which hosts and origins are accepted. The checks cover every route, and the fast path of
//! mint requests.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode, Version};
use idmint::server::assemble;
use idmint::server::config::Config;
use idmint_core::minting::Randomness;
use idmint_core::time::Clock;
use idmint_http::{Api, CorsOrigin, HostName, HostPolicy, HostRule, HttpMetrics, paths};
use prometheus::{Registry, TextEncoder};
use sha2::{Digest, Sha256};
use tower::ServiceExt;

use crate::edge::requests;
use crate::service::Service;
use idmint_testing::http1::request;

const PAGE: &str = "https://tickets.example.com";

/// An API on a machine called `node-7`, with these configured hosts and origins.
struct Asked {
    api: Api,
    registry: Registry,
}

impl Asked {
    fn with(hosts: &[&str], origins: &[&str]) -> Asked {
        let registry = Registry::new();
        let service = assemble(
            &Config::default(),
            Arc::new(Clock::system()),
            &Randomness::Thread,
            &registry,
        )
        .unwrap();
        let metrics = Arc::new(HttpMetrics::register(&registry, &paths()).unwrap());
        let hosts: Vec<_> = hosts
            .iter()
            .map(|host| HostRule::parse(host).unwrap())
            .collect();
        let origins: Vec<_> = origins
            .iter()
            .map(|origin| CorsOrigin::parse(origin).unwrap())
            .collect();
        let host_policy = HostPolicy::new(HostName::parse("node-7"), &hosts, &origins);
        Asked {
            api: Api::new(service, metrics, host_policy),
            registry,
        }
    }

    async fn ask(
        &self,
        method: &Method,
        path: &str,
        headers: &[(&str, &str)],
    ) -> (StatusCode, HeaderMap, String) {
        self.ask_in(Version::HTTP_11, method, path, headers).await
    }

    async fn ask_in(
        &self,
        version: Version,
        method: &Method,
        uri: &str,
        headers: &[(&str, &str)],
    ) -> (StatusCode, HeaderMap, String) {
        let request = Request::builder().version(version).method(method).uri(uri);
        let request = headers.iter().fold(request, |request, (name, value)| {
            request.header(*name, *value)
        });
        let answer = self
            .api
            .clone()
            .oneshot(request.body(Body::empty()).unwrap())
            .await
            .unwrap();
        let (parts, body) = answer.into_parts();
        let body = to_bytes(Body::new(body), 1 << 20).await.unwrap();
        (
            parts.status,
            parts.headers,
            String::from_utf8_lossy(&body).into_owned(),
        )
    }

    /// Sends a mint request with this host, and returns the status of the response.
    async fn mint_at(&self, host: &str) -> StatusCode {
        self.ask(&Method::POST, "/ids/flax", &[("host", host)])
            .await
            .0
    }

    /// Sends a mint request with this host and these headers of a browser, and returns the status.
    async fn mint_by(&self, host: &str, headers: &[(&str, &str)]) -> StatusCode {
        self.ask(
            &Method::POST,
            "/ids/flax",
            &[&[("host", host)], headers].concat(),
        )
        .await
        .0
    }

    fn minted(&self) -> f64 {
        let text = TextEncoder::new()
            .encode_to_string(&self.registry.gather())
            .unwrap();
        let is_grant =
            |line: &&str| line.contains("{method=\"POST\",route=\"/ids/{format}\",status=\"200\"");
        text.lines()
            .filter(is_grant)
            .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
            .sum()
    }
}

fn is_told_to_anybody(path: &str) -> bool {
    path == "/metrics" || path.starts_with("/health/")
}

#[tokio::test]
async fn every_route_answers_for_its_own_hosts_alone() {
    let asked = Asked::with(&[], &[]);
    let requests = requests();
    assert!(
        requests.len() >= paths().len() + 10,
        "every route, the fast way and what there is not"
    );
    for (method, path) in &requests {
        let (status, headers, body) = asked
            .ask(method, path, &[("host", "rebound.example.net:8080")])
            .await;
        if is_told_to_anybody(path) {
            assert_ne!(status, 421, "{method} {path}: {body}");
        } else {
            assert_eq!(status, 421, "{method} {path}: {body}");
            assert!(
                body.contains("/problems/unknown-host") || *method == Method::HEAD,
                "{method} {path}: {body}"
            );
        }
        assert_eq!(
            headers["x-content-type-options"], "nosniff",
            "{method} {path}"
        );
        let (status, headers, _) = asked.ask(method, path, &[("host", "localhost:8080")]).await;
        assert_ne!(status, 421, "{method} {path}");
        assert_eq!(
            headers["x-content-type-options"], "nosniff",
            "{method} {path}"
        );
    }
    assert_eq!(asked.minted(), 2.0, "only the two that named localhost");
}

#[tokio::test]
async fn a_host_is_one_of_ours_whatever_its_port_and_case() {
    let asked = Asked::with(&["ids.example.com"], &[]);
    for host in [
        "localhost",
        "LocalHost:1",
        "localhost.",
        "127.0.0.1:8080",
        "10.1.2.3",
        "[::1]:8080",
        "[2001:db8::1]",
        "node-7:80",
        "NODE-7",
        "ids.example.com:443",
        "IDS.example.COM.",
    ] {
        assert_eq!(asked.mint_at(host).await, 200, "{host}");
    }
    for host in [
        "example.com",
        "www.ids.example.com",
        "node-7.example.com",
        "localhost.example.com",
        "2130706433",
        "0x7f000001",
        "127.0.0.1.nip.io",
        "idmint",
    ] {
        assert_eq!(asked.mint_at(host).await, 421, "{host}");
    }
    assert_eq!(
        Asked::with(&["*"], &[]).mint_at("any.name.at-all").await,
        200
    );
}

#[tokio::test]
async fn a_missing_doubled_or_malformed_host_is_400_on_every_route() {
    let asked = Asked::with(&["*"], &[]);
    for (method, path) in requests() {
        let twice = [("host", "localhost"), ("host", "localhost")];
        for headers in [
            &[][..],
            &twice,
            &[("host", "")],
            &[("host", "a b")],
            &[("host", "a@b")],
            &[("host", "a:x")],
        ] {
            let (status, _, body) = asked.ask(&method, &path, headers).await;
            assert_eq!(status, 400, "{method} {path} {headers:?}: {body}");
        }
    }
    assert_eq!(asked.minted(), 0.0);
    let (status, ..) = asked
        .ask_in(Version::HTTP_10, &Method::POST, "/ids/flax", &[])
        .await;
    assert_eq!(status, 200, "HTTP/1.0 need not name a host");
}

#[tokio::test]
async fn the_authority_of_an_address_is_the_host() {
    let asked = Asked::with(&[], &[]);
    for (version, uri, host, expected) in [
        (Version::HTTP_2, "http://localhost:8080/ids/flax", None, 200),
        (
            Version::HTTP_2,
            "http://rebound.example.net/ids/flax",
            None,
            421,
        ),
        (
            Version::HTTP_2,
            "http://localhost/ids/flax",
            Some("LOCALHOST"),
            200,
        ),
        (
            Version::HTTP_2,
            "http://localhost/ids/flax",
            Some("rebound.example.net"),
            400,
        ),
        (Version::HTTP_2, "/ids/flax", Some("localhost"), 200),
        (
            Version::HTTP_2,
            "/ids/flax",
            Some("rebound.example.net"),
            421,
        ),
        (Version::HTTP_2, "/ids/flax", None, 400),
        // RFC 9112, section 3.2.2: the host in the target takes precedence, but the header `Host`
        // must still be present.
        (
            Version::HTTP_11,
            "http://rebound.example.net/ids/flax",
            Some("localhost"),
            421,
        ),
        (
            Version::HTTP_11,
            "http://localhost/ids/flax",
            Some("proxy"),
            200,
        ),
        (Version::HTTP_11, "http://localhost/ids/flax", None, 400),
    ] {
        let headers: Vec<_> = host.into_iter().map(|host| ("host", host)).collect();
        let (status, _, body) = asked.ask_in(version, &Method::POST, uri, &headers).await;
        assert_eq!(status, expected, "{version:?} {uri} {host:?}: {body}");
    }
}

#[tokio::test]
async fn no_route_takes_a_write_from_a_page_of_another_site() {
    let asked = Asked::with(&["*"], &["https://other.example.com"]);
    let signs = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-site", "unheard-of"),
        ("origin", PAGE),
        ("origin", "null"),
        ("origin", "localhost"),
    ];
    for (method, path) in requests() {
        for (name, value) in signs {
            let (status, headers, body) = asked
                .ask(&method, &path, &[("host", "localhost"), (name, value)])
                .await;
            let is_read = matches!(method, Method::GET | Method::HEAD | Method::OPTIONS);
            assert_eq!(
                status == 403,
                !is_read,
                "{method} {path} {name}: {value}: {status} {body}"
            );
            assert!(
                is_read || body.contains("/problems/cross-site"),
                "{method} {path}: {body}"
            );
            assert!(
                !headers.contains_key("access-control-allow-origin"),
                "{method} {path} {name}: {value}"
            );
        }
    }
    assert_eq!(asked.minted(), 0.0);
}

#[tokio::test]
async fn who_is_no_browser_or_a_page_of_this_service_passes() {
    let asked = Asked::with(&["ids.example.com"], &[]);
    for (host, headers) in [
        ("localhost:8080", &[][..]),
        ("localhost:8080", &[("sec-fetch-site", "none")]),
        (
            "localhost:8080",
            &[
                ("sec-fetch-site", "same-origin"),
                ("origin", "http://localhost:8080"),
            ],
        ),
        ("LOCALHOST:8080", &[("origin", "http://localhost:8080")]),
        ("10.0.0.5", &[("origin", "http://10.0.0.5")]),
        ("10.0.0.5:443", &[("origin", "https://10.0.0.5")]), // a proxy ended TLS
        ("[::1]:80", &[("origin", "http://[::1]")]),
        (
            "10.0.0.5:8080",
            &[("origin", "https://ids.example.com:8443")],
        ), // a proxy wrote its own Host
    ] {
        assert_eq!(
            asked.mint_by(host, headers).await,
            200,
            "{host} {headers:?}"
        );
    }
    for (host, headers) in [
        ("localhost:8080", &[("origin", "http://localhost:3000")][..]), // another program on the same machine
        ("localhost:8080", &[("origin", "http://127.0.0.1:8080")]),
        (
            "localhost:8080",
            &[
                ("origin", "http://localhost:8080"),
                ("origin", "http://localhost:8080"),
            ],
        ),
        ("localhost:8080", &[("origin", "file://")]),
        (
            "ids.example.com",
            &[
                ("sec-fetch-site", "same-site"),
                ("origin", "https://ids.example.com"),
            ],
        ),
    ] {
        assert_eq!(
            asked.mint_by(host, headers).await,
            403,
            "{host} {headers:?}"
        );
    }
    let any_host = Asked::with(&["*"], &[]);
    assert_eq!(
        any_host.mint_by("a.example", &[("origin", PAGE)]).await,
        403,
        "`*` of hosts says nothing about pages"
    );
}

#[tokio::test]
async fn pages_of_an_allowed_origin_write_and_read_on_every_route() {
    let asked = Asked::with(&[], &[PAGE]);
    let allowed = |headers: &HeaderMap| headers.get("access-control-allow-origin").cloned();
    let of_page = [
        ("host", "localhost"),
        ("origin", PAGE),
        ("sec-fetch-site", "cross-site"),
    ];
    for (method, path) in requests()
        .into_iter()
        .filter(|(method, _)| method != Method::OPTIONS)
    {
        let (status, headers, body) = asked.ask(&method, &path, &of_page).await;
        assert!(
            status != 403 && status != 421,
            "{method} {path}: {status} {body}"
        );
        assert_eq!(allowed(&headers).unwrap(), PAGE, "{method} {path}");
        assert!(
            headers["access-control-expose-headers"]
                .to_str()
                .unwrap()
                .contains("x-request-id"),
            "{method} {path}"
        );
        assert!(
            headers
                .get_all("vary")
                .iter()
                .any(|value| value.to_str().unwrap().contains("origin")),
            "{method} {path}"
        );
        let (_, headers, _) = asked
            .ask(
                &method,
                &path,
                &[("host", "localhost"), ("origin", "https://evil.example")],
            )
            .await;
        assert_eq!(allowed(&headers), None, "{method} {path}");

        let wanted = ("access-control-request-method", method.as_str());
        let (status, headers, _) = asked
            .ask(&Method::OPTIONS, &path, &[&of_page[..], &[wanted]].concat())
            .await;
        assert_eq!(
            (status, allowed(&headers).unwrap().to_str().unwrap()),
            (StatusCode::OK, PAGE),
            "{method} {path}"
        );
        assert!(
            headers["access-control-allow-methods"]
                .to_str()
                .unwrap()
                .contains("POST")
        );
        assert!(
            headers["access-control-allow-headers"]
                .to_str()
                .unwrap()
                .contains("idempotency-key")
        );
        assert!(headers.contains_key("x-request-id"), "it passed the edge");
    }
    for (path, expected) in [("/ids/flax", 405), ("/nothing", 404)] {
        let (status, ..) = asked.ask(&Method::OPTIONS, path, &of_page).await;
        assert_eq!(status, expected, "{path}: it is not a preflight request");
    }
    for origins in [
        [PAGE, "https://evil.example"],
        ["https://evil.example", PAGE],
    ] {
        let headers = [
            ("host", "localhost"),
            ("origin", origins[0]),
            ("origin", origins[1]),
        ];
        let (status, ..) = asked.ask(&Method::POST, "/ids/flax", &headers).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{origins:?}");
    }
    let rebound = [
        ("host", "rebound.example.net"),
        ("origin", PAGE),
        ("access-control-request-method", "POST"),
    ];
    let (status, headers, _) = asked.ask(&Method::OPTIONS, "/ids/flax", &rebound).await;
    assert_eq!(
        (status, allowed(&headers)),
        (StatusCode::MISDIRECTED_REQUEST, None)
    );

    let open = Asked::with(&[], &["*"]);
    let (status, headers, _) = open.ask(&Method::POST, "/ids/flax", &of_page).await;
    assert_eq!(
        (status, allowed(&headers).unwrap().to_str().unwrap()),
        (StatusCode::OK, "*")
    );
}

#[tokio::test]
async fn pages_of_an_allowed_origin_read_refusals() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens.toml");
    let digest: String = Sha256::digest("secret")
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let entry = format!("[[token]]\nname = 'mint'\nsha256 = '{digest}'\nscopes = ['mint']\n");
    std::fs::write(&tokens, entry).unwrap();
    let service = Service::start(&format!(
        "http.tokens = '{}'\nhttp.cors_origins = ['{PAGE}']\nhttp.rate = 2",
        tokens.display()
    ))
    .await;
    let long = format!("GET /ledgers?{}", "x".repeat(9_000));
    let token = "authorization: Bearer secret\r\n";
    for (target, token, status) in [
        (long.as_str(), "", 414),
        ("GET /ledgers", "", 401),
        ("GET /ledgers", token, 403),
        ("GET /ledgers", "", 429),
    ] {
        for (origin, allowed) in [(PAGE, Some(PAGE)), ("https://evil.example", None)] {
            let headers = format!("origin: {origin}\r\n{token}");
            let answer = service.exchange(&request(target, &headers, "")).await;
            assert_eq!(answer.status, status, "{answer:?}");
            assert_eq!(
                answer.header("access-control-allow-origin"),
                allowed,
                "{answer:?}"
            );
            assert_eq!(
                answer.header("vary"),
                allowed.map(|_| "origin"),
                "{answer:?}"
            );
        }
    }
}

#[tokio::test]
async fn nothing_is_said_about_origins_unless_some_are_allowed() {
    let asked = Asked::with(&[], &[]);
    let headers = [
        ("host", "localhost"),
        ("origin", PAGE),
        ("access-control-request-method", "POST"),
    ];
    let (status, headers, _) = asked.ask(&Method::OPTIONS, "/ids/flax", &headers).await;
    assert_eq!(status, 405);
    assert!(
        headers
            .keys()
            .all(|name| !name.as_str().starts_with("access-control")),
        "{headers:?}"
    );
}

#[tokio::test]
async fn the_cheat_sheet_does_not_repeat_what_a_request_names() {
    let asked = Asked::with(&["*"], &[]);
    let (status, _, sheet) = asked
        .ask(&Method::GET, "/", &[("host", "rebound.example.net")])
        .await;
    assert_eq!(status, 200);
    assert!(
        sheet.contains("http://localhost:8080/ids/") && !sheet.contains("rebound"),
        "{sheet}"
    );
}

#[tokio::test]
async fn the_cheat_sheet_names_where_the_service_listens() {
    let service = Service::start("").await;
    let address = service.connect().await.stream.peer_addr().unwrap();
    let sheet = service.get("/").await.text();
    assert!(
        sheet.contains(&format!("curl -X POST http://{address}/ids/")),
        "{sheet}"
    );
}

#[tokio::test]
async fn a_body_without_a_type_is_refused_by_every_route_that_takes_one() {
    let service = Service::start("").await;
    for target in [
        "/ids/snowflake",
        "/ids/conjunction",
        "/ids/evently",
        "/decode",
        "/ledgers",
        "/ledgers/aa77f99c/verify",
    ] {
        let untyped = |framing: &str, body: &str| {
            let head = format!(
                "POST {target} HTTP/1.1\r\nhost: localhost\r\nidempotency-key: 1\r\n{framing}\r\n\r\n"
            );
            head + body
        };
        let sized = untyped("content-length: 1", "1");
        let chunked = untyped("transfer-encoding: chunked", "1\r\n1\r\n0\r\n\r\n");
        for whole in [sized, chunked] {
            let answer = service.exchange(&whole).await;
            assert_eq!(answer.status, 415, "{whole}: {}", answer.text());
            assert!(
                answer.text().contains("content-type is missing"),
                "{whole}: {}",
                answer.text()
            );
        }
        let form = "content-type: application/x-www-form-urlencoded\r\nidempotency-key: 1\r\n";
        assert_eq!(
            service
                .exchange(&request(&format!("POST {target}"), form, "1"))
                .await
                .status,
            415,
            "{target}"
        );
        assert_ne!(
            service
                .exchange(&untyped("content-length: 0", ""))
                .await
                .status,
            415,
            "{target}: an empty body has none"
        );
    }
}

#[tokio::test]
async fn a_body_of_two_lengths_is_read_by_its_chunks_and_the_connection_closed() {
    let service = Service::start("").await;
    for lengths in [
        "transfer-encoding: chunked\r\ncontent-length: 3",
        "content-length: 3\r\ntransfer-encoding: chunked",
    ] {
        let mut client = service.connect().await;
        let json = "content-type: application/json";
        // The request has two lengths. If the server used Content-Length, the bytes after the first
        // chunk size would count as a second request.
        let smuggled = "POST /ids/flax HTTP/1.1\r\nhost: localhost\r\n\r\n";
        let body = format!("b\r\n{{\"count\":2}}\r\n0\r\n\r\n{smuggled}");
        let head = format!(
            "POST /ids/snowflake HTTP/1.1\r\nhost: localhost\r\n{json}\r\n{lengths}\r\n\r\n"
        );
        let answer = client.exchange(&(head + &body)).await;
        assert_eq!(
            (answer.status, answer.header("connection")),
            (200, Some("close")),
            "{lengths}: {}",
            answer.text()
        );
        assert_eq!(answer.header("idmint-count"), Some("2"), "{lengths}");
        assert_eq!(
            client.read_to_close().await,
            "",
            "{lengths}: nothing more is answered"
        );
    }
}
