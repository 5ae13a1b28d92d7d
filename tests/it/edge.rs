//! Checks the edge, which every request passes first, whatever its path is. The edge can refuse,
//! count and time a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use idmint::server::assemble;
use idmint::server::config::Config;
use idmint_core::minting::Randomness;
use idmint_core::time::Clock;
use idmint_http::{Admission, Api, HostPolicy, HttpMetrics, Problem, Route, Slug, paths};
use prometheus::{Registry, TextEncoder};
use tower::ServiceExt;

/// The detail with which the marker refuses a request. The marker is an admission function of this
/// test, which shows that a request passed the edge.
const MARKER: &str = "the marker stands at the edge";

/// Creates an API whose admission function is the marker, which refuses every request if `refuses`
/// is `true`. Also returns a counter of the requests that reached the marker.
fn api(refuses: bool) -> (Api, Arc<AtomicUsize>, Registry) {
    let registry = Registry::new();
    let clock = Arc::new(Clock::system());
    let service = assemble(&Config::default(), clock, &Randomness::Thread, &registry).unwrap();
    let metrics = Arc::new(HttpMetrics::register(&registry, &paths()).unwrap());
    let seen = Arc::new(AtomicUsize::new(0));
    let marker: Admission = Arc::new({
        let seen = Arc::clone(&seen);
        move |_: &Route, _: &mut Request<Body>| {
            seen.fetch_add(1, Ordering::Relaxed);
            if refuses {
                Err(Problem::new(Slug::Draining, MARKER))
            } else {
                Ok(())
            }
        }
    });
    (
        Api::guarded(service, metrics, HostPolicy::default(), Some(marker)),
        seen,
        registry,
    )
}

/// Returns requests to every route, with a value for each parameter. Mint requests have both forms:
/// the common one that takes a fast path, and one that the router handles. Unknown paths and
/// methods are included.
pub(crate) fn requests() -> Vec<(Method, String)> {
    let fill = |path: &str| {
        let values = [
            ("{format}", "snowflake"),
            ("{*id}", "1I9ZC1000"),
            ("{ledger}", "aa77f99c"),
            ("{slug}", "draining"),
            ("{file}", "main.js"),
        ];
        let path = values.iter().fold(path.to_owned(), |path, (name, value)| {
            path.replace(name, value)
        });
        path.replace("{id}", "0005cd7556b05092aecc815daa77f99c")
    };
    let routes = paths()
        .into_iter()
        .map(|(method, path)| (method, fill(path)));
    let others = [
        (Method::POST, "/ids/flax?count=3"),
        (Method::POST, "/ids/%66lax"),
        (Method::POST, "/ids/nothing"),
        (Method::GET, "/ids/flax"),
        (Method::HEAD, "/formats"),
        (Method::OPTIONS, "/ids/flax"),
        (Method::DELETE, "/ledgers"),
        (Method::POST, "/ids/"),
        (Method::POST, "/ids/flax/more"),
        (Method::GET, "/no/such/route"),
    ];
    routes
        .chain(others.map(|(method, path)| (method, path.to_owned())))
        .collect()
}

async fn answer(api: &Api, method: &Method, path: &str) -> (StatusCode, String) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .body(Body::empty())
        .unwrap();
    let response = api.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let body = to_bytes(axum::body::Body::new(response.into_body()), 1 << 20)
        .await
        .unwrap();
    (status, String::from_utf8_lossy(&body).into_owned())
}

fn metrics(registry: &Registry) -> String {
    TextEncoder::new()
        .encode_to_string(&registry.gather())
        .unwrap()
}

#[tokio::test]
async fn whatever_is_refused_at_the_edge_gets_no_further() {
    let (api, seen, registry) = api(true);
    let requests = requests();
    assert!(
        requests.len() >= paths().len() + 10,
        "every route, the fast way and what there is not"
    );
    for (method, path) in &requests {
        let (status, body) = answer(&api, method, path).await;
        assert_eq!(
            status,
            StatusCode::SERVICE_UNAVAILABLE,
            "{method} {path}: {body}"
        );
        assert!(
            body.contains(MARKER),
            "{method} {path} went past the edge: {body}"
        );
    }
    assert_eq!(
        seen.load(Ordering::Relaxed),
        requests.len(),
        "each request passes the edge once"
    );
    let counted = metrics(&registry);
    let refused = counted
        .lines()
        .filter(|line| line.starts_with("idmint_http_requests_total") && line.contains("\"503\""));
    let refused: f64 = refused
        .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
        .sum();
    assert_eq!(
        refused,
        requests.len() as f64,
        "and is counted there: {counted}"
    );
    assert!(
        !counted.contains("route=\"/ids/{format}\",status=\"200\"} 1"),
        "nothing was minted: {counted}"
    );
}

#[tokio::test]
async fn what_the_edge_lets_in_is_answered_behind_it() {
    let (api, seen, _) = api(false);
    let requests = requests();
    for (method, path) in &requests {
        let (_, body) = answer(&api, method, path).await;
        assert!(!body.contains(MARKER), "{method} {path}: {body}");
    }
    assert_eq!(seen.load(Ordering::Relaxed), requests.len());
    assert_eq!(
        answer(&api, &Method::POST, "/ids/flax?count=3").await.0,
        StatusCode::OK
    );
}
