//! What belongs to one process alone.

use std::process;
use std::sync::{Arc, Mutex};

use tokio::runtime::{Builder, Handle, Runtime};

use super::asking::{Asking, Kind};
use super::error::IdsError;
use super::options::IdsOptions;
use super::stock::Stock;

/// Stocks, connections and the thread that fills, which no other process may use.
pub(super) struct Owner {
    pub(super) process: u32,
    pub(super) asking: Arc<Asking>,
    pub(super) numbers: Arc<Stock>,
    pub(super) texts: Arc<Stock>,
    /// Held by who asks how ids are written.
    pub(super) learning: Mutex<()>,
    /// `None` only while it ends.
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
                // Also where a task drops it, which must not wait.
                runtime.shutdown_background();
            } else {
                // Its threads are those of the process that was copied.
                std::mem::forget(runtime);
            }
        }
    }
}
