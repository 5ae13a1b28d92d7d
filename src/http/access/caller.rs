//! Who calls, as far as the connection knows.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::Extensions;

use super::client_certificate::ClientCertificate;
use super::rate_note::RateNote;

/// Who calls. Requests carry it where callers have a rate, and where connections have TLS.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The other end of the connection, or whom a trusted proxy names.
    pub address: IpAddr,
    /// The certificate that was shown in the handshake.
    pub certificate: Option<Arc<ClientCertificate>>,
    /// What the answer will say of the caller's rate.
    pub note: RateNote,
}

impl Caller {
    /// That of a request, if it is known.
    pub(super) fn of(extensions: &Extensions) -> Option<&Caller> {
        extensions.get()
    }
}
