//! A handler that is told who calls: for connections with TLS, and where callers have a rate or are audited.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::http::{Request, Response};
use pin_project_lite::pin_project;

use super::handler::Handler;
use crate::http::{AnswerBody, AuditedRequest, Caller, CallerNote, ClientCertificate};
use crate::net::callers::Callers;

/// The handler of one connection, whose requests carry their [`Caller`].
#[derive(Clone)]
pub(super) struct NamedCaller<H> {
    handler: H,
    connection: Arc<Connection>,
}

/// What is known of the caller on one connection.
struct Connection {
    callers: Callers,
    peer: IpAddr,
    certificate: Option<Arc<ClientCertificate>>,
}

impl<H> NamedCaller<H> {
    pub(super) fn new(
        handler: H,
        callers: Callers,
        peer: IpAddr,
        certificate: Option<Arc<ClientCertificate>>,
    ) -> Self {
        Self {
            handler,
            connection: Arc::new(Connection {
                callers,
                peer,
                certificate,
            }),
        }
    }
}

impl<H: Handler> tower::Service<Request<Body>> for NamedCaller<H> {
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = NotedAnswer<H::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.handler.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> NotedAnswer<H::Future> {
        let Connection {
            callers,
            peer,
            certificate,
        } = &*self.connection;
        let note = CallerNote::default();
        let address = callers.address_of(*peer, request.headers());
        let auditor = callers.auditor();
        let audited = auditor.map(|auditor| {
            AuditedRequest::new(
                auditor,
                address,
                request.method(),
                request.uri(),
                request.headers(),
            )
        });
        let (certificate, auditor) = (certificate.clone(), auditor.cloned());
        request.extensions_mut().insert(Caller {
            address,
            certificate,
            note: note.clone(),
            auditor,
        });
        NotedAnswer {
            answer: self.handler.call(request),
            note,
            audited,
        }
    }
}

pin_project! {
    /// One request on its way to an answer that says what is left of the caller's rate, and is told of where that is wanted.
    pub(super) struct NotedAnswer<F> {
        #[pin]
        answer: F,
        note: CallerNote,
        audited: Option<AuditedRequest>,
    }
}

impl<F: Future<Output = Result<Response<AnswerBody>, Infallible>>> Future for NotedAnswer<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Ok(mut answer) = ready!(this.answer.poll(context));
        this.note.write(answer.headers_mut());
        if let Some(request) = this.audited {
            request.tell(this.note, &answer, true);
        }
        Poll::Ready(Ok(answer))
    }
}
