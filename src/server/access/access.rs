//! Who is let in, and how: tokens, certificates and rate of the configuration, whose files are read at the start and whenever
//! the process is told to read them again.

use std::path::PathBuf;
use std::sync::Arc;

use tracing::{error, info};

use super::tls_files::{TlsError, TlsFiles};
use crate::http::{Guard, Rate, Tokens, TokensError};
use crate::net::Tls;
use crate::server::config::{Config, TlsConfig};
use crate::service::{IdSource, Service};
use crate::storage::WithCauses;

/// Why nobody can be let in.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The tokens cannot be had.
    #[error(transparent)]
    Tokens(#[from] TokensError),
    /// TLS cannot be spoken.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// A guard and TLS, each if there is any, and the files that they come from.
#[derive(Debug, Clone)]
pub(in crate::server) struct Access {
    tokens: Option<PathBuf>,
    tls_config: TlsConfig,
    formats: Vec<String>,
    guard: Option<Arc<Guard>>,
    tls: Option<Arc<Tls>>,
}

impl Access {
    /// That of a configuration.
    ///
    /// # Errors
    /// [`AccessError`].
    pub(in crate::server) fn of(config: &Config, service: &Service) -> Result<Access, AccessError> {
        let formats: Vec<_> = service
            .formats()
            .iter()
            .map(|served| served.format().name.clone())
            .collect();
        let of_events = service
            .formats()
            .iter()
            .filter(|served| matches!(served.source(), IdSource::Events));
        let of_events = of_events
            .map(|served| served.format().name.clone())
            .collect();
        let tokens = config
            .http
            .tokens
            .as_ref()
            .map(|path| Tokens::load(path, &formats))
            .transpose()?;
        let (tls, clients) = TlsFiles::read(&config.http.tls)?
            .map(|files| (Tls::new(files.config), files.clients))
            .unzip();
        let (clients, rate) = (clients.flatten(), config.http.rate.map(Rate::per_second));
        let is_open = tokens.is_none() && clients.is_none() && rate.is_none();
        let mut guard = Guard::new(of_events, Arc::clone(service.clock()));
        if let Some(tokens) = tokens {
            guard = guard.with_tokens(tokens);
        }
        if let Some(clients) = clients {
            guard = guard.with_certificates(clients);
        }
        if let Some(rate) = rate {
            guard = guard.with_rate(rate);
        }
        Ok(Access {
            tokens: config.http.tokens.clone(),
            tls_config: config.http.tls.clone(),
            formats,
            guard: (!is_open).then(|| Arc::new(guard)),
            tls,
        })
    }

    pub(in crate::server) fn guard(&self) -> Option<Arc<Guard>> {
        self.guard.clone()
    }

    pub(in crate::server) fn tls(&self) -> Option<Arc<Tls>> {
        self.tls.clone()
    }

    /// Accepts what the files list now, and of this configuration the scopes of certificates. What is no good leaves what was
    /// accepted before.
    pub(in crate::server) fn read_again(&mut self, config: Option<&Config>) {
        if let Some(config) = config {
            self.tls_config
                .client_scopes
                .clone_from(&config.http.tls.client_scopes);
        }
        if let (Some(guard), Some(path)) = (&self.guard, &self.tokens) {
            match Tokens::load(path, &self.formats) {
                Ok(tokens) => {
                    info!(
                        tokens = tokens.count(),
                        "{} tokens of {} are accepted now",
                        tokens.count(),
                        path.display()
                    );
                    guard.accept_tokens(tokens);
                }
                Err(error) => error!("the tokens stay as they were: {}", WithCauses(&error)),
            }
        }
        if let Some(tls) = &self.tls {
            match TlsFiles::read(&self.tls_config) {
                Ok(files) => files.into_iter().for_each(|files| self.speak(tls, files)),
                Err(error) => error!("the certificates stay as they were: {}", WithCauses(&error)),
            }
        }
    }

    fn speak(&self, tls: &Tls, files: TlsFiles) {
        let names = files.clients.as_ref().map_or(0, |clients| clients.count());
        tls.replace(files.config);
        if let (Some(guard), Some(clients)) = (&self.guard, files.clients) {
            guard.accept_certificates(clients);
        }
        info!(
            names,
            "the certificates are read again, {names} names of clients are accepted now"
        );
    }
}

/// Whom a configuration lets in.
#[derive(Debug)]
pub struct Callers {
    /// What they have to show, in a few words.
    pub shown: String,
    /// What is refused to tokens and certificates though they have the scope, a line for each of them.
    pub refusals: Vec<String>,
}

/// Whom a configuration lets in.
///
/// # Errors
/// [`AccessError`].
pub fn check_access(config: &Config, service: &Service) -> Result<Callers, AccessError> {
    let access = Access::of(config, service)?;
    let guard = access.guard.as_deref();
    let shown = [
        (guard.and_then(Guard::tokens), "tokens"),
        (guard.and_then(Guard::certificates), "certificate names"),
    ];
    let shown = shown
        .into_iter()
        .filter_map(|(count, what)| Some(format!("{} {what}", count?)));
    let shown: Vec<_> = shown.collect();
    let shown = if shown.is_empty() {
        "need no token".to_owned()
    } else {
        shown.join(", ")
    };
    Ok(Callers {
        shown,
        refusals: guard.map(Guard::refusals).unwrap_or_default(),
    })
}
