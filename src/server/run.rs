//! The lifecycle of a process: open, bind, serve, drain.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use prometheus::Registry;
use sd_notify::NotifyState;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::access::{Access, AccessError, check_callers};
use super::answerer::{Answerer, DRAIN_MAX, address_of};
use super::assembly::{AssemblyError, assemble};
use super::banner::banner;
use super::expiries::{etcd_tls, read_etcd_expiries};
#[cfg(feature = "etcd")]
use super::fleet;
use super::process::{BackupSocket, InheritedSocket, Signals};
use super::reload::Reload;
use super::start::{RunOptions, StartError, StartRule, begin, records_failed};
use super::state::State;
use super::telemetry::{Act, Audit, AuditError, Telemetry, registry};
use super::{clock_watch, expiries, free_space, warnings::warn_of};
use crate::server::config::{AssignmentKind, Config, ConfigError, Engine, EngineChoice};
use idmint_core::time::Clock;
use idmint_service::Service;
use idmint_storage::{FailureKind, OwnEngine, StoreError};

/// The reason why a process ended or did not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration is invalid.
    #[error(transparent)]
    Assembly(#[from] AssemblyError),
    /// Other machines could mint without a token or certificate, and the operator has not allowed
    /// this.
    #[error(
        "{key} = {listen} is reachable from other machines, and callers need neither token nor certificate: \
         list tokens in a file and name it in http.tokens, require certificates with http.tls.client_ca, listen on \
         127.0.0.1, or use --insecure-public (IDMINT_INSECURE_PUBLIC=1) if the network itself keeps strangers out"
    )]
    Public {
        /// The setting with the address.
        key: &'static str,
        /// The address.
        listen: SocketAddr,
    },
    /// Other machines can reach the service, but nothing prevents a second node from using the same
    /// slot and minting the same ids.
    #[error(
        "{key} = {listen} is reachable from other machines, and nothing keeps a second node from slot {slot}: with \
         a folder of its own it would mint the same ids. Set worker.exclusive = true if this is the only node \
         that ever runs with slot {slot} (give each node its own worker.slot, of the same worker.slots); let etcd \
         assign the slots (storage.engine); or listen on 127.0.0.1"
    )]
    SharedSlot {
        /// The setting with the address.
        key: &'static str,
        /// The address.
        listen: SocketAddr,
        /// The slot.
        slot: u32,
    },
    /// Both listeners would have the same address. The value is this address.
    #[error("http.admin_listen: {0} is also http.listen; choose another port")]
    SameAddress(SocketAddr),
    /// The file with the tokens cannot be read, or TLS cannot be set up.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The configured audit trail cannot be written.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The store cannot be used.
    #[error(transparent)]
    Open(#[from] StoreError),
    /// The address cannot be bound.
    #[error(
        "cannot listen on {listen}; another process may have it, or it is not an address of this machine"
    )]
    Bind {
        /// The address.
        listen: SocketAddr,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// The signals for a shutdown cannot be received.
    #[error("cannot install the handlers of SIGTERM, SIGINT and SIGHUP")]
    Signals(#[source] io::Error),
    /// The start failed permanently, or the node's records or formats became unusable later.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The horizon, which is the end of the time reserved for ids, can no longer be made durable.
    #[error("the store failed while running; see the log, check the disk, then start again")]
    StorageFailed,
}

impl RunError {
    /// Returns the kind of this failure.
    pub fn failure_kind(&self) -> FailureKind {
        match self {
            RunError::Assembly(_)
            | RunError::Public { .. }
            | RunError::SharedSlot { .. }
            | RunError::SameAddress(_)
            | RunError::Access(_) => FailureKind::Disagrees,
            RunError::Start(error) => error.failure_kind(),
            RunError::Open(error) => error.failure_kind(),
            RunError::Audit(error) => FailureKind::of_io(&error.cause),
            RunError::Bind { .. } | RunError::Signals(_) | RunError::StorageFailed => {
                FailureKind::NotUsable
            }
        }
    }
}

/// A service whose address is bound, but which does not accept connections yet.
pub struct Running {
    /// The service that handles the requests.
    pub service: Arc<Service>,
    listener: TcpListener,
    /// The listener of `http.admin_listen`, only for metrics and health checks. `None` if it is not
    /// configured.
    admin_listener: Option<TcpListener>,
    state: State,
    rule: StartRule,
    registry: Registry,
    access: Access,
    /// `None` if no audit trail is configured.
    audit: Option<Arc<Audit>>,
}

/// Runs the service until it receives SIGTERM or SIGINT. A second signal ends the process at once.
///
/// The service listens on `socket` if it is given, and otherwise on the configured address. On
/// SIGHUP, the files of tokens and certificates are read again, and the function `reload` returns
/// the new configuration. Of the new configuration, only the catalogues and designators of space
/// objects and the scopes of certificates take effect.
///
/// # Errors
/// Returns [`RunError`] if the start or the service fails. [`RunError::failure_kind`] classifies
/// the error.
pub async fn run(
    config: &Config,
    options: RunOptions,
    socket: Option<InheritedSocket>,
    telemetry: &Telemetry,
    reload: impl Fn() -> Result<Config, ConfigError>,
) -> Result<(), RunError> {
    // Set up the signals before the banner is written. A process that reads the address from the
    // banner may send a signal immediately.
    let mut signals = Signals::wait().map_err(RunError::Signals)?;
    // From here on, SIGHUP no longer ends the process.
    let mut hangups = signal(SignalKind::hangup()).map_err(RunError::Signals)?;
    let running = open(config, options, socket, Arc::new(options.clock())).await?;
    let log = telemetry.log_lines_dropped();
    let audit = running.audit.as_ref().map(|audit| audit.lines_dropped());
    running
        .service
        .count_dropped_lines_by(move || log() + audit.as_ref().map_or(0, |dropped| dropped()));
    telemetry.write_banner(&format!(
        "{}\n",
        banner(config, &running.service, running.address())
    ));
    let (tell, told) = oneshot::channel();
    let told_twice = async {
        let name = signals.next().await;
        info!("{name}: draining");
        notify_systemd(NotifyState::Stopping);
        let _ = tell.send(());
        signals.next().await
    };
    let audit = running.audit.clone();
    let mut again = Reload {
        service: Arc::clone(&running.service),
        access: running.access.clone(),
        audit: audit.clone(),
        etcd: etcd_tls(config),
    };
    let reloading = async {
        loop {
            hangups.recv().await;
            again.read_again(&reload);
        }
    };
    let outcome = tokio::select! {
        outcome = running.serve(config, async { _ = told.await }) => outcome,
        () = reloading => Ok(()),
        name = told_twice => {
            warn!("received {name} again: stopping at once, without completing responses");
            Ok(())
        }
    };
    if let Some(audit) = audit {
        audit.tell_after(&Act::End);
        audit.close();
    }
    outcome
}

/// Checks that no second node can use the slot of this node and mint the same ids. A node that
/// other machines cannot reach is not checked.
///
/// # Errors
/// Returns [`RunError::SharedSlot`] if a second node could use the same slot.
pub fn check_slot(config: &Config) -> Result<(), RunError> {
    let is_leased = config.worker.assignment().kind == AssignmentKind::Leased;
    let slot = config.worker.assignment().slot;
    match config.http.public_address() {
        Some((key, listen)) if !config.worker.exclusive && !is_leased => {
            Err(RunError::SharedSlot { key, listen, slot })
        }
        _ => Ok(()),
    }
}

/// Checks that the service and its administration have different addresses.
///
/// # Errors
/// Returns [`RunError::SameAddress`] if they have the same address.
pub fn check_addresses(config: &Config) -> Result<(), RunError> {
    let listen = config.http.listen;
    match config.http.admin_listen {
        Some(admin) if admin == listen && admin.port() != 0 => Err(RunError::SameAddress(admin)),
        Some(_) | None => Ok(()),
    }
}

/// Assembles the service, opens its store and binds its address. No connection is accepted yet.
///
/// An inherited `socket` is used instead of the configured address. In this case, `http.listen`
/// already contains the address of the socket.
///
/// # Errors
/// Returns [`RunError`] if a step fails. After an error, at most the data folder and the file of
/// the audit trail remain.
pub async fn open(
    config: &Config,
    options: RunOptions,
    socket: Option<InheritedSocket>,
    clock: Arc<Clock>,
) -> Result<Running, RunError> {
    let listen = config.http.listen;
    check_callers(config, options.insecure_public)?;
    check_slot(config)?;
    check_addresses(config)?;
    let registry = registry();
    let service = assemble(config, clock, &options.randomness(), &registry)?;
    let access = Access::of(config, &service)?;
    let audit = config
        .log
        .audit
        .as_deref()
        .map(|path| Audit::open(path, Arc::clone(service.clock())))
        .transpose()?;
    let assignment = config.worker.assignment();
    let state = State::open(config, options)?.before_first_mint(config, options.floor, &service)?;
    if let Some(audit) = &audit {
        audit.tell(&Act::Start {
            version: env!("CARGO_PKG_VERSION"),
            listen: listen.to_string(),
            slot: state.slot(config),
            horizon: state.horizon().map(|horizon| horizon.to_string()),
            floor: options
                .floor
                .or(options.restore_floor)
                .map(|floor| floor.to_string()),
            run_ahead: options.run_ahead,
            insecure_public: options.insecure_public,
        })?;
    }
    let bound = match socket {
        Some(socket) => socket.listen(),
        None => TcpListener::bind(listen).await,
    };
    let listener = bound.map_err(|cause| RunError::Bind { listen, cause })?;
    let admin_listener = match config.http.admin_listen {
        Some(listen) => Some(
            TcpListener::bind(listen)
                .await
                .map_err(|cause| RunError::Bind { listen, cause })?,
        ),
        None => None,
    };
    let rule = StartRule::of(config, options, assignment.slots);
    let audit = audit.map(Arc::new);
    Ok(Running {
        service,
        listener,
        admin_listener,
        state,
        rule,
        registry,
        access,
        audit,
    })
}

impl Running {
    /// Returns the address at which the service listens.
    pub fn address(&self) -> SocketAddr {
        address_of(&self.listener)
    }

    /// Serves requests until `told` (the signal to shut down) completes, or until minting fails
    /// permanently. Then waits for the responses to requests in flight.
    ///
    /// # Errors
    /// Returns [`RunError`] if the service ends before `told` completes.
    pub async fn serve(
        self,
        config: &Config,
        told: impl Future<Output = ()>,
    ) -> Result<(), RunError> {
        let Running {
            service,
            listener,
            admin_listener,
            state,
            rule,
            registry,
            access,
            audit,
        } = self;
        let listen = address_of(&listener);
        let answerer = Answerer::new(config, &service, &registry, &access, audit.as_ref())?;
        let etcd = etcd_tls(config);
        read_etcd_expiries(&service, etcd.as_ref());
        warn_of(&service, config);
        let has_data_dir = config.storage.engine != Engine::Memory;
        let data_dir = has_data_dir.then(|| config.storage.data_dir.clone());
        let mut watching = JoinSet::new();
        watching.spawn(clock_watch::watch(
            Arc::clone(&service),
            config.clock.skew_max,
        ));
        watching.spawn(free_space::watch(Arc::clone(&service), data_dir));
        watching.spawn(expiries::watch(Arc::clone(&service), etcd, sleep));
        let mut outcome = Ok(());
        let ending = async {
            let mut failure = pin!(mint_until_failure(&service, state, rule, listen));
            let mut told = pin!(told);
            tokio::select! {
                () = &mut told => {}
                failed = &mut failure => outcome = failed,
            }
            service.drain();
            // Give load balancers time to notice the shutdown. After a failure, the service ends
            // without this delay.
            if outcome.is_ok() && !config.http.drain_delay.is_zero() {
                tokio::select! {
                    () = sleep(config.http.drain_delay) => {}
                    failed = failure => outcome = failed,
                }
            }
        };
        let has_ended = CancellationToken::new();
        let answering_probes = async {
            if let Some(listener) = admin_listener {
                answerer
                    .answer_probes(listener, has_ended.cancelled())
                    .await;
            }
        };
        let answering = async {
            let drained = answerer.answer(listener, ending).await;
            has_ended.cancel();
            drained
        };
        let backups =
            data_dir_of(config).and_then(|data_dir| BackupSocket::bind(&data_dir, audit.clone()));
        let answering_operators = async {
            match &backups {
                Some(backups) => backups.answer(&service).await,
                None => std::future::pending().await,
            }
        };
        // Health checks are answered until the end, so that they can report the state of the
        // service.
        let serving = async { tokio::join!(answering, answering_probes).0 };
        let drained = tokio::select! {
            drained = serving => drained,
            () = answering_operators => unreachable!("operators are answered for as long as the service runs"),
        };
        drop(watching);
        // Release the slot (place in the fleet) only after the last response, because another node
        // may then use it.
        service.release_slot().await;
        match drained.connections_closed_by_force {
            0 => info!("stopped: every request got its response"),
            cut => warn!(
                cut,
                "stopped: {cut} connections were closed, because they did not end within \
                 {DRAIN_MAX:?}"
            ),
        }
        outcome
    }
}

/// Returns the data folder with the node's own store, or `None` if the store is in memory or in
/// etcd.
fn data_dir_of(config: &Config) -> Option<PathBuf> {
    match config.engine_choice() {
        EngineChoice::Own(OwnEngine::Embedded { data_dir }) => Some(data_dir),
        EngineChoice::Own(OwnEngine::Memory) | EngineChoice::Etcd(_) => None,
    }
}

/// Starts minting, and returns an error once the start or, later, the node fails permanently.
#[cfg_attr(
    not(feature = "etcd"),
    expect(
        unused_variables,
        clippy::infallible_destructuring_match,
        reason = "without a fleet, the state is always a store, and no address is listed"
    )
)]
async fn mint_until_failure(
    service: &Arc<Service>,
    state: State,
    rule: StartRule,
    listen: SocketAddr,
) -> Result<(), RunError> {
    let store = match state {
        State::Own(store) => store,
        #[cfg(feature = "etcd")]
        State::Shared(fleet) => {
            let keeper = fleet.begin(service, rule, listen).await?;
            notify_systemd(NotifyState::Ready);
            return Err(fleet::failure(service, &keeper).await.into());
        }
    };
    let horizon = begin(service, store, rule).await?;
    notify_systemd(NotifyState::Ready);
    tokio::select! {
        () = horizon.failed() => Err(RunError::StorageFailed),
        kind = records_failed(service) => Err(StartError::RecordsFailed(kind).into()),
    }
}

/// Reports a state to systemd (`sd_notify(3)`). Does nothing if `NOTIFY_SOCKET` is not set.
fn notify_systemd(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        warn!("cannot notify systemd (NOTIFY_SOCKET): {error}");
    }
}
