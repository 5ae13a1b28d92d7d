//! Who calls, as far as the connection knows.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::Extensions;

use super::audited::Auditor;
use super::caller_note::CallerNote;
use super::client_certificate::ClientCertificate;

/// Who calls. Requests carry it where callers have a rate, where they are audited, and where connections have TLS.
#[derive(Clone)]
pub struct Caller {
    /// The other end of the connection, or whom a trusted proxy names.
    pub address: IpAddr,
    /// The certificate that was shown in the handshake.
    pub certificate: Option<Arc<ClientCertificate>>,
    /// What is found out while the request is let in.
    pub note: CallerNote,
    /// Whom to tell what it does.
    pub auditor: Option<Auditor>,
}

impl Caller {
    /// That of a request, if it is known.
    pub(in crate::http) fn of(extensions: &Extensions) -> Option<&Caller> {
        extensions.get()
    }
}
