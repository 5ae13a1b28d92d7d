//! What every request passes on its way in, and every answer on its way out.

use std::any::Any;
use std::convert::Infallible;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderValue, Response, Uri};
use axum::response::IntoResponse;
use pin_project_lite::pin_project;
use tower::Service;
use tower::layer::layer_fn;
use tracing::error;

use super::fallback::{method_not_allowed, not_found};
use super::metrics::{HttpMetrics, Measured, Route};
use crate::http::answer::{Problem, Slug, name_instance};
use crate::http::request::{X_REQUEST_ID, request_id};

/// No address may be longer, in bytes of path and query.
pub(crate) const URI_LEN_MAX: usize = 8 * 1024;

/// Completes a router whose routes are all in place.
///
/// Afterwards every answer carries `X-Request-Id` and is counted, unknown paths and methods are problems, a URI longer
/// than [`URI_LEN_MAX`] is 414, and a handler that panics has answered 500.
// One layer for all of it: the router boxes every layer anew for every request.
pub fn complete(routes: Router, metrics: Arc<HttpMetrics>) -> Router {
    let edge = Edge { metrics };
    let layer = layer_fn(move |handler| AtTheEdge { handler, edge: edge.clone() });
    routes.fallback(not_found).method_not_allowed_fallback(method_not_allowed).layer(layer)
}

/// The edge of the service: what lets requests in, and answers out.
#[derive(Clone)]
pub(super) struct Edge {
    pub(super) metrics: Arc<HttpMetrics>,
}

impl Edge {
    /// Lets a request in to its handler, and the answer out.
    pub(super) fn pass<F>(&self, route: Route, request: Request, handler: impl FnOnce(Request) -> F) -> Passage<F> {
        let measured = self.metrics.begin(route, request.method());
        let request_id = request_id(request.headers());
        let begun = match uri_len(request.uri()) {
            len if len > URI_LEN_MAX => Err(uri_too_long(len)),
            _ => unless_it_panics(&request_id, || handler(request)),
        };
        let (handler, refusal) = match begun {
            Ok(handler) => (Some(handler), None),
            Err(problem) => (None, Some(problem)),
        };
        Passage { handler, refusal, request_id, measured }
    }
}

/// A handler of the router, and the edge around it.
#[derive(Clone)]
struct AtTheEdge<S> {
    handler: S,
    edge: Edge,
}

impl<S> Service<Request> for AtTheEdge<S>
where
    S: Service<Request, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Passage<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.handler.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Passage<S::Future> {
        let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
        self.edge.pass(self.edge.metrics.route(path), request, |request| self.handler.call(request))
    }
}

pin_project! {
    /// One request between its arrival and the head of its answer.
    pub(super) struct Passage<F> {
        #[pin]
        handler: Option<F>,
        // Why there is no handler.
        refusal: Option<Problem>,
        request_id: HeaderValue,
        measured: Measured,
    }
}

impl<F, R> Future for Passage<F>
where
    F: Future<Output = Result<Response<Body>, R>>,
    R: IntoResponse,
{
    type Output = Result<Response<Body>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = match this.handler.as_pin_mut() {
            Some(handler) => match unless_it_panics(this.request_id, || handler.poll(context)) {
                Ok(outcome) => ready!(outcome).unwrap_or_else(IntoResponse::into_response),
                Err(problem) => problem.into_response(),
            },
            None => this.refusal.take().expect("a future that is ready is not polled again").into_response(),
        };
        name_instance(&mut response, this.request_id);
        let request_id = mem::replace(this.request_id, HeaderValue::from_static(""));
        response.headers_mut().insert(X_REQUEST_ID, request_id);
        this.measured.answered(response.status());
        Poll::Ready(Ok(response))
    }
}

fn uri_len(uri: &Uri) -> usize {
    uri.path_and_query().map_or(0, |path_and_query| path_and_query.as_str().len())
}

fn uri_too_long(len: usize) -> Problem {
    let detail = format!("path and query are {len} bytes long; at most {URI_LEN_MAX} are read");
    Problem::new(Slug::UriTooLong, detail).limit(format!("{URI_LEN_MAX} bytes"))
}

/// What `work` makes; if it panics, a problem. The panic goes to the log; the caller learns only under which id to look
/// for it.
fn unless_it_panics<T>(request_id: &HeaderValue, work: impl FnOnce() -> T) -> Result<T, Problem> {
    // Unwind safe: a handler that panicked is never polled again.
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic: Box<dyn Any + Send>| {
        let message =
            panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        error!(?request_id, "a handler panicked: {}", message.unwrap_or("without a message"));
        Problem::new(Slug::InternalError, "the service failed on this request; its log says why under this instance")
    })
}
