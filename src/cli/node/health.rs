//! The command `idmint health`, which checks if a running service is ready to mint.

use clap::Args;

use super::status::records_of;
use crate::cli::exit::Failure;
use crate::cli::print::print;
use crate::cli::running_service::{ServiceArgs, ask_once};

/// Check if a running service mints: exit code 0 or 1.
#[derive(Debug, Args)]
pub(in crate::cli) struct Health {
    #[command(flatten)]
    service: ServiceArgs,
}

impl Health {
    /// Prints the slot of the service if it is ready, or else the reason why it is not ready.
    ///
    /// # Errors
    /// Returns exit code 1 if the service is not ready or unreachable. No other code is used,
    /// because container engines run this command as a probe and distinguish only 0 and 1.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let client = self.service.client();
        let readiness =
            client.and_then(|client| ask_once(client, async |client| client.readiness().await));
        let readiness = readiness.map_err(Failure::no)?;
        match readiness.reason {
            None => {
                let slot = readiness
                    .slot
                    .map_or(String::new(), |slot| format!(", slot {slot}"));
                let records = match readiness.records.as_str() {
                    "ready" => String::new(),
                    _ => format!(", but not for records: {}", records_of(&readiness)),
                };
                print(format_args!("ready{slot}{records}\n"))
            }
            Some(reason) => Err(Failure::no(format!(
                "not ready: {reason}: {}",
                readiness.detail.unwrap_or_default()
            ))),
        }
    }
}
