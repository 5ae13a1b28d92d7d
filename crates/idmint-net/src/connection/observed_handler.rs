//! Wraps a handler with an observer of requests and responses, for TLS, rate limits or auditing.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::http::{HeaderMap, Request, Response};
use pin_project_lite::pin_project;
use tokio_rustls::rustls::pki_types::CertificateDer;

use super::handler::Handler;
use crate::callers::Callers;

/// The peer of a connection, with the certificates that it presented.
pub struct ConnectedCaller {
    callers: Callers,
    peer: IpAddr,
    certificates: Vec<CertificateDer<'static>>,
}

impl ConnectedCaller {
    pub(super) fn new(
        callers: Callers,
        peer: IpAddr,
        certificates: Vec<CertificateDer<'static>>,
    ) -> Self {
        Self {
            callers,
            peer,
            certificates,
        }
    }

    /// Returns the address of a request's caller: the peer of the connection, or the client address
    /// that a trusted proxy reports in the request's headers.
    pub fn address_of(&self, headers: &HeaderMap) -> IpAddr {
        self.callers.address_of(self.peer, headers)
    }

    /// Returns the certificate chain that the client presented in the handshake, its own
    /// certificate first. The chain is empty without TLS or without a client certificate.
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.certificates
    }
}

/// A function that is called once for each connection and returns the observer of its requests.
pub type ConnectionObserver<B> = Arc<dyn Fn(ConnectedCaller) -> RequestObserver<B> + Send + Sync>;

/// A function that is called with each request of one connection and returns the observer of the
/// response.
pub type RequestObserver<B> = Arc<dyn Fn(&mut Request<Body>) -> ResponseObserver<B> + Send + Sync>;

/// A function that is called with the response to one request, or dropped without a call if the
/// request gets no response.
pub type ResponseObserver<B> = Box<dyn FnOnce(&mut Response<B>) + Send>;

/// The handler of one connection, wrapped with an observer.
pub(super) struct ObservedHandler<H: Handler> {
    pub(super) handler: H,
    pub(super) observer: RequestObserver<H::Body>,
}

impl<H: Handler> Clone for ObservedHandler<H> {
    fn clone(&self) -> Self {
        Self {
            handler: self.handler.clone(),
            observer: Arc::clone(&self.observer),
        }
    }
}

impl<H: Handler> tower::Service<Request<Body>> for ObservedHandler<H> {
    type Response = Response<H::Body>;
    type Error = Infallible;
    type Future = ObservedResponse<H>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> ObservedResponse<H> {
        let observer = (self.observer)(&mut request);
        ObservedResponse {
            response: self.handler.clone().respond(request),
            observer: Some(observer),
        }
    }
}

pin_project! {
    /// A request in progress, until its observer has seen the response.
    pub(super) struct ObservedResponse<H: Handler> {
        #[pin]
        response: H::Responding,
        // The observer of the response, or `None` once it was called.
        observer: Option<ResponseObserver<H::Body>>,
    }
}

impl<H: Handler> Future for ObservedResponse<H> {
    type Output = Result<Response<H::Body>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Ok(mut response) = ready!(this.response.poll(context));
        if let Some(observer) = this.observer.take() {
            observer(&mut response);
        }
        Poll::Ready(Ok(response))
    }
}
