//! The edge: the one place that every request passes on its way in, and every answer on its way out.

use std::any::Any;
use std::convert::Infallible;
use std::mem;
use std::net::{IpAddr, Ipv4Addr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, Uri, header};
use pin_project_lite::pin_project;
use tower::Service;
use tracing::error;

use super::metrics::{HttpMetrics, Measured};
use super::route_table::{Route, RouteTable, Routed};
use crate::http::access::{Caller, Permit};
use crate::http::answer::{AnswerBody, NO_SNIFFING, Problem, Slug, X_REQUEST_ID, name_instance};
use crate::http::host_policy::HostPolicy;
use crate::http::request::{
    LateBody, check_transfer_coding, request_id, trace_parent, traceparent_of,
};
use crate::service::{AwaitedBodies, Load, Payer, Requests, Sender, Shed};

/// What says that a service is one to test against, whose ids somebody else has, too.
const IDMINT_TEST: HeaderName = HeaderName::from_static("idmint-test");
const OF_TEST: HeaderValue = HeaderValue::from_static("true");

/// No address may be longer, in bytes of path and query.
pub(crate) const URI_LEN_MAX: usize = 8 * 1024;

/// What decides whether a request on this route is let in, before anything is done for it; it may write on the request what its
/// caller is permitted.
pub type Admission = Arc<dyn Fn(&Route, &mut Request) -> Result<(), Problem> + Send + Sync>;

/// What answers requests behind the edge.
pub trait Handle {
    /// One request on the way to its answer.
    type Answering: Future<Output = Response<AnswerBody>>;

    /// The route of a request.
    fn route(&self, method: &Method, path: &str) -> &Route;

    /// Begins to answer a request of this route.
    fn handle(&self, route: &Route, request: Request) -> Self::Answering;
}

/// Whatever answers requests, with the edge around it.
///
/// Here requests are let in or refused, counted and timed. Every answer carries `X-Request-Id`; a URI longer than
/// `URI_LEN_MAX` is 414, a body that is coded for its way in more than chunks 501, what [`HostPolicy`] keeps out 400, 421 or
/// 403, and a handler that panics has answered 500.
pub struct Edge<H>(Arc<Parts<H>>);

/// Shared as a whole: every request has a clone.
struct Parts<H> {
    handler: H,
    metrics: Arc<HttpMetrics>,
    requests: Arc<Requests>,
    bodies: Arc<AwaitedBodies>,
    host_policy: HostPolicy,
    admission: Option<Admission>,
    /// Whether every answer says that it is one of a service to test against.
    is_test: bool,
}

impl<H> Clone for Edge<H> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// The edge around a table of routes.
pub fn complete(routes: RouteTable, metrics: Arc<HttpMetrics>) -> Edge<RouteTable> {
    Edge::new(
        routes,
        metrics,
        &Load::default(),
        HostPolicy::default(),
        None,
    )
}

impl<H> Edge<H> {
    /// The edge around what answers under this policy; `admission` is asked about every request that it lets in.
    pub(super) fn new(
        handler: H,
        metrics: Arc<HttpMetrics>,
        load: &Load,
        host_policy: HostPolicy,
        admission: Option<Admission>,
    ) -> Self {
        let (requests, bodies) = (Arc::clone(&load.requests), Arc::clone(&load.bodies));
        Self(Arc::new(Parts {
            handler,
            metrics,
            requests,
            bodies,
            host_policy,
            admission,
            is_test: false,
        }))
    }

    /// The same of a service to test against, if it is one.
    pub(super) fn of_test(mut self, is_test: bool) -> Self {
        Arc::get_mut(&mut self.0)
            .expect("nobody has it yet")
            .is_test = is_test;
        self
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

impl<H: Handle> Service<Request> for Edge<H> {
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = Passage<H::Answering>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // A router is always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request) -> Passage<H::Answering> {
        let Parts {
            handler,
            metrics,
            requests,
            bodies,
            host_policy,
            admission,
            is_test,
        } = &*self.0;
        let route = handler.route(request.method(), request.uri().path());
        let measured = metrics.begin(route.path, request.method());
        if route.is_audited
            && let Some(caller) = Caller::of(request.extensions())
        {
            caller.note.is_to_be_told();
        }
        let request_id = request_id(request.headers());
        let traceparent = traceparent_of(request.headers()).cloned();
        let has_room = check_room(requests, metrics, request.uri());
        let has_body = !request.body().is_end_stream();
        let is_read = has_room.and_then(|()| {
            if has_body {
                check_transfer_coding(request.headers())
            } else {
                Ok(())
            }
        });
        let admitted = is_read
            .and_then(|()| host_policy.check(&request))
            .and_then(|()| match admission {
                Some(admission) => admission(route, &mut request),
                None => Ok(()),
            });
        if admitted.is_ok() && has_body {
            request = with_late_body(request, bodies, metrics);
        }
        // Filled where it stays: it is large, and each move of it costs as much as a look at a header.
        let mut answering = None;
        let begun = admitted.and_then(|()| {
            catch_panic(&request_id, traceparent.as_ref(), || {
                answering = Some(handler.handle(route, request))
            })
        });
        let refusal = begun.err();
        Passage {
            answering,
            refusal,
            request_id,
            traceparent,
            measured,
            is_test: *is_test,
        }
    }
}

pin_project! {
    /// One request between its arrival and the head of its answer.
    pub struct Passage<F> {
        #[pin]
        answering: Option<F>,
        // Why nobody answers.
        refusal: Option<Problem>,
        request_id: HeaderValue,
        traceparent: Option<HeaderValue>,
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
        name_instance(&mut response, this.request_id);
        let request_id = mem::replace(this.request_id, HeaderValue::from_static(""));
        let is_said = response.body().is_of_ids();
        let headers = response.headers_mut();
        headers.insert(X_REQUEST_ID, request_id);
        if !is_said {
            headers.insert(header::X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
        }
        if *this.is_test {
            headers.insert(IDMINT_TEST, OF_TEST);
        }
        this.measured.count_answer(response.status());
        Poll::Ready(Ok(response))
    }
}

/// The answer to a request that is turned away before it comes here; `headers` say its id, or that of its answer.
pub(crate) fn turn_away(headers: &HeaderMap, shed: Shed, is_test: bool) -> Response<AnswerBody> {
    let request_id = request_id(headers);
    let mut response = Problem::from(shed).into_answer();
    name_instance(&mut response, &request_id);
    response.headers_mut().insert(X_REQUEST_ID, request_id);
    if is_test {
        response.headers_mut().insert(IDMINT_TEST, OF_TEST);
    }
    response
}

/// The request, which is not in flight while its body is waited for.
fn with_late_body(request: Request, bodies: &Arc<AwaitedBodies>, metrics: &HttpMetrics) -> Request {
    let permit = request.extensions().get::<Arc<Permit>>().cloned();
    let peer = request
        .extensions()
        .get()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), Payer::peer);
    let sender = move || {
        permit.as_ref().map_or(Sender::Peer(peer), |permit| {
            Sender::Named(permit.shown_by().to_owned())
        })
    };
    request.map(|body| {
        Body::new(LateBody::new(
            body,
            Arc::clone(bodies),
            sender,
            metrics.shown_in_flight().clone(),
        ))
    })
}

/// Whether there is room for one more request, this one counted already, and its address is not too long.
fn check_room(requests: &Requests, metrics: &HttpMetrics, uri: &Uri) -> Result<(), Problem> {
    if !requests.has_room(metrics.in_flight()) && !is_probe(uri) {
        return Err(requests.turn_away().into());
    }
    check_uri(uri)
}

/// Whether a request asks how the service is, which can be asked however much goes on.
pub(crate) fn is_probe(uri: &Uri) -> bool {
    uri.path().starts_with("/health/") || uri.path() == "/metrics"
}

fn check_uri(uri: &Uri) -> Result<(), Problem> {
    let len = uri
        .path_and_query()
        .map_or(0, |path_and_query| path_and_query.as_str().len());
    if len <= URI_LEN_MAX {
        return Ok(());
    }
    let detail = format!("path and query are {len} bytes long; at most {URI_LEN_MAX} are read");
    Err(Problem::new(Slug::UriTooLong, detail).limit(format!("{URI_LEN_MAX} bytes")))
}

/// What `work` makes; if it panics, a problem. The panic goes to the log; the caller learns only under which id to look
/// for it.
fn catch_panic<T>(
    request_id: &HeaderValue,
    traceparent: Option<&HeaderValue>,
    work: impl FnOnce() -> T,
) -> Result<T, Problem> {
    // Unwind safe: a handler that panicked is never polled again.
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
            "the service failed on this request; its log says why under this instance",
        )
    })
}

#[cfg(test)]
mod tests {
    use std::future::{Pending, pending};

    use axum::http::StatusCode;
    use prometheus::Registry;

    use super::*;
    use crate::service::MemoryBudget;

    /// Whoever asks waits for ever.
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
        let mut edge = Edge::new(
            Never,
            Arc::clone(&metrics),
            &load,
            HostPolicy::default(),
            None,
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
}
