//! Who is let in: the tokens of the configuration, read at the start and whenever the process is told to read them again.

use std::path::PathBuf;
use std::sync::Arc;

use tracing::{error, info};

use crate::http::{Guard, Tokens, TokensError};
use crate::server::config::Config;
use crate::service::{IdSource, Service};

/// A guard, and the file that its tokens come from.
#[derive(Debug, Clone)]
pub(super) struct Access {
    path: PathBuf,
    formats: Vec<String>,
    guard: Arc<Guard>,
}

impl Access {
    /// That of a configuration; `None` where anybody may do everything.
    ///
    /// # Errors
    /// [`TokensError`].
    pub(super) fn of(config: &Config, service: &Service) -> Result<Option<Access>, TokensError> {
        let Some(path) = config.http.tokens.clone() else { return Ok(None) };
        let formats: Vec<_> = service.formats().iter().map(|served| served.format().name.clone()).collect();
        let of_events = service.formats().iter().filter(|served| matches!(served.source(), IdSource::Events));
        let of_events = of_events.map(|served| served.format().name.clone()).collect();
        let tokens = Tokens::load(&path, &formats)?;
        let guard = Arc::new(Guard::new(tokens, of_events, Arc::clone(service.clock())));
        Ok(Some(Access { path, formats, guard }))
    }

    pub(super) fn guard(&self) -> Arc<Guard> {
        Arc::clone(&self.guard)
    }

    /// Accepts what the file lists now. If that is no good, what was accepted before still is.
    pub(super) fn read_again(&self) {
        match Tokens::load(&self.path, &self.formats) {
            Ok(tokens) => {
                info!(tokens = tokens.count(), "{} tokens of {} are accepted now", tokens.count(), self.path.display());
                self.guard.accept(tokens);
            }
            Err(error) => error!("the tokens stay as they were: {error}"),
        }
    }
}

/// How many tokens a configuration lists; `None` where callers need none.
///
/// # Errors
/// [`TokensError`].
pub fn check_tokens(config: &Config, service: &Service) -> Result<Option<usize>, TokensError> {
    Ok(Access::of(config, service)?.map(|access| access.guard.count()))
}
