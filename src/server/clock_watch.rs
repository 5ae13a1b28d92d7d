//! Looks at the wall clock all the time, so that a clock that was set is reported and the estimate stays near it.

use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use crate::service::Service;
use crate::time::WallStep;

const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Watches until it is dropped.
///
/// `ahead_max`: how far ahead the wall clock may be and still be followed.
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
                    "the wall clock was set back by {by:?}; minting goes on by the time since boot"
                );
            }
            Some(WallStep::Ahead(by)) => warn!(
                step_s = by.as_secs_f64(),
                "the wall clock was set ahead by {by:?}"
            ),
            None => {}
        }
        if observation.too_far_ahead && !was_too_far_ahead {
            warn!(
                "the wall clock is more than {ahead_max:?} ahead and is not followed; if it is right, restart this node"
            );
        }
        was_too_far_ahead = observation.too_far_ahead;
    }
}
