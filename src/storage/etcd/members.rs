//! The members of an etcd: one is asked, and the next when it does not answer.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use etcd_client::{Certificate, Client, ConnectOptions, Error, Identity, TlsOptions};
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use super::failure::outcome_of;
use super::settings::{EtcdEndpoint, EtcdSettings};
use crate::storage::coordinator::CoordinatorError;
use crate::storage::failure::{FailureKind, StoreError};

/// How long a request may take, whichever members are asked.
const REQUEST_MAX: Duration = Duration::from_secs(1);

/// How long one member may take where another can be asked the same, because asking twice does no harm.
const REPEATABLE_MAX: Duration = Duration::from_millis(500);

/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_millis(300);

/// How often a connection is tried by a ping, and how long that may take. etcd closes connections with more than one in 5 s.
const PING_EVERY: Duration = Duration::from_secs(10);
const PONG_MAX: Duration = Duration::from_secs(2);

/// The members of one etcd.
pub(super) struct Members {
    members: Vec<Member>,
    options: ConnectOptions,
    /// The member that is asked first, a place in `members`. Written by a request that got no answer from it. A hint: Relaxed.
    preferred: AtomicUsize,
}

struct Member {
    endpoint: EtcdEndpoint,
    /// A connection that nothing has failed on; `None` before the first and after a failure.
    client: Mutex<Option<Client>>,
}

/// Whether a request that got no answer may be asked of another member at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// It may: done twice it is as if done once.
    Harmless,
    /// It may not: the caller has to know that it may have been done.
    Callers,
}

impl Members {
    /// The members of these settings; nothing is connected yet.
    ///
    /// # Errors
    /// [`StoreError`]: a file cannot be read.
    pub(super) fn new(settings: &EtcdSettings) -> Result<Members, StoreError> {
        let mut options = ConnectOptions::new()
            .with_connect_timeout(CONNECT_MAX)
            .with_keep_alive(PING_EVERY, PONG_MAX)
            .with_keep_alive_while_idle(true)
            // A member that has lost the others says so at once, and the next one is asked.
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
        let member = |endpoint: &EtcdEndpoint| Member {
            endpoint: endpoint.clone(),
            client: Mutex::default(),
        };
        let members = settings.endpoints.iter().map(member).collect();
        Ok(Members {
            members,
            options,
            preferred: AtomicUsize::new(0),
        })
    }

    /// Asks the members, from the preferred one on, until one of them may have done it.
    ///
    /// # Errors
    /// [`CoordinatorError`] of the last one that was asked.
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
        let mut last = CoordinatorError::NotSent("no member was asked in time".to_owned());
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
                Err(error @ (CoordinatorError::Full(_) | CoordinatorError::Refused(_))) => {
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

    /// Asks every member, each for itself.
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
            Err(_) => return Err(not_sent("no connection in time".to_owned())),
            Ok(Err(error)) => match outcome_of(&error) {
                // What has no answer is the authentication: the request itself was not sent.
                CoordinatorError::NoAnswer(why) => return Err(not_sent(why)),
                error => return Err(error),
            },
            Ok(Ok(client)) => client,
        };
        match timeout_at(until, request(client)).await {
            Err(_) => Err(CoordinatorError::NoAnswer("no answer in time".to_owned())),
            // A process that stood still has an answer at hand that is older than it knows: etcd may have been restored since.
            Ok(_) if Instant::now() > until => Err(CoordinatorError::NoAnswer(
                "its answer was read too late".to_owned(),
            )),
            Ok(Err(error)) => Err(outcome_of(&error)),
            Ok(Ok(answer)) => Ok(answer),
        }
    }

    /// The connection to a member; it is made when it is first used.
    async fn client(&self, place: usize) -> Result<Client, Error> {
        let member = &self.members[place];
        if let Some(client) = member
            .client
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
        {
            return Ok(client);
        }
        let client =
            Client::connect([member.endpoint.as_str()], Some(self.options.clone())).await?;
        *member.client.lock().unwrap_or_else(PoisonError::into_inner) = Some(client.clone());
        Ok(client)
    }

    fn forget_connection(&self, place: usize) {
        *self.members[place]
            .client
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// From now on another member is asked first, and this one by a new connection.
    fn avoid(&self, place: usize) {
        self.forget_connection(place);
        let next = (place + 1) % self.members.len();
        // Fails where somebody else has gone on already, which is as good.
        let _ = self
            .preferred
            .compare_exchange(place, next, Ordering::Relaxed, Ordering::Relaxed);
    }
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
