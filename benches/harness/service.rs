//! A service assembled as in the program, with a store in memory. Its clock is the system's, or
//! stands still.

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

/// Room for more ids than any benchmark mints.
pub(crate) const YEARS: Duration = Duration::from_secs(20 * 365 * 86_400);

/// The configuration, with a second `payment` format whose ticks are just short enough for a lead.
const CONFIG: &str = "
    siq.type = 'message'
    [formats.payment-90ms]
    like = 'payment'
    tick = '90ms'
";

/// 1 January 2040, later than any build, because a clock before its build time would have to be set
/// first.
const STILL: UnixNanos = UnixNanos::from_seconds(2_208_988_800);

/// Returns a service that mints, with a horizon beyond the reach of every benchmark. `lead` is both
/// the maximum lead and the maximum wait.
///
/// At full speed one lane soon exhausts its sequence, and then a benchmark would measure the length
/// of a millisecond. With a lead of [`YEARS`], a run finds room at once. The steps are those within
/// the usual lead of 5 ms: one read of the clock, the two bounds, one compare-exchange. A format of
/// long ticks has no lead. There a run finds room by the steps for a held response, which are the
/// same steps and a few more.
pub(crate) fn service(runtime: &Runtime, lead: Duration) -> Arc<Service> {
    let service = start(runtime, &config(lead), Clock::system(), &Randomness::Thread);
    let session = service.session().expect("it has begun");
    // Minting starts at the next whole second. Until the clock has passed that second, each run
    // takes one more step.
    while session.is_ahead_of(service.clock().now()) {
        thread::sleep(Duration::from_millis(50));
    }
    raise_horizon(runtime, &service);
    service
}

/// Returns a service with every built-in format and a lead of [`YEARS`], on a clock that stands
/// still. Its random bits are the same in every run.
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
    // Advance past the start, as in `service`.
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
        // The store is new, so the first start need not wait until a lead of years has passed.
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
