//! The certificate that a client has shown in the handshake of its connection.

use std::sync::atomic::{AtomicU64, Ordering};

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

/// A certificate whose signature and dates were good in the handshake, and the names that it is for.
#[derive(Debug)]
pub struct ClientCertificate {
    /// Its own first, then those up to the authority.
    pub(super) chain: Vec<CertificateDer<'static>>,
    /// Its alternative names of kind DNS, in lower case, and URI.
    pub(super) names: Vec<String>,
    /// By what, and when, it was last found good; see [`ClientCertificates`](super::ClientCertificates).
    /// Written by: `mark_good`. Read by: `is_marked`. Ordering: `Relaxed`, it guards nothing.
    /// Tested by: `a_certificate_is_looked_at_again_after_a_minute_and_by_other_authorities`.
    good_at: AtomicU64,
}

impl ClientCertificate {
    /// That of a chain; `None` where it has none that can be read.
    pub fn of_chain(chain: &[CertificateDer<'static>]) -> Option<ClientCertificate> {
        let own = EndEntityCert::try_from(chain.first()?).ok()?;
        let dns_names = own.valid_dns_names().map(str::to_ascii_lowercase);
        let names = dns_names
            .chain(own.valid_uri_names().map(str::to_owned))
            .collect();
        Some(ClientCertificate {
            names,
            chain: chain.to_vec(),
            good_at: AtomicU64::new(0),
        })
    }

    pub(super) fn is_marked(&self, mark: u64) -> bool {
        self.good_at.load(Ordering::Relaxed) == mark
    }

    pub(super) fn mark_good(&self, mark: u64) {
        self.good_at.store(mark, Ordering::Relaxed);
    }
}
