//! The route table, which the edge queries once per request, and the metrics for each path.
//!
//! Admission, counters, audit and dispatch all use the route that the table returns.

use std::convert::Infallible;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::extract::Request;
use axum::http::{Method, Response, StatusCode};
use axum::routing::{MethodRouter, any};
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry,
};
use tower::Service;

use crate::access::Need;
use crate::answer::{AnswerBody, Problem, Slug};

/// One operation of the API: its name, method and path, the permission it needs, and its handler.
pub struct Row<S = ()> {
    pub(super) name: &'static str,
    pub(super) method: Method,
    pub(super) path: &'static str,
    need: Need,
    is_audited: bool,
    handler: MethodRouter<S>,
}

/// Returns a row of the table. Paths have axum's syntax: `/ledgers/{ledger}/ids/{id}`,
/// `/decode/{*id}`.
pub(super) fn row<S>(
    name: &'static str,
    method: Method,
    path: &'static str,
    need: Need,
    handler: MethodRouter<S>,
) -> Row<S> {
    Row {
        name,
        method,
        path,
        need,
        is_audited: false,
        handler,
    }
}

impl<S> Row<S> {
    /// Returns an operation that needs no permission.
    pub fn open(
        name: &'static str,
        method: Method,
        path: &'static str,
        handler: MethodRouter<S>,
    ) -> Row<S> {
        row(name, method, path, Need::Nothing, handler)
    }

    /// Returns the method and the path. They are the labels of the operation's metrics.
    pub fn operation(&self) -> (Method, &'static str) {
        (self.method.clone(), self.path)
    }

    /// Marks the operation as audited: each of its requests is recorded in the audit trail,
    /// whatever the outcome. Audited operations mint ids, or change a ledger or a series of
    /// numbers.
    pub(super) fn audited(self) -> Row<S> {
        Row {
            is_audited: true,
            ..self
        }
    }
}

/// The table's entry for a method and a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The number of the path in the table, from 1. 0 if the table does not have the path.
    pub(super) path: usize,
    /// The path as written in the table, such as `/ids/{format}`. Empty if the request has no
    /// handler.
    pub(super) template: &'static str,
    pub(super) need: Need,
    pub(super) is_audited: bool,
}

impl Route {
    /// The route of all paths that are not in the table.
    pub(super) const UNMATCHED: Route = Route::unanswered(0);

    /// Returns the route of requests without a handler: for an unknown path (`path` is 0), or for
    /// an unknown method of a path. If the service requires tokens, the route needs one of any
    /// scope, so that strangers do not learn which routes exist. Preflight requests never need a
    /// token.
    const fn unanswered(path: usize) -> Route {
        Route {
            path,
            template: "",
            need: Need::Token,
            is_audited: false,
        }
    }
}

/// All operations, indexed by path.
#[derive(Clone)]
pub struct RouteTable {
    by_path: matchit::Router<usize>,
    /// The operations of each path. The first entry is for paths that are not in the table.
    paths: Vec<Operations>,
}

/// The operations of one path.
#[derive(Clone)]
struct Operations {
    by_method: Vec<(Method, Route)>,
    other: Route,
    handler: MethodRouter,
}

/// A request in progress, until its route has a response.
pub(super) type Routed = Pin<Box<dyn Future<Output = Response<AnswerBody>> + Send>>;

impl RouteTable {
    /// Returns a table of these operations, whose handlers receive `service`.
    ///
    /// # Panics
    /// Panics if an operation is given twice, or if axum does not accept a path.
    pub fn new<S: Clone + Send + Sync + 'static>(rows: Vec<Row<S>>, service: &S) -> RouteTable {
        let unmatched = Operations {
            by_method: Vec::new(),
            other: Route::UNMATCHED,
            handler: any(not_found),
        };
        let mut table = RouteTable {
            by_path: matchit::Router::new(),
            paths: vec![unmatched],
        };
        let templates = templates(rows.iter().map(|row| row.path));
        for template in &templates {
            let number = table.paths.len();
            table
                .by_path
                .insert(*template, number)
                .expect("no two paths of the table take the same requests");
            let handler = MethodRouter::new().fallback(method_not_allowed);
            let other = Route::unanswered(number);
            table.paths.push(Operations {
                by_method: Vec::new(),
                other,
                handler,
            });
        }
        for Row {
            method,
            path: template,
            need,
            is_audited,
            handler,
            ..
        } in rows
        {
            let at = templates
                .iter()
                .position(|known| *known == template)
                .expect("every path of the table is one");
            let operations = &mut table.paths[at + 1];
            let route = Route {
                template,
                need,
                is_audited,
                ..operations.other
            };
            operations.by_method.push((method, route));
            operations.handler =
                mem::take(&mut operations.handler).merge(handler.with_state(service.clone()));
        }
        table
    }

    /// Returns the number of this path in the table, which is at least 1, or 0 if the table does
    /// not have the path.
    #[inline]
    pub(super) fn number_of(&self, path: &str) -> usize {
        self.by_path.at(path).map_or(0, |found| *found.value)
    }

    /// Returns the route for `method` on the path with the number `path`. `HEAD` has the same route
    /// as `GET`.
    #[inline]
    pub(super) fn route_of(&self, path: usize, method: &Method) -> &Route {
        let Operations {
            by_method, other, ..
        } = &self.paths[path];
        let method = if *method == Method::HEAD {
            &Method::GET
        } else {
            method
        };
        by_method
            .iter()
            .find(|(known, _)| known == method)
            .map_or(other, |(_, route)| route)
    }

    /// Starts to handle a request on this route.
    pub(super) fn answer(&self, route: &Route, request: Request) -> Routed {
        let answering = self.paths[route.path].handler.clone().call(request);
        Box::pin(async move {
            let answer: Result<_, Infallible> = answering.await;
            answer
                .unwrap_or_else(|never| match never {})
                .map(AnswerBody::from)
        })
    }
}

/// Returns the distinct paths of a table, in the order of their first rows. The first path has the
/// number 1.
pub(super) fn templates(paths: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let mut templates = Vec::new();
    for path in paths {
        if !templates.contains(&path) {
            templates.push(path);
        }
    }
    templates
}

/// Returns the problem for a path that is not in the table.
pub(crate) async fn not_found(request: Request) -> Problem {
    let path = request.uri().path();
    Problem::new(Slug::NotFound, format!("no route has the path {path:?}"))
        .example("GET /openapi.yaml")
}

/// Returns the problem for a method that the path does not have. The router adds the header
/// `Allow`.
pub(crate) async fn method_not_allowed(request: Request) -> Problem {
    let (method, path) = (request.method(), request.uri().path());
    Problem::new(
        Slug::MethodNotAllowed,
        format!("{method} does not apply to {path:?}; see the header Allow"),
    )
}

/// The metric label `route` of all requests whose path is not in the route table.
pub(crate) const UNMATCHED: &str = "unmatched";

const OTHER_METHOD: &str = "other";
const METHODS: [Method; 7] = [
    Method::GET,
    Method::POST,
    Method::HEAD,
    Method::PUT,
    Method::DELETE,
    Method::PATCH,
    Method::OPTIONS,
];
const METHOD_LABELS: usize = METHODS.len() + 1;

/// The statuses whose counters are found by index. Rare statuses such as 501 are counted as well,
/// but more slowly.
const STATUSES: [u16; 22] = [
    200, 201, 503, 404, 422, 400, 401, 403, 405, 406, 408, 409, 413, 414, 415, 421, 429, 500, 504,
    204, 304, 301,
];

/// The upper bounds of the duration buckets, in seconds. They range from 50 µs, about the duration
/// of a mint, to 10 s, which is longer than any response may take.
const DURATION_BUCKETS_SECONDS: [f64; 14] = [
    50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 100e-3, 250e-3, 1.0, 2.5, 10.0,
];

/// The metrics `idmint_http_requests_total`, `idmint_http_request_duration_seconds` and
/// `idmint_http_in_flight`.
///
/// The number of time series is bounded: a request is labelled with the path of its route or with
/// `unmatched`, and an unusual method is labelled `other`. Each combination of labels looks up its
/// counter once. Afterwards the counter is found by index.
pub struct HttpMetrics {
    requests: IntCounterVec,
    in_flight: IntGauge,
    /// The time series of each path, by path number in the route table. The first entry is for
    /// paths that are not in the table.
    paths: Vec<PathSeries>,
}

struct PathSeries {
    path: &'static str,
    duration: Histogram,
    /// The counters by method and status, each set when it is first used.
    requests: [[OnceLock<IntCounter>; STATUSES.len()]; METHOD_LABELS],
}

impl HttpMetrics {
    /// Registers the metrics. For each of these routes, creates the time series of successful
    /// requests with the value 0. `routes` must be the routes of the route table.
    ///
    /// A route is written as in the table: `/ids/{format}`.
    ///
    /// # Errors
    /// Returns an error if the registry already has metrics of these names.
    pub fn register(
        registry: &Registry,
        routes: &[(Method, &'static str)],
    ) -> prometheus::Result<Self> {
        let requests = IntCounterVec::new(
            Opts::new(
                "idmint_http_requests_total",
                "Requests answered, by route, method and status.",
            ),
            &["route", "method", "status"],
        )?;
        let opts = HistogramOpts::new(
            "idmint_http_request_duration_seconds",
            "Time until the response head.",
        );
        let durations =
            HistogramVec::new(opts.buckets(DURATION_BUCKETS_SECONDS.to_vec()), &["route"])?;
        let in_flight = IntGauge::new("idmint_http_in_flight", "Requests in progress.")?;
        registry.register(Box::new(requests.clone()))?;
        registry.register(Box::new(durations.clone()))?;
        registry.register(Box::new(in_flight.clone()))?;

        let templates = templates(routes.iter().map(|(_, path)| *path));
        let paths = [UNMATCHED]
            .into_iter()
            .chain(templates.iter().copied())
            .map(|path| {
                let duration = durations.with_label_values(&[path]);
                PathSeries {
                    path,
                    duration,
                    requests: Default::default(),
                }
            });
        let metrics = Self {
            requests,
            in_flight,
            paths: paths.collect(),
        };
        metrics.count(0, 0, StatusCode::NOT_FOUND, 0);
        for (method, path) in routes {
            let at = templates
                .iter()
                .position(|known| known == path)
                .expect("every path of the table is one");
            metrics.count(at + 1, method_index(method), StatusCode::OK, 0);
        }
        Ok(metrics)
    }

    /// Returns the number of requests in flight.
    #[inline]
    pub(super) fn in_flight(&self) -> usize {
        usize::try_from(self.in_flight.get()).unwrap_or(0)
    }

    /// Returns the gauge of requests in flight.
    pub(super) fn shown_in_flight(&self) -> &IntGauge {
        &self.in_flight
    }

    /// Starts to measure a request whose path has this number in the route table.
    pub(crate) fn begin(self: &Arc<Self>, path: usize, method: &Method) -> Measured {
        self.in_flight.inc();
        Measured {
            metrics: Arc::clone(self),
            path,
            method: method_index(method),
            began: Instant::now(),
        }
    }

    /// Adds `requests` to one counter. The counter is created even if `requests` is 0.
    fn count(&self, path: usize, method: usize, status: StatusCode, requests: u64) {
        let series = &self.paths[path];
        let method_label = METHODS.get(method).map_or(OTHER_METHOD, Method::as_str);
        let look_up = || {
            self.requests
                .with_label_values(&[series.path, method_label, status.as_str()])
        };
        match STATUSES.iter().position(|known| *known == status.as_u16()) {
            Some(known) => series.requests[method][known]
                .get_or_init(look_up)
                .inc_by(requests),
            None => look_up().inc_by(requests),
        }
    }
}

/// A request in progress. It counts as in flight until this value is dropped. If the caller
/// disconnects, the value is dropped and the request is not counted as answered.
pub(crate) struct Measured {
    metrics: Arc<HttpMetrics>,
    path: usize,
    method: usize,
    began: Instant,
}

impl Measured {
    /// Counts the response to the request, and observes the time since the request began.
    pub(super) fn count_answer(&self, status: StatusCode) {
        self.metrics.count(self.path, self.method, status, 1);
        self.metrics.paths[self.path]
            .duration
            .observe(self.began.elapsed().as_secs_f64());
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        self.metrics.in_flight.dec();
    }
}

fn method_index(method: &Method) -> usize {
    METHODS
        .iter()
        .position(|known| known == method)
        .unwrap_or(METHODS.len())
}

#[cfg(test)]
mod tests {
    use prometheus::TextEncoder;

    use super::*;

    const ROUTES: [(Method, &str); 3] = [
        (Method::POST, "/ids/{format}"),
        (Method::GET, "/ledgers"),
        (Method::POST, "/ledgers"),
    ];

    fn scrape(registry: &Registry) -> String {
        TextEncoder::new()
            .encode_to_string(&registry.gather())
            .expect("metrics encode")
    }

    #[test]
    fn every_route_is_there_at_zero() {
        let registry = Registry::new();
        let _metrics = HttpMetrics::register(&registry, &ROUTES).expect("an empty registry");
        let text = scrape(&registry);
        for series in [
            r#"idmint_http_requests_total{method="POST",route="/ids/{format}",status="200"} 0"#,
            r#"idmint_http_requests_total{method="GET",route="/ledgers",status="200"} 0"#,
            r#"idmint_http_requests_total{method="POST",route="/ledgers",status="200"} 0"#,
            r#"idmint_http_requests_total{method="GET",route="unmatched",status="404"} 0"#,
            r#"idmint_http_request_duration_seconds_count{route="/ids/{format}"} 0"#,
            "idmint_http_in_flight 0",
        ] {
            assert!(text.contains(series), "{series} is not in\n{text}");
        }
    }

    #[test]
    fn labels_are_bounded() {
        let registry = Registry::new();
        let metrics =
            Arc::new(HttpMetrics::register(&registry, &ROUTES).expect("an empty registry"));
        let odd = Method::from_bytes(b"BREW").expect("a token");
        metrics.begin(0, &odd).count_answer(StatusCode::IM_A_TEAPOT);
        metrics.begin(2, &Method::GET).count_answer(StatusCode::OK);
        let text = scrape(&registry);
        assert!(
            text.contains(r#"{method="other",route="unmatched",status="418"} 1"#),
            "{text}"
        );
        assert!(
            text.contains(r#"{method="GET",route="/ledgers",status="200"} 1"#),
            "{text}"
        );
        assert!(!text.contains("heard") && !text.contains("BREW"));
    }

    #[test]
    fn a_request_is_in_flight_until_it_is_dropped() {
        let registry = Registry::new();
        let metrics =
            Arc::new(HttpMetrics::register(&registry, &ROUTES).expect("an empty registry"));
        let measured = metrics.begin(0, &Method::GET);
        assert!(scrape(&registry).contains("idmint_http_in_flight 1"));
        drop(measured);
        assert!(scrape(&registry).contains("idmint_http_in_flight 0"));
    }
}
