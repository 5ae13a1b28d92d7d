//! A service in this process, asked without a socket.

use std::sync::Arc;
use std::time::Duration;

use idmint::http;
use idmint::http::{Api, HostPolicy, HttpMetrics};
use idmint::minting::Randomness;
use idmint::server::config::Config;
use idmint::server::{StartRule, assemble, begin};
use idmint::service::Service;
use idmint::storage::OwnEngine;
use idmint::time::Clock;
use prometheus::Registry;

/// A service with the default configuration that has not begun to mint.
pub(crate) fn waiting() -> (Api, Arc<Service>) {
    let (service, metrics) = assembled(&Config::default());
    (
        Api::new(Arc::clone(&service), metrics, HostPolicy::default()),
        service,
    )
}

/// A service of this configuration that has not begun to mint, and what counts its requests.
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
        Arc::new(HttpMetrics::register(&registry, &http::paths()).unwrap()),
    )
}

/// The same, minting, with nothing on disk.
pub(crate) async fn minting() -> Api {
    let (router, service) = waiting();
    begin_in_memory(&service).await;
    router
}

/// Lets it mint, with nothing on disk.
pub(crate) async fn begin_in_memory(service: &Arc<Service>) {
    let rule = StartRule {
        slots: 1,
        max_ahead: Duration::from_secs(5),
        lead_max: Duration::from_millis(5),
        skew_max: Duration::from_secs(5),
        run_ahead: false,
        founding: idmint::cluster::Founding::First,
    };
    begin(service, OwnEngine::Memory.open(0, None).unwrap(), rule)
        .await
        .unwrap();
}
