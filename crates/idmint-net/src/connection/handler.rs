//! The handler of requests, and a wrapper that tracks its requests and responses.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use axum::http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version, header,
};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::service::Service;
use pin_project_lite::pin_project;
use tokio::task::yield_now;

use super::http2_streams::StreamProgress;
use super::sent_answer::{SentAnswer, price_of};
use crate::callers::Callers;
use crate::stream::{Activity, RequestBody, RequestGuard};
use idmint_service::{BudgetOwner, MemoryReservation, ReservedBody, Shed};

/// The memory to reserve for an HTTP/2 stream, a short request body and a short response, in bytes.
const STREAM_LEN: usize = 8 * 1024;

/// The memory that hyper uses to buffer a long request body, in bytes.
const BODY_BUFFER_LEN: usize = 64 * 1024;

/// The maximum length of a request body, in bytes, for which no extra memory is reserved. The
/// reservation of the connection or stream covers such a body.
const SHORT_BODY_LEN_MAX: u64 = 4 * 1024;

/// The body of a response, which reports the memory needed to send it.
pub trait ResponseBody:
    HttpBody<Data = Bytes, Error = axum::Error> + ReservedBody + Default + Unpin + Send + 'static
{
}

impl<B> ResponseBody for B where
    B: HttpBody<Data = Bytes, Error = axum::Error>
        + ReservedBody
        + Default
        + Unpin
        + Send
        + 'static
{
}

/// A handler of HTTP requests. Every infallible `tower::Service` that takes these requests and
/// meets the bounds of this trait is a handler.
pub trait Handler: Clone + Send + Unpin + 'static {
    /// The body of the responses.
    type Body: ResponseBody;
    /// The future that resolves to the response.
    type Responding: Future<Output = Result<Response<Self::Body>, Infallible>> + Send;

    /// Starts to respond to a request. If the request has the extension [`Shed`], too little memory
    /// is free for it, and its body is left out. The response must refuse such a request.
    fn respond(self, request: Request<Body>) -> Self::Responding;
}

impl<H, B> Handler for H
where
    H: tower::Service<Request<Body>, Response = Response<B>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Unpin
        + 'static,
    B: ResponseBody,
{
    type Body = B;
    type Responding = H::Future;

    fn respond(mut self, request: Request<Body>) -> H::Future {
        self.call(request)
    }
}

/// The functions that the connection layer calls to replace responses and to recognize health
/// probes.
#[derive(Debug)]
pub struct Dispatch<B> {
    /// Makes the refusal that replaces a response for which too little memory is free. The first
    /// argument is the headers of that response.
    pub refuse: fn(&HeaderMap, Shed) -> Response<B>,
    /// Returns `true` if a request with this URI is a health probe. Memory for probes is reserved
    /// from a separate budget.
    pub is_probe: fn(&Uri) -> bool,
}

impl<B> Clone for Dispatch<B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Dispatch<B> {}

/// The handler of one connection. It records requests and responses for the connection's timeouts,
/// and reserves memory for both.
pub(super) struct TrackedHandler<H: Handler> {
    pub(super) handler: H,
    pub(super) dispatch: Dispatch<H::Body>,
    pub(super) activity: Arc<Activity>,
    pub(super) callers: Callers,
    pub(super) peer: IpAddr,
}

impl<H: Handler> TrackedHandler<H> {
    /// Reserves memory for the stream and the body of a request.
    fn reserve(&self, request: &Request<Incoming>, owner: &BudgetOwner) -> Result<Reserved, Shed> {
        let length = request.body().size_hint();
        let has_long_body = length
            .upper()
            .is_none_or(|length| length > SHORT_BODY_LEN_MAX);
        let is_http2 = request.version() == Version::HTTP_2;
        let stream = if is_http2 {
            Some(owner.reserve_now(STREAM_LEN)?)
        } else {
            None
        };
        let body = if has_long_body {
            Some(owner.reserve_now(BODY_BUFFER_LEN)?)
        } else {
            None
        };
        Ok(Reserved {
            stream,
            _body: body,
        })
    }
}

/// The pending reservation for a long response's first chunk, with the peer whose budget is used.
type Reserving =
    Pin<Box<dyn Future<Output = Result<(MemoryReservation, BudgetOwner), Shed>> + Send>>;

/// The memory reserved for a request until its response is sent.
#[derive(Default)]
struct Reserved {
    /// The reservation for an HTTP/2 stream, or `None` in HTTP/1.
    stream: Option<MemoryReservation>,
    _body: Option<MemoryReservation>,
}

impl<H: Handler> Service<Request<Incoming>> for TrackedHandler<H> {
    type Response = Response<SentAnswer<H::Body>>;
    type Error = Infallible;
    type Future = TrackedResponse<H>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let has_body = !request.body().is_end_stream();
        let guard = self.activity.begin_request(has_body);
        let is_http1 = request.version() < Version::HTTP_2;
        let is_head = *request.method() == Method::HEAD;
        let is_probe = (self.dispatch.is_probe)(request.uri());
        let other = self
            .callers
            .other_owner(self.peer, is_probe, request.headers());
        let owner = other.as_ref().unwrap_or(&self.activity.owner);
        let reserved = self.reserve(&request, owner);
        let mut request = request.map(|body| {
            if !has_body {
                return Body::empty();
            }
            let body = RequestBody {
                body,
                activity: Arc::clone(&self.activity),
                is_http1,
            };
            match reserved {
                Ok(_) => Body::new(body),
                // Drop the body, so that nobody can read it without reserved memory.
                Err(_) => Body::empty(),
            }
        });
        let reserved = reserved.unwrap_or_else(|shed| {
            request.extensions_mut().insert(shed);
            Reserved::default()
        });
        // Attach the budget owner only if the handler may need it to reserve memory or to wait for
        // its turn. A POST request without a body or a query, such as a mint of one id, causes too
        // little work for that.
        if has_body || request.uri().query().is_some() || *request.method() != Method::POST {
            request.extensions_mut().insert(owner.clone());
        }
        TrackedResponse {
            progress: Progress::Handled {
                response: self.handler.clone().respond(request),
            },
            refuse: self.dispatch.refuse,
            is_http1,
            is_head,
            guard: Some(guard),
            other,
            reserved,
        }
    }
}

pin_project! {
    /// The future that resolves to the response to one request, once the response head is ready.
    pub(super) struct TrackedResponse<H: Handler> {
        #[pin]
        progress: Progress<H>,
        refuse: fn(&HeaderMap, Shed) -> Response<H::Body>,
        is_http1: bool,
        is_head: bool,
        // The guard that counts the request as in flight. `None` once the head of the response is
        // ready, because the response body then holds the guard.
        guard: Option<RequestGuard>,
        // The owner of the request's memory budget, or `None` if this is the connection's peer.
        other: Option<BudgetOwner>,
        reserved: Reserved,
    }
}

pin_project! {
    #[project = ProgressProjection]
    enum Progress<H: Handler> {
        Handled { #[pin] response: H::Responding },
        // The response is long and waits for a memory reservation.
        Reserving { paying: Reserving, answer: Option<Response<H::Body>> },
    }
}

impl<H: Handler> Future for TrackedResponse<H> {
    type Output = Result<Response<SentAnswer<H::Body>>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let polled_again = "a future that is ready is not polled again";
        let (mut response, reserved) = loop {
            match this.progress.as_mut().project() {
                ProgressProjection::Handled { response } => {
                    let Ok(mut answer) = ready!(response.poll(context));
                    let Some(price) = price_of(answer.body()) else {
                        break (answer, None);
                    };
                    let peer = this.guard.as_ref().map(|guard| &guard.owner);
                    let owner = this.other.as_ref().or(peer).expect(polled_again).clone();
                    if let Some(reservation) = answer.body_mut().take_reservation() {
                        break (answer, Some((reservation, owner)));
                    }
                    // A handler that changes something, such as storing an event, reserves the
                    // memory for its response beforehand. A refusal here would be wrong, because
                    // the change is already made.
                    let before = answer.extensions_mut().remove::<Arc<MemoryReservation>>();
                    if let Some(reservation) = before.and_then(Arc::into_inner) {
                        break (answer, Some((reservation, owner)));
                    }
                    let paying = Box::pin(async move {
                        let reservation = owner.reserve(price).await?;
                        // Let other tasks run. Otherwise, 16 responses could be written in a row
                        // for a caller that pipelines requests and reads no responses.
                        yield_now().await;
                        Ok((reservation, owner))
                    });
                    this.progress.set(Progress::Reserving {
                        paying,
                        answer: Some(answer),
                    });
                }
                ProgressProjection::Reserving { paying, answer } => {
                    let reserved = ready!(paying.as_mut().poll(context));
                    let answer = answer.take().expect(polled_again);
                    break match reserved {
                        Ok(reserved) => (answer, Some(reserved)),
                        Err(shed) => ((this.refuse)(answer.headers(), shed), None),
                    };
                }
            }
        };
        let mut guard = this.guard.take().expect(polled_again);
        guard.begin_answer();
        if *this.is_http1 && (guard.closes_after_next_answer() || guard.leaves_body_unread()) {
            response
                .headers_mut()
                .insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if *this.is_head {
            response = without_body(response);
        }
        if response.status() == StatusCode::NOT_MODIFIED {
            // Remove the `Content-Length: 0` that axum adds to a 304 response. RFC 9110, section
            // 8.6, only allows the length that the corresponding 200 response would have.
            response.headers_mut().remove(header::CONTENT_LENGTH);
        }
        let stream = this
            .reserved
            .stream
            .take()
            .and_then(|reservation| Some((StreamProgress::current()?, reservation)));
        Poll::Ready(Ok(response.map(|body| {
            let answer = SentAnswer::new(body, guard, reserved);
            match stream {
                Some((progress, reservation)) => answer.on_stream(progress, reservation),
                None => answer,
            }
        })))
    }
}

/// Returns the response to a HEAD request: `response` without its body, but with the body's length
/// in `Content-Length`. hyper omits the body itself over HTTP/1, but would send it over HTTP/2.
fn without_body<B: ResponseBody>(mut response: Response<B>) -> Response<B> {
    // An empty body may be one that the handler already removed, so its real length is unknown.
    let len = response.body().size_hint().exact().filter(|len| *len > 0);
    if let Some(len) = len {
        let headers = response.headers_mut();
        headers.entry(header::CONTENT_LENGTH).or_insert(len.into());
    }
    response.map(|_| B::default())
}
