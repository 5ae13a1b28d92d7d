//! `idmint health`.

use clap::Args;

use super::exit::{Exit, Failure};
use super::running_service::{ask_once, service_url};
use crate::client::Client;

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
        let readiness = ask_once(Client::new(&self.server)?, async |client| client.readiness().await);
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
