//! A store that is gone with the process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::minting::HorizonPlan;
use crate::storage::failure::StoreError;
use crate::storage::fleet::FleetRecords;
use crate::storage::kept_formats::{FormatsError, KeptFormat, differences};
use crate::storage::records::Records;
use crate::storage::start::{EmptyEngine, Opened, ReadyEngine, ReservedEngine};
use crate::time::UnixNanos;

/// Ids minted on it are unique within one run only, up to what the clock adds. Clones are the same store.
#[derive(Debug, Clone)]
pub(in crate::storage) struct MemoryEngine {
    kept: Arc<Mutex<Kept>>,
    records: Arc<FleetRecords>,
}

#[derive(Debug, Default)]
struct Kept {
    horizon: Option<UnixNanos>,
    floor: Option<UnixNanos>,
    slots: Option<u32>,
    /// By name, the descriptions.
    formats: BTreeMap<String, BTreeMap<String, String>>,
}

impl MemoryEngine {
    /// A store of its own, empty.
    pub(in crate::storage) fn new() -> MemoryEngine {
        MemoryEngine {
            kept: Arc::default(),
            records: Arc::new(FleetRecords::in_memory()),
        }
    }

    /// The store as a start finds it.
    pub(in crate::storage) fn open(&self) -> Opened {
        let (horizon, floor) = {
            let kept = self.kept();
            (kept.horizon, kept.floor)
        };
        match horizon {
            None => Opened::first(self.clone()),
            Some(horizon) => Opened::again(horizon, floor, self.clone()),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Whatever panicked with it had checked what it changed.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EmptyEngine for MemoryEngine {
    fn create_horizon(
        self: Box<Self>,
        plan: &HorizonPlan,
    ) -> Result<Box<dyn ReservedEngine>, StoreError> {
        let mut kept = self.kept();
        (kept.horizon, kept.floor) = (Some(plan.horizon()), plan.floor());
        drop(kept);
        Ok(self)
    }
}

impl ReservedEngine for MemoryEngine {
    fn agree_on_formats(
        self: Box<Self>,
        slots: u32,
        formats: &[KeptFormat],
    ) -> Result<Box<dyn ReadyEngine>, FormatsError> {
        self.kept().agree(slots, formats)?;
        Ok(self)
    }
}

impl ReadyEngine for MemoryEngine {
    fn raise_horizon(&mut self, horizon: UnixNanos) -> Result<(), StoreError> {
        let mut kept = self.kept();
        let present = kept.horizon.unwrap_or_default();
        assert!(
            horizon >= present,
            "a horizon is never lowered: it is {present}, {horizon} was asked for"
        );
        kept.horizon = Some(horizon);
        Ok(())
    }

    fn records(&self) -> Result<Records, StoreError> {
        Ok(Arc::clone(&self.records) as Records)
    }
}

impl Kept {
    fn agree(&mut self, now: u32, formats: &[KeptFormat]) -> Result<(), FormatsError> {
        if let Some(kept) = self.slots.filter(|kept| *kept != now) {
            return Err(FormatsError::SlotsChanged { kept, now });
        }
        for KeptFormat {
            name, description, ..
        } in formats
        {
            let differences = self
                .formats
                .get(name)
                .map(|kept| differences(kept, description))
                .unwrap_or_default();
            if !differences.is_empty() {
                return Err(FormatsError::Changed {
                    name: name.clone(),
                    differences,
                });
            }
        }
        self.slots = Some(now);
        let minted = formats.iter().filter(|format| format.is_minted);
        self.formats
            .extend(minted.map(|format| (format.name.clone(), format.description.clone())));
        Ok(())
    }
}
