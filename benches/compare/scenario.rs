//! A scenario (one kind of request to one server), with its figures in every round.

use std::process;
use std::time::Duration;

use serde::Serialize;

use crate::cpu_time;
use crate::load::{Generator, Readers, Workload};
use crate::rivals::Target;

/// The time for which new connections are used before the measurement begins.
const WARM_UP: Duration = Duration::from_millis(50);

/// The figures of a scenario in one round.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Round {
    pub(crate) requests_per_second: f64,
    pub(crate) ids_per_second: f64,
    /// The megabytes of response bodies per second, or `None` if another program generates the
    /// load.
    pub(crate) megabytes_per_second: Option<f64>,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// The 99.9th percentile of the latency in microseconds. `None` if another program generates
    /// the load and does not report it.
    pub(crate) p999_us: Option<f64>,
    /// The CPU time of the server for each request, in microseconds.
    pub(crate) server_us: f64,
    /// The CPU usage of the server in percent. If it is far below 100, something else limits the
    /// scenario.
    pub(crate) busy_percent: f64,
    /// The share of time in percent for which the server was ready to run, but other work on the
    /// machine was using the CPU. Time that other threads of the server were using is not counted.
    pub(crate) waiting_percent: Option<f64>,
    /// The CPU time of the load generator for each request, in microseconds. `None` if another
    /// program generates the load.
    pub(crate) load_us: Option<f64>,
    /// The number of responses that did not have the status 200. Rates do not count these
    /// responses.
    pub(crate) refused: u64,
    /// The status of the last response that did not have the status 200.
    pub(crate) refusal: u16,
}

type Measure = Box<dyn FnMut(Duration) -> Result<Round, String>>;

#[derive(Serialize)]
pub(crate) struct Scenario {
    /// The key with which goals refer to this scenario.
    pub(crate) key: String,
    pub(crate) server: String,
    pub(crate) asked: String,
    pub(crate) rounds: Vec<Round>,
    /// The reason why the scenario has no figures or no meaningful ones, or `None` if its figures
    /// are valid.
    pub(crate) failure: Option<String>,
    #[serde(skip)]
    measure: Option<Measure>,
}

impl Scenario {
    /// Creates a scenario whose rounds are measured by the function `measure`. If `measure` is an
    /// error, the scenario has no figures. For a plain HTTP request, use [`Scenario::over_http`].
    pub(crate) fn new<M>(key: &str, server: &str, asked: &str, measure: Result<M, String>) -> Self
    where
        M: FnMut(Duration) -> Result<Round, String> + 'static,
    {
        let (measure, failure) = match measure {
            Ok(measure) => (Some(Box::new(measure) as Measure), None),
            Err(reason) => (None, Some(format!("not measured: {reason}"))),
        };
        let [key, server, asked] = [key, server, asked].map(str::to_owned);
        Self {
            key,
            server,
            asked,
            rounds: Vec::new(),
            failure,
            measure,
        }
    }

    /// Creates a scenario that repeats one HTTP request. Each response counts as `ids` ids.
    pub(crate) fn over_http(
        key: &str,
        server: &str,
        asked: &str,
        target: Result<Target, String>,
        workload: Workload,
        ids: u32,
    ) -> Self {
        let measure =
            target.map(|target| move |time| measure_over_http(target, &workload, ids, time));
        Self::new(key, server, asked, measure)
    }

    /// Measures one round. The figures are kept only if `counts` is `true`. A scenario that has
    /// failed is skipped.
    pub(crate) fn measure(&mut self, time: Duration, counts: bool) {
        let Some(measure) = &mut self.measure else {
            return;
        };
        match measure(time) {
            Ok(round) => {
                if round.refused > 0 {
                    let said = format!(
                        "failed: {} answers of a round were {}",
                        round.refused, round.refusal
                    );
                    self.failure.get_or_insert(said);
                }
                if counts {
                    self.rounds.push(round);
                }
            }
            Err(reason) => {
                self.failure = Some(format!("not measured: {reason}"));
                self.measure = None;
            }
        }
    }

    /// Returns one figure of every round.
    pub(crate) fn figures(&self, figure: impl Fn(&Round) -> f64) -> Vec<f64> {
        self.rounds.iter().map(figure).collect()
    }
}

/// Returns the scenario with this key.
pub(crate) fn find<'a>(scenarios: &'a [Scenario], key: &str) -> &'a Scenario {
    scenarios
        .iter()
        .find(|scenario| scenario.key == key)
        .expect("there is a scenario of that key")
}

/// Measures every scenario once in each round. A slow moment of the machine then affects all
/// scenarios and not only one.
pub(crate) fn measure_all(title: &str, scenarios: &mut [Scenario], rounds: usize, time: Duration) {
    for round in 0..=rounds {
        eprintln!(
            "{title}: round {round} of {rounds}{}",
            if round == 0 {
                ", which does not count"
            } else {
                ""
            }
        );
        for scenario in &mut *scenarios {
            scenario.measure(time, round > 0);
        }
    }
}

fn measure_over_http(
    target: Target,
    workload: &Workload,
    ids: u32,
    time: Duration,
) -> Result<Round, String> {
    let told = |error: std::io::Error| error.to_string();
    let mut generator = Generator::connect(target.address, workload).map_err(told)?;
    generator.run(WARM_UP).map_err(told)?;
    let (server, load) = (
        cpu_time::of_server(target.pid),
        cpu_time::of_threads(process::id()),
    );
    let readers = workload
        .is_read_beside
        .then(|| Readers::start(target.address))
        .transpose()
        .map_err(told)?;
    let mut tally = generator.run(time).map_err(told)?;
    readers.map_or(Ok(()), Readers::end).map_err(told)?;
    let (server, load) = (
        cpu_time::of_server(target.pid) - server,
        cpu_time::of_threads(process::id()) - load,
    );
    let (answered, seconds) = (tally.answered as f64, tally.passed.as_secs_f64());
    let all = (tally.answered + tally.refused) as f64;
    Ok(Round {
        requests_per_second: answered / seconds,
        ids_per_second: answered * f64::from(ids) / seconds,
        megabytes_per_second: Some(tally.bytes as f64 / 1e6 / seconds),
        p50_us: percentile_us(&mut tally.latencies_ns, 500),
        p99_us: percentile_us(&mut tally.latencies_ns, 990),
        p999_us: Some(percentile_us(&mut tally.latencies_ns, 999)),
        server_us: server.running.as_secs_f64() * 1e6 / all,
        busy_percent: server.running.as_secs_f64() * 100.0 / seconds,
        waiting_percent: Some(server.waiting.as_secs_f64() * 100.0 / seconds),
        load_us: Some(load.running.as_secs_f64() * 1e6 / all),
        refused: tally.refused,
        refusal: tally.refusal,
    })
}

/// Returns the latency in microseconds that `per_mille` of a thousand requests did not exceed.
/// Changes the order of `latencies_ns`.
pub(crate) fn percentile_us(latencies_ns: &mut [u64], per_mille: usize) -> f64 {
    if latencies_ns.is_empty() {
        return f64::NAN;
    }
    let at = (latencies_ns.len() * per_mille).div_ceil(1_000) - 1;
    *latencies_ns.select_nth_unstable(at).1 as f64 / 1e3
}
