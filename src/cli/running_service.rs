//! How commands reach a running service.

use std::fs;
use std::path::PathBuf;

use clap::Args;

use super::exit::{Exit, Failure};
use crate::client::{Client, ClientError};
use crate::server::config::Config;
use crate::server::reachable;

/// The address that a service on this machine listens on, if the environment or the defaults say so.
pub(super) fn service_url() -> String {
    let variables =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let config = Config::load(None, variables, toml::Table::new()).unwrap_or_default();
    format!("http://{}", reachable(config.http.listen))
}

/// How a command shows a service that it may ask.
#[derive(Debug, Args)]
pub(super) struct TokenArgs {
    /// A file with the token to send, where the service asks for one.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl TokenArgs {
    /// A client of the service at `url`, with the token.
    ///
    /// # Errors
    /// 74 when the file cannot be read, 65 when it has no token.
    pub(super) fn client(&self, url: &str) -> Result<Client, Failure> {
        let client = Client::new(url)?;
        let Some(path) = &self.token_file else { return Ok(client) };
        let text = fs::read_to_string(path)
            .map_err(|error| Failure::new(Exit::Io, format!("--token-file {}: {error}", path.display())))?;
        let damaged = |error| Failure::new(Exit::Damaged, format!("--token-file {}: {error}", path.display()));
        client.with_token(text.trim_end()).map_err(damaged)
    }
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
