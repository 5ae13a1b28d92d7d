//! Which service a command asks, and for how long.

use std::time::Duration;

use clap::Args;
use indicatif::ProgressBar;

use super::access_args::{AccessArgs, service_url};
use crate::cli::exit::Failure;
use crate::client::{Client, Retry};
use crate::storage::WithCauses;
use crate::time::{format_duration, parse_duration};

/// Which service, and how long to go on asking it.
#[derive(Debug, Args)]
pub(in crate::cli) struct RetryArgs {
    /// Where the service listens.
    #[arg(long, default_value_t = service_url())]
    server: String,
    #[command(flatten)]
    access: AccessArgs,
    /// How long to go on asking, for each request, while the service cannot be reached or cannot do it now; 0s asks once.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_timeout)]
    timeout: Duration,
}

impl RetryArgs {
    /// A client that asks again, and says so above the bar.
    ///
    /// # Errors
    /// 65, 74.
    pub(in crate::cli) fn client(self, progress: &ProgressBar) -> Result<Client, Failure> {
        let (progress, time_max) = (progress.clone(), format_duration(self.timeout));
        let retry = Retry::within(self.timeout, move |error| {
            let error = WithCauses(error);
            progress.suspend(|| eprintln!("idmint: {error}; asking again for up to {time_max}"));
        });
        Ok(self.access.client(&self.server)?.retrying(retry))
    }
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .ok_or_else(|| "a whole number and a unit are needed, such as 90s or 5m".to_owned())
}
