//! The connection from a command to a running service: the address, credentials, retries and
//! idempotency keys.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use indicatif::ProgressBar;

use crate::cli::exit::{Exit, Failure};
use crate::cli::print::print_note;
use crate::cli::settings::load_environment;
use crate::server::reachable;
use idmint_client::{Client, ClientError, Retry, Trust};
use idmint_core::time::{format_duration, parse_duration};
use idmint_storage::WithCauses;

/// Returns the address of the service on this machine. The address is taken from the environment,
/// or else from the defaults.
///
/// # Errors
/// Returns exit code 78 if an environment variable is invalid.
pub(super) fn service_url() -> Result<String, Failure> {
    let http = load_environment()?.http;
    Ok(format!("{}://{}", http.scheme(), reachable(http.listen)))
}

/// The credentials of a command, and the authorities that it trusts.
#[derive(Debug, Args)]
pub(super) struct AccessArgs {
    /// A file with the token to send, if the service requires one.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A PEM file with the only authorities to trust if the service uses TLS; those of the system if absent.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// A PEM file with the client certificate, if the service requires one.
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,
    /// A PEM file with the private key of the client certificate; by default, the file of --cert.
    #[arg(long, value_name = "FILE", requires = "cert")]
    cert_key: Option<PathBuf>,
}

impl AccessArgs {
    /// Returns a client of the service at `url`, with these credentials.
    ///
    /// # Errors
    /// Returns exit code 74 if a file cannot be read, and 65 if its content is invalid.
    pub(super) fn client(&self, url: &str) -> Result<Client, Failure> {
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
    fs::read(path).map_err(|error| Failure::io(format!("{flag} {}", path.display()), error))
}

fn damaged(flag: &str, path: &Path, error: &ClientError) -> Failure {
    Failure::damaged(format!("{flag} {}: {error}", path.display()))
}

/// The address of a service, and the credentials for it.
#[derive(Debug, Args)]
pub(super) struct ServiceArgs {
    /// The address of the service; on this machine if absent.
    #[arg(long)]
    server: Option<String>,
    #[command(flatten)]
    access: AccessArgs,
}

impl ServiceArgs {
    /// Returns a client of the service.
    ///
    /// # Errors
    /// Returns exit code 78 if `--server` is absent and an environment variable is invalid, and the
    /// errors of [`AccessArgs::client`].
    pub(super) fn client(&self) -> Result<Client, Failure> {
        match &self.server {
            Some(server) => self.access.client(server),
            None => self.access.client(&service_url()?),
        }
    }
}

/// A service, and the time limit for retries of each request.
#[derive(Debug, Args)]
pub(super) struct RetryArgs {
    #[command(flatten)]
    service: ServiceArgs,
    /// The time for which each request is repeated while the service is unreachable or busy. 0s
    /// sends it once.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_timeout)]
    timeout: Duration,
}

impl RetryArgs {
    /// Returns a client that retries failed requests. Before the first retry of a request, the
    /// client prints the error above the progress bar.
    ///
    /// # Errors
    /// Returns the errors of [`ServiceArgs::client`].
    pub(super) fn client(self, progress: &ProgressBar) -> Result<Client, Failure> {
        let (progress, time_max) = (progress.clone(), format_duration(self.timeout));
        let retry = Retry::within(self.timeout, move |error| {
            let error = WithCauses(error);
            progress.suspend(|| print_note(format_args!("{error}; retrying for up to {time_max}")));
        });
        Ok(self.service.client()?.retrying(retry))
    }
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .ok_or_else(|| "a duration must be a whole number and a unit, such as 90s or 5m".to_owned())
}

/// Sends one request to a service, without retries.
///
/// # Errors
/// Returns exit code 1 if the service refuses the request, and 75 if it is busy. Returns 69 if the
/// service is unreachable or the response does not come from idmint.
pub(super) fn ask_once<T>(
    client: Client,
    request: impl AsyncFnOnce(&Client) -> Result<T, ClientError>,
) -> Result<T, Failure> {
    block_on(async { request(&client).await.map_err(of_one_request) })
}

/// Runs `work`, which sends the requests of a command, and blocks until it is done.
///
/// # Errors
/// Returns exit code 74 if the runtime cannot start, and the errors of `work`.
pub(super) fn block_on<T, E: Into<Failure>>(
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, Failure> {
    let failed = |error: std::io::Error| Failure::io("cannot start", error);
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?
        .block_on(work)
        .map_err(E::into)
}

/// Converts the error of a command's only request. A refusal by another program, such as a proxy,
/// gets exit code 69. A refusal by idmint has a JSON body, and gets 75 if a later request may
/// succeed, or else 1.
pub(super) fn of_one_request(error: ClientError) -> Failure {
    match &error {
        ClientError::Refused(refusal) | ClientError::Busy(refusal) if !refusal.is_explained => {
            Failure::of(Exit::Unavailable, &error)
        }
        ClientError::Busy(refusal) if refusal.slug == "epoch-ended" => {
            Failure::of(Exit::No, &error)
        }
        _ => error.into(),
    }
}

/// The maximum length of an idempotency key on the command line. The service accepts 255
/// characters, and a command adds up to 21 to the key of each request: a slash and a number.
const KEY_LEN_MAX: usize = 234;

/// Returns an idempotency key that is derived from a digest of the request's content, so that a
/// repeated command sends the same key.
pub(super) fn key_of(digest: [u8; 32]) -> String {
    format!(
        "{:032x}",
        u128::from_be_bytes(*digest.first_chunk().expect("16 of 32 bytes"))
    )
}

/// Parses an idempotency key from the command line.
pub(super) fn parse_key(text: &str) -> Result<String, String> {
    if text.is_empty()
        || text.len() > KEY_LEN_MAX
        || !text.bytes().all(|byte| byte.is_ascii_graphic())
    {
        return Err(format!(
            "an idempotency key must be 1 to {KEY_LEN_MAX} visible ASCII characters"
        ));
    }
    Ok(text.to_owned())
}
