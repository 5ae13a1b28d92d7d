//! Options of [`Ids`](super::Ids).

use std::fmt;
use std::time::Duration;

use super::error::IdsError;

/// The maximum of each duration in the options. A longer duration could overflow the clock.
const DURATION_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Options of [`Ids`](super::Ids). Each field documents its default.
#[derive(Clone)]
pub struct IdsOptions {
    /// The bearer token sent with each request, without the white space around it. Default: none.
    pub token: Option<String>,
    /// The number of ids per request at the start, at least 1. The number grows with the rate of
    /// use. Default: 100.
    pub prefetch_count: u32,
    /// The maximum to which the number of ids per request grows. Default: 10,000.
    pub prefetch_count_max: u32,
    /// The maximum age of a prefetched id, counted from its request. During an outage, the stock
    /// lasts this long at most. Default: one minute.
    pub prefetch_validity: Duration,
    /// The time limit of a call. Default: 10 seconds.
    pub timeout: Duration,
    /// The trusted certificate authorities for `https`, in PEM. Default: the authorities of the
    /// system.
    pub authorities: Option<Vec<u8>>,
    /// Query parameters that mint requests need, such as `("type", "message")`. Default: none.
    pub query: Vec<(String, String)>,
    /// `true` if this process may fork and continue without `exec`. Default: `false`.
    ///
    /// Set this option if the library is part of a program that forks, such as a Python
    /// interpreter. A forked child then gets its own stock. Each `next()` takes about 100 ns
    /// longer, because it asks the kernel for the process id. A program in safe Rust alone cannot
    /// fork in this way.
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

impl fmt::Debug for IdsOptions {
    /// Formats the options without the token, which is secret.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("IdsOptions")
            .field("prefetch_count", &self.prefetch_count)
            .field("prefetch_count_max", &self.prefetch_count_max)
            .field("prefetch_validity", &self.prefetch_validity)
            .field("timeout", &self.timeout)
            .field("query", &self.query)
            .finish_non_exhaustive()
    }
}

impl IdsOptions {
    pub(super) fn check(&self) -> Result<(), IdsError> {
        if self.prefetch_count == 0 || self.prefetch_count > self.prefetch_count_max {
            return Err(IdsError::Options(
                "prefetch_count must be from 1 to prefetch_count_max",
            ));
        }
        let is_wrong = |duration: Duration| duration.is_zero() || duration > DURATION_MAX;
        if is_wrong(self.prefetch_validity) || is_wrong(self.timeout) {
            return Err(IdsError::Options(
                "prefetch_validity and timeout must be above 0, and at most 100 years",
            ));
        }
        Ok(())
    }

    /// Returns the value of a query parameter. If the parameter occurs more than once, the last
    /// value counts.
    pub(super) fn asked(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .rev()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}
