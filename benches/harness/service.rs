//! Builds a service as the program does, but with a store in memory. Its clock is that of the
//! system, or stands still.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use idmint::server::config::Config;
use idmint::server::{StartRule, assemble, begin};
use idmint_core::id::PRESETS;
use idmint_core::minting::Randomness;
use idmint_core::time::{Clock, ManualClock, UnixNanos};
use idmint_service::Service;
use idmint_storage::OwnEngine;
use prometheus::Registry;
use tokio::runtime::Runtime;

/// A lead (the time by which ids may be ahead of the clock) of 20 years. No benchmark mints enough
/// ids to use it up.
pub(crate) const YEARS: Duration = Duration::from_secs(20 * 365 * 86_400);

/// The configuration of the service. It has a second `payment` format, whose ticks are short enough
/// for a lead (ids that are ahead of the clock).
const CONFIG: &str = "
    siq.type = 'message'
    [formats.payment-90ms]
    like = 'payment'
    tick = '90ms'
";

/// The time at which the clock stands still, 1 January 2040. It is later than any build, because a
/// service does not accept a clock that is earlier than its build.
const STILL: UnixNanos = UnixNanos::from_seconds(2_208_988_800);

/// Returns a service that mints. No benchmark reaches its horizon, which is the time up to which
/// the service may mint. `lead` is the maximum time by which ids may be ahead of the clock, and
/// also the maximum wait.
///
/// At full speed, a lane (worker number) soon uses up all ids of a millisecond. With a short lead,
/// the benchmark would then measure the wait for the next millisecond. With a lead of [`YEARS`],
/// every run of ids is available immediately. The steps are the same as within the usual lead of 5
/// ms: one read of the clock, two bounds, and one compare-exchange. A format with long ticks has no
/// lead. Its runs take a few more steps, because the response is held until the clock reaches the
/// time of the ids.
pub(crate) fn service(runtime: &Runtime, lead: Duration) -> Arc<Service> {
    let service = start(runtime, &config(lead), Clock::system(), &Randomness::Thread);
    let session = service.session().expect("it has begun");
    // If the session began ahead of its clock, wait until the clock has caught up. Until then,
    // reserving a run of ids takes one more step.
    while session.is_ahead_of(service.clock().now()) {
        thread::sleep(Duration::from_millis(50));
    }
    raise_horizon(runtime, &service);
    service
}

/// Returns a service with every built-in format and a lead of [`YEARS`]. Its clock stands still,
/// and its random bits are the same in every run.
pub(crate) fn frozen_service(runtime: &Runtime) -> Arc<Service> {
    let mut config = config(YEARS);
    config.formats.enabled = Some(
        PRESETS
            .iter()
            .map(|preset| preset.name.to_owned())
            .collect(),
    );
    let hand = ManualClock::at(STILL);
    let service = start(runtime, &config, hand.clock(), &Randomness::seeded(1));
    // Advance the clock past the start of minting. In a session that is ahead of its clock,
    // reserving a run of ids takes one more step.
    hand.advance(Duration::from_secs(5));
    raise_horizon(runtime, &service);
    service
}

fn config(lead: Duration) -> Config {
    let mut config: Config = toml::from_str(CONFIG).expect("known settings");
    (config.mint.lead_max, config.mint.wait_max) = (lead, lead);
    config
}

fn start(
    runtime: &Runtime,
    config: &Config,
    clock: Clock,
    randomness: &Randomness,
) -> Arc<Service> {
    let service = assemble(config, Arc::new(clock), randomness, &Registry::new())
        .expect("the defaults are sound");
    let store = OwnEngine::Memory.open(0, None).expect("a store in memory");
    let rule = StartRule {
        slots: 1,
        max_ahead: Duration::from_secs(5),
        // The store is new, so no earlier ids exist. With the configured lead of years, the start
        // would wait until the times of possible earlier ids lie in the past.
        lead_max: Duration::ZERO,
        skew_max: Duration::from_secs(5),
        run_ahead: false,
    };
    runtime
        .block_on(begin(&service, store, rule))
        .expect("an empty store");
    service
}

fn raise_horizon(runtime: &Runtime, service: &Service) {
    let keeper = service.reserver().expect("it has begun");
    let horizon = service.clock().now().after(2 * YEARS);
    assert!(
        runtime.block_on(keeper.raise_to(horizon)),
        "memory does not fail"
    );
}
