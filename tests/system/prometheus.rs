//! A Prometheus that scrapes the services of a test.

use std::fs;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use idmint_testing::http1::{Client, request};
use idmint_testing::loopback::address_of_its_own;
use idmint_testing::service::{Home, until};

/// A running Prometheus, which scrapes twice per second. It ends when this value is dropped.
pub(crate) struct Prometheus {
    process: Child,
    address: SocketAddr,
    _home: Home,
}

impl Prometheus {
    /// Starts a Prometheus with these rules. `jobs` are the names of the scrape jobs, each with the
    /// addresses of its services.
    pub(crate) fn start(jobs: &[(&str, Vec<SocketAddr>)], rules: &str) -> Prometheus {
        let home = Home::new();
        let job = |(name, targets): &(&str, Vec<SocketAddr>)| {
            let targets: Vec<String> = targets.iter().map(SocketAddr::to_string).collect();
            format!("- {{ job_name: {name}, static_configs: [{{ targets: {targets:?} }}] }}\n")
        };
        let jobs: String = jobs.iter().map(job).collect();
        let global =
            "{ scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms }";
        let config = format!("global: {global}\nrule_files: [rules.yml]\nscrape_configs:\n{jobs}");
        fs::write(home.path("prometheus.yml"), config).unwrap();
        fs::write(home.path("rules.yml"), rules).unwrap();
        let address = address_of_its_own();
        let mut prometheus = Command::new("prometheus");
        prometheus
            .arg("--config.file")
            .arg(home.path("prometheus.yml"));
        prometheus
            .arg("--storage.tsdb.path")
            .arg(home.path("series"));
        prometheus.args([
            "--log.level",
            "error",
            "--web.listen-address",
            &address.to_string(),
        ]);
        let process = prometheus.stdin(Stdio::null()).spawn();
        let process = process.expect(
            "prometheus runs: Debian package prometheus, installed by .ci/install-packages",
        );
        let started = Prometheus {
            process,
            address,
            _home: home,
        };
        until("Prometheus is ready", || {
            let mut client = Client::try_connect(address).ok()?;
            let answer = client.try_exchange(request("GET /-/ready", "", "")).ok()?;
            (answer.status == 200).then_some(())
        });
        started
    }

    /// Returns the series that a query gives at this moment.
    ///
    /// # Panics
    /// Panics if Prometheus rejects the query.
    pub(crate) fn query(&self, query: &str) -> Vec<Value> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let form = "content-type: application/x-www-form-urlencoded\r\n";
        let asked = request("POST /api/v1/query", form, &format!("query={encoded}"));
        let answer = Client::connect(self.address).exchange(asked);
        assert_eq!(answer.status, 200, "{query}: {}", answer.text());
        answer.json()["data"]["result"]
            .as_array()
            .expect("series")
            .clone()
    }
}

/// Returns the value of a series, or `None` if the value is not a finite number.
pub(crate) fn value_of(series: &Value) -> Option<f64> {
    let value: f64 = series["value"][1].as_str()?.parse().ok()?;
    value.is_finite().then_some(value)
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
