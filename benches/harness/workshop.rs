//! A service as the program assembles it, on the system's clock, with a store in memory.

use std::sync::Arc;
use std::time::Duration;

use idmint::http::Service;
use idmint::minting::Randomness;
use idmint::server::config::Config;
use idmint::server::{StartRule, assemble, begin};
use idmint::storage::{FoundHorizon, MemoryStore, Store};
use idmint::time::Clock;
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

/// A service that mints, with a horizon beyond all that a benchmark reaches, and `lead` as lead and as wait.
///
/// At full speed one lane is soon out of sequence, and then a benchmark would measure how long a millisecond is. With
/// [`YEARS`] of lead a run always finds room at once, by the very steps that take it within the usual 5 ms: one read of the
/// clock, the two bounds, one compare-exchange. A format of long ticks has no lead; there a run finds room by the steps
/// of one whose answer is held, which are the same and a few more.
pub(crate) fn service(runtime: &Runtime, lead: Duration) -> Arc<Service> {
    let mut config: Config = toml::from_str(CONFIG).expect("known settings");
    (config.mint.lead_max, config.mint.wait_max) = (lead, lead);
    let clock = Arc::new(Clock::system());
    let service = assemble(&config, clock, &Randomness::Thread, &Registry::new()).expect("the defaults are sound");
    runtime.block_on(async {
        let store = Store::Memory(MemoryStore::open().expect("a store in memory"));
        let rule =
            StartRule { found: FoundHorizon::None, slots: 1, max_ahead: Duration::from_secs(5), run_ahead: false };
        begin(&service, store, rule).await.expect("an empty store");
        let tenure = service.mint.tenure().expect("it has begun");
        // It starts at the next whole second, and takes one more step for each run until the clock has come past that.
        while tenure.at(service.mint.clock().now()).paced.is_some() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let keeper = service.keeper.get().expect("it has begun");
        assert!(keeper.raise_to(service.mint.clock().now().after(2 * YEARS)).await, "memory does not fail");
    });
    service
}
