//! The members of an etcd cluster, which are tried one after the other until one responds.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use etcd_client::{Certificate, Client, ConnectOptions, Error, Identity, TlsOptions};
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use super::failure::outcome_of;
use crate::coordinator::CoordinatorError;
use idmint_storage::{EtcdEndpoint, EtcdSettings};
use idmint_storage::{FailureKind, StoreError};

/// The timeout of a request, including all attempts at different members.
const REQUEST_MAX: Duration = Duration::from_secs(1);

/// The timeout of one attempt that may safely be repeated at another member. It is half of
/// [`REQUEST_MAX`], which leaves time for a second attempt.
const REPEATABLE_MAX: Duration = Duration::from_millis(500);

/// The timeout for opening a connection.
const CONNECT_MAX: Duration = Duration::from_millis(300);

/// The interval between pings on a connection. etcd closes a connection on which pings arrive more
/// often than every 5 s. The response to a ping must arrive within [`PONG_MAX`].
const PING_EVERY: Duration = Duration::from_secs(10);
const PONG_MAX: Duration = Duration::from_secs(2);

/// The members of one etcd cluster.
pub(super) struct Members {
    members: Vec<Member>,
    settings: EtcdSettings,
    /// The index in `members` of the member that is tried first. If that member does not respond,
    /// the index moves on to the next member. Relaxed accesses suffice, because the index is only a
    /// hint.
    preferred: AtomicUsize,
}

struct Member {
    endpoint: EtcdEndpoint,
    /// An open connection that has not failed, or `None` before the first use and after a failure.
    client: Mutex<Option<Client>>,
}

/// The rule for repeating a request at another member after no response arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// The request may be repeated, because doing it twice has the same effect as doing it once.
    Harmless,
    /// The client must not repeat the request, because it may have been done already. The caller
    /// gets an error, and decides whether to repeat the request.
    Callers,
}

impl Members {
    /// Creates the list of members from the settings, without connecting to them.
    ///
    /// # Errors
    /// Returns [`StoreError`] if a file that the settings name cannot be read.
    pub(super) fn new(settings: &EtcdSettings) -> Result<Members, StoreError> {
        connect_options(settings)?;
        let member = |endpoint: &EtcdEndpoint| Member {
            endpoint: endpoint.clone(),
            client: Mutex::default(),
        };
        let members = settings.endpoints.iter().map(member).collect();
        Ok(Members {
            members,
            settings: settings.clone(),
            preferred: AtomicUsize::new(0),
        })
    }

    /// Tries the members in turn, starting with the preferred one, until one of them does the
    /// request or refuses it. If the request must not be repeated, no further member is tried after
    /// one that may have done it.
    ///
    /// # Errors
    /// Returns the [`CoordinatorError`] of the last member that was tried.
    pub(super) async fn ask<T, F>(
        &self,
        request: impl Fn(Client) -> F + Sync,
        repeat: Repeat,
    ) -> Result<T, CoordinatorError>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let until = Instant::now() + REQUEST_MAX;
        let first = self.preferred.load(Ordering::Relaxed);
        let mut last =
            CoordinatorError::NotSent("no member could be tried within the time limit".to_owned());
        for place in (first..first + self.members.len()).map(|place| place % self.members.len()) {
            let now = Instant::now();
            if now >= until {
                break;
            }
            let until = if repeat == Repeat::Harmless {
                until.min(now + REPEATABLE_MAX)
            } else {
                until
            };
            let error = match self.ask_one(place, &request, until).await {
                Ok(answer) => return Ok(answer),
                Err(error @ CoordinatorError::Full(_)) => return Err(error),
                // The password or certificate may have been replaced. Close the connection, because
                // the client reads them again only when it opens a new one.
                Err(error @ (CoordinatorError::Refused(_) | CoordinatorError::Denied(_))) => {
                    self.forget_connection(place);
                    return Err(error);
                }
                Err(error) => error,
            };
            let member = &self.members[place];
            warn!(endpoint = %member.endpoint, "etcd at {} does not answer: {error}", member.endpoint);
            self.avoid(place);
            if repeat == Repeat::Callers && matches!(error, CoordinatorError::NoAnswer(_)) {
                return Err(error);
            }
            last = error;
        }
        Err(last)
    }

    /// Sends the request to every member, and returns all results.
    pub(super) async fn ask_each<T, F>(
        &self,
        request: impl Fn(Client) -> F + Sync,
    ) -> Vec<(EtcdEndpoint, Result<T, CoordinatorError>)>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut answers = Vec::with_capacity(self.members.len());
        for (place, member) in self.members.iter().enumerate() {
            let answer = self
                .ask_one(place, &request, Instant::now() + REQUEST_MAX)
                .await;
            if answer.is_err() {
                self.forget_connection(place);
            }
            answers.push((member.endpoint.clone(), answer));
        }
        answers
    }

    async fn ask_one<T, F>(
        &self,
        place: usize,
        request: &impl Fn(Client) -> F,
        until: Instant,
    ) -> Result<T, CoordinatorError>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let not_sent = |why: String| CoordinatorError::NotSent(why);
        let client = match timeout_at(until, self.client(place)).await {
            Err(_) => return Err(not_sent("no connection within the time limit".to_owned())),
            // Authentication got no response, so the request itself was never sent.
            Ok(Err(CoordinatorError::NoAnswer(why))) => return Err(not_sent(why)),
            Ok(Err(error)) => return Err(error),
            Ok(Ok(client)) => client,
        };
        match timeout_at(until, request(client)).await {
            Err(_) => Err(CoordinatorError::NoAnswer(
                "no response within the time limit".to_owned(),
            )),
            // If this process was suspended, the response may be older than it seems, and etcd may
            // have been restored from a backup in the meantime.
            Ok(_) if Instant::now() > until => Err(CoordinatorError::NoAnswer(
                "the response was read after the time limit".to_owned(),
            )),
            Ok(Err(error)) => Err(outcome_of(&error)),
            Ok(Ok(answer)) => Ok(answer),
        }
    }

    /// Returns the connection to a member, and opens it on first use. Each new connection reads the
    /// password and the certificates again, because they may have been renewed.
    async fn client(&self, place: usize) -> Result<Client, CoordinatorError> {
        let member = &self.members[place];
        if let Some(client) = member
            .client
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
        {
            return Ok(client);
        }
        let options = connect_options(&self.settings)
            .map_err(|error| CoordinatorError::NotSent(error.to_string()))?;
        let client = Client::connect([member.endpoint.as_str()], Some(options)).await;
        let client = client.map_err(|error| outcome_of(&error))?;
        *member.client.lock().unwrap_or_else(PoisonError::into_inner) = Some(client.clone());
        Ok(client)
    }

    fn forget_connection(&self, place: usize) {
        *self.members[place]
            .client
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Closes the connection to a member, and makes the next member the preferred one.
    fn avoid(&self, place: usize) {
        self.forget_connection(place);
        let next = (place + 1) % self.members.len();
        // If another request has already changed `preferred`, the exchange fails, and nothing
        // remains to be done.
        let _ = self
            .preferred
            .compare_exchange(place, next, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Reads the files that the settings name, and returns the options of a connection.
fn connect_options(settings: &EtcdSettings) -> Result<ConnectOptions, StoreError> {
    let mut options = ConnectOptions::new()
        .with_connect_timeout(CONNECT_MAX)
        .with_keep_alive(PING_EVERY, PONG_MAX)
        .with_keep_alive_while_idle(true)
        // With this option, a member that has lost its connection to the leader fails the request
        // at once, so the next member is tried.
        .with_require_leader(true);
    if let Some(access) = &settings.access {
        let file = String::from_utf8(read(&access.password_file)?);
        let file = file.map_err(|error| unusable(&access.password_file, error))?;
        let password = file.lines().next().unwrap_or_default();
        options = options
            .with_user(&access.user, password)
            .with_auto_token_refresh(true);
    }
    if let Some(tls) = &settings.tls {
        let mut files = TlsOptions::new().ca_certificate(Certificate::from_pem(read(&tls.ca)?));
        if let Some((certificate, key)) = &tls.identity {
            files = files.identity(Identity::from_pem(read(certificate)?, read(key)?));
        }
        options = options.with_tls(files);
    }
    Ok(options)
}

fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    fs::read(path).map_err(|error| unusable(path, error))
}

fn unusable(path: &Path, error: impl std::fmt::Display) -> StoreError {
    StoreError::new(
        FailureKind::NotUsable,
        format!("cannot read {}: {error}", path.display()),
    )
}
