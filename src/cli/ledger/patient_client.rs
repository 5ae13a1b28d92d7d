//! Asking a service until it answers. What may pass is tried again with the same key, so nothing is done twice.

use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use indicatif::ProgressBar;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use crate::cli::exit::{Exit, Failure};
use crate::cli::health::service_url;
use crate::ledger::LedgerId;
use crate::time::{format_duration, parse_duration};
use crate::wire::LedgerInfo;

/// The first pause before asking again; each one after it is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The longest pause, unless the service asks for a longer one.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Which service, and how patient to be with it.
#[derive(Debug, Args)]
pub(super) struct Server {
    /// Where the service listens.
    #[arg(long, default_value_t = service_url())]
    server: String,
    /// How long to go on asking, for each request, while the service cannot be reached or cannot do it now; 0s asks once.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = timeout)]
    timeout: Duration,
}

/// A client that asks again.
pub(super) struct PatientClient {
    client: reqwest::Client,
    server: Server,
    progress: ProgressBar,
}

/// What came back.
pub(super) struct Answer<T> {
    /// Whether the same request was done before, so nothing was done now.
    pub(super) is_replayed: bool,
    pub(super) body: T,
}

/// Why there is no answer.
pub(super) enum Unanswered {
    /// The service refuses, and would refuse again.
    Refused(Refusal),
    /// The time is up, or it is not this service that answers. What was asked for may have been done.
    Failed(Failure),
}

/// What a service refuses.
pub(super) struct Refusal {
    status: StatusCode,
    /// The kind, as in `/problems/{slug}`.
    pub(super) slug: String,
    pub(super) detail: String,
}

/// Asking again may help.
struct NotNow {
    failure: Failure,
    retry_after: Option<Duration>,
}

/// Why one attempt brought no answer.
enum Missed {
    NotNow(NotNow),
    Unanswered(Unanswered),
}

/// The members of a problem document that are needed here.
#[derive(Deserialize)]
struct ProblemDocument {
    #[serde(rename = "type")]
    kind: String,
    detail: String,
    retry_after_ms: Option<u64>,
}

impl From<Unanswered> for Failure {
    fn from(unanswered: Unanswered) -> Failure {
        match unanswered {
            Unanswered::Refused(Refusal { status, detail, .. }) => {
                Failure::new(Exit::No, format!("{status}: {detail}"))
            }
            Unanswered::Failed(failure) => failure,
        }
    }
}

impl PatientClient {
    /// A client of that service. What it says meanwhile goes above the bar.
    pub(super) fn new(client: reqwest::Client, server: Server, progress: ProgressBar) -> PatientClient {
        PatientClient { client, server, progress }
    }

    /// Where the work stands.
    pub(super) fn progress(&self) -> &ProgressBar {
        &self.progress
    }

    /// A ledger; `None` if the service has none of that id.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub(super) async fn ledger(&self, ledger: LedgerId) -> Result<Option<LedgerInfo>, Unanswered> {
        match self.get(&format!("/ledgers/{ledger}")).await {
            Ok(info) => Ok(Some(info)),
            Err(Unanswered::Refused(refusal)) if refusal.slug == "unknown-ledger" => Ok(None),
            Err(unanswered) => Err(unanswered),
        }
    }

    /// Reads what is at `path`.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Unanswered> {
        let url = format!("{}{path}", self.server.server);
        Ok(self.ask(|| self.client.get(&url)).await?.body)
    }

    /// Has `body` done at `path`, once, however often it must be asked for.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        key: &str,
        body: Vec<u8>,
    ) -> Result<Answer<T>, Unanswered> {
        let (url, body) = (format!("{}{path}", self.server.server), Bytes::from(body));
        let request = || self.client.post(&url).header(CONTENT_TYPE, "application/json").header("idempotency-key", key);
        self.ask(|| request().body(body.clone())).await
    }

    async fn ask<T: DeserializeOwned>(&self, request: impl Fn() -> RequestBuilder) -> Result<Answer<T>, Unanswered> {
        let begun = Instant::now();
        let mut pause = PAUSE_MIN;
        loop {
            let NotNow { failure, retry_after } = match attempt(request()).await {
                Ok(answer) => return Ok(answer),
                Err(Missed::Unanswered(unanswered)) => return Err(unanswered),
                Err(Missed::NotNow(not_now)) => not_now,
            };
            let wait = retry_after.unwrap_or_default().max(pause);
            if begun.elapsed().saturating_add(wait) > self.server.timeout {
                return Err(Unanswered::Failed(failure));
            }
            if pause == PAUSE_MIN {
                let most = format_duration(self.server.timeout);
                self.progress.suspend(|| eprintln!("idmint: {failure}; asking again for up to {most}"));
            }
            sleep(wait).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

/// Asks once.
async fn attempt<T: DeserializeOwned>(request: RequestBuilder) -> Result<Answer<T>, Missed> {
    let response = request.send().await.map_err(unreachable)?;
    if !response.status().is_success() {
        return Err(refused(response).await);
    }
    let is_replayed = response.headers().contains_key("idempotency-replayed");
    let body = response.bytes().await.map_err(unreachable)?;
    let body = serde_json::from_slice(&body).map_err(|error| {
        let failure = Failure::new(Exit::Unavailable, format!("what answers is no idmint service: {error}"));
        Missed::Unanswered(Unanswered::Failed(failure))
    })?;
    Ok(Answer { is_replayed, body })
}

async fn refused(response: Response) -> Missed {
    let status = response.status();
    let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let problem: Option<ProblemDocument> = response.json().await.ok();
    let (slug, detail, retry_after_ms) = match problem {
        Some(problem) => {
            let slug = problem.kind.rsplit('/').next().unwrap_or_default().to_owned();
            (slug, problem.detail, problem.retry_after_ms)
        }
        None => (String::new(), "no reason is given".to_owned(), None),
    };
    let may_pass =
        [StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT].contains(&status);
    if may_pass {
        let retry_after = retry_after_ms.map(Duration::from_millis).or_else(|| seconds.map(Duration::from_secs));
        return Missed::NotNow(NotNow {
            failure: Failure::new(Exit::Busy, format!("{status}: {detail}")),
            retry_after,
        });
    }
    Missed::Unanswered(Unanswered::Refused(Refusal { status, slug, detail }))
}

/// Only an address that is none stays so.
fn unreachable(error: reqwest::Error) -> Missed {
    let failure = Failure::of(Exit::Unavailable, &error);
    if error.is_builder() {
        return Missed::Unanswered(Unanswered::Failed(failure));
    }
    Missed::NotNow(NotNow { failure, retry_after: None })
}

fn timeout(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "a whole number and a unit are needed, such as 90s or 5m".to_owned())
}
