//! Runs a service in this process, which is called without a socket.

use std::sync::Arc;
use std::time::Duration;

use idmint::server::config::Config;
use idmint::server::{StartRule, assemble, begin};
use idmint_core::minting::Randomness;
use idmint_core::time::Clock;
use idmint_http::{Api, HostPolicy, HttpMetrics};
use idmint_service::Service;
use idmint_storage::OwnEngine;
use prometheus::Registry;

/// Creates a service with the default configuration. It does not mint yet.
pub(crate) fn waiting() -> (Api, Arc<Service>) {
    let (service, metrics) = assembled(&Config::default());
    (
        Api::new(Arc::clone(&service), metrics, HostPolicy::default()),
        service,
    )
}

/// Creates a service with this configuration, and returns it with its request metrics. The service
/// does not mint yet.
pub(crate) fn assembled(config: &Config) -> (Arc<Service>, Arc<HttpMetrics>) {
    let registry = Registry::new();
    let service = assemble(
        config,
        Arc::new(Clock::system()),
        &Randomness::Thread,
        &registry,
    )
    .unwrap();
    (
        service,
        Arc::new(HttpMetrics::register(&registry, &idmint_http::paths()).unwrap()),
    )
}

/// Creates a service with the default configuration. It mints, and keeps its state only in memory.
pub(crate) async fn minting() -> Api {
    let (router, service) = waiting();
    begin_in_memory(&service).await;
    router
}

/// Makes the service mint, with its state only in memory.
pub(crate) async fn begin_in_memory(service: &Arc<Service>) {
    let rule = StartRule {
        slots: 1,
        max_ahead: Duration::from_secs(5),
        lead_max: Duration::from_millis(5),
        skew_max: Duration::from_secs(5),
        run_ahead: false,
    };
    begin(service, OwnEngine::Memory.open(0, None).unwrap(), rule)
        .await
        .unwrap();
}
