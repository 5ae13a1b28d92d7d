//! `idmint health`.

use clap::Args;

use crate::cli::exit::{Exit, Failure};
use crate::cli::print::print;
use crate::cli::running_service::{AccessArgs, ask_once, service_url};

/// Say whether a running service mints: exit code 0 or 1.
#[derive(Debug, Args)]
pub(in crate::cli) struct Health {
    /// Where the service listens.
    #[arg(long, default_value_t = service_url())]
    server: String,
    #[command(flatten)]
    access: AccessArgs,
}

impl Health {
    /// Prints why, if it does not.
    ///
    /// # Errors
    /// 1 when it does not mint or cannot be asked: what asks is a container engine, which knows no other code.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let client = self.access.client(&self.server);
        let readiness =
            client.and_then(|client| ask_once(client, async |client| client.readiness().await));
        let readiness = readiness.map_err(|failure| Failure::new(Exit::No, failure))?;
        match readiness.reason {
            None => match readiness.slot {
                Some(slot) => print(format_args!("ready, slot {slot}\n")),
                None => print(format_args!("ready\n")),
            },
            Some(reason) => Err(Failure::new(
                Exit::No,
                format!(
                    "not ready: {reason}: {}",
                    readiness.detail.unwrap_or_default()
                ),
            )),
        }
    }
}
