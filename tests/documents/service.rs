//! A service in this process, asked without a socket.

use std::sync::Arc;
use std::time::Duration;

use idmint::http;
use idmint::http::{Api, HttpMetrics, Sites};
use idmint::minting::Randomness;
use idmint::server::config::Config;
use idmint::server::{StartRule, assemble, begin};
use idmint::service::Service;
use idmint::storage::EngineChoice;
use idmint::time::Clock;
use prometheus::Registry;

/// A service with the default configuration that has not begun to mint.
pub(crate) fn waiting() -> (Api, Arc<Service>) {
    let registry = Registry::new();
    let clock = Arc::new(Clock::system());
    let service = assemble(&Config::default(), clock, &Randomness::Thread, &registry).unwrap();
    let metrics = HttpMetrics::register(&registry, &http::paths()).unwrap();
    (Api::new(Arc::clone(&service), Arc::new(metrics), Sites::default()), service)
}

/// The same, minting, with nothing on disk.
pub(crate) async fn minting() -> Api {
    let (router, service) = waiting();
    let rule = StartRule {
        slots: 1,
        max_ahead: Duration::from_secs(5),
        skew_max: Duration::from_secs(5),
        run_ahead: false,
        founding: idmint::cluster::Founding::First,
    };
    begin(&service, EngineChoice::Memory.open(0, None).unwrap(), rule).await.unwrap();
    router
}
