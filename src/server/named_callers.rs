//! Attaches the identity of the caller to each request of a connection, and reports each response
//! to the audit trail.

use std::sync::Arc;

use idmint_http::{AnswerBody, AuditedRequest, Auditor, Caller, CallerNote, ClientCertificate};
use idmint_net::{ConnectedCaller, ConnectionObserver, RequestObserver, ResponseObserver};

/// Returns an observer of connections, which attaches a [`Caller`] to each request. If `auditor` is
/// given, the observer also reports each response to it, for the audit trail.
pub(super) fn named_callers(auditor: Option<Auditor>) -> ConnectionObserver<AnswerBody> {
    Arc::new(move |connected| observe_requests(connected, auditor.clone()))
}

fn observe_requests(
    connected: ConnectedCaller,
    auditor: Option<Auditor>,
) -> RequestObserver<AnswerBody> {
    let certificate = ClientCertificate::of_chain(connected.certificates()).map(Arc::new);
    Arc::new(move |request| -> ResponseObserver<AnswerBody> {
        let note = CallerNote::default();
        let address = connected.address_of(request.headers());
        let audited = auditor.as_ref().map(|auditor| {
            AuditedRequest::new(
                auditor,
                address,
                request.method(),
                request.uri(),
                request.headers(),
            )
        });
        request.extensions_mut().insert(Caller {
            address,
            certificate: certificate.clone(),
            note: note.clone(),
            auditor: auditor.clone(),
        });
        Box::new(move |response| {
            note.write(response.headers_mut());
            if let Some(request) = audited {
                request.tell(&note, response, true);
            }
        })
    })
}
