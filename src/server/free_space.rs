//! Measures how much space is free on the file system of the data directory.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use idmint_service::Service;

const MEASURE_EVERY: Duration = Duration::from_secs(10);

/// Measures the free space at intervals. Runs until the future is dropped. Without a data
/// directory, the free space stays unknown.
pub(super) async fn watch(service: Arc<Service>, data_dir: Option<PathBuf>) {
    loop {
        let measured = data_dir.clone();
        // The free space is measured on its own thread, because a file system that does not respond
        // must not block a thread that serves requests.
        let free = tokio::task::spawn_blocking(move || {
            let space = rustix::fs::statvfs(measured?).ok()?;
            Some(space.f_bavail.saturating_mul(space.f_frsize))
        });
        service
            .counters()
            .observe_free_space(free.await.ok().flatten());
        tokio::time::sleep(MEASURE_EVERY).await;
    }
}
