//! The metrics of requests: their number, duration and status for each path.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::http::{Method, StatusCode};
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry,
};

use crate::route::templates;
use crate::routes::mint;

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

/// The statuses that the service-level indicators count as failures of requests for ids.
const MINT_FAILURES: [StatusCode; 3] = [
    StatusCode::INTERNAL_SERVER_ERROR,
    StatusCode::SERVICE_UNAVAILABLE,
    StatusCode::GATEWAY_TIMEOUT,
];

/// The upper bounds of the duration buckets, in seconds. They range from 50 µs, about the duration
/// of a mint, to 10 s, which is longer than any response takes by default.
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
    /// requests with the value 0. For `POST /ids/{format}`, also creates the series of failures,
    /// because `rate` in Prometheus ignores the first value of a new series. `routes` must be the
    /// routes of the route table.
    ///
    /// Each path has the form that it has in the route table, such as `/ids/{format}`.
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
            if *method == Method::POST && *path == mint::ROUTE {
                for status in MINT_FAILURES {
                    metrics.count(at + 1, method_index(method), status, 0);
                }
            }
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

    /// Starts to measure a request. `path` is the number of the request's path in the route table.
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
    fn every_route_and_every_failure_to_mint_is_there_at_zero() {
        let registry = Registry::new();
        let _metrics = HttpMetrics::register(&registry, &ROUTES).expect("an empty registry");
        let text = scrape(&registry);
        for series in [
            r#"idmint_http_requests_total{method="POST",route="/ids/{format}",status="200"} 0"#,
            r#"idmint_http_requests_total{method="POST",route="/ids/{format}",status="500"} 0"#,
            r#"idmint_http_requests_total{method="POST",route="/ids/{format}",status="503"} 0"#,
            r#"idmint_http_requests_total{method="POST",route="/ids/{format}",status="504"} 0"#,
            r#"idmint_http_requests_total{method="GET",route="/ledgers",status="200"} 0"#,
            r#"idmint_http_requests_total{method="POST",route="/ledgers",status="200"} 0"#,
            r#"idmint_http_requests_total{method="GET",route="unmatched",status="404"} 0"#,
            r#"idmint_http_request_duration_seconds_count{route="/ids/{format}"} 0"#,
            "idmint_http_in_flight 0",
        ] {
            assert!(text.contains(series), "{series} is not in\n{text}");
        }
        assert!(!text.contains(r#"route="/ledgers",status="503""#), "{text}");
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
