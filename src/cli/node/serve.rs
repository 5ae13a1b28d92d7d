//! The command `idmint serve`, which runs the service.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use toml::Value;
use tracing::warn;

use crate::cli::exit::Failure;
use crate::cli::settings::Settings;
use crate::server::config::{Config, Engine, INSECURE_PUBLIC, RESTORE_FLOOR};
use crate::server::{InheritedSocket, RunOptions, Telemetry, TestRun, fit_connections, run};
use idmint_core::time::{UnixNanos, UnixTime};

/// The time limit at shutdown for blocking work that continues although its callers have
/// disconnected.
const SHUTDOWN_MAX: Duration = Duration::from_secs(1);

/// The number of task polls after which a runtime thread checks for network events.
///
/// A poll that reads or writes a part of a long body takes a tenth of a millisecond. With tokio's
/// default of 61, a new request for a single id could have to wait for 61 such polls.
const EVENT_INTERVAL: u32 = 4;

/// The setting `mint.wait_max` of a test service (`serve --test`). It is the maximum time by which
/// one request may advance the clock. Between requests, the clock stands still.
const TEST_WAIT_MAX: Duration = Duration::from_hours(24);

/// Run the service.
#[derive(Debug, Args)]
pub(in crate::cli) struct Serve {
    #[command(flatten)]
    settings: Settings,
    /// The address to listen on, for http.listen.
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    listen: Option<SocketAddr>,
    /// The data folder, for storage.data_dir.
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// The PEM file of the service's certificate, for http.tls.certificate.
    #[arg(long, value_name = "FILE")]
    tls_certificate: Option<PathBuf>,
    /// The PEM file of its private key, for http.tls.key.
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// The PEM file of the authorities of client certificates, for http.tls.client_ca.
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<PathBuf>,
    /// An instant at or above which no id was ever issued, such as 2026-01-31T12:00:00Z. Ignored if the horizon (of this
    /// slot) and the database are whole. If it is too low, ids can be issued twice. IDMINT_FLOOR is used only by the
    /// first start after `idmint restore`, so it may stay set.
    #[arg(long, value_name = "INSTANT")]
    floor: Option<UnixTime>,
    /// Begin at the horizon (end of reserved time) even if ids then have times far in the future. Has no effect in a fleet.
    #[arg(long)]
    run_ahead: bool,
    /// Listen to other machines even if callers need neither token nor certificate. The variable IDMINT_INSECURE_PUBLIC=1
    /// has the same effect.
    #[arg(long)]
    insecure_public: bool,
    /// State that no node ever minted in this etcd namespace. If there is no fleet yet, the new
    /// fleet then begins within seconds, and does not wait for the time that earlier nodes may have
    /// reserved. Only for the first start of a fleet, never in a unit file.
    #[arg(long)]
    new_fleet: bool,
    /// Run a test service, only on this machine and in memory: its clock stands still, and the same requests always get
    /// the same ids. See docs/TESTING.md.
    #[arg(long, conflicts_with_all = ["data_dir", "floor", "run_ahead", "insecure_public", "new_fleet"])]
    test: bool,
    /// Set the clock of the test service to this whole second. Only minted ids advance the clock.
    #[arg(
        long,
        value_name = "INSTANT",
        requires = "test",
        default_value = "2026-01-01T00:00:00Z"
    )]
    at: UnixTime,
    /// The seed of random ids.
    #[arg(long, value_name = "N", requires = "test", default_value_t = 0)]
    seed: u64,
}

impl Serve {
    /// Runs the service until it receives a signal to shut down.
    ///
    /// # Errors
    /// Returns exit code 65 if stored data is invalid, 74 if a disk or socket fails, 75 if another
    /// process holds a resource or the fleet does not respond, and 78 if the configuration is
    /// invalid or conflicts with stored data.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let socket = InheritedSocket::take()?;
        let mut config = self.settings.load(self.flags()?)?;
        if let Some(socket) = &socket {
            config.http.listen = socket.address()?;
        }
        let few_files = fit_connections(&mut config.http);
        let floor = self.floor.map(|at| instant("--floor", at)).transpose()?;
        let test = self.test.then(|| self.test_run(&mut config)).transpose()?;
        let options = RunOptions {
            floor,
            restore_floor: restore_floor()?,
            run_ahead: self.run_ahead,
            insecure_public: insecure_public(self.insecure_public)?,
            new_fleet: self.new_fleet,
            test,
        };
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.enable_all().event_interval(EVENT_INTERVAL).build();
        let runtime = runtime.map_err(|error| Failure::io("cannot start threads", error))?;
        let telemetry = Telemetry::start(&config.log);
        self.settings.log_file();
        if let Some(warning) = few_files {
            warn!("{warning}");
        }
        if let Some(TestRun { at, seed }) = test {
            warn!(
                "a test service: its clock stands at {at}, its seed is {seed}, and each start repeats its ids"
            );
        }
        let flags = self.flags()?;
        let reload = || self.settings.load(flags.clone());
        let outcome = runtime.block_on(run(&config, options, socket, &telemetry, reload));
        // Dropping the runtime instead would wait without a time limit for blocking work whose
        // callers have disconnected.
        runtime.shutdown_timeout(SHUTDOWN_MAX);
        telemetry.close();
        Ok(outcome?)
    }

    /// Returns the clock and the seed of a test service (`--test`), and changes `config` to the
    /// configuration of a test service.
    fn test_run(&self, config: &mut Config) -> Result<TestRun, Failure> {
        let refuse = |problem: &str| Failure::config(format!("--test: {problem}"));
        if let Some((key, _)) = config.http.public_address() {
            return Err(refuse(&format!(
                "{key} is reachable from other machines, whose callers would take test ids for real ones; listen \
                 on 127.0.0.1"
            )));
        }
        if config.storage.engine == Engine::Etcd {
            return Err(refuse(
                "a test service stores nothing, but storage.engine is etcd, which nodes share",
            ));
        }
        config.storage.engine = Engine::Memory;
        // A mint advances the clock of a test service at once, so even a wait of a day takes no
        // real time.
        config.mint.wait_max = TEST_WAIT_MAX;
        let at = instant("--at", self.at)?;
        if at != at.ceil_to_second() {
            return Err(Failure::usage(format!(
                "--at is {}, but must be a whole second",
                self.at
            )));
        }
        Ok(TestRun {
            at,
            seed: self.seed,
        })
    }

    fn flags(&self) -> Result<toml::Table, Failure> {
        let mut flags = toml::Table::new();
        if let Some(listen) = self.listen {
            set(&mut flags, &["http", "listen"], listen.to_string());
        }
        let paths: [(&Option<PathBuf>, &str, &[&str]); 4] = [
            (&self.data_dir, "--data-dir", &["storage", "data_dir"]),
            (
                &self.tls_certificate,
                "--tls-certificate",
                &["http", "tls", "certificate"],
            ),
            (&self.tls_key, "--tls-key", &["http", "tls", "key"]),
            (
                &self.tls_client_ca,
                "--tls-client-ca",
                &["http", "tls", "client_ca"],
            ),
        ];
        for (path, flag, key) in paths {
            let Some(path) = path else { continue };
            let refuse =
                || Failure::usage(format!("{flag} {}: the path is not UTF-8", path.display()));
            set(
                &mut flags,
                key,
                path.to_str().ok_or_else(refuse)?.to_owned(),
            );
        }
        Ok(flags)
    }
}

/// Returns the floor (the earliest time for new ids) from the variable `IDMINT_FLOOR`. An empty
/// value counts as unset, so that a Kubernetes manifest can contain the variable permanently.
pub(super) fn restore_floor() -> Result<Option<UnixNanos>, Failure> {
    let Some(text) = std::env::var_os(RESTORE_FLOOR).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let text = text.to_string_lossy();
    let at: UnixTime = text
        .parse()
        .map_err(|error| Failure::config(format!("{RESTORE_FLOOR}={text}: {error}")))?;
    instant(RESTORE_FLOOR, at).map(Some)
}

/// Returns `true` if the flag `--insecure-public` is given, or if the variable
/// `IDMINT_INSECURE_PUBLIC` has the same effect. An empty value counts as unset.
pub(super) fn insecure_public(is_given: bool) -> Result<bool, Failure> {
    let text = std::env::var_os(INSECURE_PUBLIC).unwrap_or_default();
    let text = text.to_string_lossy();
    match text.to_ascii_lowercase().as_str() {
        "" | "0" | "false" | "f" | "no" | "n" | "off" => Ok(is_given),
        "1" | "true" | "t" | "yes" | "y" | "on" => Ok(true),
        _ => Err(Failure::config(format!(
            "{INSECURE_PUBLIC}={text}: must be 1 or 0"
        ))),
    }
}

fn listen_address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse()
        .map_err(|_| "an IP address and a port are needed, such as 127.0.0.1:8080 or [::1]:8080")
}

/// Sets the value at the path `key` in a table.
fn set(table: &mut toml::Table, key: &[&str], value: String) {
    let Some((last, above)) = key.split_last() else {
        return;
    };
    let inner = above.iter().fold(table, |table, name| {
        let inner = table
            .entry(*name)
            .or_insert_with(|| Value::Table(toml::Table::new()));
        inner.as_table_mut().expect("no setting is above another")
    });
    inner.insert((*last).to_owned(), Value::String(value));
}

fn instant(flag: &str, instant: UnixTime) -> Result<UnixNanos, Failure> {
    let refuse = |_| {
        Failure::usage(format!(
            "{flag} is {instant}, but must be an instant from 1970 to 2554"
        ))
    };
    u64::try_from(instant.nanos())
        .map(UnixNanos::new)
        .map_err(refuse)
}
