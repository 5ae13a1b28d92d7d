//! Handles the signal SIGHUP by rereading the files that may change while a node runs.

use std::sync::Arc;

use tracing::{error, info};

use super::access::Access;
use super::expiries::{read_etcd_expiries, warn_of_expiries};
use super::telemetry::{Act, Audit, AuditError};
use crate::server::config::{Config, ConfigError};
use idmint_service::Service;
use idmint_storage::{EtcdTls, WithCauses};

/// The parts of a process that a reload affects.
pub(super) struct Reload {
    pub(super) service: Arc<Service>,
    pub(super) access: Access,
    pub(super) audit: Option<Arc<Audit>>,
    pub(super) etcd: Option<EtcdTls>,
}

impl Reload {
    /// Rereads all files that may change while the node runs. An invalid file leaves the running
    /// settings unchanged. The reload is first recorded in the audit trail. If recording fails, no
    /// file is read.
    pub(super) fn read_again(&mut self, read: impl Fn() -> Result<Config, ConfigError>) {
        if let Err(error) = self.audit.as_deref().map_or(Ok(()), announce) {
            return error!("SIGHUP: nothing is reloaded: {}", WithCauses(&error));
        }
        let config = read_object_rules(&self.service, read);
        let kept = self.access.read_again(config.as_ref(), &self.service);
        read_etcd_expiries(&self.service, self.etcd.as_ref());
        warn_of_expiries(&self.service);
        if let Some(audit) = &self.audit {
            let guard = &self.access.guard;
            audit.tell_after(&Act::Reloaded {
                configuration: config.is_some(),
                tokens: guard.as_ref().and_then(|guard| guard.tokens()),
                certificates: guard.as_ref().and_then(|guard| guard.certificates()),
                kept,
            });
        }
    }
}

fn announce(audit: &Audit) -> Result<(), AuditError> {
    audit.reopen()?;
    info!("SIGHUP: log.audit was reopened");
    audit.tell(&Act::Reload)
}

/// Reads the configuration again, and applies its rules for the names and catalogue numbers of
/// space objects. An invalid configuration leaves the rules unchanged.
fn read_object_rules(
    service: &Service,
    read: impl Fn() -> Result<Config, ConfigError>,
) -> Option<Config> {
    match read() {
        Ok(config) => {
            let catalogs = config.conjunction.catalogs.len();
            let designators = config.conjunction.designators.len();
            service.replace_object_rules(config.conjunction.object_rules());
            info!(
                catalogs,
                designators,
                "SIGHUP: reloading conjunction.catalogs, conjunction.designators, tokens, certificates and http.tls.client_scopes, \
                 but nothing else"
            );
            Some(config)
        }
        Err(error) => {
            error!(
                "SIGHUP: reloading only tokens and certificates, because the configuration is invalid: {}",
                WithCauses(&error)
            );
            None
        }
    }
}
