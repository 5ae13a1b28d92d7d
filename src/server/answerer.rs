//! Who answers at the addresses of a process, under which terms.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prometheus::Registry;
use tokio::net::TcpListener;
use tracing::info;

use super::access::Access;
use super::assembly::AssemblyError;
use super::telemetry::Audit;
use crate::http::{self, Guard, HostName, HostPolicy, HttpMetrics};
use crate::minting::Refusal;
use crate::net::{Callers, Drained, Limits, OpenConnections, Terms, Tls, serve};
use crate::server::config::Config;
use crate::service::Service;

/// How long requests that have arrived may take once the process is told to end.
pub(super) const DRAIN_MAX: Duration = Duration::from_secs(25);

/// Answers callers and probes.
pub(super) struct Answerer<'a> {
    config: &'a Config,
    service: &'a Arc<Service>,
    metrics: Arc<HttpMetrics>,
    guard: Option<Arc<Guard>>,
    tls: Option<Arc<Tls>>,
    callers: Callers,
    names_callers: bool,
}

impl<'a> Answerer<'a> {
    /// # Errors
    /// [`AssemblyError::Metrics`].
    pub(super) fn new(
        config: &'a Config,
        service: &'a Arc<Service>,
        registry: &Registry,
        access: &Access,
        audit: Option<&Arc<Audit>>,
    ) -> Result<Answerer<'a>, AssemblyError> {
        let metrics = Arc::new(
            HttpMetrics::register(registry, &http::paths()).map_err(AssemblyError::Metrics)?,
        );
        let (guard, tls) = (access.guard(), access.tls());
        let auditor = audit.map(|audit| audit.auditor());
        let names_callers =
            auditor.is_some() || guard.as_ref().is_some_and(|guard| guard.counts_requests());
        let trusted = config.http.trusted_proxies.iter().map(|network| network.0);
        let (load, is_test) = (service.load().clone(), service.clock().is_standing());
        let callers = Callers::new(load, trusted)
            .of_test(is_test)
            .audited_by(auditor);
        Ok(Answerer {
            config,
            service,
            metrics,
            guard,
            tls,
            callers,
            names_callers,
        })
    }

    /// Answers all requests, until `ending` completes.
    pub(super) async fn answer(
        &self,
        listener: TcpListener,
        ending: impl Future<Output = ()>,
    ) -> Drained {
        let (service, metrics) = (Arc::clone(self.service), Arc::clone(&self.metrics));
        let host_policy = self.host_policy(&listener);
        let api = match &self.guard {
            Some(guard) => http::Api::guarded_by(Arc::clone(guard), service, metrics, host_policy),
            None => http::Api::new(service, metrics, host_policy),
        };
        let open = OpenConnections::shown_by(self.service.load().connections.clone());
        serve(listener, api, self.terms(open), ending, DRAIN_MAX).await
    }

    /// Answers requests for metrics and health alone, until `ending` completes.
    pub(super) async fn answer_probes(
        &self,
        listener: TcpListener,
        ending: impl Future<Output = ()>,
    ) {
        let (address, scheme) = (address_of(&listener), self.config.http.scheme());
        info!(%address, "metrics and health are also told on {scheme}://{address}");
        let (service, metrics) = (Arc::clone(self.service), Arc::clone(&self.metrics));
        let api = http::Api::of_probes(
            self.guard.clone(),
            service,
            metrics,
            self.host_policy(&listener),
        );
        serve(
            listener,
            api,
            self.terms(OpenConnections::default()),
            ending,
            DRAIN_MAX,
        )
        .await;
    }

    fn host_policy(&self, listener: &TcpListener) -> HostPolicy {
        let http = &self.config.http;
        let host_policy = HostPolicy::new(machine_name(), &http.hosts, &http.cors_origins);
        host_policy
            .at(http.scheme(), address_of(listener))
            .with_page(http.page)
    }

    fn terms(&self, open: OpenConnections) -> Terms {
        let http = &self.config.http;
        Terms {
            limits: Limits {
                connections_max: http.connections_max,
                connections_per_peer: http
                    .connections_per_peer
                    .unwrap_or(http.connections_max.div_ceil(2)),
                connection_age_max: http.connection_age_max,
                header_timeout: http.header_timeout,
                idle_timeout: http.idle_timeout,
            },
            callers: self.callers.clone(),
            open,
            obstacle: obstacle(self.service),
            tls: self.tls.clone(),
            names_callers: self.names_callers,
        }
    }
}

/// Where this socket listens.
pub(super) fn address_of(listener: &TcpListener) -> SocketAddr {
    listener
        .local_addr()
        .expect("a bound socket has an address")
}

/// The library that speaks HTTP panics where it has to write a date before 1970, so it must not get a connection then.
fn obstacle(service: &Service) -> Box<dyn Fn() -> Option<Bytes> + Send + Sync> {
    let clock = Arc::clone(service.clock());
    Box::new(move || {
        Some(http::unserved(Refusal::ClockJumped {
            shown: clock.shown_before_1970()?,
        }))
    })
}

/// The name that this machine has, if hosts can be named so.
fn machine_name() -> Option<HostName> {
    let machine = rustix::system::uname();
    machine.nodename().to_str().ok().and_then(HostName::parse)
}
