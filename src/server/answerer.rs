//! Sets up the HTTP servers of a process: routes, limits, access control and metrics.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prometheus::Registry;
use tokio::net::TcpListener;
use tracing::info;

use super::access::Access;
use super::assembly::AssemblyError;
use super::named_callers::named_callers;
use super::telemetry::Audit;
use crate::server::config::Config;
use idmint_core::minting::Refusal;
use idmint_http::{AnswerBody, Auditor, Guard, HostName, HostPolicy, HttpMetrics};
use idmint_net::{
    Callers, Dispatch, Drained, Limits, OpenConnections, Security, Terms, Tls, serve,
};
use idmint_service::Service;

/// The time limit for requests that are still in flight when the service shuts down.
pub(super) const DRAIN_MAX: Duration = Duration::from_secs(25);

/// The time limit for probes that are still in flight after the API has drained. Together with
/// [`DRAIN_MAX`], it must stay below the time after which systemd and Kubernetes kill a process.
const PROBES_DRAIN_MAX: Duration = Duration::from_secs(1);

/// The HTTP servers for the API and for the probes.
pub(super) struct Answerer<'a> {
    config: &'a Config,
    service: &'a Arc<Service>,
    metrics: Arc<HttpMetrics>,
    guard: Option<Arc<Guard>>,
    tls: Option<Arc<Tls>>,
    callers: Callers,
    /// `true` if rate limits or the audit trail must know the caller of each request, even without
    /// TLS.
    names_callers: bool,
    auditor: Option<Auditor>,
}

impl<'a> Answerer<'a> {
    /// Prepares the HTTP servers of the process and registers their metrics.
    ///
    /// # Errors
    /// Returns [`AssemblyError::Metrics`] if the metrics cannot be registered.
    pub(super) fn new(
        config: &'a Config,
        service: &'a Arc<Service>,
        registry: &Registry,
        access: &Access,
        audit: Option<&Arc<Audit>>,
    ) -> Result<Answerer<'a>, AssemblyError> {
        let metrics = Arc::new(
            HttpMetrics::register(registry, &idmint_http::paths())
                .map_err(AssemblyError::Metrics)?,
        );
        let (guard, tls) = (access.guard.clone(), access.tls.clone());
        let auditor = audit.map(|audit| audit.auditor());
        let names_callers =
            auditor.is_some() || guard.as_ref().is_some_and(|guard| guard.counts_requests());
        let trusted = config.http.trusted_proxies.iter().copied();
        let (load, is_test) = (service.load().clone(), service.clock().is_standing());
        let callers = Callers::new(load, trusted).of_test(is_test);
        Ok(Answerer {
            config,
            service,
            metrics,
            guard,
            tls,
            callers,
            names_callers,
            auditor,
        })
    }

    /// Serves all routes until `ending` completes. Then drains the connections.
    pub(super) async fn answer(
        &self,
        listener: TcpListener,
        ending: impl Future<Output = ()>,
    ) -> Drained {
        let (service, metrics) = (Arc::clone(self.service), Arc::clone(&self.metrics));
        let host_policy = self.host_policy(&listener);
        let admission = self.guard.clone().map(Guard::admission);
        let api = idmint_http::Api::guarded(service, metrics, host_policy, admission);
        let open = OpenConnections::shown_by(self.service.load().connections.clone());
        serve(listener, api, self.terms(open), ending, DRAIN_MAX).await
    }

    /// Serves only the metrics and health routes until `ending` completes.
    pub(super) async fn answer_probes(
        &self,
        listener: TcpListener,
        ending: impl Future<Output = ()>,
    ) {
        let (address, scheme) = (address_of(&listener), self.config.http.scheme());
        info!(%address, "metrics and health are also served on {scheme}://{address}");
        let (service, metrics) = (Arc::clone(self.service), Arc::clone(&self.metrics));
        let api = idmint_http::Api::of_probes(
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
            PROBES_DRAIN_MAX,
        )
        .await;
    }

    fn host_policy(&self, listener: &TcpListener) -> HostPolicy {
        let http = &self.config.http;
        let mut host_policy = HostPolicy::new(machine_name(), &http.hosts, &http.cors_origins);
        host_policy.address = Some((http.scheme(), address_of(listener)));
        host_policy.is_without_page = !http.page;
        host_policy
    }

    fn terms(&self, open: OpenConnections) -> Terms<AnswerBody> {
        let http = &self.config.http;
        let connections_max = http.connections_max();
        Terms {
            limits: Limits {
                connections_max,
                connections_per_peer: http
                    .connections_per_peer
                    .unwrap_or(connections_max.div_ceil(2)),
                connection_age_max: http.connection_age_max,
                header_timeout: http.header_timeout,
                idle_timeout: http.idle_timeout,
            },
            callers: self.callers.clone(),
            open,
            obstacle: obstacle(self.service),
            dispatch: Dispatch {
                refuse: idmint_http::turn_away,
                is_probe: idmint_http::is_probe,
            },
            security: match &self.tls {
                Some(tls) => Security::Tls(Arc::clone(tls), named_callers(self.auditor.clone())),
                None if self.names_callers => {
                    Security::Observed(named_callers(self.auditor.clone()))
                }
                None => Security::Plain,
            },
        }
    }
}

/// Returns the local address of a listener.
pub(super) fn address_of(listener: &TcpListener) -> SocketAddr {
    listener
        .local_addr()
        .expect("a bound socket has an address")
}

/// Returns a check that refuses connections while the clock shows a date before 1970. Without this
/// check, the HTTP library would panic when it writes such a date into a response.
fn obstacle(service: &Service) -> Box<dyn Fn() -> Option<Bytes> + Send + Sync> {
    let clock = Arc::clone(service.clock());
    Box::new(move || {
        Some(idmint_http::unserved(Refusal::ClockJumped {
            shown: clock.shown_before_1970()?,
        }))
    })
}

/// Returns the name of this machine, if it is a valid host name.
fn machine_name() -> Option<HostName> {
    let machine = rustix::system::uname();
    machine.nodename().to_str().ok().and_then(HostName::parse)
}
