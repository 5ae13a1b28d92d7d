//! Runs the service as `idmint serve` does, on a thread with a name.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use idmint::server::config::Config;
use idmint::server::{RunOptions, open};
use idmint_core::time::Clock;
use tokio::runtime::{Builder, Runtime};

pub(crate) fn single_thread_runtime(name: &str) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name(name)
        .enable_all()
        .build()
        .expect("a thread")
}

/// Serves with the default configuration and a data directory, as `idmint serve` does.
pub(crate) async fn serve_in(directory: &Path) -> SocketAddr {
    serve(Config::default(), directory).await
}

/// Serves with the configuration `config` and a data directory.
pub(crate) async fn serve(mut config: Config, directory: &Path) -> SocketAddr {
    config.http.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    config.storage.data_dir = directory.to_owned();
    let clock = Arc::new(Clock::system());
    let running = open(&config, RunOptions::default(), None, clock)
        .await
        .expect("an empty directory");
    let address = running.address();
    tokio::spawn(async move { running.serve(&config, std::future::pending()).await });
    address
}
