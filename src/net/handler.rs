//! What answers requests, and how a connection tracks it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use axum::http::{HeaderValue, Request, Response, StatusCode, Version, header};
use hyper::body::Incoming;
use hyper::service::Service;
use pin_project_lite::pin_project;

use super::activity::{Activity, RequestGuard, TrackedBody};

/// What answers requests, of any connection.
pub trait Handler:
    tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send> + Clone + Send + 'static
{
}

impl<H> Handler for H where
    H: tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + 'static
{
}

/// The handler of one connection, which records requests and answers in its activity.
pub(super) struct TrackedHandler<H> {
    pub(super) handler: H,
    pub(super) activity: Arc<Activity>,
}

impl<H: Handler> Service<Request<Incoming>> for TrackedHandler<H> {
    type Response = Response<TrackedBody<Body, RequestGuard>>;
    type Error = Infallible;
    type Future = TrackedResponse<H::Future>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let guard = self.activity.begin_request();
        let is_http1 = request.version() < Version::HTTP_2;
        let request = request.map(|body| match body.is_end_stream() {
            true => Body::empty(),
            false => Body::new(TrackedBody { body, activity: Arc::clone(&self.activity) }),
        });
        let response = self.handler.clone().call(request);
        TrackedResponse { response, is_http1, guard: Some(guard) }
    }
}

pin_project! {
    /// One request on its way to the head of its answer.
    pub(super) struct TrackedResponse<F> {
        #[pin]
        response: F,
        is_http1: bool,
        // None once the head of the answer is made.
        guard: Option<RequestGuard>,
    }
}

impl<F: Future<Output = Result<Response<Body>, Infallible>>> Future for TrackedResponse<F> {
    type Output = Result<Response<TrackedBody<Body, RequestGuard>>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Ok(mut response) = ready!(this.response.poll(context));
        let guard = this.guard.take().expect("a future that is ready is not polled again");
        if *this.is_http1 && (guard.closes_after_next_answer() || leaves_body_unread(response.status())) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Poll::Ready(Ok(response.map(|body| TrackedBody { body, activity: guard })))
    }
}

// The connection is closed after these anyway; saying so keeps callers from sending more on it.
fn leaves_body_unread(status: StatusCode) -> bool {
    status == StatusCode::PAYLOAD_TOO_LARGE || status == StatusCode::REQUEST_TIMEOUT
}
