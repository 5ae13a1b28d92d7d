//! Where a service is, and what it is shown by whoever asks it.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::exit::{Exit, Failure};
use crate::client::{Client, ClientError, Trust};
use crate::server::config::Config;
use crate::server::reachable;

/// The address that a service on this machine listens on, if the environment or the defaults say so.
pub(in crate::cli) fn service_url() -> String {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let config = Config::load(None, variables, toml::Table::new()).unwrap_or_default();
    format!(
        "{}://{}",
        config.http.scheme(),
        reachable(config.http.listen)
    )
}

/// How a command shows a service that it may ask, and knows that it is the service.
#[derive(Debug, Args)]
pub(in crate::cli) struct AccessArgs {
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
    pub(in crate::cli) fn client(&self, url: &str) -> Result<Client, Failure> {
        let mut trust = Trust::default();
        if let Some(ca) = &self.ca {
            trust = trust
                .in_authorities(&read("--ca", ca)?)
                .map_err(|error| damaged("--ca", ca, &error))?;
        }
        if let Some(cert) = &self.cert {
            let key = self.cert_key.as_ref().unwrap_or(cert);
            let shown = trust.showing(&read("--cert", cert)?, &read("--cert-key", key)?);
            trust = shown.map_err(|error| damaged("--cert", cert, &error))?;
        }
        let client = Client::trusting(trust, url)?;
        let Some(path) = &self.token_file else {
            return Ok(client);
        };
        let token = read("--token-file", path)?;
        let token = String::from_utf8_lossy(&token);
        client
            .with_token(token.trim_end())
            .map_err(|error| damaged("--token-file", path, &error))
    }
}

fn read(flag: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path)
        .map_err(|error| Failure::new(Exit::Io, format!("{flag} {}: {error}", path.display())))
}

fn damaged(flag: &str, path: &Path, error: &ClientError) -> Failure {
    Failure::new(Exit::Damaged, format!("{flag} {}: {error}", path.display()))
}
