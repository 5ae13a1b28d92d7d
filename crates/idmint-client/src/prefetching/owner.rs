//! The resources of one process that no forked child may share.

use std::process;
use std::sync::Arc;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Mutex;

use super::asking::{Asking, Kind};
use super::error::IdsError;
use super::options::IdsOptions;
use super::stock::Stock;

/// The id stocks, connections and fetch thread of one process alone. A forked child gets its own.
pub(super) struct Owner {
    pub(super) process: u32,
    pub(super) asking: Arc<Asking>,
    pub(super) numbers: Arc<Stock>,
    pub(super) texts: Arc<Stock>,
    /// The lock that a caller holds while it asks the service how to write the ids of the format as
    /// text.
    pub(super) learning: Mutex<()>,
    /// The runtime on which requests are sent. `None` only during drop.
    runtime: Option<Runtime>,
}

impl Owner {
    pub(super) fn new(
        urls: &[String],
        format: &str,
        options: &IdsOptions,
    ) -> Result<Owner, IdsError> {
        let process = process::id();
        let asking = Arc::new(Asking::new(urls, format, options)?);
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("idmint")
            .enable_all()
            .build();
        let runtime = runtime.map_err(|cause| IdsError::NotStarted(Arc::new(cause)))?;
        let stock = |kind| Arc::new(Stock::new(kind, options, process));
        let (numbers, texts) = (stock(Kind::Numbers), stock(Kind::Texts));
        Ok(Owner {
            process,
            asking,
            numbers,
            texts,
            learning: Mutex::new(()),
            runtime: Some(runtime),
        })
    }

    pub(super) fn stock(&self, kind: Kind) -> &Arc<Stock> {
        match kind {
            Kind::Numbers => &self.numbers,
            Kind::Texts => &self.texts,
        }
    }

    pub(super) fn runtime(&self) -> &Handle {
        self.runtime.as_ref().expect("it has not ended").handle()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            if self.process == process::id() {
                // Unlike dropping the runtime, this call does not block, so it also works in an
                // async task.
                runtime.shutdown_background();
            } else {
                // Do not drop the runtime in a forked child, because its threads exist only in the
                // parent.
                std::mem::forget(runtime);
            }
        }
    }
}
