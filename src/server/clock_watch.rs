//! Watches the wall clock and logs when it is set forward or back. Keeps the clock estimate, which
//! is the time that minting uses, close to the wall clock.

use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use idmint_core::time::{WallStep, format_seconds};
use idmint_service::Service;

const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Watches the wall clock until the future is dropped.
///
/// The service mints by its clock estimate, which follows the wall clock. If the wall clock is more
/// than `ahead_max` ahead of the estimate, the estimate ignores it.
pub(super) async fn watch(service: Arc<Service>, ahead_max: Duration) {
    let clock = service.clock();
    let mut was_too_far_ahead = false;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let observation = clock.observe(ahead_max);
        service.counters().observe(&observation);
        match observation.step {
            Some(WallStep::Back(by)) => {
                warn!(
                    step_s = by.as_secs_f64(),
                    "the wall clock was set back by {}; minting continues by the time since boot",
                    format_seconds(by)
                );
            }
            Some(WallStep::Ahead(by)) => warn!(
                step_s = by.as_secs_f64(),
                "the wall clock was set ahead by {}",
                format_seconds(by)
            ),
            None => {}
        }
        if observation.too_far_ahead && !was_too_far_ahead {
            warn!(
                "the wall clock is more than {ahead_max:?} ahead and is ignored; if it is right, restart this node"
            );
        }
        was_too_far_ahead = observation.too_far_ahead;
    }
}
