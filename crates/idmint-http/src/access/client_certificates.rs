//! Client certificates: the authorities that sign them, the names in them, and the scopes of each
//! name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use webpki::EndEntityCert;

use super::permit::Permit;
use super::scope::Scope;
use crate::answer::{Problem, Slug};

/// The client certificates that the service accepts. An accepted certificate is signed by an
/// authority in `http.tls.client_ca`, and contains at least one of the names in
/// `http.tls.client_scopes`.
#[derive(Debug)]
pub struct ClientCertificates {
    verifier: Arc<dyn ClientCertVerifier>,
    permits: BTreeMap<String, Arc<Permit>>,
    /// A number that identifies this set of certificates within the process. Each reload creates a
    /// set with a new number, so that the certificates of open connections are verified again.
    number: u32,
}

/// An error in the file of certificate authorities.
#[derive(Debug, thiserror::Error)]
pub enum ClientCertificatesError {
    /// The file is not PEM.
    #[error("the file is not PEM, or is truncated")]
    NotPem(#[source] pem::Error),
    /// A certificate of the file cannot be read.
    #[error("certificate {place} in the file is invalid")]
    NotACertificate {
        /// The position of the certificate, from 1.
        place: usize,
        /// The reason why the certificate cannot be read.
        #[source]
        cause: rustls::Error,
    },
    /// The file has no certificate, or an unreadable revocation list.
    #[error("the file has no usable client certificate authority or revocation list")]
    NoAuthority(#[from] VerifierBuilderError),
}

impl ClientCertificates {
    /// Accepts the certificates that the authorities in this PEM file have signed, except those on
    /// a revocation list in the same file. `scopes` maps the DNS and URI names in certificates to
    /// scopes.
    ///
    /// # Errors
    /// Returns [`ClientCertificatesError`] if the file is invalid.
    pub fn new(
        authorities: &[u8],
        scopes: &BTreeMap<String, BTreeSet<Scope>>,
    ) -> Result<ClientCertificates, ClientCertificatesError> {
        static NEXT_NUMBER: AtomicU32 = AtomicU32::new(1);
        let mut roots = RootCertStore::empty();
        for (place, certificate) in (1..).zip(CertificateDer::pem_slice_iter(authorities)) {
            let certificate = certificate.map_err(ClientCertificatesError::NotPem)?;
            roots
                .add(certificate)
                .map_err(|cause| ClientCertificatesError::NotACertificate { place, cause })?;
        }
        let revoked: Result<Vec<_>, _> =
            CertificateRevocationListDer::pem_slice_iter(authorities).collect();
        let verifier = WebPkiClientVerifier::builder_with_provider(
            roots.into(),
            ring::default_provider().into(),
        )
        .with_crls(revoked.map_err(ClientCertificatesError::NotPem)?)
        .only_check_end_entity_revocation()
        .allow_unknown_revocation_status()
        // Allow connections without a client certificate, because the routes for health and
        // documentation are public. On other routes, the `Guard` requires a certificate or a token.
        .allow_unauthenticated()
        .build()?;
        let permit = |name: &String, scopes: &BTreeSet<Scope>| {
            Arc::new(Permit::of_certificate(name, scopes.clone()))
        };
        let permits = scopes
            .iter()
            .map(|(name, scopes)| (name.clone(), permit(name, scopes)))
            .collect();
        // Ordering: `Relaxed`, because only the uniqueness of each value matters.
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        Ok(ClientCertificates {
            verifier,
            permits,
            number,
        })
    }

    /// Returns the verifier of client certificates for TLS handshakes.
    pub fn verifier(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::clone(&self.verifier)
    }

    /// Returns the permits of all names in `http.tls.client_scopes`.
    pub(super) fn permits(&self) -> impl Iterator<Item = &Arc<Permit>> {
        self.permits.values()
    }

    /// Returns the number of names in `http.tls.client_scopes`.
    pub fn count(&self) -> usize {
        self.permits.len()
    }

    /// Returns the permit of the caller with this certificate. It has the scopes that
    /// `http.tls.client_scopes` grants to the names in the certificate.
    ///
    /// # Errors
    /// Returns 401 `unauthorized` if the certificate is no longer valid, and 403 `forbidden` if
    /// `http.tls.client_scopes` lists no name of the certificate.
    pub(super) fn permit(
        &self,
        certificate: &ClientCertificate,
        since_1970: Duration,
    ) -> Result<Arc<Permit>, Problem> {
        if !self.is_good(certificate, since_1970) {
            let detail = "the client certificate is no longer valid: it has expired, was revoked, or its authority is \
                          no longer trusted";
            return Err(Problem::new(Slug::Unauthorized, detail).reason("invalid_certificate"));
        }
        let mut permits = certificate
            .names
            .iter()
            .filter_map(|name| self.permits.get(name));
        let Some(first) = permits.next() else {
            let names = certificate.names.join(", ");
            let detail = format!(
                "http.tls.client_scopes lists none of the names of the client certificate: {names}"
            );
            return Err(Problem::new(Slug::Forbidden, detail).reason("unknown_certificate"));
        };
        Ok(permits.fold(Arc::clone(first), |sum, next| {
            Arc::new(sum.joined_with(next))
        }))
    }

    /// `true` if the certificate is valid now. A certificate that was valid in the handshake may
    /// expire or be revoked while the connection is open. So it is verified again once in each
    /// minute in which it is used, and after new authorities are loaded.
    fn is_good(&self, certificate: &ClientCertificate, since_1970: Duration) -> bool {
        let minute = since_1970.as_secs() / 60;
        let mark = u64::from(self.number) << 32 | minute & u64::from(u32::MAX);
        if certificate.is_marked(mark) {
            return true;
        }
        let Some((own, others)) = certificate.chain.split_first() else {
            return false;
        };
        let now = UnixTime::since_unix_epoch(since_1970);
        let is_good = self.verifier.verify_client_cert(own, others, now).is_ok();
        if is_good {
            certificate.mark_good(mark);
        }
        is_good
    }
}

/// A client certificate with its names. Its signature and dates were valid in the handshake.
#[derive(Debug)]
pub struct ClientCertificate {
    /// The client's certificate, followed by its issuers up to the authority.
    chain: Vec<CertificateDer<'static>>,
    /// The subject alternative names: DNS names in lower case, and URIs.
    names: Vec<String>,
    /// The last successful verification. The upper 32 bits are the `number` of the
    /// [`ClientCertificates`](super::ClientCertificates) that verified the certificate. The lower
    /// 32 bits are the time of the verification, in minutes since 1970.
    /// Written by: `mark_good`. Read by: `is_marked`. Ordering: `Relaxed`, because it guards no
    /// other data.
    /// Tested by: `a_certificate_is_looked_at_again_after_a_minute_and_by_other_authorities`.
    good_at: AtomicU64,
}

impl ClientCertificate {
    /// Reads the client's own certificate, which is the first one of `chain`. Returns `None` if the
    /// chain is empty or that certificate is unreadable.
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

    fn is_marked(&self, mark: u64) -> bool {
        self.good_at.load(Ordering::Relaxed) == mark
    }

    fn mark_good(&self, mark: u64) {
        self.good_at.store(mark, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};

    use super::*;

    const NAME: &str = "billing.example.com";
    /// A time in 2026.
    const NOW: Duration = Duration::from_secs(1_780_000_000);
    const YEAR: Duration = Duration::from_secs(366 * 86_400);

    fn authority() -> (Issuer<'static, KeyPair>, String) {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        (Issuer::new(params, key), pem)
    }

    /// Returns a certificate for these names, valid until 2027.
    fn certificate(issuer: &Issuer<'static, KeyPair>, names: &[&str]) -> ClientCertificate {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        (params.not_before, params.not_after) =
            (date_time_ymd(2000, 1, 1), date_time_ymd(2027, 1, 1));
        let signed = params
            .signed_by(&KeyPair::generate().expect("a key"), issuer)
            .expect("a certificate");
        ClientCertificate::of_chain(&[signed.der().clone()]).expect("it can be read")
    }

    fn accepted(pem: &str, scopes: &[(&str, &[Scope])]) -> ClientCertificates {
        let scopes = scopes
            .iter()
            .map(|(name, scopes)| ((*name).to_owned(), scopes.iter().copied().collect()));
        ClientCertificates::new(pem.as_bytes(), &scopes.collect()).expect("an authority")
    }

    fn reason(permit: Result<Arc<Permit>, Problem>) -> Option<Slug> {
        permit.err().map(|problem| problem.slug())
    }

    #[test]
    fn a_certificate_is_looked_at_again_after_a_minute_and_by_other_authorities() {
        let ((issuer, pem), (_, other_pem)) = (authority(), authority());
        let certificates = accepted(&pem, &[(NAME, &[Scope::Mint])]);
        let shown = certificate(&issuer, &["BILLING.example.com"]);
        assert_eq!(reason(certificates.permit(&shown, NOW)), None);
        assert_eq!(
            reason(certificates.permit(&shown, NOW + YEAR)),
            Some(Slug::Unauthorized),
            "it has expired"
        );
        assert_eq!(reason(certificates.permit(&shown, NOW)), None);
        let others = accepted(&other_pem, &[(NAME, &[Scope::Mint])]);
        assert_eq!(
            reason(others.permit(&shown, NOW)),
            Some(Slug::Unauthorized),
            "within the same minute"
        );
    }

    #[test]
    fn a_certificate_of_several_names_permits_what_any_of_them_does() {
        let (issuer, pem) = authority();
        let certificates = accepted(
            &pem,
            &[
                (NAME, &[Scope::Mint]),
                ("b.example.com", &[Scope::Decode, Scope::Mint]),
            ],
        );
        let scopes = |names: &[&str]| {
            let permit = certificates.permit(&certificate(&issuer, names), NOW);
            permit
                .map(|permit| permit.scopes.iter().copied().collect::<Vec<_>>())
                .map_err(|problem| problem.slug())
        };
        assert_eq!(scopes(&["x.example.com", NAME]), Ok(vec![Scope::Mint]));
        assert_eq!(
            scopes(&[NAME, "b.example.com"]),
            Ok(vec![Scope::Mint, Scope::Decode])
        );
        assert_eq!(scopes(&["x.example.com"]), Err(Slug::Forbidden));
        assert_eq!(scopes(&[]), Err(Slug::Forbidden));
    }

    #[test]
    fn a_file_without_an_authority_is_none() {
        for text in [
            "",
            "text",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            assert!(
                ClientCertificates::new(text.as_bytes(), &BTreeMap::new()).is_err(),
                "{text:?}"
            );
        }
    }
}
