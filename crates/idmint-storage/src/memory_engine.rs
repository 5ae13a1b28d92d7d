//! A store in memory, which is lost when the process ends.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::embedded::{Database, FormatsTable, RecordTables};
use crate::failure::StoreError;
use crate::kept_formats::{FormatsError, KeptFormat};
use crate::records::Records;
use crate::start::{EmptyEngine, Opened, ReadyEngine, ReservedEngine};
use idmint_core::minting::HorizonPlan;
use idmint_core::time::UnixNanos;

/// A store with the tables of the embedded engine, kept in memory. All clones share one store.
///
/// Ids that are minted with this store are unique within one run of the process. Across runs, they
/// are unique only if the clock has advanced.
#[derive(Debug, Clone)]
pub struct MemoryEngine {
    horizon: Arc<Mutex<Option<Horizon>>>,
    database: Arc<Database>,
}

#[derive(Debug, Clone, Copy)]
struct Horizon {
    horizon: UnixNanos,
    floor: Option<UnixNanos>,
}

impl MemoryEngine {
    /// Creates an empty store.
    ///
    /// # Errors
    /// Returns [`StoreError`] if not enough memory is available.
    pub fn new() -> Result<MemoryEngine, StoreError> {
        Ok(MemoryEngine {
            horizon: Arc::default(),
            database: Arc::new(Database::in_memory()?),
        })
    }

    /// Opens the store, as a process does when it starts.
    pub fn open(&self) -> Opened {
        let found = *self.horizon();
        match found {
            None => Opened::first(self.clone()),
            Some(Horizon { horizon, floor }) => Opened::again(horizon, floor, self.clone()),
        }
    }

    fn horizon(&self) -> MutexGuard<'_, Option<Horizon>> {
        // A panic of another thread cannot leave an incomplete value, because the horizon is
        // replaced as a whole. So a poisoned lock is ignored.
        self.horizon.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EmptyEngine for MemoryEngine {
    fn create_horizon(
        self: Box<Self>,
        plan: &HorizonPlan,
    ) -> Result<Box<dyn ReservedEngine>, StoreError> {
        *self.horizon() = Some(Horizon {
            horizon: plan.horizon(),
            floor: plan.floor(),
        });
        Ok(self)
    }
}

impl ReservedEngine for MemoryEngine {
    fn agree_on_formats(
        self: Box<Self>,
        slots: u32,
        formats: &[KeptFormat],
    ) -> Result<Box<dyn ReadyEngine>, FormatsError> {
        FormatsTable::new(&self.database).agree(slots, formats)?;
        Ok(self)
    }
}

impl ReadyEngine for MemoryEngine {
    fn raise_horizon(&mut self, horizon: UnixNanos) -> Result<(), StoreError> {
        let mut kept = self.horizon();
        let present = kept.as_mut().expect("a start reserves before it is ready");
        assert!(
            horizon >= present.horizon,
            "a horizon is never lowered: it is {}, {horizon} was asked for",
            present.horizon
        );
        present.horizon = horizon;
        Ok(())
    }

    fn records(&self) -> Result<Records, StoreError> {
        Ok(Arc::new(RecordTables::open(Arc::clone(&self.database))?))
    }
}
