//! What answers requests, and how a connection tracks it.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use axum::http::{HeaderValue, Request, Response, Version, header};
use hyper::body::Incoming;
use hyper::service::Service;
use pin_project_lite::pin_project;
use tokio::task::yield_now;

use super::http2_streams::StreamProgress;
use super::sent_answer::{SentAnswer, price_of};
use crate::http::{AnswerBody, turn_away};
use crate::net::callers::Callers;
use crate::net::stream::{Activity, RequestBody, RequestGuard};
use crate::service::{Charge, Payer, Shed};

/// What a stream of HTTP/2 holds beside its body and its answer, with short ones of these, in bytes.
const STREAM_LEN: usize = 8 * 1024;

/// What hyper buffers of a long request body, in bytes.
const BODY_BUFFER_LEN: usize = 64 * 1024;

/// A body that is no longer than this needs no more than the connection's own buffer.
const SHORT_BODY_LEN_MAX: u64 = 4 * 1024;

/// What answers requests, of any connection.
pub trait Handler:
    tower::Service<Request<Body>, Response = Response<AnswerBody>, Error = Infallible, Future: Send>
    + Clone
    + Send
    + 'static
{
}

impl<H> Handler for H where
    H: tower::Service<
            Request<Body>,
            Response = Response<AnswerBody>,
            Error = Infallible,
            Future: Send,
        > + Clone
        + Send
        + 'static
{
}

/// The handler of one connection, which records requests and answers in its activity, and has them paid for.
pub(super) struct TrackedHandler<H> {
    pub(super) handler: H,
    pub(super) activity: Arc<Activity>,
    pub(super) callers: Callers,
    pub(super) peer: IpAddr,
}

impl<H: Handler> TrackedHandler<H> {
    /// Pays for what the request itself holds.
    fn pay(&self, request: &Request<Incoming>, payer: &Payer) -> Result<Paid, Shed> {
        let length = request.body().size_hint();
        let has_long_body = length
            .upper()
            .is_none_or(|length| length > SHORT_BODY_LEN_MAX);
        let is_http2 = request.version() == Version::HTTP_2;
        let stream = if is_http2 {
            Some(payer.pay_now(STREAM_LEN)?)
        } else {
            None
        };
        let body = if has_long_body {
            Some(payer.pay_now(BODY_BUFFER_LEN)?)
        } else {
            None
        };
        Ok(Paid {
            stream,
            _body: body,
        })
    }
}

/// The payment for the first piece of a long answer, and who makes it.
type Paying = Pin<Box<dyn Future<Output = Result<(Charge, Payer), Shed>> + Send>>;

/// What is paid for a request until its answer is sent.
#[derive(Default)]
struct Paid {
    /// In HTTP/2.
    stream: Option<Charge>,
    _body: Option<Charge>,
}

impl<H: Handler> Service<Request<Incoming>> for TrackedHandler<H> {
    type Response = Response<SentAnswer>;
    type Error = Infallible;
    type Future = TrackedResponse<H::Future>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let has_body = !request.body().is_end_stream();
        let guard = self.activity.begin_request(has_body);
        let is_http1 = request.version() < Version::HTTP_2;
        let other = self
            .callers
            .other_payer(self.peer, request.uri(), request.headers());
        let payer = other.as_ref().unwrap_or(&self.activity.payer);
        let (paid, refused) = match self.pay(&request, payer) {
            Ok(paid) => (paid, None),
            Err(shed) => (
                Paid::default(),
                Some(turn_away(request.headers(), shed, self.callers.is_test())),
            ),
        };
        let mut request = request.map(|body| match has_body {
            true => Body::new(RequestBody {
                body,
                activity: Arc::clone(&self.activity),
            }),
            false => Body::empty(),
        });
        // Whoever can ask for much pays before it is done.
        if has_body || request.uri().query().is_some() {
            request.extensions_mut().insert(payer.clone());
        }
        let progress = match refused {
            Some(answer) => Progress::Refused {
                answer: Some(answer),
            },
            None => Progress::Handled {
                response: self.handler.clone().call(request),
            },
        };
        let is_test = self.callers.is_test();
        TrackedResponse {
            progress,
            is_http1,
            is_test,
            guard: Some(guard),
            other,
            paid,
        }
    }
}

pin_project! {
    /// One request on its way to the head of its answer.
    pub(super) struct TrackedResponse<F> {
        #[pin]
        progress: Progress<F>,
        is_http1: bool,
        is_test: bool,
        // None once the head of the answer is made.
        guard: Option<RequestGuard>,
        // Who pays, if not the other end of the connection.
        other: Option<Payer>,
        paid: Paid,
    }
}

pin_project! {
    #[project = ProgressProjection]
    enum Progress<F> {
        Handled { #[pin] response: F },
        // The answer is long, and waits for memory.
        Paying { paying: Paying, answer: Option<Response<AnswerBody>> },
        Refused { answer: Option<Response<AnswerBody>> },
    }
}

impl<F: Future<Output = Result<Response<AnswerBody>, Infallible>>> Future for TrackedResponse<F> {
    type Output = Result<Response<SentAnswer>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let polled_again = "a future that is ready is not polled again";
        let (mut response, paid) = loop {
            match this.progress.as_mut().project() {
                ProgressProjection::Handled { response } => {
                    let Ok(mut answer) = ready!(response.poll(context));
                    let Some(price) = price_of(answer.body()) else {
                        break (answer, None);
                    };
                    let peer = this.guard.as_ref().map(|guard| &guard.payer);
                    let payer = this.other.as_ref().or(peer).expect(polled_again).clone();
                    if let Some(charge) = answer.body_mut().take_charge() {
                        break (answer, Some((charge, payer)));
                    }
                    let paying = Box::pin(async move {
                        let charge = payer.pay(price).await?;
                        // Else a connection whose caller asks for many before it reads one would write 16 before others have
                        // their turn.
                        yield_now().await;
                        Ok((charge, payer))
                    });
                    this.progress.set(Progress::Paying {
                        paying,
                        answer: Some(answer),
                    });
                }
                ProgressProjection::Paying { paying, answer } => {
                    let paid = ready!(paying.as_mut().poll(context));
                    let answer = answer.take().expect(polled_again);
                    break match paid {
                        Ok(paid) => (answer, Some(paid)),
                        Err(shed) => (turn_away(answer.headers(), shed, *this.is_test), None),
                    };
                }
                ProgressProjection::Refused { answer } => {
                    break (answer.take().expect(polled_again), None);
                }
            }
        };
        let guard = this.guard.take().expect(polled_again);
        if *this.is_http1 && (guard.closes_after_next_answer() || guard.leaves_body_unread()) {
            response
                .headers_mut()
                .insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        let stream = this
            .paid
            .stream
            .take()
            .and_then(|charge| Some((StreamProgress::current()?, charge)));
        Poll::Ready(Ok(response.map(|body| {
            let answer = SentAnswer::new(body, guard, paid);
            match stream {
                Some((progress, charge)) => answer.on_stream(progress, charge),
                None => answer,
            }
        })))
    }
}
