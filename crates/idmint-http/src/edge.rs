//! The edge: the layer through which every request and every response passes. The API consists of
//! the edge and the routes inside it.

use std::any::Any;
use std::convert::Infallible;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, Uri, header};
use pin_project_lite::pin_project;
use tower::{ServiceExt, service_fn};
use tracing::error;

use super::http_metrics::{HttpMetrics, Measured};
use super::route::{Route, RouteTable, Routed};
use super::route_table::route_table;
use super::routes::mint;
use crate::access::{Caller, Guard, Need, Permit, RATELIMIT, RATELIMIT_POLICY};
use crate::answer::{Answer, AnswerBody, NO_SNIFFING, Problem, Slug, X_REQUEST_ID, name_instance};
use crate::host_policy::{Cors, HostPolicy, allow_reading};
use crate::request::{
    LateBody, check_transfer_coding, request_id, sender, trace_parent, traceparent_of,
};
use idmint_service::{BudgetOwner, Load, MaybeReady, PendingBodies, Service, Shed, WorkLimits};

/// The header that marks the responses of a test service. The ids of a test service are not unique,
/// because other services may mint the same ids.
const IDMINT_TEST: HeaderName = HeaderName::from_static("idmint-test");
const OF_TEST: HeaderValue = HeaderValue::from_static("true");

/// The headers that a response keeps if a refusal replaces it, besides the request id.
const KEPT_HEADERS: [HeaderName; 6] = [
    IDMINT_TEST,
    RATELIMIT,
    RATELIMIT_POLICY,
    header::ACCESS_CONTROL_ALLOW_ORIGIN,
    header::ACCESS_CONTROL_EXPOSE_HEADERS,
    header::VARY,
];

/// The maximum length of a request's path and query together, in bytes.
const URI_LEN_MAX: usize = 8 * 1024;

/// A function that admits or refuses a request on this route, before any work is done for it. The
/// function may attach the caller's permit to the request.
pub type Admission = Arc<dyn Fn(&Route, &mut Request) -> Result<(), Problem> + Send + Sync>;

/// A request handler that an [`Edge`] can wrap.
pub trait Handle {
    /// The future that resolves to the response.
    type Answering: Future<Output = Response<AnswerBody>>;

    /// Returns the route of a request.
    fn route(&self, method: &Method, path: &str) -> &Route;

    /// Starts to handle a request on this route.
    fn handle(&self, route: &Route, request: Request) -> Self::Answering;
}

/// A request handler wrapped in the edge, the layer that every request and response passes.
///
/// The edge admits or refuses requests, and counts and times them. Every response carries
/// `X-Request-Id`. A URI longer than `URI_LEN_MAX` gets 414, and an unsupported transfer coding
/// gets 501. A request with a wrong host, or from a page of another site, gets 400, 421 or 403, as
/// [`HostPolicy`] describes. If the handler panics, the caller gets 500.
pub struct Edge<H>(Arc<Parts<H>>);

/// The parts that all clones of an [`Edge`] share. Every request clones the `Arc` around them.
struct Parts<H> {
    handler: H,
    metrics: Arc<HttpMetrics>,
    requests: Arc<WorkLimits>,
    bodies: Arc<PendingBodies>,
    host_policy: HostPolicy,
    admission: Option<Admission>,
    /// `true` if every response is marked with `Idmint-Test`.
    is_test: bool,
}

impl<H> Clone for Edge<H> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Returns an [`Edge`] around this route table, with the default [`HostPolicy`] and without access
/// control.
pub fn complete(routes: RouteTable, metrics: Arc<HttpMetrics>) -> Edge<RouteTable> {
    let (load, host_policy) = (Load::default(), HostPolicy::default());
    Edge::around(routes, metrics, &load, host_policy, None, false)
}

impl<H> Edge<H> {
    /// Returns `handler` wrapped in the checks of the [`Edge`], with this host policy. `admission`
    /// is called for every request that the host policy admits.
    fn around(
        handler: H,
        metrics: Arc<HttpMetrics>,
        load: &Load,
        host_policy: HostPolicy,
        admission: Option<Admission>,
        is_test: bool,
    ) -> Self {
        let (requests, bodies) = (Arc::clone(&load.requests), Arc::clone(&load.bodies));
        Self(Arc::new(Parts {
            handler,
            metrics,
            requests,
            bodies,
            host_policy,
            admission,
            is_test,
        }))
    }
}

impl Handle for RouteTable {
    type Answering = Routed;

    fn route(&self, method: &Method, path: &str) -> &Route {
        self.route_of(self.number_of(path), method)
    }

    fn handle(&self, route: &Route, request: Request) -> Routed {
        self.answer(route, request)
    }
}

impl<H: Handle> tower::Service<Request> for Edge<H> {
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = Passage<H::Answering>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // The edge is always ready, because its routes are always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request) -> Passage<H::Answering> {
        let parts = &*self.0;
        let route = parts.handler.route(request.method(), request.uri().path());
        let measured = parts.metrics.begin(route.path, request.method());
        if route.is_audited
            && let Some(caller) = Caller::of(request.extensions())
        {
            caller.note.is_to_be_told();
        }
        let request_id = request_id(request.headers());
        let traceparent = traceparent_of(request.headers()).cloned();
        let allowed_origin = parts.host_policy.allowed_origin(&request);
        // The connection layer attaches the reason if it could not reserve memory for the request.
        let has_room = match request.extensions().get::<Shed>() {
            Some(shed) => Err(Problem::from(*shed)),
            None => check_room(&parts.requests, &parts.metrics, request.uri()),
        };
        let has_body = !request.body().is_end_stream();
        let is_read = has_room.and_then(|()| {
            if has_body {
                check_transfer_coding(request.headers())
            } else {
                Ok(())
            }
        });
        let admitted = is_read
            .and_then(|()| parts.host_policy.check(&request))
            .and_then(|()| match &parts.admission {
                Some(admission) => admission(route, &mut request),
                None => Ok(()),
            });
        if admitted.is_ok() && has_body {
            request = with_late_body(request, &parts.bodies, &parts.metrics);
        }
        // Write the future directly into this variable and do not return it from the closure. The
        // future is large, and each move of it costs as much as reading a header.
        let mut answering = None;
        let begun = admitted.and_then(|()| {
            catch_panic(&request_id, traceparent.as_ref(), || {
                answering = Some(parts.handler.handle(route, request))
            })
        });
        let refusal = begun.err();
        Passage {
            answering,
            refusal,
            request_id,
            traceparent,
            allowed_origin,
            measured,
            is_test: parts.is_test,
        }
    }
}

pin_project! {
    /// A request in progress, until the head of its response is ready.
    pub struct Passage<F> {
        #[pin]
        answering: Option<F>,
        // The reason why the request is refused.
        refusal: Option<Problem>,
        request_id: HeaderValue,
        traceparent: Option<HeaderValue>,
        // The value of `Access-Control-Allow-Origin`, if a page of another origin sent the request
        // and may read the response.
        allowed_origin: Option<HeaderValue>,
        measured: Measured,
        is_test: bool,
    }
}

impl<F: Future<Output = Response<AnswerBody>>> Future for Passage<F> {
    type Output = Result<Response<AnswerBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = match this.answering.as_pin_mut() {
            Some(answering) => {
                match catch_panic(this.request_id, this.traceparent.as_ref(), || {
                    answering.poll(context)
                }) {
                    Ok(answer) => ready!(answer),
                    Err(problem) => problem.into_answer(),
                }
            }
            None => this
                .refusal
                .take()
                .expect("a future that is ready is not polled again")
                .into_answer(),
        };
        // A response that consists of minted ids is never a problem document, and already has the
        // header `X-Content-Type-Options`.
        let is_of_ids = response.body().is_of_ids();
        if !is_of_ids {
            name_instance(&mut response, this.request_id);
        }
        let request_id = mem::replace(this.request_id, HeaderValue::from_static(""));
        let headers = response.headers_mut();
        headers.insert(X_REQUEST_ID, request_id);
        if !is_of_ids {
            headers.insert(header::X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
        }
        if let Some(allowed_origin) = this.allowed_origin.take() {
            allow_reading(headers, allowed_origin);
        }
        if *this.is_test {
            headers.insert(IDMINT_TEST, OF_TEST);
        }
        this.measured.count_answer(response.status());
        Poll::Ready(Ok(response))
    }
}

/// Returns the refusal that replaces a response for which too little memory is free. `replaced` are
/// the headers of that response, of which the refusal keeps those in `KEPT_HEADERS`.
pub fn turn_away(replaced: &HeaderMap, shed: Shed) -> Response<AnswerBody> {
    let request_id = request_id(replaced);
    let mut response = Problem::from(shed).into_answer();
    name_instance(&mut response, &request_id);
    let headers = response.headers_mut();
    headers.insert(X_REQUEST_ID, request_id);
    for name in KEPT_HEADERS {
        for value in replaced.get_all(&name) {
            headers.append(&name, value.clone());
        }
    }
    response
}

/// Wraps the body of a request, so that the request does not count as in flight while the service
/// waits for the body.
fn with_late_body(request: Request, bodies: &Arc<PendingBodies>, metrics: &HttpMetrics) -> Request {
    let permit = request.extensions().get::<Arc<Permit>>().cloned();
    let owner = request.extensions().get::<BudgetOwner>().cloned();
    let sender = move || sender(permit.as_deref(), owner.as_ref());
    request.map(|body| {
        Body::new(LateBody::new(
            body,
            Arc::clone(bodies),
            sender,
            metrics.shown_in_flight().clone(),
        ))
    })
}

/// Checks that the service has room for this request, and that the request's URI is not too long.
/// The request must already be counted as in flight.
fn check_room(requests: &WorkLimits, metrics: &HttpMetrics, uri: &Uri) -> Result<(), Problem> {
    if !requests.has_room(metrics.in_flight()) && !is_probe(uri) {
        return Err(requests.turn_away().into());
    }
    check_uri(uri)
}

/// `true` if this is the URI of a health or metrics probe. Probes are served under any load.
pub fn is_probe(uri: &Uri) -> bool {
    uri.path().starts_with("/health/") || uri.path() == "/metrics"
}

fn check_uri(uri: &Uri) -> Result<(), Problem> {
    let len = uri
        .path_and_query()
        .map_or(0, |path_and_query| path_and_query.as_str().len());
    if len <= URI_LEN_MAX {
        return Ok(());
    }
    let detail = format!("path and query are {len} bytes long; the limit is {URI_LEN_MAX}");
    Err(Problem::new(Slug::UriTooLong, detail).limit(format!("{URI_LEN_MAX} bytes")))
}

/// Returns the result of `work`, or a problem if `work` panics. The panic is logged. The caller
/// gets only the request id, with which the log can be searched.
fn catch_panic<T>(
    request_id: &HeaderValue,
    traceparent: Option<&HeaderValue>,
    work: impl FnOnce() -> T,
) -> Result<T, Problem> {
    // Unwind safe, because a handler that panicked is never polled again.
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic: Box<dyn Any + Send>| {
        let message = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let traceparent = traceparent.and_then(trace_parent);
        error!(
            ?request_id,
            traceparent,
            "a handler panicked: {}",
            message.unwrap_or("without a message")
        );
        Problem::new(
            Slug::InternalError,
            "the service failed on this request; see its log under this instance",
        )
    })
}

/// The whole API: all routes inside one [`Edge`].
pub type Api = Edge<Dispatch>;

impl Api {
    /// Returns the API of this service without access control. `host_policy` decides for which
    /// hosts and from which web pages requests are accepted.
    pub fn new(service: Arc<Service>, metrics: Arc<HttpMetrics>, host_policy: HostPolicy) -> Self {
        Self::guarded(service, metrics, host_policy, None)
    }

    /// Returns an API that serves only the probe routes, `/metrics` and `/health/*`. If `guard` is
    /// given, it decides which callers are admitted.
    pub fn of_probes(
        guard: Option<Arc<Guard>>,
        service: Arc<Service>,
        metrics: Arc<HttpMetrics>,
        host_policy: HostPolicy,
    ) -> Self {
        let guarded = guard.map(Guard::admission);
        let admission: Admission = Arc::new(move |route, request| match &guarded {
            _ if !is_probe(request.uri()) => {
                let detail = "this address serves only /metrics and /health/*";
                Err(Problem::new(Slug::NotFound, detail))
            }
            Some(guarded) => guarded(route, request),
            None => Ok(()),
        });
        Self::guarded(service, metrics, host_policy, Some(admission))
    }

    /// Returns the same API as [`Api::new`], but calls `admission` for each request before any work
    /// is done for it. `admission` may refuse the request.
    pub fn guarded(
        service: Arc<Service>,
        metrics: Arc<HttpMetrics>,
        host_policy: HostPolicy,
        admission: Option<Admission>,
    ) -> Self {
        let table = route_table(&service, host_policy.address, !host_policy.is_without_page);
        let mint_path = table.number_of(mint::ROUTE);
        let (is_test, load) = (service.clock().is_standing(), service.load().clone());
        let routes = Routes {
            service,
            mint_path,
            table,
        };
        let cors = host_policy.cors();
        let dispatch = Dispatch { routes, cors };
        Edge::around(dispatch, metrics, &load, host_policy, admission, is_test)
    }
}

/// The routes, with responses to the preflight requests of browsers.
pub struct Dispatch {
    routes: Routes,
    /// The CORS layer, or `None` if pages of other origins may not read responses.
    cors: Option<Cors>,
}

/// The mint handler, and the route table for all other requests.
///
/// Nearly every request is a mint. A mint bypasses axum, because axum's dispatch costs more than
/// the mint itself. A mint through the route table would end in the same handler.
#[derive(Clone)]
struct Routes {
    service: Arc<Service>,
    /// The number of the path [`mint::ROUTE`] in the route table.
    mint_path: usize,
    table: RouteTable,
}

impl Handle for Dispatch {
    type Answering = Answering;

    #[inline]
    fn route(&self, method: &Method, path: &str) -> &Route {
        let Routes {
            mint_path, table, ..
        } = &self.routes;
        // Mint requests skip the lookup in the route table, because they are the most frequent
        // requests. A mint takes 7 640 instructions this way, and 8 909 with the table and
        // `path_params`.
        let number = if mint::format_name(path).is_some() {
            *mint_path
        } else {
            table.number_of(path)
        };
        table.route_of(number, method)
    }

    fn handle(&self, route: &Route, request: Request) -> Answering {
        match &self.cors {
            Some(cors) if is_preflight(&request) => {
                let (routes, route) = (self.routes.clone(), *route);
                let answering = service_fn(move |request| {
                    let answering = routes.handle(&route, request);
                    async move { Ok::<_, Infallible>(answering.await) }
                });
                let shared = cors.around(answering).oneshot(request);
                let answer = async move { shared.await.unwrap_or_else(|never| match never {}) };
                Answering::Elsewhere {
                    answer: Box::pin(answer),
                }
            }
            _ => self.routes.handle(route, request),
        }
    }
}

/// `true` for a preflight request, in which a browser asks if a page may send a request. The CORS
/// layer answers every `OPTIONS` request with 200, so other `OPTIONS` requests must not reach it.
/// Source: Fetch, CORS-preflight request, <https://fetch.spec.whatwg.org/#cors-preflight-request>.
fn is_preflight(request: &Request) -> bool {
    let headers = request.headers();
    *request.method() == Method::OPTIONS
        && headers.contains_key(header::ORIGIN)
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

impl Routes {
    fn handle(&self, route: &Route, request: Request) -> Answering {
        match route.need {
            Need::MintFormat => Answering::Minting {
                answer: mint::mint(&self.service, request),
            },
            _ => Answering::Elsewhere {
                answer: self.table.answer(route, request),
            },
        }
    }
}

pin_project! {
    /// A request in progress, until its response is ready.
    #[project = AnsweringProjection]
    pub enum Answering {
        Minting { #[pin] answer: MaybeReady<Answer<AnswerBody>> },
        // Boxed, because this future is large. Without the box, the future of every mint would be
        // as large, and slower to move.
        Elsewhere { answer: Routed },
    }
}

impl Future for Answering {
    type Output = Response<AnswerBody>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response<AnswerBody>> {
        match self.project() {
            AnsweringProjection::Minting { answer } => answer
                .poll(context)
                .map(|answer| answer.unwrap_or_else(Problem::into_answer)),
            AnsweringProjection::Elsewhere { answer } => answer.as_mut().poll(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Pending, pending};
    use std::time::Duration;

    use axum::http::StatusCode;
    use axum::routing::{MethodFilter, on};
    use prometheus::Registry;
    use tower::Service as _;

    use crate::route::Row;
    use crate::route_table::paths;
    use idmint_service::MemoryBudget;

    use super::*;

    /// A handler that never completes.
    struct Never;

    impl Handle for Never {
        type Answering = Pending<Response<AnswerBody>>;

        fn route(&self, _: &Method, _: &str) -> &Route {
            &Route::UNMATCHED
        }

        fn handle(&self, _: &Route, _: Request) -> Self::Answering {
            pending()
        }
    }

    #[tokio::test]
    async fn a_request_beyond_those_that_may_be_in_flight_is_shed_at_once_and_a_probe_is_not() {
        let metrics =
            Arc::new(HttpMetrics::register(&Registry::new(), &[]).expect("an empty registry"));
        let load = Load::new(MemoryBudget::LEAST, 2);
        let mut edge = Edge::around(
            Never,
            Arc::clone(&metrics),
            &load,
            HostPolicy::default(),
            None,
            false,
        );
        let mut ask = |path: &str| {
            let request = Request::builder()
                .uri(path)
                .header(header::HOST, "localhost")
                .body(Body::empty());
            edge.call(request.expect("a request"))
        };
        let (mut first, second) = (Box::pin(ask("/formats")), ask("/formats"));
        let Ok(refused) = ask("/formats").await;
        let headers = refused.headers();
        assert_eq!(
            (refused.status(), &headers[header::RETRY_AFTER]),
            (
                StatusCode::SERVICE_UNAVAILABLE,
                &"1".parse().expect("a value")
            )
        );
        assert_eq!(load.counts.of(Shed::InFlight), 1);
        let mut probe = Box::pin(ask("/health/ready"));
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert!(
            first.as_mut().poll(&mut context).is_pending()
                && probe.as_mut().poll(&mut context).is_pending()
        );
        drop((second, probe));
        assert!(
            Box::pin(ask("/formats"))
                .as_mut()
                .poll(&mut context)
                .is_pending(),
            "there is room again"
        );
        drop(first);
        assert_eq!(metrics.in_flight(), 0);
    }

    #[tokio::test]
    async fn a_request_without_reserved_memory_is_refused_and_counted() {
        let registry = Registry::new();
        let metrics = HttpMetrics::register(&registry, &[]).expect("an empty registry");
        let (load, host_policy) = (Load::default(), HostPolicy::default());
        let mut edge = Edge::around(Never, metrics.into(), &load, host_policy, None, false);
        let request = Request::post("/ids/flax")
            .header(header::HOST, "localhost")
            .extension(Shed::Memory)
            .body(Body::from("unread"));
        let refused = edge.call(request.expect("a request"));
        let refused = tokio::time::timeout(Duration::ZERO, refused).await;
        let Ok(refused) = refused.expect("it is not passed to its handler");
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(refused.headers().contains_key(X_REQUEST_ID));
        let counted = registry.gather();
        let counted = counted
            .iter()
            .filter(|family| family.name() == "idmint_http_requests_total")
            .flat_map(|family| family.get_metric())
            .filter(|metric| {
                metric
                    .get_label()
                    .iter()
                    .any(|label| label.value() == "503")
            });
        assert_eq!(
            counted
                .map(|one| one.get_counter().get_value())
                .sum::<f64>(),
            1.0
        );
    }

    #[test]
    fn only_a_request_that_names_its_origin_and_method_is_a_preflight() {
        let is_preflight = |method: Method, names: &[HeaderName]| {
            let mut request = Request::new(Body::empty());
            *request.method_mut() = method;
            for name in names {
                let value = HeaderValue::from_static("POST");
                request.headers_mut().insert(name, value);
            }
            is_preflight(&request)
        };
        let both = [header::ORIGIN, header::ACCESS_CONTROL_REQUEST_METHOD];
        assert!(is_preflight(Method::OPTIONS, &both));
        assert!(!is_preflight(Method::POST, &both));
        assert!(!is_preflight(Method::OPTIONS, &both[..1]));
        assert!(!is_preflight(Method::OPTIONS, &both[1..]));
    }

    #[test]
    fn a_refusal_keeps_the_headers_about_the_caller_of_the_response_that_it_replaces() {
        let mut replaced = HeaderMap::new();
        for name in [X_REQUEST_ID].into_iter().chain(KEPT_HEADERS) {
            replaced.insert(name, HeaderValue::from_static("kept"));
        }
        replaced.insert(header::ETAG, HeaderValue::from_static("dropped"));
        let response = turn_away(&replaced, Shed::Memory);
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        let headers = response.headers();
        assert_eq!(headers[header::CACHE_CONTROL], "no-store");
        assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert_eq!(headers[X_REQUEST_ID], "kept");
        assert!(KEPT_HEADERS.iter().all(|name| headers[name] == "kept"));
        assert!(!headers.contains_key(header::ETAG));
    }

    #[test]
    fn the_way_past_the_table_takes_the_paths_that_the_table_takes_for_mints() {
        let row = |(method, path): (Method, &'static str)| {
            let only = MethodFilter::try_from(method.clone()).expect("one of axum's");
            Row::open("", method, path, on(only, || async {}))
        };
        let table = RouteTable::new(paths().into_iter().map(row).collect(), &());
        let of_mints = table.number_of(mint::ROUTE);
        let before = [
            "/ids/",
            "/ids",
            "/ids//",
            "//ids/",
            "/IDS/",
            "/%69ds/",
            "/./ids/",
            "/ids/./",
            "",
            "/ids/../ids/",
        ];
        let names = [
            "",
            "flax",
            "%66lax",
            "fl%20ax",
            "flax;x=1",
            ".",
            "..",
            "{format}",
            "*",
            "%00",
            "\u{e9}",
            "flax%2Fmore",
            ":format",
            "openapi.yaml",
            "conjunctions",
            "%",
            "flax#",
            "+",
            "~",
            "ids",
        ];
        let behind = ["", "/", "/more", "//", "%2F", "?count=1"];
        let paths = before
            .iter()
            .flat_map(|before| names.iter().map(move |name| format!("{before}{name}")));
        let paths: Vec<_> = paths
            .flat_map(|path| behind.map(|behind| format!("{path}{behind}")))
            .collect();
        let is_mint = |path: &&String| mint::format_name(path).is_some();
        for path in &paths {
            assert_eq!(is_mint(&path), table.number_of(path) == of_mints, "{path}");
        }
        let mints = paths.iter().filter(is_mint).count();
        println!("{} paths, {mints} of mints", paths.len());
        assert!(paths.len() > 1_000 && mints > 50 && mints < paths.len() / 2);
    }
}
