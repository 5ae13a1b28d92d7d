//! What SIGHUP does: the files that may change while a node runs are read again.

use std::sync::Arc;

use tracing::{error, info};

use super::access::Access;
use super::telemetry::{Act, Audit, AuditError};
use crate::server::config::{Config, ConfigError};
use crate::service::Service;
use crate::storage::WithCauses;

/// What takes in what was read again.
pub(super) struct Reload {
    service: Arc<Service>,
    access: Access,
    audit: Option<Arc<Audit>>,
}

impl Reload {
    pub(super) fn of(service: Arc<Service>, access: Access, audit: Option<Arc<Audit>>) -> Reload {
        Reload {
            service,
            access,
            audit,
        }
    }

    /// Reads everything again. What is wrong changes nothing, and where there is an audit trail that cannot be told of it,
    /// nothing is read.
    pub(super) fn read_again(&mut self, read: impl Fn() -> Result<Config, ConfigError>) {
        if let Err(error) = self.audit.as_deref().map_or(Ok(()), announce) {
            return error!("SIGHUP: nothing is read again: {}", WithCauses(&error));
        }
        let config = read_object_rules(&self.service, read);
        self.access.read_again(config.as_ref());
        if let Some(audit) = &self.audit {
            let guard = self.access.guard();
            audit.tell_after(&Act::Reloaded {
                configuration: config.is_some(),
                tokens: guard.as_ref().and_then(|guard| guard.tokens()),
                certificates: guard.as_ref().and_then(|guard| guard.certificates()),
            });
        }
    }
}

fn announce(audit: &Audit) -> Result<(), AuditError> {
    audit.reopen()?;
    audit.tell(&Act::Reload)
}

/// Reads the configuration again; one that is wrong changes nothing.
fn read_object_rules(
    service: &Service,
    read: impl Fn() -> Result<Config, ConfigError>,
) -> Option<Config> {
    match read() {
        Ok(config) => {
            let (catalogs, designators) = (
                config.conjunction.catalogs.len(),
                config.conjunction.designators.len(),
            );
            service.replace_object_rules(config.conjunction.object_rules());
            info!(
                catalogs,
                designators,
                "SIGHUP: conjunction.catalogs, conjunction.designators and tokens are read again, and certificates, but nothing else"
            );
            Some(config)
        }
        Err(error) => {
            error!(
                "SIGHUP: the configuration is wrong, nothing of it is taken: {}",
                WithCauses(&error)
            );
            None
        }
    }
}
