//! What answers requests, and how a connection tracks it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use axum::http::{HeaderValue, Request, Response, Version, header};
use hyper::body::Incoming;
use hyper::service::Service;
use pin_project_lite::pin_project;

use crate::http::AnswerBody;
use crate::net::stream::{Activity, RequestBody, RequestGuard, TrackedAnswer};

/// What answers requests, of any connection.
pub trait Handler:
    tower::Service<Request<Body>, Response = Response<AnswerBody>, Error = Infallible, Future: Send>
    + Clone
    + Send
    + 'static
{
}

impl<H> Handler for H where
    H: tower::Service<Request<Body>, Response = Response<AnswerBody>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + 'static
{
}

/// The handler of one connection, which records requests and answers in its activity.
pub(in crate::net) struct TrackedHandler<H> {
    pub(in crate::net) handler: H,
    pub(in crate::net) activity: Arc<Activity>,
}

impl<H: Handler> Service<Request<Incoming>> for TrackedHandler<H> {
    type Response = Response<TrackedAnswer>;
    type Error = Infallible;
    type Future = TrackedResponse<H::Future>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let has_body = !request.body().is_end_stream();
        let guard = self.activity.begin_request(has_body);
        let is_http1 = request.version() < Version::HTTP_2;
        let request = request.map(|body| match has_body {
            true => Body::new(RequestBody { body, activity: Arc::clone(&self.activity) }),
            false => Body::empty(),
        });
        let response = self.handler.clone().call(request);
        TrackedResponse { response, is_http1, guard: Some(guard) }
    }
}

pin_project! {
    /// One request on its way to the head of its answer.
    pub(in crate::net) struct TrackedResponse<F> {
        #[pin]
        response: F,
        is_http1: bool,
        // None once the head of the answer is made.
        guard: Option<RequestGuard>,
    }
}

impl<F: Future<Output = Result<Response<AnswerBody>, Infallible>>> Future for TrackedResponse<F> {
    type Output = Result<Response<TrackedAnswer>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Ok(mut response) = ready!(this.response.poll(context));
        let guard = this.guard.take().expect("a future that is ready is not polled again");
        if *this.is_http1 && (guard.closes_after_next_answer() || guard.leaves_body_unread()) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Poll::Ready(Ok(response.map(|body| TrackedAnswer { body, request: guard })))
    }
}
