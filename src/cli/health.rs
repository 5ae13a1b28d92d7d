//! `idmint health`, and how commands ask a running service.

use std::time::Duration;

use clap::Args;

use super::exit::{Exit, Failure};
use crate::server::config::Config;
use crate::server::reachable;
use crate::wire::Readiness;

/// How long a service may take to answer a command.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Say whether a running service mints: exit code 0 or 1.
#[derive(Debug, Args)]
pub(super) struct Health {
    /// Where the service listens.
    #[arg(long, default_value_t = service_url())]
    server: String,
}

impl Health {
    /// Prints why, if it does not.
    ///
    /// # Errors
    /// 1 when it does not mint or cannot be reached: what asks is a container engine, which knows no other code.
    pub(super) fn run(self) -> Result<(), Failure> {
        let readiness: Result<Readiness, Failure> = ask(async |client| {
            let answer = client.get(format!("{}/health/ready", self.server)).send().await?;
            Ok(answer.json().await?)
        });
        let readiness = readiness.map_err(|failure| Failure::new(Exit::No, failure))?;
        match readiness.reason {
            None => {
                println!("ready, slot {}", readiness.slot);
                Ok(())
            }
            Some(reason) => {
                Err(Failure::new(Exit::No, format!("not ready: {reason}: {}", readiness.detail.unwrap_or_default())))
            }
        }
    }
}

/// The address that a service on this machine listens on, if the environment or the defaults say so.
pub(super) fn service_url() -> String {
    let variables =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let config = Config::load(None, variables, toml::Table::new()).unwrap_or_default();
    format!("http://{}", reachable(config.http.listen))
}

/// Why a service gave no answer that can be used.
pub(super) enum Unanswered {
    /// It could not be reached, or what came back is no answer of this service.
    Unreachable(reqwest::Error),
    /// It refused; this is what it said.
    Refused(String),
}

impl From<reqwest::Error> for Unanswered {
    fn from(error: reqwest::Error) -> Unanswered {
        Unanswered::Unreachable(error)
    }
}

impl From<Unanswered> for Failure {
    fn from(unanswered: Unanswered) -> Failure {
        match unanswered {
            Unanswered::Refused(detail) => Failure::new(Exit::No, detail),
            Unanswered::Unreachable(error) => Failure::of(Exit::Unavailable, &error),
        }
    }
}

/// Lets `request` ask a service once, and turns what goes wrong into an exit code.
pub(super) fn ask<T>(request: impl AsyncFnOnce(reqwest::Client) -> Result<T, Unanswered>) -> Result<T, Failure> {
    with_client(async |client| Ok(request(client).await?))
}

/// Does work that asks a service.
pub(super) fn with_client<T>(work: impl AsyncFnOnce(reqwest::Client) -> Result<T, Failure>) -> Result<T, Failure> {
    let failed = |error: std::io::Error| Failure::new(Exit::Io, format!("cannot start: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let client = reqwest::Client::builder().timeout(ANSWER_MAX).no_proxy().build();
    let client = client.map_err(|error| Failure::of(Exit::Io, &error))?;
    runtime.block_on(work(client))
}

/// The text of an answer, or what the problem document says.
pub(super) async fn text_of_success(answer: reqwest::Response) -> Result<String, Unanswered> {
    Ok(success(answer).await?.text().await?)
}

/// The bytes of an answer, or what the problem document says.
pub(super) async fn bytes_of_success(answer: reqwest::Response) -> Result<Vec<u8>, Unanswered> {
    Ok(success(answer).await?.bytes().await?.into())
}

async fn success(answer: reqwest::Response) -> Result<reqwest::Response, Unanswered> {
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    let problem: serde_json::Value = answer.json().await?;
    let detail = problem["detail"].as_str().unwrap_or("no detail");
    Err(Unanswered::Refused(format!("{status}: {detail}")))
}
