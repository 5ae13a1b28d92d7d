//! How commands reach a running service.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::{Exit, Failure};
use crate::client::{Client, ClientError, Trust};
use crate::server::config::Config;
use crate::server::reachable;

/// The address that a service on this machine listens on, if the environment or the defaults say so.
pub(super) fn service_url() -> String {
    let variables =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let config = Config::load(None, variables, toml::Table::new()).unwrap_or_default();
    format!("{}://{}", config.http.scheme(), reachable(config.http.listen))
}

/// How a command shows a service that it may ask, and knows that it is the service.
#[derive(Debug, Args)]
pub(super) struct AccessArgs {
    /// A file with the token to send, where the service asks for one.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A PEM file with the authorities to trust, and no others, where the service speaks TLS; those of the system if absent.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// A PEM file with the certificate to show, where the service asks for one.
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,
    /// A PEM file with the private key of that certificate; that of --cert if absent.
    #[arg(long, value_name = "FILE", requires = "cert")]
    cert_key: Option<PathBuf>,
}

impl AccessArgs {
    /// A client of the service at `url`, with what is to be shown.
    ///
    /// # Errors
    /// 74 when a file cannot be read, 65 when it has not what it should have.
    pub(super) fn client(&self, url: &str) -> Result<Client, Failure> {
        let mut trust = Trust::default();
        if let Some(ca) = &self.ca {
            trust = trust.in_authorities(&read("--ca", ca)?).map_err(|error| damaged("--ca", ca, &error))?;
        }
        if let Some(cert) = &self.cert {
            let key = self.cert_key.as_ref().unwrap_or(cert);
            let shown = trust.showing(&read("--cert", cert)?, &read("--cert-key", key)?);
            trust = shown.map_err(|error| damaged("--cert", cert, &error))?;
        }
        let client = Client::trusting(trust, url)?;
        let Some(path) = &self.token_file else { return Ok(client) };
        let token = read("--token-file", path)?;
        let token = String::from_utf8_lossy(&token);
        client.with_token(token.trim_end()).map_err(|error| damaged("--token-file", path, &error))
    }
}

fn read(flag: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| Failure::new(Exit::Io, format!("{flag} {}: {error}", path.display())))
}

fn damaged(flag: &str, path: &Path, error: &ClientError) -> Failure {
    Failure::new(Exit::Damaged, format!("{flag} {}: {error}", path.display()))
}

/// Asks a service once. Whatever it refuses is the answer: nothing is asked again.
///
/// # Errors
/// 1 when the service refuses, 69 when it cannot be reached or it is not the service that answers.
pub(super) fn ask_once<T>(
    client: Client,
    request: impl AsyncFnOnce(&Client) -> Result<T, ClientError>,
) -> Result<T, Failure> {
    block_on(async { request(&client).await.map_err(of_one_request) })
}

/// Runs work that asks a service.
///
/// # Errors
/// 74 when the process gets no means to wait with, and those of the work.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let failed = |error: std::io::Error| Failure::new(Exit::Io, format!("cannot start: {error}"));
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?.block_on(work)
}

fn of_one_request(error: ClientError) -> Failure {
    match &error {
        ClientError::Refused(refusal) | ClientError::Busy(refusal) if refusal.is_explained => {
            Failure::of(Exit::No, &error)
        }
        ClientError::Refused(_) | ClientError::Busy(_) => Failure::of(Exit::Unavailable, &error),
        _ => error.into(),
    }
}
