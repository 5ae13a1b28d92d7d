//! A service as the program assembles it, with a store in memory: on the system's clock, or where time stands still.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use idmint::id::PRESETS;
use idmint::minting::Randomness;
use idmint::server::config::Config;
use idmint::server::{StartRule, assemble, begin};
use idmint::service::Service;
use idmint::storage::OwnEngine;
use idmint::time::{Clock, ManualClock, UnixNanos};
use prometheus::Registry;
use tokio::runtime::Runtime;

/// Room for more ids than any benchmark mints.
pub(crate) const YEARS: Duration = Duration::from_secs(20 * 365 * 86_400);

/// As usual, and `payment` once more with ticks that are just short enough for a lead.
const CONFIG: &str = "
    siq.type = 'message'
    [formats.payment-90ms]
    like = 'payment'
    tick = '90ms'
";

/// The first of January 2040, later than any build: a clock that stood before its build would have to be set first.
const STILL: UnixNanos = UnixNanos::from_seconds(2_208_988_800);

/// A service that mints, with a horizon beyond all that a benchmark reaches, and `lead` as lead and as wait.
///
/// At full speed one lane is soon out of sequence, and then a benchmark would measure how long a millisecond is. With
/// [`YEARS`] of lead a run always finds room at once, by the very steps that take it within the usual 5 ms: one read of the
/// clock, the two bounds, one compare-exchange. A format of long ticks has no lead; there a run finds room by the steps
/// of one whose answer is held, which are the same and a few more.
pub(crate) fn service(runtime: &Runtime, lead: Duration) -> Arc<Service> {
    let service = start(runtime, &config(lead), Clock::system(), &Randomness::Thread);
    let session = service.session().expect("it has begun");
    // It starts at the next whole second, and takes one more step for each run until the clock has come past that.
    while session.at(service.clock().now()).catching_up.is_some() {
        thread::sleep(Duration::from_millis(50));
    }
    raise_horizon(runtime, &service);
    service
}

/// The same with every built-in format and [`YEARS`] of lead, but no time passes, and random bits are the same every time.
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
    // Past its start, as above.
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
        // Nobody has minted in this store: a first start need not wait until a lead of years is past.
        lead_max: Duration::ZERO,
        skew_max: Duration::from_secs(5),
        run_ahead: false,
        founding: idmint::cluster::Founding::First,
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
