//! Access control of the service. Reads the tokens, certificates and TLS files that the
//! configuration names.
//!
//! The files are read at the start, and again when the process receives SIGHUP.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::NoServerSessionStorage;
use tokio_rustls::rustls::{self, ServerConfig};
use tracing::{error, info};

use super::expiries::expiries_in;
use super::run::RunError;
use crate::server::config::{Config, TlsConfig};
use idmint_http::{ClientCertificates, Guard, Rate, Tokens, TokensError};
use idmint_net::Tls;
use idmint_service::{Expiry, ExpiryKind, IdSource, ServedFormat, Service};
use idmint_storage::WithCauses;

/// An error in the access settings or their files.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The tokens cannot be read.
    #[error(transparent)]
    Tokens(#[from] TokensError),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Checks that only callers with a token or certificate can mint, unless the operator allows other
/// callers (`insecure_public`) or no other machine can reach the service.
///
/// # Errors
/// Returns [`RunError::Public`] if other machines could mint without credentials.
pub fn check_callers(config: &Config, insecure_public: bool) -> Result<(), RunError> {
    match config.http.public_address() {
        Some((key, listen)) if !config.http.asks_callers() && !insecure_public => {
            Err(RunError::Public { key, listen })
        }
        _ => Ok(()),
    }
}

/// The access control of the service: `guard` checks the callers of requests, and `tls` encrypts
/// connections. Each of the two is `None` if it is not configured. The other fields are needed to
/// read the token and TLS files again.
#[derive(Debug, Clone)]
pub(super) struct Access {
    tokens: Option<PathBuf>,
    tls_config: TlsConfig,
    formats: Vec<String>,
    pub(super) guard: Option<Arc<Guard>>,
    pub(super) tls: Option<Arc<Tls>>,
}

impl Access {
    /// Reads the token and TLS files that a configuration names. Passes the expiry times of the
    /// credentials in these files to `service`, which reports them.
    ///
    /// # Errors
    /// Returns [`AccessError`] if a file cannot be read or is not valid.
    pub(super) fn of(config: &Config, service: &Service) -> Result<Access, AccessError> {
        let served = || service.formats().iter();
        let name_of = |served: &Arc<ServedFormat>| served.format().name.clone();
        let formats: Vec<_> = served().map(name_of).collect();
        let of_events = served()
            .filter(|served| matches!(served.source(), IdSource::Events))
            .map(name_of)
            .collect();
        let tokens = config
            .http
            .tokens
            .as_ref()
            .map(|path| Tokens::load(path, &formats))
            .transpose()?;
        let files = TlsFiles::read(&config.http.tls)?;
        if let Some(tokens) = &tokens {
            service.set_expiries("http.tokens", tokens.expiries().to_vec());
        }
        if let Some(files) = &files {
            service.set_expiries("http.tls", files.expiries.clone());
        }
        let (tls, clients) = files
            .map(|files| (Tls::new(files.config), files.clients))
            .unzip();
        let (clients, rate) = (clients.flatten(), config.http.rate.map(Rate::per_second));
        let is_open = tokens.is_none() && clients.is_none() && rate.is_none();
        let clock = Arc::clone(service.clock());
        let guard = Guard::new(tokens, clients, rate, of_events, clock);
        Ok(Access {
            tokens: config.http.tokens.clone(),
            tls_config: config.http.tls.clone(),
            formats,
            guard: (!is_open).then(|| Arc::new(guard)),
            tls,
        })
    }

    /// Reads the token and TLS files again, at the same paths as before. If `config` is given,
    /// takes the scopes of client certificates from it, and nothing else. `config` is `None` if the
    /// configuration is invalid. If a file is invalid, or the scopes do not fit the running
    /// settings, the previous content stays in force. Returns the settings whose previous content
    /// was kept for this reason.
    pub(super) fn read_again(
        &mut self,
        config: Option<&Config>,
        service: &Service,
    ) -> Vec<&'static str> {
        let mut kept = Vec::new();
        if let Some(config) = config {
            let mut tls_config = self.tls_config.clone();
            tls_config
                .client_scopes
                .clone_from(&config.http.tls.client_scopes);
            match tls_config.check() {
                Ok(()) => self.tls_config = tls_config,
                // Without this check, removing `client_ca` and `client_scopes` from the file would
                // refuse all client certificates until a restart.
                Err((_, problem)) => {
                    kept.push("http.tls.client_scopes");
                    error!(
                        "SIGHUP: http.tls.client_scopes stays unchanged until a restart, because the running \
                         http.tls.client_ca does not fit: {problem}"
                    );
                }
            }
        } else {
            kept.extend([
                "conjunction.catalogs",
                "conjunction.designators",
                "http.tls.client_scopes",
            ]);
        }
        if let (Some(guard), Some(path)) = (&self.guard, &self.tokens) {
            match Tokens::load(path, &self.formats) {
                Ok(tokens) => {
                    info!(
                        tokens = tokens.count(),
                        "{} tokens were reloaded from {}",
                        tokens.count(),
                        path.display()
                    );
                    service.set_expiries("http.tokens", tokens.expiries().to_vec());
                    guard.accept_tokens(tokens);
                }
                Err(error) => {
                    kept.push("http.tokens");
                    error!(
                        "the tokens cannot be reloaded, so the earlier ones stay valid: {}",
                        WithCauses(&error)
                    );
                }
            }
        }
        if let Some(tls) = &self.tls {
            match TlsFiles::read(&self.tls_config) {
                Ok(files) => files.into_iter().for_each(|files| {
                    service.set_expiries("http.tls", files.expiries.clone());
                    self.speak(tls, files);
                }),
                Err(error) => {
                    kept.push("http.tls");
                    error!(
                        "the certificates cannot be reloaded, so the earlier ones stay in use: {}",
                        WithCauses(&error)
                    );
                }
            }
        }
        kept
    }

    fn speak(&self, tls: &Tls, files: TlsFiles) {
        let names = files.clients.as_ref().map_or(0, |clients| clients.count());
        tls.replace(files.config);
        if let (Some(guard), Some(clients)) = (&self.guard, files.clients) {
            guard.accept_certificates(clients);
        }
        info!(
            names,
            "the certificates were reloaded, and {names} client names are accepted"
        );
    }
}

/// The access rules of a configuration, described for operators.
#[derive(Debug)]
pub struct AccessSummary {
    /// The number of credentials of each kind that the service accepts, such as `3 tokens, 1
    /// certificate names`.
    pub credentials: String,
    /// A line for each token or certificate that cannot send all requests that its scopes allow.
    /// For example, a token with the scope `metrics` that is limited to some formats cannot read
    /// the metrics.
    pub refusals: Vec<String>,
}

/// Reads the tokens, certificates and TLS files that a configuration names, and summarizes them.
///
/// # Errors
/// Returns [`AccessError`] if a file cannot be read or is not valid.
pub fn check_access(config: &Config, service: &Service) -> Result<AccessSummary, AccessError> {
    let access = Access::of(config, service)?;
    let guard = access.guard.as_deref();
    let counts = [
        (guard.and_then(Guard::tokens), "tokens"),
        (guard.and_then(Guard::certificates), "certificate names"),
    ];
    let counts: Vec<_> = counts
        .into_iter()
        .filter_map(|(count, what)| Some(format!("{} {what}", count?)))
        .collect();
    let credentials = if counts.is_empty() {
        "need no token".to_owned()
    } else {
        counts.join(", ")
    };
    Ok(AccessSummary {
        credentials,
        refusals: guard.map(Guard::refusals).unwrap_or_default(),
    })
}

/// The TLS configuration, read from its files.
struct TlsFiles {
    config: ServerConfig,
    /// `None` if clients need no certificate.
    clients: Option<ClientCertificates>,
    /// The expiry times of the certificates and certificate revocation lists in the TLS files.
    expiries: Vec<Expiry>,
}

/// An error in the TLS files.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{key}: {} cannot be read", .path.display())]
    Unreadable {
        /// The setting.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// A TLS file is not PEM, lacks what it must contain (such as a private key), or contains
    /// something unusable, such as a certificate that does not match the private key.
    #[error("{problem}")]
    Unusable {
        /// The problem, with the setting and the file.
        problem: String,
        /// The cause.
        #[source]
        cause: Box<dyn Error + Send + Sync>,
    },
}

impl TlsError {
    fn no_pem(key: &str, path: &Path, what: &str, cause: pem::Error) -> TlsError {
        TlsError::Unusable {
            problem: format!(
                "{key}: the file {} has no {what} in PEM format",
                path.display()
            ),
            cause: cause.into(),
        }
    }
}

impl TlsFiles {
    /// Reads the TLS files, or returns `None` if TLS is not configured.
    ///
    /// # Errors
    /// Returns [`TlsError`], which names the setting and the file.
    fn read(tls: &TlsConfig) -> Result<Option<TlsFiles>, TlsError> {
        let (Some(certificate), Some(key)) = (&tls.certificate, &tls.key) else {
            return Ok(None);
        };
        let mut expiries = Vec::new();
        let clients = tls
            .client_ca
            .as_ref()
            .map(|path| read_clients(path, tls, &mut expiries))
            .transpose()?;
        let chain = read_chain(certificate, &mut expiries)?;
        let secret = read_key(key)?;
        let unusable = |cause: rustls::Error| TlsError::Unusable {
            problem: format!(
                "http.tls: the certificate {} cannot be used with the key {}",
                certificate.display(),
                key.display()
            ),
            cause: cause.into(),
        };
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder
            .with_safe_default_protocol_versions()
            .map_err(unusable)?;
        let config = match &clients {
            Some(clients) => {
                let builder = builder.with_client_cert_verifier(clients.verifier());
                let mut config = builder.with_single_cert(chain, secret).map_err(unusable)?;
                // Disable session resumption, because a client that resumes a TLS session does not
                // present its certificate again.
                config.session_storage = Arc::new(NoServerSessionStorage {});
                config.send_tls13_tickets = 0;
                config
            }
            None => builder
                .with_no_client_auth()
                .with_single_cert(chain, secret)
                .map_err(unusable)?,
        };
        Ok(Some(TlsFiles {
            config,
            clients,
            expiries,
        }))
    }
}

fn read_clients(
    path: &Path,
    tls: &TlsConfig,
    expiries: &mut Vec<Expiry>,
) -> Result<ClientCertificates, TlsError> {
    const KEY: &str = "http.tls.client_ca";
    let text = read(KEY, path)?;
    expiries.extend(expiries_in(&text, ExpiryKind::Authority, KEY));
    ClientCertificates::new(&text, &tls.client_scopes).map_err(|cause| TlsError::Unusable {
        problem: format!(
            "{KEY}: the certificates in {} cannot be used",
            path.display()
        ),
        cause: cause.into(),
    })
}

fn read_chain(
    path: &Path,
    expiries: &mut Vec<Expiry>,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    const KEY: &str = "http.tls.certificate";
    let text = read(KEY, path)?;
    expiries.extend(expiries_in(&text, ExpiryKind::Certificate, KEY));
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let no_pem = |cause| TlsError::no_pem(KEY, path, "certificate", cause);
    match chain.map_err(no_pem)? {
        chain if chain.is_empty() => Err(no_pem(pem::Error::NoItemsFound)),
        chain => Ok(chain),
    }
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    const KEY: &str = "http.tls.key";
    let text = read(KEY, path)?;
    PrivateKeyDer::from_pem_slice(&text)
        .map_err(|cause| TlsError::no_pem(KEY, path, "private key", cause))
}

fn read(key: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|cause| TlsError::Unreadable {
        key,
        path: path.to_owned(),
        cause,
    })
}
