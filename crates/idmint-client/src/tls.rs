//! TLS settings of a client: trusted authorities and the client certificate.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::error::ClientError;

/// The TLS settings of a client. By default, the client trusts the authorities of the system and
/// has no client certificate.
#[derive(Debug, Default)]
pub struct Trust {
    authorities: Option<RootCertStore>,
    shown: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
}

impl Trust {
    /// Trusts only the certificate authorities in this PEM file.
    ///
    /// # Errors
    /// Returns [`ClientError::NotPem`] if the file has no valid certificate.
    pub fn in_authorities(self, pem: &[u8]) -> Result<Trust, ClientError> {
        let mut authorities = RootCertStore::empty();
        for certificate in certificates(pem)? {
            authorities
                .add(certificate)
                .map_err(|_| ClientError::NotPem("certificate"))?;
        }
        Ok(Trust {
            authorities: Some(authorities),
            ..self
        })
    }

    /// Sets the client certificate and its private key, both in PEM.
    ///
    /// # Errors
    /// Returns [`ClientError::NotPem`] if a file lacks a valid certificate or key.
    pub fn showing(self, certificate: &[u8], key: &[u8]) -> Result<Trust, ClientError> {
        let key =
            PrivateKeyDer::from_pem_slice(key).map_err(|_| ClientError::NotPem("private key"))?;
        Ok(Trust {
            shown: Some((certificates(certificate)?, key)),
            ..self
        })
    }

    /// Builds the rustls configuration for connections to `url`. The authorities of the system are
    /// read only for `https`.
    pub(super) fn config(self, url: &str) -> Result<ClientConfig, ClientError> {
        let authorities = self.authorities.unwrap_or_else(|| {
            let mut of_system = RootCertStore::empty();
            if url.starts_with("https:") {
                of_system.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
            of_system
        });
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder
            .with_safe_default_protocol_versions()
            .map_err(ClientError::Tls)?;
        let builder = builder.with_root_certificates(authorities);
        match self.shown {
            Some((chain, key)) => builder
                .with_client_auth_cert(chain, key)
                .map_err(ClientError::Tls),
            None => Ok(builder.with_no_client_auth()),
        }
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(ClientError::NotPem("certificate")),
    }
}
