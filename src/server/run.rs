//! A process from its start to its end: open, bind, serve, drain.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use prometheus::Registry;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::access::{Access, AccessError};
use super::answerer::{Answerer, DRAIN_MAX, address_of};
use super::assembly::{AssemblyError, assemble};
use super::banner::banner;
use super::fleet::State;
use super::process::{BackupSocket, Hangups, InheritedSocket, Signals, supervisor};
use super::reload::Reload;
use super::start::{RunOptions, StartError, StartRule, begin};
use super::telemetry::{Act, Audit, AuditError, Telemetry, registry};
use super::{clock_watch, fleet, warnings::warn_of};
use crate::server::config::{AssignmentKind, Config, ConfigError};
use crate::service::{Reserver, Service};
use crate::storage::{EngineChoice, FailureKind, OwnEngine, StoreError};
use crate::time::Clock;

/// Why a process ended, or did not begin.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration makes no service.
    #[error(transparent)]
    Assembly(#[from] AssemblyError),
    /// Other machines could mint and nobody said that they may.
    #[error(
        "http.listen = {listen} is reachable from other machines, and callers need neither token nor certificate: list tokens in \
         a file and name it in http.tokens, ask for certificates by http.tls.client_ca, listen on 127.0.0.1, or say \
         --insecure-public (IDMINT_INSECURE_PUBLIC=1) if the network itself keeps strangers out"
    )]
    Public {
        /// The address.
        listen: SocketAddr,
    },
    /// Other machines are served, so another node may serve them too, and would have the same slot.
    #[error(
        "http.listen = {listen} is reachable from other machines, and nothing keeps a second node from slot {slot}: started \
         alike with a folder of its own it would mint the same ids. Set worker.exclusive = true if this is the only node \
         that ever runs with slot {slot} (give each node its own worker.slot, of the same worker.slots); let nodes share \
         slots by etcd (storage.engine); or listen on 127.0.0.1"
    )]
    SharedSlot {
        /// The address.
        listen: SocketAddr,
        /// The slot.
        slot: u32,
    },
    /// The tokens of callers cannot be had, or TLS cannot be spoken.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// There is to be an audit trail and it cannot be written.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The store cannot be used.
    #[error(transparent)]
    Open(#[from] StoreError),
    /// The address cannot be listened on.
    #[error(
        "cannot listen on {listen}; another process may have it, or it is not an address of this machine"
    )]
    Bind {
        /// The address.
        listen: SocketAddr,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// The process cannot be told to end.
    #[error("cannot wait for signals")]
    Signals(#[source] io::Error),
    /// Minting did not begin.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The horizon could not be made durable any more.
    #[error("the store failed while running, the log says how: look at the disk, then start again")]
    StorageFailed,
    /// The records of ids with memory could not be read or written any more.
    #[error("the ledgers and conjunctions cannot be read or written any more, the log says why")]
    RecordsFailed(FailureKind),
}

impl RunError {
    /// What kind of failure this is.
    pub fn failure_kind(&self) -> FailureKind {
        match self {
            RunError::Assembly(_)
            | RunError::Public { .. }
            | RunError::SharedSlot { .. }
            | RunError::Access(_) => FailureKind::Disagrees,
            RunError::Start(error) => error.failure_kind(),
            RunError::Open(error) => error.failure_kind(),
            RunError::RecordsFailed(kind) => *kind,
            RunError::Audit(error) => FailureKind::of_io(&error.cause),
            RunError::Bind { .. } | RunError::Signals(_) | RunError::StorageFailed => {
                FailureKind::NotUsable
            }
        }
    }
}

/// A service that is listening.
pub struct Running {
    /// The service behind the routes.
    pub service: Arc<Service>,
    listener: TcpListener,
    /// For metrics and health alone.
    admin_listener: Option<TcpListener>,
    state: State,
    rule: StartRule,
    registry: Registry,
    access: Access,
    /// `None` if nobody wants one.
    audit: Option<Arc<Audit>>,
}

/// Runs the service until it is told to end: on this socket if there is one, else where the configuration says. Told again,
/// it ends at once. SIGHUP lets it `reload` the configuration, of which what designators stand for takes effect, and the tokens of
/// callers, certificates and what they are good for, but nothing else.
///
/// # Errors
/// [`RunError`]; [`RunError::failure_kind`] says whose it is.
pub async fn run(
    config: &Config,
    options: RunOptions,
    socket: Option<InheritedSocket>,
    telemetry: &Telemetry,
    reload: impl Fn() -> Result<Config, ConfigError>,
) -> Result<(), RunError> {
    // Before anything is said: whoever reads the address may at once tell the process to end.
    let mut signals = Signals::wait().map_err(RunError::Signals)?;
    let mut hangups = Hangups::wait().map_err(RunError::Signals)?;
    let running = open(config, options, socket, Arc::new(options.clock())).await?;
    let (log, audit) = (
        telemetry.log_lines_dropped(),
        running.audit.as_ref().map(|audit| audit.lines_dropped()),
    );
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
        supervisor::tell_stopping();
        let _ = tell.send(());
        signals.next().await
    };
    let audit = running.audit.clone();
    let mut again = Reload::of(
        Arc::clone(&running.service),
        running.access.clone(),
        audit.clone(),
    );
    let reloading = async {
        loop {
            hangups.next().await;
            again.read_again(&reload);
        }
    };
    let outcome = tokio::select! {
        outcome = running.serve(config, async { _ = told.await }) => outcome,
        () = reloading => Ok(()),
        name = told_twice => {
            warn!("{name} again: ending at once, answers that are not complete are cut");
            Ok(())
        }
    };
    if let Some(audit) = audit {
        audit.tell_after(&Act::End);
        audit.close();
    }
    outcome
}

/// Whether this node may have its slot where it listens.
///
/// # Errors
/// [`RunError::SharedSlot`].
pub fn check_slot(config: &Config) -> Result<(), RunError> {
    let is_leased = config.worker.assignment().kind == AssignmentKind::Leased;
    if !config.http.is_public() || config.worker.exclusive || is_leased {
        return Ok(());
    }
    Err(RunError::SharedSlot {
        listen: config.http.listen,
        slot: config.worker.assignment().slot,
    })
}

/// Everything up to the first connection: the service is assembled, its store is open and its address bound. A socket that
/// was inherited is listened on instead; `http.listen` is then its address.
///
/// # Errors
/// [`RunError`]: nothing is left behind but the data directory.
pub async fn open(
    config: &Config,
    options: RunOptions,
    socket: Option<InheritedSocket>,
    clock: Arc<Clock>,
) -> Result<Running, RunError> {
    let listen = config.http.listen;
    if config.http.is_public() && !config.http.asks_callers() && !options.insecure_public {
        return Err(RunError::Public { listen });
    }
    check_slot(config)?;
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
    let state =
        State::open(config, options.floor)?.for_all_slots(config, options.floor, &service)?;
    if let Some(audit) = &audit {
        audit.tell(&Act::Start {
            version: env!("CARGO_PKG_VERSION"),
            listen: listen.to_string(),
            slot: state.slot(config),
            horizon: state.horizon().map(|horizon| horizon.to_string()),
            floor: options.floor.map(|floor| floor.to_string()),
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
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        address_of(&self.listener)
    }

    /// Serves until `told` to end or until nothing can be minted any more; every request that has arrived is answered.
    ///
    /// # Errors
    /// [`RunError`] when it was not told.
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
        warn_of(&service, config);
        let watching = tokio::spawn(clock_watch::watch(
            Arc::clone(&service),
            config.clock.skew_max,
        ));
        let mut outcome = Ok(());
        let ending = async {
            let mut failure = pin!(mint_until_failure(&service, state, rule, listen));
            let mut told = pin!(told);
            tokio::select! {
                () = &mut told => {}
                error = &mut failure => outcome = Err(error),
            }
            service.drain();
            // Whoever sends connections here may learn of it first; what has failed does not wait.
            if outcome.is_ok() && !config.http.drain_delay.is_zero() {
                tokio::select! {
                    () = sleep(config.http.drain_delay) => {}
                    error = failure => outcome = Err(error),
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
        // Probes learn to the end how the service is.
        let serving = async { tokio::join!(answering, answering_probes).0 };
        let drained = tokio::select! {
            drained = serving => drained,
            () = answering_operators => unreachable!("operators are answered for as long as the service runs"),
        };
        watching.abort();
        // After the last answer: another node may have the slot from here on.
        service.release_slot().await;
        match drained.connections_closed_by_force {
            0 => info!("every request was answered"),
            cut => warn!(cut, "{cut} connections had to be cut after {DRAIN_MAX:?}"),
        }
        outcome
    }
}

/// The folder of this node, if it has one.
fn data_dir_of(config: &Config) -> Option<PathBuf> {
    match config.engine_choice() {
        EngineChoice::Own(OwnEngine::Embedded { data_dir }) => Some(data_dir),
        EngineChoice::Own(OwnEngine::Memory) | EngineChoice::Etcd(_) => None,
    }
}

/// Begins to mint, and mints until that fails.
async fn mint_until_failure(
    service: &Arc<Service>,
    state: State,
    rule: StartRule,
    listen: SocketAddr,
) -> RunError {
    let store = match state {
        State::Own(store) => store,
        State::Shared(fleet) => {
            if let Err(error) = fleet.begin(service, rule, listen).await {
                return error.into();
            }
            supervisor::tell_ready();
            return fleet::failure(service).await.into();
        }
    };
    if let Err(error) = begin(service, store, rule).await {
        return error.into();
    }
    supervisor::tell_ready();
    let Some(Reserver::Horizon(horizon)) = service.reserver() else {
        panic!("a horizon is kept once minting has begun")
    };
    let records = service
        .record_keeper()
        .expect("records are served before minting begins");
    tokio::select! {
        () = horizon.failed() => RunError::StorageFailed,
        kind = records.failed() => RunError::RecordsFailed(kind),
    }
}
