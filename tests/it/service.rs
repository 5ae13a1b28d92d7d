//! Starts the real service in this process. It has an in-memory store, and a clock that the test
//! moves.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use idmint::server::config::Config;
use idmint::server::{RunOptions, open};
use idmint_core::time::{ManualClock, UnixNanos};
use tokio::sync::oneshot;

use crate::support::{LONG, get_request, post_request, within};
use idmint_testing::http1::{Answer, AsyncClient};

/// Enables the built-in formats that are off by default.
pub(crate) const ALL_ON: &str = "[formats.payment-wide]\nenabled = true";

/// The start time of a service, 2040-01-01T00:00:00Z. It is a whole second, so that every format
/// can mint immediately. It is also later than any build of the program.
pub(crate) const NEW_YEAR: UnixNanos = UnixNanos::from_seconds(2_208_988_800);

pub(crate) struct Service {
    pub(crate) clock: ManualClock,
    pub(crate) address: SocketAddr,
    /// Stops the service when it is dropped.
    _told: oneshot::Sender<()>,
}

impl Service {
    /// Starts a service with these settings at [`NEW_YEAR`], and waits until it mints.
    pub(crate) async fn start(settings: &str) -> Self {
        let service = Self::start_on(ManualClock::at(NEW_YEAR), settings).await;
        within(LONG, async {
            while service.get("/health/ready").await.status != 200 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        service
    }

    /// Starts a service on this clock. It may be unable to mint yet.
    pub(crate) async fn start_on(clock: ManualClock, settings: &str) -> Self {
        let config = config(settings).unwrap();
        let running = open(
            &config,
            RunOptions::default(),
            None,
            Arc::new(clock.clock()),
        )
        .await
        .unwrap();
        let (address, (told, is_told)) = (running.address(), oneshot::channel::<()>());
        tokio::spawn(async move { running.serve(&config, async { _ = is_told.await }).await });
        Self {
            clock,
            address,
            _told: told,
        }
    }

    pub(crate) async fn connect(&self) -> AsyncClient {
        AsyncClient::connect(self.address).await
    }

    /// Sends one request on a new connection, and returns the response. Asserts that a JSON
    /// response ends with a newline, unless it is a message that the caller sent.
    pub(crate) async fn exchange(&self, request: &str) -> Answer {
        let answer = self.connect().await.exchange(request).await;
        let is_json = matches!(
            answer.header("content-type"),
            Some("application/json" | "application/problem+json")
        );
        let is_ended = answer.body.last().is_none_or(|last| *last == b'\n');
        assert!(
            is_ended || !is_json || request.contains("return=cdm"),
            "no newline ends {answer:?}"
        );
        answer
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.exchange(&get_request(path)).await
    }

    pub(crate) async fn post(&self, path: &str) -> Answer {
        self.exchange(&post_request(path, "", "")).await
    }

    /// Sends a mint request that must succeed, and returns the ids.
    pub(crate) async fn mint(&self, path_and_query: &str) -> Vec<String> {
        let answer = self.post(path_and_query).await;
        assert_eq!(answer.status, 200, "{path_and_query}: {answer:?}");
        ids_of(&answer)
    }

    /// Returns the value of one metric. `series` is its name with its labels, as `/metrics` prints
    /// them.
    pub(crate) async fn metric(&self, series: &str) -> f64 {
        self.metrics()
            .await
            .remove(series)
            .unwrap_or_else(|| panic!("there is no {series}"))
    }

    /// Returns all metrics with their values.
    pub(crate) async fn metrics(&self) -> BTreeMap<String, f64> {
        let answer = self.get("/metrics").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let page = answer.text();
        let samples = page
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.rsplit_once(' '));
        samples
            .map(|(series, value)| (series.to_owned(), value.parse().unwrap()))
            .collect()
    }

    /// Returns the number of ids that were minted so far, over all formats.
    pub(crate) async fn minted(&self) -> f64 {
        let metrics = self.metrics().await;
        metrics
            .iter()
            .filter(|(series, _)| series.starts_with("idmint_ids_minted_total"))
            .map(|(_, count)| count)
            .sum()
    }

    /// Waits until the value of the metric `series` is at least `least`. Retries if the metrics
    /// cannot be read, because the service may refuse new connections for a while.
    pub(crate) async fn until_metric(&self, series: &str, least: f64) {
        within(LONG, async {
            while self
                .metrics()
                .await
                .get(series)
                .is_none_or(|value| *value < least)
            {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
}

/// Loads these settings, which take precedence over the defaults of the tests.
pub(crate) fn config(settings: &str) -> Result<Config, idmint::server::config::ConfigError> {
    let mut flags: toml::Table = settings.parse().unwrap();
    for (section, key, value) in [
        ("http", "listen", "127.0.0.1:0"),
        ("storage", "engine", "memory"),
    ] {
        let table = flags
            .entry(section)
            .or_insert_with(|| toml::Table::new().into())
            .as_table_mut()
            .unwrap();
        table.entry(key).or_insert_with(|| value.into());
    }
    Config::load(None, std::iter::empty(), flags)
}

/// Returns the ids in a JSON response.
pub(crate) fn ids_of(answer: &Answer) -> Vec<String> {
    let json = answer.json();
    let ids = json["ids"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer:?}"));
    ids.iter()
        .map(|id| id.as_str().expect("ids are strings").to_owned())
        .collect()
}

/// Percent-encodes a text, so that it can be one segment of a path.
pub(crate) fn in_path(text: &str) -> String {
    text.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}
