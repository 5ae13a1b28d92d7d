//! A request body that may arrive late. The number of requests that wait for their bodies is
//! limited.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::BoxError;
use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use prometheus::IntGauge;

use idmint_service::{PendingBodies, PendingBody, Sender};

/// A request body that may arrive late. From the first wait until the body is complete, the request
/// does not count as in flight. Instead, it has a [place](PendingBody) among the waiting requests.
/// If the service gives that place to another request, the body ends with an
/// [error](idmint_service::Shed).
pub(crate) struct LateBody<S> {
    body: Body,
    bodies: Arc<PendingBodies>,
    /// A function that returns the request's sender. It is called only if the service must wait for
    /// the body.
    sender: S,
    in_flight: IntGauge,
    wait: Option<Wait>,
}

/// A request that waits for its body. Dropping this value ends the wait.
struct Wait {
    place: PendingBody,
    in_flight: IntGauge,
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.in_flight.inc();
    }
}

impl<S: Fn() -> Sender + Unpin> LateBody<S> {
    /// Wraps the body of a request that is counted in `in_flight`.
    pub(crate) fn new(
        body: Body,
        bodies: Arc<PendingBodies>,
        sender: S,
        in_flight: IntGauge,
    ) -> LateBody<S> {
        LateBody {
            body,
            bodies,
            sender,
            in_flight,
            wait: None,
        }
    }

    fn begin_to_wait(&self) -> Wait {
        self.in_flight.dec();
        Wait {
            place: self.bodies.enter((self.sender)()),
            in_flight: self.in_flight.clone(),
        }
    }
}

impl<S: Fn() -> Sender + Unpin> http_body::Body for LateBody<S> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            if !matches!(frame, Some(Ok(_))) || self.body.is_end_stream() {
                self.wait = None;
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from)));
        }
        let mut wait = self.wait.take().unwrap_or_else(|| self.begin_to_wait());
        if let Poll::Ready(shed) = wait.place.poll_given_up(context) {
            return Poll::Ready(Some(Err(shed.into())));
        }
        self.wait = Some(wait);
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
