//! What [`Ids`](super::Ids) need not be told.

use std::time::Duration;

use super::error::IdsError;

/// What [`Ids`](super::Ids) need not be told; the default of each is said beside it.
#[derive(Debug, Clone)]
pub struct IdsOptions {
    /// What is shown with each request; nothing.
    pub token: Option<String>,
    /// How many ids are asked for at once, at least 1; 100. Grows with the rate of use.
    pub prefetch_count: u32,
    /// Up to so many; 10 000.
    pub prefetch_count_max: u32,
    /// How long an id may be handed out after it was asked for, so the longest outage that is bridged; a minute.
    pub prefetch_validity: Duration,
    /// After which a call gives up; 10 s.
    pub timeout: Duration,
    /// Whom to trust with `https`, as certificates in PEM; whom the system trusts.
    pub authorities: Option<Vec<u8>>,
    /// What else the format needs, as `("type", "message")`; nothing.
    pub query: Vec<(String, String)>,
    /// Whether this process may be forked and go on without `exec`; false.
    ///
    /// No safe code of Rust forks like that, but a library in another program is forked with it, such as a module of Python. Each
    /// `next()` then asks the kernel for the number of the process, which takes some 100 ns, and a child has a stock of its own.
    pub may_be_forked: bool,
}

impl Default for IdsOptions {
    fn default() -> IdsOptions {
        IdsOptions {
            token: None,
            prefetch_count: 100,
            prefetch_count_max: 10_000,
            prefetch_validity: Duration::from_secs(60),
            timeout: Duration::from_secs(10),
            authorities: None,
            query: Vec::new(),
            may_be_forked: false,
        }
    }
}

impl IdsOptions {
    pub(super) fn check(&self) -> Result<(), IdsError> {
        if self.prefetch_count == 0 || self.prefetch_count > self.prefetch_count_max {
            return Err(IdsError::Options(
                "prefetch_count must be from 1 to prefetch_count_max",
            ));
        }
        if self.prefetch_validity.is_zero() || self.timeout.is_zero() {
            return Err(IdsError::Options(
                "prefetch_validity and timeout must be above 0",
            ));
        }
        Ok(())
    }

    /// What the request says of this; what comes last counts.
    pub(super) fn asked(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .rev()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}
