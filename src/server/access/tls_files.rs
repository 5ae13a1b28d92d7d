//! The files of TLS: the certificate and key of the service, and whose certificates clients may show.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::NoServerSessionStorage;
use tokio_rustls::rustls::{self, ServerConfig};

use crate::http::{ClientCertificates, ClientCertificatesError};
use crate::server::config::TlsConfig;

/// What the files of a configuration make.
pub(super) struct TlsFiles {
    pub(super) config: ServerConfig,
    /// `None` if clients are asked for none.
    pub(super) clients: Option<ClientCertificates>,
}

/// Why there is no TLS to speak.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{key}: {} cannot be read", .path.display())]
    Unreadable {
        /// The setting.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// A file is not PEM, or has nothing of the kind that is needed.
    #[error("{key}: {} has no {what} in PEM", .path.display())]
    NotPem {
        /// The setting.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What is looked for.
        what: &'static str,
        /// Why.
        #[source]
        cause: pem::Error,
    },
    /// Certificate and key cannot be used, or not together.
    #[error("http.tls: {} with the key {} cannot be used", .certificate.display(), .key.display())]
    Unusable {
        /// The certificate.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
        /// Why.
        #[source]
        cause: rustls::Error,
    },
    /// The authorities of clients are no good.
    #[error("http.tls.client_ca: {} cannot be used", .path.display())]
    Clients {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: ClientCertificatesError,
    },
}

impl TlsFiles {
    /// Reads them; `None` where no TLS is spoken.
    ///
    /// # Errors
    /// [`TlsError`] names the setting and the file.
    pub(super) fn read(tls: &TlsConfig) -> Result<Option<TlsFiles>, TlsError> {
        let (Some(certificate), Some(key)) = (&tls.certificate, &tls.key) else {
            return Ok(None);
        };
        let clients = tls
            .client_ca
            .as_ref()
            .map(|path| read_clients(path, tls))
            .transpose()?;
        let chain = read_chain(certificate)?;
        let secret = read_key(key)?;
        let unusable = |cause| TlsError::Unusable {
            certificate: certificate.clone(),
            key: key.clone(),
            cause,
        };
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder
            .with_safe_default_protocol_versions()
            .map_err(unusable)?;
        let config = match &clients {
            Some(clients) => {
                let builder = builder.with_client_cert_verifier(clients.verifier());
                let mut config = builder.with_single_cert(chain, secret).map_err(unusable)?;
                // A session that is taken up again would not be asked for its certificate again.
                config.session_storage = Arc::new(NoServerSessionStorage {});
                config.send_tls13_tickets = 0;
                config
            }
            None => builder
                .with_no_client_auth()
                .with_single_cert(chain, secret)
                .map_err(unusable)?,
        };
        Ok(Some(TlsFiles { config, clients }))
    }
}

fn read_clients(path: &Path, tls: &TlsConfig) -> Result<ClientCertificates, TlsError> {
    let text = read("http.tls.client_ca", path)?;
    let unusable = |cause| TlsError::Clients {
        path: path.to_owned(),
        cause,
    };
    ClientCertificates::new(&text, &tls.client_scopes).map_err(unusable)
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    const KEY: &str = "http.tls.certificate";
    let text = read(KEY, path)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let not_pem = |cause| TlsError::NotPem {
        key: KEY,
        path: path.to_owned(),
        what: "certificate",
        cause,
    };
    match chain.map_err(not_pem)? {
        chain if chain.is_empty() => Err(not_pem(pem::Error::NoItemsFound)),
        chain => Ok(chain),
    }
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    const KEY: &str = "http.tls.key";
    let text = read(KEY, path)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|cause| TlsError::NotPem {
        key: KEY,
        path: path.to_owned(),
        what: "private key",
        cause,
    })
}

fn read(key: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|cause| TlsError::Unreadable {
        key,
        path: path.to_owned(),
        cause,
    })
}
